/* MNIST's idx files: a pair of images and labels, or a directory with its four names. */
#include "io/idx.h"
#include "base/memory.h"
#include "data/features.h"
#include "data/labels.h"
#include "data/spec.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Find one of the four files under any of its usual names. */
static bool find_file(char *path, size_t size, const char *folder, const char *stem, int rank)
{
    for (int i = 0; i < 4; i++) {
        struct stat st;
        const char *end = i < 2 ? "" : ".gz";
        const int n = snprintf(path, size, "%s/%s%cidx%d-ubyte%s", folder, stem, i % 2 ? '.' : '-',
                               rank, end);
        if (n > 0 && (size_t)n < size && !stat(path, &st) && !S_ISDIR(st.st_mode)) return true;
    }
    return false;
}

static bool find_pair(char images[4096], char labels[4096], const char *folder, const char *part)
{
    char stem[32];
    snprintf(stem, sizeof stem, "%s-images", part);
    if (!find_file(images, 4096, folder, stem, 3)) return false;
    snprintf(stem, sizeof stem, "%s-labels", part);
    return find_file(labels, 4096, folder, stem, 1);
}

static bool is_idx_name(const char *path, size_t length)
{
    size_t at = length;
    while (at && path[at - 1] != '/') at--;
    for (; at + 3 <= length; at++)
        if (!strncmp(path + at, "idx", 3)) return true;
    return false;
}

static bool claims(const char *spec)
{
    char images[4096], labels[4096];
    const char *comma = keel_spec_comma(spec);
    struct stat st;
    if (!stat(spec, &st) && S_ISDIR(st.st_mode)) return find_pair(images, labels, spec, "train");
    if (comma)
        return is_idx_name(spec, (size_t)(comma - spec)) && is_idx_name(comma, strlen(comma));
    return is_idx_name(spec, strlen(spec));
}

static keel_status read_pair(keel_dataset **out, const char *images_path, const char *labels_path,
                             const keel_dataset_options *o)
{
    keel_tensor x = { 0 }, y = { 0 };
    keel_classes none = { 0 }; /* idx has no class names */
    if (!out || !images_path) return keel_fail(KEEL_EARG, "idx: give the file of images");
    keel_status s = keel_idx_read(&x, images_path);
    if (s >= 0 && x.shape.rank == 3) x.shape.dim[x.shape.rank++] = 1;
    if (s >= 0 && labels_path) s = keel_idx_read(&y, labels_path);
    if (s >= 0) s = keel_labels_from_array(&y, &none, o, labels_path);
    if (s >= 0) return keel_dataset_adopt_arrays(out, &x, &y, NULL, 0, NULL, images_path);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    return s;
}

static keel_status open_spec(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    char images[4096], labels[4096], *a = NULL, *b = NULL;
    keel_dataset *d = NULL;
    keel_status s;
    struct stat st;
    bool held_out = false;
    if (!stat(spec, &st) && S_ISDIR(st.st_mode)) {
        held_out = o->subset == KEEL_SUBSET_VALIDATION && o->validation_split == 0;
        if (!find_pair(images, labels, spec, held_out ? "t10k" : "train"))
            return keel_fail(KEEL_EDATA, "%s: has no t10k-images and t10k-labels", spec);
        s = read_pair(&d, images, labels, o);
    } else {
        KEEL_TRY(keel_spec_split(spec, &a, &b));
        s = read_pair(&d, a, b, o);
        keel_free(a);
        keel_free(b);
    }
    if (s >= 0 && !held_out) s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_idx = {
    .name = "idx",
    .help = "images.idx,labels.idx (.gz too), or a directory with MNIST's four files",
    .claims = claims,
    .open = open_spec,
};

keel_status keel_dataset_from_idx(keel_dataset **out, const char *images_path,
                                  const char *labels_path)
{
    return read_pair(out, images_path, labels_path, &KEEL_DATASET_OPTIONS);
}
