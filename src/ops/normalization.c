/* y = (x - mean) / max(sqrt(variance), 1e-7), or the way back, with statistics that training does
 * not move. Keras: Normalization. */
#ifndef REAL
#include "ops/normalization.h"
#include "base/clones.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

enum {
    BYTES = 256,
    TABLES_MAX = 64,  /* what each byte becomes, for so many statistics */
    MULTIPLY_MAX = 8, /* by products, for so many */
    SPREAD = 64       /* times that these are written out, so that a loop has whole vectors */
};

/* What is made of the statistics before the first byte, in scratch. */
typedef struct prepared {
    double *scale, *mean; /* [own] */
    double *by_times[2];  /* mean and 1 / scale, written out for a period; NULL: too many */
    float *table;         /* [256, own]; NULL: too many */
    bool *multiplies;     /* products give the same bits as divisions */
    int64_t own, bytes;
} prepared;

static prepared prepared_at(int64_t own, char *scratch)
{
    prepared p = { .own = own };
    const int64_t each = (int64_t)sizeof(double) * own;
    const int64_t spread = own <= MULTIPLY_MAX ? SPREAD * each : 0;
    const int64_t table = own <= TABLES_MAX ? own * BYTES * (int64_t)sizeof(float) : 0;
    p.bytes = 2 * each + 2 * spread + table + (int64_t)sizeof(bool);
    if (!scratch) return p;
    p.scale = (void *)scratch;
    p.mean = p.scale + own;
    if (spread) p.by_times[0] = p.mean + own, p.by_times[1] = p.by_times[0] + SPREAD * own;
    if (table) p.table = (void *)(scratch + 2 * each + 2 * spread);
    p.multiplies = (void *)(scratch + 2 * each + 2 * spread + table);
    return p;
}

static keel_status infer(keel_node *n)
{
    const keel_normalization_args *a = n->args;
    char in[96], over[96];
    KEEL_TRY(keel_infer_check(n, 1, 0, 2));
    const keel_shape *x = &n->in[0].shape;
    keel_shape all = *x;
    const bool two = n->n_weight == 2 || (n->n_weight == 0 && a->mean && a->variance);
    bool good = two && keel_spread_over(&all, &a->over) && keel_shape_equal(&all, x);
    for (int k = 0; k < n->n_weight; k++)
        good = good && keel_shape_count(&n->weight[k].shape) == keel_shape_count(&a->over);
    if (good) {
        const int64_t own = keel_shape_count(&a->over);
        n->scratch = prepared_at(own, NULL).bytes;
        return keel_infer_out(n, x);
    }
    keel_shape_text(in, x);
    keel_shape_text(over, &a->over);
    return keel_fail(KEEL_ESHAPE, "normalization: statistics of %s do not fit rows of %s", over,
                     in);
}

/* A row is lines along its last dim; along one the statistics are neighbours, or the same. */
typedef struct lines {
    int64_t count, length, step;
    bool same; /* every line begins with the first statistic */
} lines;

static lines lines_of(const keel_node *n)
{
    const keel_shape *x = &n->in[0].shape;
    const int last = x->rank - 1;
    lines l = { .length = x->rank ? x->dim[last] : 1 };
    l.count = keel_shape_count(x) / l.length;
    const keel_shape *over = &((const keel_normalization_args *)n->args)->over;
    l.step = x->rank && over->dim[last] != 1;
    l.same = true;
    for (int d = 0; d < last; d++) l.same = l.same && over->dim[d] == 1;
    return l;
}

static int64_t begin_of(const keel_node *n, int64_t i)
{
    const keel_normalization_args *a = n->args;
    return keel_spread_index(&n->in[0].shape, &a->over, i);
}

#define REAL_FILE "ops/normalization.c"
#include "ops/real.h"

static void look_up(float *y, const uint8_t *x, int64_t count, const float *table, int64_t own)
{
    for (int64_t i = 0; i < count; i += own)
        for (int64_t k = 0; k < own; k++) y[i + k] = table[x[i + k] * own + k];
}

/* The same by products, several at a time; mean and factor are written out for a period. */
KEEL_CLONES
static void multiply(float *restrict y, const uint8_t *restrict x, int64_t count,
                     const double *restrict mean, const double *restrict factor, int64_t period)
{
    int64_t i = 0;
    for (; i + period <= count; i += period)
        for (int64_t k = 0; k < period; k++) y[i + k] = (float)((x[i + k] - mean[k]) * factor[k]);
    for (int64_t k = 0; i < count; i++, k++) y[i] = (float)((x[i] - mean[k]) * factor[k]);
}

/* What a byte becomes by each of `own` statistics: table[byte * own + k]. A product with 1 / scale
 * rounds twice, a division once, but nearly always to the same float. There are only 256 bytes, so
 * all are tried. */
