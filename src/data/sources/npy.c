/* NumPy files, x.npy,y.npy: read whole, then served as arrays; of a large x, each row is read when
 * it is needed.
 *
 * Rows are read, not mapped, since a file that shrinks would end the process (io/file.h). A read
 * costs 0.5 us more than a copy from a map, be the row 64 bytes or 12 KiB, where the file is
 * cached. An array in Fortran order is turned once: its rows are scattered over the whole file. */
#include "io/npy.h"
#include "base/memory.h"
#include "base/plural.h"
#include "data/features.h"
#include "data/labels.h"
#include "data/sources/npy_texts.h"
#include "data/spec.h"
#include "data/stored.h"
#include "tensor/shape.h"
#include <string.h>
#include <sys/stat.h>

#define WHOLE_BYTES_MAX (INT64_C(1) << 30) /* of an x that is read whole */

static bool claims(const char *spec)
{
    const char *comma = keel_spec_comma(spec);
    if (!keel_spec_ends(spec, strlen(spec), ".npy")) return false;
    return !comma || keel_spec_ends(spec, (size_t)(comma - spec), ".npy");
}

keel_status keel_strings_from_npy(keel_tensor *out, const keel_npy_texts *t)
{
    keel_string *list = keel_calloc((size_t)t->count + 1, sizeof *list);
    if (!list) return KEEL_ENOMEM;
    for (int64_t i = 0; i < t->count; i++)
        list[i] = (keel_string){ t->text[i], (int64_t)strlen(t->text[i]) };
    const keel_status s = keel_strings_create(out, &t->shape, list);
    keel_free(list);
    return s;
}

/* Read an array of numbers or of texts. */
static keel_status read_any(keel_tensor *out, const char *path)
{
    keel_npy_texts texts = { 0 };
    keel_failure why;
    keel_status s = keel_npy_read(out, path);
    if (s != KEEL_EUNSUP) return s;
    keel_failure_take(&why, s);
    if ((s = keel_npy_read_texts(&texts, path)) == KEEL_EUNSUP) return keel_failure_raise(&why);
    if (s >= 0) s = keel_strings_from_npy(out, &texts);
    keel_npy_texts_free(&texts);
    return s;
}

/* ---- rows that stay in their files ----------------------------------------------------------- */

typedef struct column {
    keel_file file;
    char *path;
    keel_npy_header header;
    keel_stored stored;
} column;

typedef struct rows {
    int n;
    column column[2];
} rows;

static keel_status read(const void *state, int64_t index, const keel_row *row, keel_scratch *s)
{
    const rows *r = state;
    for (int i = 0; i < r->n; i++) {
        const column *c = &r->column[i];
        const size_t n = c->stored.n_bytes;
        if (!row->at[i]) continue;
        void *bytes = keel_scratch_reserve(s, 0, n);
        if (!bytes) return KEEL_ENOMEM;
        KEEL_TRY(keel_file_read_at(&c->file, c->header.offset + (uint64_t)index * n, bytes, n));
        KEEL_TRY(
            keel_stored_write(&c->stored, row->at[i], row->want[i], bytes, 1, index, s, c->path));
    }
    return KEEL_OK;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    const rows *r = state;
    int64_t stored = 0, converted = 0;
    for (int i = 0; i < r->n; i++) {
        const keel_stored *f = &r->column[i].stored;
        const int64_t n = keel_stored_needs(f, want ? want[i] : f->field.dtype, true);
        if ((int64_t)f->n_bytes > stored) stored = (int64_t)f->n_bytes;
        if (n > converted) converted = n;
    }
    return stored + converted;
}

static void close_rows(void *state)
{
    rows *r = state;
    for (int i = 0; i < r->n; i++) {
        keel_file_close(&r->column[i].file);
        keel_free(r->column[i].path);
    }
    keel_free(r);
}

