/* Ops that treat every element alike: y = value(x), dx = dy slope(...).
 *
 * A file gives the two functions, in double, and says what the slope is computed from:
 * POINTWISE_FROM_OUT if y is enough (then backward does not need x, and y may be written over it),
 * else POINTWISE_FROM_IN. Each macro makes forward_f32, forward_f64, backward_f32 and backward_f64,
 * which REALS() of ops/real.h names. Double costs little here, and float32 results are then the
 * rounded exact ones. */
#ifndef KEEL_OPS_POINTWISE_H
#define KEEL_OPS_POINTWISE_H
#include "ops/goes.h"
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/real.h"
#include <math.h>

#define POINTWISE_FROM_OUT(value, slope)                                                           \
    POINTWISE_RUN(float, f32, value, slope, c->out[0])                                             \
    POINTWISE_RUN(double, f64, value, slope, c->out[0])
#define POINTWISE_FROM_IN(value, slope)                                                            \
    POINTWISE_RUN(float, f32, value, slope, c->in[0])                                              \
    POINTWISE_RUN(double, f64, value, slope, c->in[0])

#define POINTWISE_RUN(type, suffix, value, slope, read)                                            \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = c->rows * keel_row_count(&c->node->out[0]);                          \
        const type *x = c->in[0];                                                                  \
        type *y = c->out[0];                                                                       \
        for (int64_t i = 0; i < count; i++) y[i] = (type)value(c->node->args, x[i]);               \
    }                                                                                              \
    static void backward_##suffix(const keel_call *c)                                              \
    {                                                                                              \
        const int64_t count = c->rows * keel_row_count(&c->node->out[0]);                          \
        const type *at = read, *dy = c->out_grad[0];                                               \
        type *dx = c->in_grad[0];                                                                  \
        for (int64_t i = 0; dx && i < count; i++) {                                                \
            const double g = dy[i] * slope(c->node->args, at[i]);                                  \
            dx[i] = (type)(c->in_adds[0] ? dx[i] + g : g);                                         \
        }                                                                                          \
    }

#endif
