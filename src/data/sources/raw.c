/* Records of one length: raw(y=uint8,x=uint8(3,32,32):chw):FILE,FILE. The list has the fields of a
 * record in their order, _=uint8(4) for bytes that are skipped, and header=BYTES and footer=BYTES
 * of each file. ":chw" turns [C, H, W] to [H, W, C]. The example is the binary form of CIFAR-10.
 *
 * A row is read when it is needed, by one read of its record; files are checked when they are
 * opened. tf.data.FixedLengthRecordDataset is its peer. */
#include "base/memory.h"
#include "data/layout.h"
#include "data/named.h"
#include "data/stored.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

enum { FILES_MAX = 256 };
#define RECORD_BYTES_MAX (INT64_C(1) << 30)

typedef struct column {
    keel_stored stored;
    size_t offset; /* in the record */
} column;

typedef struct records {
    keel_file file[FILES_MAX];
    int64_t end[FILES_MAX]; /* rows of this file and of those before it */
    char *path[FILES_MAX];
    int n_file;
    size_t header, footer, n_bytes; /* n_bytes: of a record */
    int n;
    column column[KEEL_FIELDS_MAX];
} records;

/* ---- reading --------------------------------------------------------------------------------- */

static keel_status read(const void *state, int64_t index, const keel_row *row, keel_scratch *s)
{
    const records *r = state;
    size_t begin = r->n_bytes, end = 0;
    int k = 0;
    while (index >= r->end[k]) k++;
    const int64_t at = index - (k ? r->end[k - 1] : 0);
    for (int i = 0; i < r->n; i++) { /* only what is asked for, and what lies between it */
        const column *c = &r->column[i];
        if (!row->at[i]) continue;
        if (c->offset < begin) begin = c->offset;
        if (c->offset + c->stored.n_bytes > end) end = c->offset + c->stored.n_bytes;
    }
    if (end <= begin) return KEEL_OK;
    char *bytes = keel_scratch_reserve(s, 0, end - begin);
    if (!bytes) return KEEL_ENOMEM;
    KEEL_TRY(keel_file_read_at(&r->file[k], r->header + (uint64_t)at * r->n_bytes + begin, bytes,
                               end - begin));
    for (int i = 0; i < r->n; i++) {
        const column *c = &r->column[i];
        if (row->at[i])
            KEEL_TRY(keel_stored_write(&c->stored, row->at[i], row->want[i],
                                       bytes + c->offset - begin, 1, at, s, r->path[k]));
    }
    return KEEL_OK;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    const records *r = state;
    int64_t converted = 0;
    for (int i = 0; i < r->n; i++) {
        const keel_stored *f = &r->column[i].stored;
        const bool aligned = keel_dtype_size(f->type.dtype) == 1;
        const int64_t n = keel_stored_needs(f, want ? want[i] : f->field.dtype, aligned);
        if (n > converted) converted = n;
    }
    return (int64_t)r->n_bytes + converted;
}

static void close(void *state)
{
    records *r = state;
    for (int k = 0; k < r->n_file; k++) {
        keel_file_close(&r->file[k]);
        keel_free(r->path[k]);
    }
    keel_free(r);
}

/* ---- the list -------------------------------------------------------------------------------- */

