/* Convolutions to very few filters, the last layer's: an image, a mask, a score. Forward: see
 * _few.h. The weights' gradient of some taps is summed in registers along a line of outputs, and
 * then added to that of the lines before, with channels in the lanes, too.
 *
 * The including file defines ARGS, the args of its op, and ends with FEW_FILTERS_KERNEL(op). */
#ifndef VALUE
#ifndef KEEL_OPS_X86_FEW_FILTERS_H
#define KEEL_OPS_X86_FEW_FILTERS_H
#include "ops/x86/_few.h"

/* How many taps are in a group, by the number of filters: their sums stay in registers. */
#ifdef __AVX512F__
enum { TAPS_1 = 9, TAPS_2 = 9, TAPS_3 = 5, TAPS_4 = 5, TAPS_5 = 3, TAPS_6 = 3, TAPS_7 = 3 };
enum { TAPS_8 = 3 };
#else
enum { TAPS_1 = 9, TAPS_2 = 5, TAPS_3 = 3, TAPS_4 = 3, TAPS_5 = 2, TAPS_6 = 2, TAPS_7 = 1 };
enum { TAPS_8 = 1 };
#endif

enum { DEPTH, HEIGHT, WIDTH };

typedef struct shape {
    keel_window v;               /* over a volume; its lines are along WIDTH */
    int64_t c, f, taps, in, out; /* in, out: places of a row */
    int64_t apart;               /* floats from one filter of a tap to the next: c, or more */
} shape;

static inline void swap(int64_t *dims, int a, int b)
{
    const int64_t kept = dims[a];
    dims[a] = dims[b];
    dims[b] = kept;
}

/* A sequence may lie along the height of images of one column: then that is the line. */
static inline void turn_column(keel_window *v)
{
    int64_t *const dims[] = { v->in, v->out, v->size, v->stride, v->dilation, v->pad };
    if (v->in[WIDTH] != 1 || v->out[WIDTH] != 1 || v->size[WIDTH] != 1) return;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) swap(dims[i], HEIGHT, WIDTH);
}

static inline shape shape_of(const keel_node *n)
{
    const ARGS *a = n->args;
    const keel_window w =
        keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad);
    const keel_shape *kernel = &n->weight[0].shape;
    shape s = { .v = keel_window_volume(&w),
                .c = kernel->dim[kernel->rank - 2],
                .f = kernel->dim[kernel->rank - 1] };
    s.taps = keel_shape_count(kernel) / (s.c * s.f);
    s.in = keel_row_count(&n->in[0]) / s.c;
    s.out = keel_row_count(&n->out[0]) / s.f;
    s.apart = (s.c + LANES - 1) / LANES * LANES;
    turn_column(&s.v);
    return s;
}

static few_line line_of(const shape *s)
{
    return (few_line){ .outs = s->v.out[WIDTH],
                       .y_step = s->f,
                       .in = s->v.in[WIDTH],
                       .step = s->v.stride[WIDTH],
                       .channels = s->c,
                       .apart = s->apart };
}

static keel_status few_filters_prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if ((p->pass != KEEL_FORWARD && p->pass != KEEL_WEIGHTS) ||
        ((const ARGS *)p->node->args)->groups != 1)
        return KEEL_EUNSUP;
    const shape s = shape_of(p->node);
    if (!few_pays(p->node, s.f, s.c, s.taps)) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS && s.taps == 1) return KEEL_EUNSUP; /* sums would wait for adders */
    const bool by_winograd = s.v.size[HEIGHT] == 3 && s.v.size[WIDTH] == 3 && s.taps == 9 &&
                             s.v.stride[HEIGHT] == 1 && s.v.stride[WIDTH] == 1;
    if (s.f == FEW_MOST && by_winograd) return KEEL_EUNSUP;
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

#define FEW_FILTERS_KERNEL(op_)                                                                    \
    KEEL_USES_OP(op_);                                                                             \
    const keel_kernel VECTOR_KERNEL(op_##_few_filters) = {                                         \
        .op = &keel_op_##op_,                                                                      \
        .name = "few_filters_" VECTOR_NAME,                                                        \
        .needs = VECTOR_LEVEL,                                                                     \
        .priority = VECTOR_PRIORITY(FEW_FILTERS),                                                  \
        .prepare = few_filters_prepare,                                                            \
        .run = { [KEEL_FORWARD] = forward_f32, [KEEL_WEIGHTS] = weights_f32 },                     \
        .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_WEIGHTS] = weights_bf16 },                \
    }

#endif
#else
/* The taps that outputs of line `line` of a row see. */
static int VALUE_(list_taps)(const shape *s, const VALUE *row, int64_t line, VALUE_(tap) * tap)
{
    const keel_window *v = &s->v;
    const int64_t lines = v->size[DEPTH] * v->size[HEIGHT];
    int n = 0;
    for (int64_t i = 0; i < lines; i++) {
        const int64_t d = keel_window_in(v, DEPTH, line / v->out[HEIGHT], i / v->size[HEIGHT]);
        const int64_t h = keel_window_in(v, HEIGHT, line % v->out[HEIGHT], i % v->size[HEIGHT]);
        for (int64_t j = 0; d >= 0 && h >= 0 && j < v->size[WIDTH]; j++) {
            const int64_t place = j * v->dilation[WIDTH] - v->pad[WIDTH];
            const int64_t first = (d * v->in[HEIGHT] + h) * v->in[WIDTH];
            tap[n++] = (VALUE_(tap)){ row + (first + place) * s->c, place,
                                      (i * v->size[WIDTH] + j) * s->f * s->apart };
        }
    }
    return n;
}

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

