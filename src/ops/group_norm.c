/* Group normalisation (Wu, He 2018): over all places and the channels of a group,
 *
 *     y = gamma xhat + beta,  xhat = (x - mean) r,  r = 1 / sqrt(var + epsilon)
 *
 * with the biased variance, found in two passes, and gamma and beta of each channel. Forward saves
 * mean and r of each group. With g = gamma dy and means over the group,
 *
 *     dx = r (g - mean(g) - xhat mean(g xhat));  dgamma = sum dy xhat;  dbeta = sum dy */
#ifndef REAL
#include "ops/group_norm.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    const keel_group_norm_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, a->scale + a->center, a->scale + a->center));
    const keel_shape *in = &n->in[0].shape;
    if (in->rank < 1 || a->groups < 1 || in->dim[in->rank - 1] % a->groups)
        return keel_fail(KEEL_ESHAPE, "group_norm: %lld groups do not divide the channels",
                         (long long)a->groups);
    if (!(a->epsilon >= 0))
        return keel_fail(KEEL_EARG, "group_norm: epsilon %g must not be negative", a->epsilon);
    const keel_shape channels = KEEL_SHAPE(in->dim[in->rank - 1]);
    if (a->scale) KEEL_TRY(keel_infer_weight(n, 0, "gamma", &channels));
    if (a->center) KEEL_TRY(keel_infer_weight(n, a->scale, "beta", &channels));
    const keel_spec stats = { n->real, KEEL_SHAPE(a->groups, 2) };
    n->scratch = 2 * (int64_t)sizeof(double) * channels.dim[0];
    if (n->backward) KEEL_TRY(keel_node_add_saved(n, &stats));
    return keel_infer_out(n, in);
}

#define REAL_FILE "ops/group_norm.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_group_norm_args *a = args;
    double groups = 1;
    *a = (keel_group_norm_args){ .epsilon = 1e-3 };
    a->center = !keel_case_has(text, "no_center");
    a->scale = !keel_case_has(text, "no_scale");
    keel_case_number(text, "epsilon", &a->epsilon);
    keel_case_number(text, "groups", &groups);
    a->groups = (int64_t)groups;
}

