/* NumPy archives with x and y, as numpy.savez writes and keras.datasets keeps them. */
#include "io/npz.h"
#include "data/source.h"
#include "data/spec.h"
#include <string.h>

static keel_status read_member(keel_tensor *out, keel_zip *z, const char *name, bool must)
{
    if (!must && !keel_npz_has(z, name)) return KEEL_OK;
    return keel_npz_read(out, z, name);
}

/* A held-out part of its own (x_test) serves validation where no split was asked. */
static keel_status read_arrays(keel_dataset **out, const char *path, bool held_out, bool *was_there)
{
    keel_zip *z = NULL;
    keel_tensor x = { 0 }, y = { 0 }, w = { 0 };
    KEEL_TRY(keel_zip_open(&z, path));
    const bool test = held_out && keel_npz_has(z, "x_test");
    const bool train = !test && !keel_npz_has(z, "x") && keel_npz_has(z, "x_train");
    keel_status s = KEEL_OK;
    if (!test && !train && !keel_npz_has(z, "x"))
        s = keel_fail(KEEL_EFORMAT, "%s: no array named x in it (nor x_train)", path);
    if (s >= 0) s = read_member(&x, z, test ? "x_test" : train ? "x_train" : "x", true);
    if (s >= 0) s = read_member(&y, z, test ? "y_test" : train ? "y_train" : "y", false);
    if (s >= 0 && !test) s = read_member(&w, z, "sample_weight", false);
    keel_zip_close(z);
    if (s < 0) {
        keel_tensor_free(&x);
        keel_tensor_free(&y);
        keel_tensor_free(&w);
        return s;
    }
    *was_there = test;
    return keel_dataset_adopt_arrays(out, &x, &y, &w, 0, NULL, path);
}

static bool claims(const char *spec)
{
    return keel_spec_ends(spec, strlen(spec), ".npz");
}

static keel_status open_archive(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_dataset *d = NULL;
    bool held_out = false;
    const bool wanted = o->subset == KEEL_SUBSET_VALIDATION && o->validation_split == 0;
    keel_status s = read_arrays(&d, spec, wanted, &held_out);
    if (s >= 0 && !held_out) s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_npz = {
    .name = "npz",
    .help = "an .npz file with x and y",
    .claims = claims,
    .open = open_archive,
};

keel_status keel_dataset_from_npz(keel_dataset **out, const char *path)
{
    bool held_out;
    if (!out || !path) return keel_fail(KEEL_EARG, "npz: NULL is none");
    return read_arrays(out, path, false, &held_out);
}
