/* Going through time in float32: what lstm, gru and simple_rnn share. A step is one product of all
 * rows of the call with recurrent_kernel, and then the cell's gates, a row at a time. Every sum
 * takes its terms in one order, so a row's bits do not depend on the rows beside it. The gradient
 * of recurrent_kernel is one product over all steps of all rows.
 *
 * Each gate has its own product where the state is dropped, because the factors differ. A GRU
 * without reset_after needs the reset gate before its last product: `reset` makes it, and in
 * backward takes the gradient of what it multiplies.
 *
 * A cell defines step_forward and step_backward below, and then the kernel by RECURRENT_KERNEL. */
#ifndef KEEL_OPS_X86_RECURRENT_H
#define KEEL_OPS_X86_RECURRENT_H
#include "base/memory.h"
#include "ops/recurrent.h"
#include "ops/x86/_blocks.h"
#include "ops/x86/_pointwise.h"

KEEL_USES_OP(hard_sigmoid);
KEEL_USES_OP(relu);
KEEL_USES_OP(sigmoid);
KEEL_USES_OP(tanh);

enum { STRETCH = 256 }; /* places of a weight gradient at a time: their gates stay in the cache */

/* The functions of gates that have vectors here, whose slopes are known from what they gave. */
typedef enum gate_kind {
    GATE_OTHER, /* for the reference */
    GATE_TANH,
    GATE_SIGMOID,
    GATE_LINEAR,
    GATE_RELU,
    GATE_HARD_SIGMOID
} gate_kind;

static gate_kind kind_of(const keel_gate *g)
{
    if (!g->op) return GATE_LINEAR;
    if (g->op == &keel_op_tanh) return GATE_TANH;
    if (g->op == &keel_op_sigmoid) return GATE_SIGMOID;
    if (g->op == &keel_op_hard_sigmoid) return GATE_HARD_SIGMOID;
    const keel_relu_args *a = (const keel_relu_args *)g->args;
    return g->op == &keel_op_relu && !a->capped && a->negative_slope == 0 && a->threshold == 0
               ? GATE_RELU
               : GATE_OTHER;
}

INLINE vf gate_value(gate_kind kind, vf x)
{
    const vf zero = vf_zero();
    switch (kind) {
    case GATE_TANH:
        return tangent(x);
    case GATE_SIGMOID:
        return logistic(x);
    case GATE_RELU:
        return vf_max(zero, x);
    case GATE_HARD_SIGMOID:
        return vf_min(vf_set(1), vf_max(zero, vf_div(vf_add(x, vf_set(3)), vf_set(6))));
    default:
        return x;
    }
}

INLINE vf gate_slope(gate_kind kind, vf y)
{
    const vf zero = vf_zero(), one = vf_set(1);
    switch (kind) {
    case GATE_TANH:
        return vf_sub(one, vf_mul(y, y));
    case GATE_SIGMOID:
        return vf_mul(y, vf_sub(one, y));
    case GATE_RELU:
        return vf_choose(vf_greater(y, zero), one, zero);
    case GATE_HARD_SIGMOID:
        return vf_choose(vf_greater(y, zero), vf_choose(vf_greater(one, y), vf_set(1.0f / 6), zero),
                         zero);
    default:
        return one;
    }
}

/* One step of one row. */
typedef struct step {
    const keel_call *call;
    gate_kind activation, recurrent;
    int64_t units;
    const float *z, *product;    /* [gates U] of the inputs; of the state before */
    const float *before, *carry; /* [U] state and carry before the step; carry NULL: 0 */
    const float *drop;           /* [U] factors of the state for the last gate; NULL: none */
    float *of;                   /* [parts U] what gates give; backward: then their gradients */
    float *h, *cell;             /* forward: [U] the new state and carry; backward: cell is given */
    float *dh, *dc;              /* [U] in: of the state and carry after the step; out: of the carry
                                    before it, and what of dh does not come by the product */
    const float *of_inner; /* [U] reset, backward: gradient of what the reset gate multiplies */
    float *ddrop;          /* [U] of `drop`, added to; NULL: nobody asks */
} step;

static inline void step_forward(const step *s);
static inline void step_backward(const step *s);
typedef void (*reset_run)(const step *s);

/* Runs `with` with constants for the usual functions, and with those of the step for others. */
#define BY_GATES(with, s)                                                                          \
    do {                                                                                           \
        if ((s)->activation == GATE_TANH && (s)->recurrent == GATE_SIGMOID)                        \
            with(s, GATE_TANH, GATE_SIGMOID);                                                      \
        else                                                                                       \
            with(s, (s)->activation, (s)->recurrent);                                              \
    } while (0)

