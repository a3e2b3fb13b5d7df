/* Bends each image [H, W, C] by a random field (Simard, Steinkraus, Platt 2003): of normal draws
 * for its pixels, blurred by a Gaussian window of deviation s = 0.05 f min(H, W), where f is drawn
 * for the row. The pixel at (y, x) shows what is seen at (y + d, x + d), where d is s times 0.1 f
 * max(H, W) times the field: one field moves both ways, as in Keras, which draws two with one seed.
 * What is seen outside follows Keras's map_coordinates, whose reflection has no edge at its
 * beginning. Coordinates are float32. Keras: RandomElasticTransform. */
#ifndef REAL
#include "ops/elastic.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

enum { SIDE_MAX = 1 << 24, NOISE_BLOCK = 1 /* of draws: behind the three of the row */ };

static int64_t reach_of(double deviation) /* of the window, on each side */
{
    return 3 * (int64_t)deviation;
}

static double deviation_of(const keel_node *n, double f)
{
    const int64_t *dim = n->in[0].shape.dim;
    return (double)(dim[0] < dim[1] ? dim[0] : dim[1]) * (0.05 * f);
}

static keel_status infer(keel_node *n)
{
    const keel_elastic_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    const int64_t *dim = n->in[0].shape.dim;
    if (dim[0] > SIDE_MAX || dim[1] > SIDE_MAX || dim[0] * dim[1] > UINT32_MAX)
        return keel_fail(KEEL_EUNSUP, "elastic: %lld x %lld pixels are more than 2^32",
                         (long long)dim[0], (long long)dim[1]);
    if (!(a->range[2].low >= 0 && a->range[2].high <= 1))
        return keel_fail(KEEL_EARG, "elastic: a scale from %g to %g is not in [0, 1]",
                         a->range[2].low, a->range[2].high);
    const int64_t window = 2 * reach_of(deviation_of(n, a->range[2].high)) + 1;
    n->scratch = (2 * dim[0] * dim[1] + window) * (int64_t)sizeof(double);
    return keel_infer_out(n, &n->in[0].shape);
}

/* to[i] = the weighted mean of from around place i of a line, with zeros beyond its ends. */
static void blur_line(double *to, const double *from, int64_t n, int64_t step, const double *window,
                      int64_t reach)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = i < reach ? -i : -reach, end = n - 1 - i < reach ? n - 1 - i : reach;
        double sum = 0;
        for (int64_t k = begin; k <= end; k++) sum += window[k + reach] * from[(i + k) * step];
        to[i * step] = sum;
    }
}

/* By how much each pixel of a row of the call moves, in scratch; NULL: the image stays. */
static const double *field_of(const keel_call *c, int64_t row)
{
    const keel_elastic_args *a = c->node->args;
    const int64_t *dim = c->node->in[0].shape.dim, count = dim[0] * dim[1];
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    double *field = c->scratch, *room = field + count, *window = room + count, sum = 0, z[4];
    if (!(keel_draw(c, row, 1, a->range[1]) < keel_draw(c, row, 0, a->range[0]))) return NULL;
    const double f = keel_draw(c, row, 2, a->range[2]), deviation = deviation_of(c->node, f);
    const double far = (double)(dim[0] > dim[1] ? dim[0] : dim[1]) * (0.1 * f) * deviation;
    const int64_t reach = reach_of(deviation);
    if (!(deviation > 0)) return NULL;
    for (int64_t k = -reach; k <= reach; k++) {
        const double x = (double)k / deviation;
        sum += window[k + reach] = exp(-0.5 * x * x);
    }
    for (int64_t k = 0; k <= 2 * reach; k++) window[k] /= sum;
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            keel_normals(z, &chance, c->step->first_row + (uint64_t)(c->row + row),
                         NOISE_BLOCK + (uint32_t)(i / 4));
        field[i] = far * z[i % 4];
    }
    for (int64_t i = 0; i < dim[0]; i++)
        blur_line(room + i * dim[1], field + i * dim[1], dim[1], 1, window, reach);
    for (int64_t j = 0; j < dim[1]; j++)
        blur_line(field + j, room + j, dim[0], dim[1], window, reach);
    return field;
}

/* The place of n that is seen at i; -1: none. */
static int64_t inside(int64_t i, int64_t n, keel_elastic_fill fill)
{
    if (i >= 0 && i < n) return i;
    if (fill == KEEL_ELASTIC_CONSTANT) return -1;
    if (fill == KEEL_ELASTIC_NEAREST) return i < 0 ? 0 : n - 1;
    if (fill == KEEL_ELASTIC_WRAP) return (i % n + n) % n;
    i = (i < 0 ? -i : i) % (2 * n);
    return i < n ? i : 2 * n - 1 - i;
}

