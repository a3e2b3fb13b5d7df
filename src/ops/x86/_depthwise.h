/* Depthwise convolution, 8 or 16 channels at a time, values float32 or bfloat16: the loops of
 * depthwise_conv2d.c, and of conv2d_depthwise.c for as many groups as channels.
 *
 * Forward and backward are one thing. A line of `to` is made of a few lines of `from`, and along a
 * line PLACES neighbours are summed at a time: each value of `from` is loaded once for all sums
 * that it goes into, and the taps of one line of the window stay in registers.
 *
 *     from   x0 x1 x2 x3 x4 x5 ...        to   s0 = x0 w0 + x1 w1 + x2 w2
 *     taps   w0 w1 w2                          s1 = x1 w0 + x2 w1 + x3 w2 ...
 *
 * Backward of a stride s is s such passes along each dim: places of `to` that are s apart meet
 * every s-th tap, in reverse. 3x3 windows go by tiles of pixels: _depthwise_tiles.h.
 *
 * The weight gradient takes a band of lines for each vector of channels; as many sums as there are
 * registers for are filled at a time. Bands meet the sums of the row (of the batch) in scratch;
 * rows add to the call's sum one after the other. Sums are float32 and take their terms in an order
 * that only the place in the image decides. Windows that are dilated, or have other sizes, go tap
 * by tap.
 *
 * Filters [KH, KW, C, M] lie in memory as those of C M channels do. So a multiplier M takes an
 * image in which each channel is there M times, and its gradient is the sum of those:
 * _depthwise_spread.h.
 */
#ifndef VALUE
#ifndef KEEL_OPS_X86_DEPTHWISE_H
#define KEEL_OPS_X86_DEPTHWISE_H
#include "ops/args.h"
#include "ops/window.h"
#include "ops/x86/_fetch.h"
#include "ops/x86/_vector.h"

/* A tile has as many sums as there are registers for, next to the nine weights; backward's are even
 * for strides of 2. BAND: positions for which sums are loaded once. */
enum { FAR = 512 << 10, ROWS = 2, COLS = LANES == 16 ? 4 : 2, PLACES = 8, BAND = 64 };
enum { LINES_MAX = 7 };

/* Lines of the window whose sums fit into the registers. */
enum { ROWS_OF_5 = LANES == 16 ? 5 : 2, ROWS_OF_7 = LANES == 16 ? 3 : 1 };

typedef struct range {
    int64_t first, end;
} range;

/* Of n things that begin at `at`, those inside [0, size). */
static inline range inside(int64_t at, int64_t n, int64_t size)
{
    const int64_t rest = size - at;
    return (range){ at < 0 ? -at : 0, rest < n ? rest : n };
}

static inline bool whole(range r, int64_t n)
{
    return r.first == 0 && r.end == n;
}

static inline bool has(range r, int64_t i)
{
    return i >= r.first && i < r.end;
}

/* One dim of a pass: the places of `to` that are made alike, and what they read. */
typedef struct dim {
    int64_t first, step, count; /* places first, first + step, ... */
    int64_t from, stride; /* the window of the first begins there, that of the next a stride on */
    int64_t taps, tap, next; /* so many taps: number `tap`, tap + next, ... of the window */
    int64_t size;            /* of `from` */
} dim;

static inline dim forward_dim(const keel_window *v, int d)
{
    return (dim){ .step = 1,
                  .count = v->out[d],
                  .from = -v->pad[d],
                  .stride = v->stride[d],
                  .taps = v->size[d],
                  .next = 1,
                  .size = v->in[d] };
}

/* Of the inputs at which (place + padding) % stride is `phase`. */
static inline dim backward_dim(const keel_window *v, int d, int64_t phase)
{
    const int64_t s = v->stride[d], first = ((phase - v->pad[d]) % s + s) % s;
    const int64_t taps = v->size[d] > phase ? (v->size[d] - phase + s - 1) / s : 0;
    return (dim){ .first = first,
                  .step = s,
                  .count = v->in[d] > first ? (v->in[d] - first + s - 1) / s : 0,
                  .from = (first + v->pad[d] - phase) / s - (taps - 1),
                  .stride = 1,
                  .taps = taps,
                  .tap = phase + s * (taps - 1),
                  .next = -s,
                  .size = v->out[d] };
}

