/* conv2d by tiles of bfloat16 pieces: see _split_amx.c. Groups are left to other kernels, and so is
 * the gradient of the image under strides.
 *
 * The places are those of the padded image, line by line, so that a tap of the window is a shift.
 * Nothing is copied for it: a place is a pointer to a pixel, or NULL in the padding. Where lines
 * end lies what the next one begins with; places there are computed and thrown away. Under strides
 * each phase of the padded image, every second line and column say, is a list of its own, and a tap
 * is a shift in one of them.
 *
 * Call the lists' planes [height][width] of one image; images follow one another. Left padding of a
 * line is right padding of the one before, as both are zeros, and so with top and bottom. A
 * stretch, what is packed at a time, is some lines of one image or some whole images. */
#include "ops/x86/_split.h"
#include "base/memory.h"
#include "base/round.h"
#include "ops/window.h"
#include "ops/args.h"

KEEL_USES_OP(conv2d);

enum { PACKED = 512 * 1024 /* bytes of a stretch, about: half of a second-level cache */ };

typedef struct plan {
    keel_split s;
    const keel_derived *w;
    keel_window v;         /* from `in` to `out`, both without channels */
    int64_t height, width; /* of a plane */
    int64_t places;        /* of a stretch at most */
    int64_t lists;         /* bytes of pointers, before the packed operands in scratch */
    int64_t sum;           /* where in scratch a gradient is summed that is added to another */
} plan;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

/* The gradient of the image, without strides, is a convolution of the output's with the window
 * turned round. */
static bool turn(keel_window *v)
{
    for (int d = 0; d < 2; d++) {
        const int64_t in = v->in[d];
        if (v->stride[d] != 1) return false;
        v->in[d] = v->out[d];
        v->out[d] = in;
        v->pad[d] = (v->size[d] - 1) * v->dilation[d] - v->pad[d];
        if (v->pad[d] < 0) return false;
    }
    return true;
}

/* Lines or columns of a plane: what the windows reach over, the end's padding left to the next. */
static int64_t extent(const keel_window *v, int d)
{
    const int64_t reach = (v->size[d] - 1) * v->dilation[d];
    const int64_t after = (v->out[d] - 1) * v->stride[d] + reach + 1 - v->in[d] - v->pad[d];
    if (v->stride[d] == 1) return larger(v->in[d] + larger(v->pad[d], after), v->out[d]);
    return v->out[d] + reach / v->stride[d];
}

static bool lay_out(plan *pl)
{
    const keel_window *v = &pl->v;
    keel_split *s = &pl->s;
    const int64_t taps = v->size[0] * v->size[1], lists = v->stride[0] * v->stride[1];
    if (taps > SPLIT_TAPS || lists > SPLIT_LISTS) return false;
    pl->height = extent(v, 0);
    pl->width = extent(v, 1);
    s->n_list = (int)lists;
    for (int64_t i = 0; i < v->size[0]; i++)
        for (int64_t j = 0; j < v->size[1]; j++) {
            const int64_t h = i * v->dilation[0], w = j * v->dilation[1];
            const int64_t shift = h / v->stride[0] * pl->width + w / v->stride[1];
            s->tap[s->n_tap++] = (struct keel_tap){
                .list = (int)(h % v->stride[0] * v->stride[1] + w % v->stride[1]), .shift = shift
            };
            s->reach = larger(s->reach, shift);
        }
    return true;
}