static void prepare_bytes(const keel_normalization_args *a, const prepared *p)
{
    uint8_t every[BYTES * MULTIPLY_MAX];
    float made[BYTES * MULTIPLY_MAX];
    const int64_t own = p->own, period = own * SPREAD;
    for (int v = 0; v < BYTES; v++)
        for (int64_t k = 0; k < own; k++)
            p->table[v * own + k] = normalized_f32(a, (float)v, p->scale[k], p->mean[k]);
    *p->multiplies = !a->invert && p->by_times[0];
    if (!*p->multiplies) return;
    for (int64_t k = 0; k < period; k++) {
        p->by_times[0][k] = p->mean[k % own];
        p->by_times[1][k] = k < own ? 1 / p->scale[k] : p->by_times[1][k - own];
    }
    for (int64_t i = 0; i < BYTES * own; i++) every[i] = (uint8_t)(i / own);
    multiply(made, every, BYTES * own, p->by_times[0], p->by_times[1], period);
    *p->multiplies = memcmp(made, p->table, (size_t)(BYTES * own) * sizeof *made) == 0;
}

/* There are only 256 bytes, so most divisions of an image would be made again and again. */
static void forward_bytes(const keel_call *c)
{
    const keel_normalization_args *a = c->node->args;
    const prepared p = prepared_at(keel_shape_count(&a->over), c->scratch);
    const lines l = lines_of(c->node);
    const uint8_t *x = c->in[0];
    float *y = c->out[0];
    const int64_t count = c->rows * l.count * l.length;
    const bool tables = p.table && p.own * BYTES < count;
    if (!c->scratch_ready) statistics_f32(c, p.scale, p.mean, p.own);
    if (tables && !c->scratch_ready) prepare_bytes(a, &p);
    if (tables && l.same && (l.step || p.own == 1)) {
        if (*p.multiplies)
            multiply(y, x, count, p.by_times[0], p.by_times[1], p.own * SPREAD);
        else
            look_up(y, x, count, p.table, p.own);
        return;
    }
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t line = 0; line < l.count; line++, x += l.length, y += l.length) {
            int64_t k = l.same ? 0 : begin_of(c->node, line * l.length);
            for (int64_t i = 0; i < l.length; i++, k += l.step)
                y[i] = tables ? p.table[x[i] * p.own + k]
                              : normalized_f32(a, (float)x[i], p.scale[k], p.mean[k]);
        }
}

static bool by_pixels(const keel_node *n)
{
    const lines l = lines_of(n);
    return l.same;
}

static void args_for_case(void *args, const char *text)
{
    static const double mean[] = { 0.5, -1, 2, 0.25, 0, 3 };
    static const double variance[] = { 1, 4, 0.25, 2, 9, 0.5 };
    keel_normalization_args *a = args;
    *a = (keel_normalization_args){ .mean = mean, .variance = variance };
    a->invert = keel_case_has(text, "invert");
    a->over = keel_case_has(text, "all")     ? KEEL_SHAPE(1, 1, 1)
              : keel_case_has(text, "first") ? KEEL_SHAPE(4, 1, 1)
                                             : KEEL_SHAPE(1, 1, 3);
}

const keel_op keel_op_normalization = {
    .name = "normalization",
    .args_size = sizeof(keel_normalization_args),
    .infer = infer,
    .forward = REALS(forward),
    .forward_bytes = forward_bytes,
    .backward = REALS(backward),
    .inplace = true,
    .by_pixels = by_pixels,
    .cases = (const keel_case[]){ { "4,5,3", NULL, "last" },
                                  { "4,5,3", NULL, "first invert" },
                                  { "2,7,3", NULL, "all" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* What x is multiplied or divided by; the mean goes behind. */
static void REAL_(statistics)(const keel_call *c, double *scale, double *mean, int64_t n)
{
    const keel_normalization_args *a = c->node->args;
    const bool given = c->node->n_weight == 0;
    for (int64_t k = 0; k < n; k++) {
        const double variance = given ? a->variance[k] : (double)((const REAL *)c->weight[1])[k];
        const double root = sqrt(variance);
        mean[k] = given ? a->mean[k] : (double)((const REAL *)c->weight[0])[k];
        scale[k] = root > 1e-7 ? root : 1e-7;
    }
}

static inline REAL REAL_(normalized)(const keel_normalization_args *a, REAL x, double scale,
                                     double mean)
{
    return (REAL)(a->invert ? mean + x * scale : (x - mean) / scale);
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_normalization_args *a = c->node->args;
    const int64_t own = keel_shape_count(&a->over);
    const lines l = lines_of(c->node);
    double *scale = c->scratch, *mean = scale + own;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    REAL_(statistics)(c, scale, mean, own);
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t line = 0; line < l.count; line++, x += l.length, y += l.length) {
            int64_t k = l.same ? 0 : begin_of(c->node, line * l.length);
            for (int64_t i = 0; i < l.length; i++, k += l.step)
                y[i] = REAL_(normalized)(a, x[i], scale[k], mean[k]);
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_normalization_args *a = c->node->args;
    const int64_t own = keel_shape_count(&a->over);
    const lines l = lines_of(c->node);
    double *scale = c->scratch, *mean = scale + own;
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    if (!dx) return;
    REAL_(statistics)(c, scale, mean, own);
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t line = 0; line < l.count; line++, dx += l.length, dy += l.length) {
            int64_t k = l.same ? 0 : begin_of(c->node, line * l.length);
            for (int64_t i = 0; i < l.length; i++, k += l.step) {
                const double g = a->invert ? dy[i] * scale[k] : dy[i] / scale[k];
                dx[i] = (REAL)(c->in_adds[0] ? dx[i] + g : g);
            }
        }
}
#endif