/* What place `at` of `to` meets along a dim: places of `from`, and by which taps, in equal steps.
 */
typedef struct meeting {
    int64_t place, tap, places, taps, count;
} meeting;

static inline meeting meeting_of(const keel_window *v, bool back, int d, int64_t at)
{
    int64_t (*const meets)(const keel_window *, int, int64_t, int64_t) =
        back ? keel_window_out : keel_window_in;
    const int64_t n = v->size[d];
    int64_t first = 0, next, last = n - 1;
    while (first < n && meets(v, d, at, first) < 0) first++;
    if (first == n) return (meeting){ 0 };
    while (meets(v, d, at, last) < 0) last--;
    for (next = first + 1; next < last && meets(v, d, at, next) < 0;) next++;
    const int64_t place = meets(v, d, at, first);
    if (first == last) return (meeting){ place, first, 0, 0, 1 };
    return (meeting){ place, first, meets(v, d, at, next) - place, next - first,
                      (last - first) / (next - first) + 1 };
}

/* Whether a window goes by lines; else it goes tap by tap. */
static inline bool by_lines(const keel_window *v)
{
    const bool dense = v->dilation[0] == 1 && v->dilation[1] == 1;
    const bool odd = v->size[1] == 3 || v->size[1] == 5 || v->size[1] == 7;
    return dense && odd && v->size[0] == v->size[1] && v->stride[0] == v->stride[1] &&
           v->stride[0] < 3;
}

/* An image too large for the cache next to the core: its lines must be prefetched. */
static inline bool is_far(const int64_t *size, int64_t channels, size_t each)
{
    return size[0] * size[1] * channels * (int64_t)each > FAR;
}

/* to[i] becomes from[i], or is added from[i]. */
static inline void add_sums(float *to, const float *from, int64_t n, bool adds)
{
    VECTOR_MOVE(to, from, n, adds);
}

/* In float32, is this faster than oneDNN? For multipliers it is: 2 to 7 times under square windows,
 * and as fast under those as tall as the image. For one filter a channel: measured on one core with
 * AVX2 over the windows of MobileNetV2, EfficientNetB0 and ConvNeXtTiny: weight gradients take 0.05
 * to 0.8 of oneDNN's time, forward and backward 0.5 to 0.95; but 1.2 to 1.4 are weight gradients of
 * small images under 3x3 windows, and, on AVX-512 only, forward of such windows at a stride of 2.
 */
static inline bool depthwise_pays(const keel_prepare *p, const keel_window *v)
{
    const keel_node *n = p->node;
    const keel_pass pass = p->pass;
    if (n->held != KEEL_FLOAT32 || n->in[0].shape.dim[2] < n->out[0].shape.dim[2]) return true;
    if (!by_lines(v) || v->size[0] > 3) return by_lines(v);
    if (pass == KEEL_FORWARD) return v->stride[0] == 1 || keel_cpu_level() < KEEL_CPU_AVX512;
    return pass == KEEL_BACKWARD || v->out[0] * v->out[1] > 100;
}

static inline int64_t depthwise_sums(const keel_window *v, int64_t channels)
{
    return 2 * (v->size[0] * v->size[1] + 1) * channels;
}

/* Bytes: the sums of weight gradients; for a multiplier a spread image, and in backward of narrow
 * values the gradient of its results in float32. `channels` are those of the results. */
static inline int64_t depthwise_scratch(const keel_prepare *p, const keel_window *v,
                                        int64_t channels)
{
    int64_t floats = p->pass == KEEL_WEIGHTS ? depthwise_sums(v, channels) : 0;
    if (p->node->in[0].shape.dim[2] < channels) {
        floats += v->in[0] * v->in[1] * channels;
        if (p->pass == KEEL_BACKWARD && p->node->held != KEEL_FLOAT32)
            floats += v->out[0] * v->out[1] * channels;
    }
    return floats * (int64_t)sizeof(float);
}

