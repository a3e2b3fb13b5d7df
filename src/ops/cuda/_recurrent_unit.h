/* Going through time: what a thread does for one unit of a row at one step. It is the same whether
 * a launch takes one step (_recurrent.h) or all of them (_recurrent_sequence.h).
 *
 * A cell is a struct with the numbers of its keel_cell and
 *
 *     gate         what a gate gives. If HAS_TAIL the last gate waits for the others: its product
 *     forward      the gates that had to wait, and the states after the step
 *     backward     the gradients of what the gates were given, and of the states before the step
 *     HAS_TAIL     whether there may be a tail: a last gate that multiplies what the gate before it
 *                  has left of the state. It then has tail_back, as gru.cu shows             */
#ifndef KEEL_OPS_CUDA_RECURRENT_UNIT_H
#define KEEL_OPS_CUDA_RECURRENT_UNIT_H
#include "ops/cuda/_gates.h"
extern "C" {
#include "ops/recurrent.h"
}

/* ---- what all steps of a call share -----------------------------------------------------------
 */

template <class T> struct recurrent_call {
    int64_t rows, u, steps, width, all; /* width: of z; all: of what is saved of gates */
    gate_kind activation, recurrent;
    bool sequences, backwards, zeros, reset_after;
    const T *z, *mask, *drop;     /* [rows, T, width], [rows, T], [rows, gates, U]; NULL: none */
    const T *first_carry;         /* [rows, U]; NULL: 0 */
    const float *bias;            /* [2, width]; NULL: none */
    float *of, *before, *carries; /* saved; NULL: nobody saves, or the cell has no carry */

    __device__ __forceinline__ int64_t time(int64_t at) const
    {
        return backwards ? steps - 1 - at : at;
    }
    __device__ __forceinline__ T mask_of(int64_t row, int64_t at) const
    {
        return mask ? mask[row * steps + time(at)] : T();
    }
    /* Whether a step counts, by its mask_of. */
    __device__ __forceinline__ bool counts(T value) const
    {
        return !mask || to_f(value) > 0.5f;
    }
    /* The factor of the state for a gate. */
    __device__ __forceinline__ float factor(int64_t row, int gate, int64_t k) const
    {
        return drop ? to_f(drop[row * width + gate * u + k]) : 1;
    }
    /* Where step `at` has its output; the last one only, if the layer gives no sequences. */
    __device__ __forceinline__ bool gives(int64_t at) const
    {
        return sequences || at == steps - 1;
    }
    __device__ __forceinline__ int64_t out_at(int64_t row, int64_t at, int64_t k) const
    {
        return (sequences ? row * steps + at : row) * u + k;
    }
};

template <class C, class T> static recurrent_call<T> recurrent_call_of(const keel_call *c)
{
    const keel_recurrent_args *a = cuda_args<keel_recurrent_args>(c);
    const keel_steps s = keel_recurrent_steps(c->node, C::cell());
    const bool saves = c->node->n_saved > 0;
    recurrent_call<T> o = {};
    o.rows = c->rows;
    o.u = s.units;
    o.steps = s.steps;
    o.width = C::GATES * s.units;
    o.all = C::PARTS * s.units;
    o.activation = gate_kind_of(&a->activation);
    o.recurrent = gate_kind_of(&a->recurrent);
    o.sequences = a->sequences;
    o.backwards = a->backwards;
    o.zeros = a->zeros;
    o.reset_after = a->reset_after;
    o.z = cuda_in<T>(c, 0);
    if (s.mask >= 0) o.mask = cuda_in<T>(c, s.mask);
    if (s.drop >= 0) o.drop = cuda_in<T>(c, s.drop);
    if (s.state >= 0 && C::STATES > 1) o.first_carry = cuda_in<T>(c, s.state + 1);
    if (c->node->n_weight > 1) o.bias = static_cast<const float *>(c->weight[1]);
    if (!saves) return o;
    o.of = static_cast<float *>(c->saved[KEEL_SAVED_GATES]);
    o.before = static_cast<float *>(c->saved[KEEL_SAVED_BEFORE]);
    if (C::STATES > 1) o.carries = static_cast<float *>(c->saved[KEEL_SAVED_CELL]);
    return o;
}

/* Where a unit is. */
struct unit_place {
    int64_t row, at, k;
};

/* ---- forward ----------------------------------------------------------------------------------
 */

/* The states of a unit, which become those after the step. `shown`: what masked steps show; NULL:
 * nothing. */
struct unit_states {
    float *h, *carry, *shown;
};

/* The end of a step. of: what C::gate gave; x: what the last gate has of the inputs; y: NULL, if
 * nobody asks. */
