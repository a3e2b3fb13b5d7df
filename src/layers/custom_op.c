/* The op of registered layers. It calls them on the rows of a call, with gradients that begin at
 * zero unless others have been there before. Gradients of weights are asked for once for each shard
 * of rows, as those of every op, so their sums do not depend on the number of workers. */
#include "layers/custom.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_custom_args *a = n->args;
    const keel_registered *registered = keel_registered_of(a->of);
    if (n->real != KEEL_FLOAT32)
        return keel_fail(KEEL_EUNSUP, "%s: a registered layer computes in float32, not in %s",
                         registered->name, keel_dtype_name(n->real));
    if (n->backward && !((const keel_custom_layer *)registered->of)->backward)
        return keel_fail(KEEL_EUNSUP,
                         "%s was registered without `backward`: a model with it can predict, but "
                         "not train",
                         registered->name);
    KEEL_TRY(keel_node_add_out(n, &(keel_spec){ .dtype = n->held, .shape = a->out }));
    if (!n->backward || a->saved == 0) return KEEL_OK;
    return keel_node_add_saved(n, &(keel_spec){ .dtype = n->real, .shape = KEEL_SHAPE(a->saved) });
}

/* What a call has, in the words of keel/custom.h. */
typedef struct rows {
    keel_layer_rows r;
    keel_shape in_shape[KEEL_CUSTOM_INPUTS_MAX], weight_shape[KEEL_CUSTOM_WEIGHTS_MAX];
    const float *in[KEEL_CUSTOM_INPUTS_MAX], *weight[KEEL_CUSTOM_WEIGHTS_MAX];
    float *in_grad[KEEL_CUSTOM_INPUTS_MAX], *weight_grad[KEEL_CUSTOM_WEIGHTS_MAX];
} rows;

static void begin(rows *x, const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_custom_args *a = n->args;
    *x = (rows){ .r = { .training = n->training,
                        .rows = c->rows,
                        .n_in = n->n_in,
                        .in_shape = x->in_shape,
                        .in = x->in,
                        .out_shape = &a->out,
                        .saved_size = n->n_saved ? a->saved : 0,
                        .saved = n->n_saved ? c->saved[0] : NULL,
                        .n_weight = n->n_weight,
                        .weight_shape = x->weight_shape,
                        .weight = x->weight } };
    for (int i = 0; i < n->n_in; i++) {
        x->in_shape[i] = n->in[i].shape;
        x->in[i] = c->in[i];
    }
    for (int i = 0; i < n->n_weight; i++) {
        x->weight_shape[i] = n->weight[i].shape;
        x->weight[i] = c->weight[i];
    }
}

static void call(const keel_call *c, rows *x, bool backward)
{
    const keel_custom_args *a = c->node->args;
    const keel_status s = keel_custom_call(a->of, &x->r, backward);
    if (s < 0) keel_call_failed(c, keel_fail_within(s, "layer '%s'", c->node->layer));
}

static void forward(const keel_call *c)
{
    rows x;
    begin(&x, c);
    x.r.out = c->out[0];
    call(c, &x, false);
}

static void backward_with(const keel_call *c, rows *x)
{
    x->r.out_grad = c->out_grad[0];
    x->r.in_grad = x->in_grad;
    x->r.weight_grad = x->weight_grad;
    call(c, x, true);
}

static void backward(const keel_call *c)
{
    const keel_node *n = c->node;
    rows x;
    begin(&x, c);
    for (int i = 0; i < n->n_in; i++) {
        x.in_grad[i] = c->in_grad[i];
        if (x.in_grad[i] && !c->in_adds[i])
            memset(x.in_grad[i], 0,
                   (size_t)(c->rows * keel_row_count(&n->in[i])) * sizeof *x.in_grad[i]);
    }
    backward_with(c, &x);
}

static void weights(const keel_call *c)
{
    const keel_node *n = c->node;
    rows x;
    begin(&x, c);
    for (int i = 0; i < n->n_weight; i++) {
        x.weight_grad[i] = c->weight_grad[i];
        if (x.weight_grad[i] && !c->weight_adds)
            memset(x.weight_grad[i], 0,
                   (size_t)keel_row_count(&n->weight[i]) * sizeof *x.weight_grad[i]);
    }
    backward_with(c, &x);
}

const keel_op keel_custom_op = {
    .name = "custom",
    .args_size = sizeof(keel_custom_args),
    .infer = infer,
    .forward = { forward, NULL },
    .backward = { backward, NULL },
    .backward_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .weights = { weights, NULL },
    .weights_reads = KEEL_READS_IN | KEEL_READS_SAVED,
};
