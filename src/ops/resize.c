/* `size` places along one axis, made of `length` of them from `begin` on: the nearest one, or sums
 * weighted by a kernel of the distance. Places have their value in their middle. A weight is a
 * float32 number made as TensorFlow makes it, whose bicubic kernel is a table of 1024 steps unless
 * it antialiases. Keras: image.resize, of which this is one of the two dims; Resizing, CenterCrop,
 * UpSampling2D; image.scale_and_translate, where places that see nothing are 0. */
#ifndef REAL
#include "ops/resize.h"
#include "base/clones.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

enum { PLACES_MAX = 1 << 24 }; /* from here on float32 has no number for each place */

static keel_status infer(keel_node *n)
{
    const keel_resize_args *a = n->args;
    int axis;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_axis(n, a->axis, &axis));
    keel_shape out = n->in[0].shape;
    const int64_t dim = out.dim[axis];
    if (a->size < 1 || a->size > PLACES_MAX || a->length < 1 || a->length > PLACES_MAX ||
        dim > PLACES_MAX)
        return keel_fail(KEEL_EARG, "resize: %lld of %lld places are not between 1 and 2^24",
                         (long long)a->size, (long long)a->length);
    if (a->begin <= -a->length || a->begin >= dim)
        return keel_fail(KEEL_EARG, "resize: %lld places from %lld see none of %lld",
                         (long long)a->length, (long long)a->begin, (long long)dim);
    if (a->moves && (!isfinite(a->scale) || (float)a->scale == 0 || !isfinite(a->translation)))
        return keel_fail(KEEL_EARG, "resize: a scale of %g and a translation of %g", a->scale,
                         a->translation);
    out.dim[axis] = a->size;
    n->scratch = a->size * (int64_t)sizeof(int64_t) +
                 a->size * keel_resize_taps(a) * (int64_t)sizeof(float); /* below 2^51 */
    return keel_infer_out(n, &out);
}

typedef struct table { /* out[o] = sum over t of weight[o][t] seen[first[o] + t] */
    int64_t taps;
    int64_t *first; /* [size] */
    float *weight;  /* [size][taps] */
} table;

