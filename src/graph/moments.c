/* See moments.h. This file is compiled without multiply-adds (cmake/flags.cmake). The op's own
 * function has them where the processor does, and device/cuda/fold.cu has what is here. */
#include "graph/moments.h"

void keel_moments_combine(const keel_node *n, keel_record left, keel_record right, double *out)
{
    const int64_t c = n->partial / 2;
    const double share = right.rows / (left.rows + right.rows);
    const double weight = left.rows * share * (double)(keel_row_count(&n->in[0]) / c);
    const double *a = left.data, *b = right.data;
#pragma GCC ivdep /* out may be a or b, but does not overlap them in part */
    for (int64_t k = 0; k < c; k++) {
        const double d = b[k] - a[k], mean = a[k] + d * share;
        out[c + k] = a[c + k] + b[c + k] + d * d * weight;
        out[k] = mean;
    }
}
