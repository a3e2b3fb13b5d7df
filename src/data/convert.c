/* Converts data from the type in which it is stored to the type of a batch. Any number is rounded
 * to the nearest float32 or float64; integer types and bool take only values that they hold
 * exactly. */
#include "base/memory.h"
#include "data/source.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

#define TO_REAL(name, to, from)                                                                    \
    static int64_t name(void *dst, const void *src, int64_t count)                                 \
    {                                                                                              \
        to *d = dst;                                                                               \
        const from *s = src;                                                                       \
        for (int64_t i = 0; i < count; i++) d[i] = (to)s[i];                                       \
        return count;                                                                              \
    }

TO_REAL(f32_from_f32, float, float)
TO_REAL(f32_from_f64, float, double)
TO_REAL(f32_from_u8, float, uint8_t)
TO_REAL(f32_from_i32, float, int32_t)
TO_REAL(f32_from_i64, float, int64_t)
TO_REAL(f64_from_f32, double, float)
TO_REAL(f64_from_f64, double, double)
TO_REAL(f64_from_u8, double, uint8_t)
TO_REAL(f64_from_i32, double, int32_t)
TO_REAL(f64_from_i64, double, int64_t)

/* True if v is a whole number that fits int64_t. */
static bool whole(double v, int64_t *out)
{
    if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0)) return false;
    *out = (int64_t)v;
    return (double)*out == v;
}

static bool whole_f32(float v, int64_t *out)
{
    return whole((double)v, out);
}

static bool whole_i64(int64_t v, int64_t *out)
{
    *out = v;
    return true;
}

#define TO_WHOLE(name, to, from, whole_of, least, most)                                            \
    static int64_t name(void *dst, const void *src, int64_t count)                                 \
    {                                                                                              \
        to *d = dst;                                                                               \
        const from *s = src;                                                                       \
        for (int64_t i = 0, v; i < count; i++) {                                                   \
            if (!whole_of(s[i], &v) || v < (least) || v > (most)) return i;                        \
            d[i] = (to)v;                                                                          \
        }                                                                                          \
        return count;                                                                              \
    }

#define TO_WHOLE_FROM_ALL(short, to, least, most)                                                  \
    TO_WHOLE(short##_from_f32, to, float, whole_f32, least, most)                                  \
    TO_WHOLE(short##_from_f64, to, double, whole, least, most)                                     \
    TO_WHOLE(short##_from_u8, to, uint8_t, whole_i64, least, most)                                 \
    TO_WHOLE(short##_from_i32, to, int32_t, whole_i64, least, most)                                \
    TO_WHOLE(short##_from_i64, to, int64_t, whole_i64, least, most)

TO_WHOLE_FROM_ALL(u8, uint8_t, 0, UINT8_MAX)
TO_WHOLE_FROM_ALL(i32, int32_t, INT32_MIN, INT32_MAX)
TO_WHOLE_FROM_ALL(i64, int64_t, INT64_MIN, INT64_MAX)
TO_WHOLE_FROM_ALL(b1, uint8_t, 0, 1)

#define FROM_ALL(short)                                                                            \
    {                                                                                              \
        [KEEL_FLOAT32] = short##_from_f32, [KEEL_FLOAT64] = short##_from_f64,                      \
        [KEEL_UINT8] = short##_from_u8, [KEEL_INT32] = short##_from_i32,                           \
        [KEEL_INT64] = short##_from_i64, [KEEL_BOOL] = short##_from_u8                             \
    }

static int64_t (*const convert[KEEL_DTYPE_COUNT][KEEL_DTYPE_COUNT])(void *, const void *,
                                                                    int64_t) = {
    [KEEL_FLOAT32] = FROM_ALL(f32), [KEEL_FLOAT64] = FROM_ALL(f64), [KEEL_UINT8] = FROM_ALL(u8),
    [KEEL_INT32] = FROM_ALL(i32),   [KEEL_INT64] = FROM_ALL(i64),   [KEEL_BOOL] = FROM_ALL(b1),
};

int64_t keel_convert(void *dst, keel_dtype to, const void *src, keel_dtype from, int64_t count)
{
    if (to != from) return convert[to][from] ? convert[to][from](dst, src, count) : 0;
    memcpy(dst, src, (size_t)count * keel_dtype_size(to));
    return count;
}

bool keel_convert_always_fits(keel_dtype to, keel_dtype from)
{
    if (to == from || keel_dtype_is_real(to)) return true;
    if (from == KEEL_BOOL) return true;
    if (from == KEEL_UINT8) return to != KEEL_BOOL;
    return from == KEEL_INT32 && to == KEEL_INT64;
}

keel_status keel_field_write(void *dst, keel_dtype want, const void *src,
                             const keel_data_field *field, int64_t count)
{
    double value = 0;
    const int64_t bad = keel_convert(dst, want, src, field->dtype, count);
    if (bad == count) return KEEL_OK;
    const size_t size = keel_dtype_size(field->dtype);
    if (field->dtype == KEEL_STRING || want == KEEL_STRING)
        return keel_fail(KEEL_EUNSUP, "field '%s' has %s, but %s is expected", field->path,
                         keel_dtype_name(field->dtype), keel_dtype_name(want));
    keel_convert(&value, KEEL_FLOAT64, (const char *)src + (size_t)bad * size, field->dtype, 1);
    return keel_fail(KEEL_EDATA, "field '%s' has %.17g, which %s cannot hold exactly", field->path,
                     value, keel_dtype_name(want));
}

keel_status keel_strings_create(keel_tensor *out, const keel_shape *shape, const keel_string *text)
{
    KEEL_TRY(keel_shape_check(shape, sizeof *text));
    const int64_t n = keel_shape_count(shape);
    size_t size = (size_t)n * sizeof *text;
    for (int64_t i = 0; i < n; i++) size += (size_t)text[i].n_bytes + 1;
    keel_string *all = keel_aligned_calloc(1, size + 1);
    if (!all) return KEEL_ENOMEM;
    char *to = (char *)(all + n);
    for (int64_t i = 0; i < n; i++) {
        if (text[i].n_bytes) memcpy(to, text[i].data, (size_t)text[i].n_bytes);
        all[i] = (keel_string){ to, text[i].n_bytes };
        to += text[i].n_bytes + 1;
    }
    *out = (keel_tensor){ KEEL_STRING, *shape, all };
    return KEEL_OK;
}

/* Negative weights are refused: they reverse a row's gradient, and weights that sum to 0 or less
 * give no mean. */
keel_status keel_weights_check(const void *weight, keel_dtype dtype, int64_t rows, int64_t each,
                               int64_t first_row, const char *name)
{
    const size_t size = keel_dtype_size(dtype);
    for (int64_t i = 0; i < rows * each; i++) {
        double w;
        keel_convert(&w, KEEL_FLOAT64, (const char *)weight + (size_t)i * size, dtype, 1);
        if (!(w >= 0) || isinf(w))
            return keel_fail(KEEL_EDATA,
                             "%s: the weight of row %lld is %g; it must be a finite number, 0 or "
                             "more: 0 leaves the row out",
                             name, (long long)(first_row + i / each), w);
    }
    return KEEL_OK;
}