const keel_op keel_op_group_norm = {
    .name = "group_norm",
    .args_size = sizeof(keel_group_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .cases = (const keel_case[]){ { "6", "6|6", "groups 2" },
                                  { "3,2,6", "6|6", "groups 3" },
                                  { "5,4", "4", "groups 1 no_center" },
                                  { "9,40", "40|40", "groups 5" },
                                  { "4,3", "3", "groups 3 no_scale epsilon 0.25" },
                                  { "4,6", NULL, "groups 2 no_center no_scale" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* The sums of a group, place by place, so that memory is read in order. */
static void REAL_(forward)(const keel_call *c)
{
    const keel_group_norm_args *a = c->node->args;
    const keel_group_norm_dims d = keel_group_norm_dims_of(c->node);
    const REAL *gamma = a->scale ? c->weight[0] : NULL;
    const REAL *beta = a->center ? c->weight[a->scale] : NULL;
    double *mean = c->scratch, *r = mean + d.groups;
    const double n = (double)(d.places * d.width);
    for (int64_t row = 0; row < c->rows; row++) {
        const REAL *x = (const REAL *)c->in[0] + row * d.places * d.channels;
        REAL *y = (REAL *)c->out[0] + row * d.places * d.channels;
        for (int64_t g = 0; g < d.groups; g++) mean[g] = r[g] = 0;
        for (int64_t p = 0; p < d.places; p++)
            for (int64_t g = 0; g < d.groups; g++)
                for (int64_t k = 0; k < d.width; k++)
                    mean[g] += x[p * d.channels + g * d.width + k] / n;
        for (int64_t p = 0; p < d.places; p++)
            for (int64_t g = 0; g < d.groups; g++)
                for (int64_t k = 0; k < d.width; k++) {
                    const double v = x[p * d.channels + g * d.width + k] - mean[g];
                    r[g] += v * v;
                }
        for (int64_t g = 0; g < d.groups; g++) {
            r[g] = 1 / sqrt(r[g] / n + a->epsilon);
            if (!c->node->n_saved) continue;
            ((REAL *)c->saved[0])[(row * d.groups + g) * 2] = (REAL)mean[g];
            ((REAL *)c->saved[0])[(row * d.groups + g) * 2 + 1] = (REAL)r[g];
        }
        for (int64_t p = 0; p < d.places; p++)
            for (int64_t i = 0; i < d.channels; i++) {
                const int64_t at = p * d.channels + i, g = i / d.width;
                y[at] = (REAL)((x[at] - mean[g]) * r[g] * (gamma ? gamma[i] : 1) +
                               (beta ? beta[i] : 0));
            }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_group_norm_args *a = c->node->args;
    const keel_group_norm_dims d = keel_group_norm_dims_of(c->node);
    const REAL *gamma = a->scale ? c->weight[0] : NULL;
    double *sum = c->scratch, *product = sum + d.groups;
    const double n = (double)(d.places * d.width);
    if (!c->in_grad[0]) return;
    for (int64_t row = 0; row < c->rows; row++) {
        const int64_t begin = row * d.places * d.channels;
        const REAL *x = (const REAL *)c->in[0] + begin;
        const REAL *dy = (const REAL *)c->out_grad[0] + begin;
        const REAL *stats = (const REAL *)c->saved[0] + row * d.groups * 2;
        REAL *dx = (REAL *)c->in_grad[0] + begin;
        for (int64_t g = 0; g < d.groups; g++) sum[g] = product[g] = 0;
        for (int64_t at = 0; at < d.places * d.channels; at++) {
            const int64_t i = at % d.channels, g = i / d.width;
            const double slope = (double)dy[at] * (gamma ? gamma[i] : 1);
            sum[g] += slope / n;
            product[g] += slope * (x[at] - (double)stats[2 * g]) * stats[2 * g + 1] / n;
        }
        for (int64_t at = 0; at < d.places * d.channels; at++) {
            const int64_t i = at % d.channels, g = i / d.width;
            const double slope = (double)dy[at] * (gamma ? gamma[i] : 1), r = stats[2 * g + 1];
            const double v = r * (slope - sum[g] - (x[at] - (double)stats[2 * g]) * r * product[g]);
            dx[at] = (REAL)(c->in_adds[0] ? dx[at] + v : v);
        }
    }
}

static void REAL_(weights)(const keel_call *c)
{
    const keel_group_norm_args *a = c->node->args;
    const keel_group_norm_dims d = keel_group_norm_dims_of(c->node);
    REAL *dgamma = a->scale ? c->weight_grad[0] : NULL;
    REAL *dbeta = a->center ? c->weight_grad[a->scale] : NULL;
    double *product = c->scratch, *sum = product + d.channels;
    for (int64_t i = 0; i < d.channels; i++) product[i] = sum[i] = 0;
    for (int64_t row = 0; row < c->rows; row++) {
        const int64_t begin = row * d.places * d.channels;
        const REAL *x = (const REAL *)c->in[0] + begin;
        const REAL *dy = (const REAL *)c->out_grad[0] + begin;
        const REAL *stats = (const REAL *)c->saved[0] + row * d.groups * 2;
        for (int64_t at = 0; at < d.places * d.channels; at++) {
            const int64_t i = at % d.channels, g = i / d.width;
            sum[i] += dy[at];
            product[i] += dy[at] * (x[at] - (double)stats[2 * g]) * stats[2 * g + 1];
        }
    }
    for (int64_t i = 0; i < d.channels; i++) {
        if (dgamma) dgamma[i] = (REAL)product[i] + (c->weight_adds ? dgamma[i] : 0);
        if (dbeta) dbeta[i] = (REAL)sum[i] + (c->weight_adds ? dbeta[i] : 0);
    }
}
#endif
