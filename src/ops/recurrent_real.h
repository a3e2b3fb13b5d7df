/* The loops over rows and steps of the ops that go through time, for a cell that knows one step.
 *
 * Included where REAL is defined (see ops/real.h), hence without a guard. A row goes by itself. */
#include "ops/sums.h"

/* One step of one row. */
typedef struct REAL_(step) {
    const keel_call *c;
    keel_steps s;
    int gates;
    const REAL *before, *carry; /* [U] state and carry before the step */
    const REAL *drop;           /* [gates, U] factors of the state; NULL: none */
    REAL *of, *pre;             /* [parts U] what gates give, [gates U] what they are given */
    REAL *h, *cell;             /* [U] state and carry after it */
    REAL *dh, *dc;              /* [U] gradients, of after the step, and then of before it */
    const REAL *dz;             /* [gates U] backward: gradient of z, set by the cell */
    REAL *ddrop;                /* [gates, U] added to; NULL: nobody asks */
    REAL *room;                 /* [KEEL_STEP_ROOM U] */
} REAL_(step);

/* Run a gate's function as the op does: y = f(x), or dx from dy. */
static inline void REAL_(of_gate)(const REAL_(step) * t, const keel_gate *g, const REAL *x, REAL *y,
                                  const REAL *dy, REAL *dx)
{
    const keel_spec spec = { t->c->node->real, KEEL_SHAPE(t->s.units) };
    keel_spec out = spec;
    keel_node n = { .op = g->op,
                    .args = g->args,
                    .layer = t->c->node->layer,
                    .training = t->c->node->training,
                    .backward = dx != NULL,
                    .real = spec.dtype,
                    .held = spec.dtype,
                    .n_in = 1,
                    .in = &spec,
                    .n_out = 1,
                    .out = &out };
    const void *in[] = { x }, *out_grad[] = { dy };
    void *to[] = { y }, *in_grad[] = { dx };
    const bool adds = false;
    const keel_call call = { .node = &n,
                             .step = t->c->step,
                             .rows = 1,
                             .row = t->c->row,
                             .in = in,
                             .out = to,
                             .out_grad = out_grad,
                             .in_grad = in_grad,
                             .in_adds = &adds };
    const size_t bytes = (size_t)t->s.units * sizeof(REAL);
    if (!g->op)
        memcpy(dx ? dx : y, dx ? dy : x, bytes);
    else if (dx)
        g->op->backward[REAL_IS_DOUBLE](&call);
    else
        g->op->forward[REAL_IS_DOUBLE](&call);
}

static inline void REAL_(gate)(const REAL_(step) * t, const keel_gate *g, const REAL *x, REAL *y)
{
    REAL_(of_gate)(t, g, x, y, NULL, NULL);
}

/* d becomes the gradient of what gate k was given; it was that of what the gate gave. */
static inline void REAL_(slope)(const REAL_(step) * t, const keel_gate *g, const REAL *x, REAL *y,
                                REAL *d)
{
    REAL *dx = t->room + (KEEL_STEP_ROOM - 1) * t->s.units;
    REAL_(of_gate)(t, g, x, y, d, dx);
    memcpy(d, dx, (size_t)t->s.units * sizeof(REAL));
}

/* to[k] += h[u] recurrent_kernel[u, k] for gates [from, end); h as the dropout leaves it. */
static inline void REAL_(product)(const REAL_(step) * t, const REAL *h, int from, int end, REAL *to)
{
    const int64_t u = t->s.units, width = t->gates * u;
    const REAL *w = t->c->weight[0];
    for (int g = from; g < end; g++)
        for (int64_t k0 = g * u; k0 < (g + 1) * u; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk =
                (g + 1) * u - k0 < KEEL_SUMS_BLOCK ? (g + 1) * u - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            REAL_(add_scaled)(acc, 1, to + k0, nk);
            for (int64_t j = 0; j < u; j++) REAL_(add_scaled)
            (acc, t->drop ? h[j] * t->drop[g * u + j] : h[j], w + j * width + k0, nk);
            REAL_(store)(to + k0, acc, nk, false);
        }
}

/* dh[u] += what the gradients d of gates [from, end) are with respect to h. */
static inline void REAL_(product_back)(const REAL_(step) * t, const REAL *h, const REAL *d,
                                       int from, int end, REAL *dh)
{
    const int64_t u = t->s.units, width = t->gates * u;
    const REAL *w = t->c->weight[0];
    for (int64_t j = 0; j < u; j++) {
        double sum = 0;
        for (int g = from; g < end; g++) {
            const double one = REAL_(dot)(d + g * u, w + j * width + g * u, u);
            if (t->ddrop) t->ddrop[g * u + j] += (REAL)(one * h[j]);
            sum += t->drop ? one * t->drop[g * u + j] : one;
        }
        dh[j] += (REAL)sum;
    }
}

