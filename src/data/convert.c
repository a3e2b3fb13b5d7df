/* From the types in which data is kept to the type in which a model works. */
#include "data/source.h"
#include "tensor/dtype.h"
#include <math.h>
#include <string.h>

#define CONVERT(name, to, from)                                                                    \
    static void name(void *dst, const void *src, int64_t count)                                    \
    {                                                                                              \
        to *d = dst;                                                                               \
        const from *s = src;                                                                       \
        for (int64_t i = 0; i < count; i++) d[i] = (to)s[i];                                       \
    }

CONVERT(f32_from_f32, float, float)
CONVERT(f32_from_f64, float, double)
CONVERT(f32_from_u8, float, uint8_t)
CONVERT(f32_from_i32, float, int32_t)
CONVERT(f32_from_i64, float, int64_t)
CONVERT(f64_from_f32, double, float)
CONVERT(f64_from_f64, double, double)
CONVERT(f64_from_u8, double, uint8_t)
CONVERT(f64_from_i32, double, int32_t)
CONVERT(f64_from_i64, double, int64_t)

static void (*const convert[2][KEEL_DTYPE_COUNT])(void *, const void *, int64_t) = {
    { [KEEL_FLOAT32] = f32_from_f32,
      [KEEL_FLOAT64] = f32_from_f64,
      [KEEL_UINT8] = f32_from_u8,
      [KEEL_INT32] = f32_from_i32,
      [KEEL_INT64] = f32_from_i64 },
    { [KEEL_FLOAT32] = f64_from_f32,
      [KEEL_FLOAT64] = f64_from_f64,
      [KEEL_UINT8] = f64_from_u8,
      [KEEL_INT32] = f64_from_i32,
      [KEEL_INT64] = f64_from_i64 },
};

void keel_convert(void *dst, keel_dtype real, const void *src, keel_dtype from, int64_t count)
{
    if (real == from)
        memcpy(dst, src, (size_t)count * (real == KEEL_FLOAT64 ? sizeof(double) : sizeof(float)));
    else
        convert[real == KEEL_FLOAT64][from](dst, src, count);
}

/* A negative weight would turn a row's gradient round, and a step whose weights sum to 0 or less
 * has no mean. */
keel_status keel_weights_check(const void *weight, keel_dtype dtype, int64_t n, int64_t first_row,
                               const char *name)
{
    const size_t size = keel_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        double w;
        keel_convert(&w, KEEL_FLOAT64, (const char *)weight + (size_t)i * size, dtype, 1);
        if (!(w >= 0) || isinf(w))
            return keel_fail(KEEL_EDATA,
                             "%s: the weight of row %lld is %g; it must be a finite number, 0 or "
                             "more: 0 leaves the row out",
                             name, (long long)(first_row + i), w);
    }
    return KEEL_OK;
}
