/* A border of one number around the places of a row. Keras: ops.pad. */
#ifndef REAL
#include "ops/pad.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_pad_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    for (int d = 0; d < out.rank; d++)
        if (a->before[d] < 0 || a->behind[d] < 0 ||
            __builtin_add_overflow(out.dim[d], a->before[d], &out.dim[d]) ||
            __builtin_add_overflow(out.dim[d], a->behind[d], &out.dim[d]))
            return keel_fail(KEEL_ESHAPE, "pad: dim %d cannot be padded by %lld and %lld", d,
                             (long long)a->before[d], (long long)a->behind[d]);
    return keel_infer_out(n, &out);
}

/* The element of the output to which element i of the input goes. */
static int64_t goes_to(const keel_node *n, int64_t i)
{
    const keel_pad_args *a = n->args;
    const keel_shape *in = &n->in[0].shape, *out = &n->out[0].shape;
    int64_t index = 0, stride = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        index += (i % in->dim[d] + a->before[d]) * stride;
        stride *= out->dim[d];
        i /= in->dim[d];
    }
    return index;
}

#define REAL_FILE "ops/pad.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_pad_args *a = args;
    keel_case_ints(text, "before", a->before, KEEL_RANK_MAX);
    keel_case_ints(text, "behind", a->behind, KEEL_RANK_MAX);
    keel_case_number(text, "value", &a->value);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_pad_args *a = d->node->args;
    keel_slice_args within = keel_slice_all(&d->node->in[0].shape);
    for (int i = 0; i < d->node->in[0].shape.rank; i++) within.begin[i] = a->before[i];
    return keel_derive_one(d, &keel_op_slice, &within, d->grad, out);
}

const keel_op keel_op_pad = {
    .name = "pad",
    .args_size = sizeof(keel_pad_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "6", NULL, "before 1 behind 2" },
                                  { "2,3,4", NULL, "before 0,1,0 behind 2,0,1 value 0.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n_in = keel_row_count(&c->node->in[0]), n_out = keel_row_count(&c->node->out[0]);
    const REAL value = (REAL)((const keel_pad_args *)c->node->args)->value;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += n_in, y += n_out) {
        for (int64_t i = 0; i < n_out; i++) y[i] = value;
        for (int64_t i = 0; i < n_in; i++) y[goes_to(c->node, i)] = x[i];
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n_in = keel_row_count(&c->node->in[0]), n_out = keel_row_count(&c->node->out[0]);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += n_in, dy += n_out)
        for (int64_t i = 0; i < n_in; i++) {
            const REAL g = dy[goes_to(c->node, i)];
            dx[i] = c->in_adds[0] ? dx[i] + g : g;
        }
}
#endif
