/* Projects each image by numbers drawn for its row: output (x, y) is the image at ((a0 x + a1 y +
 * a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1. Coordinates are always computed in
 * float32, as in TensorFlow's ImageProjectiveTransformV3. The gradient is that of the
 * interpolation; TensorFlow's uses the inverse projection instead, which is an approximation.
 * Keras: RandomFlip, RandomCrop, RandomRotation, RandomZoom, RandomTranslation, RandomShear,
 * RandomPerspective, ops.image.affine_transform. */
#ifndef REAL
#include "ops/warp.h"
#include "base/clones.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/mirror.h"
#include <math.h>
#include <string.h>

KEEL_USES_OP(warp);

enum { SIDE_MAX = 1 << 24 }; /* from here on float32 has no number for each place */

static keel_status infer(keel_node *n)
{
    const keel_warp_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    keel_shape out = n->in[0].shape;
    if (out.dim[0] > SIDE_MAX || out.dim[1] > SIDE_MAX)
        return keel_fail(KEEL_EUNSUP, "warp: a side of %lld x %lld pixels is above 2^24",
                         (long long)out.dim[0], (long long)out.dim[1]);
    for (int d = 0; a->kind == KEEL_WARP_CROP && d < 2; d++) {
        if (a->size[d] < 1 || a->size[d] > out.dim[d])
            return keel_fail(KEEL_ESHAPE, "warp: %lld places cannot be cropped from %lld",
                             (long long)a->size[d], (long long)out.dim[d]);
        out.dim[d] = a->size[d];
    }
    if (a->kind == KEEL_WARP_LEAN && (out.dim[0] < 2 || out.dim[1] < 2))
        return keel_fail(KEEL_ESHAPE, "warp: %lld x %lld pixels have no four corners",
                         (long long)out.dim[0], (long long)out.dim[1]);
    return keel_infer_out(n, &out);
}

/* Where three corners move as draws say, the first being (0, 0), what is seen at them is what was
 * at the corners of an image of w + 1 by h + 1. */
static void lean(float m[8], const keel_call *c, int64_t row, keel_range range, double w, double h)
{
    const uint32_t from = ((const keel_warp_args *)c->node->args)->first;
    const double right = 1 + keel_draw(c, row, from + 4, range),
                 down = 1 + keel_draw(c, row, from + 7, range);
    const double x = 1 + keel_draw(c, row, from + 8, range),
                 y = 1 + keel_draw(c, row, from + 9, range);
    const double c0 = (y / down - 1) / (x * w), c1 = (x / right - 1) / (y * h);
    m[0] = (float)(c0 * w + 1 / right);
    m[4] = (float)(c1 * h + 1 / down);
    m[6] = (float)c0;
    m[7] = (float)c1;
}

/* Turn by cos and sin about the middle (x, y). */
static void turn(float m[8], double cosine, double sine, double x, double y)
{
    m[0] = m[4] = (float)cosine;
    m[1] = (float)-sine;
    m[3] = (float)sine;
    m[2] = (float)(x - x * cosine + y * sine);
    m[5] = (float)(y - x * sine - y * cosine);
}

/* The numbers a0 a1 a2 b0 b1 b2 c0 c1 of a row of the call. */
static void numbers_of(float m[8], const keel_call *c, int64_t row)
{
    const keel_warp_args *a = c->node->args;
    const int64_t h = c->node->in[0].shape.dim[0], w = c->node->in[0].shape.dim[1];
    const double middle[2] = { (double)(h - 1) / 2, (double)(w - 1) / 2 };
    const double first = keel_draw(c, row, a->first, a->range[0]);
    const double second = a->alike ? first : keel_draw(c, row, a->first + 1, a->range[1]);
    memcpy(m, (const float[8]){ 1, 0, 0, 0, 1, 0, 0, 0 }, 8 * sizeof *m);
    switch (a->kind) {
    case KEEL_WARP_FLIP:
        if (first > 0.5) return;
        if (a->across) m[0] = -1, m[2] = (float)(w - 1);
        if (a->down) m[4] = -1, m[5] = (float)(h - 1);
        return;
    case KEEL_WARP_CROP:
        m[2] = (float)floor(second * (double)(w - a->size[1] + 1));
        m[5] = (float)floor(first * (double)(h - a->size[0] + 1));
        return;
    case KEEL_WARP_ROTATE: {
        const double radians = first * (3.14159265358979323846 / 180);
        turn(m, cos(radians), sin(radians), middle[1], middle[0]);
        return;
    }
    case KEEL_WARP_ZOOM:
        m[0] = (float)second;
        m[2] = (float)(middle[1] * (1 - second));
        m[4] = (float)first;
        m[5] = (float)(middle[0] * (1 - first));
        return;
    case KEEL_WARP_TRANSLATE:
        m[2] = (float)(-second * (double)w);
        m[5] = (float)(-first * (double)h);
        return;
    case KEEL_WARP_SHEAR: {
        const double sign = keel_draw(c, row, a->first + 2, a->range[2]) > 0.5 ? -1 : 1;
        m[1] = (float)(sign * second);
        m[3] = (float)(sign * first);
        return;
    }
    case KEEL_WARP_LEAN:
        if (second < first) lean(m, c, row, a->range[2], (double)(w - 1), (double)(h - 1));
        return;
    case KEEL_WARP_MATRIX:
        for (int i = 0; i < 8; i++) m[i] = (float)a->matrix[i];
        return;
    }
}

