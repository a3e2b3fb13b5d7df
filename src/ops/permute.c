/* The dims of a row in another order. Keras: ops.transpose, Permute. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_permute_args *a = n->args;
    bool seen[KEEL_RANK_MAX] = { false };
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    for (int d = 0; d < out.rank; d++) {
        if (a->from[d] < 0 || a->from[d] >= out.rank || seen[a->from[d]])
            return keel_fail(KEEL_EARG, "permute: the dims are no order of %d dims", out.rank);
        seen[a->from[d]] = true;
        out.dim[d] = n->in[0].shape.dim[a->from[d]];
    }
    return keel_infer_out(n, &out);
}

/* Two dims that change places: columns of the input are places of the output. */
static keel_going goes(const keel_node *n, int k __attribute__((unused)))
{
    const keel_permute_args *a = n->args;
    return n->in[0].shape.rank == 2 && a->from[0] == 1 ? KEEL_GOES_WHOLE : KEEL_GOES_NOT;
}

/* The elements of a row of the output that a call has. */
typedef struct some {
    int64_t first, end;
} some;

static some some_of(const keel_call *c)
{
    const keel_shape *out = &c->node->out[0].shape;
    if (c->columns.count == 0) return (some){ 0, keel_shape_count(out) };
    return (some){ c->columns.first * out->dim[1],
                   (c->columns.first + c->columns.count) * out->dim[1] };
}

/* The element of the input that becomes element i of the output. */
static int64_t comes_from(const keel_node *n, int64_t i)
{
    const keel_permute_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    int64_t at[KEEL_RANK_MAX] = { 0 }, index = 0;
    for (int d = in->rank - 1; d >= 0; d--) {
        at[a->from[d]] = i % in->dim[a->from[d]];
        i /= in->dim[a->from[d]];
    }
    for (int d = 0; d < in->rank; d++) index = index * in->dim[d] + at[d];
    return index;
}

/* The last dim of the output: its length, and the distance of its elements in the input. */
typedef struct line {
    int64_t length, step;
} line;

static line line_of(const keel_node *n)
{
    const keel_permute_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    line l = { 1, 1 };
    if (in->rank == 0) return l;
    const int64_t from = a->from[in->rank - 1];
    for (int64_t d = from + 1; d < in->rank; d++) l.step *= in->dim[d];
    l.length = in->dim[from];
    return l;
}

#define REAL_FILE "ops/permute.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_permute_args *a = args;
    keel_case_ints(text, "from", a->from, KEEL_RANK_MAX);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_permute_args *a = d->node->args;
    keel_permute_args back = { 0 };
    for (int i = 0; i < d->node->in[0].shape.rank; i++) back.from[a->from[i]] = i;
    return keel_derive_one(d, &keel_op_permute, &back, d->grad, out);
}

const keel_op keel_op_permute = {
    .name = "permute",
    .args_size = sizeof(keel_permute_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .goes = goes,
    .columns = true,
    .cases = (const keel_case[]){ { "4,5", NULL, "from 1,0" },
                                  { "2,3,4", NULL, "from 2,0,1" },
                                  { "9,10", NULL, "from 1,0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = keel_row_count(&c->node->out[0]);
    const line l = line_of(c->node);
    const some part = some_of(c);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += count, y += count)
        for (int64_t i = part.first; i < part.end; i += l.length) {
            const REAL *from = x + comes_from(c->node, i);
            for (int64_t k = 0; k < l.length; k++) y[i + k] = from[k * l.step];
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = keel_row_count(&c->node->out[0]);
    const line l = line_of(c->node);
    const some part = some_of(c);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += count, dy += count)
        for (int64_t i = part.first; i < part.end; i += l.length) {
            REAL *to = dx + comes_from(c->node, i);
            for (int64_t k = 0; k < l.length; k++)
                to[k * l.step] = c->in_adds[0] ? to[k * l.step] + dy[i + k] : dy[i + k];
        }
}
#endif
