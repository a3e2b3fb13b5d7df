/* conv2d to very few filters, the last layer's: an image, a mask, a score. Forward: see _few.h. The
 * weights' gradient of some taps is summed in registers along a line of outputs, and then added to
 * that of the lines before, with channels in the lanes, too. */
#ifndef VALUE
#include "ops/x86/_few.h"

KEEL_USES_OP(conv2d);

/* How many taps are in a group, by the number of filters: their sums stay in registers. */
#ifdef __AVX512F__
enum { TAPS_1 = 9, TAPS_2 = 9, TAPS_3 = 5, TAPS_4 = 5, TAPS_5 = 3, TAPS_6 = 3, TAPS_7 = 3 };
enum { TAPS_8 = 3 };
#else
enum { TAPS_1 = 9, TAPS_2 = 5, TAPS_3 = 3, TAPS_4 = 3, TAPS_5 = 2, TAPS_6 = 2, TAPS_7 = 1 };
enum { TAPS_8 = 1 };
#endif

typedef struct shape {
    keel_window v;
    int64_t c, f, taps;
    int64_t apart; /* floats from one filter of a tap to the next: c, or more */
} shape;

static shape shape_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    return (shape){ .v = keel_window_of(n, w, a->strides, a->dilation, a->pad),
                    .c = w[2],
                    .f = w[3],
                    .taps = w[0] * w[1],
                    .apart = (w[2] + LANES - 1) / LANES * LANES };
}

static keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    KEEL_TRY(vector_prepare(p));
    const shape s = shape_of(p->node);
    if ((p->pass != KEEL_FORWARD && p->pass != KEEL_WEIGHTS) || a->groups != 1 ||
        !few_pays(p->node, s.f, s.c, s.taps))
        return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS && s.taps == 1) return KEEL_EUNSUP; /* sums would wait for adders */
    p->scratch = s.taps * s.f * s.apart * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* dw [taps][c][f] = or += sums [taps][f][apart]. */
static void turn_back(const shape *s, float *dw, const float *sums, bool adds)
{
    for (int64_t t = 0; t < s->taps; t++)
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t f = 0; f < s->f; f++) {
                const float g = sums[(t * s->f + f) * s->apart + c];
                float *to = &dw[(t * s->c + c) * s->f + f];
                *to = adds ? *to + g : g;
            }
}

/* The taps of a window along dim d that are inside of the image at output o: from *first on. */
static int64_t taps_inside(const keel_window *v, int d, int64_t o, int64_t *first)
{
    const int64_t at = o * v->stride[d] - v->pad[d], step = v->dilation[d];
    int64_t end = at >= v->in[d] ? 0 : (v->in[d] - 1 - at) / step + 1;
    *first = at < 0 ? (-at + step - 1) / step : 0;
    if (end > v->size[d]) end = v->size[d];
    return end > *first ? end - *first : 0;
}

#define VALUE_FILE "ops/x86/_few.h"
#include "ops/x86/_values.h"
#define VALUE_FILE "ops/x86/conv2d_few_filters.c"
#include "ops/x86/_values.h"

const keel_kernel VECTOR_JOIN(keel_kernel_, conv2d_few_filters, VECTOR_ISA) = {
    .op = &keel_op_conv2d,
    .name = "few_filters_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(FEW_FILTERS),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32, [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_WEIGHTS] = weights_bf16 },
};
#else
/* ---- forward --------------------------------------------------------------------------------- */

/* to [taps][f][apart] = weights [taps][c][f]; zeros behind the channels. */
static void VALUE_(turn_weights)(const shape *s, float *to, const float *w)
{
    memset(to, 0, (size_t)(s->taps * s->f * s->apart) * sizeof *to);
    for (int64_t t = 0; t < s->taps; t++)
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t f = 0; f < s->f; f++) {
                const float weight = w[(t * s->c + c) * s->f + f];
                to[(t * s->f + f) * s->apart + c] = VALUE_(factor)(weight);
            }
}