static const keel_source by_row = {
    .name = "npy",
    .read = read,
    .needs = needs,
    .close = close_rows,
};

static keel_status add(rows *r, const char *path, const keel_data_field *field,
                       const keel_dataset_options *o, keel_data_spec *spec)
{
    column *c = &r->column[r->n];
    keel_data_field f = *field;
    c->file.fd = -1;
    if (!(c->path = keel_strdup(path))) return KEEL_ENOMEM;
    r->n++;
    KEEL_TRY(keel_npy_open(&c->file, &c->header, c->path));
    const keel_shape *s = &c->header.shape;
    if (c->header.fortran) return keel_fail(KEEL_EUNSUP, "%s: is in Fortran order", path);
    if (s->rank < 1) return keel_fail(KEEL_EARG, "%s: must have a first dimension, of rows", path);
    if (s->dim[0] < 1) return keel_fail(KEEL_EDATA, "%s: has no rows", path);
    if (r->n > 1 && s->dim[0] != spec->rows)
        return keel_fail(KEEL_ESHAPE, "%s: %lld row%s, but %s has %lld", path, (long long)s->dim[0],
                         keel_s(s->dim[0]), r->column[0].path, (long long)spec->rows);
    f.shape = keel_shape_of(s->rank - 1, s->dim + 1);
    KEEL_TRY(keel_stored_init(&c->stored, &f, &c->header, false, o, o->n_target ? 0 : -1, path));
    spec->rows = s->dim[0];
    spec->field[spec->n_field++] = c->stored.field;
    return KEEL_OK;
}

static keel_status open_rows(keel_dataset **out, const char *x_path, const char *y_path,
                             const keel_dataset_options *o)
{
    static const keel_data_field x = { .path = "x", .role = KEEL_ROLE_INPUT };
    static const keel_data_field y = { .path = "y", .role = KEEL_ROLE_TARGET };
    keel_data_spec spec = { .yields = -1 };
    rows *r = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    keel_status s = add(r, x_path, &x, o, &spec);
    if (s >= 0 && y_path) s = add(r, y_path, &y, o, &spec);
    if (s >= 0) return keel_dataset_create(out, &by_row, r, &spec, x_path);
    close_rows(r);
    return s;
}

static bool is_large(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > WHOLE_BYTES_MAX;
}

/* ---- whole arrays ---------------------------------------------------------------------------- */

static keel_status read_pair(keel_dataset **out, const char *x_path, const char *y_path,
                             const keel_dataset_options *o)
{
    if (is_large(x_path)) {
        const keel_status s = open_rows(out, x_path, y_path, o);
        if (s != KEEL_EUNSUP) return s; /* else texts, Fortran order, classes to be counted */
    }
    keel_tensor x = { 0 }, y = { 0 };
    keel_classes classes = { 0 };
    keel_status s = read_any(&x, x_path);
    if (s >= 0 && y_path) s = read_any(&y, y_path);
    if (s >= 0) s = keel_labels_from_array(&y, &classes, o, y_path);
    if (s >= 0)
        return keel_dataset_adopt_arrays(out, &x, &y, NULL, classes.n, classes.name, x_path);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    return s;
}

static keel_status open_pair(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    char *x = NULL, *y = NULL;
    keel_dataset *d = NULL;
    KEEL_TRY(keel_spec_split(spec, &x, &y));
    keel_status s = read_pair(&d, x, y, o);
    keel_free(x);
    keel_free(y);
    if (s >= 0) s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_npy = {
    .name = "npy",
    .help = "x.npy,y.npy (or x.npy alone)",
    .claims = claims,
    .open = open_pair,
};

keel_status keel_dataset_from_npy(keel_dataset **out, const char *x_path, const char *y_path)
{
    if (!out || !x_path) return keel_fail(KEEL_EARG, "npy: give the file of x");
    return read_pair(out, x_path, y_path, &KEEL_DATASET_OPTIONS);
}
