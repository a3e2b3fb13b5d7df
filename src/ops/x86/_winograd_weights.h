/* What the weight gradients of our float32 kernels of Winograd share: pairs of a block of channels
 * and a block of filters, whose points' gradients lie in scratch until all tiles are in.
 *
 *     weights_block b = { .call = c, .kernel = { .c = channels, .k = filters } };
 *     if (weights_open(&b, v_points, w_points))
 *         do {
 *             ... add the tiles' products to b.u, and the outputs' sums to b.bias if that is asked
 *             weights_store(&b);
 *         } while (weights_next(&b));
 *
 * The file that includes this defines kernel_gradient_points(): the gradients of TAPS taps from
 * those of their SIDE points, along one direction. */
#ifndef KEEL_OPS_X86_WINOGRAD_WEIGHTS_H
#define KEEL_OPS_X86_WINOGRAD_WEIGHTS_H
#include "ops/x86/_winograd_vector.h"

typedef struct weights_block {
    const keel_call *call;
    struct {
        int64_t c, k; /* Keras's kernel is [TAPS, TAPS, c, k] */
    } kernel;
    int64_t c0, nc, k0, nk; /* channels and filters of the pair */
    float *zeros, *u;
    float *bias;   /* of the pair's filters; NULL: not asked of this pair */
    int64_t point; /* of u */
    buffer v, w;   /* of x and of dy, v_points and w_points at a time */
    float *bias_of_call;
} weights_block;

/* Where things lie in the scratch of a weight gradient, in floats; returns how many there are. */
static int64_t weights_layout(weights_block *b, float *scratch, int v_points, int w_points)
{
    const int64_t c = b->kernel.c, k = b->kernel.k;
    const int64_t nc = ceil_of(at_most(c, WEIGHTS_BLOCK), LANES) * LANES;
    const int64_t nk = ceil_of(at_most(k, WEIGHTS_BLOCK), PANEL) * PANEL;
    const int64_t bias = ceil_of(c > k ? c : k, LANES) * LANES, u = bias + nk;
    b->point = nc * nk + LANES;
    const int64_t v = u + SIDE * SIDE * b->point;
    b->v = buffer_of(scratch ? scratch + v : NULL, nc, WEIGHTS_TILES);
    const int64_t w = v + v_points * b->v.point;
    b->w = buffer_of(scratch ? scratch + w : NULL, nk, WEIGHTS_TILES);
    if (scratch) b->zeros = scratch, b->bias_of_call = scratch + bias, b->u = scratch + u;
    return w + w_points * b->w.point;
}

static void weights_pair_of(weights_block *b)
{
    b->nc = at_most(b->kernel.c - b->c0, WEIGHTS_BLOCK);
    b->nk = at_most(b->kernel.k - b->k0, WEIGHTS_BLOCK);
    b->bias = b->c0 == 0 ? b->bias_of_call : NULL;
}

/* The first pair; false: there is nothing to do. */
static bool weights_open(weights_block *b, int v_points, int w_points)
{
    const keel_call *c = b->call;
    weights_layout(b, c->scratch, v_points, w_points);
    memset(b->zeros, 0, (size_t)(b->bias_of_call - b->zeros) * sizeof *b->zeros);
    if (c->node->n_weight < 2 || !c->weight_grad[1]) b->bias_of_call = NULL;
    weights_pair_of(b);
    return c->weight_grad[0] || b->bias;
}

/* The bias belongs to the first block of channels; without a gradient of the kernel there is no
 * other block. */
static bool weights_next(weights_block *b)
{
    if ((b->k0 += WEIGHTS_BLOCK) >= b->kernel.k) b->k0 = 0, b->c0 += WEIGHTS_BLOCK;
    weights_pair_of(b);
    return b->c0 < (b->call->weight_grad[0] ? b->kernel.c : 1);
}

/* The gradient of the pair's channels and filters from that of the points, into dw [TAPS, TAPS, c,
 * k]. */
static void kernel_gradient(const weights_block *b, float *dw, bool adds)
{
    const int64_t lines = ceil_of(b->nc, LANES) * LANES;
    for (int64_t c = 0; c < b->nc; c++)
        for (int64_t k = 0; k < b->nk; k += LANES) {
            const vm m = vm_first(b->nk - k);
            const float *at = b->u + (k / PANEL * lines + c) * PANEL + k % PANEL;
            float *to = dw + (b->c0 + c) * b->kernel.k + b->k0 + k;
            vf line[SIDE][TAPS];
            EACH(i, SIDE) {
                vf x[SIDE];
                EACH(j, SIDE) x[j] = vf_load(at + (SIDE * i + j) * b->point);
                kernel_gradient_points(x, line[i]);
            }
            EACH(j, TAPS) {
                vf x[SIDE], g[TAPS];
                EACH(i, SIDE) x[i] = line[i][j];
                kernel_gradient_points(x, g);
                EACH(i, TAPS) {
                    float *tap = to + (TAPS * i + j) * b->kernel.c * b->kernel.k;
                    vf_store_some(m, tap, adds ? vf_add(vf_load_some(m, tap), g[i]) : g[i]);
                }
            }
        }
}

static void weights_store(const weights_block *b)
{
    const keel_call *c = b->call;
    if (c->weight_grad[0]) kernel_gradient(b, c->weight_grad[0], c->weight_adds);
    if (!b->bias) return;
    float *db = c->weight_grad[1];
    VECTOR_EACH(k, b->nk, m, {
        const vf sum = vf_load(b->bias + k);
        float *to = db + b->k0 + k;
        vf_store_some(m, to, c->weight_adds ? vf_add(vf_load_some(m, to), sum) : sum);
    });
}

#endif
