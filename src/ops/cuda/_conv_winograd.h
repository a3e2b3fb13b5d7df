/* Convolutions of float32 with 3x3 taps and a stride of 1 by Winograd's F(4x4, 3x3): 36
 * multiply-adds for a tile of 4x4 outputs, where the products of windows (_conv_products.h) take
 * 144, and 2.25 copies of an image where windows are 9.
 *
 *     forward   y  = At [ sum over channels of (G g Gt) . (Bt x B) ] A
 *     data      dx = the same of dy, with the taps turned by 180 degrees, and C and K exchanged
 *     filter    dg = Gt [ sum over tiles of (Bt x B) . (A dy At) ] G
 *
 * Transformed values lie as [36 points][tiles][channels], so the sums are 36 products of matrices,
 * which cuBLASLt computes in one call. Tiles are those of as many rows as have room together.
 *
 * Error, as the root of the mean square against float64, beside that of a plain float32 sum of
 * multiply-adds, for normal numbers (measured on the host, with sums in one order):
 *
 *     channels                        32       64      128      256      512
 *     direct      forward, data   3.0e-7   4.3e-7   6.1e-7   8.5e-7   1.2e-6
 *     Winograd                    6.0e-7   7.6e-7   1.0e-6   1.4e-6   2.0e-6
 *     times                          2.0      1.8      1.7      1.7      1.6
 *
 *     tiles                          196     1568    12544
 *     direct      filter          1.0e-6   2.8e-6   8.7e-6
 *     Winograd                    1.3e-6   3.6e-6   9.8e-6
 *     in 8 parts                  6.7e-7   1.3e-6   3.2e-6
 *
 * For numbers of either sign between 2^-12 and 2^12 it is 2.1 to 2.3 times the direct error from 64
 * channels on, for positive ones a third of it. As on the processor, forward and data are left to
 * the direct sum where they sum over fewer than 64 channels.
 *
 * A place that is not finite may make its tile's other outputs not a number, where the direct sum
 * keeps them: such a step is refused either way. */
#ifndef KEEL_OPS_CUDA_CONV_WINOGRAD_H
#define KEEL_OPS_CUDA_CONV_WINOGRAD_H
#include "ops/cuda/_conv_graph.h"

struct conv_winograd;

/* KEEL_EUNSUP: it is another convolution, or one for which this does not pay or is not exact
 * enough. What is chosen does not depend on the number of rows. */
keel_status conv_winograd_create(const keel_prepare *p, const conv_graph *x, conv_winograd **out,
                                 int64_t *scratch);
void conv_winograd_destroy(conv_winograd *pl); /* NULL is allowed */
/* x, y and the filter w in Keras's order; which of them is written is the direction's. bias: NULL,
 * or added to each place of what is written, x or y. */
void conv_winograd_run(const keel_call *c, const conv_winograd *pl, const float *x, const float *w,
                       const float *y, const float *bias, bool adds);

#endif
