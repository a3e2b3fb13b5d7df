/* dense on bfloat16 values, all three passes, by the products of _pairs_avx512_bf16.h:
 *
 *     forward   y  [n, K] = x  [n, C] W  [C, K] + b     pairs of channels
 *     backward  dx [n, C] = dy [n, K] Wt [K, C]         pairs of outputs
 *     weights   dW [C, K] = xt [C, n] dy [n, K]         pairs of places
 *
 * Weights are rounded to bfloat16 where they are packed: in a shared copy, made again after each
 * step. Where rows are one place and the copy would be large, each call packs panel by panel: that
 * costs a tenth of a call on 32 rows, and a large copy as much memory as half of the weights.
 *
 * Where a row is one place, pairs of places are those of the step, (0, 1), (2, 3) ..., also where a
 * cut goes between: one device and many give the same bits. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "ops/x86/_pairs_avx512_bf16.h"

KEEL_USES_OP(dense);

/* Shapes ------------------------------------------------------------------------------------- */

typedef struct dims {
    int64_t c, k, places; /* of one row of the output */
} dims;

static dims dims_of(const keel_node *n)
{
    const keel_shape *w = &n->weight[0].shape;
    return (dims){ w->dim[0], w->dim[1], keel_row_count(&n->out[0]) / w->dim[1] };
}

/* Prepare ------------------------------------------------------------------------------------ */

typedef struct packed {
    int64_t c, k;
} packed;

static void refresh(const keel_derived *d, const void *weight)
{
    const packed *s = d->plan;
    uint32_t *to = d->data;
    for (int64_t k = 0; k < s->k; k += PANEL) {
        const int64_t columns = s->k - k < PANEL ? s->k - k : PANEL;
        keel_pairs_pack_weights(to, weight, s->c, s->k, k, columns);
        to += (s->c + 1) / 2 * PANEL;
    }
}

static void refresh_turned(const keel_derived *d, const void *weight)
{
    const packed *s = d->plan;
    uint32_t *to = d->data;
    for (int64_t c = 0; c < s->c; c += PANEL) {
        const int64_t columns = s->c - c < PANEL ? s->c - c : PANEL;
        keel_pairs_pack_turned(to, weight, s->k, s->k, c, columns);
        to += (s->k + 1) / 2 * PANEL;
    }
}

static keel_status derive(keel_prepare *p, const dims *d, const keel_derived **got)
{
    const bool turned = p->pass == KEEL_BACKWARD;
    const int64_t inner = turned ? d->k : d->c, columns = turned ? d->c : d->k;
    packed *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packed){ d->c, d->k };
    /* not made by rows: on AMD a step of 64 rows took 2 % longer so */
    keel_derived want = { .bytes = (size_t)((inner + 1) / 2 * up(columns, LANES)) * 4,
                          .key = turned ? 0x5041495253205754 : 0x5041495253202057,
                          .refresh = turned ? refresh_turned : refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, got);
}

/* of a weight gradient: see weights_of and weights_kept */
enum { PAIRS = 128, X_MOST = 512, TILE_MOST = 64, KEPT_MOST = 512 << 10 };

/* Weights that have a shared copy whatever a row is: 8 MiB. */
enum { COPY_MOST = 4 << 20 };

/* Of dy packed for all tiles that a worker makes of a weight. */
static int64_t kept_bytes(int64_t pairs, int64_t k)
{
    return pairs * up(k, PANEL) * 4;
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        p->rows < 1 || p->pass > KEEL_WEIGHTS)
        return KEEL_EUNSUP;
    const dims d = dims_of(n);
    p->scratch = 0;
    p->plan = NULL;
    if (p->pass == KEEL_WEIGHTS) {
        const int64_t pairs = (p->rows + 1) / 2;
        p->scratch = kept_bytes(pairs < PAIRS ? pairs : PAIRS, d.k);
        if (p->scratch > KEPT_MOST) p->scratch = KEPT_MOST;
        if (p->scratch < PAIRS * (X_MOST + LANES + PANEL) * 4)
            p->scratch = PAIRS * (X_MOST + LANES + PANEL) * 4;
        if (p->weight_adds) p->scratch += d.c * d.k * (int64_t)sizeof(float);
        return KEEL_OK;
    }
    if (d.places > 1 || d.c * d.k <= COPY_MOST) {
        const keel_derived *got;
        KEEL_TRY(derive(p, &d, &got));
        p->plan = (void *)got;
    } else {
        p->scratch += ((p->pass == KEEL_BACKWARD ? d.k : d.c) + 1) / 2 * PANEL * 4;
    }
    return KEEL_OK;
}

/* Run ---------------------------------------------------------------------------------------- */

/* y [n, columns] = x [n, inner] times the weights, or their transpose. Some rows at a time, that
 * stay in the cache while the panels pass. */
