/* Group normalisation: see ops/group_norm.c. A row is read in vectors of channels, whose sums stay
 * in registers while its places pass by; groups take theirs from those of their channels. All sums
 * are in double. With sums over the places of s = dy and p = x dy, and over a group's channels,
 *
 *     q = sum of gamma r (p - mean s) / n,  dx = r gamma dy - r^2 q (x - mean) - r sum of gamma s /
 * n
 */
#ifndef VALUE
#include "base/round.h"
#include "ops/group_norm.h"
#include "ops/x86/_double.h"
#include <string.h>

enum { ARRAYS = 4 }; /* of a double for each channel */

typedef keel_group_norm_dims dims;

/* Doubles of an array: whole vectors. */
static int64_t room_of(const dims *d)
{
    return keel_round_up(d->channels, LANES);
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    const dims d = keel_group_norm_dims_of(p->node);
    p->scratch = ARRAYS * room_of(&d) * (int64_t)sizeof(double);
    return KEEL_OK;
}

static inline void put(double *to, vd low, vd high)
{
    memcpy(to, &low, sizeof low);
    memcpy(to + LANES / 2, &high, sizeof high);
}

static inline vd get(const double *from)
{
    vd v;
    memcpy(&v, from, sizeof v);
    return v;
}

static const float *gamma_of(const keel_call *c)
{
    return ((const keel_group_norm_args *)c->node->args)->scale ? c->weight[0] : NULL;
}

#define VALUE_FILE "ops/x86/group_norm.c"
#include "ops/x86/_values.h"

VECTOR_BOTH_WEIGHTS(group_norm, prepare);
#else
/* Sums of each channel of a row. */
static void VALUE_(add_up)(const dims *d, const VALUE *x, double *sum)
{
    VECTOR_EACH(i, d->channels, m, {
        vd low = vd_zero(), high = vd_zero();
        for (int64_t p = 0; p < d->places; p++) {
            const vf v = vx_load_some(m, x + p * d->channels + i);
            low += vd_low(v);
            high += vd_high(v);
        }
        put(sum + i, low, high);
    });
}

/* The same of squared distances from the mean. */
static void VALUE_(add_up_squares)(const dims *d, const VALUE *x, const double *mean, double *sum)
{
    VECTOR_EACH(i, d->channels, m, {
        const vd mean_low = get(mean + i), mean_high = get(mean + i + LANES / 2);
        vd low = vd_zero(), high = vd_zero();
        for (int64_t p = 0; p < d->places; p++) {
            const vf v = vx_load_some(m, x + p * d->channels + i);
            const vd far_low = vd_low(v) - mean_low, far_high = vd_high(v) - mean_high;
            low += far_low * far_low;
            high += far_high * far_high;
        }
        put(sum + i, low, high);
    });
}

/* The same of dy and of x dy. */
static void VALUE_(add_up_slopes)(const dims *d, const VALUE *x, const VALUE *dy, double *s,
                                  double *p)
{
    VECTOR_EACH(i, d->channels, m, {
        vd low = vd_zero(), high = vd_zero(), product_low = low, product_high = high;
        for (int64_t k = 0; k < d->places; k++) {
            const vf v = vx_load_some(m, x + k * d->channels + i);
            const vf g = vx_load_some(m, dy + k * d->channels + i);
            low += vd_low(g);
            high += vd_high(g);
            product_low += vd_low(g) * vd_low(v);
            product_high += vd_high(g) * vd_high(v);
        }
        put(s + i, low, high);
        put(p + i, product_low, product_high);
    });
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_group_norm_args *a = c->node->args;
    const dims d = keel_group_norm_dims_of(c->node);
    const int64_t room = room_of(&d);
    const double n = (double)(d.places * d.width);
    const float *gamma = gamma_of(c), *beta = a->center ? c->weight[a->scale] : NULL;
    double *sum = c->scratch, *mean = sum + room, *by = mean + room, *plus = by + room;
    memset(sum, 0, ARRAYS * (size_t)room * sizeof *sum);
    for (int64_t i = 0; i < d.channels && beta; i++) plus[i] = beta[i];
    for (int64_t row = 0; row < c->rows; row++) {
        const VALUE *x = (const VALUE *)c->in[0] + row * d.places * d.channels;
        VALUE *y = (VALUE *)c->out[0] + row * d.places * d.channels;
        float *stats = c->node->n_saved ? (float *)c->saved[0] + row * d.groups * 2 : NULL;
        VALUE_(add_up)(&d, x, sum);
        for (int64_t g = 0; g < d.groups; g++) {
            double all = 0;
            for (int64_t i = g * d.width; i < (g + 1) * d.width; i++) all += sum[i];
            for (int64_t i = g * d.width; i < (g + 1) * d.width; i++) mean[i] = all / n;
        }
        VALUE_(add_up_squares)(&d, x, mean, sum);
        for (int64_t g = 0; g < d.groups; g++) {
            double all = 0;
            for (int64_t i = g * d.width; i < (g + 1) * d.width; i++) all += sum[i];
            const double r = 1 / sqrt(all / n + a->epsilon);
            for (int64_t i = g * d.width; i < (g + 1) * d.width; i++)
                by[i] = gamma ? r * gamma[i] : r;
            if (!stats) continue;
            stats[2 * g] = (float)mean[g * d.width];
            stats[2 * g + 1] = (float)r;
        }
        VECTOR_EACH(i, d.channels, m, {
            const vd mean_low = get(mean + i), mean_high = get(mean + i + LANES / 2);
            const vd by_low = get(by + i), by_high = get(by + i + LANES / 2);
            const vd plus_low = get(plus + i), plus_high = get(plus + i + LANES / 2);
            for (int64_t at = i; at < d.places * d.channels; at += d.channels) {
                const vf v = vx_load_some(m, x + at);
                vx_store_some(m, y + at,
                              vf_of_doubles((vd_low(v) - mean_low) * by_low + plus_low,
                                            (vd_high(v) - mean_high) * by_high + plus_high));
            }
        });
    }
}

