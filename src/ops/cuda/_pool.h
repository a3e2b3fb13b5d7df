/* Windows over an image, [H, W, C]: see ops/max_pool2d.c. A thread has some channels of a place,
 * and on the way back of a pixel, which gathers from the windows that have it: nothing is added by
 * two threads. */
#ifndef KEEL_OPS_CUDA_POOL_H
#define KEEL_OPS_CUDA_POOL_H
#include "ops/cuda/_kernel.h"

struct pool_dim {
    int64_t in, out, size, stride, pad;

    /* The first pixel of window o, counted with the padding before the image. */
    __device__ __forceinline__ int64_t first(int64_t o) const
    {
        return o * stride - pad;
    }
    /* The windows [first, end) that have pixel i. */
    __device__ __forceinline__ int64_t first_with(int64_t i) const
    {
        int64_t at = i + pad - size + stride;
        if (at < stride) return 0;
        take(&at, stride);
        return at;
    }
    __device__ __forceinline__ int64_t end_with(int64_t i) const
    {
        int64_t last = i + pad;
        take(&last, stride);
        return last < out ? last + 1 : out;
    }
    /* How many pixels of the image window o has. */
    __device__ __forceinline__ int64_t covers(int64_t o) const
    {
        const int64_t from = first(o), end = from + size;
        return (end < in ? end : in) - (from > 0 ? from : 0);
    }
};

struct pool_shape {
    pool_dim h, w;
    int64_t c, groups, rows; /* groups of up to four channels */
    bool relu;
};

/* Windows over `image`, each of which is a place of `windows`. */
static inline pool_shape pool_shape_between(const keel_spec &image, const keel_spec &windows,
                                            const keel_pool2d_args &a, int64_t rows)
{
    const int64_t *in = image.shape.dim, *out = windows.shape.dim;
    return { { in[0], out[0], a.pool[0], a.strides[0], a.pad[0] },
             { in[1], out[1], a.pool[1], a.strides[1], a.pad[2] },
             in[2],
             (in[2] + 3) / 4,
             rows,
             a.relu };
}

/* Where thread t is in an array of [rows, height, width, groups]. */
struct pool_place {
    int64_t row, h, w, channel;

    __device__ __forceinline__ pool_place(const pool_shape &s, int64_t t, int64_t height,
                                          int64_t width)
    {
        channel = 4 * take(&t, s.groups);
        w = take(&t, width);
        h = take(&t, height);
        row = t;
    }
};

#endif
