/* The list of weights; see weights_h5.h. h5_check.c reads the file format, weights_h5_write.c
 * writes it. Both arrays of the list are sorted by path: a path is found by binary search, and the
 * order of adding does not change the file. */
#include "io/weights_h5_impl.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

static const keel_dtype become[KEEL_H5_TYPE_COUNT] = {
    [KEEL_H5_FLOAT32] = KEEL_FLOAT32, [KEEL_H5_FLOAT64] = KEEL_FLOAT64,
    [KEEL_H5_UINT8] = KEEL_UINT8,     [KEEL_H5_INT32] = KEEL_INT32,
    [KEEL_H5_INT64] = KEEL_INT64,     [KEEL_H5_UINT32] = KEEL_INT64,
};

keel_status keel_weights_create(keel_weights **out)
{
    keel_weights *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    *out = w;
    return KEEL_OK;
}

void keel_weights_destroy(keel_weights *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->n_arrays && !w->decoded; i++)
        keel_free((char *)(uintptr_t)w->arrays[i].path);
    for (size_t i = 0; i < w->n_groups && !w->decoded; i++) {
        keel_free((char *)(uintptr_t)w->groups[i].path);
        keel_free(w->groups[i].name);
    }
    keel_h5_tree_free(&w->tree);
    keel_free(w->arrays);
    keel_free(w->groups);
    keel_free(w);
}

/* Elements of both arrays begin with their path, so `position` serves both. */
_Static_assert(offsetof(keel_weight, path) == 0 && offsetof(keel_weights_group, path) == 0, "path");

