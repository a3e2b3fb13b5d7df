/* Going through time in float32: what lstm, gru and simple_rnn share. A step is one product of all
 * rows of the call with recurrent_kernel, and then the cell's gates, a row at a time. Every sum
 * takes its terms in one order, so a row's bits do not depend on the rows beside it. The gradient
 * of recurrent_kernel is one product over all steps of all rows.
 *
 * A cell defines step_forward and step_backward below, and then the kernel by RECURRENT_KERNEL. */
#ifndef KEEL_OPS_X86_RECURRENT_H
#define KEEL_OPS_X86_RECURRENT_H
#include "base/memory.h"
#include "ops/recurrent.h"
#include "ops/x86/_blocks.h"
#include "ops/x86/_pointwise.h"

KEEL_USES_OP(sigmoid);
KEEL_USES_OP(tanh);

enum { STRETCH = 256 }; /* places of a weight gradient at a time: their gates stay in the cache */

/* One step of one row. */
typedef struct step {
    const keel_call *call;
    int64_t units;
    const float *z, *product;    /* [gates U] of the inputs; of the state before */
    const float *before, *carry; /* [U] state and carry before the step; carry NULL: 0 */
    float *of;                   /* [parts U] what gates give; backward: then their gradients */
    float *h, *cell;             /* forward: [U] the new state and carry; backward: cell is given */
    float *dh, *dc;              /* [U] in: of the state and carry after the step; out: of the carry
                                    before it, and what of dh does not come by the product */
} step;

static inline void step_forward(const step *s);
static inline void step_backward(const step *s);

typedef struct over {
    const keel_call *call;
    const keel_recurrent_args *args;
    keel_steps s;
    int64_t u, width, all; /* of a state, of z, of what is saved of gates */
} over;

static over over_of(const keel_call *c, const keel_cell *cell)
{
    const keel_steps s = keel_recurrent_steps(c->node, cell);
    return (over){ c, c->node->args, s, s.units, cell->gates * s.units, cell->parts * s.units };
}

static bool counts(const over *o, int64_t row, int64_t at)
{
    if (o->s.mask < 0) return true;
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps);
    return ((const float *)o->call->in[o->s.mask])[row * o->s.steps + time] > 0.5f;
}

static float *saved_at(const over *o, int k, int64_t row, int64_t at, int64_t n)
{
    return (float *)o->call->saved[k] + (row * o->s.steps + at) * n;
}

/* Forward -------------------------------------------------------------------------------------- */

static int64_t forward_floats(const keel_node *n, const keel_cell *cell, int64_t rows)
{
    const int64_t u = n->weight[0].shape.dim[0];
    /* products, state and new state, carry and new carry, gates where nobody saves them, flags */
    return rows * ((cell->gates + 4 + cell->parts) * u + 1) + 64;
}

/* out [rows, width] = h [rows, U] recurrent_kernel, from `start` [width] on. */
static void multiply_state(const over *o, const float *h, const float *start, float *out)
{
    product p = {
        .a = h, .a_row = o->u, .a_step = 1, .w_row = o->width, .inner = o->u, .out_row = o->width
    };
    for (int64_t k = 0; k < o->width; k += PANEL) {
        p.w = (const float *)o->call->weight[0] + k;
        p.out = out + k;
        p.start = start ? start + k : NULL;
        multiply(&p, o->call->rows, at_most(o->width - k, PANEL));
    }
}

static void begin_states(const over *o, const keel_cell *cell, float *h, float *carry)
{
    const size_t bytes = (size_t)(o->call->rows * o->u) * sizeof(float);
    if (o->s.state >= 0)
        memcpy(h, o->call->in[o->s.state], bytes);
    else
        memset(h, 0, bytes);
    if (o->s.state >= 0 && cell->states > 1)
        memcpy(carry, o->call->in[o->s.state + 1], bytes);
    else
        memset(carry, 0, bytes);
}

