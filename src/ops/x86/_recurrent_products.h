/* The products of recurrent ops with recurrent_kernel, and its gradient: a part of _recurrent.h. In
 * float32, or where values are bfloat16 by rounded products, for which recurrent_kernel is packed
 * once a step of training; its parts are those of products that are made at a time. */
#ifndef KEEL_OPS_X86_RECURRENT_PRODUCTS_H
#define KEEL_OPS_X86_RECURRENT_PRODUCTS_H
#include "ops/x86/_rounded.h"
#include "ops/x86/_scratch.h"
#include "ops/x86/_turn.h"

enum { STRETCH = 256 }; /* places of a weight gradient at a time: their gates stay in the cache */

typedef struct over {
    const keel_call *call;
    const keel_recurrent_args *args;
    keel_steps s;
    gate_kind activation, recurrent;
    int64_t u, width, all;  /* of a state, of z, of what is saved of gates */
    int gates, head;        /* head: those that have a product with the state itself */
    const float *drop;      /* [rows, gates, U]; NULL: none */
    const keel_rounded *by; /* how products are rounded; NULL: they are in float32 */
    float *room;            /* of a rounded product */
} over;

/* The gates that have a product with the state itself. */
static int head_of(const keel_node *n, const keel_cell *cell)
{
    const keel_recurrent_args *a = n->args;
    return cell->gates == 3 && !a->reset_after ? 2 : cell->gates;
}

/* drop and room are still to be set. */
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
                   .head = head_of(c->node, cell),
                   .by = keel_rounded_of(c->node) };
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

/* The gates of the product that begins with gate `from`: those that multiply the same. */
static int last_alike(bool dropped, int head, int gates, int from)
{
    if (from >= head) return gates;
    return dropped ? from + 1 : head;
}

static int next_gate(const over *o, int from)
{
    return last_alike(o->drop != NULL, o->head, o->gates, from);
}

/* recurrent_kernel [U, gates U] packed for forward, or turned, for backward. */
typedef struct packing {
    const keel_rounded *by;
    int64_t u;
    int gates, head;
    bool dropped, turned;
} packing;

/* The words of gates [from, to). */
static int64_t words_of(const packing *s, int from, int to)
{
    const int64_t wide = (to - from) * s->u;
    return s->turned ? s->by->words(wide, s->u) : s->by->words(s->u, wide);
}

/* Where the part that begins with gate `from` is. */
static int64_t part_at(const packing *s, int from)
{
    int64_t at = 0;
    for (int g = 0, next; g < from; g = next) {
        next = last_alike(s->dropped, s->head, s->gates, g);
        at += words_of(s, g, next);
    }
    return at;
}

static void pack_parts(const keel_derived *d, const void *weight)
{
    const packing *s = d->plan;
    const int64_t row = s->gates * s->u;
    for (int g = 0, next; g < s->gates; g = next) {
        const float *w = (const float *)weight + g * s->u;
        uint32_t *to = (uint32_t *)d->data + part_at(s, g);
        next = last_alike(s->dropped, s->head, s->gates, g);
        if (s->turned)
            s->by->pack_transpose(to, w, row, (next - g) * s->u, s->u);
        else
            s->by->pack(to, w, row, s->u, (next - g) * s->u);
    }
}

static const uint32_t *packed_part(const over *o, int from)
{
    const keel_derived *d = o->call->plan;
    return (const uint32_t *)d->data + part_at(d->plan, from);
}

/* out [rows, gates [from, to) U] = a [rows, U] times their part of recurrent_kernel, from `start`
 * on. */
