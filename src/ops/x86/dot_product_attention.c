/* Attention by blocks of QUERIES queries.
 *
 * Forward takes all keys at once: the scores of a block of queries, QUERIES x S, stay in cache
 * while their softmax is worked out and while they weigh the values. Keys, turned, and values are
 * packed once for all queries of a head. Backward works out the scores again; it takes a block of
 * keys after another, and for each all queries, so that the gradients of a block of keys stay in
 * cache. What causal attention or a window hides is not computed: products leave out keys that none
 * of a few queries sees. All is float32 in scratch, rows widened to whole vectors; heads are copied
 * together. Where values are bfloat16, products may round weights and their gradients
 * (_rounded.h); scores are scaled behind the product then, so that queries need no rounding. */
#ifndef VALUE
#include "ops/infer.h"
#include "ops/x86/_attention_products.h"
#include "ops/x86/_philox.h"
#include "ops/x86/_pointwise.h"

enum { QUERY, KEY, VALUES, MASKS, MASKS_MAX = 8 };

static keel_attention_dims dims_of(const keel_node *n)
{
    return keel_attention_dims_of(&n->in[QUERY].shape, &n->in[KEY].shape, &n->in[VALUES].shape);
}

static keel_status prepare(keel_prepare *p)
{
    floats f = { 0 };
    KEEL_TRY(vector_prepare(p));
    const keel_attention_dims d = dims_of(p->node);
    if (p->node->n_in > MASKS + MASKS_MAX || d.s > INT32_MAX - PANEL) return KEEL_EUNSUP;
    room_in(&f, p->node, &d, p->pass == KEEL_BACKWARD);
    p->scratch = f.count * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* Which of the weights of query i are kept: a byte for each key from first[i] on. */
static const uint8_t *draw(const keel_call *c, const keel_attention_dims *d, const query_block *b,
                           int64_t i, uint8_t *kept)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    const uint32_t first = (uint32_t)((b->head * d->t + b->t + i) * d->s + b->j + b->first[i]);
    philox_mask(kept, &chance, c->step->first_row + (uint64_t)(c->row + b->row), first / 4,
                b->end[i] - b->first[i] + first % 4, a->rate);
    return kept + first % 4;
}

/* What weights that are kept are multiplied by. */
static vf kept_scale(const keel_node *n)
{
    const keel_dot_product_attention_args *a = n->args;
    return vf_set((float)(a->rate < 1 ? 1 / (1 - a->rate) : 0));
}

static vf drop(vm m, const uint8_t *kept, vf w, vf scale)
{
    return vf_choose(vi_greater(vi_load_bytes(m, kept), vi_set(0)), vf_mul(w, scale), vf_zero());
}

static bool drops(const keel_call *c)
{
    const keel_dot_product_attention_args *a = c->node->args;
    return c->node->training && a->rate > 0;
}

/* What a line that sees nothing takes from every value. */
static float blind_share(const keel_node *n, const keel_attention_dims *d)
{
    const keel_dot_product_attention_args *a = n->args;
    return a->seen.uniform ? 1 / (float)d->s : 0;
}

/* What scores are to be multiplied by: their queries are, unless a product rounds them. */
static float scale_of_scores(const keel_node *n)
{
    const keel_dot_product_attention_args *a = n->args;
    return keel_rounded_of(n) ? (float)a->scale : 1;
}

/* Scores of a query times `scale`, in place: exp(score - the largest), which is returned, and their
 * sum. */
static float soften(float *x, int64_t n, float scale, float *sum)
{
    const vf by = vf_set(scale);
    vf high = vf_set(-INFINITY), total = vf_zero();
    VECTOR_EACH(j, n, m, {
        const vf v = vf_mul(by, vf_load_some(m, x + j));
        high = vf_max(high, vf_choose(m, v, vf_set(-INFINITY)));
    });
    const float largest = vf_largest(high);
    const vf shift = vf_set(largest > -INFINITY ? -largest : 0);
    VECTOR_EACH(j, n, m, {
        const vf e = exponential(vf_fma(by, vf_load_some(m, x + j), shift));
        const vf added = vf_choose(m, e, vf_zero());
        total = vf_add(total, added);
        vf_store_some(m, x + j, e);
    });
    *sum = vf_sum(total);
    return largest;
}