static void run_forward(const keel_call *c, const keel_cell *cell)
{
    const over o = over_of(c, cell);
    const int64_t u = o.u, n = c->rows * u;
    const size_t bytes = (size_t)u * sizeof(float);
    const float *start = c->node->n_weight > 1 ? (const float *)c->weight[1] + o.width : NULL;
    float *h = c->scratch, *carry = h + n, *h_new = h + 2 * n, *carry_new = h + 3 * n;
    float *sums = h + 4 * n, *gates = sums + c->rows * o.width;
    float *shown = gates + c->rows * o.all; /* of each row: is there an output yet? */
    begin_states(&o, cell, h, carry);
    memset(shown, 0, (size_t)c->rows * sizeof(float));
    for (int64_t at = 0; at < o.s.steps; at++) {
        const int64_t time = keel_step_time(c->node, at, o.s.steps);
        multiply_state(&o, h, start, sums);
        for (int64_t row = 0; row < c->rows; row++) {
            const bool counting = counts(&o, row, at);
            step s = { .call = c,
                       .units = u,
                       .z = (const float *)c->in[0] + (row * o.s.steps + time) * o.width,
                       .product = sums + row * o.width,
                       .before = h + row * u,
                       .carry = carry + row * u,
                       .of = gates + row * o.all,
                       .h = h_new + row * u,
                       .cell = carry_new + row * u };
            if (c->node->backward) {
                s.of = saved_at(&o, KEEL_SAVED_GATES, row, at, o.all);
                memcpy(saved_at(&o, KEEL_SAVED_BEFORE, row, at, u), s.before, bytes);
            }
            step_forward(&s);
            if (counting) {
                memcpy(h + row * u, s.h, bytes);
                if (cell->states > 1) memcpy(carry + row * u, s.cell, bytes);
                shown[row] = 1;
            }
            if (c->node->backward && cell->states > 1)
                memcpy(saved_at(&o, KEEL_SAVED_CELL, row, at, u), carry + row * u, bytes);
            if (!c->out[0] || (!o.args->sequences && at < o.s.steps - 1)) continue;
            float *y = (float *)c->out[0] + (o.args->sequences ? row * o.s.steps + at : row) * u;
            if (o.args->zeros ? counting : shown[row] > 0)
                memcpy(y, h + row * u, bytes);
            else
                memset(y, 0, bytes);
        }
    }
    for (int k = 0; o.args->states && k < cell->states; k++)
        if (c->out[1 + k]) memcpy(c->out[1 + k], k ? carry : h, (size_t)c->rows * bytes);
}

/* Backward ------------------------------------------------------------------------------------- */

static int64_t backward_floats(const keel_node *n, int64_t rows)
{
    return rows * 3 * n->weight[0].shape.dim[0] + 64;
}

/* dh [rows, U] += d [rows, width] recurrent_kernel^T; d are the gates' gradients of a step. */
static void multiply_back(const over *o, const float *turned, int64_t at, float *dh)
{
    product p = { .a = saved_at(o, KEEL_SAVED_GATES, 0, at, o->all),
                  .a_row = o->s.steps * o->all,
                  .a_step = 1,
                  .w_row = o->u,
                  .inner = o->width,
                  .out_row = o->u,
                  .adds = true };
    for (int64_t k = 0; k < o->u; k += PANEL) {
        p.w = turned + k;
        p.out = dh + k;
        multiply(&p, o->call->rows, at_most(o->u - k, PANEL));
    }
}

/* dx of a step, of which the last part may lie apart. */
static void give_inputs(const over *o, const float *of, int64_t row, int64_t at)
{
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps), u = o->u;
    const int64_t head = o->all > o->width ? o->width - u : o->width;
    if (!o->call->in_grad[0]) return;
    float *dx = (float *)o->call->in_grad[0] + (row * o->s.steps + time) * o->width;
    VECTOR_MOVE(dx, of, head, o->call->in_adds[0]);
    if (head < o->width) VECTOR_MOVE(dx + head, of + o->width, u, o->call->in_adds[0]);
}

static void add_to(float *to, const float *from, int64_t n)
{
    VECTOR_EACH(
        i, n, m,
        vf_store_some(m, to + i, vf_add(vf_load_some(m, to + i), vf_load_some(m, from + i))));
}

static void run_backward(const keel_call *c, const keel_cell *cell)
{
    const over o = over_of(c, cell);
    const int64_t u = o.u, n = c->rows * u;
    const size_t bytes = (size_t)u * sizeof(float);
    float *dh = c->scratch, *dc = dh + n, *shown = dh + 2 * n; /* shown: of the output so far */
    memset(dh, 0, 3 * (size_t)c->rows * bytes);
    for (int k = 0; o.args->states && k < cell->states; k++)
        if (c->out_grad[1 + k]) memcpy(k ? dc : dh, c->out_grad[1 + k], (size_t)c->rows * bytes);
    for (int64_t at = o.s.steps - 1; at >= 0; at--) {
        const bool gives = c->out_grad[0] && (o.args->sequences || at == o.s.steps - 1);
        for (int64_t row = 0; row < c->rows; row++) {
            const bool counting = counts(&o, row, at);
            step s = { .call = c,
                       .units = u,
                       .before = saved_at(&o, KEEL_SAVED_BEFORE, row, at, u),
                       .of = saved_at(&o, KEEL_SAVED_GATES, row, at, o.all),
                       .dh = dh + row * u,
                       .dc = dc + row * u };
            if (cell->states > 1) {
                s.cell = saved_at(&o, KEEL_SAVED_CELL, row, at, u);
                if (at > 0)
                    s.carry = saved_at(&o, KEEL_SAVED_CELL, row, at - 1, u);
                else if (o.s.state >= 0)
                    s.carry = (const float *)c->in[o.s.state + 1] + row * u;
            }
            if (gives)
                add_to(shown + row * u,
                       (const float *)c->out_grad[0] +
                           (o.args->sequences ? row * o.s.steps + at : row) * u,
                       u);
            if (counting) {
                add_to(s.dh, shown + row * u, u);
                step_backward(&s);
            } else {
                memset(s.of, 0, (size_t)o.all * sizeof(float));
            }
            if (counting || o.args->zeros) memset(shown + row * u, 0, bytes);
            give_inputs(&o, s.of, row, at);
        }
        multiply_back(&o, ((const keel_derived *)c->plan)->data, at, dh);
    }
    for (int k = 0; o.s.state >= 0 && k < cell->states; k++)
        if (c->in_grad[o.s.state + k])
            VECTOR_MOVE((float *)c->in_grad[o.s.state + k], (k ? dc : dh), n,
                        c->in_adds[o.s.state + k]);
    if (o.s.mask >= 0 && c->in_grad[o.s.mask] && !c->in_adds[o.s.mask])
        memset(c->in_grad[o.s.mask], 0, (size_t)(c->rows * o.s.steps) * sizeof(float));
}