/* The taps that outputs of line h of an image see. */
static int VALUE_(list_taps)(const shape *s, const VALUE *image, const float *w, int64_t h,
                             VALUE_(tap) * tap)
{
    const keel_window *v = &s->v;
    int n = 0;
    for (int64_t i = 0; i < v->size[0]; i++) {
        const int64_t line = keel_window_in(v, 0, h, i);
        for (int64_t j = 0; line >= 0 && j < v->size[1]; j++) {
            const int64_t place = j * v->dilation[1] - v->pad[1];
            tap[n++] = (VALUE_(tap)){ image + (line * v->in[1] + place) * s->c, place,
                                      w + (i * v->size[1] + j) * s->f * s->apart };
        }
    }
    return n;
}

static void VALUE_(forward)(const keel_call *c)
{
    const shape s = shape_of(c->node);
    const keel_window *v = &s.v;
    const few_line l = { .outs = v->out[1],
                         .y_step = s.f,
                         .in = v->in[1],
                         .step = v->stride[1],
                         .channels = s.c,
                         .apart = s.apart,
                         .bias = c->node->n_weight > 1 ? c->weight[1] : NULL };
    VALUE_(turn_weights)(&s, c->scratch, c->weight[0]);
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t h = 0; h < v->out[0]; h++) {
            VALUE_(tap) tap[FEW_TAPS_MOST];
            const VALUE *image = (const VALUE *)c->in[0] + r * v->in[0] * v->in[1] * s.c;
            VALUE *y = (VALUE *)c->out[0] + (r * v->out[0] + h) * v->out[1] * s.f;
            const int n = VALUE_(list_taps)(&s, image, c->scratch, h, tap);
#define LINE_OF(n_f, outs) VALUE_(make_line)(&l, tap, n, y, n_f, outs)
            BY_FILTERS(LINE_OF, OUTS, s.f)
#undef LINE_OF
        }
}

/* ---- the weights' gradient ------------------------------------------------------------------- */

/* Some taps and what they look at along a line of outputs. */
typedef struct VALUE_(group) {
    const VALUE *at[TAPS_1]; /* of output 0, where it may be outside */
    int64_t place[TAPS_1];   /* of that in its line */
    float *sum[TAPS_1];      /* [f][apart]; NULL: there are fewer taps */
    int64_t first, end;      /* the outputs for which all taps are inside */
} VALUE_(group);

/* sum += x dy of outputs [first, end) for some channels. */
static inline __attribute__((always_inline)) void
VALUE_(add_outs)(const shape *s, const VALUE_(group) * g, const VALUE *dy, int64_t first,
                 int64_t end, vm m, bool inside, vf sum[TAPS_1][FEW_MOST], int n_f, int taps)
{
    const int64_t step = s->v.stride[1], apart = step * s->c;
    for (int64_t o = first; o < end; o++) {
        vf by[FEW_MOST];
        EACH(f, n_f) by[f] = vf_set(VALUE_(wide)(dy[o * n_f + f]));
        EACH(t, taps) {
            const int64_t place = g->place[t] + o * step;
            if (!inside && (place < 0 || place >= s->v.in[1])) continue;
            const vf x = vx_load_some(m, g->at[t] + o * apart);
            EACH(f, n_f) sum[t][f] = vf_fma(x, by[f], sum[t][f]);
        }
    }
}

static inline __attribute__((always_inline)) void VALUE_(add_line)(const shape *s,
                                                                   const VALUE_(group) * g,
                                                                   const VALUE *dy, int64_t c, vm m,
                                                                   int n_f, int taps)
{
    vf sum[TAPS_1][FEW_MOST];
    EACH(t, taps)
        EACH(f, n_f) sum[t][f] = vf_zero();
    VALUE_(add_outs)(s, g, dy, 0, g->first, m, false, sum, n_f, taps);
    VALUE_(add_outs)(s, g, dy, g->first, g->end, m, true, sum, n_f, taps);
    VALUE_(add_outs)(s, g, dy, g->end, s->v.out[1], m, false, sum, n_f, taps);
    EACH(t, taps)
        EACH(f, n_f) {
            if (!g->sum[t]) continue;
            float *to = g->sum[t] + f * s->apart + c;
            vf_store(to, vf_add(vf_load(to), sum[t][f]));
        }
}