static void multiply_gates(const over *o, const float *a, int64_t a_row, int from, int to,
                           const float *start, float *out)
{
    const int64_t end = to * o->u;
    if (o->by) {
        const keel_rounded_product d = { .a = a,
                                         .a_row = a_row,
                                         .n = o->call->rows,
                                         .lines = o->u,
                                         .columns = end - from * o->u,
                                         .out = out + from * o->u,
                                         .out_row = o->width,
                                         .room = o->room };
        o->by->multiply(&d, packed_part(o, from), start ? start + from * o->u : NULL);
        return;
    }
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

/* out [rows, U] = the gradients of gates [from, to) of a step times recurrent_kernel^T, or +=. */
static void multiply_back(const over *o, int64_t at, int from, int to, bool adds, float *out)
{
    const float *const a = saved_at(o, KEEL_SAVED_GATES, 0, at, o->all) + from * o->u;
    const float *turned = ((const keel_derived *)o->call->plan)->data;
    if (o->by) {
        const keel_rounded_product d = { .a = a,
                                         .a_row = o->s.steps * o->all,
                                         .n = o->call->rows,
                                         .lines = (to - from) * o->u,
                                         .columns = o->u,
                                         .out = out,
                                         .out_row = o->u,
                                         .adds = adds,
                                         .room = o->room };
        o->by->multiply(&d, packed_part(o, from), NULL);
        return;
    }
    product p = { .a = a,
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

/* The gradient of recurrent_kernel for gates [g, next), of the places that p->inner begins with
 * `from`; p->a: what they multiply. */
static void add_weights(const over *o, const product *left, int64_t from, int g, int next,
                        float *dw)
{
    const float *const gates = (const float *)o->call->saved[KEEL_SAVED_GATES] + from * o->all;
    const int64_t end = next * o->u;
    int64_t k = g * o->u;
    if (o->by) {
        const keel_rounded_product d = { .a = left->a,
                                         .a_row = left->a_step,
                                         .n = o->u,
                                         .lines = left->inner,
                                         .columns = end - k,
                                         .out = dw + k,
                                         .out_row = o->width,
                                         .adds = left->resumes,
                                         .room = o->room };
        o->by->multiply_lines(&d, gates + k, o->all);
        return;
    }
    for (product p = *left; k < end; k += PANEL) {
        p.w = gates + k;
        p.out = dw + k;
        multiply(&p, o->u, at_most(end - k, PANEL));
    }
}

/* dw = all of it; `room` has room for the states of STRETCH places, if they are dropped. */
static void weigh(const over *o, float *dw, float *room)
{
    const int64_t places = o->call->rows * o->s.steps;
    product p = { .a_row = 1, .w_row = o->all, .out_row = o->width };
    for (int64_t from = 0; from < places || from == 0; from += STRETCH) {
        p.resumes = from > 0;
        p.inner = at_most(places - from, STRETCH);
        for (int g = 0, next; g < o->gates; g = next) {
            next = next_gate(o, g);
            left_of(o, g, from, p.inner, room, &p);
            add_weights(o, &p, from, g, next, dw);
        }
    }
}

/* Scratch ---------------------------------------------------------------------------------------
 */

typedef struct forward_room {
    float *h, *carry, *h_new, *carry_new; /* [rows, U] */
    float *dropped;                       /* [rows, U] the state for one gate */
    float *sums, *gates;                  /* [rows, width], [rows, parts U] where nobody saves */
    float *shown;                         /* [rows] is there an output yet? */
    float *z, *drop;                      /* of narrow values: [width] of a step; [rows, width] */
    float *room;                          /* of a rounded product */
} forward_room;

static forward_room forward_room_in(floats *f, const keel_node *n, const keel_cell *cell,
                                    int64_t rows)
{
    const keel_recurrent_args *a = n->args;
    const keel_rounded *by = keel_rounded_of(n);
    const int64_t u = n->weight[0].shape.dim[0], width = cell->gates * u;
    forward_room r = { .h = take(f, rows * u) };
    r.carry = take(f, rows * u);
    r.h_new = take(f, rows * u);
    r.carry_new = take(f, rows * u);
    r.dropped = take(f, rows * u);
    r.sums = take(f, rows * width);
    r.gates = take(f, rows * cell->parts * u);
    r.shown = take(f, rows);
    r.z = take(f, width);
    r.drop = take(f, a->dropped ? rows * width : 0);
    r.room = take(f, by ? by->words(u, rows) : 0);
    return r;
}

/* [rows, U] each, and of factors [rows, width]. */
typedef struct backward_room {
    float *dh, *dc;
    float *shown;        /* gradient of the output so far */
    float *product;      /* of the gradients of one gate */
    float *drop, *ddrop; /* factors of narrow values; the gradient of factors */
    float *carry;        /* [U] of narrow values, before the first step */
    float *room;         /* of a rounded product */
} backward_room;

static backward_room backward_room_in(floats *f, const keel_node *n, const keel_cell *cell,
                                      int64_t rows)
{
    const keel_recurrent_args *a = n->args;
    const keel_rounded *by = keel_rounded_of(n);
    const int64_t u = n->weight[0].shape.dim[0], width = cell->gates * u;
    backward_room r = { .dh = take(f, rows * u) };
    r.dc = take(f, rows * u);
    r.shown = take(f, rows * u);
    r.product = take(f, rows * u);
    r.drop = take(f, a->dropped ? rows * width : 0);
    r.ddrop = take(f, a->dropped ? rows * width : 0);
    r.carry = take(f, u);
    r.room = take(f, by ? by->words(width, rows) : 0);
    return r;
}

typedef struct weights_room {
    float *dw;          /* [U, width] where the call adds */
    float *left, *drop; /* [STRETCH, U] a dropped state; factors of narrow values */
    float *room;        /* of a rounded product */
} weights_room;

/* The first 4 U floats are for weights besides recurrent_kernel. */
static weights_room weights_room_in(floats *f, const keel_node *n, const keel_cell *cell,
                                    int64_t rows, bool adds)
{
    const keel_recurrent_args *a = n->args;
    const keel_rounded *by = keel_rounded_of(n);
    const int64_t u = n->weight[0].shape.dim[0], width = cell->gates * u;
    take(f, 4 * u);
    weights_room r = { .dw = take(f, adds ? u * width : 0) };
    r.left = take(f, a->dropped ? STRETCH * u : 0);
    r.drop = take(f, a->dropped ? rows * width : 0);
    r.room = take(f, by ? by->words(STRETCH, u) + by->words(STRETCH, width) : 0);
    return r;
}

/* Prepare ---------------------------------------------------------------------------------------
 */

/* recurrent_kernel [U, width] as [width, U]. */
static void turn(const keel_derived *d, const void *weight)
{
    const int64_t *dim = d->plan;
    turn_matrix(d->data, weight, dim[0], dim[1]);
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

static keel_status derive_packed(keel_prepare *p, const keel_cell *cell)
{
    const keel_recurrent_args *a = p->node->args;
    const keel_derived *got;
    packing *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packing){ .by = keel_rounded_of(p->node),
                    .u = p->node->weight[0].shape.dim[0],
                    .gates = cell->gates,
                    .head = head_of(p->node, cell),
                    .dropped = a->dropped,
                    .turned = p->pass == KEEL_BACKWARD };
    keel_derived want = { .bytes = (size_t)part_at(s, s->gates) * sizeof(uint32_t),
                          .weight = 0,
                          .key = 0x7265637061697230u + (uint64_t)(2 * s->dropped + s->turned),
                          .refresh = pack_parts,
                          .release = keel_free,
                          .plan = s };
    KEEL_TRY(p->derive(p->context, &want, &got));
    p->plan = (void *)got;
    return KEEL_OK;
}

/* Functions of gates without vectors are for the reference. */
static keel_status prepare_recurrent(keel_prepare *p, const keel_cell *cell)
{
    const keel_recurrent_args *a = p->node->args;
    floats f = { 0 };
    KEEL_TRY(vector_prepare(p));
    if (kind_of(&a->activation) == GATE_OTHER || kind_of(&a->recurrent) == GATE_OTHER)
        return KEEL_EUNSUP;
    if (p->pass == KEEL_FORWARD) forward_room_in(&f, p->node, cell, p->rows);
    if (p->pass == KEEL_BACKWARD) backward_room_in(&f, p->node, cell, p->rows);
    if (p->pass == KEEL_WEIGHTS) weights_room_in(&f, p->node, cell, p->rows, p->weight_adds);
    p->scratch = f.count * (int64_t)sizeof(float);
    if (p->pass != KEEL_WEIGHTS && keel_rounded_of(p->node)) return derive_packed(p, cell);
    return p->pass == KEEL_BACKWARD ? derive_turned(p) : KEEL_OK;
}

#endif
