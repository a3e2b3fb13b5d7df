/* Batch normalisation, 8 or 16 channels at a time; the formulas are those of batch_norm.c.
 *
 * Statistics in one pass over memory: a block of 32 places is summed in float32, which is exact
 * enough for so few, its deviations are taken from its own mean while it is in the cache, and
 * blocks are merged in double by Chan's rule. So a mean far from 0, or an odd first pixel, costs no
 * digits. Sums of backward likewise: blocks in float32, totals in double.
 *
 * Means are split into a float and what it leaves out, which goes into the offset of each channel.
 */
#include "ops/_vector.h"
#include "ops/args.h"
#include <math.h>

enum { BLOCK = 32 };

typedef struct facts { /* of one call; arrays of n channels, in scratch */
    int64_t n, places;
    double *mean, *invstd;
    float *near, *scale, *offset, *slope, *share; /* near: the mean as a float */
    int gamma, beta;
} facts;

static int64_t channels_of(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

static keel_status prepare(keel_prepare *p)
{
    const int64_t n = channels_of(p->node);
    KEEL_TRY(vector_prepare(p));
    if (p->pass == KEEL_WEIGHTS) return KEEL_EUNSUP; /* reads the merged record only */
    if ((p->pass == KEEL_PARTIAL || p->pass == KEEL_PARTIAL_BACKWARD) && !p->node->partial)
        return KEEL_EUNSUP;
    p->scratch = n * (int64_t)(2 * sizeof(double) + 5 * sizeof(float));
    return KEEL_OK;
}

static facts facts_of(const keel_call *c)
{
    const keel_node *node = c->node;
    const keel_batch_norm_args *a = node->args;
    const int64_t n = channels_of(node), per_row = keel_row_count(&node->in[0]) / n;
    const int moving = a->scale + a->center;
    facts f = { .n = n,
                .places = c->rows * per_row,
                .mean = c->scratch,
                .gamma = a->scale ? 0 : -1,
                .beta = a->center ? a->scale : -1 };
    f.invstd = f.mean + n;
    f.near = (float *)(f.invstd + n);
    f.scale = f.near + n;
    f.offset = f.scale + n;
    f.slope = f.offset + n;
    f.share = f.slope + n;
    const double *merged = c->merged_forward ? c->merged_forward : c->merged;
    const double count = node->partial ? merged[0] * (double)per_row : 1;
    const float *moving_mean = c->weight[moving], *moving_variance = c->weight[moving + 1];
    for (int64_t k = 0; k < n; k++) {
        const double variance = node->partial ? merged[1 + n + k] / count : moving_variance[k];
        f.mean[k] = node->partial ? merged[1 + k] : moving_mean[k];
        f.invstd[k] = 1 / sqrt(variance + a->epsilon);
        f.near[k] = (float)f.mean[k];
    }
    return f;
}

static double weight_of(const keel_call *c, int at, int64_t k, double absent)
{
    return at < 0 ? absent : ((const float *)c->weight[at])[k];
}

static void forward(const keel_call *c)
{
    if (c->rows == 0) return;
    const facts f = facts_of(c);
    const int64_t n = f.n;
    const float *x = c->in[0];
    float *y = c->out;
    for (int64_t k = 0; k < n; k++) {
        const double scale = f.invstd[k] * weight_of(c, f.gamma, k, 1);
        f.scale[k] = (float)scale;
        f.offset[k] = (float)(weight_of(c, f.beta, k, 0) + (f.near[k] - f.mean[k]) * scale);
    }
    for (int64_t i = 0; i < f.places; i++, x += n, y += n)
        VECTOR_EACH(k, n, m, {
            const vf d = vf_sub(vf_load_some(m, x + k), vf_load_some(m, f.near + k));
            const vf v = vf_fma(d, vf_load_some(m, f.scale + k), vf_load_some(m, f.offset + k));
            vf_store_some(m, y + k, v);
        });
}

static void backward(const keel_call *c)
{
    if (!c->in_grad[0] || c->rows == 0) return;
    const facts f = facts_of(c);
    const int64_t n = f.n;
    const double total =
        c->node->partial ? c->merged[0] * (double)(keel_row_count(&c->node->in[0]) / n) : 1;
    const float *x = c->in[0], *dy = c->out_grad;
    float *dx = c->in_grad[0];
    /* dx = scale (dy - share + slope (x - near) + offset): dy less its mean first, as those two may
     * be equal */
    for (int64_t k = 0; k < n; k++) {
        const double a = c->node->partial ? c->merged[1 + k] / total : 0;
        const double b = c->node->partial ? c->merged[1 + n + k] / total * f.invstd[k] : 0;
        f.scale[k] = (float)(f.invstd[k] * weight_of(c, f.gamma, k, 1));
        f.share[k] = (float)a;
        f.slope[k] = (float)-b;
        f.offset[k] = (float)(f.share[k] - a - (f.near[k] - f.mean[k]) * b);
    }
    for (int64_t i = 0; i < f.places; i++, x += n, dy += n, dx += n)
        VECTOR_EACH(k, n, m, {
            const vf d = vf_sub(vf_load_some(m, x + k), vf_load_some(m, f.near + k));
            vf g = vf_fma(d, vf_load_some(m, f.slope + k), vf_load_some(m, f.offset + k));
            g = vf_add(g, vf_sub(vf_load_some(m, dy + k), vf_load_some(m, f.share + k)));
            g = vf_mul(g, vf_load_some(m, f.scale + k));
            if (c->in_adds[0]) g = vf_add(g, vf_load_some(m, dx + k));
            vf_store_some(m, dx + k, g);
        });
}

/* Sums of one block for the channels of m: of x - shift and of its square. */
static inline void deviations(const float *x, int64_t places, int64_t n, vm m, vf shift, vf *sum,
                              vf *square)
{
    vf s[2] = { vf_zero(), vf_zero() }, q[2] = { vf_zero(), vf_zero() };
    for (int64_t i = 0; i < places; i++) {
        const vf d = vf_sub(vf_load_some(m, x + i * n), shift);
        s[i & 1] = vf_add(s[i & 1], d);
        q[i & 1] = vf_fma(d, d, q[i & 1]);
    }
    *sum = vf_add(s[0], s[1]);
    *square = vf_add(q[0], q[1]);
}

static inline vf mean_of(const float *x, int64_t places, int64_t n, vm m)
{
    vf even = vf_zero(), odd = vf_zero();
    int64_t i = 0;
    for (; i + 2 <= places; i += 2) {
        even = vf_add(even, vf_load_some(m, x + i * n));
        odd = vf_add(odd, vf_load_some(m, x + (i + 1) * n));
    }
    if (i < places) even = vf_add(even, vf_load_some(m, x + i * n));
    return vf_mul(vf_add(even, odd), vf_set(1 / (float)places));
}

static void partial(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    const int64_t places = c->rows * (keel_row_count(&c->node->in[0]) / n);
    double *mean = c->partial + 1, *m2 = c->partial + 1 + n;
    c->partial[0] = (double)c->rows;
    for (int64_t k = 0; k < 2 * n; k++) mean[k] = 0;
    for (int64_t p = 0; p < places; p += BLOCK) {
        const int64_t count = p + BLOCK < places ? BLOCK : places - p;
        const double after = (double)(p + count), share = (double)count / after;
        const double both = (double)p * share, each = 1 / (double)count;
        const float *x = (const float *)c->in[0] + p * n;
        VECTOR_EACH(k, n, m, {
            float shift[LANES], sum[LANES], square[LANES];
            vf s, q;
            const vf about = mean_of(x + k, count, n, m);
            deviations(x + k, count, n, m, about, &s, &q);
            vf_store(shift, about);
            vf_store(sum, s);
            vf_store(square, q);
            for (int64_t j = 0; j < LANES && k + j < n; j++) {
                const double left = (double)sum[j] * each;
                const double d = shift[j] + left - mean[k + j];
                m2[k + j] += square[j] - left * sum[j] + d * d * both;
                mean[k + j] += d * share;
            }
        });
    }
}

static void partial_backward(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    double *sum = c->partial + 1, *sum_xhat = c->partial + 1 + n;
    c->partial[0] = (double)c->rows;
    for (int64_t k = 0; k < 2 * n; k++) sum[k] = 0;
    if (c->rows == 0) return;
    const facts f = facts_of(c);
    for (int64_t p = 0; p < f.places; p += BLOCK) {
        const int64_t count = p + BLOCK < f.places ? BLOCK : f.places - p;
        const float *x = (const float *)c->in[0] + p * n, *dy = (const float *)c->out_grad + p * n;
        VECTOR_EACH(k, n, m, {
            float part[2][LANES];
            const vf near = vf_load_some(m, f.near + k);
            vf s[2] = { vf_zero(), vf_zero() };
            vf q[2] = { vf_zero(), vf_zero() };
            for (int64_t i = 0; i < count; i++) {
                const vf g = vf_load_some(m, dy + i * n + k);
                const vf d = vf_sub(vf_load_some(m, x + i * n + k), near);
                s[i & 1] = vf_add(s[i & 1], g);
                q[i & 1] = vf_fma(g, d, q[i & 1]);
            }
            vf_store(part[0], vf_add(s[0], s[1]));
            vf_store(part[1], vf_add(q[0], q[1]));
            for (int64_t j = 0; j < LANES && k + j < n; j++) {
                sum[k + j] += part[0][j];
                sum_xhat[k + j] += part[1][j];
            }
        });
    }
    for (int64_t k = 0; k < n; k++)
        sum_xhat[k] = (sum_xhat[k] + (f.near[k] - f.mean[k]) * sum[k]) * f.invstd[k];
}

const keel_kernel VECTOR_KERNEL(batch_norm) = {
    .op = "batch_norm",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward,
             [KEEL_BACKWARD] = backward,
             [KEEL_PARTIAL] = partial,
             [KEEL_PARTIAL_BACKWARD] = partial_backward },
};