#endif
#else
/* One image of a pass: values from, [lines, places, channels], and what is written, to. */
typedef struct VALUE_(image) {
    const VALUE *from;
    VALUE *to;
    const float *w, *bias;
    int64_t channels;
    const int64_t *from_size, *to_size;
    bool adds, far, to_far; /* far: from is; see FAR and FETCH_FAR */
} VALUE_(image);

/* Lines -----------------------------------------------------------------------------------------*/

typedef struct VALUE_(line) {
    VALUE *to;        /* its place 0 */
    const VALUE *ask; /* the line of `from` to prefetch; NULL: none */
    int n;            /* lines of `from`, beginning at their place 0, and their taps */
    const VALUE *from[LINES_MAX];
    const float *w[LINES_MAX];
    const float *bias;
    int64_t channels;
    bool adds;
} VALUE_(line);

/* PLACES sums from place p of d on, for the channels of m from k; taps, stride and checked are
 * constants where this is called. What is not in the image is not read, and what is not in the line
 * not written. */
INLINE void VALUE_(sum_places)(const VALUE_(line) * o, const dim *d, int64_t p, int64_t k, vm m,
                               const int taps, const int stride, const bool checked)
{
    const int64_t c = o->channels, at = d->from + p * stride, tap = d->next * c;
    const int width = (PLACES - 1) * stride + taps;
    vf sum[PLACES];
    const vf start = o->bias ? vf_load_some(m, o->bias + k) : vf_zero();
    EACH(q, PLACES) sum[q] = start;
    if (!checked && o->ask)
        EACH(b, PLACES * stride) __builtin_prefetch(o->ask + (at + b) * c + k, 0, 2);
    for (int i = 0; i < o->n; i++) {
        const VALUE *x = o->from[i] + at * c + k;
        const float *w = o->w[i] + k;
        vf weight[7];
        EACH(t, taps) weight[t] = vf_load_some(m, w + t * tap);
        EACH(b, width) {
            if (checked && (at + b < 0 || at + b >= d->size)) continue;
            const vf v = vx_load_some(m, x + b * c);
            EACH(q, PLACES)
                if (b - stride * q >= 0 && b - stride * q < taps)
                    sum[q] = vf_fma(v, weight[b - stride * q], sum[q]);
        }
    }
    VALUE *y = o->to + (d->first + p * d->step) * c + k;
    EACH(q, PLACES) {
        if (checked && p + q >= d->count) continue;
        VALUE *to = y + q * d->step * c;
        vx_store_some(m, to, o->adds ? vf_add(sum[q], vx_load_some(m, to)) : sum[q]);
    }
}

/* A function for each number of taps and stride, and for its edges: in one, compiling them takes
 * much longer. */