bool keel_warp_is_view(const keel_node *n)
{
    if (n->op != &keel_op_warp) return false;
    const keel_warp_kind kind = ((const keel_warp_args *)n->args)->kind;
    return kind == KEEL_WARP_FLIP || kind == KEEL_WARP_CROP;
}

void keel_warp_show(const keel_call *c, keel_view *v)
{
    const keel_warp_args *a = c->node->args;
    float m[8];
    numbers_of(m, c, 0);
    if (a->kind == KEEL_WARP_FLIP) {
        v->mirrored ^= m[0] < 0;
        v->upside_down ^= m[4] < 0;
        return;
    }
    const int64_t down = (int64_t)m[5], right = (int64_t)m[2];
    v->top += v->upside_down ? v->height - a->size[0] - down : down;
    v->left += v->mirrored ? v->width - a->size[1] - right : right;
    v->height = a->size[0];
    v->width = a->size[1];
}

#include "ops/_warp_spots.h"

/* ---- pixels as they are ---------------------------------------------------------------------- */

/* The part of an image that the output shows. */
static void cut_out(char *to, const char *from, const float m[8], const keel_node *n, size_t size)
{
    const keel_shape *in = &n->in[0].shape, *out = &n->out[0].shape;
    const size_t line = (size_t)in->dim[1] * size, part = (size_t)out->dim[1] * size;
    from += (size_t)m[5] * line + (size_t)m[2] * size;
    for (int64_t i = 0; i < out->dim[0]; i++, from += line, to += part) memcpy(to, from, part);
}

/* Other projections that see a whole pixel of the image everywhere. */
static void pick(char *to, const char *from, const keel_call *c, const float m[8], size_t size)
{
    const keel_shape *in = &c->node->in[0].shape, *out = &c->node->out[0].shape;
    const size_t element = size / (size_t)out->dim[2];
    spots s;
    for (int64_t i = 0; i < out->dim[0]; i++)
        for (int64_t j = 0; j < out->dim[1]; j += SPOTS) {
            const int n = out->dim[1] - j < SPOTS ? (int)(out->dim[1] - j) : SPOTS;
            look(&s, c, m, i, j, n);
            for (int k = 0; k < n; k++, to += size)
                memcpy(to, from + (size_t)place(in, s.top[k], s.left[k]) * element, size);
        }
}

static bool move(const keel_call *c, size_t element)
{
    const keel_warp_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape, *out = &c->node->out[0].shape;
    const bool turns = a->kind == KEEL_WARP_FLIP, crops = a->kind == KEEL_WARP_CROP;
    const bool inside_all = a->fill != KEEL_FILL_CONSTANT && a->kind < KEEL_WARP_LEAN;
    if (!turns && !crops && !(a->nearest && inside_all)) return false;
    const size_t size = (size_t)in->dim[2] * element;
    const char *from = c->rows ? c->in[0] : NULL;
    char *to = c->rows ? c->out[0] : NULL;
    if (!turns && c->rows && to == from) return false;
    for (int64_t row = 0; row < c->rows; row++) {
        float m[8];
        numbers_of(m, c, row);
        if (turns)
            keel_mirror(to, from, in->dim[0], in->dim[1], size, m[0] < 0, m[4] < 0);
        else if (crops)
            cut_out(to, from, m, c->node, size);
        else
            pick(to, from, c, m, size);
        from += (size_t)(in->dim[0] * in->dim[1]) * size;
        to += (size_t)(out->dim[0] * out->dim[1]) * size;
    }
    return true;
}

#define REAL_FILE "ops/warp.c"
#include "ops/real.h"

#define FROM    uint8_t
#define TO      float
#define NAME(x) x##_bytes
/* As compilers turn four bytes into numbers one by one, they are spread by hand. */
#define FOUR(v, x)                                                                                 \
    do {                                                                                           \
        uint32_t four;                                                                             \
        memcpy(&four, x, sizeof four);                                                             \
        const whole4 few = { (int32_t)four };                                                      \
        (v) = __builtin_convertvector(                                                             \
            (whole4)__builtin_shufflevector((bytes16)few, (bytes16){ 0 }, 0, 16, 16, 16, 1, 16,    \
                                            16, 16, 2, 16, 16, 16, 3, 16, 16, 16),                 \
            to4);                                                                                  \
    } while (0)
typedef int32_t whole4 __attribute__((vector_size(16)));
typedef uint8_t bytes16 __attribute__((vector_size(16)));
#include "ops/_warp_blend.h"
#undef FROM
#undef TO
#undef NAME
#undef FOUR

static void forward_bytes(const keel_call *c)
{
    const uint8_t *x = c->in[0];
    float *y = c->out[0], m[8];
    for (int64_t row = 0; row < c->rows; row++) {
        numbers_of(m, c, row);
        blend_bytes(c, y, x, m);
        x += keel_row_count(&c->node->in[0]);
        y += keel_row_count(&c->node->out[0]);
    }
}