typedef struct seen { /* the pixels that make one: first place of each, -1: outside; their shares */
    int64_t at[4];
    float share[4];
    int n;
} seen;

static void look(seen *s, const keel_call *c, const double *field, int64_t row, int64_t column)
{
    const keel_elastic_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const float moved = (float)field[row * in->dim[1] + column];
    const float y = (float)row + moved, x = (float)column + moved;
    const float top = a->nearest ? nearbyintf(y) : floorf(y);
    const float left = a->nearest ? nearbyintf(x) : floorf(x);
    const float down = y - top, right = x - left;
    s->n = a->nearest ? 1 : 4;
    for (int p = 0; p < s->n; p++) {
        const int64_t i = inside((int64_t)top + p / 2, in->dim[0], a->fill);
        const int64_t j = inside((int64_t)left + p % 2, in->dim[1], a->fill);
        s->at[p] = i < 0 || j < 0 ? -1 : (i * in->dim[1] + j) * in->dim[2];
        s->share[p] = a->nearest ? 1 : (p / 2 ? down : 1 - down) * (p % 2 ? right : 1 - right);
    }
}

#define REAL_FILE "ops/elastic.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    static const char *const fills[] = { "reflect", "constant", "wrap", "edge" };
    keel_elastic_args *a = args;
    *a = (keel_elastic_args){
        .range = { { 1, 1 }, { 0, keel_case_has(text, "maybe") * 2 }, { 1, 1 } },
        .values = { -1.5, 1.5 }
    };
    for (int i = 0; i < 4; i++)
        if (keel_case_has(text, fills[i])) a->fill = (keel_elastic_fill)i;
    a->nearest = keel_case_has(text, "nearest");
    keel_case_number(text, "scale", &a->range[2].low);
    if (keel_case_has(text, "scale")) a->range[2].high = a->range[2].low;
    keel_case_number(text, "value", &a->fill_value);
}

const keel_op keel_op_elastic = {
    .name = "elastic",
    .args_size = sizeof(keel_elastic_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .cases = (const keel_case[]){ { "5,6,2", NULL, "reflect maybe" },
                                  { "22,20,1", NULL, "constant value 0.5" },
                                  { "4,9,1", NULL, "wrap nearest" },
                                  { "4,9,1", NULL, "edge" },
                                  { "4,5,2", NULL, "scale 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* Channel k of what is seen. */
static REAL REAL_(mean)(const keel_call *c, const seen *s, const REAL *x, int64_t k)
{
    const REAL fill = (REAL)((const keel_elastic_args *)c->node->args)->fill_value;
    REAL sum = 0;
    for (int p = 0; p < s->n; p++)
        sum += (REAL)s->share[p] * (s->at[p] < 0 ? fill : x[s->at[p] + k]);
    return sum;
}

/* What makes pixel i of an image: itself, if there is no field. */
static void REAL_(see)(seen *s, const keel_call *c, const double *field, int64_t i)
{
    const keel_shape *in = &c->node->in[0].shape;
    if (field)
        look(s, c, field, i / in->dim[1], i % in->dim[1]);
    else
        *s = (seen){ .at = { i * in->dim[2] }, .share = { 1 }, .n = 1 };
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_elastic_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t count = keel_row_count(&c->node->in[0]), channels = in->dim[2];
    const REAL low = (REAL)a->values.low, high = (REAL)a->values.high;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    seen s;
    for (int64_t row = 0; row < c->rows; row++, x += count) {
        const double *field = field_of(c, row);
        for (int64_t i = 0; i < in->dim[0] * in->dim[1]; i++, y += channels) {
            REAL_(see)(&s, c, field, i);
            for (int64_t k = 0; k < channels; k++) {
                const REAL v = REAL_(mean)(c, &s, x, k);
                y[k] = v < low ? low : v > high ? high : v;
            }
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_elastic_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t count = keel_row_count(&c->node->in[0]), channels = in->dim[2];
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    seen s;
    for (int64_t row = 0; dx && row < c->rows; row++, x += count, dx += count) {
        const double *field = field_of(c, row);
        if (!c->in_adds[0]) memset(dx, 0, (size_t)count * sizeof *dx);
        for (int64_t i = 0; i < in->dim[0] * in->dim[1]; i++, dy += channels) {
            REAL_(see)(&s, c, field, i);
            for (int64_t k = 0; k < channels; k++) {
                const REAL v = REAL_(mean)(c, &s, x, k);
                if (!(v >= (REAL)a->values.low && v <= (REAL)a->values.high)) continue;
                for (int p = 0; p < s.n; p++)
                    if (s.at[p] >= 0) dx[s.at[p] + k] += (REAL)s.share[p] * dy[k];
            }
        }
    }
}
#endif
