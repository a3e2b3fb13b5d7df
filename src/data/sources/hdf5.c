/* HDF5 files, as h5py writes them: data.h5 with x and y, or the arrays that the options' inputs and
 * targets name, "x=/train/images". Rows are read when they are needed. */
#include "base/memory.h"
#include "base/plural.h"
#include "data/named.h"
#include "data/spec.h"
#include "data/stored.h"
#include "io/h5_data.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct column {
    keel_stored stored;
    size_t array;
} column;

typedef struct arrays {
    keel_h5_data *file;
    char *path;
    int n;
    column column[KEEL_FIELDS_MAX];
} arrays;

/* Buffer 2 of the scratch is for the row, since chunks take 0 and 1, and stored.h takes 3. */
static keel_status read(const void *state, int64_t index, const keel_row *row, keel_scratch *s)
{
    const arrays *all = state;
    for (int i = 0; i < all->n; i++) {
        const column *c = &all->column[i];
        if (!row->at[i]) continue;
        void *bytes = keel_scratch_reserve(s, 2, c->stored.n_bytes);
        if (!bytes) return KEEL_ENOMEM;
        KEEL_TRY(keel_h5_data_row(all->file, c->array, index, bytes, s));
        KEEL_TRY(
            keel_stored_write(&c->stored, row->at[i], row->want[i], bytes, 1, index, s, all->path));
    }
    return KEEL_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Without a cache. */
static int64_t needs(const void *state, const keel_dtype *want)
{
    const arrays *all = state;
    int64_t stored = 0, decoded = 0, row = 0, converted = 0;
    for (int i = 0; i < all->n; i++) {
        const column *c = &all->column[i];
        const keel_dtype to = want ? want[i] : c->stored.field.dtype;
        int64_t in_file, in_memory;
        keel_h5_data_needs(all->file, c->array, &in_file, &in_memory);
        stored = larger(stored, in_file);
        decoded = larger(decoded, in_memory);
        row = larger(row, (int64_t)c->stored.n_bytes);
        converted = larger(converted, keel_stored_needs(&c->stored, to, true));
    }
    return stored + decoded + row + converted;
}

static void charge(void *state, keel_account *a, bool on)
{
    keel_h5_data_charge(((const arrays *)state)->file, a, on);
}

static void close(void *state)
{
    arrays *all = state;
    keel_h5_data_close(all->file);
    keel_free(all->path);
    keel_free(all);
}

/* ---- opening --------------------------------------------------------------------------------- */

static keel_status add(arrays *all, const keel_named_field *f, const keel_dataset_options *o,
                       keel_data_spec *fields)
{
    column *c = &all->column[all->n];
    const size_t at = (size_t)f->array;
    const keel_h5_array *a = &all->file->arrays[at];
    const char *stored = keel_h5_data_name(all->file, at);
    KEEL_TRY(keel_h5_data_index(all->file, at));
    if (a->shape.rank < 1)
        return keel_fail(KEEL_ESHAPE, "%s: '%s' is one number, not an array of rows", all->path,
                         stored);
    if (all->n && a->shape.dim[0] != fields->rows)
        return keel_fail(KEEL_ESHAPE, "%s: '%s' has %lld row%s but '%s' has %lld", all->path,
                         keel_h5_data_name(all->file, all->column[0].array),
                         (long long)fields->rows, keel_s(fields->rows), stored,
                         (long long)a->shape.dim[0]);
    if (a->shape.dim[0] < 1)
        return keel_fail(KEEL_EDATA, "%s: '%s' has no rows", all->path, stored);
    const keel_data_field field = { .path = f->path,
                                    .shape = keel_shape_of(a->shape.rank - 1, a->shape.dim + 1),
                                    .role = f->role,
                                    .target = f->target };
    KEEL_TRY(keel_stored_init(&c->stored, &field, &a->type, false, o, f->choice, all->path));
    c->array = at;
    fields->rows = a->shape.dim[0];
    fields->field[all->n++] = c->stored.field;
    fields->n_field = all->n;
    return KEEL_OK;
}

static keel_status choose(arrays *all, const keel_dataset_options *o, keel_named *chosen)
{
    const keel_h5_data *d = all->file;
    const char **names = keel_calloc(d->count + 1, sizeof *names);
    if (!names) return KEEL_ENOMEM;
    for (size_t i = 0; i < d->count; i++) names[i] = keel_h5_data_name(d, i);
    const keel_status s = keel_named_choose(chosen, names, (int64_t)d->count, o, all->path);
    keel_free(names);
    return s;
}

static keel_status fill(arrays *all, const char *spec, const keel_dataset_options *o,
                        keel_named *chosen, keel_data_spec *fields)
{
    if (!(all->path = keel_strdup(spec))) return KEEL_ENOMEM;
    KEEL_TRY(keel_h5_data_open(&all->file, all->path));
    if (all->file->keras)
        return keel_fail(KEEL_EARG, "%s: has the weights of a Keras model, not data", spec);
    KEEL_TRY(choose(all, o, chosen));
    for (int i = 0; i < chosen->n; i++) KEEL_TRY(add(all, &chosen->field[i], o, fields));
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    const size_t n = strlen(spec);
    return keel_spec_ends(spec, n, ".h5") || keel_spec_ends(spec, n, ".hdf5");
}

extern const keel_source keel_source_hdf5;

static keel_status open_arrays(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_named chosen = { .n = 0 };
    keel_dataset *d = NULL;
    keel_data_spec fields = { .yields = -1 };
    arrays *all = keel_calloc(1, sizeof *all);
    if (!all) return KEEL_ENOMEM;
    keel_status s = fill(all, spec, o, &chosen, &fields);
    if (s < 0)
        close(all);
    else
        s = keel_dataset_create(&d, &keel_source_hdf5, all, &fields, spec);
    for (int i = 0; s >= 0 && i < all->n; i++) /* the dataset has copied the strings */
        all->column[i].stored.field = d->origin->spec.field[i];
    if (s >= 0 && !chosen.held_out) s = keel_dataset_take_subset(&d, o);
    keel_named_free(&chosen);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_hdf5 = {
    .name = "hdf5",
    .help = "an .h5 file with x and y",
    .claims = claims,
    .open = open_arrays,
    .read = read,
    .needs = needs,
    .charge = charge,
    .close = close,
};
