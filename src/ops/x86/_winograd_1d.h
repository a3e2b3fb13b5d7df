/* Winograd's F(4, 3) over one dim: where the tiles lie in sequences [T, 1, C] or [1, T, C]. */
#ifndef KEEL_OPS_X86_WINOGRAD_1D_H
#define KEEL_OPS_X86_WINOGRAD_1D_H
#define TILE 4
#define TAPS 3
#include "ops/x86/_winograd_points.h"
#include "ops/args.h"

/* A row, as a pass reads and makes it. Tile i makes the places from 4 i on, and reads those from
 * 4 i - pad to 4 i - pad + 5; places outside of the row are zero, or not written. */
typedef struct sequence {
    int64_t c, k;     /* channels read and made */
    int64_t from, to; /* places read and made */
    int64_t pad;
    int64_t tiles;
} sequence;

/* turned: as backward reads and makes a row. False: these are not windows of 3 over one dim, with
 * stride 1. */
static bool sequence_of(sequence *s, const keel_node *n, bool turned)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim, *w = n->weight[0].shape.dim;
    for (int d = 0; d < 2; d++) {
        const int64_t *pad = a->pad + 2 * d, *other = a->pad + 2 - 2 * d;
        if (x[1 - d] != 1 || w[1 - d] != 1 || other[0] || other[1] || w[d] != 3 ||
            a->strides[d] != 1 || a->dilation[d] != 1 || a->groups != 1)
            continue;
        *s = turned
                 ? (sequence){ .c = y[2], .k = x[2], .from = y[d], .to = x[d], .pad = 2 - pad[0] }
                 : (sequence){ .c = x[2], .k = y[2], .from = x[d], .to = y[d], .pad = pad[0] };
        s->tiles = (s->to + TILE - 1) / TILE;
        return true;
    }
    return false;
}

#endif
