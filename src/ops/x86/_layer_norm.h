/* The loops of layer_norm and add_layer_norm, 8 or 16 elements at a time. A place is read from
 * memory once in each pass: its later turns find it in the cache.
 *
 * Included where VALUE is not defined, and where it is (ops/x86/_values.h), so there is no include
 * guard. */
#ifndef VALUE
#include "ops/layer_norm.h"
#include "ops/x86/_vector.h"
#include "tensor/narrow.h"

enum {
    BAND = 128, /* places whose weight gradients are added in registers */
    WIDE = 4    /* vectors of them, and partial sums: as many as hide the latency of an addition */
};

static int64_t places_of(const keel_call *c)
{
    return c->rows * (keel_row_count(&c->node->in[0]) / keel_layer_norm_length(c->node));
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS)
        p->scratch = 2 * keel_layer_norm_length(p->node) * (int64_t)sizeof(float);
    return KEEL_OK;
}

static inline vf times(const float *factor, vm m, int64_t k, vf x)
{
    return factor ? vf_mul(x, vf_load_some(m, factor + k)) : x;
}

/* Run `body` for k = 0, LANES, ... < n with the mask m, and with a sum of WIDE, `s`, in turn. */
#define EACH_IN_TURN(k, n, m, s, sums, body)                                                       \
    do {                                                                                           \
        int64_t k = 0;                                                                             \
        const vm all_ = vm_first(LANES);                                                           \
        for (; k + WIDE * LANES <= (n);)                                                           \
            for (int turn_ = 0; turn_ < WIDE; turn_++, k += LANES) {                               \
                const vm m = all_;                                                                 \
                vf *const s = &(sums)[turn_];                                                      \
                body;                                                                              \
            }                                                                                      \
        for (; k < (n); k += LANES) {                                                              \
            const vm m = vm_first((n)-k);                                                          \
            vf *const s = &(sums)[0];                                                              \
            body;                                                                                  \
        }                                                                                          \
    } while (0)

static inline float total(const vf s[WIDE])
{
    return vf_sum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])));
}
#else
/* y from x; or, if b is not NULL, sum = x + b, and y from the sum. */
static void VALUE_(normalize)(const keel_call *c, const VALUE *x, const VALUE *b, VALUE *sum,
                              VALUE *y)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = keel_layer_norm_length(c->node), places = places_of(c);
    const float *const gamma = a->scale ? c->weight[0] : NULL;
    const float *const beta = a->center ? c->weight[a->scale] : NULL;
    float *const stats = c->node->n_saved ? c->saved[0] : NULL;
    const VALUE *of = b ? sum : x;
    for (int64_t i = 0; i < places; i++, of += n, y += n) {
        vf sums[WIDE] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
        vf squares[WIDE] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
        if (b)
            VECTOR_EACH(k, n, m, {
                const vf other = vx_load_some(m, b + i * n + k);
                vx_store_some(m, sum + i * n + k, vf_add(vx_load_some(m, x + i * n + k), other));
            });
        if (b && keel_dtype_is_narrow(c->node->rounded))
            keel_narrow_round((void *)(sum + i * n), c->node->rounded, n); /* of floats, then */
        if (!a->rms) EACH_IN_TURN(k, n, m, s, sums, *s = vf_add(*s, vx_load_some(m, of + k)));
        const float mean = total(sums) / (float)n;
        const vf shift = vf_set(mean);
        EACH_IN_TURN(k, n, m, s, squares, {
            const vf v = vf_choose(m, vf_sub(vx_load_some(m, of + k), shift), vf_zero());
            *s = vf_fma(v, v, *s);
        });
        const float r = 1 / sqrtf(total(squares) / (float)n + (float)a->epsilon);
        const vf by = vf_set(r);
        VECTOR_EACH(k, n, m, {
            const vf v = vf_mul(vf_sub(vx_load_some(m, of + k), shift), by);
            const vf scaled = times(gamma, m, k, v);
            vx_store_some(m, y + k, beta ? vf_add(scaled, vf_load_some(m, beta + k)) : scaled);
        });
        if (!stats) continue;
        stats[2 * i] = mean;
        stats[2 * i + 1] = r;
    }
}

/* The gradient by dy and what is added to it, `more` (NULL: nothing), goes to all inputs. The
 * number of inputs is a constant at each call. */
INLINE void VALUE_(normalize_back)(const keel_call *c, const VALUE *x, const VALUE *dy,
                                   const VALUE *more, const int n_in)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = keel_layer_norm_length(c->node), places = places_of(c);
    const float *const gamma = a->scale ? c->weight[0] : NULL, *const stats = c->saved[0];
    for (int64_t i = 0; i < places; i++, x += n, dy += n) {
        const vf shift = vf_set(stats[2 * i]), by = vf_set(stats[2 * i + 1]);
        vf sums[WIDE] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
        vf products[WIDE] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
        EACH_IN_TURN(k, n, m, s, sums, {
            const vf g = times(gamma, m, k, vx_load_some(m, dy + k));
            const vf xhat = vf_mul(vf_sub(vx_load_some(m, x + k), shift), by);
            vf *const p = products + (s - sums);
            *s = vf_add(*s, g);
            *p = vf_fma(g, xhat, *p);
        });
        const vf level = vf_set(a->rms ? 0 : total(sums) / (float)n);
        const vf slope = vf_set(total(products) / (float)n);
        VECTOR_EACH(k, n, m, {
            const vf g = times(gamma, m, k, vx_load_some(m, dy + k));
            const vf xhat = vf_mul(vf_sub(vx_load_some(m, x + k), shift), by);
            vf v = vf_mul(by, vf_sub(vf_sub(g, level), vf_mul(xhat, slope)));
            if (more) v = vf_add(v, vx_load_some(m, more + i * n + k));
            EACH(to, n_in) {
                VALUE *const dx = (VALUE *)c->in_grad[to] + i * n + k;
                if (!c->in_grad[to]) continue;
                vx_store_some(m, dx, c->in_adds[to] ? vf_add(v, vx_load_some(m, dx)) : v);
            }
        });
    }
}

/* Sums of a band are made in registers, the bands are added up in scratch. */
static void VALUE_(normalize_weights)(const keel_call *c, const VALUE *x, const VALUE *dy)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = keel_layer_norm_length(c->node), places = places_of(c);
    const float *const stats = c->saved[0];
    float *const dgamma = a->scale ? c->weight_grad[0] : NULL;
    float *const dbeta = a->center ? c->weight_grad[a->scale] : NULL;
    float *const products = c->scratch, *const sums = products + n;
    memset(products, 0, (size_t)(2 * n) * sizeof *products);
    for (int64_t first = 0; dy && first < places; first += BAND) {
        const int64_t end = places - first < BAND ? places : first + BAND;
        VECTOR_EACH(k, n, m, {
            vf product = vf_zero();
            vf sum = vf_zero();
            for (int64_t i = first; i < end; i++) {
                const vf g = vx_load_some(m, dy + i * n + k);
                const vf v = vf_sub(vx_load_some(m, x + i * n + k), vf_set(stats[2 * i]));
                product = vf_fma(g, vf_mul(v, vf_set(stats[2 * i + 1])), product);
                sum = vf_add(sum, g);
            }
            vf_store_some(m, products + k, vf_add(product, vf_load_some(m, products + k)));
            vf_store_some(m, sums + k, vf_add(sum, vf_load_some(m, sums + k)));
        });
    }
    if (dgamma) VECTOR_MOVE(dgamma, products, n, c->weight_adds);
    if (dbeta) VECTOR_MOVE(dbeta, sums, n, c->weight_adds);
}
#endif
