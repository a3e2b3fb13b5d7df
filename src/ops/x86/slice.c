/* A slice of each dim of a row: runs of neighbours are copied, or their gradients added. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/args.h"

/* A row of the output, dim by dim: how many places, and how far apart they are in the input and in
 * the output. The last dim's places are runs of `run` neighbours. */
typedef struct cut {
    int rank;
    bool whole; /* every element of the input is in the output */
    int64_t run, begin, count[KEEL_RANK_MAX], in[KEEL_RANK_MAX], out[KEEL_RANK_MAX];
} cut;

static cut cut_of(const keel_node *n)
{
    const keel_slice_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    cut c = { .rank = in->rank, .run = 1 };
    int64_t stride = 1, step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        c.count[d] = a->count[d];
        c.in[d] = a->step[d] * stride;
        c.out[d] = step;
        c.begin += a->begin[d] * stride;
        stride *= in->dim[d];
        step *= a->count[d];
    }
    c.whole = stride == step;
    while (c.rank > 0 && (c.in[c.rank - 1] == c.out[c.rank - 1] || c.count[c.rank - 1] == 1))
        c.run *= c.count[--c.rank];
    return c;
}

/* A place that is taken twice has two gradients. */
static keel_status prepare(keel_prepare *p)
{
    const keel_slice_args *a = p->node->args;
    KEEL_TRY(vector_prepare(p));
    for (int d = 0; d < p->node->in[0].shape.rank; d++)
        if (a->step[d] == 0 && a->count[d] > 1) return KEEL_EUNSUP;
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/slice.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(slice, prepare);
#else
/* The last dim: n runs, or single elements, a step apart on either side. */
static void VALUE_(move_runs)(VALUE *to, int64_t to_step, const VALUE *from, int64_t from_step,
                              int64_t n, int64_t run, bool adds)
{
    if (run == 1 && !adds)
        for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];
    else
        for (int64_t i = 0; i < n; i++, to += to_step, from += from_step)
            VECTOR_MOVE(to, from, run, adds);
}

/* Dims d and on; back: from the places of the output to those of the input. */
static void VALUE_(move)(const cut *c, int d, VALUE *to, const VALUE *from, bool back, bool adds)
{
    const int64_t *in = c->in, *out = c->out;
    if (c->rank == 0) {
        VECTOR_MOVE(to, from, c->run, adds);
        return;
    }
    const int64_t to_step = back ? in[d] : out[d], from_step = back ? out[d] : in[d];
    if (d == c->rank - 1) {
        VALUE_(move_runs)(to, to_step, from, from_step, c->count[d], c->run, adds);
        return;
    }
    for (int64_t i = 0; i < c->count[d]; i++)
        VALUE_(move)(c, d + 1, to + i * to_step, from + i * from_step, back, adds);
}

static void VALUE_(forward)(const keel_call *c)
{
    const cut s = cut_of(c->node);
    const int64_t in = keel_row_count(&c->node->in[0]), out = keel_row_count(&c->node->out[0]);
    for (int64_t row = 0; row < c->rows; row++) VALUE_(move)
    (&s, 0, (VALUE *)c->out[0] + row * out, (const VALUE *)c->in[0] + row * in + s.begin, false,
     false);
}

static void VALUE_(backward)(const keel_call *c)
{
    const cut s = cut_of(c->node);
    const int64_t in = keel_row_count(&c->node->in[0]), out = keel_row_count(&c->node->out[0]);
    VALUE *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += in) {
        if (!c->in_adds[0] && !s.whole) memset(dx, 0, (size_t)in * sizeof *dx);
        VALUE_(move)
        (&s, 0, dx + s.begin, (const VALUE *)c->out_grad[0] + row * out, true, c->in_adds[0]);
    }
}
#endif
