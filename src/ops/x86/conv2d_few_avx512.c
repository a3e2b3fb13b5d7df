/* conv2d on very few channels, the first layer's, with AVX-512: for each line i of the window a
 * product over the places of a line of y,
 *
 *     dW[i] [kw C, K] += xt [kw C, places] dy [places, K]
 *     y [places, K] += x [places, kw C] W[i] [kw C, K]     where K is below 16
 *
 * as what a line of the window looks at are kw C neighbours in memory, and the next place's begin
 * strides C further on: x is read in place, but for a copy of the lines in work with their border
 * of zeros. oneDNN wants another layout of all of x and dy.
 *
 * Measured against it on two lanes at 8 rows each: 13.5 and 8.6 ms for windows of 7x7 from
 * 224x224x3 to 64 filters, 3.0 and 1.2 ms for 3x3 to 32. On one lane at 32 rows of 64x256x1 to 8
 * filters of 1x64: 29 and 12 ms, forward 25 and 12. With 16 filters oneDNN's forward has no equal.
 */
#include "ops/x86/_blocks.h"
#include "ops/args.h"

KEEL_USES_OP(conv2d);

enum { CHANNELS_MOST = 4, ROWS_LEAST = 8 /* fewer leave adders idle */ };

typedef struct shape {
    int64_t h, w, c, y_h, y_w, k; /* of x and y */
    int64_t win_h, win_w;
    int64_t line; /* floats of a line of x with its border */
} shape;

static shape shape_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim, *w = n->weight[0].shape.dim;
    shape s = { x[0], x[1], x[2], y[0], y[1], y[2], w[0], w[1], 0 };
    const int64_t reach = (s.y_w - 1) * a->strides[1] + s.win_w, all = a->pad[2] + s.w;
    s.line = up((reach > all ? reach : all) * s.c, LANES);
    return s;
}

static keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    KEEL_TRY(vector_prepare(p));
    if (p->rows < 1 || a->groups != 1 || a->dilation[0] != 1 || a->dilation[1] != 1)
        return KEEL_EUNSUP;
    const shape s = shape_of(p->node);
    const bool forward = p->pass == KEEL_FORWARD && s.k < LANES;
    if (s.c > CHANNELS_MOST || s.win_w * s.c < ROWS_LEAST || s.k < LANES / 2 ||
        (p->pass != KEEL_WEIGHTS && !forward))
        return KEEL_EUNSUP;
    const int64_t apart = p->weight_adds ? (s.win_h * s.win_w * s.c + 1) * s.k : 0;
    p->scratch = (s.win_h * s.line + apart) * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* Line `y` of x, or of the zeros above and below, to its place among those in work. */
static void take_line(const shape *s, const keel_conv2d_args *a, const float *x, int64_t y,
                      float *lines)
{
    float *to = lines + y % s->win_h * s->line;
    const int64_t at = y - a->pad[0], left = a->pad[2] * s->c, n = s->w * s->c;
    memset(to, 0, (size_t)s->line * sizeof *to);
    if (at >= 0 && at < s->h) memcpy(to + left, x + at * n, (size_t)n * sizeof *to);
}

/* The lines of x that line y of the output sees are in work; *taken lines have been, those of the
 * border counted. */
static void take_lines(const shape *s, const keel_conv2d_args *a, const float *x, int64_t y,
                       float *lines, int64_t *taken)
{
    const int64_t first = y * a->strides[0];
    if (*taken < first) *taken = first;
    for (; *taken < first + s->win_h; (*taken)++) take_line(s, a, x, *taken, lines);
}

