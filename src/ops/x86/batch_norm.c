/* Batch normalisation, 8 or 16 channels at a time; the formulas are those of batch_norm.c.
 *
 * Statistics in one pass over memory: a block of 64 places is summed in float32, which is exact
 * enough for so few, as deviations from the mean of the blocks before it (the first block: from its
 * own), and blocks are merged in double by Chan's rule. So a mean far from 0, or an odd first
 * pixel, costs no digits: a block that lies far from those before it adds that distance to M2, too.
 * Sums of backward likewise: blocks in float32, totals in double.
 *
 * silu costs an exponential, and in backward two; its op by itself would read and write all values
 * five times more. In bfloat16 that takes as long, but the values between need no memory.
 *
 * What forward saves of relu is a bit for each element, read as a mask of a vector (batch_norm.c).
 *
 * Means are split into a float and what it leaves out, which goes into the offset of each channel.
 */
#ifndef VALUE
#include "ops/x86/_fetch.h"
#include "ops/x86/_pointwise.h"
#include "ops/args.h"
#include <math.h>

enum { BLOCK = 64 };

typedef struct facts { /* of one call; arrays of n channels, in scratch */
    int64_t n, places;
    double *mean, *invstd;
    float *near, *scale, *offset, *slope, *share; /* near: the mean as a float */
    float *by, *to;                               /* scale and offset of forward, for silu */
    bool silu;
    int gamma, beta;
    uint8_t *bits;     /* of the first place; NULL: gradients pass everywhere */
    int64_t bit_bytes; /* of a place */
    bool far;          /* of what is written: see _fetch.h */
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
    p->scratch = n * (int64_t)(2 * sizeof(double) + 7 * sizeof(float));
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
                .beta = a->center ? a->scale : -1,
                .silu = a->silu,
                .bits = a->relu && node->n_saved ? c->saved[0] : NULL,
                .bit_bytes = a->relu && node->n_saved ? keel_batch_norm_bits(n) : 0 };
    f.far = f.places * n * (int64_t)keel_dtype_size(node->held) > FETCH_FAR;
    f.invstd = f.mean + n;
    f.near = (float *)(f.invstd + n);
    f.scale = f.near + n;
    f.offset = f.scale + n;
    f.slope = f.offset + n;
    f.share = f.slope + n;
    f.by = f.share + n;
    f.to = f.by + n;
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

/* keel_correct, where it is. */
static keel_correction correction_of(const keel_call *c, double mean, double invstd, int64_t k)
{
    const keel_batch_norm_args *a = c->node->args;
    const int moving = a->scale + a->center;
    if (!a->renorm.on || !c->node->partial) return (keel_correction){ 1, 0 };
    return keel_correct(&a->renorm, a->epsilon, mean, invstd,
                        ((const float *)c->weight[moving + 3])[k],
                        ((const float *)c->weight[moving + 4])[k]);
}

static double weight_of(const keel_call *c, int at, int64_t k, double absent)
{
    return at < 0 ? absent : ((const float *)c->weight[at])[k];
}

/* What x less `near` is multiplied by, and what is added then. */
static void scales_of(const keel_call *c, const facts *f, float *scale, float *offset)
{
    for (int64_t k = 0; k < f->n; k++) {
        const keel_correction by = correction_of(c, f->mean[k], f->invstd[k], k);
        const double gamma = weight_of(c, f->gamma, k, 1), all = f->invstd[k] * gamma * by.r;
        scale[k] = (float)all;
        offset[k] =
            (float)(weight_of(c, f->beta, k, 0) + gamma * by.d + (f->near[k] - f->mean[k]) * all);
    }
}

/* What silu lets through of a gradient. */
static inline vf behind_silu(vf given, vf x, vf near, vf by, vf to)
{
    const vf u = vf_fma(vf_sub(x, near), by, to), s = logistic(u);
    return vf_rounded(vf_mul(given, vf_mul(s, vf_fma(u, vf_sub(vf_set(1), s), vf_set(1)))));
}

/* Does `few(..., rows, ...)` over count rows: eight at a time if rows are narrow, else four. */
#define BY_ROWS(i, rows, count, n, few)                                                            \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        if ((n) <= 4 * LANES) {                                                                    \
            enum { rows = 8 };                                                                     \
            for (; i + rows <= (count); i += rows) few;                                            \
        }                                                                                          \
        if (i < (count)) {                                                                         \
            enum { rows = 4 };                                                                     \
            for (; i + rows <= (count); i += rows) few;                                            \
        }                                                                                          \
        if (i < (count)) {                                                                         \
            enum { rows = 1 };                                                                     \
            for (; i < (count); i++) few;                                                          \
        }                                                                                          \
    } while (0)

