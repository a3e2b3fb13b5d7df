/* Going through time: what lstm, gru and simple_rnn share. Up to some number of units one launch
 * takes all steps: _recurrent_sequence.h. With more, as here, a step is one product of all rows of
 * the call with recurrent_kernel, by cuBLASLt, and then one launch for the cell's gates, in which a
 * thread has a unit of a row. The gradient of recurrent_kernel is one product over all steps of all
 * rows. States and products are float32, however values are stored.
 *
 * Each gate has its own product where the state is dropped, because the factors differ: they are
 * one batch. A GRU without reset_after multiplies its last gate, the tail, by the state that the
 * reset gate has left, so that gate comes before it; the head are the gates that multiply the state
 * itself. A cell that HAS_TAIL has tail_forward and tail_backward, and the gradient of a bias, as
 * gru.cu shows; what else a cell has is in _recurrent_unit.h.                                 */
#ifndef KEEL_OPS_CUDA_RECURRENT_H
#define KEEL_OPS_CUDA_RECURRENT_H
#include "ops/cuda/_move.h"
#include "ops/cuda/_product.h"
#include "ops/cuda/_recurrent_sequence.h"
extern "C" {
#include "base/memory.h"
}

/* Gates that multiply the state itself. */
template <class C> static inline int head_of(const keel_recurrent_args *a)
{
    return C::HAS_TAIL && !a->reset_after ? C::GATES - 1 : C::GATES;
}

/* ---- scratch ----------------------------------------------------------------------------------
 */

/* Of forward h, carry, shown, sums [width], left; of backward dh, dc, shown, parts, ddrop: each a
 * number of vectors of U for each row. */
enum { ROOM_H, ROOM_CARRY, ROOM_SHOWN, ROOM_SUMS, ROOM_LEFT, ROOMS };
/* Where one launch takes all steps, backward has the turned matrix at ROOM_SUMS. */
static const int ROOM_BIAS = ROOMS; /* what the gradient of a bias needs */

struct recurrent_plan {
    bool sequence; /* one launch takes all steps, and there are no products but that of weights */
    cuda_product_plan *head, *tail; /* tail: NULL, if there is none */
    int64_t at[ROOMS + 1];          /* bytes into scratch; the products' own is at 0 */
};

static inline float *room_of(const keel_call *c, int which)
{
    const recurrent_plan *pl = static_cast<const recurrent_plan *>(c->plan);
    return reinterpret_cast<float *>(static_cast<char *>(c->scratch) + pl->at[which]);
}

static inline void recurrent_release(void *plan)
{
    recurrent_plan *pl = static_cast<recurrent_plan *>(plan);
    if (!pl) return;
    cuda_product_release(pl->head);
    cuda_product_release(pl->tail);
    keel_free(pl);
}

/* ---- states and their gradients, from and to the values of the model ---------------------------
 */

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    widen_kernel(float *to, const T *from, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < n; i += step)
        to[i] = from ? to_f(from[i]) : 0;
}

/* to [n] = from; NULL: zeros. */
template <class T> static void widen(const keel_call *c, float *to, const void *from, int64_t n)
{
    cuda_launch(c, widen_kernel<T>, cuda_blocks(n), CUDA_THREADS, 0, to,
                static_cast<const T *>(from), n);
}

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    give_kernel(T *to, const float *from, int64_t n, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < n; i += step)
        to[i] = to_value<T>(adds ? to_f(to[i]) + from[i] : from[i]);
}

/* to [n] = from, or +=; NULL: nobody asks. */
template <class T>
static void give(const keel_call *c, void *to, const float *from, int64_t n, bool adds)
{
    if (!to) return;
    cuda_launch(c, give_kernel<T>, cuda_blocks(n), CUDA_THREADS, 0, static_cast<T *>(to), from, n,
                adds);
}

/* ---- forward ----------------------------------------------------------------------------------
 */

struct forward_room {
    float *h, *carry, *shown, *sums, *left;
};

/* left [gates, places, U] = states h [places, U], of which a row has per_row, as `gates` gates from
 * `gate` on are to see them. */
template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    drop_kernel(float *left, const float *h, const recurrent_call<T> o, int64_t places,
                int64_t per_row, int gate, int gates)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = places * o.u;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, o.u);
        take(&row, per_row);
        for (int g = 0; g < gates; g++) left[g * n + t] = h[t] * o.factor(row, gate + g, k);
    }
}

