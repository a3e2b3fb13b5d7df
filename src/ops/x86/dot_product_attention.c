/* Attention by blocks of QUERIES x KEYS scores, which stay in cache.
 *
 * Forward takes the keys block by block with an online softmax (Milakov, Gimelshein 2018): for each
 * query the largest score so far, the sum of exponentials and of values, which are scaled whenever
 * a larger score comes. Backward works out the scores of a block again; it takes the keys one block
 * after another, and for each all queries. Blocks that no query sees are left out. All is float32
 * in scratch; heads are copied together. */
#ifndef VALUE
#include "ops/dot_product_attention.h"
#include "ops/infer.h"
#include "ops/x86/_philox.h"
#include "ops/x86/_pointwise.h"
#include "ops/x86/_product.h"

enum { QUERY, KEY, VALUES, MASKS };
enum { QUERIES = 48, KEYS = 96, MASKS_MAX = 8 };

static keel_attention_dims dims_of(const keel_node *n)
{
    return keel_attention_dims_of(&n->in[QUERY].shape, &n->in[KEY].shape, &n->in[VALUES].shape);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Parts of scratch; NULL at first, to count what is needed. */
typedef struct floats {
    float *next;
    int64_t count;
} floats;

static float *take(floats *f, int64_t n)
{
    float *const part = f->next ? f->next + f->count : NULL;
    f->count += (n + LANES - 1) / LANES * LANES;
    return part;
}

typedef struct room {
    float *q;      /* [QUERIES, D] a block of queries, scaled */
    float *x;      /* [QUERIES, KEYS] scores, then weights */
    float *k, *kt; /* [KEYS, D] a block of keys; transposed, forward: all of them, block by block */
    float *v;      /* [KEYS, V]; forward: all */
    uint8_t *kept; /* a line of a block: what dropout keeps */
    /* forward */
    float *y;          /* [QUERIES, V] */
    float *most, *sum; /* [QUERIES] */
    /* backward */
    float *fallen;                /* [KEYS] what sum(y g) takes from the gradients of a line */
    float *vt, *dk, *dv, *g, *dx; /* as kt, k, v, y, x */
    float *dq;                    /* [group, T, D] of all heads that share a key */
    float *mean;                  /* [group, T] sum(y g) */
    float *all;                   /* [V] the gradient of every value, from queries that see none */
} room;

static room room_in(floats *f, const keel_attention_dims *d, bool backward)
{
    const int64_t keys = backward ? KEYS : d->s, group = d->heads / d->shared;
    room r = { .q = take(f, QUERIES * d->d), .x = take(f, QUERIES * KEYS) };
    r.k = take(f, KEYS * d->d);
    r.kt = take(f, keys * d->d);
    r.v = take(f, keys * d->v);
    r.kept = (uint8_t *)take(f, KEYS);
    r.most = take(f, QUERIES);
    r.sum = take(f, QUERIES);
    r.y = take(f, QUERIES * d->v);
    if (!backward) return r;
    r.fallen = take(f, KEYS);
    r.vt = take(f, KEYS * d->v);
    r.dk = take(f, KEYS * d->d);
    r.dv = take(f, KEYS * d->v);
    r.g = take(f, QUERIES * d->v);
    r.dx = take(f, QUERIES * KEYS);
    r.dq = take(f, group * d->t * d->d);
    r.mean = take(f, group * d->t);
    r.all = take(f, d->v);
    return r;
}

static keel_status prepare(keel_prepare *p)
{
    floats f = { 0 };
    KEEL_TRY(vector_prepare(p));
    const keel_attention_dims d = dims_of(p->node);
    if (p->node->n_in > MASKS + MASKS_MAX || d.s > INT32_MAX - LANES) return KEEL_EUNSUP;
    room_in(&f, &d, p->pass == KEEL_BACKWARD);
    p->scratch = f.count * (int64_t)sizeof(float);
    return KEEL_OK;
}

static void transpose(float *to, const float *from, int64_t lines, int64_t width)
{
    for (int64_t i = 0; i < lines; i++)
        for (int64_t e = 0; e < width; e++) to[e * lines + i] = from[i * width + e];
}

static void clear(float *to, int64_t n)
{
    memset(to, 0, (size_t)n * sizeof *to);
}

/* The keys that any query of [t, t + n) may see. */
static void range_of_block(const keel_node *node, const keel_attention_dims *d, int64_t t,
                           int64_t n, int64_t *first, int64_t *end)
{
    const keel_dot_product_attention_args *a = node->args;
    int64_t none;
    *first = 0;
    *end = d->s;
    if (a->less > 0) return;
    keel_seen_range(&a->seen, t, d->s, first, &none);
    keel_seen_range(&a->seen, t + n - 1, d->s, &none, end);
}

/* Where a block lies: of which row and head, from which query and key on. */
typedef struct place {
    int64_t row, head; /* head: of all in a row, outer heads */
    int64_t t, j, n;   /* n keys */
} place;

/* Drops the weights of query t + i of a block. */
static void drop(const keel_call *c, const keel_attention_dims *d, const place *p, int64_t i,
                 uint8_t *kept, float *w)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    const uint32_t draw = (uint32_t)((p->head * d->t + p->t + i) * d->s + p->j);
    const vf scale = vf_set((float)(a->rate < 1 ? 1 / (1 - a->rate) : 0));
    philox_mask(kept, &chance, c->step->first_row + (uint64_t)(c->row + p->row), draw / 4,
                p->n + draw % 4, a->rate);
    VECTOR_EACH(j, p->n, m, {
        const vm some = vi_greater(vi_load_bytes(m, kept + draw % 4 + j), vi_set(0));
        const vf v = vf_mul(vf_load_some(m, w + j), scale);
        vf_store_some(m, w + j, vf_choose(some, v, vf_zero()));
    });
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

/* One more block of scores of a query, in place: exp(score - the largest so far). */
static void soften(float *x, int64_t n, float *most, float *sum, float *y, int64_t size)
{
    vf high = vf_set(-INFINITY), total = vf_zero();
    VECTOR_EACH(j, n, m,
                high = vf_max(high, vf_choose(m, vf_load_some(m, x + j), vf_set(-INFINITY))));
    const float block = vf_largest(high), largest = block > *most ? block : *most;
    const vf shift = vf_set(largest > -INFINITY ? largest : 0);
    VECTOR_EACH(j, n, m, {
        const vf e = exponential(vf_sub(vf_load_some(m, x + j), shift));
        const vf added = vf_choose(m, e, vf_zero());
        total = vf_add(total, added);
        vf_store_some(m, x + j, e);
    });
    if (largest > *most) {
        float by[LANES];
        vf_store(by, exponential(vf_sub(vf_set(*most), shift)));
        const vf less = vf_set(by[0]);
        *sum *= by[0];
        VECTOR_EACH(e, size, m, vf_store_some(m, y + e, vf_mul(vf_load_some(m, y + e), less)));
    }
    *most = largest;
    *sum += vf_sum(total);
}

#define VALUE_FILE "ops/x86/dot_product_attention.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(dot_product_attention, prepare);
#else
/* Lines that lie `stride` apart, together and times `scale`. */
static void VALUE_(pack)(float *to, const VALUE *from, int64_t lines, int64_t width, int64_t stride,
                         float scale)
{
    const vf by = vf_set(scale);
    for (int64_t i = 0; i < lines; i++)
        VECTOR_EACH(e, width, m,
                    vf_store_some(m, to + i * width + e,
                                  vf_mul(by, vx_load_some(m, from + i * stride + e))));
}

static void VALUE_(unpack)(VALUE *to, const float *from, int64_t lines, int64_t width,
                           int64_t stride, float scale, bool adds)
{
    const vf by = vf_set(scale);
    for (int64_t i = 0; i < lines; i++)
        VECTOR_EACH(e, width, m, {
            vf v = vf_mul(by, vf_load_some(m, from + i * width + e));
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

/* Lowers the scores of query t + i that it does not see. Whether it sees any. */
static bool VALUE_(hide)(const keel_call *c, const keel_attention_dims *d, const place *p,
                         const VALUE_(masks) * masks, int64_t i, float *x)
{
    static const int32_t lane[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const keel_dot_product_attention_args *a = c->node->args;
    const vf half = vf_set(0.5f), less = vf_set((float)a->less);
    int64_t first, end;
    bool any = a->less > 0;
    keel_seen_range(&a->seen, p->t + i, d->s, &first, &end);
    if (!masks->n && first <= p->j && end >= p->j + p->n) return true;
    VECTOR_EACH(j, p->n, m, {
        const vi at = vi_add(vi_set((int32_t)(p->j + j)), vi_load(lane));
        vm seen = vm_and(m, vm_and(vi_greater(at, vi_set((int32_t)first - 1)),
                                   vi_greater(vi_set((int32_t)end), at)));
        for (int k = 0; k < masks->n; k++) {
            const VALUE *mask = masks->mask[k].at + (p->t + i) * masks->mask[k].step;
            const vm one = vm_first(1);
            if (masks->mask[k].each)
                seen = vm_and(seen, vf_greater(vx_load_some(m, mask + p->j + j), half));
            else if (!vm_any(vm_and(one, vf_greater(vx_load_some(one, mask), half))))
                seen = vm_first(0);
        }
        const vf v = vf_load_some(m, x + j);
        const vf low = a->less > 0 ? vf_sub(v, less) : vf_set(-INFINITY);
        vf_store_some(m, x + j, vf_choose(seen, v, low));
        any = any || vm_any(seen);
    });
    return any;
}

/* The output of n queries from p->t on; keys and values are packed in r. */
static void VALUE_(attend)(const keel_call *c, const keel_attention_dims *d, const room *r,
                           place *p, int64_t n)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const int64_t o = p->row * d->outer + p->head / d->heads, h = p->head % d->heads;
    const int64_t at = (o * d->t + p->t) * d->heads + h, line = p->head * d->t + p->t;
    const VALUE_(masks) masks = VALUE_(masks_of)(c, d, p->row, p->head);
    float *const saved =
        c->node->n_saved ? (float *)c->saved[0] + (p->row * d->lines + line) * 2 : NULL;
    VALUE *const y = (VALUE *)c->out[0] + at * d->v;
    bool any[QUERIES] = { false };
    int64_t first, end;
    VALUE_(pack)
    (r->q, (const VALUE *)c->in[QUERY] + at * d->d, n, d->d, d->heads * d->d, (float)a->scale);
    clear(r->y, n * d->v);
    clear(r->sum, n);
    for (int64_t i = 0; i < n; i++) r->most[i] = -INFINITY;
    range_of_block(c->node, d, p->t, n, &first, &end);
    for (p->j = first / KEYS * KEYS; p->j < end; p->j += KEYS) {
        p->n = least(KEYS, d->s - p->j);
        multiply(&(product){ .p = r->q,
                             .q = r->kt + p->j * d->d,
                             .p_row = d->d,
                             .p_step = 1,
                             .inner = d->d,
                             .rows = n,
                             .columns = p->n,
                             .out = r->x });
        for (int64_t i = 0; i < n; i++) {
            float *const x = r->x + i * p->n;
            any[i] |= VALUE_(hide)(c, d, p, &masks, i, x);
            soften(x, p->n, &r->most[i], &r->sum[i], r->y + i * d->v, d->v);
            if (drops(c)) drop(c, d, p, i, r->kept, x);
        }
        multiply(&(product){ .p = r->x,
                             .q = r->v + p->j * d->v,
                             .p_row = p->n,
                             .p_step = 1,
                             .inner = p->n,
                             .rows = n,
                             .columns = d->v,
                             .out = r->y,
                             .adds = true });
    }
    const vf blind = vf_set(blind_share(c->node, d));
    for (int64_t i = 0; i < n; i++) {
        const float share = any[i] ? 1 / r->sum[i] : 0;
        if (saved) {
            saved[2 * i] = any[i] ? r->most[i] : 0;
            saved[2 * i + 1] = share;
        }
        VALUE *const to = y + i * d->heads * d->v;
        if (any[i]) {
            VALUE_(unpack)(to, r->y + i * d->v, 1, d->v, 0, share, false);
            continue;
        }
        VECTOR_EACH(e, d->v, m, {
            vf sum = vf_zero();
            for (int64_t j = 0; j < d->s; j++)
                sum = vf_fma(blind, vf_load_some(m, r->v + j * d->v + e), sum);
            vx_store_some(m, to + e, sum);
        });
    }
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_attention_dims d = dims_of(c->node);
    const int64_t group = d.heads / d.shared;
    const room r = room_in(&(floats){ .next = c->scratch }, &d, false);
    for (int64_t all = 0; all < c->rows * d.outer * d.shared; all++) {
        const int64_t o = all / d.shared, from = o * d.s * d.shared + all % d.shared;
        const VALUE *k = (const VALUE *)c->in[KEY] + from * d.d;
        const VALUE *v = (const VALUE *)c->in[VALUES] + from * d.v;
        for (int64_t j = 0; j < d.s; j += KEYS) {
            const int64_t n = least(KEYS, d.s - j);
            VALUE_(pack)(r.k, k + j * d.shared * d.d, n, d.d, d.shared * d.d, 1);
            transpose(r.kt + j * d.d, r.k, n, d.d);
        }
        VALUE_(pack)(r.v, v, d.s, d.v, d.shared * d.v, 1);
        for (int64_t h = 0; h < group; h++)
            for (int64_t t = 0; t < d.t; t += QUERIES) {
                place p = { .row = o / d.outer,
                            .head = o % d.outer * d.heads + all % d.shared * group + h,
                            .t = t };
                VALUE_(attend)(c, &d, &r, &p, least(QUERIES, d.t - t));
            }
    }
}

/* The gradients of a block: adds to those of its keys and values in r, and to dq [n, D]. */
static void VALUE_(block_backward)(const keel_call *c, const keel_attention_dims *d, const room *r,
                                   const place *p, int64_t n, const float *mean, float *dq)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const int64_t o = p->row * d->outer + p->head / d->heads, h = p->head % d->heads;
    const int64_t at = (o * d->t + p->t) * d->heads + h, line = p->head * d->t + p->t;
    const VALUE_(masks) masks = VALUE_(masks_of)(c, d, p->row, p->head);
    const float *const saved = (const float *)c->saved[0] + (p->row * d->lines + line) * 2;
    VALUE_(pack)
    (r->q, (const VALUE *)c->in[QUERY] + at * d->d, n, d->d, d->heads * d->d, (float)a->scale);
    VALUE_(pack)(r->g, (const VALUE *)c->out_grad[0] + at * d->v, n, d->v, d->heads * d->v, 1);
    multiply(&(product){ .p = r->q,
                         .q = r->kt,
                         .p_row = d->d,
                         .p_step = 1,
                         .inner = d->d,
                         .rows = n,
                         .columns = p->n,
                         .out = r->x });
    multiply(&(product){ .p = r->g,
                         .q = r->vt,
                         .p_row = d->v,
                         .p_step = 1,
                         .inner = d->v,
                         .rows = n,
                         .columns = p->n,
                         .out = r->dx });
    for (int64_t i = 0; i < n; i++) {
        float *const x = r->x + i * p->n, *const dx = r->dx + i * p->n;
        const vf most = vf_set(saved[2 * i]), share = vf_set(saved[2 * i + 1]);
        const vf sum = vf_set(mean[i]);
        VALUE_(hide)(c, d, p, &masks, i, x);
        VECTOR_EACH(j, p->n, m, {
            const vf e = exponential(vf_sub(vf_load_some(m, x + j), most));
            vf_store_some(m, x + j, vf_mul(e, share));
        });
        if (!drops(c)) {
            VECTOR_EACH(j, p->n, m, {
                const vf g = vf_sub(vf_load_some(m, dx + j), sum);
                vf_store_some(m, dx + j, vf_mul(vf_load_some(m, x + j), g));
            });
            continue;
        }
        VECTOR_EACH(j, p->n, m, {
            const vf w = vf_load_some(m, x + j);
            vf_store_some(m, r->fallen + j, vf_mul(w, sum));
        });
        drop(c, d, p, i, r->kept, x);
        VECTOR_EACH(j, p->n, m, {
            const vf g = vf_mul(vf_load_some(m, x + j), vf_load_some(m, dx + j));
            vf_store_some(m, dx + j, vf_sub(g, vf_load_some(m, r->fallen + j)));
        });
    }
    if (c->in_grad[VALUES])
        multiply(&(product){ .p = r->x,
                             .q = r->g,
                             .p_row = 1,
                             .p_step = p->n,
                             .inner = n,
                             .rows = p->n,
                             .columns = d->v,
                             .out = r->dv,
                             .adds = true });
    if (c->in_grad[KEY])
        multiply(&(product){ .p = r->dx,
                             .q = r->q,
                             .p_row = 1,
                             .p_step = p->n,
                             .inner = n,
                             .rows = p->n,
                             .columns = d->d,
                             .out = r->dk,
                             .adds = true });
    if (c->in_grad[QUERY])
        multiply(&(product){ .p = r->dx,
                             .q = r->k,
                             .p_row = p->n,
                             .p_step = 1,
                             .inner = p->n,
                             .rows = n,
                             .columns = d->d,
                             .out = dq,
                             .adds = true });
}

/* sum(y g) of all queries of the heads that share key `shared` of row and place o, and what every
 * value gets from those that see nothing. */
static void VALUE_(means)(const keel_call *c, const keel_attention_dims *d, const room *r,
                          int64_t o, int64_t shared)
{
    const int64_t group = d->heads / d->shared;
    const vf blind = vf_set(blind_share(c->node, d));
    clear(r->all, d->v);
    for (int64_t i = 0; i < group * d->t; i++) {
        const int64_t h = shared * group + i / d->t, t = i % d->t;
        const int64_t at = ((o * d->t + t) * d->heads + h) * d->v;
        const VALUE *y = (const VALUE *)c->out[0] + at, *g = (const VALUE *)c->out_grad[0] + at;
        const float *saved = (const float *)c->saved[0] + ((o * d->heads + h) * d->t + t) * 2;
        vf sum = vf_zero();
        VECTOR_EACH(e, d->v, m, sum = vf_fma(vx_load_some(m, y + e), vx_load_some(m, g + e), sum));
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
    clear(r->dq, group * d->t * d->d);
    for (int64_t j = 0; j < d->s; j += KEYS) {
        const int64_t k_at = from * d->d + j * k_step, v_at = from * d->v + j * v_step;
        place p = { .row = o / d->outer, .j = j, .n = least(KEYS, d->s - j) };
        VALUE_(pack)(r->k, (const VALUE *)c->in[KEY] + k_at, p.n, d->d, k_step, 1);
        VALUE_(pack)(r->v, (const VALUE *)c->in[VALUES] + v_at, p.n, d->v, v_step, 1);
        transpose(r->kt, r->k, p.n, d->d);
        transpose(r->vt, r->v, p.n, d->v);
        clear(r->dk, p.n * d->d);
        for (int64_t i = 0; i < p.n; i++)
            memcpy(r->dv + i * d->v, r->all, (size_t)d->v * sizeof(float));
        for (int64_t i = 0; i < group; i++)
            for (p.t = 0; p.t < d->t; p.t += QUERIES) {
                const int64_t n = least(QUERIES, d->t - p.t), line = i * d->t + p.t;
                int64_t first, end;
                range_of_block(c->node, d, p.t, n, &first, &end);
                if (first >= j + p.n || end <= j) continue;
                p.head = o % d->outer * d->heads + shared * group + i;
                VALUE_(block_backward)(c, d, r, &p, n, r->mean + line, r->dq + line * d->d);
            }
        if (c->in_grad[KEY]) VALUE_(unpack)
        ((VALUE *)c->in_grad[KEY] + k_at, r->dk, p.n, d->d, k_step, 1, c->in_adds[KEY]);
        if (c->in_grad[VALUES]) VALUE_(unpack)
        ((VALUE *)c->in_grad[VALUES] + v_at, r->dv, p.n, d->v, v_step, 1, c->in_adds[VALUES]);
    }
    for (int64_t i = 0; c->in_grad[QUERY] && i < group; i++) VALUE_(unpack)
    ((VALUE *)c->in_grad[QUERY] + (o * d->t * d->heads + shared * group + i) * d->d,
     r->dq + i * d->t * d->d, d->t, d->d, d->heads * d->d, (float)a->scale, c->in_adds[QUERY]);
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_attention_dims d = dims_of(n);
    const room r = room_in(&(floats){ .next = c->scratch }, &d, true);
    for (int64_t all = 0; all < c->rows * d.outer * d.shared; all++)
        VALUE_(backward_shared)(c, &d, &r, all / d.shared, all % d.shared);
    for (int k = MASKS; k < n->n_in; k++)
        if (c->in_grad[k] && !c->in_adds[k])
            memset(c->in_grad[k], 0, (size_t)(c->rows * keel_row_count(&n->in[k])) * sizeof(VALUE));
}
#endif