/* Does `few(..., rows, ...)` over count places, four at a time if their channels are one or two
 * cache lines, so that what a channel needs stays in registers. Wider places are done one at a
 * time, because four were up to twice as slow. */
#define BY_FEW(i, rows, count, n, few)                                                             \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        if ((n) * (int64_t)sizeof(VALUE) <= 128) {                                                 \
            enum { rows = 4 };                                                                     \
            for (; i + rows <= (count); i += rows) few;                                            \
        }                                                                                          \
        if (i < (count)) {                                                                         \
            enum { rows = 1 };                                                                     \
            for (; i < (count); i++) few;                                                          \
        }                                                                                          \
    } while (0)

/* Merges a block of `count` places into the record of the `before` places so far. */
static void merge_block(double *restrict mean, double *restrict m2, const float *restrict shift,
                        const float *restrict sum, const float *restrict square, int64_t n,
                        int64_t before, int64_t count)
{
    const double share = (double)count / (double)(before + count), each = 1 / (double)count;
    const double both = (double)before * share;
    for (int64_t k = 0; k < n; k++) {
        const double left = (double)sum[k] * each; /* what the float mean lacks */
        const double d = (double)shift[k] + left - mean[k];
        m2[k] += (double)square[k] - left * (double)sum[k] + d * d * both;
        mean[k] += d * share;
    }
}

#define VALUE_FILE "ops/x86/batch_norm.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(batch_norm);

const keel_kernel VECTOR_KERNEL(batch_norm) = {
    .op = &keel_op_batch_norm,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_PARTIAL] = partial_f32,
             [KEEL_PARTIAL_BACKWARD] = partial_backward_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16,
                [KEEL_BACKWARD] = backward_bf16,
                [KEEL_PARTIAL] = partial_bf16,
                [KEEL_PARTIAL_BACKWARD] = partial_backward_bf16 },
};
#else
#define NARROW (sizeof(VALUE) < sizeof(float))

/* y = (x - near) scale + offset, + z if z is given, and its relu, over `rows` places, a constant at
 * each call. y may be z. */
INLINE void VALUE_(normalise_few)(const VALUE *x, const VALUE *z, VALUE *y, uint8_t *bits,
                                  int64_t bit_bytes, const facts *f, int rows, bool relu, vf cap,
                                  bool silu, bool far)
{
    const int64_t n = f->n;
    const float *near = f->near, *scale = f->scale, *offset = f->offset;
    VECTOR_EACH(k, n, m, {
        const vf from = vf_load_some(m, near + k);
        const vf by = vf_load_some(m, scale + k);
        const vf to = vf_load_some(m, offset + k);
        for (int i = 0; i < rows; i++) {
            fetch_to_read_ahead(x + i * n + k, NARROW);
            if (z) fetch_to_read_ahead(z + i * n + k, NARROW);
            vf v = vf_fma(vf_sub(vx_load_some(m, x + i * n + k), from), by, to);
            if (z) v = vf_add(v, vx_load_some(m, z + i * n + k));
            if (relu) v = vf_min(cap, vf_max(vf_zero(), v));
            if (silu) v = vf_mul(v, logistic(v));
            if (bits)
                vm_store(bits + i * bit_bytes + k / 8,
                         vm_and(vf_greater(v, vf_zero()), vf_greater(cap, v)));
            fetch_to_write_ahead(y + i * n + k, far);
            vx_store_some(m, y + i * n + k, v);
        }
    });
}

INLINE void VALUE_(normalise)(const keel_call *c, const facts *f, const VALUE *z, bool relu,
                              bool bits, bool silu)
{
    const keel_batch_norm_args *a = c->node->args;
    const vf cap = vf_set(a->max_value > 0 ? (float)a->max_value : INFINITY);
    const int64_t n = f->n, each = f->bit_bytes;
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
#define NORMALISE(far)                                                                             \
    BY_FEW(i, rows, f->places, n,                                                                  \
           VALUE_(normalise_few)(x + i * n, z ? z + i * n : NULL, y + i * n,                       \
                                 bits ? f->bits + i * each : NULL, each, f, rows, relu, cap, silu, \
                                 far))
    if (f->far)
        NORMALISE(true);
    else
        NORMALISE(false);
#undef NORMALISE
}

