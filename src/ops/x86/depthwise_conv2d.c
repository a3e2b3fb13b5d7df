/* Depthwise convolution of multiplier 1, 8 or 16 channels at a time, values float32 or bfloat16.
 *
 * The work is bound by memory: 18 FLOP an output of a 3x3 window. So forward and backward of 3x3
 * windows take a tile of pixels, all channels of it, and read every value of the window's lines
 * once a tile; the sums stay in registers. The weight gradient runs over a band of lines for each
 * vector of channels, with the nine sums in registers, and meets the sums of the row (of the batch)
 * in scratch; rows add to the call's sum one after the other. Other windows go tap by tap. Sums are
 * float32 and take their terms in an order that only the place in the image decides. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/args.h"
#include "ops/window.h"

/* A tile of sums: as many as there are registers for, next to the nine weights. Backward's are even
 * for strides of 2. BAND: positions of a line, or of lines, for which nine sums are loaded once. */
enum { FAR = 512 << 10, ROWS = 2, COLS = LANES == 16 ? 4 : 2, RUN = 4, BAND = 64, TAPS_MAX = 121 };

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

static inline keel_window window_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    return keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad);
}

/* The stride of a window that goes by tiles; 0: it goes tap by tap. */
static inline int64_t tiles_of(const keel_window *v)
{
    const bool three = v->size[0] == 3 && v->size[1] == 3;
    const bool dense = v->dilation[0] == 1 && v->dilation[1] == 1;
    return three && dense && v->stride[0] == v->stride[1] && v->stride[0] < 3 ? v->stride[0] : 0;
}

/* An image too large for the cache next to the core: its lines must be prefetched. */
static inline bool is_far(const int64_t *size, int64_t channels, size_t each)
{
    return size[0] * size[1] * channels * (int64_t)each > FAR;
}

/* In float32, is this faster than oneDNN? Measured on one core with AVX-512, and with oneDNN kept
 * to AVX2 against that text, over the windows of MobileNetV2: backward takes 0.4 to 0.95 of
 * oneDNN's time, forward 0.6 to 0.9, weight gradients of large images 0.55 to 0.85; but 1.05
 * to 1.35 are weight gradients of small ones, and, on AVX-512 only, forward at a stride of 2. */
static bool pays(const keel_window *v, keel_pass pass, int64_t channels)
{
    if (!tiles_of(v)) return false;
    if (pass == KEEL_FORWARD) return tiles_of(v) == 1 || keel_cpu_level() < KEEL_CPU_AVX512;
    return pass == KEEL_BACKWARD || is_far(v->in, channels, sizeof(float));
}

static keel_status prepare(keel_prepare *p)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || w[3] != 1 || w[0] * w[1] > TAPS_MAX) return KEEL_EUNSUP;
    const keel_window v = window_of(p->node);
    if (p->node->held == KEEL_FLOAT32 && !pays(&v, p->pass, w[2])) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) p->scratch = 2 * (w[0] * w[1] + 1) * w[2] * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* to[i] becomes from[i], or is added from[i]. */
static inline void add_sums(float *to, const float *from, int64_t n, bool adds)
{
    VECTOR_MOVE(to, from, n, adds);
}

#define VALUE_FILE "ops/x86/depthwise_conv2d.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(depthwise_conv2d);

const keel_kernel VECTOR_KERNEL(depthwise_conv2d) = {
    .op = &keel_op_depthwise_conv2d,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(OWN),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16,
                [KEEL_BACKWARD] = backward_bf16,
                [KEEL_WEIGHTS] = weights_bf16 },
};
#else
/* Tiles ---------------------------------------------------------------------------------------- */

/* One image of a pass: values from, [lines[0], lines[1], channels], and what is written, to. */
typedef struct VALUE_(image) {
    const VALUE *from;
    VALUE *to;
    const float *w, *bias;
    int64_t channels;
    const int64_t *from_size, *to_size;
    bool adds, far;
} VALUE_(image);

/* The sums of a tile at {h, w} of `to`, for the channels of m from k. stride, back and checked are
 * constants where this is called. What the tile below reads first is asked for. Forward reads the
 * lines from `at` on, backward those whose windows reach the tile: line a of `from` and tap i meet
 * in line stride a + i of `to`, and tap j likewise. What is not in `lines` and `cols` is not read,
 * not in `rows` and `places` not written.
 */