#define VALUE_FILE "ops/x86/dot_product_attention.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(dot_product_attention, prepare);
#else
/* Lines that lie `stride` apart, times `scale`, `wide` apart and filled up to whole vectors. */
static void VALUE_(pack)(float *to, int64_t wide, const VALUE *from, int64_t lines, int64_t width,
                         int64_t stride, float scale)
{
    const vf by = vf_set(scale);
    for (int64_t i = 0; i < lines; i++)
        VECTOR_EACH(
            e, width, m,
            vf_store(to + i * wide + e, vf_mul(by, vx_load_some(m, from + i * stride + e))));
}

static void VALUE_(unpack)(VALUE *to, const float *from, int64_t lines, int64_t width, int64_t wide,
                           int64_t stride, float scale, bool adds)
{
    const vf by = vf_set(scale);
    for (int64_t i = 0; i < lines; i++)
        VECTOR_EACH(e, width, m, {
            vf v = vf_mul(by, vf_load_some(m, from + i * wide + e));
            if (adds) v = vf_add(v, vx_load_some(m, to + i * stride + e));
            vx_store_some(m, to + i * stride + e, v);
        });
}

/* The masks of one head: each has a number for a key, or one for all. */
typedef struct VALUE_(masks) {
    int n;
    struct {
        const VALUE *at; /* of query 0 */
        int64_t step;    /* to the next query */
        bool each;
    } mask[MASKS_MAX];
} VALUE_(masks);

static VALUE_(masks)
    VALUE_(masks_of)(const keel_call *c, const keel_attention_dims *d, int64_t row, int64_t head)
{
    const keel_node *n = c->node;
    const int64_t line = head * d->t;
    VALUE_(masks) out = { .n = n->n_in - MASKS };
    for (int k = 0; k < out.n; k++) {
        const keel_shape *s = &n->in[MASKS + k].shape;
        const int64_t at = keel_spread_index(&d->scores, s, line * d->s);
        out.mask[k].at = (const VALUE *)c->in[MASKS + k] + row * keel_shape_count(s) + at;
        out.mask[k].each = s->dim[s->rank - 1] > 1;
        if (d->t > 1) out.mask[k].step = keel_spread_index(&d->scores, s, (line + 1) * d->s) - at;
    }
    return out;
}

/* Lowers the scores of query i that it does not see, within its range, and then scales all, so that
 * *scale becomes 1. Whether it sees any. */
