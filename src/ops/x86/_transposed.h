/* A transposed convolution of images is the backward pass of a convolution, so the convolution's
 * kernels run with the roles of its passes exchanged:
 *
 *     forward    y = bias, to which the convolution's backward of x is added
 *     backward   dx = the convolution's forward of dy
 *     weights    those of the convolution of dy, whose output gradient is x
 *
 * The including file defines `value`, the type that values are held in. In bfloat16 the bias is
 * rounded before the sum, as Keras casts it. */
#ifndef KEEL_OPS_X86_TRANSPOSED_H
#define KEEL_OPS_X86_TRANSPOSED_H
#include "base/memory.h"
#include "ops/x86/_inner.h"

KEEL_USES_OP(conv_transpose);

enum { BAND = 64 };

typedef struct plan {
    inner inner;     /* the convolution */
    int64_t scratch; /* of its kernel, in bytes; the sums of the bias lie behind */
} plan;

static keel_spec image_of(const keel_spec *volume)
{
    const int64_t *dim = volume->shape.dim;
    return (keel_spec){ volume->dtype, KEEL_SHAPE(dim[1], dim[2], dim[3]) };
}

static void fill_inner(inner *x, const keel_node *n)
{
    const keel_conv_transpose_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    inner_fill(x, n);
    x->in = image_of(&n->out[0]);
    x->out = image_of(&n->in[0]);
    x->weight[0] = (keel_spec){ n->weight[0].dtype, KEEL_SHAPE(w[1], w[2], w[3], w[4]) };
    x->args = (keel_conv2d_args){ .strides = { a->strides[1], a->strides[2] },
                                  .dilation = { a->dilation[1], a->dilation[2] },
                                  .pad = { a->pad[2], a->pad[3], a->pad[4], a->pad[5] },
                                  .groups = 1 };
    x->node.n_in = x->node.n_out = x->node.n_weight = 1;
}

static void transposed_release(void *plan_)
{
    plan *pl = plan_;
    if (pl) inner_release(&pl->inner);
    keel_free(pl);
}

/* Prepares the first of n kernels of conv2d that takes the exchanged pass. */
static keel_status transposed_prepare(keel_prepare *p, const keel_kernel *const *kernel, int n)
{
    static const keel_pass passes[] = { KEEL_BACKWARD, KEEL_FORWARD, KEEL_WEIGHTS };
    const int64_t *w = p->node->weight[0].shape.dim;
    if (p->pass == KEEL_BACKWARD && p->in_adds) return KEEL_EUNSUP; /* a forward overwrites */
    if (p->pass > KEEL_WEIGHTS || w[0] != 1 || p->node->in[0].shape.dim[0] != 1 ||
        p->node->out[0].shape.dim[0] != 1)
        return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    fill_inner(&pl->inner, p->node);
    keel_prepare q = *p;
    q.pass = passes[p->pass];
    q.in_adds = p->pass == KEEL_FORWARD && p->node->n_weight > 1;
    const keel_status s = inner_prepare(&pl->inner, &q, kernel, n);
    if (s < 0) {
        transposed_release(pl);
        return s;
    }
    pl->scratch = (q.scratch + 63) / 64 * 64;
    p->plan = pl;
    p->scratch = pl->scratch + w[3] * (int64_t)sizeof(float);
    return KEEL_OK;
}

static void transposed_forward(const keel_call *c)
{
    const int64_t k = c->node->weight[0].shape.dim[3];
    const int64_t places = c->rows * keel_row_count(&c->node->out[0]) / k;
    const bool adds[] = { c->node->n_weight > 1 };
    const plan *pl = c->plan;
    keel_call q = inner_call(&pl->inner, c);
    value *y = c->out[0];
    if (adds[0]) {
        const float *bias = c->weight[1];
        VECTOR_EACH(j, k, m, vx_store_some(m, y + j, vf_load_some(m, bias + j)));
        for (int64_t i = 1; i < places; i++) memcpy(y + i * k, y, (size_t)k * sizeof *y);
    }
    q.out_grad = c->in;
    q.in_grad = c->out;
    q.in_adds = adds;
    inner_run(&pl->inner, &q, KEEL_BACKWARD);
}

static void transposed_backward(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = inner_call(&pl->inner, c);
    if (!c->in_grad[0]) return;
    q.in = c->out_grad;
    q.out = c->in_grad;
    inner_run(&pl->inner, &q, KEEL_FORWARD);
}

/* Row by row, in bands, so that no cut of the rows changes a bit of a row's part. */
static void bias_gradient(const keel_call *c, float *db, float *sums)
{
    const int64_t k = c->node->weight[0].shape.dim[3];
    const int64_t places = c->rows * keel_row_count(&c->node->out[0]) / k;
    const value *dy = c->out_grad[0];
    memset(sums, 0, (size_t)k * sizeof *sums);
    for (int64_t h = 0; h < places; h += BAND)
        VECTOR_EACH(j, k, m, {
            vf sum = vf_zero();
            for (int64_t i = h; i < places && i < h + BAND; i++)
                sum = vf_add(sum, vx_load_some(m, dy + i * k + j));
            vf_store_some(m, sums + j, vf_add(sum, vf_load_some(m, sums + j)));
        });
    VECTOR_MOVE(db, sums, k, c->weight_adds);
}

static void transposed_weights(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = inner_call(&pl->inner, c);
    if (c->weight_grad[0]) {
        q.in = c->out_grad;
        q.out_grad = c->in;
        inner_run(&pl->inner, &q, KEEL_WEIGHTS);
    }
    if (c->node->n_weight > 1 && c->weight_grad[1])
        bias_gradient(c, c->weight_grad[1], (float *)((char *)c->scratch + pl->scratch));
}

#endif