static void range_for_case(keel_range *r, const char *text, const char *low, const char *high)
{
    if (keel_case_has(text, low)) keel_case_number(text, low, &r->low);
    r->high = r->low;
    if (keel_case_has(text, high)) keel_case_number(text, high, &r->high);
}

/* A kind, and what is drawn: "zoom first 0.75 second 1.5" always draws that; "first 0.5 first_to 2"
 * is a range. */
static void args_for_case(void *args, const char *text)
{
    static const char *const kinds[] = { "flip",      "crop",  "rotate", "zoom",
                                         "translate", "shear", "lean" };
    static const char *const fills[] = { "reflect", "constant", "wrap", "edge" };
    keel_warp_args *a = args;
    for (int i = 0; i < 7; i++)
        if (keel_case_has(text, kinds[i])) a->kind = (keel_warp_kind)i;
    for (int i = 0; i < 4; i++)
        if (keel_case_has(text, fills[i])) a->fill = (keel_warp_fill)i;
    range_for_case(&a->range[0], text, "first", "first_to");
    range_for_case(&a->range[1], text, "second", "second_to");
    range_for_case(&a->range[2], text, "third", "third_to");
    a->alike = keel_case_has(text, "alike");
    a->across = keel_case_has(text, "across");
    a->down = keel_case_has(text, "down");
    a->nearest = keel_case_has(text, "nearest");
    keel_case_number(text, "value", &a->fill_value);
    keel_case_ints(text, "size", a->size, 2);
}

const keel_op keel_op_warp = {
    .name = "warp",
    .args_size = sizeof(keel_warp_args),
    .infer = infer,
    .forward = REALS(forward),
    .forward_bytes = forward_bytes,
    .move = move,
    .backward = REALS(backward),
    .costly = true,
    .cases =
        (const keel_case[]){
            { "4,5,2", NULL, "flip across down nearest first 0 first_to 1" },
            { "5,4,3", NULL, "crop size 3,2 nearest first 0 first_to 1 second 0 second_to 1" },
            { "5,6,2", NULL, "rotate first -180 first_to 180 reflect" },
            { "6,5,1", NULL, "rotate first 20 constant value 0.5" },
            { "5,4,2", NULL, "zoom first 0.5 first_to 2 alike wrap" },
            { "1,5,3", NULL, "zoom first 1.5 second 0.4 edge" },
            { "4,5,2", NULL,
              "translate first -1 first_to 1 second -1 second_to 1 constant nearest" },
            { "4,1,2", NULL, "translate first 0.3 second 0.7 reflect" },
            { "5,6,2", NULL, "shear first 0 first_to 1 second 0.25 third 0 third_to 1" },
            { "5,6,2", NULL,
              "lean first 0.75 second 0 second_to 1 third -0.5 third_to 0.5 constant" },
            { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#define FROM       REAL
#define TO         REAL
#define NAME(x)    REAL_(x)
#define FOUR(v, x) memcpy(&(v), x, sizeof(v))
#include "ops/_warp_blend.h"
#undef FROM
#undef TO
#undef NAME
#undef FOUR

static void REAL_(forward)(const keel_call *c)
{
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    float m[8];
    if (move(c, sizeof(REAL))) return;
    for (int64_t row = 0; row < c->rows; row++) {
        numbers_of(m, c, row);
        REAL_(blend)(c, y, x, m);
        x += keel_row_count(&c->node->in[0]);
        y += keel_row_count(&c->node->out[0]);
    }
}

/* The gradient of one pixel, to those that made it. */
static void REAL_(share_out)(REAL *dx, const REAL *dy, const keel_shape *in, const spots *s, int i,
                             bool whole)
{
    const REAL right = (REAL)s->right[i], down = (REAL)s->down[i];
    const REAL share[4] = { (1 - down) * (1 - right), (1 - down) * right, down * (1 - right),
                            down * right };
    int64_t at[4];
    places(at, in, s, i);
    for (int p = 0; p < (whole ? 1 : 4); p++)
        for (int64_t k = 0; at[p] >= 0 && k < in->dim[2]; k++)
            dx[at[p] + k] += (whole ? 1 : share[p]) * dy[k];
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_warp_args *a = c->node->args;
    const keel_shape *out = &c->node->out[0].shape;
    const int64_t n_in = keel_row_count(&c->node->in[0]), channels = out->dim[2];
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    spots s;
    float m[8];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += n_in) {
        numbers_of(m, c, row);
        if (!c->in_adds[0]) memset(dx, 0, (size_t)n_in * sizeof *dx);
        for (int64_t i = 0; i < out->dim[0]; i++)
            for (int64_t j = 0; j < out->dim[1]; j += SPOTS) {
                const int n = out->dim[1] - j < SPOTS ? (int)(out->dim[1] - j) : SPOTS;
                look(&s, c, m, i, j, n);
                for (int k = 0; k < n; k++, dy += channels)
                    REAL_(share_out)(dx, dy, &c->node->in[0].shape, &s, k, a->nearest);
            }
    }
}
#endif