/* What all steps of a row share. */
static inline REAL_(step) REAL_(row)(const keel_call *c, const keel_cell *cell, int64_t row)
{
    REAL_(step) t = { .c = c, .s = keel_recurrent_steps(c->node, cell), .gates = cell->gates };
    if (t.s.drop >= 0) t.drop = (const REAL *)c->in[t.s.drop] + row * cell->gates * t.s.units;
    return t;
}

/* Saved value k of step `at` of a row; `n` vectors of U. */
static inline REAL *REAL_(saved)(const REAL_(step) * t, int k, int64_t row, int64_t at, int n)
{
    return (REAL *)t->c->saved[k] + ((row * t->s.steps + at) * n) * t->s.units;
}

/* The state before step `at` is what is saved there; the carry before it is that after the one
 * before. */
static inline void REAL_(bind)(REAL_(step) * t, const keel_cell *cell, int64_t row, int64_t at,
                               const REAL *carry)
{
    t->of = REAL_(saved)(t, KEEL_SAVED_GATES, row, at, cell->parts);
    t->before = REAL_(saved)(t, KEEL_SAVED_BEFORE, row, at, 1);
    if (t->s.pre >= 0) t->pre = REAL_(saved)(t, t->s.pre, row, at, cell->gates);
    if (cell->states == 1) return;
    t->cell = REAL_(saved)(t, KEEL_SAVED_CELL, row, at, 1);
    t->carry = at > 0 ? REAL_(saved)(t, KEEL_SAVED_CELL, row, at - 1, 1) : carry;
}

static inline bool REAL_(counts)(const REAL_(step) * t, int64_t row, int64_t at)
{
    if (t->s.mask < 0) return true;
    const int64_t time = keel_step_time(t->c->node, at, t->s.steps);
    return ((const REAL *)t->c->in[t->s.mask])[row * t->s.steps + time] > (REAL)0.5;
}

/* Where the output of step `at` is; NULL: only the last is one. */
static inline int64_t REAL_(out_place)(const REAL_(step) * t, int64_t row, int64_t at)
{
    const keel_recurrent_args *a = t->c->node->args;
    if (a->sequences) return (row * t->s.steps + at) * t->s.units;
    return at == t->s.steps - 1 ? row * t->s.units : -1;
}

static inline void REAL_(run_forward)(const keel_call *c, const keel_cell *cell,
                                      void (*forward)(REAL_(step) *))
{
    const keel_recurrent_args *a = c->node->args;
    for (int64_t row = 0; row < c->rows; row++) {
        REAL_(step) t = REAL_(row)(c, cell, row);
        const int64_t u = t.s.units, width = cell->gates * u;
        const size_t bytes = (size_t)u * sizeof(REAL);
        REAL *h = c->scratch, *carry = h + u, *out = h + 2 * u, *h_new = h + 3 * u;
        REAL *cell_new = h + 4 * u, *of = h + 5 * u, *pre = h + 9 * u;
        memset(h, 0, 3 * bytes);
        if (t.s.state >= 0) memcpy(h, (const REAL *)c->in[t.s.state] + row * u, bytes);
        if (t.s.state >= 0 && cell->states > 1)
            memcpy(carry, (const REAL *)c->in[t.s.state + 1] + row * u, bytes);
        t.h = h_new;
        t.room = h + 14 * u;
        for (int64_t at = 0; at < t.s.steps; at++) {
            const int64_t time = keel_step_time(c->node, at, t.s.steps);
            t.cell = cell_new, t.of = of, t.pre = pre, t.before = h, t.carry = carry;
            if (c->node->backward) {
                REAL_(bind)(&t, cell, row, at, carry);
                memcpy(REAL_(saved)(&t, KEEL_SAVED_BEFORE, row, at, 1), h, bytes);
            }
            t.carry = carry;
            memcpy(t.pre, (const REAL *)c->in[0] + (row * t.s.steps + time) * width,
                   (size_t)width * sizeof(REAL));
            forward(&t);
            if (REAL_(counts)(&t, row, at)) {
                memcpy(h, t.h, bytes);
                memcpy(out, t.h, bytes);
                if (cell->states > 1) memcpy(carry, t.cell, bytes);
            } else {
                if (a->zeros) memset(out, 0, bytes);
                if (cell->states > 1) memcpy(t.cell, carry, bytes);
            }
            const int64_t place = REAL_(out_place)(&t, row, at);
            if (place >= 0 && c->out[0]) memcpy((REAL *)c->out[0] + place, out, bytes);
        }
        for (int k = 0; a->states && k < cell->states; k++)
            if (c->out[1 + k]) memcpy((REAL *)c->out[1 + k] + row * u, k ? carry : h, bytes);
    }
}

