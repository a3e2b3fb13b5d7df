/* Convolutions of images of few channels, the first of a network, on tensor cores: cuDNN pads 3
 * channels to 8, and so reads and multiplies 2.7 times as much. A window is a line of numbers, its
 * taps' channels as they lie in the filter; what pads an image, and the line, is 0:
 *
 *     forward   y[places, k]     = windows[places, taps c] F[taps c, k] + bias
 *     filter    dF[taps c, k]    = windows^T dy
 *
 * Windows are gathered into shared memory, and are never anywhere else. Values are narrow, and F is
 * rounded to their type; sums and the bias are float32, and what comes out is rounded once. Sums of
 * the filter's gradient are of pieces of the places, which are added in their order: how many there
 * are depends on the number of places alone. */
#ifndef KEEL_OPS_CUDA_CONV_FEW_H
#define KEEL_OPS_CUDA_CONV_FEW_H
#include "ops/cuda/_conv_graph.h"

/* Forward, and the gradient of the filter. Bytes of scratch, 0 or more; KEEL_EUNSUP: values are not
 * narrow, there are more than 4 channels, a window has more than 160 numbers, or there are groups
 * or three dims. */
keel_status conv_few_prepare(const conv_graph *x, int64_t *scratch);

void conv_few_forward(const keel_call *c, const cuda_geometry *g);
/* dw [taps c, k] */
void conv_few_weights(const keel_call *c, const cuda_geometry *g, float *dw, bool adds);

#endif
