/* The same elements in another shape. Mostly a view, for which nothing is copied; the reference
 * copies if the program gave the output its own memory. Keras: Reshape, Flatten. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_reshape_args *a = n->args;
    char from[96], to[96];
    int open = -1;
    int64_t known = 1;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    const int64_t count = keel_row_count(&n->in[0]);
    keel_shape out = a->shape;
    keel_shape_text(from, &n->in[0].shape);
    if (out.rank < 0 || out.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "reshape: rank %d is not from 0 to %d", out.rank,
                         (int)KEEL_RANK_MAX);
    for (int d = 0; d < out.rank; d++) {
        if (out.dim[d] == -1 && open < 0)
            open = d;
        else if (out.dim[d] < 1 || out.dim[d] > count || (known *= out.dim[d]) > count)
            goto misfit; /* both factors are at most count, so the product does not overflow */
    }
    if (open >= 0) out.dim[open] = count / known;
    if (known * (open >= 0 ? out.dim[open] : 1) != count) goto misfit;
    return keel_infer_out(n, &out);
misfit:
    keel_shape_text(to, &a->shape);
    return keel_fail(
        KEEL_ESHAPE,
        "reshape: %s has %lld elements and cannot become %s; at most one dim may be -1 (None)",
        from, (long long)count, to);
}

#define REAL_FILE "ops/reshape.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_reshape_args *a = args;
    a->shape = KEEL_SHAPE(-1);
    const int rank = keel_case_ints(text, "shape", a->shape.dim, KEEL_RANK_MAX);
    if (rank) a->shape.rank = rank;
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    return keel_derive_reshape(d, d->grad, &d->node->in[0].shape, out);
}

const keel_op keel_op_reshape = {
    .name = "reshape",
    .args_size = sizeof(keel_reshape_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .view = true,
    .cases = (const keel_case[]){ { "4,5,3", NULL, NULL },
                                  { "12", NULL, "shape 2,-1,3" },
                                  { "2,6", NULL, "shape 3,4" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    if (c->out[0] != c->in[0])
        memcpy(c->out[0], c->in[0],
               (size_t)(c->rows * keel_row_count(&c->node->out[0])) * sizeof(REAL));
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    if (!dx || dx == dy) return;
    if (!c->in_adds[0])
        memcpy(dx, dy, (size_t)count * sizeof(REAL));
    else
        for (int64_t i = 0; i < count; i++) dx[i] += dy[i];
}
#endif