/* dx = a dy + b x + k, of which the group has b and k. */
static void VALUE_(backward)(const keel_call *c)
{
    const dims d = keel_group_norm_dims_of(c->node);
    const int64_t room = room_of(&d);
    const double n = (double)(d.places * d.width);
    const float *gamma = gamma_of(c);
    double *s = c->scratch, *p = s + room, *a = p + room, *b = a + room, *k = s;
    if (!c->in_grad[0]) return;
    memset(s, 0, ARRAYS * (size_t)room * sizeof *s);
    for (int64_t row = 0; row < c->rows; row++) {
        const int64_t begin = row * d.places * d.channels;
        const VALUE *x = (const VALUE *)c->in[0] + begin;
        const VALUE *dy = (const VALUE *)c->out_grad[0] + begin;
        const float *stats = (const float *)c->saved[0] + row * d.groups * 2;
        VALUE *dx = (VALUE *)c->in_grad[0] + begin;
        VALUE_(add_up_slopes)(&d, x, dy, s, p);
        for (int64_t g = 0; g < d.groups; g++) {
            const double mean = stats[2 * g], r = stats[2 * g + 1];
            const int64_t first = g * d.width, end = first + d.width;
            double sum = 0, product = 0;
            for (int64_t i = first; i < end; i++) {
                const double scale = gamma ? gamma[i] : 1;
                sum += scale * s[i] / n;
                product += scale * (p[i] - mean * s[i]) * r / n;
            }
            for (int64_t i = first; i < end; i++) {
                a[i] = gamma ? r * gamma[i] : r;
                b[i] = -r * r * product;
                k[i] = -r * sum - mean * b[i];
            }
        }
        VECTOR_EACH(i, d.channels, m, {
            const vd a_low = get(a + i), a_high = get(a + i + LANES / 2);
            const vd b_low = get(b + i), b_high = get(b + i + LANES / 2);
            const vd k_low = get(k + i), k_high = get(k + i + LANES / 2);
            for (int64_t at = i; at < d.places * d.channels; at += d.channels) {
                const vf v = vx_load_some(m, x + at), g = vx_load_some(m, dy + at);
                vx_store_doubles(m, dx + at, vd_low(g) * a_low + vd_low(v) * b_low + k_low,
                                 vd_high(g) * a_high + vd_high(v) * b_high + k_high, c->in_adds[0]);
            }
        });
    }
}

static void VALUE_(weights)(const keel_call *c)
{
    const keel_group_norm_args *a = c->node->args;
    const dims d = keel_group_norm_dims_of(c->node);
    const int64_t room = room_of(&d);
    float *dgamma = a->scale ? c->weight_grad[0] : NULL;
    float *dbeta = a->center ? c->weight_grad[a->scale] : NULL;
    double *s = c->scratch, *p = s + room, *sum = p + room, *product = sum + room;
    memset(s, 0, ARRAYS * (size_t)room * sizeof *s);
    for (int64_t row = 0; row < c->rows; row++) {
        const int64_t begin = row * d.places * d.channels;
        const float *stats = (const float *)c->saved[0] + row * d.groups * 2;
        VALUE_(add_up_slopes)
        (&d, (const VALUE *)c->in[0] + begin, (const VALUE *)c->out_grad[0] + begin, s, p);
        for (int64_t i = 0; i < d.channels; i++) {
            const double mean = stats[i / d.width * 2], r = stats[i / d.width * 2 + 1];
            sum[i] += s[i];
            product[i] += (p[i] - mean * s[i]) * r;
        }
    }
    for (int64_t i = 0; i < d.channels; i++) {
        if (dgamma) dgamma[i] = (float)product[i] + (c->weight_adds ? dgamma[i] : 0);
        if (dbeta) dbeta[i] = (float)sum[i] + (c->weight_adds ? dbeta[i] : 0);
    }
}
#endif
