/* Batch normalisation over the last axis: y = gamma (x - mean) / sqrt(var + epsilon) + beta.
 *
 * Statistics are those of the whole global step. Each row gives a record {mean[C], M2[C]} (M2: the
 * sum of squared deviations), found in two passes; records are combined by the rule of Chan, Golub,
 * LeVeque (1979), in the order of the step's tree, all in double. The variance is biased (M2 / N),
 * as in Keras 3, also for the moving variance.
 *
 * Backward, with N = rows times places, xhat = (x - mean) / sqrt(var + epsilon):
 *
 *     record {sum dy [C], sum dy xhat [C]} of a row; dbeta and dgamma are the merged sums
 *     dx = gamma / sqrt(var + epsilon) (dy - (sum dy) / N - xhat (sum dy xhat) / N)
 *
 * Outside training, or frozen, the moving statistics take the place of the batch's: no record, no
 * meeting, and dx = gamma / sqrt(var + epsilon) dy.
 *
 * With renorm, gamma is multiplied by r, and gamma d is added to beta, in training (batch_norm.h);
 * the moving variance follows the moving deviation then, as in Keras.
 *
 * With a second input z and relu, y = max(that + z, 0). Forward then saves a bit for each element,
 * 1 where gradients pass: backward reads 1/32 of what it would take to look at y, three times. dy
 * is what passes, above and as the gradient of z.
 *
 * With silu, y = u sigmoid(u) of what is u above. Nothing is saved: backward makes u again from x,
 * which it reads anyway, and dy is what is left behind the slope of silu. */
#ifndef REAL
#include "base/clones.h" /* only loops over channels become vectors, so sums keep their order */
#include "ops/batch_norm_weights.h"
#include "ops/derive.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    const keel_batch_norm_args *a = n->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    KEEL_TRY(keel_infer_check(n, n->n_in == 2 ? 2 : 1, at.count, at.count));
    if (n->in[0].shape.rank < 1)
        return keel_fail(KEEL_ESHAPE, "batch_norm: a row of the input needs an axis");
    if (!(a->epsilon >= 0) || !isfinite(a->momentum))
        return keel_fail(KEEL_EARG,
                         "batch_norm: epsilon %g must not be negative, momentum %g finite",
                         a->epsilon, a->momentum);
    if (n->n_in == 2 && !keel_shape_equal(&n->in[1].shape, &n->in[0].shape))
        return keel_fail(KEEL_ESHAPE, "batch_norm: what is added has another shape");
    if (!(a->max_value >= 0))
        return keel_fail(KEEL_EARG, "batch_norm: max_value %g must not be negative", a->max_value);
    if (a->silu && (a->relu || n->n_in == 2))
        return keel_fail(KEEL_EARG, "batch_norm: silu stands neither with relu nor with a sum");
    const keel_shape c = KEEL_SHAPE(keel_batch_norm_channels(n));
    KEEL_TRY(keel_batch_norm_infer_weights(n));
    if (n->training && !a->frozen) {
        n->partial = 2 * c.dim[0];
        n->merged = 1 + 2 * c.dim[0];
        n->reads_state = a->renorm.on;
    }
    if (n->backward) {
        n->partial_backward = n->partial;
        n->merged_backward = n->merged;
    }
    const keel_spec bits = { KEEL_UINT8, KEEL_SHAPE(keel_row_count(&n->in[0]) / c.dim[0],
                                                    keel_batch_norm_bits(c.dim[0])) };
    if (n->backward && a->relu) KEEL_TRY(keel_node_add_saved(n, &bits));
    n->scratch = 6 * c.dim[0] * (int64_t)sizeof(double);
    return keel_infer_out(n, &n->in[0].shape);
}

/* Chan's rule: with d = mean_b - mean_a and n = n_a + n_b places, mean = mean_a + d n_b / n and M2
 * = M2_a + M2_b + d^2 n_a n_b / n. */