/* The first index whose path is not less than `path` (a lower bound). */
static size_t position(const void *array, size_t n, size_t size, const char *path)
{
    size_t low = 0;
    while (low < n) {
        const size_t middle = low + (n - low) / 2;
        if (strcmp(*(const char *const *)((const char *)array + middle * size), path) < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

static keel_status check_path(const char *path)
{
    if (!path[0] || path[0] == '/' || path[strlen(path) - 1] == '/' || strstr(path, "//"))
        return keel_fail(KEEL_EARG, "weights path '%s' is empty or has an empty part", path);
    return KEEL_OK;
}

/* Open a gap for a new element at `at`; *array may move. */
static keel_status make_gap(void **array, size_t n, size_t size, size_t at)
{
    if ((n & (n - 1)) == 0) { /* capacity doubles: it is full at 0, 1, 2, 4, ... */
        void *grown = keel_grow(*array, n ? 2 * n : 1, size);
        if (!grown) return KEEL_ENOMEM;
        *array = grown;
    }
    char *gap = (char *)*array + at * size;
    memmove(gap + size, gap, (n - at) * size);
    return KEEL_OK;
}

keel_status keel_weights_add(keel_weights *w, const char *path, const keel_tensor *t)
{
    static const keel_h5_type store[KEEL_DTYPE_COUNT] = {
        [KEEL_FLOAT32] = KEEL_H5_FLOAT32, [KEEL_FLOAT64] = KEEL_H5_FLOAT64,
        [KEEL_UINT8] = KEEL_H5_UINT8,     [KEEL_INT32] = KEEL_H5_INT32,
        [KEEL_INT64] = KEEL_H5_INT64,
    };
    KEEL_TRY(check_path(path));
    if ((unsigned)t->dtype > KEEL_INT64)
        return keel_fail(KEEL_EUNSUP, "weights path '%s': a weight cannot be %s", path,
                         keel_dtype_name(t->dtype));
    KEEL_TRY(keel_shape_check(&t->shape, keel_dtype_size(t->dtype)));
    const size_t at = position(w->arrays, w->n_arrays, sizeof *w->arrays, path);
    if (w->decoded || (at < w->n_arrays && !strcmp(w->arrays[at].path, path)))
        return keel_fail(KEEL_EARG, "weights path '%s' exists already", path);
    char *own = keel_strdup(path);
    if (!own) return KEEL_ENOMEM;
    if (make_gap((void **)&w->arrays, w->n_arrays, sizeof *w->arrays, at) < 0) {
        keel_free(own);
        return KEEL_ENOMEM;
    }
    w->n_arrays++;
    w->arrays[at] = (keel_weight){ .path = own,
                                   .dtype = t->dtype,
                                   .shape = t->shape,
                                   .stored = store[t->dtype],
                                   .data = t->data };
    return KEEL_OK;
}

keel_status keel_weights_add_group(keel_weights *w, const char *path, const char *name)
{
    KEEL_TRY(check_path(path));
    const size_t at = position(w->groups, w->n_groups, sizeof *w->groups, path);
    if (w->decoded || (at < w->n_groups && !strcmp(w->groups[at].path, path)))
        return keel_fail(KEEL_EARG, "weights group '%s' exists already", path);
    char *own = keel_strdup(path), *own_name = name ? keel_strdup(name) : NULL;
    if (!own || (name && !own_name) ||
        make_gap((void **)&w->groups, w->n_groups, sizeof *w->groups, at) < 0) {
        keel_free(own);
        keel_free(own_name);
        return KEEL_ENOMEM;
    }
    w->n_groups++;
    w->groups[at] = (keel_weights_group){ own, own_name };
    return KEEL_OK;
}

keel_status keel_weights_decode(keel_weights **out, const void *image, size_t n_bytes)
{
    keel_status s = KEEL_OK;
    keel_weights *w = NULL;
    KEEL_TRY(keel_weights_create(&w));
    w->decoded = true;
    s = keel_h5_check(&w->tree, image, n_bytes);
    if (s < 0) goto out;
    w->image = image;
    w->n_bytes = n_bytes;
    const keel_h5_entry *e = w->tree.entries;
    for (size_t i = 0; i < w->tree.count; i++) w->n_groups += e[i].is_group;
    w->arrays = keel_calloc(w->tree.count - w->n_groups, sizeof *w->arrays);
    w->groups = keel_calloc(w->n_groups, sizeof *w->groups);
    if (!w->arrays || !w->groups) {
        s = KEEL_ENOMEM;
        goto out;
    }
    w->n_groups = 0;
    for (size_t i = 0; i < w->tree.count; i++) {
        if (e[i].is_group)
            w->groups[w->n_groups++].path = e[i].path;
        else
            w->arrays[w->n_arrays++] = (keel_weight){ .path = e[i].path,
                                                      .dtype = become[e[i].type],
                                                      .shape = e[i].shape,
                                                      .stored = e[i].type,
                                                      .data = (const char *)image + e[i].offset };
    }
    *out = w;
    w = NULL;
out:
    keel_weights_destroy(w);
    return s;
}

void keel_weights_read_once(keel_weights *w)
{
    w->once = w->decoded;
}

/* Where arrays are read once, the image is the reader's to write into. */
static void leave(keel_weight *a)
{
    static const size_t size[KEEL_H5_TYPE_COUNT] = {
        [KEEL_H5_FLOAT32] = 4, [KEEL_H5_FLOAT64] = 8, [KEEL_H5_UINT8] = 1,
        [KEEL_H5_INT32] = 4,   [KEEL_H5_INT64] = 8,   [KEEL_H5_UINT32] = 4,
    };
    keel_leave((void *)(uintptr_t)a->data, (size_t)keel_shape_count(&a->shape) * size[a->stored]);
    a->data = NULL;
}

int64_t keel_weights_count(const keel_weights *w)
{
    return (int64_t)w->n_arrays;
}

const keel_weight *keel_weights_at(const keel_weights *w, int64_t index)
{
    return &w->arrays[index];
}

const keel_weight *keel_weights_find(const keel_weights *w, const char *path)
{
    const size_t at = position(w->arrays, w->n_arrays, sizeof *w->arrays, path);
    return at < w->n_arrays && !strcmp(w->arrays[at].path, path) ? &w->arrays[at] : NULL;
}

bool keel_weights_has_group(const keel_weights *w, const char *path)
{
    const size_t at = position(w->groups, w->n_groups, sizeof *w->groups, path);
    return at < w->n_groups && !strcmp(w->groups[at].path, path);
}

keel_status keel_weights_texts(keel_weights *w, const char *path, const char *name,
                               keel_h5_text **out, size_t *count)
{
    return keel_h5_texts(&w->tree, w->image, w->n_bytes, path, name, out, count);
}

/* ---- values ---- */

static bool is_real(keel_h5_type t)
{
    return t == KEEL_H5_FLOAT32 || t == KEEL_H5_FLOAT64;
}

#define LOAD(type, p, i)                                                                           \
    ({                                                                                             \
        type load_value;                                                                           \
        memcpy(&load_value, (const char *)(p) + (i) * sizeof load_value, sizeof load_value);       \
        load_value;                                                                                \
    })

static double load_real(const keel_weight *a, size_t i)
{
    return a->stored == KEEL_H5_FLOAT32 ? LOAD(float, a->data, i) : LOAD(double, a->data, i);
}

static int64_t load_integer(const keel_weight *a, size_t i)
{
    switch (a->stored) {
    case KEEL_H5_UINT8:
        return LOAD(uint8_t, a->data, i);
    case KEEL_H5_INT32:
        return LOAD(int32_t, a->data, i);
    case KEEL_H5_UINT32:
        return LOAD(uint32_t, a->data, i);
    default:
        return LOAD(int64_t, a->data, i);
    }
}

static bool store_integer(keel_dtype dtype, void *out, size_t i, int64_t value)
{
    if (dtype == KEEL_INT64) {
        ((int64_t *)out)[i] = value;
    } else if (dtype == KEEL_INT32) {
        ((int32_t *)out)[i] = (int32_t)value;
        return value == (int32_t)value;
    } else {
        ((uint8_t *)out)[i] = (uint8_t)value;
        return value == (uint8_t)value;
    }
    return true;
}

/* False if an integer does not fit. */
static bool convert(const keel_weight *a, keel_dtype dtype, void *out)
{
    const size_t count = (size_t)keel_shape_count(&a->shape);
    bool fits = true;
    if (count == 0) return true;
    if (become[a->stored] == dtype && a->stored != KEEL_H5_UINT32) {
        memcpy(out, a->data, count * keel_dtype_size(dtype));
    } else if (dtype == KEEL_FLOAT32) {
        for (size_t i = 0; i < count; i++) ((float *)out)[i] = (float)load_real(a, i);
    } else if (dtype == KEEL_FLOAT64) {
        for (size_t i = 0; i < count; i++) ((double *)out)[i] = load_real(a, i);
    } else {
        for (size_t i = 0; i < count; i++) fits &= store_integer(dtype, out, i, load_integer(a, i));
    }
    return fits;
}

void keel_weight_copy(const keel_weight *a, void *out)
{
    convert(a, a->dtype, out);
}

keel_status keel_weights_read(const keel_weights *w, const char *path, keel_dtype dtype,
                              const keel_shape *shape, void *out)
{
    keel_weight *a = (keel_weight *)(uintptr_t)keel_weights_find(w, path);
    if (!a) return keel_fail(KEEL_EFORMAT, "the weights file has no '%s'", path);
    if (!keel_shape_equal(&a->shape, shape)) {
        char has[96], wanted[96];
        keel_shape_text(has, &a->shape);
        keel_shape_text(wanted, shape);
        return keel_fail(KEEL_ESHAPE, "'%s' in the weights file has shape %s, the model needs %s",
                         path, has, wanted);
    }
    if (is_real(a->stored) != keel_dtype_is_real(dtype))
        return keel_fail(KEEL_EUNSUP, "'%s' in the weights file is %s, the model needs %s", path,
                         keel_dtype_name(a->dtype), keel_dtype_name(dtype));
    if (!a->data)
        return keel_fail(KEEL_EFORMAT, "'%s' in the weights file stands for two weights", path);
    if (!convert(a, dtype, out))
        return keel_fail(KEEL_EFORMAT, "'%s' in the weights file has a number that does not fit %s",
                         path, keel_dtype_name(dtype));
    if (w->once) leave(a);
    return KEEL_OK;
}
