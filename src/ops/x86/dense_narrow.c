/* Weight gradients of dense, tile by tile, from values held in bfloat16, for processors without
 * products of bfloat16 pairs: dW [n, K] = xt [n, B] dy [B, K].
 *
 * A stretch of rows is widened at a time: x of the tile's channels, and dy in panels of PANEL
 * columns, which all blocks of the tile read. Rows are added one after another in float32, so
 * neither the cut of the rows nor that of the tiles changes a bit. */
#include "ops/x86/_vector.h"

KEEL_USES_OP(dense);

enum { BLOCK = 6, VECTORS = 2, PANEL = VECTORS * LANES, TILE = 4 * BLOCK, STRETCH = 128 };

/* A stretch of rows, widened. */
typedef struct stretch {
    int64_t rows;
    float x[STRETCH][TILE], dy[STRETCH][PANEL];
} stretch;

/* out [n, width] = or += the products of BLOCK channels from `channel` on; its rows are n_k apart.
 */
static void multiply_block(const stretch *s, int64_t channel, float *out, int64_t n, int64_t width,
                           int64_t n_k, bool adds)
{
    vf sum[BLOCK][VECTORS];
    vm mask[VECTORS];
    EACH(v, VECTORS) mask[v] = vm_first(width > v * LANES ? width - v * LANES : 0);
    EACH(r, BLOCK)
        EACH(v, VECTORS)
            sum[r][v] =
                adds && r < n ? vf_load_some(mask[v], out + r * n_k + v * LANES) : vf_zero();
    for (int64_t i = 0; i < s->rows; i++) {
        vf dy[VECTORS];
        EACH(v, VECTORS) dy[v] = vf_load(s->dy[i] + v * LANES);
        EACH(r, BLOCK) {
            const vf x = vf_set(s->x[i][channel + r]);
            EACH(v, VECTORS) sum[r][v] = vf_fma(x, dy[v], sum[r][v]);
        }
    }
    EACH(r, BLOCK)
        if (r < n)
            EACH(v, VECTORS) vf_store_some(mask[v], out + r * n_k + v * LANES, sum[r][v]);
}

/* to [rows][most] = from [rows][n], whose rows are `apart` apart; 0 behind them. */
static void widen(float *to, int64_t most, const keel_bf16 *from, int64_t apart, int64_t rows,
                  int64_t n)
{
    for (int64_t i = 0; i < rows; i++, to += most, from += apart) {
        memset(to, 0, (size_t)most * sizeof *to);
        VECTOR_MOVE(to, from, n, false);
    }
}

/* The share of neighbouring rows in `n` channels from `first` on. */
static void multiply(const keel_bf16 *x, const keel_bf16 *dy, int64_t rows, int64_t n_c,
                     int64_t n_k, int64_t first, int64_t n, float *grad, bool adds)
{
    stretch s;
    for (int64_t at = 0; at < rows; at += STRETCH, adds = true) {
        s.rows = rows - at < STRETCH ? rows - at : STRETCH;
        for (int64_t c = 0; c < n; c += TILE) {
            const int64_t channels = n - c < TILE ? n - c : TILE;
            widen(*s.x, TILE, x + at * n_c + first + c, n_c, s.rows, channels);
            for (int64_t k = 0; k < n_k; k += PANEL) {
                const int64_t width = n_k - k < PANEL ? n_k - k : PANEL;
                widen(*s.dy, PANEL, dy + at * n_k + k, n_k, s.rows, width);
                for (int64_t b = 0; b < channels; b += BLOCK)
                    multiply_block(&s, b, grad + (c + b) * n_k + k, channels - b, width, n_k, adds);
            }
        }
    }
}

/* The gradient of the bias: dy summed over rows. */
static void bias_tile(const keel_tile_call *c)
{
    const int64_t n_k = c->node->weight[0].shape.dim[1];
    float *grad = c->grad;
    VECTOR_EACH(k, c->count, m, {
        vf sum = vf_zero();
        for (int s = 0; s < c->n_span; s++) {
            const keel_bf16 *dy = (const keel_bf16 *)c->span[s].out_grad + c->first + k;
            for (int64_t i = 0; i < c->span[s].rows; i++, dy += n_k)
                sum = vf_add(sum, vx_load_some(m, dy));
        }
        vf_store_some(m, grad + k, sum);
    });
}

static void weights_tile(const keel_tile_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    bool adds = false;
    if (c->weight != 0) {
        bias_tile(c);
        return;
    }
    for (int s = 0; s < c->n_span; s++) {
        if (c->span[s].rows == 0) continue;
        multiply(c->span[s].in, c->span[s].out_grad, c->span[s].rows, n_c, n_k, c->first / n_k,
                 c->count / n_k, c->grad, adds);
        adds = true;
    }
    if (!adds) memset(c->grad, 0, (size_t)c->count * sizeof(float));
}

const keel_kernel VECTOR_KERNEL(dense_narrow) = {
    .op = &keel_op_dense,
    .name = "narrow_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = vector_prepare,
    .narrow_tile = weights_tile,
    .tile_rows = TILE,
};