static void product(const keel_call *c, const dims *d, int64_t n, const keel_bf16 *x, bool turned,
                    const float *start, keel_bf16 *y, bool adds, uint32_t *panel_of_call)
{
    const keel_derived *copy = c->plan;
    const int64_t inner = turned ? d->k : d->c, columns = turned ? d->c : d->k;
    const int64_t pairs = (inner + 1) / 2, fit = up((128 << 10) / inner, 12);
    const int64_t some = copy && fit < n ? fit : n;
    for (int64_t i = 0; i < n; i += some) {
        const uint32_t *w = copy ? copy->data : panel_of_call;
        for (int64_t k = 0; k < columns; k += PANEL) {
            const int64_t width = columns - k < PANEL ? columns - k : PANEL;
            if (!copy && turned)
                keel_pairs_pack_turned(panel_of_call, c->weight[0], d->k, d->k, k, width);
            if (!copy && !turned)
                keel_pairs_pack_weights(panel_of_call, c->weight[0], d->c, d->k, k, width);
            const keel_pairs p = { .a = (const char *)(x + i * inner),
                                   .a_row = inner * (int64_t)sizeof *x,
                                   .a_step = 2 * sizeof *x,
                                   .pairs = pairs,
                                   .n_tap = 1,
                                   .half = inner % 2,
                                   .w = w,
                                   .start = start ? start + k : NULL,
                                   .out = y + i * columns + k,
                                   .out_row = columns,
                                   .adds = adds };
            keel_pairs_multiply(&p, n - i < some ? n - i : some, width);
            if (copy) w += pairs * PANEL;
        }
    }
}

static void forward(const keel_call *c)
{
    const dims d = dims_of(c->node);
    product(c, &d, c->rows * d.places, c->in[0], false, c->node->n_weight > 1 ? c->weight[1] : NULL,
            c->out[0], false, c->scratch);
}

static void backward(const keel_call *c)
{
    const dims d = dims_of(c->node);
    if (!c->in_grad[0]) return;
    product(c, &d, c->rows * d.places, c->out_grad[0], true, NULL, c->in_grad[0], c->in_adds[0],
            c->scratch);
}

/* Weight gradients --------------------------------------------------------------------------- */

typedef struct cursor { /* places one after the other, through all spans */
    const keel_span *span, *end;
    int64_t at;
} cursor;

/* The next places, 2 PAIRS of them at most; NULL behind the last. Returns how many pairs. */
static int64_t next_pairs(cursor *u, int64_t n_x, int64_t n_dy, const keel_bf16 **x,
                          const keel_bf16 **dy)
{
    int64_t n = 0;
    while (n < 2 * PAIRS && u->span < u->end) {
        if (u->at == u->span->rows) {
            u->span++;
            u->at = 0;
            continue;
        }
        x[n] = (const keel_bf16 *)u->span->in + u->at * n_x;
        dy[n++] = (const keel_bf16 *)u->span->out_grad + u->at++ * n_dy;
    }
    if (n % 2) x[n] = dy[n] = NULL;
    return (n + 1) / 2;
}

/* Channels [first, first + count) of dW, from all places of the spans: pairs of both operands are
 * packed for as many places, channels and columns as the caches hold. x_pairs [PAIRS, most, a line
 * between rows for else they would share a set of the cache], dy_pairs [PAIRS, PANEL]. */
static void weights_of(const keel_span *span, int n_span, const dims *d, int64_t first,
                       int64_t count, float *dw, uint32_t *x_pairs, int64_t most,
                       uint32_t *dy_pairs)
{
    const keel_bf16 *x[2 * PAIRS + 1], *dy[2 * PAIRS + 1];
    const int64_t x_row = most + LANES;
    for (int64_t c = 0; c < count; c += most) {
        const int64_t n_c = count - c < most ? count - c : most;
        cursor u = { span, span + n_span, 0 };
        bool goes_on = false;
        for (int64_t pairs; (pairs = next_pairs(&u, d->c, d->k, x, dy)) > 0; goes_on = true) {
            for (int64_t i = 0; i < pairs; i++)
                keel_pairs_pack_values(x_pairs + i * x_row, x[2 * i] + first + c,
                                       x[2 * i + 1] ? x[2 * i + 1] + first + c : NULL, n_c);
            for (int64_t k = 0; k < d->k; k += PANEL) {
                const int64_t width = d->k - k < PANEL ? d->k - k : PANEL;
                for (int64_t i = 0; i < pairs; i++)
                    keel_pairs_pack_values(dy_pairs + i * up(width, LANES), dy[2 * i] + k,
                                           dy[2 * i + 1] ? dy[2 * i + 1] + k : NULL, width);
                const keel_pairs p = { .a = (const char *)x_pairs,
                                       .a_row = sizeof *x_pairs,
                                       .a_step = x_row * (int64_t)sizeof *x_pairs,
                                       .pairs = pairs,
                                       .n_tap = 1,
                                       .w = dy_pairs,
                                       .out = dw + c * d->k + k,
                                       .out_row = d->k,
                                       .wide = true,
                                       .adds = goes_on };
                keel_pairs_multiply(&p, n_c, width);
            }
        }
    }
}

