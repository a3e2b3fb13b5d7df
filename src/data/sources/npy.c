/* NumPy files: x.npy,y.npy, read whole and then arrays. */
#include "io/npy.h"
#include "base/memory.h"
#include "data/source.h"
#include "data/spec.h"
#include <string.h>

static bool claims(const char *spec)
{
    const char *comma = keel_spec_comma(spec);
    if (!keel_spec_ends(spec, strlen(spec), ".npy")) return false;
    return !comma || keel_spec_ends(spec, (size_t)(comma - spec), ".npy");
}

static keel_status open_pair(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    char *x = NULL, *y = NULL;
    keel_dataset *d = NULL;
    KEEL_TRY(keel_spec_split(spec, &x, &y));
    keel_status s = keel_dataset_from_npy(&d, x, y);
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
    keel_tensor x = { 0 }, y = { 0 };
    if (!out || !x_path) return keel_fail(KEEL_EARG, "npy: say the file of x");
    KEEL_TRY(keel_npy_read(&x, x_path));
    if (y_path) {
        const keel_status s = keel_npy_read(&y, y_path);
        if (s < 0) {
            keel_tensor_free(&x);
            return s;
        }
    }
    return keel_dataset_adopt_arrays(out, &x, &y, NULL, 0, NULL, x_path);
}