KEEL_CLONES static void combine(const keel_node *n, keel_record left, keel_record right,
                                double *out)
{
    const int64_t c = keel_batch_norm_channels(n);
    const double share = right.rows / (left.rows + right.rows);
    const double weight = left.rows * share * (double)(keel_row_count(&n->in[0]) / c);
    const double *a = left.data, *b = right.data;
#pragma GCC ivdep /* out may be a or b, but does not overlap them in part */
    for (int64_t k = 0; k < c; k++) {
        const double d = b[k] - a[k], mean = a[k] + d * share;
        out[c + k] = a[c + k] + b[c + k] + d * d * weight;
        out[k] = mean;
    }
}

/* Whether the rows of this node meet. */
static bool meets(const keel_node *n)
{
    return n->partial > 0;
}

/* Whether the gradient of channel k of a place passes the relu. bits: of that place; NULL: it
 * passes. */
static bool passes(const uint8_t *bits, int64_t k)
{
    return !bits || bits[k / 8] >> k % 8 & 1;
}

/* The bits of place `place` of this call. */
static uint8_t *bits_of(const keel_call *c, int64_t place)
{
    if (!((const keel_batch_norm_args *)c->node->args)->relu || !c->node->n_saved) return NULL;
    return (uint8_t *)c->saved[0] + place * keel_batch_norm_bits(keel_batch_norm_channels(c->node));
}

#define REAL_FILE "ops/batch_norm.c"
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

/* By the moving statistics only: those of the batch would mix its rows. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_node *n = d->node;
    const keel_batch_norm_args *a = n->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    keel_slice_args first = keel_slice_all(&n->in[0].shape);
    int r, g = d->grad;
    if (n->training && !a->frozen)
        return keel_fail(KEEL_EUNSUP, "batch_norm: its gradient cannot be differentiated where it "
                                      "takes the statistics of the batch: call the model with "
                                      "training false, or freeze the layer");
    if (a->relu || a->silu || n->n_in == 2) /* fused, which graphs are later */
        return keel_fail(KEEL_EUNSUP, "batch_norm: its gradient cannot be differentiated with "
                                      "what is fused into it");
    for (int i = 0; i < n->in[0].shape.rank - 1; i++) first.count[i] = 1;
    KEEL_TRY(keel_derive_choice(d, 1, 1, &r));
    KEEL_TRY(keel_derive_one(d, &keel_op_slice, &first, r, &r));
    KEEL_TRY(keel_derive_weighted(d, &keel_op_scale, NULL, r, at.variance, &r));
    KEEL_TRY(keel_derive_with(d, &keel_op_plus, r, a->epsilon, &r));
    KEEL_TRY(keel_derive_one(d, &keel_op_rsqrt, NULL, r, &r));
    if (a->scale) KEEL_TRY(keel_derive_weighted(d, &keel_op_scale, NULL, g, 0, &g));
    return keel_derive_two(d, &keel_op_multiply, g, r, out);
}

