/* dense by tiles of bfloat16 pieces, all three passes: see _split_amx.c. A place is a row of the
 * last axis, and there is one tap. */
#include "ops/x86/_split.h"
#include "base/memory.h"

KEEL_USES_OP(dense);

enum { PLACES = 256 /* packed at a time */, MOST_UNITS = 4096 /* of a gradient by tiles */ };

typedef struct plan {
    keel_split s;
    const keel_derived *w;
} plan;

static keel_split split_of(int pieces, int64_t c, int64_t k)
{
    return (keel_split){ .pieces = pieces, .c = c, .k = k, .n_tap = 1, .n_list = 1 };
}

/* Lists of places lie before the packed ones: up to SPLIT_REDUCTION of each operand. */
enum { LISTS = 2 * SPLIT_REDUCTION * (int)sizeof(float *) };

/* The plan of weight gradients: how many pieces. Nobody releases that of tiles. */
static const int two = 2, three = 3;

static void release(void *p)
{
    if (p != &two && p != &three) keel_free(p);
}

static keel_status prepare(keel_prepare *p)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    int pieces;
    if (p->pass > KEEL_WEIGHTS || !keel_split_allowed(p, &pieces)) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) {
        const keel_split s = split_of(pieces, w[0], w[1]);
        if (w[1] > MOST_UNITS) return KEEL_EUNSUP;
        p->scratch = LISTS + keel_split_gradient_scratch(&s, SPLIT_REDUCTION);
        if (p->weight_adds) p->scratch += s.c * s.k * (int64_t)sizeof(float);
        p->plan = (void *)(pieces == 3 ? &three : &two);
        return KEEL_OK;
    }
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    const bool turned = p->pass == KEEL_BACKWARD;
    pl->s = split_of(pieces, w[turned], w[!turned]);
    p->scratch = LISTS + keel_split_product_scratch(&pl->s, PLACES);
    const keel_status s = keel_split_derive(p, &pl->s, turned, &pl->w);
    if (s < 0)
        keel_free(pl);
    else
        p->plan = pl;
    return s;
}

static int64_t places_of(const keel_call *c)
{
    return c->rows * (keel_row_count(&c->node->out[0]) / c->node->weight[0].shape.dim[1]);
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

static bool product(const keel_call *c, const float *x, float *y, const float *bias, bool adds)
{
    const plan *pl = c->plan;
    const keel_split *s = &pl->s;
    const float **const from = c->scratch;
    const float *const *const lists[] = { from };
    float **const to = (float **)c->scratch + SPLIT_REDUCTION;
    const int64_t places = places_of(c);
    if (adds && !keel_split_keeps(keel_split_largest(x, places * s->c),
                                  keel_split_largest(c->weight[0], s->c * s->k), 1))
        return false;
    for (int64_t q = 0, n; q < places; q += n) {
        n = at_most(places - q, PLACES);
        for (int64_t i = 0; i < n; i++) {
            from[i] = x + (q + i) * s->c;
            to[i] = y + (q + i) * s->k;
        }
        if (!keel_split_product(s, lists, to, n, pl->w, bias, adds, (char *)c->scratch + LISTS))
            return false;
    }
    return true;
}

static void forward(const keel_call *c)
{
    const float *bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    if (!product(c, c->in[0], c->out[0], bias, false)) c->node->op->forward[0](c);
}

static void backward(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    if (!product(c, c->out_grad[0], c->in_grad[0], NULL, c->in_adds[0]))
        c->node->op->backward[0](c);
}

static bool kernel_gradient(const keel_call *c, const keel_split *s, float *dw)
{
    const float *x = c->in[0], *dy = c->out_grad[0];
    const float **const from = c->scratch, **const to_grad = from + SPLIT_REDUCTION;
    const float *const *const lists[] = { from };
    const int64_t places = places_of(c);
    for (int64_t q = 0, n; q < places; q += n) {
        n = at_most(places - q, SPLIT_REDUCTION);
        for (int64_t i = 0; i < n; i++) {
            from[i] = x + (q + i) * s->c;
            to_grad[i] = dy + (q + i) * s->k;
        }
        if (!keel_split_gradient(s, lists, to_grad, n, dw, q > 0, (char *)c->scratch + LISTS))
            return false;
    }
    return true;
}

static void weights(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    const keel_split s = split_of(*(const int *)c->plan, w[0], w[1]);
    float *const dw = c->weight_grad[0];
    float *sum = dw;
    if (c->weight_adds)
        sum = (float *)((char *)c->scratch + LISTS +
                        keel_split_gradient_scratch(&s, SPLIT_REDUCTION));
    if (dw && !kernel_gradient(c, &s, sum)) {
        c->node->op->weights[0](c);
        return;
    }
    if (dw && sum != dw) keel_split_add(dw, sum, s.c * s.k);
    if (c->node->n_weight > 1 && c->weight_grad[1])
        keel_split_bias(c->weight_grad[1], c->out_grad[0], places_of(c), s.k, c->weight_adds);
}

/* Rows are taken 512 at a time whatever span they are in, so that no bit depends on the spans. */
static bool kernel_tile(const keel_tile_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    const keel_split s = split_of(*(const int *)c->plan, c->count / w[1], w[1]);
    const float **const from = c->scratch, **const to_grad = from + SPLIT_REDUCTION;
    const float *const *const lists[] = { from };
    void *const scratch = (char *)c->scratch + LISTS;
    int64_t n = 0;
    bool adds = false;
    for (int i = 0; i < c->n_span; i++) {
        const float *x = (const float *)c->span[i].in + c->first / w[1];
        const float *dy = c->span[i].out_grad;
        for (int64_t row = 0; row < c->span[i].rows; row++) {
            if (n == SPLIT_REDUCTION) {
                if (!keel_split_gradient(&s, lists, to_grad, n, c->grad, adds, scratch))
                    return false;
                adds = true;
                n = 0;
            }
            from[n] = x + row * w[0];
            to_grad[n++] = dy + row * w[1];
        }
    }
    return keel_split_gradient(&s, lists, to_grad, n, c->grad, adds, scratch);
}

static void weights_tile(const keel_tile_call *c)
{
    if (c->weight != 0 || !kernel_tile(c)) c->node->op->weights_tile[0](c);
}

const keel_kernel keel_kernel_dense_split_amx = {
    .op = &keel_op_dense,
    .name = "split_amx",
    .needs = TILES_NEED,
    .priority = KEEL_PRIORITY_SPLIT,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .weights_tile = weights_tile,
    .release = release,
};