typedef void VALUE_(line_run)(const VALUE_(line) * o, const dim *d);
#define LINE_RUN(taps, stride)                                                                     \
    static __attribute__((noinline)) void VALUE_(edge_##taps##_##stride)(const VALUE_(line) * o,   \
                                                                         const dim *d, int64_t p)  \
    {                                                                                              \
        VECTOR_EACH(k, o->channels, m, VALUE_(sum_places)(o, d, p, k, m, taps, stride, true));     \
    }                                                                                              \
    static __attribute__((noinline)) void VALUE_(line_##taps##_##stride)(const VALUE_(line) * o,   \
                                                                         const dim *d)             \
    {                                                                                              \
        for (int64_t p = 0; p < d->count; p += PLACES) {                                           \
            const int64_t at = d->from + p * stride;                                               \
            const bool inner = at >= 0 && at + (PLACES - 1) * stride + taps <= d->size;            \
            if (!inner || p + PLACES > d->count)                                                   \
                VALUE_(edge_##taps##_##stride)(o, d, p);                                           \
            else                                                                                   \
                VECTOR_EACH(k, o->channels, m,                                                     \
                            VALUE_(sum_places)(o, d, p, k, m, taps, stride, false));               \
        }                                                                                          \
    }
LINE_RUN(2, 1)
LINE_RUN(3, 1)
LINE_RUN(4, 1)
LINE_RUN(5, 1)
LINE_RUN(7, 1)
LINE_RUN(5, 2)
LINE_RUN(7, 2)
#undef LINE_RUN

static VALUE_(line_run) * VALUE_(line_run_of)(const dim *d)
{
    if (d->stride == 2) return d->taps == 5 ? VALUE_(line_5_2) : VALUE_(line_7_2);
    if (d->taps < 4) return d->taps == 2 ? VALUE_(line_2_1) : VALUE_(line_3_1);
    if (d->taps < 6) return d->taps == 4 ? VALUE_(line_4_1) : VALUE_(line_5_1);
    return VALUE_(line_7_1);
}

/* Line number `place` of `to`, which reads as h says, and its places as d says. */
static void VALUE_(make_line)(const VALUE_(image) * o, const keel_window *v, const dim *h,
                              int64_t place, const dim *d)
{
    const int64_t c = o->channels, from_line = o->from_size[1] * c;
    const int64_t at = h->from + place * h->stride, ask = at + h->taps + h->stride - 1;
    VALUE_(line)
    l = { .to = o->to + (h->first + place * h->step) * o->to_size[1] * c,
          .ask = o->far && ask < h->size ? o->from + ask * from_line : NULL,
          .bias = o->bias,
          .channels = c,
          .adds = o->adds };
    for (int64_t t = 0; t < h->taps; t++) {
        if (at + t < 0 || at + t >= h->size) continue;
        l.from[l.n] = o->from + (at + t) * from_line;
        l.w[l.n++] = o->w + ((h->tap + t * h->next) * v->size[1] + d->tap) * c;
    }
    VALUE_(line_run_of)(d)(&l, d);
}

static void VALUE_(lines)(const VALUE_(image) * o, const keel_window *v, bool back)
{
    const int64_t phases = back ? v->stride[1] : 1;
    for (int64_t place = 0; place < o->to_size[0]; place++) {
        const dim h =
            back ? backward_dim(v, 0, (place + v->pad[0]) % v->stride[0]) : forward_dim(v, 0);
        for (int64_t phase = 0; phase < phases; phase++) {
            const dim d = back ? backward_dim(v, 1, phase) : forward_dim(v, 1);
            VALUE_(make_line)(o, v, &h, (place - h.first) / h.step, &d);
        }
    }
}

#include "ops/x86/_depthwise_tiles.h"

/* Tap by tap ------------------------------------------------------------------------------------*/

/* One pixel of `to`: what it reads, and the taps. */
static void VALUE_(sum_taps)(const VALUE_(image) * o, VALUE *to, const keel_window *v,
                             const meeting *h, const meeting *w)
{
    const int64_t c = o->channels, line = o->from_size[1] * c;
    const VALUE *from = o->from + h->place * line + w->place * c;
    const float *weight = o->w + (h->tap * v->size[1] + w->tap) * c;
    VECTOR_EACH(k, c, m, {
        vf sum = o->bias ? vf_load_some(m, o->bias + k) : vf_zero();
        for (int64_t i = 0; i < h->count; i++) {
            const VALUE *x = from + i * h->places * line + k;
            const float *f = weight + i * h->taps * v->size[1] * c + k;
            for (int64_t j = 0; j < w->count; j++, x += w->places * c, f += w->taps * c)
                sum = vf_fma(vx_load_some(m, x), vf_load_some(m, f), sum);
        }
        if (o->adds) sum = vf_add(sum, vx_load_some(m, to + k));
        vx_store_some(m, to + k, sum);
    });
}

static void VALUE_(taps)(const VALUE_(image) * o, const keel_window *v, bool back)
{
    VALUE *to = o->to;
    for (int64_t y = 0; y < o->to_size[0]; y++) {
        const meeting h = meeting_of(v, back, 0, y);
        for (int64_t x = 0; x < o->to_size[1]; x++, to += o->channels) {
            const meeting w = meeting_of(v, back, 1, x);
            VALUE_(sum_taps)(o, to, v, &h, &w);
        }
    }
}

static void VALUE_(image_run)(const VALUE_(image) * o, const keel_window *v, bool back)
{
    const bool by_two = v->stride[0] == 2;
    if (!by_lines(v))
        VALUE_(taps)(o, v, back);
    else if (v->size[0] > 3)
        VALUE_(lines)(o, v, back);
    else if (back)
        (by_two ? VALUE_(backward_2) : VALUE_(backward_1))(o, v);
    else
        (by_two ? VALUE_(forward_2) : VALUE_(forward_1))(o, v);
}

#include "ops/x86/_depthwise_spread.h"

static void VALUE_(forward)(const keel_call *call)
{
    const keel_window v = window_of(call->node);
    const int64_t c = call->node->out[0].shape.dim[2], n = keel_row_count(&call->node->in[0]);
    const VALUE *x = call->in[0];
    VALUE_(image)
    o = { .to = call->out[0],
          .w = call->weight[0],
          .bias = call->node->n_weight > 1 ? call->weight[1] : NULL,
          .channels = c,
          .far = is_far(v.in, c, sizeof(VALUE)),
          .to_far =
              keel_row_count(&call->node->out[0]) * call->rows * (int64_t)sizeof(VALUE) > FETCH_FAR,
          .from_size = v.in,
          .to_size = v.out };
    for (int64_t row = 0; row < call->rows; row++, x += n) {
        o.from = VALUE_(spread)(call->node, x, call->scratch);
        VALUE_(image_run)(&o, &v, false);
        o.to += v.out[0] * v.out[1] * c;
    }
}

static void VALUE_(backward)(const keel_call *call)
{
    const keel_window v = window_of(call->node);
    const int64_t c = call->node->out[0].shape.dim[2];
    VALUE_(image)
    o = { .from = call->out_grad[0],
          .to = call->in_grad[0],
          .w = call->weight[0],
          .channels = c,
          .far = is_far(v.out, c, sizeof(VALUE)),
          .to_far =
              keel_row_count(&call->node->in[0]) * call->rows * (int64_t)sizeof(VALUE) > FETCH_FAR,
          .from_size = v.out,
          .to_size = v.in,
          .adds = call->in_adds[0] };
    if (keel_row_count(&call->node->in[0]) < v.in[0] * v.in[1] * c) {
        VALUE_(backward_spread)(call, &v, c);
        return;
    }
    for (int64_t row = 0; o.to && row < call->rows; row++) {
        VALUE_(image_run)(&o, &v, true);
        o.from += v.out[0] * v.out[1] * c;
        o.to += v.in[0] * v.in[1] * c;
    }
}

/* Weight gradients ------------------------------------------------------------------------------*/

/* An image of the pass and the band of its lines, for one vector of channels. */
typedef struct VALUE_(band) {
    const VALUE *x, *dy; /* at the channels */
    const keel_window *v;
    int64_t channels, h, end;
    bool ask;    /* the next line of the cache, of the channels behind */
    float *sums; /* [taps, channels], at the channels */
} VALUE_(band);

/* n places of line h from w on, for `rows` lines of the window from i on; taps, stride, rows, n and
 * checked are constants where this is called. */
INLINE void VALUE_(add_run)(const VALUE_(band) * b, vf *sum, int i, int64_t h, int64_t w, vm m,
                            const int taps, const int stride, const int rows, const int n,
                            const bool checked)
{
    enum { AHEAD = 64 / sizeof(VALUE) };
    const keel_window *v = b->v;
    const int64_t c = b->channels, at = w * stride - v->pad[1];
    const VALUE *dy = b->dy + (h * v->out[1] + w) * c;
    vf g[PLACES];
    EACH(q, n) g[q] = vx_load_some(m, dy + q * c);
    if (!checked && b->ask)
        EACH(q, n) __builtin_prefetch(dy + q * c + AHEAD, 0, 3);
    EACH(r, rows) {
        const int64_t y = h * stride - v->pad[0] + i + r;
        if (y < 0 || y >= v->in[0]) continue;
        const VALUE *x = b->x + (y * v->in[1] + at) * c;
        if (!checked && b->ask && r + stride >= rows)
            EACH(a, n * stride) __builtin_prefetch(x + a * c + AHEAD, 0, 3);
        EACH(a, (n - 1) * stride + taps) {
            if (checked && (at + a < 0 || at + a >= v->in[1])) continue;
            const vf p = vx_load_some(m, x + a * c);
            EACH(q, n)
                if (a - stride * q >= 0 && a - stride * q < taps)
                    sum[r * taps + a - stride * q] =
                        vf_fma(p, g[q], sum[r * taps + a - stride * q]);
        }
    }
}

/* All lines of the band, for `rows` lines of the window from i on, `n` places at a time. */
INLINE void VALUE_(add_lines)(const VALUE_(band) * b, int i, vm m, const int taps, const int stride,
                              const int rows, const int n)
{
    const keel_window *v = b->v;
    const int64_t c = b->channels;
    vf sum[LANES == 16 ? 25 : 12];
    EACH(t, rows * taps) sum[t] = vf_load_some(m, b->sums + (i * taps + t) * c);
    for (int64_t h = b->h; h < b->end; h++)
        for (int64_t w = 0; w < v->out[1];) {
            const int64_t at = w * stride - v->pad[1];
            if (w + n > v->out[1]) {
                VALUE_(add_run)(b, sum, i, h, w++, m, taps, stride, rows, 1, true);
                continue;
            }
            if (at >= 0 && at + (n - 1) * stride + taps <= v->in[1])
                VALUE_(add_run)(b, sum, i, h, w, m, taps, stride, rows, n, false);
            else
                VALUE_(add_run)(b, sum, i, h, w, m, taps, stride, rows, n, true);
            w += n;
        }
    EACH(t, rows * taps) vf_store_some(m, b->sums + (i * taps + t) * c, sum[t]);
}

/* A function for each window and stride: `rows` of its lines at a time, then those that are left.
 */
typedef void VALUE_(band_run)(const VALUE_(band) * b, vm m);
#define BAND_RUN(taps, stride, rows, n)                                                            \
    static __attribute__((noinline)) void VALUE_(band_##taps##_##stride)(const VALUE_(band) * b,   \
                                                                         vm m)                     \
    {                                                                                              \
        int i = 0;                                                                                 \
        for (; i + (rows) <= (taps); i += (rows))                                                  \
            VALUE_(add_lines)(b, i, m, taps, stride, rows, n);                                     \
        if ((taps) % (rows))                                                                       \
            VALUE_(add_lines)(b, i, m, taps, stride, (taps) % (rows) ? (taps) % (rows) : 1, n);    \
    }
BAND_RUN(3, 1, 3, 4)
BAND_RUN(3, 2, 3, 4)
BAND_RUN(5, 1, ROWS_OF_5, 4)
BAND_RUN(5, 2, ROWS_OF_5, 4)
BAND_RUN(7, 1, ROWS_OF_7, 7)
BAND_RUN(7, 2, ROWS_OF_7, 7)
#undef BAND_RUN

static void VALUE_(add_bands)(float *sums, const keel_window *v, const VALUE *x, const VALUE *dy,
                              int64_t c)
{
    VALUE_(band_run) *const runs[2][3] = {
        { VALUE_(band_3_1), VALUE_(band_5_1), VALUE_(band_7_1) },
        { VALUE_(band_3_2), VALUE_(band_5_2), VALUE_(band_7_2) },
    };
    VALUE_(band_run) *const run = runs[v->stride[0] - 1][v->size[1] / 2 - 1];
    const int64_t lines = (BAND + v->out[1] - 1) / v->out[1];
    const bool ask = is_far(v->in, c, sizeof *x);
    for (int64_t h = 0; h < v->out[0]; h += lines)
        VECTOR_EACH(k, c, m, {
            const VALUE_(band) b = { .x = x + k,
                                     .dy = dy + k,
                                     .v = v,
                                     .channels = c,
                                     .h = h,
                                     .end = h + lines < v->out[0] ? h + lines : v->out[0],
                                     .ask = ask,
                                     .sums = sums + k };
            run(&b, m);
        });
}

/* The same for any window: tap by tap, a line of the output at a time. */
static void VALUE_(add_taps)(float *sums, const keel_window *v, const VALUE *x, const VALUE *dy,
                             int64_t c)
{
    for (int64_t h = 0; h < v->out[0]; h++, dy += v->out[1] * c)
        for (int64_t tap = 0; tap < v->size[0] * v->size[1]; tap++) {
            const int64_t j = tap % v->size[1], y = keel_window_in(v, 0, h, tap / v->size[1]);
            if (y < 0) continue;
            VECTOR_EACH(k, c, m, {
                vf sum = vf_load_some(m, sums + tap * c + k);
                for (int64_t w = 0; w < v->out[1]; w++) {
                    const int64_t at = keel_window_in(v, 1, w, j);
                    if (at < 0) continue;
                    const vf p = vx_load_some(m, x + (y * v->in[1] + at) * c + k);
                    sum = vf_fma(p, vx_load_some(m, dy + w * c + k), sum);
                }
                vf_store_some(m, sums + tap * c + k, sum);
            });
        }
}

static void VALUE_(add_bias)(float *sums, const VALUE *dy, int64_t places, int64_t c)
{
    for (int64_t h = 0; h < places; h += BAND)
        VECTOR_EACH(k, c, m, {
            vf sum = vf_zero();
            for (int64_t i = h; i < places && i < h + BAND; i++)
                sum = vf_add(sum, vx_load_some(m, dy + i * c + k));
            vf_store_some(m, sums + k, vf_add(sum, vf_load_some(m, sums + k)));
        });
}

/* Rows are added up in all, which is the gradient itself where the call does not add to one. */
static void VALUE_(weights)(const keel_call *call)
{
    const keel_window v = window_of(call->node);
    const int64_t c = call->node->out[0].shape.dim[2];
    const int64_t n = v.size[0] * v.size[1] * c, places = v.out[0] * v.out[1];
    const int64_t n_x = keel_row_count(&call->node->in[0]);
    const bool adds = call->weight_adds;
    const VALUE *x = call->in[0], *dy = call->out_grad[0];
    float *const dw = call->weight_grad[0];
    float *const db = call->node->n_weight > 1 ? call->weight_grad[1] : NULL;
    float *const sums = call->scratch, *const all = sums + n + c;
    float *const all_dw = adds ? all : dw, *const all_db = adds ? all + n : db;
    void *const room = sums + depthwise_sums(&v, c);
    for (int64_t row = 0; row < call->rows; row++, x += n_x, dy += places * c) {
        memset(sums, 0, (size_t)(n + c) * sizeof *sums);
        if (dw) {
            const VALUE *from = VALUE_(spread)(call->node, x, room);
            if (by_lines(&v))
                VALUE_(add_bands)(sums, &v, from, dy, c);
            else
                VALUE_(add_taps)(sums, &v, from, dy, c);
            add_sums(all_dw, sums, n, row > 0);
        }
        if (!db) continue;
        VALUE_(add_bias)(sums + n, dy, places, c);
        add_sums(all_db, sums + n, c, row > 0);
    }
    if (adds && dw) add_sums(dw, all_dw, n, true);
    if (adds && db) add_sums(db, all_db, c, true);
}
#endif