const keel_op keel_op_batch_norm = {
    .name = "batch_norm",
    .args_size = sizeof(keel_batch_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_FIRST | KEEL_READS_SAVED,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_FIRST | KEEL_READS_SAVED,
    .partial = REALS(partial),
    .partial_backward = REALS(partial_backward),
    .combine = combine,
    .weights_from_merged = true,
    .commit = commit,
    .inplace_second = true,
    .cases = (const keel_case[]){ { "5", "5|5|5|5", NULL },
                                  { "3,4,6", "6|6|6|6", "epsilon 0.01 momentum 0.9" },
                                  { "2,2,3", "3|3|3", "no_scale" },
                                  { "4,3", "3|3|3", "no_center" },
                                  { "3", "3|3", "no_center no_scale" },
                                  { "2,3,4", "4|4|4|4", "frozen" },
                                  { "3,2,19", "19|19|19|19", "relu" },
                                  { "3,4,6|3,4,6", "6|6|6|6", NULL },
                                  { "3,4,6|3,4,6", "6|6|6|6", "relu" },
                                  { "2,2,9|2,2,9", "9|9|9|9", "relu max_value 0.5 frozen" },
                                  { "3,4,6", "6|6|6|6|6|6|6", "renorm" },
                                  { "3,2,19", "19|19|19|19", "silu" },
                                  { "2,3,4", "4|4", "silu frozen no_center no_scale" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_batch_norm_for_case,
};
#else
/* What forward and backward need for each channel, in c->scratch. */
static void REAL_(channel_facts)(const keel_call *c, double **mean, double **invstd)
{
    const keel_batch_norm_args *a = c->node->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    const int64_t n = keel_batch_norm_channels(c->node);
    const double *merged = c->merged_forward ? c->merged_forward : c->merged;
    double *m = c->scratch, *s = m + n;
    for (int64_t k = 0; k < n; k++) {
        double variance;
        if (meets(c->node)) {
            const double count = merged[0] * (double)(keel_row_count(&c->node->in[0]) / n);
            m[k] = merged[1 + k];
            variance = merged[1 + n + k] / count;
        } else {
            m[k] = ((const REAL *)c->weight[at.mean])[k];
            variance = ((const REAL *)c->weight[at.variance])[k];
        }
        s[k] = 1 / sqrt(variance + a->epsilon);
    }
    *mean = m;
    *invstd = s;
}

static keel_correction REAL_(correct)(const keel_call *c, int64_t k, double mean, double invstd)
{
    const keel_batch_norm_args *a = c->node->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    if (!a->renorm.on || !meets(c->node)) return (keel_correction){ 1, 0 };
    return keel_correct(&a->renorm, a->epsilon, mean, invstd,
                        ((const REAL *)c->weight[at.renorm_mean])[k],
                        ((const REAL *)c->weight[at.renorm_stddev])[k]);
}

static double REAL_(gamma_of)(const keel_call *c, int64_t k)
{
    const int at = keel_batch_norm_weights_of(c->node->args).gamma;
    return at < 0 ? 1 : ((const REAL *)c->weight[at])[k];
}

/* What x is multiplied by, less its mean, and what is added then. */
static void REAL_(scales)(const keel_call *c, const double *mean, const double *invstd,
                          double *scale, double *offset)
{
    const int beta = keel_batch_norm_weights_of(c->node->args).beta;
    for (int64_t k = 0; k < keel_batch_norm_channels(c->node); k++) {
        const keel_correction by = REAL_(correct)(c, k, mean[k], invstd[k]);
        const double gamma = REAL_(gamma_of)(c, k);
        scale[k] = invstd[k] * gamma * by.r;
        offset[k] = gamma * by.d + (beta < 0 ? 0 : ((const REAL *)c->weight[beta])[k]);
    }
}

/* What backward needs of silu: scale and offset of forward, [2n] behind the four arrays of others
 * in scratch. NULL: there is no silu. */
static const double *REAL_(silu_scales)(const keel_call *c, const double *mean,
                                        const double *invstd)
{
    const int64_t n = keel_batch_norm_channels(c->node);
    double *scale = (double *)c->scratch + 4 * n;
    if (!((const keel_batch_norm_args *)c->node->args)->silu) return NULL;
    REAL_(scales)(c, mean, invstd, scale, scale + n);
    return scale;
}

/* What reaches the normalisation of dy of channel k of n, whose x lies `off` the mean. bits: of its
 * place; silu: as silu_scales gives it. */
static REAL REAL_(given)(REAL dy, double off, int64_t k, int64_t n, const uint8_t *bits,
                         const double *silu)
{
    if (!silu) return passes(bits, k) ? dy : 0;
    const double u = (REAL)(off * silu[k] + silu[n + k]), s = 1 / (1 + exp(-u));
    return (REAL)(dy * (s * (1 + u * (1 - s))));
}

static void REAL_(partial)(const keel_call *c)
{
    const int64_t n = keel_batch_norm_channels(c->node),
                  per_row = keel_row_count(&c->node->in[0]) / n;
    const REAL *x = c->in[0];
    for (int64_t row = 0; row < c->rows; row++, x += per_row * n) {
        double *mean = c->partial + row * c->node->partial, *m2 = mean + n;
        for (int64_t k = 0; k < 2 * n; k++) mean[k] = 0;
        for (int64_t i = 0; i < per_row; i++)
            for (int64_t k = 0; k < n; k++) mean[k] += x[i * n + k];
        for (int64_t k = 0; k < n; k++) mean[k] /= (double)per_row;
        for (int64_t i = 0; i < per_row; i++)
            for (int64_t k = 0; k < n; k++) {
                const double d = x[i * n + k] - mean[k];
                m2[k] += d * d;
            }
    }
}

/* The relu of one place. bits NULL: no gradient is wanted. */
static void REAL_(rectify)(const keel_call *c, REAL *y, uint8_t *bits)
{
    const int64_t n = keel_batch_norm_channels(c->node);
    const double max_value = ((const keel_batch_norm_args *)c->node->args)->max_value;
    const REAL max = max_value > 0 ? (REAL)max_value : (REAL)INFINITY;
    for (int64_t k = 0; k < n; k++) {
        if (bits && k % 8 == 0) bits[k / 8] = 0;
        if (bits && y[k] > 0 && y[k] < max) bits[k / 8] |= (uint8_t)(1 << k % 8);
        y[k] = y[k] <= 0 ? 0 : y[k] > max ? max : y[k]; /* NaN stays */
    }
}

static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = keel_batch_norm_channels(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / n);
    const REAL *x = c->in[0];
    const REAL *z = c->node->n_in > 1 ? c->in[1] : NULL;
    const keel_batch_norm_args *a = c->node->args;
    REAL *y = c->out[0];
    double *mean, *scale;
    if (count == 0) return;
    REAL_(channel_facts)(c, &mean, &scale);
    double *offset = scale + n;
    REAL_(scales)(c, mean, scale, scale, offset);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < n; k++) {
            const REAL v = (REAL)((x[i * n + k] - mean[k]) * scale[k] + offset[k]);
            y[i * n + k] = z ? v + z[i * n + k] : v; /* y may be z */
            if (a->silu) y[i * n + k] = (REAL)(v / (1 + exp(-(double)v)));
        }
        if (a->relu) REAL_(rectify)(c, y + i * n, bits_of(c, i));
    }
}

