/* 1 where x is not `value`, 0 where it is; with `any`, over the last axis: 1 where one of them is
 * not. The masks of Keras's Embedding and Masking. x may be of any type; no gradient flows. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_not_equal_to_args *a = n->args;
    if (n->n_in != 1 || n->n_weight)
        return keel_fail(KEEL_EARG, "not_equal_to: has %d inputs and %d weights, needs 1 and 0",
                         n->n_in, n->n_weight);
    keel_shape out = n->in[0].shape;
    if (a->any && out.rank-- == 0)
        return keel_fail(KEEL_ESHAPE, "not_equal_to: needs a row with at least one dim");
    return keel_infer_out(n, &out);
}

static double number(const keel_call *c, int64_t i)
{
    switch ((int)c->node->in[0].dtype) {
    case KEEL_INT64: /* `value` is small, so no large integer is rounded to it */
        return (double)((const int64_t *)c->in[0])[i];
    case KEEL_INT32:
        return ((const int32_t *)c->in[0])[i];
    case KEEL_UINT8:
    case KEEL_BOOL:
        return ((const uint8_t *)c->in[0])[i];
    case KEEL_FLOAT64:
        return ((const double *)c->in[0])[i];
    default:
        return ((const float *)c->in[0])[i];
    }
}

#define REAL_FILE "ops/not_equal_to.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_not_equal_to_args *a = args;
    a->any = keel_case_has(text, "any");
    keel_case_number(text, "value", &a->value);
}

const keel_op keel_op_not_equal_to = {
    .name = "not_equal_to",
    .args_size = sizeof(keel_not_equal_to_args),
    .infer = infer,
    .forward = REALS(forward),
    .cases =
        (const keel_case[]){ { "4,5", NULL, NULL }, { "4,5", NULL, "any" }, { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_not_equal_to_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t n = a->any ? in->dim[in->rank - 1] : 1;
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const double value = REAL_IS_DOUBLE ? a->value : (double)(float)a->value;
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i++) {
        bool differs = false;
        for (int64_t k = 0; k < n; k++) differs = differs || number(c, i * n + k) != value;
        y[i] = differs;
    }
}
#endif
