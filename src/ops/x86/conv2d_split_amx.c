/* conv2d by tiles of bfloat16 pieces: see _split_amx.c. Groups are left to other kernels, and so is
 * the gradient of the image under strides.
 *
 * The places are those of _planes.h, so that a tap of the window is a shift. Nothing is copied for
 * it: a place is a pointer to a pixel. Under strides each phase of the image is a list. */
#include "ops/x86/_split.h"
#include "base/memory.h"
#include "base/round.h"
#include "ops/args.h"
#include "ops/x86/_planes.h"

KEEL_USES_OP(conv2d);

_Static_assert((int)PLANE_TAPS <= (int)SPLIT_TAPS && (int)PLANE_PHASES <= (int)SPLIT_LISTS,
               "all taps and phases have room");
enum { PACKED = 512 * 1024 /* bytes of a stretch, about: half of a second-level cache */ };

typedef struct plan {
    keel_split s;
    const keel_derived *w;
    planes at;
    int64_t lists; /* bytes of pointers, before the packed operands in scratch */
    int64_t sum;   /* where in scratch a gradient is summed that is added to another */
} plan;

/* Taps in the order of their shifts: the copy for the gradient of the image has them in reverse. */
static bool lay_out(plan *pl, const keel_window *v, bool turned)
{
    keel_split *s = &pl->s;
    if ((turned && (v->stride[0] > 1 || v->stride[1] > 1)) || !planes_of(&pl->at, v, turned))
        return false;
    s->n_tap = pl->at.n_tap[0];
    s->n_list = pl->at.read.n;
    s->reach = pl->at.reach;
    for (int t = 0; t < s->n_tap; t++) {
        const plane_tap *from = &pl->at.tap[turned ? s->n_tap - 1 - t : t];
        s->tap[t] = (struct keel_tap){ .list = from->phase, .shift = from->shift };
    }
    return true;
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    const keel_conv2d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    const bool turned = p->pass == KEEL_BACKWARD;
    int pieces;
    if (p->pass > KEEL_WEIGHTS || a->groups != 1 || !keel_split_allowed(p, &pieces))
        return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    keel_status s = KEEL_EUNSUP;
    pl->s = (keel_split){ .pieces = pieces, .c = w[turned ? 3 : 2], .k = w[turned ? 2 : 3] };
    const keel_window v = keel_window_of(n, w, a->strides, a->dilation, a->pad);
    if (!lay_out(pl, &v, turned)) goto out;
    const int64_t bytes = 2 * pieces * pl->s.n_list * ((pl->s.c + 31) / 32 * 32);
    if (p->pass == KEEL_WEIGHTS) {
        if (pl->at.width > SPLIT_REDUCTION) goto out;
        planes_stretch(&pl->at, SPLIT_REDUCTION, p->rows);
        p->scratch = keel_split_gradient_scratch(&pl->s, pl->at.places);
    } else {
        planes_stretch(&pl->at, plane_larger(PACKED / bytes, 32), p->rows);
        p->scratch = keel_split_product_scratch(&pl->s, pl->at.places);
        if ((s = keel_split_derive(p, &pl->s, turned, &pl->w)) < 0) goto out;
    }
    pl->lists =
        (pl->s.n_list * (pl->at.places + pl->s.reach) + pl->at.places) * (int64_t)sizeof(float *);
    pl->lists = keel_round_up(pl->lists, 64);
    p->scratch += pl->lists;
    pl->sum = p->scratch;
    if (p->pass == KEEL_WEIGHTS && p->weight_adds)
        p->scratch += keel_row_count(&n->weight[0]) * (int64_t)sizeof(float);
    p->plan = pl;
    return KEEL_OK;
out:
    keel_free(pl);
    return s;
}

/* ---- the passes ------------------------------------------------------------------------------ */

/* The places of the stretch in x, a list for each phase, and behind them those in y. */
static const float **list_both(const plan *pl, const stretch *at, const float *x, const float *y,
                               const float **lists, const float *const *from[SPLIT_LISTS])
{
    const int64_t n = stretch_places(&pl->at, at), all = n + pl->s.reach, size = sizeof(float);
    for (int l = 0; l < pl->s.n_list; l++, lists += all) {
        list_places(&pl->at, &pl->at.read, l, at, x, pl->s.c * size, all, (const void **)lists);
        from[l] = lists;
    }
    list_places(&pl->at, &pl->at.written, 0, at, y, pl->s.k * size, n, (const void **)lists);
    return lists;
}

static int64_t pixels(const plane_side *side)
{
    return side->size[0] * side->size[1];
}

static bool product(const keel_call *c, const float *x, float *y, const float *bias, bool adds)
{
    const plan *pl = c->plan;
    const keel_split *s = &pl->s;
    const float *const *from[SPLIT_LISTS];
    stretch at = { 0 };
    if (adds && !keel_split_keeps(keel_split_largest(x, c->rows * pixels(&pl->at.read) * s->c),
                                  keel_split_largest(c->weight[0], s->n_tap * s->c * s->k), 1))
        return false;
    while (next_stretch(&pl->at, &at, c->rows)) {
        const float **const to = list_both(pl, &at, x, y, c->scratch, from);
        if (!keel_split_product(s, from, (float *const *)to, stretch_places(&pl->at, &at), pl->w,
                                bias, adds, (char *)c->scratch + pl->lists))
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

static bool kernel_gradient(const keel_call *c, float *dw)
{
    const plan *pl = c->plan;
    const float *const *from[SPLIT_LISTS];
    stretch at = { 0 };
    for (bool adds = false; next_stretch(&pl->at, &at, c->rows); adds = true) {
        const float **const to_grad =
            list_both(pl, &at, c->in[0], c->out_grad[0], c->scratch, from);
        if (!keel_split_gradient(&pl->s, from, to_grad, stretch_places(&pl->at, &at), dw, adds,
                                 (char *)c->scratch + pl->lists))
            return false;
    }
    return true;
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    float *const dw = c->weight_grad[0];
    float *const sum = c->weight_adds ? (float *)((char *)c->scratch + pl->sum) : dw;
    if (dw && !kernel_gradient(c, sum)) {
        c->node->op->weights[0](c);
        return;
    }
    if (dw && sum != dw) keel_split_add(dw, sum, keel_row_count(&c->node->weight[0]));
    if (c->node->n_weight > 1 && c->weight_grad[1])
        keel_split_bias(c->weight_grad[1], c->out_grad[0], c->rows * pixels(&pl->at.written),
                        pl->s.k, c->weight_adds);
}

const keel_kernel keel_kernel_conv2d_split_amx = {
    .op = &keel_op_conv2d,
    .name = "split_amx",
    .needs = TILES_NEED,
    .priority = KEEL_PRIORITY_SPLIT,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