static float kernel_of(keel_resize_method method, float x)
{
    const float pi = 3.14159265358979323846F;
    if (method == KEEL_RESIZE_BILINEAR) return x < 1 ? 1 - x : 0;
    if (method == KEEL_RESIZE_BICUBIC) {
        if (x >= 2) return 0;
        if (x >= 1) return ((-0.5F * x + 2.5F) * x - 4) * x + 2;
        return (1.5F * x - 2.5F) * x * x + 1;
    }
    const float radius = method == KEEL_RESIZE_LANCZOS3 ? 3 : 5;
    if (x > radius) return 0;
    if (x <= 1e-3F) return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

/* n weights that sum to 1, unless they are next to nothing. */
static void divide(float *w, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += w[i];
    for (int64_t i = 0; fabsf(sum) >= 1000 * 0x1p-126F && i < n; i++) w[i] *= 1 / sum;
}

/* Of a dim that moves: nothing is seen from outside it, nor by weights that are next to nothing. */
static void by_moved_kernel(const keel_resize_args *a, table *t, int64_t o)
{
    const float inverse = keel_resize_inverse(a), widen = keel_resize_widen(a);
    const float reach = (float)keel_resize_radius(a) * widen, last = (float)(a->length - 1);
    const float at = ((float)o + 0.5F) * inverse - (float)a->translation * inverse - 0.5F;
    float *w = t->weight + o * t->taps, sum = 0;
    t->first[o] = 0;
    if (!(at >= -0.5F && at <= last + 0.5F)) return;
    const float from = fmaxf(ceilf(at - reach), 0), to = fminf(floorf(at + reach), last);
    const int64_t n = (int64_t)to - (int64_t)from + 1;
    t->first[o] = (int64_t)from;
    for (int64_t i = 0; i < n; i++)
        sum += w[i] = kernel_of(a->method, fabsf(at - (from + (float)i)) / widen);
    const bool some = fabsf(sum) > 1000 * 0x1p-23F;
    for (int64_t i = 0; i < n; i++) w[i] = some ? w[i] / sum : 0;
}

static void by_kernel(const keel_resize_args *a, table *t, int64_t o)
{
    const float inverse = keel_resize_inverse(a), widen = keel_resize_widen(a);
    const float reach = (float)keel_resize_radius(a) * widen;
    const float at = ((float)o + 0.5F) * inverse, last = (float)(a->length - 1);
    float from = ceilf(at - reach - 0.5F), to = floorf(at + reach - 0.5F);
    float *w = t->weight + o * t->taps;
    from = from < 0 ? 0 : from > last ? last : from;
    to = to < 0 ? 0 : to > last ? last : to;
    t->first[o] = (int64_t)from;
    const int64_t n = (int64_t)to - t->first[o] + 1;
    for (int64_t i = 0; i < n; i++)
        w[i] = kernel_of(a->method, fabsf((from + (float)i + 0.5F - at) * (1 / widen)));
    divide(w, n);
}

static void by_cubic_table(const keel_resize_args *a, table *t, int64_t o)
{
    const float scale = (float)a->length / (float)a->size;
    const float at = ((float)o + 0.5F) * scale - 0.5F, left = floorf(at);
    const float share = (float)lrintf((at - left) * 1024) / 1024;
    const float weight[4] = { kernel_of(a->method, 1 + share), kernel_of(a->method, share),
                              kernel_of(a->method, 1 - share), kernel_of(a->method, 2 - share) };
    float *w = t->weight + o * t->taps;
    int64_t n = 0;
    for (int64_t i = 0; i < 4; i++) {
        const int64_t from = (int64_t)left - 1 + i;
        if (from < 0 || from >= a->length) continue;
        if (n == 0) t->first[o] = from;
        w[n++] = weight[i];
    }
    divide(w, n);
}

static void by_area(const keel_resize_args *a, table *t, int64_t o)
{
    const float scale = (float)a->length / (float)a->size;
    const float from = (float)o * scale, to = (float)(o + 1) * scale;
    float *w = t->weight + o * t->taps;
    t->first[o] = (int64_t)floorf(from);
    for (int64_t i = 0; i < t->taps; i++) {
        const float v = (float)(t->first[o] + i);
        if (v >= to || t->first[o] + i >= a->length) break;
        w[i] = (v < from ? (v + 1 > to ? scale : v + 1 - from) : v + 1 > to ? to - v : 1) / scale;
    }
}

static void by_neighbours(const keel_resize_args *a, table *t, int64_t o)
{
    const float scale = (float)a->length / (float)a->size, last = (float)(a->length - 1);
    const float at = ((float)o + 0.5F) * scale;
    float *w = t->weight + o * t->taps;
    w[0] = 1;
    if (a->method == KEEL_RESIZE_NEAREST) {
        t->first[o] = (int64_t)(at < last ? floorf(at) : last);
        return;
    }
    const float left = floorf(at - 0.5F);
    t->first[o] = left < 0 ? 0 : (int64_t)left;
    if (left < 0 || left >= last) return; /* both neighbours are the one at the border */
    w[1] = at - 0.5F - left;
    w[0] = 1 - w[1];
}

/* The table of a call, in its scratch. */
static table table_of(const keel_call *c)
{
    const keel_resize_args *a = c->node->args;
    table t = { keel_resize_taps(a), c->scratch, NULL };
    t.weight = (float *)(t.first + a->size);
    memset(t.weight, 0, (size_t)(a->size * t.taps) * sizeof *t.weight);
    for (int64_t o = 0; o < a->size; o++) {
        if (a->moves)
            by_moved_kernel(a, &t, o);
        else if (a->size == a->length)
            t.first[o] = o, t.weight[o * t.taps] = 1;
        else if (keel_resize_radius(a) > 0)
            by_kernel(a, &t, o);
        else if (a->method == KEEL_RESIZE_BICUBIC)
            by_cubic_table(a, &t, o);
        else if (a->method == KEEL_RESIZE_AREA)
            by_area(a, &t, o);
        else
            by_neighbours(a, &t, o);
    }
    return t;
}

static keel_axis_split split_of(const keel_call *c)
{
    const keel_resize_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    keel_axis_split s = keel_split_at(in, (int)(a->axis < 0 ? a->axis + in->rank : a->axis));
    s.outer *= c->rows;
    return s;
}

/* Each place is one of the input's. */
static bool move(const keel_call *c, size_t element)
{
    const keel_resize_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const size_t size = (size_t)s.inner * element;
    const bool one = a->size == a->length || a->method == KEEL_RESIZE_NEAREST;
    if (a->moves || !one || a->begin < 0 || a->begin + a->length > s.n) return false;
    if (!c->rows) return true;
    const char *from = c->in[0];
    char *to = c->out[0];
    const table t = table_of(c);
    for (int64_t outer = 0; outer < s.outer; outer++, from += (size_t)s.n * size)
        if (a->size == a->length) {
            memcpy(to, from + (size_t)a->begin * size, (size_t)a->size * size);
            to += (size_t)a->size * size;
        } else
            for (int64_t o = 0; o < a->size; o++, to += size)
                memcpy(to, from + (size_t)(a->begin + t.first[o]) * size, size);
    return true;
}

#define FROM    uint8_t
#define TO      float
#define NAME(x) bytes_##x
#include "ops/_resize_sum.h"

/* Images are resized without a copy of real numbers. */
static void forward_bytes(const keel_call *c)
{
    bytes_sum(c);
}

#define REAL_FILE "ops/resize.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    static const char *const methods[] = { "nearest",  "bilinear", "bicubic",
                                           "lanczos3", "lanczos5", "area" };
    keel_resize_args *a = args;
    keel_case_ints(text, "axis", &a->axis, 1);
    keel_case_ints(text, "size", &a->size, 1);
    keel_case_ints(text, "begin", &a->begin, 1);
    keel_case_ints(text, "length", &a->length, 1);
    keel_case_number(text, "fill", &a->fill);
    a->antialias = keel_case_has(text, "antialias");
    a->moves = keel_case_has(text, "scale");
    keel_case_number(text, "scale", &a->scale);
    keel_case_number(text, "translation", &a->translation);
    for (int i = 0; i < 6; i++)
        if (keel_case_has(text, methods[i])) a->method = (keel_resize_method)i;
}

