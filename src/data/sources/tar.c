/* Tar shards as WebDataset writes them: the members of one key, the name up to the first dot of its
 * last part, form a row, and what follows the dot is the part of the row: 000017.jpg and
 * 000017.cls. Members of a key need not stand together. Rows are indexed over all shards; a member
 * is read when its row is, by any thread.
 *
 * What a part is follows from its ending: jpg, jpeg, png an image; cls, cls2, id, index, inx a
 * whole number; txt, text, transcript, json a text; npy an array. */
#include "base/memory.h"
#include "base/text.h"
#include "data/features.h"
#include "data/records.h"
#include "data/shards.h"
#include "io/npy.h"
#include "io/tar.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IMAGES "jpg;jpeg;png"
enum { TEXT_MAX = 1 << 26, NUMBER_MAX = 64 }; /* bytes */
#define MEMBER_MAX (UINT64_C(1) << 30)

extern const keel_source keel_source_tar;

typedef struct item { /* a member */
    const char *key, *ending;
    uint64_t offset, n_bytes;
    int64_t shard, order;
} item;

typedef struct row {
    const char *key;
    int64_t first; /* its first item */
} row;

typedef struct archive {
    keel_shards shards;
    keel_tar *tar; /* [shards.count] */
    item *items;
    int64_t n_item, item_room;
    row *rows; /* [n_row + 1] */
    int64_t n_row, row_room;
    keel_record_fields fields;
    keel_photo photo;
} archive;

static void close_archive(void *state)
{
    archive *a = state;
    for (int64_t i = 0; a->tar && i < a->shards.count; i++) keel_tar_close(&a->tar[i]);
    keel_free(a->tar);
    keel_free(a->items);
    keel_free(a->rows);
    keel_shards_free(&a->shards);
    keel_record_fields_free(&a->fields);
    keel_free(a);
}

/* ---- the parts of a row ---------------------------------------------------------------------- */

/* True if an ending is one of "jpg;png". */
static bool is_one_of(const char *part, const char *ending)
{
    const size_t length = strlen(ending);
    for (;; part++) {
        const size_t n = strcspn(part, ";");
        if (n == length && !strncasecmp(part, ending, n)) return true;
        part += n;
        if (!*part) return false;
    }
}

/* The member of a row; NULL: there is none. */
static const item *find(const archive *a, int64_t index, const char *part)
{
    for (int64_t i = a->rows[index].first; i < a->rows[index + 1].first; i++)
        if (is_one_of(part, a->items[i].ending)) return &a->items[i];
    return NULL;
}

static keel_status of_item(const archive *a, const item *m, keel_status s)
{
    char key[200];
    if (s == KEEL_ENOMEM) return s;
    return keel_fail_within(s, "%s: member '%s.%.40s' at byte %llu", a->tar[m->shard].in.path,
                            keel_printable(key, sizeof key, m->key), m->ending,
                            (unsigned long long)m->offset);
}

static keel_status member_of(const archive *a, int64_t index, const keel_record_field *f,
                             const item **out)
{
    char key[200];
    if ((*out = find(a, index, f->part))) return KEEL_OK;
    const item *any = &a->items[a->rows[index].first];
    return keel_fail(KEEL_EDATA, "%s: row '%s' has no member '%s'", a->tar[any->shard].in.path,
                     keel_printable(key, sizeof key, a->rows[index].key), f->part);
}

/* The first `n_most` bytes of a member, or all, in scratch buffer 0 or in memory. */
static keel_status fetch(const archive *a, const item *m, uint64_t n_most, keel_scratch *scratch,
                         const unsigned char **data, size_t *n)
{
    const keel_input *in = &a->tar[m->shard].in;
    *n = (size_t)(m->n_bytes < n_most ? m->n_bytes : n_most);
    if (m->n_bytes > MEMBER_MAX)
        return keel_fail(KEEL_EFORMAT, "%llu bytes are more than the 1 GiB that is read",
                         (unsigned long long)m->n_bytes);
    void *buffer = in->memory ? NULL : keel_scratch_reserve(scratch, 0, *n + 1);
    if (!in->memory && !buffer) return KEEL_ENOMEM;
    return keel_input_read(in, m->offset, *n, buffer, data);
}

