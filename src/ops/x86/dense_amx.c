/* dense on bfloat16 values by the tiles of AMX, for rows of one place:
 *
 *     forward   y  [n, K] = x  [n, C] W  [C, K] + b
 *     backward  dx [n, C] = dy [n, K] Wt [K, C]
 *     weights   dW [C, K] = xt [C, n] dy [n, K]     a tile of it, over everybody's rows
 *
 * See _tile_blocks.h and _tile_operands.h. */
#include "ops/x86/_tile_operands.h"

KEEL_USES_OP(dense);

/* CHUNK: rows of a step whose dy is packed at a time, fewer where there are many outputs
 * (chunk_of). */
enum { CHUNK = 512, KEPT_MOST = 1 << 20 };

/* ---- forward and backward -------------------------------------------------------------------- */

static void forward(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    const float *const bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    product(c->in[0], c->rows, w[0], c->plan, c->out[0], w[1], bias, false, c->scratch);
}

static void backward(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    if (c->in_grad[0])
        product(c->out_grad[0], c->rows, w[1], c->plan, c->in_grad[0], w[0], NULL, c->in_adds[0],
                c->scratch);
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* Rows whose packed dy fits: no number depends on more than K, so that no bit does. */
static int64_t chunk_of(int64_t n_k)
{
    const int64_t fit = KEPT_MOST / (blocks(n_k) * STEP_HALVES * (int64_t)sizeof(uint16_t)) * SIDE;
    return fit < SIDE ? SIDE : at_most(fit, CHUNK);
}

static int64_t kept_halves(int64_t rows, int64_t n_k)
{
    return blocks(n_k) * blocks(rows) * STEP_HALVES;
}

typedef struct cursor { /* places one after the other, through all spans */
    const keel_span *span, *end;
    int64_t at;
} cursor;

/* The next places, at most `limit`; returns how many. */
static int64_t next_places(cursor *u, int64_t n_c, int64_t n_k, int64_t limit, const keel_bf16 **x,
                           const keel_bf16 **dy)
{
    int64_t n = 0;
    while (n < limit && u->span < u->end) {
        if (u->at == u->span->rows) {
            u->span++;
            u->at = 0;
            continue;
        }
        x[n] = (const keel_bf16 *)u->span->in + u->at * n_c;
        dy[n++] = (const keel_bf16 *)u->span->out_grad + u->at++ * n_k;
    }
    return n;
}

/* The tile's sums of one chunk of places, whose dy is packed. */
INLINE void add_chunk(const keel_tile_call *c, const keel_bf16 *const *x, int64_t n,
                      const uint16_t *kept, keel_bf16 *turned, bool adds, const ending end)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    const int64_t first = c->first / n_k, count = c->count / n_k, steps = blocks(n);
    line l;
    line_begin(&l);
    for (int64_t i = 0; i < count; i += SIDE) {
        const left a = left_rows(turned, steps * SIDE, SIDE);
        turn_x(turned, steps * SIDE, x, n, n_c, first + i);
        for (int64_t k = 0; k < n_k; k += SIDE) {
            place where = { .rows = at_most(count - i, SIDE),
                            .columns = at_most(n_k - k, SIDE),
                            .apart = n_k,
                            .gradient = (float *)c->grad + i * n_k + k,
                            .adds = adds };
            if (end == MOVE) {
                where.move = *c->move;
                where.move.w += i * n_k + k;
                where.move.m += i * n_k + k;
            }
            line_block(&l, &a, kept + k / SIDE * steps * STEP_HALVES, steps, &where, end);
        }
    }
    line_end(&l, end);
}

static void kernel_tile(const keel_tile_call *c)
{
    const keel_bf16 *x[CHUNK], *dy[CHUNK];
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    const int64_t chunk = chunk_of(n_k);
    int64_t rows = 0;
    for (int i = 0; i < c->n_span; i++) rows += c->span[i].rows;
    uint16_t *const kept = c->scratch;
    keel_bf16 *const turned = kept + kept_halves(at_most(rows, chunk), n_k);
    cursor u = { c->span, c->span + c->n_span, 0 };
    bool adds = false;
    for (int64_t n; (n = next_places(&u, n_c, n_k, chunk, x, dy)) > 0; adds = true) {
        if (rows > chunk || !c->scratch_ready) pack_dy(kept, dy, n, 0, n_k);
        if (c->move && rows <= chunk)
            add_chunk(c, x, n, kept, turned, false, MOVE);
        else
            add_chunk(c, x, n, kept, turned, adds, GRADIENT);
    }
    if (c->move && rows <= chunk) c->move->moved = true;
}
static void weights_tile(const keel_tile_call *c)
{
    if (c->weight != 0)
        sum_places(c->span, c->n_span, c->node->weight[0].shape.dim[1], c->first, c->count, c->grad,
                   false);
    else
        kernel_tile(c);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    const int64_t *w = n->weight[0].shape.dim;
    const keel_derived *got;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        n->in[0].shape.rank != 1 || p->rows < 1 || p->pass > KEEL_WEIGHTS)
        return KEEL_EUNSUP; /* rows of many places are left to oneDNN */
    if (p->pass == KEEL_WEIGHTS) {
        const int64_t rows = at_most(p->rows, chunk_of(w[1]));
        p->scratch =
            (kept_halves(rows, w[1]) + SIDE * SIDE * blocks(rows)) * (int64_t)sizeof(uint16_t);
        return KEEL_OK;
    }
    const packer copy = {
        .c = w[0], .k = w[1], .turned = p->pass == KEEL_BACKWARD, .n_class = 1, .n_tap = { 1 }
    };
    p->scratch = product_scratch(w[p->pass == KEEL_BACKWARD]);
    KEEL_TRY(derive_weights(p, &copy, &got));
    p->plan = (void *)got;
    return KEEL_OK;
}

const keel_kernel keel_kernel_dense_amx = {
    .op = &keel_op_dense,
    .name = "amx",
    .needs = TILES_NEED,
    .priority = KEEL_PRIORITY_OWN_TILES,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
    .narrow_tile = weights_tile,
    .tile_rows = SIDE,
};
