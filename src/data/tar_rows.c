/* See tar_rows.h. */
#include "data/tar_rows.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void keel_tar_rows_close(keel_tar_rows *t)
{
    for (int64_t i = 0; t->tar && i < t->files.n; i++) keel_tar_close(&t->tar[i]);
    keel_free(t->tar);
    keel_free(t->items);
    keel_free(t->rows);
    keel_file_list_free(&t->files);
}

bool keel_tar_ending_is(const char *part, const char *ending)
{
    const size_t length = strlen(ending);
    for (;; part++) {
        const size_t n = strcspn(part, ";");
        if (n == length && !strncasecmp(part, ending, n)) return true;
        part += n;
        if (!*part) return false;
    }
}

const keel_tar_item *keel_tar_rows_find(const keel_tar_rows *t, int64_t index, const char *part)
{
    for (int64_t i = t->rows[index].first; i < t->rows[index + 1].first; i++)
        if (keel_tar_ending_is(part, t->items[i].ending)) return &t->items[i];
    return NULL;
}

keel_status keel_tar_rows_fail(const keel_tar_rows *t, const keel_tar_item *m, keel_status s)
{
    char key[200];
    return keel_fail_within(s, "%s: member '%s.%.40s' at byte %llu", t->tar[m->shard].in.path,
                            keel_printable(key, sizeof key, m->key), m->ending,
                            (unsigned long long)m->offset);
}

keel_status keel_tar_rows_get(const keel_tar_rows *t, int64_t index, const char *part,
                              const keel_tar_item **out)
{
    char key[200];
    if ((*out = keel_tar_rows_find(t, index, part))) return KEEL_OK;
    const keel_tar_item *any = &t->items[t->rows[index].first];
    return keel_fail(KEEL_EDATA, "%s: row '%s' has no member '%s'", t->tar[any->shard].in.path,
                     keel_printable(key, sizeof key, t->rows[index].key), part);
}

/* ---- the index ------------------------------------------------------------------------------- */

/* Divide a name at the first dot of its last part. False: it has no key or no ending, and belongs
 * to no row, as .DS_Store. */
static bool divide(char *name, const char **ending)
{
    char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name, *dot = strchr(last, '.');
    if (!dot || dot == last || !dot[1]) return false;
    *dot = 0;
    *ending = dot + 1;
    return true;
}

static keel_status add_item(keel_tar_rows *t, const keel_tar_item *m)
{
    if (t->n_item == t->item_room) {
        const int64_t room = t->item_room ? 2 * t->item_room : 256;
        keel_tar_item *grown = keel_grow(t->items, (size_t)room, sizeof *grown);
        if (!grown) return KEEL_ENOMEM;
        t->items = grown;
        t->item_room = room;
    }
    t->items[t->n_item++] = *m;
    return KEEL_OK;
}

static keel_status add_row(keel_tar_rows *t, const char *key, int64_t first)
{
    if (t->n_row == t->row_room) {
        const int64_t room = t->row_room ? 2 * t->row_room : 256;
        keel_tar_row *grown = keel_grow(t->rows, (size_t)room, sizeof *grown);
        if (!grown) return KEEL_ENOMEM;
        t->rows = grown;
        t->row_room = room;
    }
    t->rows[t->n_row++] = (keel_tar_row){ key, first };
    return KEEL_OK;
}

static int by_key(const void *x, const void *y)
{
    const keel_tar_item *a = x, *b = y;
    const int order = strcmp(a->key, b->key);
    return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

static int by_order(const void *x, const void *y)
{
    const keel_tar_item *a = x, *b = y;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Bring the members of a key together, and the keys into the order of their first members. */
static void group(keel_tar_item *m, int64_t n)
{
    bool sorted = true;
    for (int64_t i = 1; i < n && sorted; i++) sorted = strcmp(m[i - 1].key, m[i].key) <= 0;
    if (sorted) return;
    qsort(m, (size_t)n, sizeof *m, by_key);
    /* A member's order becomes that of the first member of its key, whose others follow by their
     * endings: a stable order, since by_key made them neighbours. */
    for (int64_t i = 0, first = 0, order = 0; i < n; i++) {
        if (i == 0 || strcmp(m[first].key, m[i].key)) {
            first = i;
            order = m[i].order * n;
        }
        m[i].order = order + (i - first);
    }
    qsort(m, (size_t)n, sizeof *m, by_order);
}

static keel_status check_twice(const keel_tar_rows *t, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        for (int64_t k = from; k < i; k++)
            if (!strcasecmp(t->items[i].ending, t->items[k].ending))
                return keel_tar_rows_fail(t, &t->items[i],
                                          keel_fail(KEEL_EDATA, "is there twice in one archive"));
    return KEEL_OK;
}

static keel_status index_shard(keel_tar_rows *t, int64_t shard)
{
    enum { MEMBERS_MAX = 256 };
    keel_tar *of = &t->tar[shard];
    const int64_t begin = t->n_item;
    for (int64_t i = 0; i < of->count; i++) {
        char *name = of->names + of->member[i].name;
        const char *ending;
        if (!divide(name, &ending)) continue;
        KEEL_TRY(add_item(t, &(keel_tar_item){ name, ending, of->member[i].offset,
                                               of->member[i].n_bytes, shard, i }));
    }
    if (t->n_item == begin) return KEEL_OK;
    group(t->items + begin, t->n_item - begin);
    for (int64_t i = begin, end; i < t->n_item; i = end) {
        for (end = i + 1; end < t->n_item && !strcmp(t->items[i].key, t->items[end].key); end++) {}
        if (end - i > MEMBERS_MAX)
            return keel_tar_rows_fail(
                t, &t->items[i],
                keel_fail(KEEL_EDATA, "its key has more than %d members", MEMBERS_MAX));
        KEEL_TRY(check_twice(t, i, end));
        KEEL_TRY(add_row(t, t->items[i].key, i));
    }
    return KEEL_OK;
}

keel_status keel_tar_rows_open(keel_tar_rows *t, const char *spec)
{
    int64_t room = KEEL_INFLATED_MAX;
    KEEL_TRY(keel_file_list_find(&t->files, spec, keel_tar_endings));
    if (!(t->tar = keel_calloc((size_t)t->files.n + 1, sizeof *t->tar))) return KEEL_ENOMEM;
    for (int64_t i = 0; i < t->files.n; i++) {
        KEEL_TRY(keel_tar_open(&t->tar[i], t->files.path[i], i < KEEL_FILES_OPEN, &room));
        KEEL_TRY(index_shard(t, i));
    }
    if (!t->n_row)
        return keel_fail(KEEL_EDATA, "%s: has no rows: no member has a key and an ending, as 0.jpg",
                         spec);
    KEEL_TRY(add_row(t, NULL, t->n_item)); /* the end */
    t->n_row--;
    return KEEL_OK;
}
