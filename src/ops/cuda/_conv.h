/* Convolutions by cuDNN: conv2d (and so Conv1D, whose images have a dim of 1), conv3d, and
 * conv_transpose, whose forward is a convolution's backward and the other way round.
 *
 * A pass is a graph of one operation on NHWC, with an engine that makes the same bits each time;
 * with float32 values one that only multiplies and adds in float32, unless --float32 fast allows
 * TF32: without groups these are products of matrices instead (_conv_products.h, and for 3x3 taps
 * _conv_winograd.h). Narrow images of few channels go to our own (_conv_few.h). Where windows are
 * places it is a dense layer (_dense.h). cuDNN wants a filter as [K, taps, C/G]. Keras's [taps,
 * C/G, K] is its transposed matrix: each call turns weights into scratch, rounded where values are
 * narrow, and their gradient back. That gradient has the type of the values, as in Keras: an engine
 * for narrow values with a float32 gradient takes an H200 up to 40 times as long. A bias fills the
 * output first, and the convolution is added to it. */
#ifndef KEEL_OPS_CUDA_CONV_H
#define KEEL_OPS_CUDA_CONV_H
#include "ops/cuda/_library.h"

/* From x [places.., c] to y [places.., k]; two dims, or three. */
struct cuda_geometry {
    int dims;
    int64_t x[3], y[3], size[3], stride[3], dilation[3], before[3], after[3];
    int64_t c, k, groups;
    bool transposed; /* the op goes from y to x */
};

keel_status cuda_conv_prepare(keel_prepare *p, const cuda_geometry *g);
void cuda_conv_release(void *plan);
void cuda_conv_forward(const keel_call *c);
void cuda_conv_backward(const keel_call *c);
void cuda_conv_weights(const keel_call *c);

/* An image's or a volume's numbers; a volume of one plane is an image. */
static inline void cuda_geometry_fill(cuda_geometry *g, int dims, const int64_t *x,
                                      const int64_t *y, const int64_t *size, const int64_t *stride,
                                      const int64_t *dilation, const int64_t *pad)
{
    const int skip = dims == 3 && x[0] == 1 && y[0] == 1 && size[0] == 1 && !pad[0] && !pad[1];
    g->dims = dims - skip;
    for (int d = 0; d < g->dims; d++) {
        g->x[d] = x[d + skip];
        g->y[d] = y[d + skip];
        g->size[d] = size[d + skip];
        g->stride[d] = stride[d + skip];
        g->dilation[d] = dilation[d + skip];
        g->before[d] = pad[2 * (d + skip)];
        g->after[d] = pad[2 * (d + skip) + 1];
    }
}

/* Ends the file of such a kernel; `prepare` is the file's. */
#define CUDA_CONV_KERNEL(stem)                                                                     \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cudnn",                                                         \
                          .vendor = true,                                                          \
                          .prepare = prepare,                                                      \
                          .run = { cuda_conv_forward, cuda_conv_backward, cuda_conv_weights },     \
                          .narrow = { cuda_conv_forward, cuda_conv_backward, cuda_conv_weights },  \
                          .half = { cuda_conv_forward, cuda_conv_backward, cuda_conv_weights },    \
                          .release = cuda_conv_release }

#endif