template <class C, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    step_kernel(const recurrent_call<T> o, const forward_room f, T *y, int64_t at)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < o.rows * o.u;
         t += step) {
        int64_t row = t;
        const int64_t k = take(&row, o.u);
        float x = 0, of[C::PARTS];
        for (int g = 0; g < C::GATES; g++) {
            const int64_t e = g * o.u + k;
            float product = f.sums[row * o.width + e];
            x = to_f(o.z[(row * o.steps + o.time(at)) * o.width + e]);
            if (o.bias) x += o.bias[e], product += o.bias[o.width + e];
            of[g] = C::gate(o, g, x, product);
        }
        unit_forward<C>(o, { row, at, k }, o.counts(o.mask_of(row, at)), of, x,
                        { f.h + t, f.carry + t, f.shown ? f.shown + t : nullptr }, y);
    }
}

/* false: a product could not be launched. */
template <class C, class T>
static bool forward_step(const keel_call *c, const recurrent_call<T> &o, const forward_room &f,
                         int64_t at)
{
    const recurrent_plan *pl = static_cast<const recurrent_plan *>(c->plan);
    const unsigned blocks = cuda_blocks(o.rows * o.u);
    if (o.drop)
        cuda_launch(c, drop_kernel<T>, blocks, CUDA_THREADS, 0, f.left, f.h, o, o.rows, (int64_t)1,
                    0, head_of<C>(cuda_args<keel_recurrent_args>(c)));
    if (!cuda_product_run(c, pl->head, o.drop ? f.left : f.h, c->weight[0], nullptr, f.sums, false,
                          c->scratch))
        return false;
    if constexpr (C::HAS_TAIL)
        if (pl->tail && !C::tail_forward(c, o, f, at)) return false;
    cuda_launch(c, step_kernel<C, T>, blocks, CUDA_THREADS, 0, o, f, cuda_out<T>(c), at);
    return true;
}

template <class C, class T> static void recurrent_forward(const keel_call *c)
{
    if (static_cast<const recurrent_plan *>(c->plan)->sequence) {
        forward_sequence<C, T>(c);
        return;
    }
    const recurrent_call<T> o = recurrent_call_of<C, T>(c);
    const keel_steps s = keel_recurrent_steps(c->node, C::cell());
    const forward_room f = { room_of(c, ROOM_H), room_of(c, ROOM_CARRY),
                             o.mask ? room_of(c, ROOM_SHOWN) : nullptr, room_of(c, ROOM_SUMS),
                             room_of(c, ROOM_LEFT) };
    const int64_t n = o.rows * o.u;
    widen<T>(c, f.h, s.state >= 0 ? c->in[s.state] : nullptr, n);
    if (C::STATES > 1) widen<T>(c, f.carry, o.first_carry, n);
    if (f.shown) widen<T>(c, f.shown, nullptr, n);
    for (int64_t at = 0; at < o.steps; at++)
        if (!forward_step<C>(c, o, f, at)) return;
    for (int k = 0; k < C::STATES && k + 1 < c->node->n_out; k++)
        give<T>(c, c->out[1 + k], k ? f.carry : f.h, n, false);
}

/* ---- backward ---------------------------------------------------------------------------------
 */

struct backward_room {
    float *dh, *dc; /* [rows, U] of the states after the step, then before it */
    float *shown;   /* [rows, U] gradient of the output so far */
    float *parts;   /* [gates, rows, U] products of one gate each */
    float *ddrop;   /* [rows, gates, U] of the factors; NULL: nobody asks */
};

template <class C, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    step_back_kernel(const recurrent_call<T> o, const backward_room b, const T *dy, T *dz,
                     bool adds, int64_t at)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < o.rows * o.u;
         t += step) {
        int64_t row = t;
        const int64_t k = take(&row, o.u);
        const unit_place p = { row, at, k };
        unit_past<C, T> x = unit_past_of<C>(o, p, dy);
        unit_backward<C>(o, p, &x, { b.dh + t, b.dc + t, b.shown + t }, dz, adds);
    }
}

/* dh += the products of gates [0, head), each times its factors, whose gradients get the rest. */
template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    drop_back_kernel(const recurrent_call<T> o, const backward_room b, int head, int64_t at)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = o.rows * o.u;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, o.u);
        unit_products_back(o, { row, at, k }, o.before[(row * o.steps + at) * o.u + k], b.parts + t,
                           n, head, b.dh + t, b.ddrop);
    }
}

template <class C, class T>
static bool backward_step(const keel_call *c, const recurrent_call<T> &o, const backward_room &b,
                          int64_t at)
{
    const recurrent_plan *pl = static_cast<const recurrent_plan *>(c->plan);
    const unsigned blocks = cuda_blocks(o.rows * o.u);
    cuda_launch(c, step_back_kernel<C, T>, blocks, CUDA_THREADS, 0, o, b, cuda_out_grad<T>(c),
                cuda_in_grad<T>(c, 0), c->in_adds[0], at);
    if constexpr (C::HAS_TAIL)
        if (pl->tail && !C::tail_backward(c, o, b, at)) return false;
    if (!cuda_product_run(c, pl->head, o.of + at * o.all, c->weight[0], nullptr,
                          o.drop ? b.parts : b.dh, !o.drop, c->scratch))
        return false;
    if (o.drop)
        cuda_launch(c, drop_back_kernel<T>, blocks, CUDA_THREADS, 0, o, b,
                    head_of<C>(cuda_args<keel_recurrent_args>(c)), at);
    return true;
}