/* Whole images where at least one fits in `most` places, else lines. */
static int64_t stretch_of(const plan *pl, int64_t most)
{
    const int64_t image = pl->height * pl->width;
    return image <= most ? most / image * image : larger(most / pl->width, 1) * pl->width;
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
    pl->v = keel_window_of(n, w, a->strides, a->dilation, a->pad);
    if ((turned && !turn(&pl->v)) || !lay_out(pl)) goto out;
    const int64_t bytes = 2 * pieces * pl->s.n_list * ((pl->s.c + 31) / 32 * 32);
    if (p->pass == KEEL_WEIGHTS) {
        if (pl->width > SPLIT_REDUCTION) goto out;
        pl->places = stretch_of(pl, SPLIT_REDUCTION);
        p->scratch = keel_split_gradient_scratch(&pl->s, pl->places);
    } else {
        pl->places = stretch_of(pl, larger(PACKED / bytes, 32));
        p->scratch = keel_split_product_scratch(&pl->s, pl->places);
        if ((s = keel_split_derive(p, &pl->s, turned, &pl->w)) < 0) goto out;
    }
    pl->lists = (pl->s.n_list * (pl->places + pl->s.reach) + pl->places) * (int64_t)sizeof(float *);
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

/* ---- stretches ------------------------------------------------------------------------------- */

/* Which places: whole images, or lines of one. */
typedef struct stretch {
    int64_t image, images; /* all of `rows` of the call */
    int64_t line, lines;   /* of the output, of each of them */
} stretch;

static bool next_stretch(const plan *pl, stretch *at, int64_t rows)
{
    const int64_t image = pl->height * pl->width;
    if (at->images == 0) {
        at->image = at->line = 0;
    } else if (at->line + at->lines < pl->v.out[0]) {
        at->line += at->lines;
    } else {
        at->image += at->images;
        at->line = 0;
    }
    at->images = at_most(larger(pl->places / image, 1), rows - at->image);
    at->lines = pl->places >= image ? pl->v.out[0]
                                    : at_most(pl->places / pl->width, pl->v.out[0] - at->line);
    return at->image < rows;
}

static int64_t places_of(const plan *pl, const stretch *at)
{
    return (at->images - 1) * pl->height * pl->width + at->lines * pl->width;
}

/* The pixels of `in` at the stretch's places and as far on as the last tap looks. */
static void list_pixels(const plan *pl, const stretch *at, const float *x, int64_t channels,
                        const float **to)
{
    const keel_window *v = &pl->v;
    const int64_t n = places_of(pl, at) + pl->s.reach;
    for (int64_t a = 0; a < v->stride[0]; a++)
        for (int64_t b = 0; b < v->stride[1]; b++)
            for (int64_t q = 0, image = at->image, line = at->line, column = 0; q < n; q++) {
                const int64_t h = line * v->stride[0] + a - v->pad[0];
                const int64_t w = column * v->stride[1] + b - v->pad[1];
                const bool there = image < at->image + at->images && h >= 0 && h < v->in[0] &&
                                   w >= 0 && w < v->in[1];
                *to++ = there ? x + ((image * v->in[0] + h) * v->in[1] + w) * channels : NULL;
                if (++column < pl->width) continue;
                column = 0;
                if (++line < pl->height || at->lines < v->out[0]) continue;
                line = 0;
                image++;
            }
}

/* The pixels of `out` at the stretch's places. */
static void list_outputs(const plan *pl, const stretch *at, const float *y, int64_t channels,
                         const float **to)
{
    const keel_window *v = &pl->v;
    for (int64_t image = 0; image < at->images; image++) {
        const int64_t lines = image < at->images - 1 ? pl->height : at->lines;
        for (int64_t i = 0; i < lines; i++)
            for (int64_t w = 0; w < pl->width; w++) {
                const int64_t h = at->line + i;
                *to++ = h < v->out[0] && w < v->out[1]
                            ? y + (((at->image + image) * v->out[0] + h) * v->out[1] + w) * channels
                            : NULL;
            }
    }
}

/* ---- the passes ------------------------------------------------------------------------------ */

static bool product(const keel_call *c, const float *x, float *y, const float *bias, bool adds)
{
    const plan *pl = c->plan;
    const keel_split *s = &pl->s;
    const float **const lists = c->scratch;
    stretch at = { 0 };
    if (adds && !keel_split_keeps(keel_split_largest(x, c->rows * pl->v.in[0] * pl->v.in[1] * s->c),
                                  keel_split_largest(c->weight[0], s->n_tap * s->c * s->k), 1))
        return false;
    while (next_stretch(pl, &at, c->rows)) {
        const int64_t n = places_of(pl, &at);
        const float *const *from[SPLIT_LISTS];
        const float **const to = lists + s->n_list * (n + s->reach);
        list_pixels(pl, &at, x, s->c, lists);
        list_outputs(pl, &at, y, s->k, to);
        for (int l = 0; l < s->n_list; l++) from[l] = lists + l * (n + s->reach);
        if (!keel_split_product(s, from, (float *const *)to, n, pl->w, bias, adds,
                                (char *)c->scratch + pl->lists))
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
    const keel_split *s = &pl->s;
    const float **const lists = c->scratch;
    stretch at = { 0 };
    bool adds = false;
    while (next_stretch(pl, &at, c->rows)) {
        const int64_t n = places_of(pl, &at);
        const float *const *from[SPLIT_LISTS];
        const float **const to_grad = lists + s->n_list * (n + s->reach);
        list_pixels(pl, &at, c->in[0], s->c, lists);
        list_outputs(pl, &at, c->out_grad[0], s->k, to_grad);
        for (int l = 0; l < s->n_list; l++) from[l] = lists + l * (n + s->reach);
        if (!keel_split_gradient(s, from, to_grad, n, dw, adds, (char *)c->scratch + pl->lists))
            return false;
        adds = true;
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
        keel_split_bias(c->weight_grad[1], c->out_grad[0], c->rows * pl->v.out[0] * pl->v.out[1],
                        pl->s.k, c->weight_adds);
}

const keel_kernel keel_kernel_conv2d_split_amx = {
    .op = &keel_op_conv2d,
    .name = "split_amx",
    .needs = SPLIT_NEEDS,
    .priority = KEEL_PRIORITY_SPLIT,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
