/* Cast: the same numbers stored in another type, as Keras does if the inputs of a layer do not have
 * its compute dtype. The types are those of the node's specs, so one text serves float32,
 * bfloat16 and float16; gradients are cast back. Integers, bytes and booleans become real numbers
 * and have no gradient: images come as bytes and are widened here. */
#ifndef REAL
#include "ops/goes.h"
#include "ops/infer.h"
#include "ops/derive.h"
#include "tensor/narrow.h"
#include <string.h>

static bool known(const keel_node *n, keel_dtype t)
{
    return t == n->real || (keel_dtype_is_narrow(t) && n->real == KEEL_FLOAT32);
}

static keel_status infer(keel_node *n)
{
    if (n->n_in != 1 || n->n_weight != 0)
        return keel_fail(KEEL_EARG, "cast: has %d inputs and %d weights, needs 1 and 0", n->n_in,
                         n->n_weight);
    const bool whole = !keel_dtype_flows(n->in[0].dtype) && keel_dtype_size(n->in[0].dtype) > 0;
    if (!(whole || known(n, n->in[0].dtype)) || !known(n, n->held))
        return keel_fail(KEEL_EUNSUP, "cast: from %s to %s, where mathematics is in %s",
                         keel_dtype_name(n->in[0].dtype), keel_dtype_name(n->held),
                         keel_dtype_name(n->real));
    return keel_infer_out(n, &n->in[0].shape);
}

/* to[i] = from[i], or to[i] += from[i], of float32, bfloat16 and float16, worked out in float32. */
static void move_narrow(void *to, keel_dtype to_type, const void *from, keel_dtype from_type,
                        int64_t n, bool adds)
{
    enum { SOME = 256 };
    const size_t in = keel_dtype_size(from_type), out = keel_dtype_size(to_type);
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t some = n - i < SOME ? n - i : SOME;
        float x[SOME], sum[SOME];
        char *at = (char *)to + (size_t)i * out;
        keel_narrow_read(x, from_type, (const char *)from + (size_t)i * in, some);
        if (adds) keel_narrow_read(sum, to_type, at, some);
        for (int64_t k = 0; adds && k < some; k++) x[k] = sum[k] + x[k];
        keel_narrow_write(at, to_type, x, some);
    }
}

#define REAL_FILE "ops/cast.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    *out = d->grad;
    return KEEL_OK;
}

const keel_op keel_op_cast = {
    .name = "cast",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .goes = keel_goes_like,
    .casts = true,
    .cases =
        (const keel_case[]){ { "5", NULL, NULL }, { "4,3,7", NULL, NULL }, { NULL, NULL, NULL } },
};
#else

/* to[i] = from[i] of integers; bool and uint8 are read as bytes. */
#define FROM_WHOLE(type)                                                                           \
    do {                                                                                           \
        const type *whole = from;                                                                  \
        if (keel_dtype_is_narrow(to_type))                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const float wide = (float)whole[i];                                                \
                keel_narrow_write((uint16_t *)to + i, to_type, &wide, 1);                          \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) ((REAL *)to)[i] = (REAL)whole[i];                      \
    } while (0)

static void REAL_(widen_whole)(void *to, keel_dtype to_type, const void *from, keel_dtype from_type,
                               int64_t n)
{
    if (from_type == KEEL_INT32)
        FROM_WHOLE(int32_t);
    else if (from_type == KEEL_INT64)
        FROM_WHOLE(int64_t);
    else
        FROM_WHOLE(uint8_t);
}
#undef FROM_WHOLE

/* to[i] = from[i], or to[i] += from[i]. A type that is narrow is so only beside float32. */
static void REAL_(move)(void *to, keel_dtype to_type, const void *from, keel_dtype from_type,
                        int64_t n, bool adds)
{
    const REAL *real_from = from;
    REAL *real_to = to;
    if (!adds && from_type == to_type)
        memcpy(to, from, (size_t)n * keel_dtype_size(to_type));
    else if (keel_dtype_is_narrow(from_type) || keel_dtype_is_narrow(to_type))
        move_narrow(to, to_type, from, from_type, n, adds);
    else
        for (int64_t i = 0; i < n; i++) real_to[i] += real_from[i];
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    if (!keel_dtype_flows(n->in[0].dtype)) {
        REAL_(widen_whole)
        (c->out[0], n->out[0].dtype, c->in[0], n->in[0].dtype,
         c->rows * keel_row_count(&n->out[0]));
        return;
    }
    REAL_(move)
    (c->out[0], n->out[0].dtype, c->in[0], n->in[0].dtype, c->rows * keel_row_count(&n->out[0]),
     false);
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    if (!c->in_grad[0]) return;
    REAL_(move)
    (c->in_grad[0], n->in[0].dtype, c->out_grad[0], n->out[0].dtype,
     c->rows * keel_row_count(&n->out[0]), c->in_adds[0]);
}
#endif