static void VALUE_(forward)(const keel_call *c)
{
    if (c->rows == 0) return;
    const facts f = facts_of(c);
    const VALUE *z = c->node->n_in > 1 ? c->in[1] : NULL;
    const bool relu = ((const keel_batch_norm_args *)c->node->args)->relu;
    scales_of(c, &f, f.scale, f.offset);
    if (f.silu)
        VALUE_(normalise)(c, &f, NULL, false, false, true);
    else if (z && f.bits)
        VALUE_(normalise)(c, &f, z, true, true, false);
    else if (f.bits)
        VALUE_(normalise)(c, &f, NULL, true, true, false);
    else if (z)
        VALUE_(normalise)(c, &f, z, relu, false, false);
    else
        VALUE_(normalise)(c, &f, NULL, relu, false, false);
}

/* dz = what passes of dy, if dx is not wanted. */
static void VALUE_(pass_on)(const keel_call *c, const facts *f)
{
    const int64_t n = f->n;
    const VALUE *dy = c->out_grad[0];
    VALUE *dz = c->in_grad[1];
    for (int64_t i = 0; i < f->places; i++, dy += n, dz += n)
        VECTOR_EACH(k, n, m, {
            vf given = vx_load_some(m, dy + k);
            if (f->bits)
                given = vf_choose(vm_load(f->bits + i * f->bit_bytes + k / 8), given, vf_zero());
            if (c->in_adds[1]) given = vf_add(given, vx_load_some(m, dz + k));
            vx_store_some(m, dz + k, given);
        });
}

/* dx = scale (dy - share + slope (x - near) + offset) and dz = dy, with what passes of dy. dx may
 * be dy. */
INLINE void VALUE_(gradients_few)(const VALUE *x, const VALUE *dy, const uint8_t *bits,
                                  int64_t bit_bytes, VALUE *dx, VALUE *dz, const facts *f, int rows,
                                  bool adds, bool adds_z, bool silu, bool far)
{
    const int64_t n = f->n;
    const float *near = f->near, *slope = f->slope, *offset = f->offset;
    const float *share = f->share, *scale = f->scale;
    VECTOR_EACH(k, n, m, {
        const vf from = vf_load_some(m, near + k);
        const vf rise = vf_load_some(m, slope + k);
        const vf to = vf_load_some(m, offset + k);
        const vf less = vf_load_some(m, share + k);
        const vf by = vf_load_some(m, scale + k);
        const vf shown_by = silu ? vf_load_some(m, f->by + k) : by;
        const vf shown_to = silu ? vf_load_some(m, f->to + k) : by;
        for (int i = 0; i < rows; i++) {
            const int64_t at = i * n + k;
            fetch_to_read_ahead(x + at, NARROW);
            fetch_to_read_ahead(dy + at, NARROW);
            vf given = vx_load_some(m, dy + at);
            if (bits) given = vf_choose(vm_load(bits + i * bit_bytes + k / 8), given, vf_zero());
            if (silu) given = behind_silu(given, vx_load_some(m, x + at), from, shown_by, shown_to);
            vf g = vf_fma(vf_sub(vx_load_some(m, x + at), from), rise, to);
            g = vf_mul(vf_add(g, vf_sub(given, less)), by);
            if (adds) g = vf_add(vf_rounded(g), vx_load_some(m, dx + at)); /* as in a tail */
            fetch_to_write_ahead(dx + at, far);
            vx_store_some(m, dx + at, g);
            if (dz) {
                if (adds_z) given = vf_add(given, vx_load_some(m, dz + at));
                fetch_to_write_ahead(dz + at, far);
                vx_store_some(m, dz + at, given);
            }
        }
    });
}

INLINE void VALUE_(gradients)(const keel_call *c, const facts *f, bool z, bool bits, bool silu)
{
    const int64_t n = f->n, each = f->bit_bytes;
    const VALUE *x = c->in[0], *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0], *dz = z ? c->in_grad[1] : NULL;
    const bool adds = c->in_adds[0], adds_z = z && c->in_adds[1];
#define GRADIENTS(far)                                                                             \
    BY_FEW(i, rows, f->places, n,                                                                  \
           VALUE_(gradients_few)(x + i * n, dy + i * n, bits ? f->bits + i * each : NULL, each,    \
                                 dx + i * n, dz ? dz + i * n : NULL, f, rows, adds, adds_z, silu,  \
                                 far))
    if (f->far)
        GRADIENTS(true);
    else
        GRADIENTS(false);