static bool VALUE_(hide)(const keel_call *c, const keel_attention_dims *d, const query_block *b,
                         const VALUE_(masks) * masks, int64_t i, float *x, float *scale)
{
    static const int32_t lane[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const keel_dot_product_attention_args *a = c->node->args;
    const vf half = vf_set(0.5f), less = vf_set((float)a->less), by = vf_set(*scale);
    const int64_t from = b->j + b->first[i], t = b->t + i;
    int64_t first, end;
    bool any = a->less > 0;
    if (!masks->n && !any) return b->first[i] < b->end[i];
    keel_seen_range(&a->seen, t, d->s, &first, &end);
    x += b->first[i];
    VECTOR_EACH(j, b->end[i] - b->first[i], m, {
        const vi at = vi_add(vi_set((int32_t)(from + j)), vi_load(lane));
        vm seen = vm_and(m, vm_and(vi_greater(at, vi_set((int32_t)first - 1)),
                                   vi_greater(vi_set((int32_t)end), at)));
        for (int k = 0; k < masks->n; k++) {
            const VALUE *mask = masks->mask[k].at + t * masks->mask[k].step;
            const vm one = vm_first(1);
            if (masks->mask[k].each)
                seen = vm_and(seen, vf_greater(vx_load_some(m, mask + from + j), half));
            else if (!vm_any(vm_and(one, vf_greater(vx_load_some(one, mask), half))))
                seen = vm_first(0);
        }
        const vf v = vf_mul(by, vf_load_some(m, x + j));
        const vf low = a->less > 0 ? vf_sub(v, less) : vf_set(-INFINITY);
        vf_store_some(m, x + j, vf_choose(seen, v, low));
        any = any || vm_any(seen);
    });
    *scale = 1;
    return any;
}

/* Writes the output of query i of a block, which sees nothing. */
static void VALUE_(answer_blind)(const keel_call *c, const keel_attention_dims *d, const room *r,
                                 VALUE *y)
{
    const vf share = vf_set(blind_share(c->node, d));
    for (int64_t p = 0; p < d->v; p += r->columns) {
        const int64_t wide = least(r->columns, r->v - p);
        VECTOR_EACH(e, least(r->columns, d->v - p), m, {
            vf sum = vf_zero();
            for (int64_t j = 0; j < d->s; j++)
                sum = vf_fma(share, vf_load(r->v_in + p * d->s + j * wide + e), sum);
            vx_store_some(m, y + p + e, sum);
        });
    }
}

/* The output of a block of queries; keys and values are packed in r. */
static void VALUE_(attend)(const keel_call *c, const keel_attention_dims *d, const room *r,
                           query_block *b)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const int64_t o = b->row * d->outer + b->head / d->heads, h = b->head % d->heads;
    const int64_t at = (o * d->t + b->t) * d->heads + h, line = b->head * d->t + b->t;
    const VALUE_(masks) masks = VALUE_(masks_of)(c, d, b->row, b->head);
    float *const saved =
        c->node->n_saved ? (float *)c->saved[0] + (b->row * d->lines + line) * 2 : NULL;
    VALUE *const y = (VALUE *)c->out[0] + at * d->v;
    float share[QUERIES];
    VALUE_(pack)
    (r->q, r->d, (const VALUE *)c->in[QUERY] + at * d->d, b->n, d->d, d->heads * d->d,
     r->by ? 1 : (float)a->scale);
    look(c->node, d, b);
    make_scores(r, b, r->q, r->kt, d->d, r->d, r->x);
    for (int64_t i = 0; i < b->n; i++) {
        float *const x = r->x + i * r->x_row, *const seen = x + b->first[i];
        const int64_t n = b->end[i] - b->first[i];
        float scale_left = scale_of_scores(c->node), sum;
        const bool any = VALUE_(hide)(c, d, b, &masks, i, x, &scale_left);
        const float most = soften(seen, n, scale_left, &sum);
        share[i] = any ? 1 / sum : 0;
        if (saved) {
            saved[2 * i] = any ? most : 0;
            saved[2 * i + 1] = share[i];
        }
        if (drops(c)) {
            const uint8_t *kept = draw(c, d, b, i, r->kept);
            const vf scale = kept_scale(c->node);
            VECTOR_EACH(j, n, m, {
                const vf w = drop(m, kept + j, vf_load_some(m, seen + j), scale);
                vf_store_some(m, seen + j, w);
            });
        }
        clear_beside(r, b, i, x);
    }
    for (int64_t p = 0; p < r->v; p += r->columns)
        weigh_keys(r, b, r->x, r->by ? (void *)r->lines : r->v_in + p * d->s,
                   least(r->columns, r->v - p), r->y + p, r->v, false);
    for (int64_t i = 0; i < b->n; i++) {
        VALUE *const to = y + i * d->heads * d->v;
        if (share[i] == 0)
            VALUE_(answer_blind)(c, d, r, to);
        else
            VALUE_(unpack)(to, r->y + i * r->v, 1, d->v, 0, 0, share[i], false);
    }
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_attention_dims d = dims_of(c->node);
    const int64_t group = d.heads / d.shared;
    const room r = room_in(&(floats){ .next = c->scratch }, c->node, &d, false);
    for (int64_t all = 0; all < c->rows * d.outer * d.shared; all++) {
        const int64_t o = all / d.shared, from = o * d.s * d.shared + all % d.shared;
        const VALUE *k = (const VALUE *)c->in[KEY] + from * d.d;
        const VALUE *v = (const VALUE *)c->in[VALUES] + from * d.v;
        for (int64_t j = 0; j < d.s; j += r.panel) {
            const int64_t n = least(r.panel, d.s - j);
            const int64_t at = r.by ? r.by->words(r.d, j) : j * r.d;
            VALUE_(pack)(r.k, r.d, k + j * d.shared * d.d, n, d.d, d.shared * d.d, 1);
            turn(&r, r.kt + at, r.k, n, r.d);
        }
        for (int64_t p = 0; p < d.v; p += r.columns) VALUE_(pack)
        (r.v_in + p * d.s, least(r.columns, r.v - p), v + p, d.s, least(r.columns, d.v - p),
         d.shared * d.v, 1);
        if (r.by) r.by->pack(r.lines, r.v_in, r.v, d.s, r.v);
        for (int64_t h = 0; h < group; h++)
            for (int64_t t = 0; t < d.t; t += QUERIES) {
                query_block b = { .row = o / d.outer,
                                  .head = o % d.outer * d.heads + all % d.shared * group + h,
                                  .t = t,
                                  .n = least(QUERIES, d.t - t),
                                  .keys = d.s };
                VALUE_(attend)(c, &d, &r, &b);
            }
    }
}