template <class C, class T>
static __device__ __forceinline__ void unit_forward(const recurrent_call<T> &o, const unit_place &p,
                                                    bool counts, float of[C::PARTS], float x,
                                                    const unit_states &s, T *y)
{
    const int64_t place = p.row * o.steps + p.at;
    const float before = *s.h, carry = C::STATES > 1 ? *s.carry : 0;
    const float dropped = before * o.factor(p.row, C::GATES - 1, p.k);
    float h, next = carry;
    C::forward(o, x, before, dropped, of, &h, &next);
    if (o.of)
        for (int i = 0; i < C::PARTS; i++) o.of[place * o.all + i * o.u + p.k] = of[i];
    if (o.before) o.before[place * o.u + p.k] = before;
    if (o.carries) o.carries[place * o.u + p.k] = counts ? next : carry;
    if (counts) {
        *s.h = h;
        if (C::STATES > 1) *s.carry = next;
        if (s.shown) *s.shown = h;
    }
    if (y && o.gives(p.at))
        y[o.out_at(p.row, p.at, p.k)] = to_value<T>(counts                ? h
                                                    : !o.zeros && s.shown ? *s.shown
                                                                          : 0);
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* What forward has saved of a step, and the gradient of its output. Values stay as they are stored
 * until they are used: who asks for them early does not wait to convert them. */
template <class C, class T> struct unit_past {
    float of[C::PARTS], before, carry, cell; /* carry: before the step; cell: after it */
    T dy, mask;
};

template <class C, class T>
static __device__ __forceinline__ unit_past<C, T> unit_past_of(const recurrent_call<T> &o,
                                                               const unit_place &p, const T *dy)
{
    const int64_t place = p.row * o.steps + p.at;
    unit_past<C, T> x;
    for (int i = 0; i < C::PARTS; i++) x.of[i] = o.of[place * o.all + i * o.u + p.k];
    x.before = o.before[place * o.u + p.k];
    x.carry = x.cell = 0;
    if (C::STATES > 1) {
        x.cell = o.carries[place * o.u + p.k];
        if (p.at > 0)
            x.carry = o.carries[(place - 1) * o.u + p.k];
        else if (o.first_carry)
            x.carry = to_f(o.first_carry[p.row * o.u + p.k]);
    }
    x.dy = dy && o.gives(p.at) ? dy[o.out_at(p.row, p.at, p.k)] : T();
    x.mask = o.mask_of(p.row, p.at);
    return x;
}

/* Gradients of a unit: of the states after the step, then before it; of the output so far. */
struct unit_gradients {
    float *dh, *dc, *shown;
};

/* Up to the products: x->of becomes the gradients of what the gates were given. */
template <class C, class T>
static __device__ __forceinline__ void unit_backward(const recurrent_call<T> &o,
                                                     const unit_place &p, unit_past<C, T> *x,
                                                     const unit_gradients &b, T *dz, bool adds)
{
    const bool counts = o.counts(x->mask);
    const float shown = *b.shown + to_f(x->dy);
    float d[C::GATES];
    for (int g = 0; g < C::GATES; g++) d[g] = 0;
    if (counts) {
        float dc = C::STATES > 1 ? *b.dc : 0, dh = *b.dh + shown;
        C::backward(o, x->of, x->before, x->carry, x->cell, &dh, &dc, d);
        *b.dh = dh;
        if (C::STATES > 1) *b.dc = dc;
    } else {
        for (int i = 0; i < C::PARTS; i++) x->of[i] = 0;
    }
    *b.shown = counts || o.zeros ? 0 : shown;
    float *of = o.of + (p.row * o.steps + p.at) * o.all + p.k;
    for (int i = 0; i < C::PARTS; i++) of[i * o.u] = x->of[i];
    T *to = dz + (p.row * o.steps + o.time(p.at)) * o.width + p.k;
    for (int g = 0; dz && g < C::GATES; g++)
        if (!C::HAS_TAIL || o.reset_after || g != C::GATES - 2) /* which comes from the tail */
            to[g * o.u] = to_value<T>(adds ? to_f(to[g * o.u]) + d[g] : d[g]);
}

/* dh += the products of gates [0, gates), each times its factor, whose gradient gets the rest.
 * parts: those of the unit, `step` from one gate to the next. ddrop [rows, gates, U]; NULL: nobody
 * asks. */
template <class T>
static __device__ __forceinline__ void
unit_products_back(const recurrent_call<T> &o, const unit_place &p, float before,
                   const float *parts, int64_t step, int gates, float *dh, float *ddrop)
{
    float sum = *dh;
    for (int g = 0; g < gates; g++) {
        const float one = parts[g * step];
        sum += one * o.factor(p.row, g, p.k);
        if (ddrop) ddrop[p.row * o.width + g * o.u + p.k] += one * before;
    }
    *dh = sum;
}

#endif
