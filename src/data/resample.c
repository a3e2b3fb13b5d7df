/* See resample.h. An output pixel is a weighted sum over a span of source pixels in each dim, so a
 * method is a table of spans for rows and one for columns. Each output row is first summed along y,
 * as wide as the source, then along x. Bilinear of one or three channels has its own faster code.
 */
#include "data/resample.h"
#include "base/clones.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- spans -------------------------------------------------------------------------------------
 */

typedef struct span {
    int64_t begin;
    int count;
    const float *weight;
} span;

typedef struct axis { /* one dim */
    int64_t from, to;
    int most; /* weights of a span */
    span *at; /* [to] */
    float *weights;
} axis;

static float lanczos(float x, float radius)
{
    const float pi = 3.14159265359f;
    if (x > radius) return 0;
    if (x <= 1e-3f) return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x) /* sigma 0.5 */
{
    return x >= 1.5f ? 0 : (float)exp((double)(-x * x) / 0.5);
}

static float mitchell(float x)
{
    if (x >= 2) return 0;
    if (x >= 1) return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
    return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

static float kernel(keel_interpolation method, float x)
{
    switch (method) {
    case KEEL_LANCZOS3:
        return lanczos(x, 3);
    case KEEL_LANCZOS5:
        return lanczos(x, 5);
    case KEEL_GAUSSIAN:
        return gaussian(x);
    default:
        return mitchell(x);
    }
}

static float radius_of(keel_interpolation method)
{
    return method == KEEL_LANCZOS3   ? 3
           : method == KEEL_LANCZOS5 ? 5
           : method == KEEL_GAUSSIAN ? 1.5f
                                     : 2;
}

static int64_t between(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Make the weights sum to 1; the way of TensorFlow, which leaves sums that are almost 0. */
static void normalize(float *w, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += w[i];
    const float factor = fabsf(sum) >= 1000 * FLT_MIN ? 1 / sum : 0;
    for (int i = 0; i < n; i++) w[i] *= factor;
}

/* The kernel around the centre of output pixel i, cut at the edges. */
static void place_kernel(const axis *a, keel_interpolation method, int64_t i, span *s, float *w)
{
    const float scale = (float)a->to / (float)a->from, inverse = (float)(1.0 / (double)scale);
    const float centre = ((float)i + 0.5f) * inverse, radius = radius_of(method);
    if (centre < 0 || centre > (float)a->from) return; /* by rounding; an empty span */
    s->begin = between((int64_t)ceilf(centre - radius - 0.5f), 0, a->from - 1);
    const int64_t last = between((int64_t)floorf(centre + radius - 0.5f), 0, a->from - 1);
    s->count = (int)(last - s->begin + 1);
    for (int k = 0; k < s->count; k++)
        w[k] = kernel(method, fabsf((float)(s->begin + k) + 0.5f - centre));
    normalize(w, s->count);
}

static float centre_of(const axis *a, int64_t i)
{
    return ((float)i + 0.5f) * ((float)a->from / (float)a->to) - 0.5f;
}

/* Four taps of Keys's cubic (a = -0.5), from a table of 1024 steps; taps outside have no weight. */
static void place_cubic(const axis *a, int64_t i, span *s, float *w)
{
    enum { STEPS = 1024 };
    const float at = centre_of(a, i), low = floorf(at);
    const int64_t first = (int64_t)low - 1;
    const double part = (double)lrintf((at - low) * STEPS) / STEPS;
    s->begin = between(first, 0, a->from - 1);
    for (int t = 0; t < 4; t++) {
        if (first + t < s->begin || first + t >= a->from) continue;
        const double x = t < 2 ? part + 1 - t : t - 1 - part;
        w[s->count++] =
            (float)(x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2);
    }
    normalize(w, s->count);
}

/* The part of each source pixel that output pixel i covers. */
static void place_area(const axis *a, int64_t i, span *s, float *w)
{
    const float scale = (float)a->from / (float)a->to;
    const float begin = (float)i * scale, end = (float)(i + 1) * scale;
    s->begin = between((int64_t)floorf(begin), 0, a->from - 1);
    for (int64_t p = (int64_t)floorf(begin); p < (int64_t)ceilf(end); p++) {
        const float low = (float)p, high = (float)(p + 1);
        const float part =
            low < begin ? (high > end ? scale : high - begin) : (high > end ? end - low : 1);
        const int64_t k = between(p, s->begin, a->from - 1) - s->begin;
        if (k >= a->most) continue; /* cannot be: a span is at most scale + 2 */
        w[k] += part / scale;
        if (k >= s->count) s->count = (int)k + 1;
    }
}

static void place_linear(const axis *a, int64_t i, span *s, float *w)
{
    const float at = centre_of(a, i), low = floorf(at);
    const int64_t right = between((int64_t)ceilf(at), 0, a->from - 1);
    s->begin = between((int64_t)low, 0, a->from - 1);
    s->count = (int)(right - s->begin) + 1;
    w[0] = s->count == 1 ? 1 : 1 - (at - low);
    if (s->count == 2) w[1] = at - low;
}

static int most_weights(keel_interpolation method, int64_t from, int64_t to)
{
    const int64_t most = method == KEEL_BILINEAR  ? 2
                         : method == KEEL_BICUBIC ? 4
                         : method == KEEL_AREA    ? from / to + 3
                                                  : 2 * (int64_t)ceilf(radius_of(method)) + 1;
    return (int)(most < from ? most : from);
}

static void place_all(axis *a, keel_interpolation method)
{
    memset(a->at, 0, (size_t)a->to * sizeof *a->at);
    memset(a->weights, 0, (size_t)a->to * (size_t)a->most * sizeof *a->weights);
    for (int64_t i = 0; i < a->to; i++) {
        float *w = a->weights + i * a->most;
        a->at[i].weight = w;
        if (method == KEEL_BILINEAR)
            place_linear(a, i, &a->at[i], w);
        else if (method == KEEL_BICUBIC)
            place_cubic(a, i, &a->at[i], w);
        else if (method == KEEL_AREA)
            place_area(a, i, &a->at[i], w);
        else
            place_kernel(a, method, i, &a->at[i], w);
    }
}

/* ---- sums --------------------------------------------------------------------------------------
 */

KEEL_CLONES
static void sum_rows(float *out, const keel_image *m, const span *s)
{
    const size_t line = (size_t)m->width * (size_t)m->channels;
    const unsigned char *row = m->pixels + (size_t)s->begin * line;
    const float first = s->count ? s->weight[0] : 0; /* an empty span gives 0 */
    for (size_t i = 0; i < line; i++) out[i] = first * (float)row[i];
    for (int k = 1; k < s->count; k++) {
        const float w = s->weight[k];
        row += line;
        for (size_t i = 0; i < line; i++) out[i] += w * (float)row[i];
    }
}

/* n: the channels, a constant of each caller, so that their loops are unrolled. */
static inline __attribute__((always_inline)) void sum_spans(float *out, const float *row,
                                                            const axis *a, const int n)
{
    for (int64_t x = 0; x < a->to; x++, out += n) {
        const span *s = &a->at[x];
        const float *from = row + s->begin * n;
        float sum[4] = { 0 };
        for (int k = 0; k < s->count; k++, from += n)
            for (int c = 0; c < n; c++) sum[c] += s->weight[k] * from[c];
        for (int c = 0; c < n; c++) out[c] = sum[c];
    }
}

static void sum_columns(float *out, const float *row, const axis *a, int n)
{
    if (n == 1)
        sum_spans(out, row, a, 1);
    else if (n == 3)
        sum_spans(out, row, a, 3);
    else
        sum_spans(out, row, a, 4);
}

static size_t spans_space(const axis *y, const axis *x, int channels)
{
    const size_t line = (size_t)x->from * (size_t)channels;
    return (size_t)(y->to + x->to) * sizeof(span) +
           ((size_t)y->to * (size_t)y->most + (size_t)x->to * (size_t)x->most + line) *
               sizeof(float);
}

static keel_status resize_by_spans(const keel_image *m, keel_interpolation method, float *out,
                                   int64_t height, int64_t width, keel_scratch *scratch, int buffer)
{
    axis y = { m->height, height, most_weights(method, m->height, height), NULL, NULL };
    axis x = { m->width, width, most_weights(method, m->width, width), NULL, NULL };
    const size_t spans = (size_t)(height + width) * sizeof(span);
    char *space = keel_scratch_reserve(scratch, buffer, spans_space(&y, &x, m->channels));
    if (!space) return KEEL_ENOMEM;
    y.at = (void *)space;
    x.at = y.at + height;
    y.weights = (void *)(space + spans);
    x.weights = y.weights + height * y.most;
    float *row = x.weights + width * x.most;
    place_all(&y, method);
    place_all(&x, method);
    for (int64_t i = 0; i < height; i++, out += width * m->channels) {
        sum_rows(row, m, &y.at[i]);
        sum_columns(out, row, &x, m->channels);
    }
    return KEEL_OK;
}

static bool by_lines(const keel_resample *r, int channels)
{
    return r->method == KEEL_BILINEAR && (channels == 1 || channels == 3);
}

static keel_status resize(const keel_resample *r, const keel_image *m, float *out, int64_t height,
                          int64_t width, keel_scratch *scratch, int buffer)
{
    if (!by_lines(r, m->channels))
        return resize_by_spans(m, r->method, out, height, width, scratch, buffer);
    return keel_resize(m, out, height, width, scratch, buffer);
}

/* ---- the aspect ratio ---------------------------------------------------------------------------
 */

/* The largest part, in the middle, with the ratio of the result. All in float32, as smart_resize.
 */
static keel_image_part crop_of(const keel_resample *r, int64_t h, int64_t w)
{
    if (!r->crop) return (keel_image_part){ 0, 0, h, w };
    const int64_t ch = (int64_t)((float)(w * r->height) / (float)r->width);
    const int64_t cw = (int64_t)((float)(h * r->width) / (float)r->height);
    keel_image_part c = { .height = between(ch, 1, h), .width = between(cw, 1, w) };
    c.top = (int64_t)((float)(h - c.height) / 2);
    c.left = (int64_t)((float)(w - c.width) / 2);
    return c;
}

/* Where the resized image lies in the result, as resize_with_pad; a side may be 0. */
static keel_image_part pad_of(const keel_resample *r, int64_t h, int64_t w)
{
    if (!r->pad) return (keel_image_part){ 0, 0, r->height, r->width };
    const float th = (float)r->height, tw = (float)r->width;
    const float by_w = (float)w / tw, by_h = (float)h / th, ratio = by_w > by_h ? by_w : by_h;
    const float rh = (float)h / ratio, rw = (float)w / ratio;
    keel_image_part p = { (int64_t)floorf((th - rh) / 2), (int64_t)floorf((tw - rw) / 2),
                          (int64_t)floorf(rh), (int64_t)floorf(rw) };
    if (p.top < 0) p.top = 0; /* by rounding */
    if (p.left < 0) p.left = 0;
    if (p.height > r->height - p.top) p.height = r->height - p.top;
    if (p.width > r->width - p.left) p.width = r->width - p.left;
    return p;
}

static void cut(keel_image *m, const keel_image_part *c)
{
    const size_t n = (size_t)m->channels, stride = (size_t)m->width * n,
                 line = (size_t)c->width * n;
    const unsigned char *from = m->pixels + (size_t)c->top * stride + (size_t)c->left * n;
    unsigned char *to =
        (unsigned char *)(uintptr_t)m->pixels; /* the pixels lie in a scratch buffer */
    if (c->width == m->width) {
        m->pixels = from;
    } else {
        for (int64_t y = 0; y < c->height; y++)
            memmove(to + (size_t)y * line, from + (size_t)y * stride, line);
    }
    m->height = c->height;
    m->width = c->width;
}

/* Move the rows of a picture, which lie at the begin of `out`, to their place from the last one on,
 * and set the rest to 0. */
void keel_resample_spread(const keel_resample *r, const keel_image_part *p, void *out, size_t pixel)
{
    const size_t line = (size_t)p->width * pixel, wide = (size_t)r->width * pixel;
    const size_t left = (size_t)p->left * pixel;
    char *at = out;
    if (p->height == r->height && p->width == r->width) return;
    for (int64_t y = p->height; y-- > 0;)
        memmove(at + (size_t)(p->top + y) * wide + left, at + (size_t)y * line, line);
    memset(at, 0, (size_t)p->top * wide);
    for (int64_t y = p->top; y < p->top + p->height; y++) {
        memset(at + (size_t)y * wide, 0, left);
        memset(at + (size_t)y * wide + left + line, 0, wide - left - line);
    }
    const int64_t below = p->top + p->height;
    memset(at + (size_t)below * wide, 0, (size_t)(r->height - below) * wide);
}

keel_status keel_resample_windows(const keel_resample *r, int64_t height, int64_t width,
                                  keel_image_part *from, keel_image_part *to)
{
    *to = pad_of(r, height, width);
    if (!to->height || !to->width)
        return keel_fail(
            KEEL_EDATA,
            "%lld x %lld pixels are too narrow to be padded to %lld x %lld: a side would "
            "have no pixel",
            (long long)height, (long long)width, (long long)r->height, (long long)r->width);
    *from = crop_of(r, height, width);
    return KEEL_OK;
}

static keel_status find_place(const keel_resample *r, keel_image *m, keel_image_part *p)
{
    keel_image_part c;
    KEEL_TRY(keel_resample_windows(r, m->height, m->width, &c, p));
    cut(m, &c);
    return KEEL_OK;
}

bool keel_resample_keeps_bytes(const keel_resample *r, int64_t h, int64_t w)
{
    if (r->method == KEEL_NEAREST) return true;
    if (r->method == KEEL_GAUSSIAN || r->method == KEEL_MITCHELLCUBIC) return false; /* they blur */
    const keel_image_part c = crop_of(r, h, w), p = pad_of(r, h, w);
    return c.height == p.height && c.width == p.width;
}

keel_status keel_resample_floats(const keel_resample *r, keel_image *m, float *out,
                                 keel_scratch *scratch, int buffer)
{
    keel_image_part p;
    KEEL_TRY(find_place(r, m, &p));
    if (r->method == KEEL_NEAREST) { /* bytes, widened from the last one on */
        const size_t n = (size_t)(p.height * p.width * m->channels);
        unsigned char *bytes = (unsigned char *)out;
        keel_resize_nearest(m, bytes, p.height, p.width);
        for (size_t i = n; i-- > 0;) out[i] = bytes[i];
    } else {
        KEEL_TRY(resize(r, m, out, p.height, p.width, scratch, buffer));
    }
    keel_resample_spread(r, &p, out, (size_t)m->channels * sizeof *out);
    return KEEL_OK;
}

keel_status keel_resample_bytes(const keel_resample *r, keel_image *m, unsigned char *out)
{
    keel_image_part p;
    KEEL_TRY(find_place(r, m, &p));
    if (m->height == p.height && m->width == p.width)
        memcpy(out, m->pixels, (size_t)(p.height * p.width * m->channels));
    else
        keel_resize_nearest(m, out, p.height, p.width);
    keel_resample_spread(r, &p, out, (size_t)m->channels);
    return KEEL_OK;
}

int64_t keel_resample_space(const keel_resample *r, int64_t height, int64_t width, int channels)
{
    const keel_image_part c = crop_of(r, height, width), p = pad_of(r, height, width);
    if (r->method == KEEL_NEAREST || p.height < 1 || p.width < 1) return 0;
    const axis y = { c.height, p.height, most_weights(r->method, c.height, p.height), NULL, NULL };
    const axis x = { c.width, p.width, most_weights(r->method, c.width, p.width), NULL, NULL };
    if (!by_lines(r, channels)) return (int64_t)spans_space(&y, &x, channels);
    return x.from == x.to && y.from == y.to ? 0 : (int64_t)keel_resize_space(x.to, channels);
}