/* The gradients of a block: adds to those of its keys and values in r, and to dq [n, D]. */
static void VALUE_(block_backward)(const keel_call *c, const keel_attention_dims *d, const room *r,
                                   const query_block *b, const float *mean, float *dq)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const int64_t o = b->row * d->outer + b->head / d->heads, h = b->head % d->heads;
    const int64_t at = (o * d->t + b->t) * d->heads + h, line = b->head * d->t + b->t;
    const VALUE_(masks) masks = VALUE_(masks_of)(c, d, b->row, b->head);
    const float *const saved = (const float *)c->saved[0] + (b->row * d->lines + line) * 2;
    const vf scale = kept_scale(c->node);
    VALUE_(pack)
    (r->q, r->d, (const VALUE *)c->in[QUERY] + at * d->d, b->n, d->d, d->heads * d->d,
     r->by ? 1 : (float)a->scale);
    VALUE_(pack)
    (r->y, r->v, (const VALUE *)c->out_grad[0] + at * d->v, b->n, d->v, d->heads * d->v, 1);
    make_scores(r, b, r->q, r->kt, d->d, r->d, r->x);
    make_scores(r, b, r->y, r->vt, d->v, r->v, r->dx);
    for (int64_t i = 0; i < b->n; i++) {
        float *x = r->x + i * r->x_row, *dx = r->dx + i * r->x_row;
        const int64_t n = b->end[i] - b->first[i];
        const vf less = vf_set(-saved[2 * i]), share = vf_set(saved[2 * i + 1]);
        float scale_left = scale_of_scores(c->node);
        VALUE_(hide)(c, d, b, &masks, i, x, &scale_left);
        const vf by = vf_set(scale_left);
        clear_beside(r, b, i, x);
        clear_beside(r, b, i, dx);
        x += b->first[i];
        dx += b->first[i];
        const uint8_t *kept = drops(c) ? draw(c, d, b, i, r->kept) : NULL;
        vf total = vf_zero();
        VECTOR_EACH(j, n, m, {
            const vf e = exponential(vf_fma(by, vf_load_some(m, x + j), less));
            const vf w = vf_mul(e, share), left = kept ? drop(m, kept + j, w, scale) : w;
            const vf g = vf_choose(m, vf_mul(left, vf_load_some(m, dx + j)), vf_zero());
            total = vf_add(total, g);
            vf_store_some(m, x + j, left);
            vf_store_some(m, r->w + j, w);
            vf_store_some(m, dx + j, g);
        });
        const vf sum = vf_set(b->keys == d->s ? -vf_sum(total) : -mean[i]);
        VECTOR_EACH(j, n, m, {
            const vf w = vf_load_some(m, r->w + j);
            vf_store_some(m, dx + j, vf_fma(w, sum, vf_load_some(m, dx + j)));
        });
    }
    if (c->in_grad[VALUES]) add_queries(r, b, r->x, r->y, r->v, r->dv);
    if (c->in_grad[KEY]) add_queries(r, b, r->dx, r->q, r->d, r->dk);
    if (c->in_grad[QUERY])
        weigh_keys(r, b, r->dx, r->by ? (void *)r->lines : r->k, r->d, dq, r->d, true);
}

/* sum(y g) of all queries of the heads that share key `shared` of row and place o, where no block
 * has all of a line, and what every value gets from those that see nothing. */
