/* A kernel of conv2d that runs within another kernel, on images that this one chooses
 * (_transposed.h, _slices.h, _pieces.h): its node and its plan.
 *
 * The including file defines `value`, the type that values are held in. */
#ifndef KEEL_OPS_X86_INNER_H
#define KEEL_OPS_X86_INNER_H
#include "ops/args.h"
#include "ops/x86/_vector.h"

KEEL_USES_OP(conv2d);

typedef struct inner {
    keel_node node;
    keel_spec in, out, weight[2]; /* to be set before prepare, as args */
    keel_conv2d_args args;
    const keel_kernel *kernel;
    void *plan;
} inner;

/* Takes over what is as in the outer node. */
static void inner_fill(inner *x, const keel_node *n)
{
    x->node = *n;
    x->node.op = &keel_op_conv2d;
    x->node.args = &x->args;
    x->node.in = &x->in;
    x->node.out = &x->out;
    x->node.weight = x->weight;
}

static void inner_release(inner *x)
{
    if (x->kernel && x->kernel->release) x->kernel->release(x->plan);
}

/* Prepares the first of n kernels that takes the pass; q is the outer question, changed by the
 * caller where it differs. KEEL_EUNSUP: none does. */
static keel_status inner_prepare(inner *x, keel_prepare *q, const keel_kernel *const *kernel, int n)
{
    keel_status s = KEEL_EUNSUP;
    q->node = &x->node;
    for (int i = 0; s == KEEL_EUNSUP && i < n; i++) {
        s = kernel[i]->prepare(q);
        x->kernel = s < 0 ? NULL : kernel[i];
    }
    if (s >= 0) x->plan = q->plan;
    return s;
}

/* The call of the inner kernel: what it reads and writes is set by the caller. */
static keel_call inner_call(const inner *x, const keel_call *c)
{
    keel_call q = *c;
    q.node = &x->node;
    q.plan = x->plan;
    return q;
}

static void inner_run(const inner *x, const keel_call *q, keel_pass pass)
{
    const keel_kernel *k = x->kernel;
    (sizeof(value) < sizeof(float) ? k->narrow : k->run)[pass](q);
}

#endif