#undef GRADIENTS
}

static void VALUE_(backward)(const keel_call *c)
{
    const bool z = c->node->n_in > 1 && c->in_grad[1];
    if (c->rows == 0) return;
    const facts f = facts_of(c);
    const int64_t n = f.n;
    if (!c->in_grad[0]) {
        if (z) VALUE_(pass_on)(c, &f);
        return;
    }
    const double total =
        c->node->partial ? c->merged[0] * (double)(keel_row_count(&c->node->in[0]) / n) : 1;
    /* dy minus its mean first, because the two may be equal */
    for (int64_t k = 0; k < n; k++) {
        const double a = c->node->partial ? c->merged[1 + k] / total : 0;
        const double b = c->node->partial ? c->merged[1 + n + k] / total * f.invstd[k] : 0;
        f.scale[k] = (float)(f.invstd[k] * weight_of(c, f.gamma, k, 1) *
                             correction_of(c, f.mean[k], f.invstd[k], k).r);
        f.share[k] = (float)a;
        f.slope[k] = (float)-b;
        f.offset[k] = (float)(f.share[k] - a - (f.near[k] - f.mean[k]) * b);
    }
    if (f.silu) {
        scales_of(c, &f, f.by, f.to);
        VALUE_(gradients)(c, &f, false, false, true);
    } else if (z && f.bits) {
        VALUE_(gradients)(c, &f, true, true, false);
    } else if (z) {
        VALUE_(gradients)(c, &f, true, false, false);
    } else if (f.bits) {
        VALUE_(gradients)(c, &f, false, true, false);
    } else {
        VALUE_(gradients)(c, &f, false, false, false);
    }
}

/* Rows of channels are read in memory order, a few rows at a time, and their sum is added to arrays
 * of n sums. So wide rows stream, and narrow rows do not wait for each other's additions. */

/* sum += x, over `rows` rows, a constant at each call */
INLINE void VALUE_(sums_few)(const VALUE *x, int64_t n, int rows, float *sum)
{
    VECTOR_EACH(k, n, m, {
        vf s[2] = { vf_load_some(m, sum + k), vf_zero() };
        for (int i = 0; i < rows; i++) {
            fetch_to_read_ahead(x + i * n + k, NARROW);
            s[i & 1] = vf_add(s[i & 1], vx_load_some(m, x + i * n + k));
        }
        vf_store_some(m, sum + k, vf_add(s[0], s[1]));
    });
}

/* sum += x - shift, square += (x - shift)^2 */
INLINE void VALUE_(deviations_few)(const VALUE *x, int64_t n, int rows, const float *shift,
                                   float *sum, float *square)
{
    VECTOR_EACH(k, n, m, {
        const vf about = vf_load_some(m, shift + k);
        vf s[2] = { vf_load_some(m, sum + k), vf_zero() };
        vf q[2] = { vf_load_some(m, square + k), vf_zero() };
        for (int i = 0; i < rows; i++) {
            fetch_to_read_ahead(x + i * n + k, NARROW);
            const vf d = vf_sub(vx_load_some(m, x + i * n + k), about);
            s[i & 1] = vf_add(s[i & 1], d);
            q[i & 1] = vf_fma(d, d, q[i & 1]);
        }
        vf_store_some(m, sum + k, vf_add(s[0], s[1]));
        vf_store_some(m, square + k, vf_add(q[0], q[1]));
    });
}

/* f->scale += dy, f->offset += dy (x - near), with what passes of dy */
INLINE void VALUE_(products_few)(const VALUE *x, const VALUE *dy, const uint8_t *bits,
                                 int64_t bit_bytes, const facts *f, int rows, bool silu)
{
    const int64_t n = f->n;
    float *const sum = f->scale, *const product = f->offset;
    VECTOR_EACH(k, n, m, {
        const vf about = vf_load_some(m, f->near + k);
        const vf by = silu ? vf_load_some(m, f->by + k) : about;
        const vf to = silu ? vf_load_some(m, f->to + k) : about;
        vf s[2] = { vf_load_some(m, sum + k), vf_zero() };
        vf q[2] = { vf_load_some(m, product + k), vf_zero() };
        for (int i = 0; i < rows; i++) {
            fetch_to_read_ahead(x + i * n + k, NARROW);
            fetch_to_read_ahead(dy + i * n + k, NARROW);
            vf g = vx_load_some(m, dy + i * n + k);
            if (bits) g = vf_choose(vm_load(bits + i * bit_bytes + k / 8), g, vf_zero());
            if (silu) g = behind_silu(g, vx_load_some(m, x + i * n + k), about, by, to);
            s[i & 1] = vf_add(s[i & 1], g);
            q[i & 1] = vf_fma(g, vf_sub(vx_load_some(m, x + i * n + k), about), q[i & 1]);
        }
        vf_store_some(m, sum + k, vf_add(s[0], s[1]));
        vf_store_some(m, product + k, vf_add(q[0], q[1]));
    });
}