INLINE void VALUE_(sum_tile)(const VALUE_(image) * o, const VALUE *from, VALUE *to, int64_t k, vm m,
                             const int stride, const bool back, const bool checked, range lines,
                             range cols, range rows, range places)
{
    const int64_t c = o->channels, from_line = o->from_size[1] * c, to_line = o->to_size[1] * c;
    const int height = back ? (ROWS + 1 + stride) / stride : (ROWS - 1) * stride + 3;
    const int width = back ? (COLS + 1 + stride) / stride : (COLS - 1) * stride + 3;
    const int before = back ? 2 / stride : 0;
    vf weight[9], sum[ROWS][COLS];
    EACH(t, 9) weight[t] = vf_load_some(m, o->w + t * c + k);
    const vf start = o->bias ? vf_load_some(m, o->bias + k) : vf_zero();
    EACH(r, ROWS)
        EACH(q, COLS) sum[r][q] = start;
    const int lower = back ? ROWS / stride : ROWS * stride,
              across = back ? COLS / stride : COLS * stride;
    if (!checked && o->far)
        EACH(a, lower)
            EACH(b, across) __builtin_prefetch(from + (height + a) * from_line + b * c + k, 0, 2);
    EACH(a, height)
        EACH(b, width) {
            if (checked && !(has(lines, a) && has(cols, b))) continue;
            const vf x = vx_load_some(m, from + a * from_line + b * c + k);
            EACH(r, ROWS)
                EACH(q, COLS) {
                    const int i = back ? r - stride * (a - before) : a - stride * r;
                    const int j = back ? q - stride * (b - before) : b - stride * q;
                    if (i >= 0 && i < 3 && j >= 0 && j < 3)
                        sum[r][q] = vf_fma(x, weight[i * 3 + j], sum[r][q]);
                }
        }
    EACH(r, ROWS)
        EACH(q, COLS) {
            VALUE *y = to + r * to_line + q * c + k;
            if (checked && !(has(rows, r) && has(places, q))) continue;
            vx_store_some(m, y, o->adds ? vf_add(sum[r][q], vx_load_some(m, y)) : sum[r][q]);
        }
}

/* All channels of the tile that begins at from and to. */
INLINE void VALUE_(sum_channels)(const VALUE_(image) * o, const VALUE *from, VALUE *to,
                                 const int stride, const bool back, const bool checked, range lines,
                                 range cols, range rows, range places)
{
    VECTOR_EACH(k, o->channels, m, {
        VALUE_(sum_tile)
        (o, from, to, k, m, stride, back, checked, lines, cols, rows, places);
    });
}

typedef void VALUE_(edge)(const VALUE_(image) * o, const VALUE *from, VALUE *to, range lines,
                          range cols, range rows, range places);

/* All tiles of an image; those at its edges by `edge`. */
INLINE void VALUE_(tiles)(const VALUE_(image) * o, const keel_window *v, const int stride,
                          const bool back, VALUE_(edge) * edge)
{
    const int64_t c = o->channels, from_line = o->from_size[1] * c, to_line = o->to_size[1] * c;
    const int height = back ? (ROWS + 1 + stride) / stride : (ROWS - 1) * stride + 3;
    const int width = back ? (COLS + 1 + stride) / stride : (COLS - 1) * stride + 3;
    const int before = back ? 2 / stride : 0;
    for (int64_t h = back ? -(v->pad[0] % stride) : 0; h < o->to_size[0]; h += ROWS) {
        const int64_t y = back ? (h + v->pad[0]) / stride - before : h * stride - v->pad[0];
        const range lines = inside(y, height, o->from_size[0]);
        const range rows = inside(h, ROWS, o->to_size[0]);
        const bool inner = whole(lines, height) && whole(rows, ROWS);
        for (int64_t w = back ? -(v->pad[1] % stride) : 0; w < o->to_size[1]; w += COLS) {
            const int64_t x = back ? (w + v->pad[1]) / stride - before : w * stride - v->pad[1];
            const range cols = inside(x, width, o->from_size[1]);
            const range places = inside(w, COLS, o->to_size[1]);
            const VALUE *from = o->from + y * from_line + x * c;
            VALUE *to = o->to + h * to_line + w * c;
            if (inner && whole(cols, width) && whole(places, COLS)) VALUE_(sum_channels)
            (o, from, to, stride, back, false, lines, cols, rows, places);
            else edge(o, from, to, lines, cols, rows, places);
        }
    }
}

/* A function for each stride and way, and for its edges: in one, compiling them takes much longer.
 */
