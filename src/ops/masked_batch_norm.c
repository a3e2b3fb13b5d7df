/* Batch normalisation of x [.., C] with a mask [..]: in training, mean and variance of the global
 * step are those of the places whose mask is above one half. All places are normalised, also the
 * others, as in Keras. With N such places, and e = 1e-7, which Keras adds to their number:
 *
 *     mean = (sum of x) / (N + e), variance = (sum of (x - mean)^2) / (N + e)
 *
 * A row's record is {its places, their mean [C], their M2 [C]}, combined by Chan's rule. Backward,
 * with s = 1 / sqrt(variance + epsilon) and sums over all places:
 *
 *     record {sum dy [C], sum dy (x - mean) s [C]}, which are dbeta and dgamma
 *     dx = gamma s (dy - share), where the mask counts, else gamma s dy
 *     share = (sum dy + s (sum dy (x - mean) s) (x - mean - mean e / (N + e))) / (N + e)
 *
 * Outside training, or frozen, the moving statistics take the place of the batch's. */
#ifndef REAL
#include "ops/batch_norm_weights.h"
#include <math.h>

#define COUNTED_MORE 1e-7 /* keras.config.epsilon() */

static keel_status infer(keel_node *n)
{
    const keel_batch_norm_args *a = n->args;
    if (a->renorm.on) return keel_fail(KEEL_EUNSUP, "with a mask it is not trained with renorm");
    const int weights = keel_batch_norm_weights_of(a).count;
    KEEL_TRY(keel_infer_check(n, 2, weights, weights));
    const keel_shape *x = &n->in[0].shape;
    keel_shape mask = *x;
    if (x->rank < 2)
        return keel_fail(KEEL_ESHAPE, "masked_batch_norm: a row needs places and channels");
    mask.dim[--mask.rank] = 0;
    if (!keel_shape_equal(&n->in[1].shape, &mask))
        return keel_fail(KEEL_ESHAPE, "masked_batch_norm: the mask needs the dims of the input but "
                                      "the last");
    const int64_t c = keel_batch_norm_channels(n);
    KEEL_TRY(keel_batch_norm_infer_weights(n));
    if (n->training && !a->frozen) {
        n->partial = 1 + 2 * c;
        n->merged = 1 + n->partial;
    }
    if (n->backward && n->partial) {
        n->partial_backward = 2 * c;
        n->merged_backward = 1 + n->partial_backward;
    }
    n->scratch = 4 * c * (int64_t)sizeof(double);
    return keel_infer_out(n, x);
}

static void combine(const keel_node *n, keel_record left, keel_record right, double *out)
{
    const int64_t c = keel_batch_norm_channels(n);
    const double *a = left.data, *b = right.data;
    const double places = a[0] + b[0], share = places > 0 ? b[0] / places : 0;
    const double weight = a[0] * share;
    for (int64_t k = 1; k <= c; k++) { /* out may be a or b */
        const double d = b[k] - a[k], mean = a[k] + d * share;
        out[c + k] = a[c + k] + b[c + k] + d * d * weight;
        out[k] = mean;
    }
    out[0] = places;
}

static bool meets(const keel_node *n)
{
    return n->partial > 0;
}

/* Keras's moments of the batch. merged: {rows, record}. */
typedef struct moments {
    double mean, variance;
} moments;

static moments moments_of(const double *merged, int64_t n, int64_t k)
{
    const double places = merged[1], mean = merged[2 + k], m2 = merged[2 + n + k];
    const double divisor = places + COUNTED_MORE, off = mean * COUNTED_MORE / divisor;
    return (moments){ mean - off, (m2 + places * off * off) / divisor };
}

#define REAL_FILE "ops/masked_batch_norm.c"
#include "ops/real.h"

/* moving = moving momentum + batch (1 - momentum); a step without rows moves nothing. */
static void commit(const keel_node *n, const double *merged, void *const *weight)
{
    if (!meets(n) || merged[0] == 0) return;
    if (n->real == KEEL_FLOAT32)
        move_f32(n, merged, weight);
    else
        move_f64(n, merged, weight);
}