typedef struct layout {
    const char *name[KEEL_FIELDS_MAX];
    keel_npy_header type[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    bool turned[KEEL_FIELDS_MAX];
    size_t offset[KEEL_FIELDS_MAX];
    int n;
} layout;

/* The next field of a record. */
static keel_status add_part(records *r, layout *parts, const keel_layout_item *item)
{
    keel_npy_header type = { 0 };
    size_t n_bytes = 0;
    const keel_shape shape = item->numbers.rank < 0 ? (keel_shape){ 0 } : item->numbers;
    const bool turned = !strcmp(item->order, "chw");
    if (*item->order && !turned)
        return keel_fail(KEEL_EARG, "raw: '%s': the order ':%s'; only chw is known", item->name,
                         item->order);
    if (!*item->value)
        return keel_fail(KEEL_EARG, "raw: '%s': give its type, as %s=float32(8)", item->name,
                         item->name);
    keel_status s = keel_npy_type_named(&type, item->value);
    if (s >= 0) s = keel_shape_check(&shape, 8);
    if (s < 0) return keel_fail_within(s, "raw: '%s'", item->name);
    if (!keel_mul((size_t)keel_shape_count(&shape), type.element_bytes, &n_bytes) ||
        n_bytes > RECORD_BYTES_MAX || r->n_bytes + n_bytes > RECORD_BYTES_MAX)
        return keel_fail(KEEL_ESHAPE, "raw: '%s': a record of more than 1 GiB", item->name);
    if (strcmp(item->name, "_") != 0) {
        parts->name[parts->n] = item->name;
        parts->type[parts->n] = type;
        parts->shape[parts->n] = shape;
        parts->turned[parts->n] = turned;
        parts->offset[parts->n++] = r->n_bytes;
    }
    r->n_bytes += n_bytes;
    return KEEL_OK;
}

static keel_status read_list(records *r, layout *parts, const keel_layout *l)
{
    int64_t v = 0;
    for (int i = 0; i < l->n; i++) {
        const keel_layout_item *item = &l->item[i];
        const bool header = !strcmp(item->name, "header");
        if (!header && strcmp(item->name, "footer") != 0) {
            KEEL_TRY(add_part(r, parts, item));
            continue;
        }
        KEEL_TRY(keel_layout_number(&v, item, 0, "raw"));
        *(header ? &r->header : &r->footer) = (size_t)v;
    }
    if (!parts->n)
        return keel_fail(KEEL_EARG, "raw: give the fields of a record, as in "
                                    "raw(y=uint8,x=uint8(3,32,32):chw):FILE");
    return KEEL_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Open one file; the path is owned by r by then. */
static keel_status open_file(records *r, int k)
{
    keel_file *f = &r->file[k];
    const char *path = r->path[k];
    KEEL_TRY(keel_file_open(f, path));
    const size_t around = r->header + r->footer;
    if (around < r->header || f->n_bytes < around)
        return keel_fail(KEEL_EFORMAT, "%s: %zu bytes, less than its header and footer", path,
                         f->n_bytes);
    const size_t rest = f->n_bytes - around;
    if (rest % r->n_bytes)
        return keel_fail(KEEL_EFORMAT,
                         "%s: %zu bytes are not a whole number of records of %zu bytes (%zu are "
                         "left over): the list of fields does not fit the file",
                         path, rest, r->n_bytes, rest % r->n_bytes);
    r->end[k] = (k ? r->end[k - 1] : 0) + (int64_t)(rest / r->n_bytes);
    return KEEL_OK;
}

static keel_status open_files(records *r, const char *list)
{
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, ",");
        if (r->n_file == FILES_MAX)
            return keel_fail(KEEL_EARG, "raw: more than %d files", FILES_MAX);
        if (!n) return keel_fail(KEEL_EARG, "raw: an empty name in '%.200s'", list);
        if (!(r->path[r->n_file] = keel_strndup(p, n))) return KEEL_ENOMEM;
        r->file[r->n_file].fd = -1;
        r->n_file++;
        KEEL_TRY(open_file(r, r->n_file - 1));
        p += n;
        if (*p && !*++p) return keel_fail(KEEL_EARG, "raw: an empty name in '%.200s'", list);
    }
    if (!r->n_file) return keel_fail(KEEL_EARG, "raw: give a file, as in raw(x=float32(8)):FILE");
    if (r->end[r->n_file - 1] < 1) return keel_fail(KEEL_EDATA, "%s: has no records", list);
    return KEEL_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static keel_status fill(records *r, const char *spec, const keel_dataset_options *o,
                        keel_named *chosen, keel_data_spec *fields)
{
    keel_layout l;
    layout parts = { .n = 0 };
    KEEL_TRY(keel_layout_read(&l, spec, "raw"));
    KEEL_TRY(read_list(r, &parts, &l));
    KEEL_TRY(open_files(r, l.rest ? l.rest : ""));
    KEEL_TRY(keel_named_choose(chosen, parts.name, parts.n, o, r->path[0]));
    for (; r->n < chosen->n; r->n++) {
        const keel_named_field *f = &chosen->field[r->n];
        column *c = &r->column[r->n];
        const keel_data_field field = {
            .path = f->path, .shape = parts.shape[f->array], .role = f->role, .target = f->target
        };
        KEEL_TRY(keel_stored_init(&c->stored, &field, &parts.type[f->array], parts.turned[f->array],
                                  o, f->choice, r->path[0]));
        c->offset = parts.offset[f->array];
        fields->field[r->n] = c->stored.field;
    }
    fields->n_field = r->n;
    fields->rows = r->end[r->n_file - 1];
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    return keel_layout_claims(spec, "raw");
}

extern const keel_source keel_source_raw;

static keel_status open_records(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_named chosen = { .n = 0 };
    keel_dataset *d = NULL;
    keel_data_spec fields = { .yields = -1 };
    records *r = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    keel_status s = fill(r, spec, o, &chosen, &fields);
    if (s < 0)
        close(r);
    else
        s = keel_dataset_create(&d, &keel_source_raw, r, &fields, r->path[0]);
    for (int i = 0; s >= 0 && i < r->n; i++) /* the dataset has copied the strings */
        r->column[i].stored.field = d->origin->spec.field[i];
    if (s >= 0 && !chosen.held_out) s = keel_dataset_take_subset(&d, o);
    keel_named_free(&chosen);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_raw = {
    .name = "raw",
    .help = "raw(y=uint8,x=uint8(3,32,32):chw):FILE, records of one length",
    .prefix = "raw",
    .claims = claims,
    .open = open_records,
    .read = read,
    .needs = needs,
    .close = close,
};
