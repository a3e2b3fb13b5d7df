/* Where warp.c looks: for pixels side by side of an output, the pixels of the image that make each.
 * Lines are worked out in vectors, one branch-free loop for each way to fill. */

enum { SPOTS = 64 };

typedef struct spots {
    int32_t top[SPOTS], left[SPOTS]; /* the first of four pixels, or the nearest; -1 is outside */
    float right[SPOTS], down[SPOTS]; /* the share of the right and of the lower ones */
    int32_t seen[SPOTS];             /* 0: nothing of the image */
} spots;

/* Where an image of n places shows what is seen at x. */
static inline __attribute__((always_inline)) float inside(float x, int64_t n, keel_warp_fill fill)
{
    const float last = (float)(n - 1), length = (float)n;
    const bool outside = ((x < 0) | (x > last)) & (n > 1);
    if (fill == KEEL_FILL_CONSTANT) return x;
    if (fill == KEEL_FILL_REFLECT) {
        const float from = x < 0 ? -x - 1 : x;
        const float of_two = from - 2 * length * floorf(from / (2 * length));
        const float back = of_two >= length ? 2 * length - of_two - 1 : of_two;
        x = outside ? back : x;
    }
    /* The period is n, but it is counted in steps of n - 1, as TensorFlow does. */
    if (fill == KEEL_FILL_WRAP) {
        const float times = truncf((x < 0 ? -x : x) / last);
        const float back = x < 0 ? x + length * (times + 1) : x - length * times;
        x = outside ? back : x;
    }
    x = x > last ? last : x;
    return x < 0 ? 0 : x; /* a NaN stays one: nothing is there */
}

/* The whole number before x, or the nearest one, halves away from 0. x > -1. */
static inline int32_t before(float x)
{
    return (int32_t)x - (x < 0);
}

static inline int32_t nearest(float x)
{
    const int32_t whole = (int32_t)x;
    return whole + (x - (float)whole >= 0.5F) - (x <= -0.5F);
}

/* n pixels of line `row` from column `first` on, of an image of h lines of w. */
static inline __attribute__((always_inline)) void find(spots *restrict s, const float m[8],
                                                       int64_t h, int64_t w, int64_t row,
                                                       int64_t first, int n, bool whole, bool flat,
                                                       keel_warp_fill fill)
{
    const float y = (float)row, wide = (float)w, high = (float)h;
    const float a0 = m[0], a1 = m[1], a2 = m[2], b0 = m[3], b1 = m[4], b2 = m[5];
    const int32_t begin = (int32_t)first;
    float at_x[SPOTS], at_y[SPOTS];
    for (int i = 0; i < n; i++) {
        at_x[i] = a0 * (float)(begin + i) + a1 * y + a2;
        at_y[i] = b0 * (float)(begin + i) + b1 * y + b2;
    }
    for (int i = 0; i < n && !flat; i++) {
        const float k = m[6] * (float)(begin + i) + m[7] * y + 1;
        at_x[i] /= k != 0 ? k : NAN;
        at_y[i] /= k;
    }
    for (int i = 0; i < n; i++) at_x[i] = inside(at_x[i], w, fill);
    for (int i = 0; i < n; i++) at_y[i] = inside(at_y[i], h, fill);
    for (int i = 0; i < n; i++) {
        const int32_t seen = (at_x[i] > -1) & (at_x[i] < wide) & (at_y[i] > -1) & (at_y[i] < high);
        const float to_x = seen ? at_x[i] : 0, to_y = seen ? at_y[i] : 0;
        s->left[i] = whole ? nearest(to_x) : before(to_x);
        s->top[i] = whole ? nearest(to_y) : before(to_y);
        s->right[i] = to_x - (float)s->left[i];
        s->down[i] = to_y - (float)s->top[i];
        s->seen[i] = seen;
    }
}

#define FIND(whole, flat, fill) find(s, m, in->dim[0], in->dim[1], row, first, n, whole, flat, fill)
#define FIND_FOR(fill)                                                                             \
    case fill:                                                                                     \
        if (a->nearest)                                                                            \
            flat ? FIND(true, true, fill) : FIND(true, false, fill);                               \
        else                                                                                       \
            flat ? FIND(false, true, fill) : FIND(false, false, fill);                             \
        return;

KEEL_CLONES static void look(spots *s, const keel_call *c, const float m[8], int64_t row,
                             int64_t first, int n)
{
    const keel_warp_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const bool flat = m[6] == 0 && m[7] == 0;
    switch (a->fill) {
        FIND_FOR(KEEL_FILL_REFLECT)
        FIND_FOR(KEEL_FILL_CONSTANT)
        FIND_FOR(KEEL_FILL_WRAP)
        FIND_FOR(KEEL_FILL_NEAREST)
    }
}
#undef FIND_FOR
#undef FIND

static int64_t place(const keel_shape *in, int64_t y, int64_t x)
{
    if (y < 0 || y >= in->dim[0] || x < 0 || x >= in->dim[1]) return -1;
    return (y * in->dim[1] + x) * in->dim[2];
}

/* The first places of the pixels of a spot, top left, top right, bottom left, bottom right; -1:
 * outside. Of the nearest pixel there is only the first. */
static void places(int64_t at[4], const keel_shape *in, const spots *s, int i)
{
    for (int p = 0; p < 4; p++)
        at[p] = s->seen[i] ? place(in, s->top[i] + p / 2, s->left[i] + p % 2) : -1;
}