const keel_op keel_op_masked_batch_norm = {
    .name = "masked_batch_norm",
    .args_size = sizeof(keel_batch_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .partial = REALS(partial),
    .partial_backward = REALS(partial_backward),
    .combine = combine,
    .weights_from_merged = true,
    .commit = commit,
    .cases = (const keel_case[]){ { "6,5|6", "5|5|5|5", NULL },
                                  { "3,4,2|3,4", "2|2|2", "no_scale momentum 0.9" },
                                  { "7,3|7", "3|3|3", "no_center epsilon 0.01" },
                                  { "5,4|5", "4|4|4|4", "frozen" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_batch_norm_for_case,
};
#else
/* The mean of each channel and 1 / sqrt(variance + epsilon), in c->scratch. */
static void REAL_(channel_facts)(const keel_call *c, double **mean, double **invstd)
{
    const keel_batch_norm_args *a = c->node->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    const int64_t n = keel_batch_norm_channels(c->node);
    const double *merged = c->merged_forward ? c->merged_forward : c->merged;
    *mean = c->scratch;
    *invstd = *mean + n;
    for (int64_t k = 0; k < n; k++) {
        const moments of = meets(c->node) ? moments_of(merged, n, k)
                                          : (moments){ ((const REAL *)c->weight[at.mean])[k],
                                                       ((const REAL *)c->weight[at.variance])[k] };
        (*mean)[k] = of.mean;
        (*invstd)[k] = 1 / sqrt(of.variance + a->epsilon);
    }
}

static double REAL_(weight_of)(const keel_call *c, int at, int64_t k, double absent)
{
    return at < 0 ? absent : ((const REAL *)c->weight[at])[k];
}

static void REAL_(partial)(const keel_call *c)
{
    const int64_t n = keel_batch_norm_channels(c->node), places = keel_row_count(&c->node->in[1]);
    const REAL *x = c->in[0], *mask = c->in[1];
    for (int64_t row = 0; row < c->rows; row++, x += places * n, mask += places) {
        double *record = c->partial + row * c->node->partial, *mean = record + 1, *m2 = mean + n;
        for (int64_t k = 0; k < c->node->partial; k++) record[k] = 0;
        for (int64_t i = 0; i < places; i++) {
            if (!(mask[i] > (REAL)0.5)) continue;
            record[0]++;
            for (int64_t k = 0; k < n; k++) mean[k] += x[i * n + k];
        }
        for (int64_t k = 0; k < n && record[0] > 0; k++) mean[k] /= record[0];
        for (int64_t i = 0; i < places; i++)
            for (int64_t k = 0; k < n && mask[i] > (REAL)0.5; k++) {
                const double d = x[i * n + k] - mean[k];
                m2[k] += d * d;
            }
    }
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(c->node->args);
    const int64_t n = keel_batch_norm_channels(c->node);
    const int64_t places = c->rows * keel_row_count(&c->node->in[1]);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    double *mean, *scale;
    if (places == 0) return;
    REAL_(channel_facts)(c, &mean, &scale);
    double *offset = scale + n;
    for (int64_t k = 0; k < n; k++) {
        scale[k] *= REAL_(weight_of)(c, at.gamma, k, 1);
        offset[k] = REAL_(weight_of)(c, at.beta, k, 0);
    }
    for (int64_t i = 0; i < places; i++)
        for (int64_t k = 0; k < n; k++)
            y[i * n + k] = (REAL)((x[i * n + k] - mean[k]) * scale[k] + offset[k]);
}

/* The sums of dy and of dy (x - mean) s over `rows` rows from `row` of this call. */
static void REAL_(sums)(const keel_call *c, int64_t row, int64_t rows, const double *mean,
                        const double *invstd, double *sum, double *product)
{
    const int64_t n = keel_batch_norm_channels(c->node), per_row = keel_row_count(&c->node->in[0]);
    const REAL *x = (const REAL *)c->in[0] + row * per_row;
    const REAL *dy = (const REAL *)c->out_grad[0] + row * per_row;
    for (int64_t k = 0; k < n; k++) sum[k] = product[k] = 0;
    for (int64_t i = 0; i < rows * per_row; i += n)
        for (int64_t k = 0; k < n; k++) {
            sum[k] += dy[i + k];
            product[k] += dy[i + k] * (x[i + k] - mean[k]);
        }
    for (int64_t k = 0; k < n; k++) product[k] *= invstd[k];
}

static void REAL_(partial_backward)(const keel_call *c)
{
    double *mean, *invstd;
    if (c->rows == 0) return;
    REAL_(channel_facts)(c, &mean, &invstd);
    for (int64_t row = 0; row < c->rows; row++) {
        double *sum = c->partial + row * c->node->partial_backward;
        REAL_(sums)(c, row, 1, mean, invstd, sum, sum + keel_batch_norm_channels(c->node));
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_batch_norm_channels(c->node);
    const int64_t places = c->rows * keel_row_count(&c->node->in[1]);
    const REAL *x = c->in[0], *mask = c->in[1], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0], *dmask = c->in_grad[1];
    const int gamma = keel_batch_norm_weights_of(c->node->args).gamma;
    double *mean, *invstd;
    for (int64_t i = 0; dmask && !c->in_adds[1] && i < places; i++) dmask[i] = 0;
    if (!dx || places == 0) return;
    REAL_(channel_facts)(c, &mean, &invstd);
    /* where the mask counts, dx = scale (dy - a - x b) */
    double *a = invstd + n, *b = a + n, *scale = invstd;
    for (int64_t k = 0; k < n; k++) {
        const double divisor = meets(c->node) ? c->merged_forward[1] + COUNTED_MORE : 1;
        b[k] = meets(c->node) ? invstd[k] * c->merged[1 + n + k] / divisor : 0;
        a[k] = (meets(c->node) ? c->merged[1 + k] / divisor : 0) -
               b[k] * mean[k] * (1 + COUNTED_MORE / divisor);
        scale[k] *= REAL_(weight_of)(c, gamma, k, 1);
    }
    for (int64_t i = 0; i < places; i++) {
        const bool counts = meets(c->node) && mask[i] > (REAL)0.5;
        for (int64_t k = 0; k < n; k++) {
            REAL *to = &dx[i * n + k]; /* may be dy */
            const double share = counts ? a[k] + x[i * n + k] * b[k] : 0;
            const double g = scale[k] * (dy[i * n + k] - share);
            *to = (REAL)(c->in_adds[0] ? *to + g : g);
        }
    }
}

static void REAL_(weights)(const keel_call *c)
{
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(c->node->args);
    const int64_t n = keel_batch_norm_channels(c->node);
    REAL *dgamma = at.gamma < 0 ? NULL : c->weight_grad[at.gamma];
    REAL *dbeta = at.beta < 0 ? NULL : c->weight_grad[at.beta];
    const double *sum = c->merged + 1;
    if (!meets(c->node)) {
        double *own = (double *)c->scratch + 2 * n, *mean, *invstd;
        REAL_(channel_facts)(c, &mean, &invstd);
        REAL_(sums)(c, 0, c->rows, mean, invstd, own, own + n);
        sum = own;
    }
    for (int64_t k = 0; k < n; k++) {
        if (dbeta) dbeta[k] = (REAL)(c->weight_adds ? dbeta[k] + sum[k] : sum[k]);
        if (dgamma) dgamma[k] = (REAL)(c->weight_adds ? dgamma[k] + sum[n + k] : sum[n + k]);
    }
}

static void REAL_(move)(const keel_node *n, const double *merged, void *const *weight)
{
    const keel_batch_norm_args *a = n->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    const int64_t c = keel_batch_norm_channels(n);
    REAL *mean = weight[at.mean], *variance = weight[at.variance];
    for (int64_t k = 0; k < c; k++) {
        const moments of = moments_of(merged, c, k);
        mean[k] = (REAL)(mean[k] * a->momentum + of.mean * (1 - a->momentum));
        variance[k] = (REAL)(variance[k] * a->momentum + of.variance * (1 - a->momentum));
    }
}
#endif