/* false: a product could not be launched. */
template <class C, class T>
static bool backward_steps(const keel_call *c, const recurrent_call<T> &o, float *ddrop)
{
    const keel_steps s = keel_recurrent_steps(c->node, C::cell());
    const int64_t n = o.rows * o.u;
    const backward_room b = { room_of(c, ROOM_H), room_of(c, ROOM_CARRY), room_of(c, ROOM_SHOWN),
                              room_of(c, ROOM_SUMS), ddrop };
    const bool given = c->node->n_out > 1;
    widen<T>(c, b.dh, given ? c->out_grad[1] : nullptr, n);
    if (C::STATES > 1) widen<T>(c, b.dc, given ? c->out_grad[2] : nullptr, n);
    widen<T>(c, b.shown, nullptr, n);
    for (int64_t at = o.steps - 1; at >= 0; at--)
        if (!backward_step<C>(c, o, b, at)) return false;
    for (int k = 0; s.state >= 0 && k < C::STATES; k++)
        give<T>(c, c->in_grad[s.state + k], k ? b.dc : b.dh, n, c->in_adds[s.state + k]);
    return true;
}

template <class C, class T> static void recurrent_backward(const keel_call *c)
{
    const recurrent_call<T> o = recurrent_call_of<C, T>(c);
    const keel_steps s = keel_recurrent_steps(c->node, C::cell());
    float *const ddrop = o.drop && c->in_grad[s.drop] ? room_of(c, ROOM_LEFT) : nullptr;
    if (ddrop) widen<T>(c, ddrop, nullptr, o.rows * o.width);
    if (static_cast<const recurrent_plan *>(c->plan)->sequence)
        backward_sequence<C, T>(c, o, room_of(c, ROOM_SUMS), ddrop);
    else if (!backward_steps<C, T>(c, o, ddrop))
        return;
    if (ddrop) give<T>(c, c->in_grad[s.drop], ddrop, o.rows * o.width, c->in_adds[s.drop]);
    if (s.mask >= 0) no_gradient<T>(c, s.mask);
}

/* ---- weights ----------------------------------------------------------------------------------
 */

template <class C, class T> static void recurrent_weights(const keel_call *c)
{
    const recurrent_plan *pl = static_cast<const recurrent_plan *>(c->plan);
    const recurrent_call<T> o = recurrent_call_of<C, T>(c);
    const int head = head_of<C>(cuda_args<keel_recurrent_args>(c));
    const int64_t places = o.rows * o.steps;
    float *dw = static_cast<float *>(c->weight_grad[0]), *left = room_of(c, ROOM_LEFT);
    for (int g = 0; dw && g < (o.drop ? head : 1); g++) {
        if (o.drop)
            cuda_launch(c, drop_kernel<T>, cuda_blocks(places * o.u), CUDA_THREADS, 0, left,
                        o.before, o, places, o.steps, g, 1);
        if (!cuda_product_run(c, pl->head, o.drop ? left : o.before, o.of + g * o.u, nullptr,
                              dw + g * o.u, c->weight_adds, c->scratch))
            return;
    }
    if (dw && pl->tail &&
        !cuda_product_run(c, pl->tail, o.of + (C::PARTS - 1) * o.u, o.of + head * o.u, nullptr,
                          dw + head * o.u, c->weight_adds, c->scratch))
        return;
    if constexpr (C::HAS_TAIL) C::bias_gradient(c, o);
}

/* ---- prepare ----------------------------------------------------------------------------------
 */

/* The product of gates [from, from + gates) in a pass; apart: one for each of them. */
template <class C>
static cuda_product recurrent_product(const keel_prepare *p, int gates, bool apart)
{
    const int64_t *dim = p->node->weight[0].shape.dim, u = dim[0], width = dim[1];
    const int64_t steps = p->node->in[0].shape.dim[0], all = C::PARTS * u, n = p->rows * u;
    const int64_t columns = apart ? u : gates * u, batch = apart ? gates : 1;
    const keel_dtype real = KEEL_FLOAT32;
    int aligned = 16;
    while (u * 4 % aligned) aligned /= 2;
    switch (p->pass) {
    case KEEL_FORWARD:
        return { p->rows,
                 columns,
                 u,
                 batch,
                 { false, n, aligned },
                 { false, u, aligned, width },
                 { false, u, aligned, width },
                 real,
                 real,
                 false };
    case KEEL_BACKWARD:
        return { p->rows,
                 u,
                 columns,
                 batch,
                 { false, u, aligned, steps * all },
                 { true, u, aligned, width },
                 { false, n, aligned },
                 real,
                 real,
                 false };
    default: /* one at a time */
        return { u,
                 columns,
                 p->rows * steps,
                 1,
                 { true, 0, aligned },
                 { false, 0, aligned, all },
                 { false, 0, aligned, width },
                 real,
                 real,
                 false };
    }
}