/* The outputs, of those of a line, for which tap j of the line of a window is inside. */
static void VALUE_(narrow_outs)(const keel_window *v, VALUE_(group) * g, int64_t place)
{
    const int64_t step = v->stride[1];
    const int64_t first = place < 0 ? (-place + step - 1) / step : 0;
    const int64_t end = place >= v->in[1] ? 0 : (v->in[1] - 1 - place) / step + 1;
    if (g->first < first) g->first = first < v->out[1] ? first : v->out[1];
    if (g->end > end) g->end = end;
    if (g->end < g->first) g->end = g->first;
}

/* What output line h of an image gives each tap whose line is inside. */
static inline __attribute__((always_inline)) void VALUE_(add_taps)(const shape *s,
                                                                   const VALUE *image,
                                                                   const VALUE *dy, int64_t h,
                                                                   float *sums, int n_f, int taps)
{
    const keel_window *v = &s->v;
    int64_t first;
    const int64_t lines = taps_inside(v, 0, h, &first), begin = first * v->size[1];
    const int64_t all = begin + lines * v->size[1];
    for (int64_t t0 = begin; t0 < all; t0 += taps) {
        VALUE_(group) g = { .end = v->out[1] };
        for (int t = 0; t < taps; t++) {
            const int64_t tap = t0 + t < all ? t0 + t : t0; /* for nothing: t0 once more */
            const int64_t i = tap / v->size[1], j = tap % v->size[1];
            const int64_t line = h * v->stride[0] + i * v->dilation[0] - v->pad[0];
            g.place[t] = j * v->dilation[1] - v->pad[1];
            g.at[t] = image + (line * v->in[1] + g.place[t]) * s->c;
            if (t0 + t < all) g.sum[t] = sums + tap * n_f * s->apart;
            VALUE_(narrow_outs)(v, &g, g.place[t]);
        }
        for (int64_t c = 0; c < s->c; c += LANES) {
            VALUE_(add_line)(s, &g, dy, c, vm_first(s->c - c), n_f, taps);
            for (int t = 0; t < taps; t++) g.at[t] += LANES;
        }
    }
}

static void VALUE_(add_bias)(float *db, const VALUE *dy, int64_t places, int64_t n_f, bool adds)
{
    for (int64_t f = 0; f < n_f; f++) {
        double sum = 0;
        for (int64_t p = 0; p < places; p++) sum += (double)VALUE_(wide)(dy[p * n_f + f]);
        db[f] = adds ? db[f] + (float)sum : (float)sum;
    }
}

static void VALUE_(weights)(const keel_call *c)
{
    const shape s = shape_of(c->node);
    const keel_window *v = &s.v;
    const int64_t places = v->out[0] * v->out[1];
    float *const sums = c->scratch, *db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    const VALUE *dy = c->out_grad[0];
    if (db) VALUE_(add_bias)(db, dy, c->rows * places, s.f, c->weight_adds);
    if (!c->weight_grad[0]) return;
    memset(sums, 0, (size_t)(s.taps * s.f * s.apart) * sizeof *sums);
    for (int64_t r = 0; r < c->rows; r++) {
        const VALUE *image = (const VALUE *)c->in[0] + r * v->in[0] * v->in[1] * s.c;
        for (int64_t h = 0; h < v->out[0]; h++, dy += v->out[1] * s.f) {
#define TAPS_OF(n_f, taps) VALUE_(add_taps)(&s, image, dy, h, sums, n_f, taps)
            BY_FILTERS(TAPS_OF, TAPS, s.f)
#undef TAPS_OF
        }
    }
    turn_back(&s, c->weight_grad[0], sums, c->weight_adds);
}
#endif
