/* NumPy files, x.npy,y.npy: read whole, then served as arrays. */
#include "io/npy.h"
#include "base/memory.h"
#include "data/features.h"
#include "data/labels.h"
#include "data/sources/npy_texts.h"
#include "data/spec.h"
#include <string.h>

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

static keel_status read_pair(keel_dataset **out, const char *x_path, const char *y_path,
                             const keel_dataset_options *o)
{
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