/* sums of dy and of dy xhat over `rows` rows from `row` of this call */
static void REAL_(sums)(const keel_call *c, int64_t row, int64_t rows, const double *mean,
                        const double *invstd, const double *silu, double *sum, double *sum_xhat)
{
    const int64_t n = keel_batch_norm_channels(c->node), per_row = keel_row_count(&c->node->in[0]);
    const REAL *x = (const REAL *)c->in[0] + row * per_row;
    const REAL *dy = (const REAL *)c->out_grad[0] + row * per_row;
    for (int64_t k = 0; k < n; k++) sum[k] = sum_xhat[k] = 0;
    for (int64_t i = 0; i < rows * per_row; i += n) {
        const uint8_t *bits = bits_of(c, (row * per_row + i) / n);
        for (int64_t k = 0; k < n; k++) {
            const double off = x[i + k] - mean[k];
            const REAL given = REAL_(given)(dy[i + k], off, k, n, bits, silu);
            sum[k] += given;
            sum_xhat[k] += given * off;
        }
    }
    for (int64_t k = 0; k < n; k++) sum_xhat[k] *= invstd[k];
}

static void REAL_(partial_backward)(const keel_call *c)
{
    const int64_t n = keel_batch_norm_channels(c->node);
    double *mean, *invstd;
    if (c->rows == 0) return;
    REAL_(channel_facts)(c, &mean, &invstd);
    const double *silu = REAL_(silu_scales)(c, mean, invstd);
    for (int64_t row = 0; row < c->rows; row++) {
        double *sum = c->partial + row * c->node->partial_backward;
        REAL_(sums)(c, row, 1, mean, invstd, silu, sum, sum + n);
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_batch_norm_channels(c->node),
                  per_row = keel_row_count(&c->node->in[0]) / n;
    const int64_t count = c->rows * per_row;
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0], *dz = c->node->n_in > 1 ? c->in_grad[1] : NULL;
    double *mean, *invstd;
    if ((!dx && !dz) || count == 0) return;
    REAL_(channel_facts)(c, &mean, &invstd);
    /* dx = scale (dy - a - (x - mean) b) with per-channel scale, a and b; a and b are 0 where the
     * statistics are not the batch's */
    const double *silu = REAL_(silu_scales)(c, mean, invstd);
    double *a = invstd + n, *b = a + n, *scale = invstd;
    for (int64_t k = 0; k < n; k++) {
        const double total = meets(c->node) ? c->merged[0] * (double)per_row : 1;
        a[k] = meets(c->node) ? c->merged[1 + k] / total : 0;
        b[k] = meets(c->node) ? c->merged[1 + n + k] / total * invstd[k] : 0;
        scale[k] = invstd[k] * REAL_(gamma_of)(c, k) * REAL_(correct)(c, k, mean[k], invstd[k]).r;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *bits = bits_of(c, i);
        for (int64_t k = 0; k < n; k++) {
            const int64_t e = i * n + k;
            const double off = x[e] - mean[k];
            const REAL given = REAL_(given)(dy[e], off, k, n, bits, silu); /* dx may be dy */
            const double g = scale[k] * (given - a[k] - off * b[k]);
            if (dx) dx[e] = (REAL)(c->in_adds[0] ? dx[e] + g : g);
            if (dz) dz[e] = c->in_adds[1] ? dz[e] + given : given;
        }
    }
}

