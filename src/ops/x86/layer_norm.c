/* Layer normalisation, 8 or 16 elements at a time. A place is read from memory once in each pass:
 * its later turns find it in the cache. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/x86/_vector.h"
#include <math.h>

enum {
    BAND = 128, /* places whose weight gradients are added in registers */
    WIDE = 4    /* vectors of them, and partial sums: as many as hide the latency of an addition */
};

/* Elements of a place. */
static int64_t length_of(const keel_node *n)
{
    const keel_shape *in = &n->in[0].shape;
    int64_t count = 1;
    for (int64_t k = ((const keel_layer_norm_args *)n->args)->dims; k > 0; k--)
        count *= in->dim[in->rank - k];
    return count;
}

static int64_t places_of(const keel_call *c)
{
    return c->rows * (keel_row_count(&c->node->in[0]) / length_of(c->node));
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) p->scratch = 2 * length_of(p->node) * (int64_t)sizeof(float);
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

#define VALUE_FILE "ops/x86/layer_norm.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(layer_norm);

const keel_kernel VECTOR_KERNEL(layer_norm) = {
    .op = &keel_op_layer_norm,
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY(VECTOR),
    .needs = VECTOR_LEVEL,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16,
                [KEEL_BACKWARD] = backward_bf16,
                [KEEL_WEIGHTS] = weights_bf16 },
};
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = length_of(c->node), places = places_of(c);
    const float *const gamma = a->scale ? c->weight[0] : NULL;
    const float *const beta = a->center ? c->weight[a->scale] : NULL;
    float *const stats = c->node->n_saved ? c->saved[0] : NULL;
    for (int64_t i = 0; i < places; i++) {
        const VALUE *x = (const VALUE *)c->in[0] + i * n;
        VALUE *y = (VALUE *)c->out[0] + i * n;
        vf sums[WIDE] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
        vf squares[WIDE] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
        if (!a->rms) EACH_IN_TURN(k, n, m, s, sums, *s = vf_add(*s, vx_load_some(m, x + k)));
        const float mean = total(sums) / (float)n;
        const vf shift = vf_set(mean);
        EACH_IN_TURN(k, n, m, s, squares, {
            const vf v = vf_choose(m, vf_sub(vx_load_some(m, x + k), shift), vf_zero());
            *s = vf_fma(v, v, *s);
        });
        const float r = 1 / sqrtf(total(squares) / (float)n + (float)a->epsilon);
        const vf by = vf_set(r);
        VECTOR_EACH(k, n, m, {
            const vf v = vf_mul(vf_sub(vx_load_some(m, x + k), shift), by);
            const vf scaled = times(gamma, m, k, v);
            vx_store_some(m, y + k, beta ? vf_add(scaled, vf_load_some(m, beta + k)) : scaled);
        });
        if (!stats) continue;
        stats[2 * i] = mean;
        stats[2 * i + 1] = r;
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = length_of(c->node), places = places_of(c);
    const float *const gamma = a->scale ? c->weight[0] : NULL, *const stats = c->saved[0];
    for (int64_t i = 0; c->in_grad[0] && i < places; i++) {
        const VALUE *x = (const VALUE *)c->in[0] + i * n;
        const VALUE *dy = (const VALUE *)c->out_grad[0] + i * n;
        VALUE *dx = (VALUE *)c->in_grad[0] + i * n;
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
            if (c->in_adds[0]) v = vf_add(v, vx_load_some(m, dx + k));
            vx_store_some(m, dx + k, v);
        });
    }
}

/* Sums of a band are made in registers, the bands are added up in scratch. */
static void VALUE_(weights)(const keel_call *c)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = length_of(c->node), places = places_of(c);
    const VALUE *x = c->in[0], *dy = c->out_grad[0];
    const float *const stats = c->saved[0];
    float *const dgamma = a->scale ? c->weight_grad[0] : NULL;
    float *const dbeta = a->center ? c->weight_grad[a->scale] : NULL;
    float *const products = c->scratch, *const sums = products + n;
    memset(products, 0, (size_t)(2 * n) * sizeof *products);
    for (int64_t first = 0; first < places; first += BAND) {
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