static void weights(const keel_call *c)
{
    const dims d = dims_of(c->node);
    uint32_t *const x_pairs = c->scratch;
    const keel_span all = { c->in[0], c->out_grad[0], c->rows * d.places };
    float *const apart = (float *)(x_pairs + PAIRS * (X_MOST + LANES + PANEL));
    float *dw = c->weight_grad[0], *db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    if (dw)
        weights_of(&all, 1, &d, 0, d.c, c->weight_adds ? apart : dw, x_pairs, X_MOST,
                   x_pairs + PAIRS * (X_MOST + LANES));
    if (dw && c->weight_adds) keel_pairs_add(dw, apart, d.c * d.k);
    if (db) keel_pairs_sum(&all, 1, d.k, 0, d.k, db, c->weight_adds);
}

/* weights_of where all pairs fit: dy stays packed from tile to tile, [panel][pairs][PANEL], and
 * what is moved next is asked for. */
static void weights_kept(const keel_tile_call *c, const dims *d, uint32_t *x_pairs)
{
    const keel_bf16 *x[2 * PAIRS + 1], *dy[2 * PAIRS + 1];
    const int64_t first = c->first / d->k, count = c->count / d->k, x_row = TILE_MOST + LANES;
    cursor u = { c->span, c->span + c->n_span, 0 };
    const int64_t pairs = next_pairs(&u, d->c, d->k, x, dy);
    keel_pairs_ahead prefetch = { { NULL }, { NULL } };
    for (int i = 0; i < c->n_prefetch && i < 2; i++) {
        prefetch.at[i] = c->prefetch[i];
        prefetch.end[i] = prefetch.at[i] + c->count * (int64_t)sizeof(float);
    }
    for (int64_t at = 0; at < count; at += TILE_MOST) {
        const int64_t n_c = count - at < TILE_MOST ? count - at : TILE_MOST;
        for (int64_t i = 0; i < pairs; i++)
            keel_pairs_pack_values(x_pairs + i * x_row, x[2 * i] + first + at,
                                   x[2 * i + 1] ? x[2 * i + 1] + first + at : NULL, n_c);
        uint32_t *kept = c->scratch;
        for (int64_t k = 0; k < d->k; k += PANEL, kept += pairs * PANEL) {
            const int64_t width = d->k - k < PANEL ? d->k - k : PANEL;
            for (int64_t i = 0; i < pairs && !c->scratch_ready && at == 0; i++)
                keel_pairs_pack_values(kept + i * up(width, LANES), dy[2 * i] + k,
                                       dy[2 * i + 1] ? dy[2 * i + 1] + k : NULL, width);
            const keel_pairs p = { .a = (const char *)x_pairs,
                                   .a_row = sizeof *x_pairs,
                                   .a_step = x_row * (int64_t)sizeof *x_pairs,
                                   .pairs = pairs,
                                   .n_tap = 1,
                                   .prefetch = &prefetch,
                                   .w = kept,
                                   .out = (float *)c->grad + at * d->k + k,
                                   .out_row = d->k,
                                   .wide = true };
            keel_pairs_multiply(&p, n_c, width);
        }
    }
}

static void tile(const keel_tile_call *c)
{
    const dims d = dims_of(c->node);
    _Alignas(64) uint32_t x_pairs[PAIRS * (TILE_MOST + LANES)], dy_pairs[PAIRS * PANEL];
    int64_t rows = 0;
    if (c->weight != 0) {
        keel_pairs_sum(c->span, c->n_span, d.k, c->first, c->count, c->grad, false);
        return;
    }
    for (int i = 0; i < c->n_span; i++) rows += c->span[i].rows;
    if ((rows + 1) / 2 <= PAIRS && kept_bytes((rows + 1) / 2, d.k) <= KEPT_MOST)
        weights_kept(c, &d, x_pairs);
    else
        weights_of(c->span, c->n_span, &d, c->first / d.k, c->count / d.k, c->grad, x_pairs,
                   TILE_MOST, dy_pairs);
}

const keel_kernel keel_kernel_dense_avx512_bf16 = {
    .op = &keel_op_dense,
    .name = "avx512_bf16",
    .needs = KEEL_CPU_AVX512_BF16,
    .priority = KEEL_PRIORITY_PAIRS,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .narrow_tile = tile,
};