#define TILES(name, stride, back)                                                                  \
    static __attribute__((noinline)) void VALUE_(name##_edge)(                                     \
        const VALUE_(image) * o, const VALUE *from, VALUE *to, range lines, range cols,            \
        range rows, range places)                                                                  \
    {                                                                                              \
        VALUE_(sum_channels)(o, from, to, stride, back, true, lines, cols, rows, places);          \
    }                                                                                              \
    static __attribute__((noinline)) void VALUE_(name)(const VALUE_(image) * o,                    \
                                                       const keel_window *v)                       \
    {                                                                                              \
        VALUE_(tiles)(o, v, stride, back, VALUE_(name##_edge));                                    \
    }
TILES(forward_1, 1, false)
TILES(forward_2, 2, false)
TILES(backward_1, 1, true)
TILES(backward_2, 2, true)
#undef TILES

/* Tap by tap ------------------------------------------------------------------------------------*/

/* One pixel of `to`: the n taps that meet it. */
static void VALUE_(sum_taps)(const VALUE_(image) * o, VALUE *to, int64_t n,
                             const VALUE *const *from, const float *const *weight)
{
    VECTOR_EACH(k, o->channels, m, {
        vf sum = o->bias ? vf_load_some(m, o->bias + k) : vf_zero();
        for (int64_t t = 0; t < n; t++)
            sum = vf_fma(vx_load_some(m, from[t] + k), vf_load_some(m, weight[t] + k), sum);
        if (o->adds) sum = vf_add(sum, vx_load_some(m, to + k));
        vx_store_some(m, to + k, sum);
    });
}

static void VALUE_(taps)(const VALUE_(image) * o, const keel_window *v, bool back)
{
    int64_t (*const meets)(const keel_window *, int, int64_t, int64_t) =
        back ? keel_window_out : keel_window_in;
    const int64_t c = o->channels, line = o->from_size[1] * c;
    VALUE *to = o->to;
    for (int64_t h = 0; h < o->to_size[0]; h++)
        for (int64_t w = 0; w < o->to_size[1]; w++, to += c) {
            const VALUE *from[TAPS_MAX];
            const float *weight[TAPS_MAX];
            int64_t n = 0;
            for (int64_t i = 0; i < v->size[0]; i++) {
                const int64_t y = meets(v, 0, h, i);
                for (int64_t j = 0; y >= 0 && j < v->size[1]; j++) {
                    const int64_t x = meets(v, 1, w, j);
                    if (x < 0) continue;
                    from[n] = o->from + y * line + x * c;
                    weight[n++] = o->w + (i * v->size[1] + j) * c;
                }
            }
            VALUE_(sum_taps)(o, to, n, from, weight);
        }
}

static void VALUE_(forward)(const keel_call *call)
{
    const keel_window v = window_of(call->node);
    const int64_t c = call->node->out[0].shape.dim[2], stride = tiles_of(&v);
    VALUE_(image)
    o = { .from = call->in[0],
          .to = call->out[0],
          .w = call->weight[0],
          .bias = call->node->n_weight > 1 ? call->weight[1] : NULL,
          .channels = c,
          .far = is_far(v.in, c, sizeof(VALUE)),
          .from_size = v.in,
          .to_size = v.out };
    for (int64_t row = 0; row < call->rows; row++) {
        if (stride == 1) VALUE_(forward_1)(&o, &v);
        if (stride == 2) VALUE_(forward_2)(&o, &v);
        if (stride == 0) VALUE_(taps)(&o, &v, false);
        o.from += v.in[0] * v.in[1] * c;
        o.to += v.out[0] * v.out[1] * c;
    }
}

static void VALUE_(backward)(const keel_call *call)
{
    const keel_window v = window_of(call->node);
    const int64_t c = call->node->out[0].shape.dim[2], stride = tiles_of(&v);
    VALUE_(image)
    o = { .from = call->out_grad[0],
          .to = call->in_grad[0],
          .w = call->weight[0],
          .channels = c,
          .far = is_far(v.out, c, sizeof(VALUE)),
          .from_size = v.out,
          .to_size = v.in,
          .adds = call->in_adds[0] };
    for (int64_t row = 0; o.to && row < call->rows; row++) {
        if (stride == 1) VALUE_(backward_1)(&o, &v);
        if (stride == 2) VALUE_(backward_2)(&o, &v);
        if (stride == 0) VALUE_(taps)(&o, &v, true);
        o.from += v.out[0] * v.out[1] * c;
        o.to += v.in[0] * v.in[1] * c;
    }
}

/* Weight gradients ------------------------------------------------------------------------------*/

/* n places from dy on, the window of the first at x: stride, n and checked are constants where this
 * is called; taps outside of lines and cols do not count. What is read first `ahead` lines below
 * is prefetched; 0: nothing. */
INLINE void VALUE_(add_run)(vf sum[9], const VALUE *x, const VALUE *dy, int64_t line, int64_t c,
                            vm m, const int stride, const int n, const bool checked, range lines,
                            range cols, int64_t ahead, int64_t dy_line)
{
    vf g[RUN];
    if (!checked && ahead) {
        EACH(q, n) __builtin_prefetch(dy + ahead * dy_line + q * c, 0, 2);
        EACH(i, stride)
            EACH(b, n * stride)
                __builtin_prefetch(x + (ahead * stride + 3 - stride + i) * line + b * c, 0, 2);
    }
    EACH(q, n) g[q] = vx_load_some(m, dy + q * c);
    EACH(i, 3) {
        if (checked && !has(lines, i)) continue;
        EACH(b, (n - 1) * stride + 3) {
            if (checked && n == 1 && !has(cols, b)) continue;
            const vf p = vx_load_some(m, x + i * line + b * c);
            EACH(q, n) {
                const int j = b - stride * q;
                if (j >= 0 && j < 3) sum[i * 3 + j] = vf_fma(p, g[q], sum[i * 3 + j]);
            }
        }
    }
}

/* Lines [h, end) of one image, for the channels of m from k; sums are loaded from and stored to
 * sums[tap * c]. */
INLINE void VALUE_(add_band)(float *sums, const keel_window *v, const VALUE *x, const VALUE *dy,
                             int64_t c, vm m, int64_t h, int64_t end, const int stride,
                             int64_t ahead)
{
    const int64_t line = v->in[1] * c, dy_line = v->out[1] * c;
    vf sum[9];
    EACH(t, 9) sum[t] = vf_load_some(m, sums + t * c);
    for (; h < end; h++) {
        const int64_t y = h * stride - v->pad[0];
        const range lines = inside(y, 3, v->in[0]);
        const VALUE *g = dy + h * dy_line;
        for (int64_t w = 0; w < v->out[1];) {
            const int64_t at = w * stride - v->pad[1];
            const VALUE *p = x + y * line + at * c;
            const range cols = inside(at, 3, v->in[1]);
            if (at >= 0 && w + RUN <= v->out[1] && at + (RUN - 1) * stride + 3 <= v->in[1]) {
                if (whole(lines, 3)) VALUE_(add_run)
                (sum, p, g, line, c, m, stride, RUN, false, lines, cols, ahead, dy_line);
                else VALUE_(add_run)(sum, p, g, line, c, m, stride, RUN, true, lines, cols, 0, 0);
                w += RUN, g += RUN * c;
            } else {
                VALUE_(add_run)(sum, p, g, line, c, m, stride, 1, true, lines, cols, 0, 0);
                w++, g += c;
            }
        }
    }
    EACH(t, 9) vf_store_some(m, sums + t * c, sum[t]);
}

INLINE void VALUE_(add_bands)(float *sums, const keel_window *v, const VALUE *x, const VALUE *dy,
                              int64_t c, const int stride)
{
    const int64_t lines = (BAND + v->out[1] - 1) / v->out[1];
    const int64_t ahead = is_far(v->in, c, sizeof *x) ? lines : 0;
    for (int64_t h = 0; h < v->out[0]; h += lines) {
        const int64_t end = h + lines < v->out[0] ? h + lines : v->out[0];
        VECTOR_EACH(k, c, m, {
            VALUE_(add_band)(sums + k, v, x + k, dy + k, c, m, h, end, stride, ahead);
        });
    }
}

static __attribute__((noinline)) void
VALUE_(add_bands_1)(float *sums, const keel_window *v, const VALUE *x, const VALUE *dy, int64_t c)
{
    VALUE_(add_bands)(sums, v, x, dy, c, 1);
}
static __attribute__((noinline)) void
VALUE_(add_bands_2)(float *sums, const keel_window *v, const VALUE *x, const VALUE *dy, int64_t c)
{
    VALUE_(add_bands)(sums, v, x, dy, c, 2);
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
    const int64_t c = call->node->out[0].shape.dim[2], stride = tiles_of(&v);
    const int64_t n = v.size[0] * v.size[1] * c, places = v.out[0] * v.out[1];
    const bool adds = call->weight_adds;
    const VALUE *x = call->in[0], *dy = call->out_grad[0];
    float *const dw = call->weight_grad[0];
    float *const db = call->node->n_weight > 1 ? call->weight_grad[1] : NULL;
    float *const sums = call->scratch, *const all = sums + n + c;
    float *const all_dw = adds ? all : dw, *const all_db = adds ? all + n : db;
    for (int64_t row = 0; row < call->rows; row++, x += v.in[0] * v.in[1] * c, dy += places * c) {
        memset(sums, 0, (size_t)(n + c) * sizeof *sums);
        if (dw) {
            if (stride == 1) VALUE_(add_bands_1)(sums, &v, x, dy, c);
            if (stride == 2) VALUE_(add_bands_2)(sums, &v, x, dy, c);
            if (stride == 0) VALUE_(add_taps)(sums, &v, x, dy, c);
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