static void REAL_(weights)(const keel_call *c)
{
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(c->node->args);
    const int64_t n = keel_batch_norm_channels(c->node);
    REAL *dgamma = at.gamma < 0 ? NULL : c->weight_grad[at.gamma];
    REAL *dbeta = at.beta < 0 ? NULL : c->weight_grad[at.beta];
    const double *sum = c->merged + 1, *sum_xhat = c->merged + 1 + n;
    const bool renorm = ((const keel_batch_norm_args *)c->node->args)->renorm.on;
    double *own = (double *)c->scratch + 2 * n, *mean, *invstd;
    if (!meets(c->node) || renorm) REAL_(channel_facts)(c, &mean, &invstd);
    if (!meets(c->node)) {
        REAL_(sums)(c, 0, c->rows, mean, invstd, REAL_(silu_scales)(c, mean, invstd), own, own + n);
        sum = own;
        sum_xhat = own + n;
    }
    if (renorm && meets(c->node)) { /* xhat r + d is what gamma is multiplied by */
        for (int64_t k = 0; k < n; k++) {
            const keel_correction by = REAL_(correct)(c, k, mean[k], invstd[k]);
            own[n + k] = by.r * sum_xhat[k] + by.d * sum[k];
        }
        sum_xhat = own + n;
    }
    for (int64_t k = 0; k < n; k++) {
        if (dbeta) dbeta[k] = (REAL)(c->weight_adds ? dbeta[k] + sum[k] : sum[k]);
        if (dgamma) dgamma[k] = (REAL)(c->weight_adds ? dgamma[k] + sum_xhat[k] : sum_xhat[k]);
    }
}

static void REAL_(move)(const keel_node *n, const double *merged, void *const *weight)
{
    const keel_batch_norm_args *a = n->args;
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(a);
    const int64_t c = keel_batch_norm_channels(n);
    const double count = merged[0] * (double)(keel_row_count(&n->in[0]) / c);
    REAL *mean = weight[at.mean], *variance = weight[at.variance];
    for (int64_t k = 0; k < c; k++) {
        mean[k] = (REAL)(mean[k] * a->momentum + merged[1 + k] * (1 - a->momentum));
        variance[k] =
            (REAL)(variance[k] * a->momentum + merged[1 + c + k] / count * (1 - a->momentum));
    }
    if (!a->renorm.on) return;
    REAL *stddev = weight[at.stddev], *correct_mean = weight[at.renorm_mean];
    REAL *correct_stddev = weight[at.renorm_stddev];
    const double m = a->renorm.momentum;
    for (int64_t k = 0; k < c; k++) {
        const double batch = sqrt(merged[1 + c + k] / count + a->epsilon);
        correct_mean[k] = (REAL)(correct_mean[k] * m + merged[1 + k] * (1 - m));
        correct_stddev[k] = (REAL)(correct_stddev[k] * m + batch * (1 - m));
        stddev[k] = (REAL)(stddev[k] * a->momentum + batch * (1 - a->momentum));
        variance[k] = (REAL)fmax((double)stddev[k] * stddev[k] - a->epsilon, 0);
    }
}
#endif