static keel_status fetch_whole(const archive *a, const item *m, uint64_t limit,
                               keel_scratch *scratch, const unsigned char **data, size_t *n)
{
    if (m->n_bytes > limit)
        return keel_fail(KEEL_EFORMAT, "%llu bytes are too many for what its ending says",
                         (unsigned long long)m->n_bytes);
    return fetch(a, m, limit, scratch, data, n);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A whole number between spaces. */
static keel_status read_number(const unsigned char *data, size_t n, int64_t *out)
{
    int64_t v = 0;
    size_t i = 0;
    while (i < n && isspace(data[i])) i++;
    while (n > i && isspace(data[n - 1])) n--;
    const bool minus = i < n && data[i] == '-';
    i += minus;
    bool good = i < n;
    for (; good && i < n; i++)
        good = data[i] >= '0' && data[i] <= '9' && !__builtin_mul_overflow(v, 10, &v) &&
               !__builtin_add_overflow(v, data[i] - '0', &v);
    if (!good) return keel_fail(KEEL_EFORMAT, "is no whole number");
    *out = minus ? -v : v;
    return KEEL_OK;
}

/* The header of an array of numbers that may be a row of the field. */
static keel_status read_header(const keel_record_field *f, const unsigned char *data, size_t n,
                               keel_npy_header *h)
{
    char have[96], want[96];
    KEEL_TRY(keel_npy_header_parse(h, data, n, "array"));
    KEEL_TRY(keel_npy_check_numbers(h, "array"));
    if (!f) return KEEL_OK;
    bool same = h->dtype == f->stored && h->shape.rank == f->shape.rank;
    for (int i = 0; same && i < h->shape.rank; i++)
        same = h->shape.dim[i] == f->shape.dim[i] || (i == 0 && !f->shaped);
    if (same) return KEEL_OK;
    keel_shape_text(have, &h->shape);
    keel_shape_text(want, &f->shape);
    return keel_fail(KEEL_EDATA, "%s %s, but %s %s in the first row", keel_dtype_name(h->dtype),
                     have, keel_dtype_name(f->stored), want);
}

static keel_status put_array(const keel_record_field *f, const unsigned char *data, size_t n_bytes,
                             void *to, keel_dtype want, int64_t count, keel_scratch *scratch)
{
    keel_npy_header h;
    KEEL_TRY(read_header(f, data, n_bytes, &h));
    if (n_bytes - h.offset != h.n_bytes)
        return keel_fail(KEEL_EFORMAT, "%zu bytes of elements, but its header says %zu",
                         n_bytes - h.offset, h.n_bytes);
    const int64_t n = keel_shape_count(&h.shape);
    KEEL_TRY(keel_record_check(f, n, count));
    void *values = keel_scratch_reserve(scratch, 1, (size_t)n * keel_dtype_size(f->stored) + 1);
    if (!values) return KEEL_ENOMEM;
    keel_npy_convert_all(&h, values, data + h.offset);
    return keel_record_put(f, values, n, to, want, count);
}

static keel_status put(const archive *a, const keel_record_field *f, const item *m, void *to,
                       keel_dtype want, int64_t count, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n = 0;
    int64_t number;
    keel_image image;
    const bool whole_number = f->kind == KEEL_RECORD_NUMBERS;
    KEEL_TRY(fetch_whole(a, m, whole_number ? NUMBER_MAX : MEMBER_MAX, scratch, &data, &n));
    if (whole_number) {
        KEEL_TRY(read_number(data, n, &number));
        return keel_record_put(f, &number, 1, to, want, count);
    }
    if (f->kind == KEEL_RECORD_RAW) return put_array(f, data, n, to, want, count, scratch);
    KEEL_TRY(keel_image_decode(&image, data, n, a->photo.channels, scratch, 1, "image"));
    return keel_photo_write(&a->photo, &f->field, &image, to, want, scratch, "image");
}

static keel_status read_row(const void *state, int64_t index, const keel_row *at,
                            keel_scratch *scratch)
{
    const archive *a = state;
    for (int i = 0; i < a->fields.n; i++) {
        const keel_record_field *f = &a->fields.at[i];
        const item *m;
        if (!at->at[i]) continue;
        if (f->kept.data) {
            KEEL_TRY(keel_record_put_kept(f, index, at->at[i], at->want[i], at->count[i]));
            continue;
        }
        KEEL_TRY(member_of(a, index, f, &m));
        const keel_status s = put(a, f, m, at->at[i], at->want[i], at->count[i], scratch);
        if (s < 0) return of_item(a, m, s);
    }
    return KEEL_OK;
}

static int64_t length(const void *state, int i, int64_t index)
{
    const int64_t *splits = ((const archive *)state)->fields.at[i].splits;
    return splits[index + 1] - splits[index];
}

static const char *row_name(const void *state, int64_t index)
{
    return ((const archive *)state)->rows[index].key;
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

static keel_status add_item(archive *a, const item *m)
{
    if (a->n_item == a->item_room) {
        const int64_t room = a->item_room ? 2 * a->item_room : 256;
        item *grown = keel_grow(a->items, (size_t)room, sizeof *grown);
        if (!grown) return KEEL_ENOMEM;
        a->items = grown;
        a->item_room = room;
    }
    a->items[a->n_item++] = *m;
    return KEEL_OK;
}

static keel_status add_row(archive *a, const char *key, int64_t first)
{
    if (a->n_row == a->row_room) {
        const int64_t room = a->row_room ? 2 * a->row_room : 256;
        row *grown = keel_grow(a->rows, (size_t)room, sizeof *grown);
        if (!grown) return KEEL_ENOMEM;
        a->rows = grown;
        a->row_room = room;
    }
    a->rows[a->n_row++] = (row){ key, first };
    return KEEL_OK;
}

static int by_key(const void *x, const void *y)
{
    const item *a = x, *b = y;
    const int order = strcmp(a->key, b->key);
    return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

static int by_order(const void *x, const void *y)
{
    const item *a = x, *b = y;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Bring the members of a key together, and the keys into the order of their first members. */
static void group(item *m, int64_t n)
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

static keel_status check_twice(const archive *a, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        for (int64_t k = from; k < i; k++)
            if (!strcasecmp(a->items[i].ending, a->items[k].ending))
                return of_item(a, &a->items[i],
                               keel_fail(KEEL_EDATA, "is there twice in one archive"));
    return KEEL_OK;
}

static keel_status index_shard(archive *a, int64_t shard)
{
    enum { MEMBERS_MAX = 256 };
    keel_tar *t = &a->tar[shard];
    const int64_t begin = a->n_item;
    for (int64_t i = 0; i < t->count; i++) {
        char *name = t->names + t->member[i].name;
        const char *ending;
        if (!divide(name, &ending)) continue;
        KEEL_TRY(add_item(
            a, &(item){ name, ending, t->member[i].offset, t->member[i].n_bytes, shard, i }));
    }
    if (a->n_item == begin) return KEEL_OK;
    group(a->items + begin, a->n_item - begin);
    for (int64_t i = begin, end; i < a->n_item; i = end) {
        for (end = i + 1; end < a->n_item && !strcmp(a->items[i].key, a->items[end].key); end++) {}
        if (end - i > MEMBERS_MAX)
            return of_item(a, &a->items[i],
                           keel_fail(KEEL_EDATA, "its key has more than %d members", MEMBERS_MAX));
        KEEL_TRY(check_twice(a, i, end));
        KEEL_TRY(add_row(a, a->items[i].key, i));
    }
    return KEEL_OK;
}

static keel_status open_shards(archive *a, const char *spec)
{
    int64_t room = KEEL_INFLATED_MAX;
    KEEL_TRY(keel_shards_find(&a->shards, spec, keel_tar_named));
    if (!(a->tar = keel_calloc((size_t)a->shards.count + 1, sizeof *a->tar))) return KEEL_ENOMEM;
    for (int64_t i = 0; i < a->shards.count; i++) {
        KEEL_TRY(keel_tar_open(&a->tar[i], a->shards.path[i], i < KEEL_SHARDS_OPEN, &room));
        KEEL_TRY(index_shard(a, i));
    }
    if (!a->n_row)
        return keel_fail(KEEL_EDATA, "%s: has no rows: no member has a key and an ending, as 0.jpg",
                         spec);
    KEEL_TRY(add_row(a, NULL, a->n_item)); /* the end */
    a->n_row--;
    return KEEL_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool has_part(const void *arg, const char *part)
{
    return find(arg, 0, part) != NULL;
}

static void list_parts(const void *arg, char *text, size_t size)
{
    const archive *a = arg;
    keel_text all = { 0 };
    char shown[80];
    for (int64_t i = 0; i < a->rows[1].first; i++)
        keel_text_add(&all, "%s'%s'", i ? ", " : "",
                      keel_printable(shown, sizeof shown, a->items[i].ending));
    snprintf(text, size, "%s", all.data ? all.data : "");
    keel_text_free(&all);
}

/* The kind of a part follows from what stands behind its last dot: seg.png is an image. */
static keel_status learn_kind(keel_record_field *f, const item *m)
{
    const char *dot = strrchr(m->ending, '.'), *ending = dot ? dot + 1 : m->ending;
    f->stored = KEEL_INT64;
    if (is_one_of(IMAGES, ending)) {
        f->kind = KEEL_RECORD_IMAGE;
    } else if (is_one_of("cls;cls2;id;index;inx", ending)) {
        f->kind = KEEL_RECORD_NUMBERS;
    } else if (is_one_of("txt;text;transcript;json;jsn", ending)) {
        f->kind = KEEL_RECORD_TEXT;
    } else if (is_one_of("npy", ending)) {
        f->kind = KEEL_RECORD_RAW;
    } else {
        return keel_fail(KEEL_EUNSUP, "its ending is not read; endings are jpg, jpeg, png, cls, "
                                      "cls2, id, index, inx, txt, text, transcript, json and npy");
    }
    return KEEL_OK;
}

static keel_status learn_array(const archive *a, keel_record_field *f, const item *m,
                               const keel_record_field *like, keel_scratch *scratch,
                               keel_npy_header *h)
{
    enum { HEAD = 1 << 12, LONGEST = 1 << 17 };
    const unsigned char *data;
    size_t n, header = 0;
    KEEL_TRY(fetch(a, m, HEAD, scratch, &data, &n));
    KEEL_TRY(keel_npy_header_size(&header, data, n));
    if (header > n) KEEL_TRY(fetch(a, m, LONGEST, scratch, &data, &n));
    KEEL_TRY(read_header(like, data, n, h));
    if (m->n_bytes - h->offset != h->n_bytes)
        return keel_fail(KEEL_EFORMAT, "%llu bytes of elements, but its header says %zu",
                         (unsigned long long)(m->n_bytes - h->offset), h->n_bytes);
    if (like) return KEEL_OK;
    f->stored = h->dtype;
    f->shape = h->shape;
    return KEEL_OK;
}

/* Kind, type and shape of a field, from the first row. */
static keel_status learn(const archive *a, keel_record_field *f, const keel_dataset_options *o,
                         keel_scratch *scratch)
{
    const item *m = NULL;
    keel_npy_header h;
    KEEL_TRY(member_of(a, 0, f, &m));
    keel_status s = learn_kind(f, m);
    if (s >= 0 && f->kind == KEEL_RECORD_RAW) s = learn_array(a, f, m, NULL, scratch, &h);
    if (s < 0) return of_item(a, m, s);
    keel_record_take_labels(f, o);
    return KEEL_OK;
}

/* True if the image has the size of the rows, by its first bytes. */
static keel_status has_row_size(const archive *a, const item *m, keel_scratch *scratch, bool *out)
{
    static const uint64_t heads[] = { 4 << 10, 256 << 10 };
    int64_t height = 0, width = 0;
    const unsigned char *data;
    size_t n;
    *out = false;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        KEEL_TRY(fetch(a, m, heads[i], scratch, &data, &n));
        if (keel_image_size(data, n, &height, &width)) break;
        if (n == m->n_bytes) return KEEL_OK;
    }
    *out = height == a->photo.height && width == a->photo.width;
    return KEEL_OK;
}

/* A text; of a label without the spaces around it, as a line end. */
static keel_status scan_text(const archive *a, const keel_record_field *f, const item *m,
                             keel_record_scan *s, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n = 0;
    KEEL_TRY(fetch_whole(a, m, TEXT_MAX, scratch, &data, &n));
    if (f->field.role == KEEL_ROLE_TARGET) {
        while (n && isspace(data[n - 1])) n--;
        while (n && isspace(*data)) data++, n--;
    }
    return keel_record_scan_text(s, data, n);
}

static keel_status scan_item(archive *a, keel_record_field *f, const item *m, keel_record_scan *s,
                             keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n_bytes = 0;
    int64_t n = 1, number;
    keel_npy_header h;
    bool same = true;
    switch (f->kind) {
    case KEEL_RECORD_IMAGE:
        if (a->photo.interpolation == KEEL_NEAREST || !a->photo.exact) return KEEL_OK;
        KEEL_TRY(has_row_size(a, m, scratch, &same));
        a->photo.exact = same;
        return KEEL_OK;
    case KEEL_RECORD_TEXT:
        KEEL_TRY(scan_text(a, f, m, s, scratch));
        break;
    case KEEL_RECORD_RAW:
        KEEL_TRY(learn_array(a, f, m, f, scratch, &h));
        n = keel_shape_count(&h.shape);
        if (f->unknown) return keel_fail(KEEL_EARG, "one-hot labels of arrays need class_count");
        break;
    default:
        if (!f->unknown) break;
        KEEL_TRY(fetch_whole(a, m, NUMBER_MAX, scratch, &data, &n_bytes));
        KEEL_TRY(read_number(data, n_bytes, &number));
        keel_record_scan_label(s, &number, KEEL_INT64);
    }
    return keel_record_scan_row(s, f, n);
}

/* All rows have all members; of most kinds only the first bytes are read. */
static keel_status scan_field(archive *a, keel_record_field *f, const keel_dataset_options *o,
                              keel_scratch *scratch, const char *what)
{
    keel_record_scan scan = { 0 };
    keel_status s = keel_record_scan_begin(&scan, a->n_row);
    for (int64_t i = 0; s >= 0 && i < a->n_row; i++) {
        const item *m = NULL;
        if ((s = member_of(a, i, f, &m)) < 0) break;
        if ((s = scan_item(a, f, m, &scan, scratch)) < 0) s = of_item(a, m, s);
    }
    if (s >= 0 && f->kind != KEEL_RECORD_IMAGE)
        return keel_record_scan_end(&scan, f, o, &a->fields.classes, what);
    keel_record_scan_free(&scan);
    return s;
}

static keel_status learn_all(archive *a, const keel_dataset_options *o, keel_scratch *scratch,
                             const char *what)
{
    keel_record_fields *f = &a->fields;
    bool images = false;
    for (int i = 0; i < f->n; i++) {
        KEEL_TRY(learn(a, &f->at[i], o, scratch));
        images = images || f->at[i].kind == KEEL_RECORD_IMAGE;
    }
    if (images) KEEL_TRY(keel_photo_init(&a->photo, o, what));
    a->photo.exact = true;
    for (int i = 0; i < f->n; i++) KEEL_TRY(scan_field(a, &f->at[i], o, scratch, what));
    for (int i = 0; i < f->n; i++) KEEL_TRY(keel_record_settle(&f->at[i], &a->photo, what));
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    return keel_shards_claims(spec, keel_tar_named);
}

static keel_status open_archive(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    keel_scratch scratch = { 0 };
    archive *a = keel_calloc(1, sizeof *a);
    if (!a) return KEEL_ENOMEM;
    keel_status s = open_shards(a, spec);
    if (s >= 0) {
        const keel_record_parts parts = { .what = a->tar[a->items[0].shard].in.path,
                                          .noun = "member",
                                          .x = has_part(a, IMAGES) ? IMAGES : "npy",
                                          .y = "cls",
                                          .has = has_part,
                                          .list = list_parts,
                                          .arg = a };
        s = keel_records_choose(&a->fields, o, &parts);
    }
    if (s >= 0) s = learn_all(a, o, &scratch, spec);
    keel_scratch_free(&scratch);
    if (s < 0) {
        close_archive(a);
        return s;
    }
    keel_data_spec all = { .rows = a->n_row,
                           .yields = -1,
                           .n_field = a->fields.n,
                           .n_classes = a->fields.classes.n,
                           .class_names = a->fields.classes.name };
    for (int i = 0; i < all.n_field; i++) all.field[i] = a->fields.at[i].field;
    a->fields.classes = (keel_classes){ 0 };
    keel_dataset *d = NULL;
    KEEL_TRY(keel_dataset_create(&d, &keel_source_tar, a, &all, spec));
    if ((s = keel_dataset_take_subset(&d, o)) < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_tar = {
    .name = "tar",
    .help = "tar shards of WebDataset: a file, a directory of them, shard-{000..010}.tar",
    .claims = claims,
    .open = open_archive,
    .read = read_row,
    .length = length,
    .row_name = row_name,
    .close = close_archive,
};