/* to = from, or +=. */
static inline void REAL_(give)(REAL *to, const REAL *from, int64_t n, bool adds)
{
    for (int64_t i = 0; i < n; i++) to[i] = adds ? to[i] + from[i] : from[i];
}

static inline void REAL_(run_backward)(const keel_call *c, const keel_cell *cell,
                                       void (*backward)(REAL_(step) *))
{
    const keel_recurrent_args *a = c->node->args;
    for (int64_t row = 0; row < c->rows; row++) {
        REAL_(step) t = REAL_(row)(c, cell, row);
        const int64_t u = t.s.units, width = cell->gates * u;
        const size_t bytes = (size_t)u * sizeof(REAL);
        REAL *repeated = c->scratch, *zero = repeated + 3 * u; /* gradient of the last output */
        t.dh = repeated + u;
        t.dc = repeated + 2 * u;
        t.room = repeated + 4 * u;
        memset(repeated, 0, 4 * bytes);
        if (c->in_grad[t.s.drop < 0 ? 0 : t.s.drop] && t.s.drop >= 0) {
            t.ddrop = (REAL *)c->in_grad[t.s.drop] + row * width;
            if (!c->in_adds[t.s.drop]) memset(t.ddrop, 0, (size_t)width * sizeof(REAL));
        }
        for (int k = 0; a->states && k < cell->states; k++)
            if (c->out_grad[1 + k])
                memcpy(k ? t.dc : t.dh, (const REAL *)c->out_grad[1 + k] + row * u, bytes);
        const REAL *first = t.s.state >= 0 && cell->states > 1
                                ? (const REAL *)c->in[t.s.state + 1] + row * u
                                : zero;
        for (int64_t at = t.s.steps - 1; at >= 0; at--) {
            const int64_t time = keel_step_time(c->node, at, t.s.steps);
            const int64_t place = REAL_(out_place)(&t, row, at);
            REAL *dx = c->in_grad[0];
            REAL_(bind)(&t, cell, row, at, first);
            if (place >= 0 && c->out_grad[0])
                REAL_(give)(repeated, (const REAL *)c->out_grad[0] + place, u, true);
            if (REAL_(counts)(&t, row, at)) {
                REAL_(give)(t.dh, repeated, u, true);
                backward(&t);
            } else {
                memset(t.of, 0, (size_t)(cell->parts * u) * sizeof(REAL));
                t.dz = t.of;
            }
            if (a->zeros || REAL_(counts)(&t, row, at)) memset(repeated, 0, bytes);
            if (dx) REAL_(give)(dx + (row * t.s.steps + time) * width, t.dz, width, c->in_adds[0]);
        }
        for (int k = 0; t.s.state >= 0 && k < cell->states; k++)
            if (c->in_grad[t.s.state + k]) REAL_(give)
        ((REAL *)c->in_grad[t.s.state + k] + row * u, k ? t.dc : t.dh, u,
         c->in_adds[t.s.state + k]);
    }
    for (int64_t i = 0, n = c->node->in[0].shape.dim[0] * c->rows; a->masked && i < n; i++)
        if (c->in_grad[1] && !c->in_adds[1]) ((REAL *)c->in_grad[1])[i] = 0;
}

/* The gradient of recurrent_kernel's columns of gate g: left [U] of each step, which is the state
 * before it unless `part` says which part of the gates it is, times the gradients of the gate. */
static inline void REAL_(kernel_gradient)(const keel_call *c, const keel_cell *cell, int g,
                                          int part)
{
    const keel_steps s = keel_recurrent_steps(c->node, cell);
    const int64_t u = s.units, width = cell->gates * u, all = cell->parts * u;
    const REAL *of = c->saved[KEEL_SAVED_GATES], *before = c->saved[KEEL_SAVED_BEFORE];
    for (int64_t j = 0; j < u; j++)
        for (int64_t k0 = 0; k0 < u; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = u - k0 < KEEL_SUMS_BLOCK ? u - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t i = 0; i < c->rows * s.steps; i++) {
                REAL left = part < 0 ? before[i * u + j] : of[i * all + part * u + j];
                if (s.drop >= 0 && part < 0)
                    left *= ((const REAL *)c->in[s.drop])[i / s.steps * width + g * u + j];
                REAL_(add_scaled)(acc, left, of + i * all + g * u + k0, nk);
            }
            REAL_(store)
            ((REAL *)c->weight_grad[0] + j * width + g * u + k0, acc, nk, c->weight_adds);
        }
}
