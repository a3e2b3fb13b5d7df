/* Lines of text files: each line is a row with one text, an empty one too, as in
 * tf.data.TextLineDataset. Texts are kept in one block of memory with the places where they begin,
 * since a batch points to them. */
#include "base/memory.h"
#include "data/file_list.h"
#include "data/source.h"
#include "io/text_file.h"
#include <string.h>

typedef struct text_lines {
    keel_data_field field; /* its strings are the dataset's */
    char *text;            /* each line ends with a zero byte */
    int64_t *begin;        /* [n + 1] */
    int64_t n, room;
    size_t used, size;
} text_lines;

static keel_status add(text_lines *t, const char *line, size_t n)
{
    if (t->n + 2 > t->room) {
        const int64_t room = t->room ? 2 * t->room : 1024;
        int64_t *more = keel_grow(t->begin, (size_t)room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        if (!t->room) more[0] = 0;
        t->begin = more;
        t->room = room;
    }
    if (n >= t->size - t->used) {
        size_t size = t->size ? 2 * t->size : 1 << 16;
        while (size - t->used <= n) size *= 2;
        char *more = keel_grow(t->text, size, 1);
        if (!more) return KEEL_ENOMEM;
        t->text = more;
        t->size = size;
    }
    memcpy(t->text + t->used, line, n);
    t->text[t->used + n] = 0;
    t->used += n + 1;
    t->begin[++t->n] = (int64_t)t->used;
    return KEEL_OK;
}

static keel_status add_file(text_lines *t, const char *path)
{
    keel_lines *lines = NULL;
    keel_status s;
    char *line;
    size_t n;
    KEEL_TRY(keel_lines_open(&lines, path));
    while ((s = keel_lines_next(lines, &line, &n)) == KEEL_OK)
        if ((s = add(t, line, n)) < 0) break;
    keel_lines_close(lines);
    return s < 0 ? s : KEEL_OK;
}

static keel_status read(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    const text_lines *t = state;
    (void)s;
    if (!row->at[0]) return KEEL_OK;
    const keel_string text = { t->text + t->begin[i], t->begin[i + 1] - t->begin[i] - 1 };
    return keel_field_write(row->at[0], row->want[0], &text, &t->field, 1);
}

static void close(void *state)
{
    text_lines *t = state;
    keel_free(t->text);
    keel_free(t->begin);
    keel_free(t);
}

/* ---- files ------------------------------------------------------------------------------------
 */

extern const keel_source keel_source_text_lines;

static const char prefix[] = "lines:";
static const char *const endings[] = { ".txt", ".txt.gz", NULL }, *const any[] = { "", NULL };

static bool has_prefix(const char *spec)
{
    return !strncmp(spec, prefix, sizeof prefix - 1);
}

static bool claims(const char *spec)
{
    return has_prefix(spec) || keel_file_list_claims(spec, endings);
}

static keel_status check_options(const char *spec, const keel_dataset_options *o)
{
    if (o->n_input > 1)
        return keel_fail(KEEL_EARG, "%s: %d inputs, but a line is one text", spec, o->n_input);
    if (o->label)
        return keel_fail(KEEL_EARG, "%s: lines of text have no label '%s'; a .csv or .jsonl has",
                         spec, o->label);
    return KEEL_OK;
}

/* The name before "=", if there is one; the caller frees it. */
static char *name_of(const keel_dataset_options *o)
{
    return o->n_input ? keel_strndup(o->inputs[0], strcspn(o->inputs[0], "=")) : keel_strdup("x");
}

static keel_status read_files(text_lines *t, const char *spec, const keel_file_list *files)
{
    for (int64_t i = 0; i < files->n; i++) KEEL_TRY(add_file(t, files->path[i]));
    if (!t->n) return keel_fail(KEEL_EDATA, "%s: no rows", spec);
    char *text = keel_grow(t->text, t->used, 1); /* give back what was room to grow */
    int64_t *begin = keel_grow(t->begin, (size_t)t->n + 1, sizeof *begin);
    if (text) t->text = text;
    if (begin) t->begin = begin;
    return text && begin ? KEEL_OK : KEEL_ENOMEM;
}

static keel_status open_spec(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    const bool plain = !has_prefix(spec);
    keel_file_list files = { 0 };
    keel_dataset *d = NULL;
    keel_data_spec fields = { .n_field = 1, .yields = -1 };
    text_lines *t = NULL;
    char *name = NULL;
    KEEL_TRY(check_options(spec, o));
    keel_status s =
        keel_file_list_find(&files, plain ? spec : spec + sizeof prefix - 1, plain ? endings : any);
    if (s < 0) return s;
    s = KEEL_ENOMEM;
    if (!(name = name_of(o)) || !(t = keel_calloc(1, sizeof *t))) goto out;
    if ((s = read_files(t, spec, &files)) < 0) goto out;
    t->field = fields.field[0] = (keel_data_field){
        .path = name, .dtype = KEEL_STRING, .shape = { 1, { 1 } }, .role = KEEL_ROLE_INPUT
    };
    fields.rows = t->n;
    text_lines *const state = t;
    t = NULL; /* its dataset closes it, on failure too */
    if ((s = keel_dataset_create(&d, &keel_source_text_lines, state, &fields, spec)) < 0) goto out;
    state->field = d->origin->spec.field[0];
    s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
out:
    if (t) close(t);
    keel_free(name);
    keel_file_list_free(&files);
    return s;
}

const keel_source keel_source_text_lines = {
    .name = "text_lines",
    .help = "a .txt file, or lines:FILE, whose lines are texts (.gz too), or a folder or pattern "
            "of them",
    .in_memory = true,
    .prefix = "lines",
    .claims = claims,
    .open = open_spec,
    .read = read,
    .close = close,
};
