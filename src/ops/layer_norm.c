/* Layer normalisation (Ba, Kiros, Hinton 2016): over the last dims of each place,
 *
 *     y = gamma xhat + beta,  xhat = (x - mean) r,  r = 1 / sqrt(var + epsilon)
 *
 * with the biased variance, found in two passes. Forward saves mean and r of each place. With
 * g = gamma dy and means over the n elements of a place,
 *
 *     dx = r (g - mean(g) - xhat mean(g xhat));  dgamma = sum dy xhat;  dbeta = sum dy
 *
 * rms (Zhang, Sennrich 2019): mean is 0 and var the mean square; mean(g) is left out of dx. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    const keel_layer_norm_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, a->scale + a->center, a->scale + a->center));
    const keel_shape *in = &n->in[0].shape;
    if (a->dims < 1 || a->dims > in->rank)
        return keel_fail(KEEL_ESHAPE, "layer_norm: the last %lld dims of %d", (long long)a->dims,
                         in->rank);
    if (!(a->epsilon >= 0))
        return keel_fail(KEEL_EARG, "layer_norm: epsilon %g must not be negative", a->epsilon);
    keel_shape over = { .rank = (int)a->dims };
    for (int d = 0; d < over.rank; d++) over.dim[d] = in->dim[in->rank - over.rank + d];
    if (a->scale) KEEL_TRY(keel_infer_weight(n, 0, "gamma", &over));
    if (a->center) KEEL_TRY(keel_infer_weight(n, a->scale, "beta", &over));
    const keel_spec stats = { n->real,
                              KEEL_SHAPE(keel_row_count(&n->in[0]) / keel_shape_count(&over), 2) };
    if (n->backward) KEEL_TRY(keel_node_add_saved(n, &stats));
    return keel_infer_out(n, in);
}

typedef struct dims {
    int64_t places, n; /* of all rows; of a place */
} dims;

static dims dims_of(const keel_call *c)
{
    const keel_shape *in = &c->node->in[0].shape;
    dims d = { .n = 1 };
    for (int64_t k = ((const keel_layer_norm_args *)c->node->args)->dims; k > 0; k--)
        d.n *= in->dim[in->rank - k];
    d.places = c->rows * (keel_row_count(&c->node->in[0]) / d.n);
    return d;
}

#define REAL_FILE "ops/layer_norm.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_layer_norm_args *a = args;
    double over = 1;
    *a = (keel_layer_norm_args){ .epsilon = 1e-3 };
    a->center = !keel_case_has(text, "no_center");
    a->scale = !keel_case_has(text, "no_scale");
    a->rms = keel_case_has(text, "rms");
    keel_case_number(text, "epsilon", &a->epsilon);
    keel_case_number(text, "dims", &over);
    a->dims = (int64_t)over;
}

const keel_op keel_op_layer_norm = {
    .name = "layer_norm",
    .args_size = sizeof(keel_layer_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .cases = (const keel_case[]){ { "5", "5|5", NULL },
                                  { "3,7", "7", "no_center" },
                                  { "3,7", "7", "no_scale epsilon 0.25" },
                                  { "2,3,4", "3,4|3,4", "dims 2" },
                                  { "4,6", "6", "rms no_center" },
                                  { "4,6", NULL, "no_center no_scale" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_layer_norm_args *a = c->node->args;
    const dims d = dims_of(c);
    const REAL *gamma = a->scale ? c->weight[0] : NULL;
    const REAL *beta = a->center ? c->weight[a->scale] : NULL;
    REAL *stats = c->node->n_saved ? c->saved[0] : NULL;
    for (int64_t i = 0; i < d.places; i++) {
        const REAL *x = (const REAL *)c->in[0] + i * d.n;
        REAL *y = (REAL *)c->out[0] + i * d.n;
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < d.n && !a->rms; k++) mean += x[k];
        mean /= (double)d.n;
        for (int64_t k = 0; k < d.n; k++) squares += (x[k] - mean) * (x[k] - mean);
        const double r = 1 / sqrt(squares / (double)d.n + a->epsilon);
        for (int64_t k = 0; k < d.n; k++)
            y[k] = (REAL)((x[k] - mean) * r * (gamma ? gamma[k] : 1) + (beta ? beta[k] : 0));
        if (!stats) continue;
        stats[2 * i] = (REAL)mean;
        stats[2 * i + 1] = (REAL)r;
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_layer_norm_args *a = c->node->args;
    const dims d = dims_of(c);
    const REAL *gamma = a->scale ? c->weight[0] : NULL, *stats = c->saved[0];
    if (!c->in_grad[0]) return;
    for (int64_t i = 0; i < d.places; i++) {
        const REAL *x = (const REAL *)c->in[0] + i * d.n;
        const REAL *dy = (const REAL *)c->out_grad[0] + i * d.n;
        REAL *dx = (REAL *)c->in_grad[0] + i * d.n;
        const double mean = stats[2 * i], r = stats[2 * i + 1];
        double sum = 0, product = 0;
        for (int64_t k = 0; k < d.n; k++) {
            const double g = (double)dy[k] * (gamma ? gamma[k] : 1);
            sum += g;
            product += g * (x[k] - mean) * r;
        }
        const double shift = a->rms ? 0 : sum / (double)d.n, slope = product / (double)d.n;
        for (int64_t k = 0; k < d.n; k++) {
            const double g = (double)dy[k] * (gamma ? gamma[k] : 1);
            const double v = r * (g - shift - (x[k] - mean) * r * slope);
            dx[k] = (REAL)(c->in_adds[0] ? dx[k] + v : v);
        }
    }
}

static void REAL_(weights)(const keel_call *c)
{
    const keel_layer_norm_args *a = c->node->args;
    const dims d = dims_of(c);
    const REAL *stats = c->saved[0];
    REAL *dgamma = a->scale ? c->weight_grad[0] : NULL;
    REAL *dbeta = a->center ? c->weight_grad[a->scale] : NULL;
    for (int64_t k = 0; k < d.n; k++) {
        double sum = 0, product = 0;
        for (int64_t i = 0; i < d.places; i++) {
            const double dy = ((const REAL *)c->out_grad[0])[i * d.n + k];
            const double x = ((const REAL *)c->in[0])[i * d.n + k];
            sum += dy;
            product += dy * (x - stats[2 * i]) * stats[2 * i + 1];
        }
        if (dgamma) dgamma[k] = (REAL)product + (c->weight_adds ? dgamma[k] : 0);
        if (dbeta) dbeta[k] = (REAL)sum + (c->weight_adds ? dbeta[k] : 0);
    }
}
#endif