const keel_op keel_op_resize = {
    .name = "resize",
    .args_size = sizeof(keel_resize_args),
    .infer = infer,
    .forward = REALS(forward),
    .forward_bytes = forward_bytes,
    .move = move,
    .backward = REALS(backward),
    .cases =
        (const keel_case[]){
            { "5,4,2", NULL, "axis 0 length 5 size 8" },
            { "5,4,2", NULL, "axis 1 length 2 begin 1 size 2" },
            { "5,4,2", NULL, "axis 0 length 5 size 3 bilinear" },
            { "4,5,3", NULL, "axis -2 length 9 begin -2 size 7 fill 0.5 bilinear" },
            { "7,2", NULL, "axis 0 length 7 size 3 bilinear antialias" },
            { "7,2", NULL, "axis 0 length 7 size 3 bicubic antialias" },
            { "3,7", NULL, "axis 1 length 7 size 16 bicubic" },
            { "6,5", NULL, "axis 0 length 6 size 9 lanczos3" },
            { "9,1", NULL, "axis 0 length 9 size 4 lanczos5 antialias" },
            { "9,2", NULL, "axis 0 length 9 size 4 area" },
            { "1,2", NULL, "axis 0 length 1 size 3 bicubic" },
            { "7,2", NULL, "axis 0 length 7 size 5 bicubic scale 0.6 translation 0.5" },
            { "5,2", NULL,
              "axis 0 length 5 size 6 bilinear antialias scale -0.5 "
              "translation 4" },
            { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#define FROM    REAL
#define TO      REAL
#define NAME(x) REAL_(x)
#include "ops/_resize_sum.h"

static void REAL_(forward)(const keel_call *c)
{
    if (!move(c, sizeof(REAL))) REAL_(sum)(c);
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_resize_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const table t = table_of(c);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t outer = 0; dx && outer < s.outer; outer++, dx += s.n * s.inner) {
        if (!c->in_adds[0]) memset(dx, 0, (size_t)(s.n * s.inner) * sizeof *dx);
        for (int64_t o = 0; o < a->size; o++, dy += s.inner)
            for (int64_t k = 0; k < t.taps; k++) {
                const REAL weight = (REAL)t.weight[o * t.taps + k];
                const int64_t at = a->begin + t.first[o] + k;
                if (weight != 0 && at >= 0 && at < s.n)
                    REAL_(add_share)(dx + at * s.inner, dy, weight, s.inner);
            }
    }
}
#endif
