/* The sum of two inputs, and its layer normalisation (ops/layer_norm.c): the end of a block of a
 * transformer, where the next block reads both. graph/fuse.c makes it of add and layer_norm.
 *
 *     s = a + b,  y = gamma (s - mean) r + beta
 *
 * Outputs: s, y. The gradient of s is what comes back to s itself and through y; a and b both get
 * it. Backward reads s, so neither input has to be kept. What is normalised is s as it is stored,
 * so that s - mean is the same in both passes: of one number exactly 0. */
#ifndef REAL
#include "ops/layer_norm.h"
#include "tensor/narrow.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_layer_norm_check(n, 2));
    if (!keel_shape_equal(&n->in[0].shape, &n->in[1].shape)) {
        char first[96], other[96];
        keel_shape_text(first, &n->in[0].shape);
        keel_shape_text(other, &n->in[1].shape);
        return keel_fail(KEEL_ESHAPE,
                         "add_layer_norm: input 0 is %s and input 1 is %s; they must be equal",
                         first, other);
    }
    KEEL_TRY(keel_infer_out(n, &n->in[0].shape));
    return keel_infer_out(n, &n->in[0].shape);
}

#define REAL_FILE "ops/add_layer_norm.c"
#include "ops/real.h"

const keel_op keel_op_add_layer_norm = {
    .name = "add_layer_norm",
    .args_size = sizeof(keel_layer_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_FIRST_OUT | KEEL_READS_SAVED,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_FIRST_OUT | KEEL_READS_SAVED,
    .cases = (const keel_case[]){ { "5|5", "5|5", NULL },
                                  { "3,7|3,7", "7", "no_center" },
                                  { "3,7|3,7", "7", "no_scale epsilon 0.25" },
                                  { "2,3,4|2,3,4", "3,4|3,4", "dims 2" },
                                  { "4,6|4,6", "6", "rms no_center" },
                                  { "4,6|4,6", NULL, "no_center no_scale" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_layer_norm_for_case,
};
#else
#include "ops/layer_norm_real.h"

static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *a = c->in[0], *b = c->in[1];
    REAL *sum = c->out[0];
    for (int64_t i = 0; i < count; i++) sum[i] = a[i] + b[i];
    if (keel_dtype_is_narrow(c->node->rounded))
        keel_narrow_round((void *)sum, c->node->rounded, count); /* of floats, then */
    REAL_(normalize)(c, sum, c->out[1]);
}

static void REAL_(backward)(const keel_call *c)
{
    REAL_(normalize_back)(c, c->out[0], c->out_grad[1], c->out_grad[0]);
}

static void REAL_(weights)(const keel_call *c)
{
    REAL_(normalize_weights)(c, c->out[0], c->out_grad[1]);
}
#endif