typedef struct over {
    const keel_call *call;
    const keel_recurrent_args *args;
    keel_steps s;
    gate_kind activation, recurrent;
    int64_t u, width, all; /* of a state, of z, of what is saved of gates */
    int gates, head;       /* head: those that have a product with the state itself */
    const float *drop;     /* [rows, gates, U]; NULL: none */
} over;

static over over_of(const keel_call *c, const keel_cell *cell)
{
    const keel_steps s = keel_recurrent_steps(c->node, cell);
    const keel_recurrent_args *a = c->node->args;
    return (over){ .call = c,
                   .args = a,
                   .s = s,
                   .activation = kind_of(&a->activation),
                   .recurrent = kind_of(&a->recurrent),
                   .u = s.units,
                   .width = cell->gates * s.units,
                   .all = cell->parts * s.units,
                   .gates = cell->gates,
                   .head = cell->gates == 3 && !a->reset_after ? 2 : cell->gates,
                   .drop = s.drop >= 0 ? c->in[s.drop] : NULL };
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

static const float *drop_of(const over *o, int64_t row, int gate)
{
    return o->drop ? o->drop + (row * o->gates + gate) * o->u : NULL;
}

static void add_to(float *to, const float *from, int64_t n)
{
    VECTOR_EACH(
        i, n, m,
        vf_store_some(m, to + i, vf_add(vf_load_some(m, to + i), vf_load_some(m, from + i))));
}

static void product_of(float *to, const float *a, const float *b, int64_t n)
{
    VECTOR_EACH(i, n, m,
                vf_store_some(m, to + i, vf_mul(vf_load_some(m, a + i), vf_load_some(m, b + i))));
}

static void add_product(float *to, const float *a, const float *b, int64_t n)
{
    VECTOR_EACH(i, n, m,
                vf_store_some(m, to + i,
                              vf_fma(vf_load_some(m, a + i), vf_load_some(m, b + i),
                                     vf_load_some(m, to + i))));
}

/* Forward -------------------------------------------------------------------------------------- */

/* Scratch of forward, of all rows. */
typedef struct forward_room {
    float *h, *carry, *h_new, *carry_new; /* [rows, U] */
    float *dropped;                       /* [rows, U] the state for one gate */
    float *sums, *gates;                  /* [rows, width], [rows, parts U] where nobody saves */
    float *shown;                         /* [rows] is there an output yet? */
} forward_room;

static int64_t forward_floats(const keel_node *n, const keel_cell *cell, int64_t rows)
{
    const int64_t u = n->weight[0].shape.dim[0];
    return rows * ((cell->gates + 5 + cell->parts) * u + 1) + 64;
}

static forward_room forward_room_of(const over *o)
{
    const int64_t n = o->call->rows * o->u;
    float *at = o->call->scratch, *sums = at + 5 * n, *gates = sums + o->call->rows * o->width;
    return (forward_room){ .h = at,
                           .carry = at + n,
                           .h_new = at + 2 * n,
                           .carry_new = at + 3 * n,
                           .dropped = at + 4 * n,
                           .sums = sums,
                           .gates = gates,
                           .shown = gates + o->call->rows * o->all };
}

/* out [rows, gates [from, to) U] = a [rows, U] times their part of recurrent_kernel, from `start`
 * on. */
static void multiply_gates(const over *o, const float *a, int64_t a_row, int from, int to,
                           const float *start, float *out)
{
    const int64_t end = to * o->u;
    product p = {
        .a = a, .a_row = a_row, .a_step = 1, .w_row = o->width, .inner = o->u, .out_row = o->width
    };
    for (int64_t k = from * o->u; k < end; k += PANEL) {
        p.w = (const float *)o->call->weight[0] + k;
        p.out = out + k;
        p.start = start ? start + k : NULL;
        multiply(&p, o->call->rows, at_most(end - k, PANEL));
    }
}

static void multiply_state(const over *o, const forward_room *f, const float *start)
{
    if (!o->drop) {
        multiply_gates(o, f->h, o->u, 0, o->head, start, f->sums);
        return;
    }
    for (int g = 0; g < o->head; g++) {
        for (int64_t row = 0; row < o->call->rows; row++)
            product_of(f->dropped + row * o->u, f->h + row * o->u, drop_of(o, row, g), o->u);
        multiply_gates(o, f->dropped, o->u, g, g + 1, start, f->sums);
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

static step forward_step(const over *o, const forward_room *f, int64_t row, int64_t at)
{
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps), u = o->u;
    return (step){ .call = o->call,
                   .activation = o->activation,
                   .recurrent = o->recurrent,
                   .units = u,
                   .z = (const float *)o->call->in[0] + (row * o->s.steps + time) * o->width,
                   .product = f->sums + row * o->width,
                   .before = f->h + row * u,
                   .carry = f->carry + row * u,
                   .drop = drop_of(o, row, o->gates - 1),
                   .of = o->call->node->backward ? saved_at(o, KEEL_SAVED_GATES, row, at, o->all)
                                                 : f->gates + row * o->all,
                   .h = f->h_new + row * u,
                   .cell = f->carry_new + row * u };
}

/* The reset gate of each row, and the product of the state that it has reset. */
static void reset_states(const over *o, const forward_room *f, int64_t at, reset_run reset)
{
    const bool saves = o->call->node->backward;
    for (int64_t row = 0; row < o->call->rows; row++) {
        const step s = forward_step(o, f, row, at);
        reset(&s);
    }
    multiply_gates(o, forward_step(o, f, 0, at).of + o->width, saves ? o->s.steps * o->all : o->all,
                   o->head, o->gates, NULL, f->sums);
}

static void run_forward(const keel_call *c, const keel_cell *cell, reset_run reset)
{
    const over o = over_of(c, cell);
    const forward_room f = forward_room_of(&o);
    const int64_t u = o.u;
    const size_t bytes = (size_t)u * sizeof(float);
    const float *start = c->node->n_weight > 1 ? (const float *)c->weight[1] + o.width : NULL;
    begin_states(&o, cell, f.h, f.carry);
    memset(f.shown, 0, (size_t)c->rows * sizeof(float));
    for (int64_t at = 0; at < o.s.steps; at++) {
        multiply_state(&o, &f, start);
        if (o.head < o.gates) reset_states(&o, &f, at, reset);
        for (int64_t row = 0; row < c->rows; row++) {
            const bool counting = counts(&o, row, at);
            const step s = forward_step(&o, &f, row, at);
            float *h = f.h + row * u, *carry = f.carry + row * u;
            if (c->node->backward)
                memcpy(saved_at(&o, KEEL_SAVED_BEFORE, row, at, u), s.before, bytes);
            step_forward(&s);
            if (counting) {
                memcpy(h, s.h, bytes);
                if (cell->states > 1) memcpy(carry, s.cell, bytes);
                f.shown[row] = 1;
            }
            if (c->node->backward && cell->states > 1)
                memcpy(saved_at(&o, KEEL_SAVED_CELL, row, at, u), carry, bytes);
            if (!c->out[0] || (!o.args->sequences && at < o.s.steps - 1)) continue;
            float *y = (float *)c->out[0] + (o.args->sequences ? row * o.s.steps + at : row) * u;
            if (o.args->zeros ? counting : f.shown[row] > 0)
                memcpy(y, h, bytes);
            else
                memset(y, 0, bytes);
        }
    }
    for (int k = 0; o.args->states && k < cell->states; k++)
        if (c->out[1 + k]) memcpy(c->out[1 + k], k ? f.carry : f.h, (size_t)c->rows * bytes);
}

/* Backward ------------------------------------------------------------------------------------- */

/* Scratch of backward, [rows, U] each. */
typedef struct backward_room {
    float *dh, *dc;
    float *shown;   /* gradient of the output so far */
    float *product; /* of the gradients of one gate */
} backward_room;

static int64_t backward_floats(const keel_node *n, int64_t rows)
{
    return rows * 4 * n->weight[0].shape.dim[0] + 64;
}

/* out [rows, U] = the gradients of gates [from, to) of a step times recurrent_kernel^T, or +=. */
static void multiply_back(const over *o, int64_t at, int from, int to, bool adds, float *out)
{
    const float *turned = ((const keel_derived *)o->call->plan)->data;
    product p = { .a = saved_at(o, KEEL_SAVED_GATES, 0, at, o->all) + from * o->u,
                  .a_row = o->s.steps * o->all,
                  .a_step = 1,
                  .w_row = o->u,
                  .inner = (to - from) * o->u,
                  .out_row = o->u,
                  .adds = adds };
    for (int64_t k = 0; k < o->u; k += PANEL) {
        p.w = turned + from * o->u * o->u + k;
        p.out = out + k;
        multiply(&p, o->call->rows, at_most(o->u - k, PANEL));
    }
}

/* The gradient of the factors of the state for a gate; NULL: nobody asks. */
static float *ddrop_of(const over *o, int64_t row, int gate)
{
    float *all = o->drop ? o->call->in_grad[o->s.drop] : NULL;
    return all ? all + (row * o->gates + gate) * o->u : NULL;
}

/* dh += what comes by the products of the state. */
static void add_products(const over *o, const backward_room *b, int64_t at)
{
    if (!o->drop) {
        multiply_back(o, at, 0, o->head, true, b->dh);
        return;
    }
    for (int g = 0; g < o->head; g++) {
        multiply_back(o, at, g, g + 1, false, b->product);
        for (int64_t row = 0; row < o->call->rows; row++) {
            const float *one = b->product + row * o->u;
            float *ddrop = ddrop_of(o, row, g);
            add_product(b->dh + row * o->u, one, drop_of(o, row, g), o->u);
            if (ddrop) add_product(ddrop, one, saved_at(o, KEEL_SAVED_BEFORE, row, at, o->u), o->u);
        }
    }
}

/* dx of a step. With reset_after the gradient of its last part lies behind those of the gates. */
static void give_inputs(const over *o, int64_t row, int64_t at)
{
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps), u = o->u;
    const float *of = saved_at(o, KEEL_SAVED_GATES, row, at, o->all);
    const int64_t head = o->all > o->width && o->head == o->gates ? o->width - u : o->width;
    float *dx = (float *)o->call->in_grad[0] + (row * o->s.steps + time) * o->width;
    VECTOR_MOVE(dx, of, head, o->call->in_adds[0]);
    if (head < o->width) VECTOR_MOVE(dx + head, of + o->width, u, o->call->in_adds[0]);
}

static step backward_step(const over *o, const keel_cell *cell, const backward_room *b, int64_t row,
                          int64_t at)
{
    const int64_t u = o->u;
    step s = { .call = o->call,
               .activation = o->activation,
               .recurrent = o->recurrent,
               .units = u,
               .before = saved_at(o, KEEL_SAVED_BEFORE, row, at, u),
               .drop = drop_of(o, row, o->gates - 1),
               .of = saved_at(o, KEEL_SAVED_GATES, row, at, o->all),
               .dh = b->dh + row * u,
               .dc = b->dc + row * u,
               .of_inner = b->product + row * u,
               .ddrop = ddrop_of(o, row, o->gates - 1) };
    if (cell->states == 1) return s;
    s.cell = saved_at(o, KEEL_SAVED_CELL, row, at, u);
    if (at > 0)
        s.carry = saved_at(o, KEEL_SAVED_CELL, row, at - 1, u);
    else if (o->s.state >= 0)
        s.carry = (const float *)o->call->in[o->s.state + 1] + row * u;
    return s;
}

static void begin_gradients(const over *o, const keel_cell *cell, const backward_room *b)
{
    const keel_call *c = o->call;
    const size_t bytes = (size_t)(c->rows * o->u) * sizeof(float);
    memset(b->dh, 0, 3 * bytes);
    for (int k = 0; o->args->states && k < cell->states; k++)
        if (c->out_grad[1 + k]) memcpy(k ? b->dc : b->dh, c->out_grad[1 + k], bytes);
    if (o->drop && c->in_grad[o->s.drop] && !c->in_adds[o->s.drop])
        memset(c->in_grad[o->s.drop], 0, (size_t)(c->rows * o->width) * sizeof(float));
}

static void run_backward(const keel_call *c, const keel_cell *cell, reset_run reset)
{
    const over o = over_of(c, cell);
    const int64_t u = o.u, n = c->rows * u;
    float *room = c->scratch;
    const backward_room b = { room, room + n, room + 2 * n, room + 3 * n };
    begin_gradients(&o, cell, &b);
    for (int64_t at = o.s.steps - 1; at >= 0; at--) {
        const bool gives = c->out_grad[0] && (o.args->sequences || at == o.s.steps - 1);
        for (int64_t row = 0; row < c->rows; row++) {
            const bool counting = counts(&o, row, at);
            const step s = backward_step(&o, cell, &b, row, at);
            float *shown = b.shown + row * u;
            if (gives)
                add_to(shown,
                       (const float *)c->out_grad[0] +
                           (o.args->sequences ? row * o.s.steps + at : row) * u,
                       u);
            if (counting) {
                add_to(s.dh, shown, u);
                step_backward(&s);
            } else {
                memset(s.of, 0, (size_t)o.all * sizeof(float));
            }
            if (counting || o.args->zeros) memset(shown, 0, (size_t)u * sizeof(float));
        }
        if (o.head < o.gates) multiply_back(&o, at, o.head, o.gates, false, b.product);
        for (int64_t row = 0; row < c->rows; row++) {
            const step s = backward_step(&o, cell, &b, row, at);
            if (o.head < o.gates && counts(&o, row, at)) reset(&s);
            if (c->in_grad[0]) give_inputs(&o, row, at);
        }
        add_products(&o, &b, at);
    }
    for (int k = 0; o.s.state >= 0 && k < cell->states; k++)
        if (c->in_grad[o.s.state + k])
            VECTOR_MOVE((float *)c->in_grad[o.s.state + k], (k ? b.dc : b.dh), n,
                        c->in_adds[o.s.state + k]);
    if (o.s.mask >= 0 && c->in_grad[o.s.mask] && !c->in_adds[o.s.mask])
        memset(c->in_grad[o.s.mask], 0, (size_t)(c->rows * o.s.steps) * sizeof(float));
}

/* Weights -------------------------------------------------------------------------------------- */

/* What gate `gate` multiplies at places [from, from + n): p->a, and how far places lie apart. With
 * factors it is made in `room`. */
static void left_of(const over *o, int gate, int64_t from, int64_t n, float *room, product *p)
{
    p->a_step = o->u;
    p->a = (const float *)o->call->saved[KEEL_SAVED_BEFORE] + from * o->u;
    if (gate >= o->head) { /* the state that was reset, and dropped before */
        p->a_step = o->all;
        p->a = (const float *)o->call->saved[KEEL_SAVED_GATES] + from * o->all + o->width;
    } else if (o->drop) {
        for (int64_t i = 0; i < n; i++)
            product_of(room + i * o->u, p->a + i * o->u, drop_of(o, (from + i) / o->s.steps, gate),
                       o->u);
        p->a = room;
    }
}

/* Gates that multiply the same are one product. */
static int gates_alike(const over *o, int gate)
{
    if (o->drop || gate >= o->head) return 1;
    return o->head - gate;
}

static void run_weights(const keel_call *c, const keel_cell *cell)
{
    const over o = over_of(c, cell);
    const int64_t places = c->rows * o.s.steps;
    float *dw = c->weight_adds ? c->scratch : c->weight_grad[0];
    float *room = (float *)c->scratch + (c->weight_adds ? o.u * o.width : 0);
    if (!c->weight_grad[0]) return;
    product p = { .a_row = 1, .w_row = o.all, .out_row = o.width };
    for (int64_t from = 0; from < places || from == 0; from += STRETCH) {
        p.resumes = from > 0;
        p.inner = at_most(places - from, STRETCH);
        for (int g = 0, next; g < o.gates; g = next) {
            next = g + gates_alike(&o, g);
            left_of(&o, g, from, p.inner, room, &p);
            for (int64_t k = g * o.u; k < next * o.u; k += PANEL) {
                p.w = (const float *)c->saved[KEEL_SAVED_GATES] + from * o.all + k;
                p.out = dw + k;
                multiply(&p, o.u, at_most(next * o.u - k, PANEL));
            }
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

/* Functions of gates without vectors are for the reference. */
static keel_status prepare_recurrent(keel_prepare *p, const keel_cell *cell)
{
    const keel_recurrent_args *a = p->node->args;
    const int64_t *dim = p->node->weight[0].shape.dim;
    int64_t floats = 0;
    KEEL_TRY(vector_prepare(p));
    if (kind_of(&a->activation) == GATE_OTHER || kind_of(&a->recurrent) == GATE_OTHER)
        return KEEL_EUNSUP;
    if (p->pass == KEEL_FORWARD) floats = forward_floats(p->node, cell, p->rows);
    if (p->pass == KEEL_BACKWARD) floats = backward_floats(p->node, p->rows);
    if (p->pass == KEEL_WEIGHTS)
        floats = (p->weight_adds ? dim[0] * dim[1] : 0) + (a->dropped ? STRETCH : 8) * dim[0];
    p->scratch = floats * (int64_t)sizeof(float);
    return p->pass == KEEL_BACKWARD ? derive_turned(p) : KEEL_OK;
}

/* resets, resets_back: for a gate before the last product; NULL: there is none. */
#define RECURRENT_KERNEL(stem, resets, resets_back)                                                \
    static keel_status prepare(keel_prepare *p)                                                    \
    {                                                                                              \
        return prepare_recurrent(p, &keel_cell_##stem);                                            \
    }                                                                                              \
    static void forward(const keel_call *c)                                                        \
    {                                                                                              \
        run_forward(c, &keel_cell_##stem, resets);                                                 \
    }                                                                                              \
    static void backward(const keel_call *c)                                                       \
    {                                                                                              \
        run_backward(c, &keel_cell_##stem, resets_back);                                           \
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
