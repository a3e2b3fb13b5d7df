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

static const size_t stored_size[KEEL_H5_TYPE_COUNT] = {
    [KEEL_H5_FLOAT32] = 4, [KEEL_H5_FLOAT64] = 8, [KEEL_H5_UINT8] = 1,
    [KEEL_H5_INT32] = 4,   [KEEL_H5_INT64] = 8,   [KEEL_H5_UINT32] = 4,
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

static size_t count_of(const keel_weight *a)
{
    return (size_t)keel_shape_count(&a->shape);
}

static keel_status read_image(const void *image, uint64_t at, void *to, size_t n)
{
    if (n > 0) memcpy(to, (const char *)image + at, n);
    return KEEL_OK;
}

/* image NULL: it is not in memory. */
static keel_status decode(keel_weights **out, const void *image, const keel_h5_source *source)
{
    keel_status s = KEEL_OK;
    keel_weights *w = NULL;
    KEEL_TRY(keel_weights_create(&w));
    w->decoded = true;
    w->image = image;
    w->n_bytes = source->n_bytes;
    w->source = *source;
    s = keel_h5_check(&w->tree, source);
    if (s < 0) goto out;
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
            w->arrays[w->n_arrays++] =
                (keel_weight){ .path = e[i].path,
                               .dtype = become[e[i].type],
                               .shape = e[i].shape,
                               .stored = e[i].type,
                               .at = e[i].offset,
                               .data = image ? (const char *)image + e[i].offset : NULL };
    }
    *out = w;
    w = NULL;
out:
    keel_weights_destroy(w);
    return s;
}

keel_status keel_weights_decode(keel_weights **out, const void *image, size_t n_bytes)
{
    return decode(out, image, &(keel_h5_source){ read_image, image, n_bytes });
}

keel_status keel_weights_open(keel_weights **out, const keel_h5_source *source)
{
    return decode(out, NULL, source);
}

void keel_weights_read_once(keel_weights *w)
{
    w->once = w->image != NULL;
}

/* Where arrays are read once, the image is the reader's to write into. */
static void leave(keel_weight *a)
{
    keel_leave((void *)(uintptr_t)a->data, count_of(a) * stored_size[a->stored]);
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

static double load_real(keel_h5_type stored, const void *data, size_t i)
{
    return stored == KEEL_H5_FLOAT32 ? LOAD(float, data, i) : LOAD(double, data, i);
}

static int64_t load_integer(keel_h5_type stored, const void *data, size_t i)
{
    switch (stored) {
    case KEEL_H5_UINT8:
        return LOAD(uint8_t, data, i);
    case KEEL_H5_INT32:
        return LOAD(int32_t, data, i);
    case KEEL_H5_UINT32:
        return LOAD(uint32_t, data, i);
    default:
        return LOAD(int64_t, data, i);
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

/* Whether elements are in memory as they are stored. */
static bool is_plain(keel_h5_type stored, keel_dtype dtype)
{
    return become[stored] == dtype && stored != KEEL_H5_UINT32;
}

/* False if an integer does not fit. */
static bool convert(keel_h5_type stored, const void *data, size_t count, keel_dtype dtype,
                    void *out)
{
    bool fits = true;
    if (count == 0) return true;
    if (is_plain(stored, dtype)) {
        memcpy(out, data, count * keel_dtype_size(dtype));
    } else if (dtype == KEEL_FLOAT32) {
        for (size_t i = 0; i < count; i++) ((float *)out)[i] = (float)load_real(stored, data, i);
    } else if (dtype == KEEL_FLOAT64) {
        for (size_t i = 0; i < count; i++) ((double *)out)[i] = load_real(stored, data, i);
    } else {
        for (size_t i = 0; i < count; i++)
            fits &= store_integer(dtype, out, i, load_integer(stored, data, i));
    }
    return fits;
}

void keel_weight_copy(const keel_weight *a, void *out)
{
    convert(a->stored, a->data, count_of(a), a->dtype, out);
}

/* Straight to where they go; what is stored in another type by pieces. */
static keel_status read_from_source(const keel_weights *w, const keel_weight *a, keel_dtype dtype,
                                    void *out, bool *fits)
{
    enum { PIECE = 1 << 16 };
    const size_t count = count_of(a), from = stored_size[a->stored], to = keel_dtype_size(dtype);
    const keel_h5_source *s = &w->source;
    keel_status status = KEEL_OK;
    if (count == 0) return KEEL_OK;
    if (is_plain(a->stored, dtype)) return s->read(s->context, a->at, out, count * to);
    char *piece = keel_calloc(PIECE, from);
    if (!piece) return KEEL_ENOMEM;
    for (size_t i = 0, n; i < count && status >= 0; i += n) {
        n = count - i < PIECE ? count - i : PIECE;
        status = s->read(s->context, a->at + i * from, piece, n * from);
        if (status >= 0) *fits &= convert(a->stored, piece, n, dtype, (char *)out + i * to);
    }
    keel_free(piece);
    return status;
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
    if (w->image && !a->data)
        return keel_fail(KEEL_EFORMAT, "'%s' in the weights file stands for two weights", path);
    bool fits = true;
    if (a->data)
        fits = convert(a->stored, a->data, count_of(a), dtype, out);
    else
        KEEL_TRY(read_from_source(w, a, dtype, out, &fits));
    if (!fits)
        return keel_fail(KEEL_EFORMAT, "'%s' in the weights file has a number that does not fit %s",
                         path, keel_dtype_name(dtype));
    if (w->once) leave(a);
    return KEEL_OK;
}