/* The record of one row of `places` places. Blocks begin anew with each row, so a record does not
 * depend on the cut of the rows. */
static void VALUE_(row_statistics)(const VALUE *x, int64_t places, int64_t n, float *shift,
                                   double *mean)
{
    double *m2 = mean + n;
    float *sum = shift + n, *square = sum + n;
    for (int64_t k = 0; k < 2 * n; k++) mean[k] = 0;
    for (int64_t p = 0; p < places; p += BLOCK, x += BLOCK * n) {
        const int64_t count = p + BLOCK < places ? BLOCK : places - p;
        for (int64_t k = 0; k < 2 * n; k++) sum[k] = 0; /* and square, behind it */
        if (p == 0) {
            const float each = 1 / (float)count;
            BY_ROWS(i, rows, count, n, VALUE_(sums_few)(x + i * n, n, rows, sum));
            for (int64_t k = 0; k < n; k++) shift[k] = sum[k] * each, sum[k] = 0;
        } else {
            for (int64_t k = 0; k < n; k++) shift[k] = (float)mean[k];
        }
        BY_ROWS(i, rows, count, n, VALUE_(deviations_few)(x + i * n, n, rows, shift, sum, square));
        merge_block(mean, m2, shift, sum, square, n, p, count);
    }
}

static void VALUE_(partial)(const keel_call *c)
{
    const int64_t n = channels_of(c->node), length = keel_row_count(&c->node->in[0]);
    const VALUE *x = c->in[0];
    double *record = c->partial;
    for (int64_t row = 0; row < c->rows; row++, x += length, record += c->node->partial)
        VALUE_(row_statistics)(x, length / n, n, c->scratch, record);
}

static void VALUE_(partial_backward)(const keel_call *c)
{
    if (c->rows == 0) return;
    const int64_t n = channels_of(c->node), length = keel_row_count(&c->node->in[0]);
    const facts f = facts_of(c);
    if (f.silu) scales_of(c, &f, f.by, f.to);
    for (int64_t row = 0; row < c->rows; row++) {
        const VALUE *x = (const VALUE *)c->in[0] + row * length;
        const VALUE *dy = (const VALUE *)c->out_grad[0] + row * length;
        double *sum = c->partial + row * c->node->partial_backward, *sum_xhat = sum + n;
        for (int64_t k = 0; k < 2 * n; k++) sum[k] = 0;
        for (int64_t p = 0; p < length; p += BLOCK * n) {
            const int64_t count = p + BLOCK * n < length ? BLOCK : (length - p) / n;
            for (int64_t k = 0; k < 2 * n; k++) f.scale[k] = 0; /* and offset, behind it */
            const uint8_t *bits = f.bits ? f.bits + (row * length + p) / n * f.bit_bytes : NULL;
#define PRODUCTS(bits, silu)                                                                       \
    BY_ROWS(                                                                                       \
        i, rows, count, n,                                                                         \
        VALUE_(products_few)(x + p + i * n, dy + p + i * n, bits, f.bit_bytes, &f, rows, silu))
            if (f.silu)
                PRODUCTS(NULL, true);
            else if (bits)
                PRODUCTS(bits + i * f.bit_bytes, false);
            else
                PRODUCTS(NULL, false);
#undef PRODUCTS
            for (int64_t k = 0; k < n; k++) sum[k] += f.scale[k];
            for (int64_t k = 0; k < n; k++) sum_xhat[k] += f.offset[k];
        }
        for (int64_t k = 0; k < n; k++)
            sum_xhat[k] = (sum_xhat[k] + (f.near[k] - f.mean[k]) * sum[k]) * f.invstd[k];
    }
}
#undef NARROW
#endif