/* Bytes of the rooms: of vectors of U for each row, or for each place. */
template <class C>
static void recurrent_rooms(const keel_prepare *p, bool sequence, int64_t bytes[ROOMS])
{
    const keel_recurrent_args *a = static_cast<const keel_recurrent_args *>(p->node->args);
    const bool tail = head_of<C>(a) < C::GATES, weights = p->pass == KEEL_WEIGHTS;
    const int64_t u = p->node->weight[0].shape.dim[0], vector = p->rows * u * 4;
    for (int i = 0; i < ROOMS; i++) bytes[i] = 0;
    if (sequence && p->pass == KEEL_BACKWARD) {
        bytes[ROOM_SUMS] = C::GATES * u * u * 4;
        bytes[ROOM_LEFT] = a->dropped ? C::GATES * vector : 0;
    }
    if (weights) bytes[ROOM_LEFT] = a->dropped ? p->node->in[0].shape.dim[0] * vector : 0;
    if (weights || sequence) return;
    bytes[ROOM_H] = vector;
    bytes[ROOM_CARRY] = C::STATES > 1 ? vector : 0;
    bytes[ROOM_SHOWN] = p->pass == KEEL_BACKWARD || a->masked ? vector : 0;
    bytes[ROOM_SUMS] = (p->pass == KEEL_FORWARD || a->dropped ? C::GATES : tail) * vector;
    bytes[ROOM_LEFT] = (a->dropped ? C::GATES : p->pass == KEEL_FORWARD && tail) * vector;
}

/* The plan's products; *at: bytes that they need. */
template <class C>
static keel_status recurrent_products(keel_prepare *p, recurrent_plan *pl, int64_t *at)
{
    const keel_recurrent_args *a = static_cast<const keel_recurrent_args *>(p->node->args);
    const int head = head_of<C>(a);
    const bool weights = p->pass == KEEL_WEIGHTS;
    int64_t more = 0;
    cuda_product x =
        recurrent_product<C>(p, weights && a->dropped ? 1 : head, a->dropped && !weights);
    KEEL_TRY(cuda_product_prepare(p, &x, &pl->head, at));
    if (head == C::GATES) return KEEL_OK;
    x = recurrent_product<C>(p, 1, false);
    if (weights) x.a.row = C::PARTS * x.m;
    KEEL_TRY(cuda_product_prepare(p, &x, &pl->tail, &more));
    *at = *at > more ? *at : more;
    return KEEL_OK;
}

template <class C> static keel_status recurrent_prepare(keel_prepare *p)
{
    const keel_recurrent_args *a = static_cast<const keel_recurrent_args *>(p->node->args);
    if (!cuda_asked(p) || gate_kind_of(&a->activation) == GATE_OTHER ||
        gate_kind_of(&a->recurrent) == GATE_OTHER)
        return KEEL_EUNSUP;
    recurrent_plan *pl = static_cast<recurrent_plan *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    const bool weights = p->pass == KEEL_WEIGHTS;
    int64_t at = 0, bytes[ROOMS];
    pl->sequence = !weights && p->node->weight[0].shape.dim[0] <= LARGE_UNITS;
    const keel_status s = pl->sequence ? KEEL_OK : recurrent_products<C>(p, pl, &at);
    if (s < 0) {
        recurrent_release(pl);
        return s;
    }
    recurrent_rooms<C>(p, pl->sequence, bytes);
    for (int i = 0; i < ROOMS; i++) {
        pl->at[i] = at;
        at += cuda_piece(bytes[i]);
    }
    pl->at[ROOM_BIAS] = at;
    if constexpr (C::HAS_TAIL)
        if (weights) at += C::bias_scratch(p);
    p->plan = pl;
    p->scratch = at;
    return KEEL_OK;
}

#define RECURRENT_KERNEL(stem, C)                                                                  \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cublaslt",                                                      \
                          .vendor = true,                                                          \
                          .prepare = recurrent_prepare<C>,                                         \
                          .run = { recurrent_forward<C, float>, recurrent_backward<C, float>,      \
                                   recurrent_weights<C, float> },                                  \
                          .narrow = { recurrent_forward<C, bf16>, recurrent_backward<C, bf16>,     \
                                      recurrent_weights<C, bf16> },                                \
                          .half = { recurrent_forward<C, f16>, recurrent_backward<C, f16>,         \
                                    recurrent_weights<C, f16> },                                   \
                          .release = recurrent_release }

#endif