static void forward(const keel_call *c)
{
    const keel_conv2d_args *a = c->node->args;
    const shape s = shape_of(c->node);
    const int64_t inner = s.win_w * s.c;
    float *y = c->out[0], *const lines = c->scratch;
    for (int64_t r = 0; r < c->rows; r++) {
        const float *x = (const float *)c->in[0] + r * s.h * s.w * s.c;
        int64_t taken = 0;
        for (int64_t h = 0; h < s.y_h; h++, y += s.y_w * s.k) {
            take_lines(&s, a, x, h, lines, &taken);
            for (int64_t i = 0; i < s.win_h; i++) {
                const product p = { .a = lines + (h * a->strides[0] + i) % s.win_h * s.line,
                                    .a_row = a->strides[1] * s.c,
                                    .a_step = 1,
                                    .w = (const float *)c->weight[0] + i * inner * s.k,
                                    .w_row = s.k,
                                    .inner = inner,
                                    .out = y,
                                    .out_row = s.k,
                                    .start = c->node->n_weight > 1 ? c->weight[1] : NULL,
                                    .resumes = i > 0 };
                multiply(&p, s.y_w, s.k);
            }
        }
    }
}

/* One line of dy; `more` lines follow, of which the next is asked for. */
static void add_line(const shape *s, const keel_conv2d_args *a, const float *lines, int64_t y,
                     const float *dy, bool more, float *dw, bool adds)
{
    const int64_t rows = s->win_w * s->c, dy_bytes = s->k * (int64_t)sizeof *dy;
    for (int64_t i = 0; i < s->win_h; i++)
        for (int64_t k = 0; k < s->k; k += PANEL) {
            const int64_t width = at_most(s->k - k, PANEL);
            const int64_t vectors = up(width, LANES) / LANES, most = ROWS_OF(vectors);
            const int64_t asked = i * ((rows + most - 1) / most);
            product p = { .a = lines + (y * a->strides[0] + i) % s->win_h * s->line,
                          .a_row = 1,
                          .a_step = a->strides[1] * s->c,
                          .w = dy + k,
                          .w_row = s->k,
                          .inner = s->y_w,
                          .out = dw + i * rows * s->k + k,
                          .out_row = s->k,
                          .adds = adds };
            if (more && asked < vectors)
                p.ask[0] = (ask){ (const char *)(dy + s->y_w * s->k + k) + asked * LINE, dy_bytes,
                                  vectors - asked };
            multiply(&p, rows, width);
        }
}

static void weights(const keel_call *c)
{
    const keel_conv2d_args *a = c->node->args;
    const shape s = shape_of(c->node);
    const int64_t count = s.win_h * s.win_w * s.c * s.k;
    float *const lines = c->scratch, *const apart = lines + s.win_h * s.line;
    float *const to[] = { c->weight_grad[0], c->node->n_weight > 1 ? c->weight_grad[1] : NULL };
    float *const dw = to[0] && c->weight_adds ? apart : to[0];
    float *const db = to[1] && c->weight_adds ? apart + count : to[1];
    const float *dy = c->out_grad[0];
    if (db) memset(db, 0, (size_t)s.k * sizeof *db);
    for (int64_t r = 0; r < c->rows; r++) {
        const float *x = (const float *)c->in[0] + r * s.h * s.w * s.c;
        int64_t taken = 0;
        for (int64_t y = 0; y < s.y_h; y++, dy += s.y_w * s.k) {
            if (dw) take_lines(&s, a, x, y, lines, &taken);
            const bool more = y + 1 < s.y_h || r + 1 < c->rows;
            if (dw) add_line(&s, a, lines, y, dy, more, dw, r > 0 || y > 0);
            if (db) add_bias(db, dy, s.y_w, s.k);
        }
    }
    if (c->weight_adds && dw) VECTOR_MOVE(to[0], dw, count, true);
    if (c->weight_adds && db) VECTOR_MOVE(to[1], db, s.k, true);
}

const keel_kernel keel_kernel_conv2d_few_avx512 = {
    .op = &keel_op_conv2d,
    .name = "few_avx512",
    .needs = KEEL_CPU_AVX512,
    .priority = KEEL_PRIORITY_FEW_CHANNELS_AVX512,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_WEIGHTS] = weights },
};
