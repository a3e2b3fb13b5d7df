/* The product along an axis, which is dropped. Keras: ops.prod. */
#ifndef REAL
#include "ops/axis.h"
#include <math.h>
#include <string.h>

#define REAL_FILE "ops/product.c"
#include "ops/real.h"

const keel_op keel_op_product = {
    .name = "product",
    .args_size = sizeof(keel_axis_args),
    .infer = keel_axis_infer_drop,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "10", NULL, NULL },
                                  { "4,3,5", NULL, "axis 1" },
                                  { "3,2", NULL, "axis 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_axis_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            double product = 1;
            for (int64_t j = 0; j < a.n; j++) product *= x[j * a.inner];
            ((REAL *)c->out[0])[o * a.inner + i] = (REAL)product;
        }
}

/* The slope is the product of the others, which a factor of 0 leaves whole. */
static void REAL_(backward)(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            REAL *dx = (REAL *)c->in_grad[0] + o * a.n * a.inner + i;
            const double dy = ((const REAL *)c->out_grad[0])[o * a.inner + i];
            double product = 1;
            int64_t zeros = 0, zero = 0;
            for (int64_t j = 0; j < a.n; j++) {
                if (x[j * a.inner] == 0)
                    zeros++, zero = j;
                else
                    product *= x[j * a.inner];
            }
            for (int64_t j = 0; j < a.n; j++) {
                const double others = zeros == 0                ? product / x[j * a.inner]
                                      : zeros == 1 && j == zero ? product
                                                                : 0;
                const double g = dy * others;
                dx[j * a.inner] = (REAL)(c->in_adds[0] ? dx[j * a.inner] + g : g);
            }
        }
}
#endif