static void VALUE_(means)(const keel_call *c, const keel_attention_dims *d, const room *r,
                          int64_t o, int64_t shared)
{
    const int64_t group = d->heads / d->shared;
    const vf blind = vf_set(blind_share(c->node, d));
    clear(r->all, r->v);
    for (int64_t i = 0; i < group * d->t; i++) {
        const int64_t h = shared * group + i / d->t, t = i % d->t;
        const int64_t at = ((o * d->t + t) * d->heads + h) * d->v;
        const VALUE *y = (const VALUE *)c->out[0] + at, *g = (const VALUE *)c->out_grad[0] + at;
        const float *saved = (const float *)c->saved[0] + ((o * d->heads + h) * d->t + t) * 2;
        vf sum = vf_zero();
        if (d->s > r->keys)
            VECTOR_EACH(e, d->v, m,
                        sum = vf_fma(vx_load_some(m, y + e), vx_load_some(m, g + e), sum));
        r->mean[i] = vf_sum(sum);
        if (saved[1] > 0) continue;
        VECTOR_EACH(e, d->v, m, {
            const vf more = vf_fma(blind, vx_load_some(m, g + e), vf_load_some(m, r->all + e));
            vf_store_some(m, r->all + e, more);
        });
    }
}

/* The gradients of one head of keys and values, and of the queries that share it. */
static void VALUE_(backward_shared)(const keel_call *c, const keel_attention_dims *d, const room *r,
                                    int64_t o, int64_t shared)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const int64_t group = d->heads / d->shared, from = o * d->s * d->shared + shared;
    const int64_t k_step = d->shared * d->d, v_step = d->shared * d->v;
    VALUE_(means)(c, d, r, o, shared);
    clear(r->dq, group * d->t * r->d);
    for (int64_t j = 0; j < d->s; j += r->keys) {
        const int64_t k_at = from * d->d + j * k_step, v_at = from * d->v + j * v_step;
        query_block b = { .row = o / d->outer, .j = j, .keys = least(r->keys, d->s - j) };
        VALUE_(pack)(r->k, r->d, (const VALUE *)c->in[KEY] + k_at, b.keys, d->d, k_step, 1);
        VALUE_(pack)(r->v_in, r->v, (const VALUE *)c->in[VALUES] + v_at, b.keys, d->v, v_step, 1);
        turn(r, r->kt, r->k, b.keys, r->d);
        turn(r, r->vt, r->v_in, b.keys, r->v);
        if (r->by) r->by->pack(r->lines, r->k, r->d, b.keys, r->d);
        clear(r->dk, b.keys * r->d);
        for (int64_t i = 0; i < b.keys; i++)
            memcpy(r->dv + i * r->v, r->all, (size_t)r->v * sizeof(float));
        for (int64_t i = 0; i < group; i++)
            for (b.t = 0; b.t < d->t; b.t += QUERIES) {
                const int64_t line = i * d->t + b.t;
                b.n = least(QUERIES, d->t - b.t);
                b.head = o % d->outer * d->heads + shared * group + i;
                if (look(c->node, d, &b))
                    VALUE_(block_backward)(c, d, r, &b, r->mean + line, r->dq + line * r->d);
            }
        if (c->in_grad[KEY]) VALUE_(unpack)
        ((VALUE *)c->in_grad[KEY] + k_at, r->dk, b.keys, d->d, r->d, k_step,
         scale_of_scores(c->node), c->in_adds[KEY]);
        if (c->in_grad[VALUES]) VALUE_(unpack)
        ((VALUE *)c->in_grad[VALUES] + v_at, r->dv, b.keys, d->v, r->v, v_step, 1,
         c->in_adds[VALUES]);
    }
    for (int64_t i = 0; c->in_grad[QUERY] && i < group; i++) VALUE_(unpack)
    ((VALUE *)c->in_grad[QUERY] + (o * d->t * d->heads + shared * group + i) * d->d,
     r->dq + i * d->t * r->d, d->t, d->d, r->d, d->heads * d->d, (float)a->scale,
     c->in_adds[QUERY]);
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_attention_dims d = dims_of(n);
    const room r = room_in(&(floats){ .next = c->scratch }, n, &d, true);
    for (int64_t all = 0; all < c->rows * d.outer * d.shared; all++)
        VALUE_(backward_shared)(c, &d, &r, all / d.shared, all % d.shared);
    for (int k = MASKS; k < n->n_in; k++)
        if (c->in_grad[k] && !c->in_adds[k])
            memset(c->in_grad[k], 0, (size_t)(c->rows * keel_row_count(&n->in[k])) * sizeof(VALUE));
}
#endif