static void VALUE_(forward)(const keel_call *c)
{
    const shape s = shape_of(c->node);
    few_line l = line_of(&s);
    const VALUE *row = c->in[0];
    VALUE *y = c->out[0];
    l.weights = c->scratch;
    l.bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    VALUE_(turn_weights)(&s, c->scratch, c->weight[0]);
    for (int64_t r = 0; r < c->rows; r++, row += s.in * s.c)
        for (int64_t i = 0; i < s.out / l.outs; i++, y += l.outs * s.f) {
            VALUE_(tap) tap[FEW_TAPS_MOST];
            const int n = VALUE_(list_taps)(&s, row, i, tap);
#define LINE_OF(n_f, outs) VALUE_(make_line)(&l, tap, n, y, n_f, outs)
            BY_FILTERS(LINE_OF, OUTS, s.f)
#undef LINE_OF
        }
}

/* ---- the weights' gradient ------------------------------------------------------------------- */

/* sum += x dy of outputs [first, end) for some channels. */
static inline __attribute__((always_inline)) void
VALUE_(add_outs)(const few_line *l, const VALUE_(tap) * tap, const VALUE *dy, int64_t first,
                 int64_t end, vm m, bool inside, vf sum[TAPS_1][FEW_MOST], int n_f, int taps)
{
    const int64_t x_step = l->step * l->channels;
    for (int64_t o = first; o < end; o++) {
        vf by[FEW_MOST];
        EACH(f, n_f) by[f] = vf_set(VALUE_(wide)(dy[o * n_f + f]));
        EACH(t, taps) {
            const int64_t place = tap[t].place + o * l->step;
            if (!inside && (place < 0 || place >= l->in)) continue;
            const vf x = vx_load_some(m, tap[t].at + o * x_step);
            EACH(f, n_f) sum[t][f] = vf_fma(x, by[f], sum[t][f]);
        }
    }
}

/* The sums of n taps along a line, of which outputs [first, end) see all. */
static inline __attribute__((always_inline)) void
VALUE_(add_line)(const few_line *l, const VALUE_(tap) * tap, int n, const VALUE *dy, int64_t first,
                 int64_t end, vm m, float *sums, int n_f, int taps)
{
    vf sum[TAPS_1][FEW_MOST];
    EACH(t, taps)
        EACH(f, n_f) sum[t][f] = vf_zero();
    VALUE_(add_outs)(l, tap, dy, 0, first, m, false, sum, n_f, taps);
    VALUE_(add_outs)(l, tap, dy, first, end, m, true, sum, n_f, taps);
    VALUE_(add_outs)(l, tap, dy, end, l->outs, m, false, sum, n_f, taps);
    EACH(t, taps)
        EACH(f, n_f) {
            float *to = sums + tap[t].weight + f * l->apart;
            if (t < n) vf_store(to, vf_add(vf_load(to), sum[t][f]));
        }
}

/* What a line of outputs gives the taps that it sees, in groups; a group without enough of them has
 * its first one more than once, for nothing. */
static inline __attribute__((always_inline)) void VALUE_(add_taps)(const few_line *l,
                                                                   const VALUE_(tap) * tap,
                                                                   int n_tap, const VALUE *dy,
                                                                   float *sums, int n_f, int taps)
{
    for (int t0 = 0; t0 < n_tap; t0 += taps) {
        VALUE_(tap) group[TAPS_1];
        int64_t first, end;
        const int n = n_tap - t0 < taps ? n_tap - t0 : taps;
        for (int t = 0; t < taps; t++) group[t] = tap[t < n ? t0 + t : t0];
        VALUE_(see_all)(l, group, taps, &first, &end);
        if (first > l->outs) first = l->outs;
        if (end < first) end = first;
        for (int64_t c = 0; c < l->channels; c += LANES) {
            VALUE_(add_line)
            (l, group, n, dy, first, end, vm_first(l->channels - c), sums + c, n_f, taps);
            for (int t = 0; t < taps; t++) group[t].at += LANES;
        }
    }
}

static void VALUE_(add_bias)(float *db, const VALUE *dy, int64_t places, int64_t n_f, bool adds)
{
    double sum[FEW_MOST] = { 0 };
    for (int64_t p = 0; p < places; p++, dy += n_f)
        for (int64_t f = 0; f < n_f; f++) sum[f] += (double)VALUE_(wide)(dy[f]);
    for (int64_t f = 0; f < n_f; f++) db[f] = adds ? db[f] + (float)sum[f] : (float)sum[f];
}

static void VALUE_(weights)(const keel_call *c)
{
    const shape s = shape_of(c->node);
    const few_line l = line_of(&s);
    float *const sums = c->scratch, *db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    const VALUE *row = c->in[0], *dy = c->out_grad[0];
    if (db) VALUE_(add_bias)(db, dy, c->rows * s.out, s.f, c->weight_adds);
    if (!c->weight_grad[0]) return;
    memset(sums, 0, (size_t)(s.taps * s.f * s.apart) * sizeof *sums);
    for (int64_t r = 0; r < c->rows; r++, row += s.in * s.c)
        for (int64_t i = 0; i < s.out / l.outs; i++, dy += l.outs * s.f) {
            VALUE_(tap) tap[FEW_TAPS_MOST];
            const int n = VALUE_(list_taps)(&s, row, i, tap);
#define TAPS_OF(n_f, taps) VALUE_(add_taps)(&l, tap, n, dy, sums, n_f, taps)
            BY_FILTERS(TAPS_OF, TAPS, s.f)
#undef TAPS_OF
        }
    turn_back(&s, c->weight_grad[0], sums, c->weight_adds);
}
#endif