/* Weights -------------------------------------------------------------------------------------- */

static void run_weights(const keel_call *c, const keel_cell *cell)
{
    const over o = over_of(c, cell);
    const int64_t places = c->rows * o.s.steps;
    float *dw = c->weight_adds ? c->scratch : c->weight_grad[0];
    if (!c->weight_grad[0]) return;
    product p = { .a_row = 1, .a_step = o.u, .w_row = o.all, .out_row = o.width };
    for (int64_t from = 0; from < places || from == 0; from += STRETCH) {
        p.resumes = from > 0;
        p.inner = at_most(places - from, STRETCH);
        p.a = (const float *)c->saved[KEEL_SAVED_BEFORE] + from * o.u;
        for (int64_t k = 0; k < o.width; k += PANEL) {
            p.w = (const float *)c->saved[KEEL_SAVED_GATES] + from * o.all + k;
            p.out = dw + k;
            multiply(&p, o.u, at_most(o.width - k, PANEL));
        }
    }
    if (c->weight_adds) add_to(c->weight_grad[0], dw, o.u * o.width);
}

/* Prepare -------------------------------------------------------------------------------------- */

/* recurrent_kernel [U, width] as [width, U]. */
static void turn(const keel_derived *d, const void *weight)
{
    const int64_t *dim = d->plan, u = dim[0], width = dim[1];
    const float *w = weight;
    float *to = d->data;
    for (int64_t i = 0; i < u; i++)
        for (int64_t j = 0; j < width; j++) to[j * u + i] = w[i * width + j];
}

static keel_status derive_turned(keel_prepare *p)
{
    const int64_t *dim = p->node->weight[0].shape.dim;
    const keel_derived *got;
    int64_t *plan = keel_calloc(2, sizeof *plan);
    if (!plan) return KEEL_ENOMEM;
    memcpy(plan, dim, 2 * sizeof *plan);
    keel_derived want = { .bytes = (size_t)(dim[0] * dim[1]) * sizeof(float),
                          .weight = 0,
                          .key = 0x7265637572723030u,
                          .refresh = turn,
                          .release = keel_free,
                          .plan = plan };
    KEEL_TRY(p->derive(p->context, &want, &got));
    p->plan = (void *)got;
    return KEEL_OK;
}

/* tanh, and sigmoid where there are gates; a dropped state and other functions are for the
 * reference. */
static keel_status prepare_recurrent(keel_prepare *p, const keel_cell *cell)
{
    const keel_recurrent_args *a = p->node->args;
    const int64_t *dim = p->node->weight[0].shape.dim;
    int64_t floats = 0;
    KEEL_TRY(vector_prepare(p));
    if (a->dropped || a->activation.op != &keel_op_tanh ||
        (cell->gates > 1 && a->recurrent.op != &keel_op_sigmoid) ||
        (cell->gates == 3 && !a->reset_after))
        return KEEL_EUNSUP;
    if (p->pass == KEEL_FORWARD) floats = forward_floats(p->node, cell, p->rows);
    if (p->pass == KEEL_BACKWARD) floats = backward_floats(p->node, p->rows);
    if (p->pass == KEEL_WEIGHTS) floats = (p->weight_adds ? dim[0] * dim[1] : 0) + 8 * dim[0];
    p->scratch = floats * (int64_t)sizeof(float);
    return p->pass == KEEL_BACKWARD ? derive_turned(p) : KEEL_OK;
}

#define RECURRENT_KERNEL(stem)                                                                     \
    static keel_status prepare(keel_prepare *p)                                                    \
    {                                                                                              \
        return prepare_recurrent(p, &keel_cell_##stem);                                            \
    }                                                                                              \
    static void forward(const keel_call *c)                                                        \
    {                                                                                              \
        run_forward(c, &keel_cell_##stem);                                                         \
    }                                                                                              \
    static void backward(const keel_call *c)                                                       \
    {                                                                                              \
        run_backward(c, &keel_cell_##stem);                                                        \
    }                                                                                              \
    KEEL_USES_OP(stem);                                                                            \
    const keel_kernel VECTOR_KERNEL(stem) = {                                                      \
        .op = &keel_op_##stem,                                                                     \
        .name = VECTOR_NAME,                                                                       \
        .priority = VECTOR_PRIORITY(VECTOR),                                                       \
        .needs = VECTOR_LEVEL,                                                                     \
        .prepare = prepare,                                                                        \
        .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights }, \
    }

#endif
