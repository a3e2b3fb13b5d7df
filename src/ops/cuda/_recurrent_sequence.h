/* Going through time by one launch for all steps, where there are not too many units: launches of
 * every step cost more than what they compute. A block has a few rows of the batch and goes through
 * their steps alone, so nothing is exchanged between blocks. Its thread j = g U + k
 *
 *     is column j of the matrix, whose first elements it holds in registers; the others it reads at
 *     each step, from the L1 cache where they have room
 *     is unit k of the rows g, g + GATES, ... of the block
 *
 * A step is: columns, a barrier, units, a barrier. What a step reads of global memory is asked for
 * while the step before it computes. The matrix of backward is recurrent_kernel with each gate
 * turned over, so that there, too, neighbours read neighbours:
 *
 *     forward      column j:  sum of h[i] w[i, j]                        over i in [0, U)
 *     backward     column j:  sum of d[g U + i] w[k, g U + i]            over i in [0, U)
 *
 * and the gates' sums of backward are added by the unit, with their factors where the state is
 * dropped. The order of a sum depends on U only: a row has the same bits in any call. */
#ifndef KEEL_OPS_CUDA_RECURRENT_SEQUENCE_H
#define KEEL_OPS_CUDA_RECURRENT_SEQUENCE_H
#include "ops/cuda/_recurrent_unit.h"

/* Units of a layer. Up to SMALL a thread holds its whole column; up to MIDDLE what it does not hold
 * stays in the L1 cache; up to LARGE all of it comes from L2 at each step. Above that, one large
 * product a step is better. Calls of at most FEW rows have a multiprocessor for each; with more, a
 * block has MANY of them, so that each element of a column that it reads serves them all. */
#ifdef __CUDACC__
enum { SMALL_UNITS = 64, MIDDLE_UNITS = 128, LARGE_UNITS = 256, FEW_ROWS = 132 };
#else /* the emulator's cases are small, and go all these ways */
enum { SMALL_UNITS = 64, MIDDLE_UNITS = 68, LARGE_UNITS = 72, FEW_ROWS = 4 };
#endif
enum { MANY_ROWS = 3 }; /* an LSTM's sums of four, with what else it has, are too many registers */
/* Of a column, in registers: each of 512 threads may have 128, and each of 1024 threads 64. */
enum { SMALL_HELD = SMALL_UNITS, MIDDLE_HELD = 40, LARGE_HELD = 0 };
/* Blocks of a small layer that a multiprocessor shall have room for: of an LSTM's, two with 128
 * registers each thread, which sm_80 cannot do without spilling some. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
enum { SMALL_BLOCKS = 1 };
#else
enum { SMALL_BLOCKS = 2 };
#endif

/* The states at the ends of the steps: what a pass begins with, and where it leaves what it ends
 * with. Each [rows, U]; NULL: zeros, or nobody asks. */
template <class T> struct sequence_ends {
    const T *h, *carry;
    T *h_end, *carry_end;
    bool h_adds, carry_adds;
};

/* Where a thread is. `rows` of the block, from `row` on, exist: none for a thread too many. */
struct sequence_place {
    int j, g, k, u, rows;
    int64_t row;
};

template <class T>
static __device__ __forceinline__ sequence_place sequence_place_of(const recurrent_call<T> &o,
                                                                   int rows)
{
    sequence_place p;
    p.j = (int)threadIdx.x;
    p.u = (int)o.u;
    p.g = p.j / p.u;
    p.k = p.j - p.g * p.u;
    p.row = (int64_t)blockIdx.x * rows;
    p.rows = o.rows - p.row < rows ? (int)(o.rows - p.row) : rows;
    if (p.j >= (int)o.width) p.rows = 0;
    return p;
}

static __device__ __forceinline__ void sequence_clear(float *x, int n)
{
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) x[i] = 0;
}

template <class T>
static __device__ __forceinline__ void sequence_give(T *to, int64_t at, float x, bool adds)
{
    if (to) to[at] = to_value<T>(adds ? to_f(to[at]) + x : x);
}

/* A unit's states of row r, or their gradients: [rows, LIMIT] in shared memory. They begin with
 * what is given ... */
template <class C, int LIMIT, class T>
static __device__ __forceinline__ void
sequence_begin(const recurrent_call<T> &o, const sequence_place &p, const sequence_ends<T> &e,
               int r, float *h, float *carry, float *shown)
{
    const int64_t from = (p.row + r) * o.u + p.k;
    h[r * LIMIT + p.k] = e.h ? to_f(e.h[from]) : 0;
    if (C::STATES > 1) carry[r * LIMIT + p.k] = e.carry ? to_f(e.carry[from]) : 0;
    shown[r * LIMIT + p.k] = 0;
}

/* ... and what they end with is left. */
template <class C, int LIMIT, class T>
static __device__ __forceinline__ void
sequence_end(const recurrent_call<T> &o, const sequence_place &p, const sequence_ends<T> &e, int r,
             const float *h, const float *carry)
{
    const int64_t to = (p.row + r) * o.u + p.k;
    sequence_give(e.h_end, to, h[r * LIMIT + p.k], e.h_adds);
    if (C::STATES > 1) sequence_give(e.carry_end, to, carry[r * LIMIT + p.k], e.carry_adds);
}

/* ---- columns ----------------------------------------------------------------------------------
 */

/* The first elements of column j of m [U, width]; 0 from element U on. */
template <int HELD>
static __device__ __forceinline__ void hold_column(float held[], const float *m, int64_t width,
                                                   const sequence_place &p)
{
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < HELD; i++) held[i] = p.rows > 0 && i < p.u ? m[i * width + p.j] : 0;
}

/* Adds four elements of a column, times those of each row, to its two sums. */
template <int ROWS>
static __device__ __forceinline__ void four_of_column(float even[ROWS], float odd[ROWS], float m0,
                                                      float m1, float m2, float m3, const float *v,
                                                      int step)
{
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int r = 0; r < ROWS; r++) {
        float x[4];
        load4(x, v + r * step);
        even[r] = fmaf(m0, x[0], even[r]);
        odd[r] = fmaf(m1, x[1], odd[r]);
        even[r] = fmaf(m2, x[2], even[r]);
        odd[r] = fmaf(m3, x[3], odd[r]);
    }
}

/* The elements of a column from HELD on. Few are under way at once where there are many sums. */
template <int HELD, int ROWS>
static __device__ __forceinline__ void rest_of_column(float even[ROWS], float odd[ROWS],
                                                      const float *column, int64_t width, int u,
                                                      const float *v, int step)
{
    int i = HELD;
    const float *at = column + HELD * width;
#ifdef __CUDACC__
#pragma unroll(ROWS > 1 ? 1 : 4)
#endif
    for (; i + 4 <= u; i += 4, at += 4 * width)
        four_of_column<ROWS>(even, odd, at[0], at[width], at[2 * width], at[3 * width], v + i,
                             step);
    if (i < u)
        four_of_column<ROWS>(even, odd, at[0], i + 1 < u ? at[width] : 0,
                             i + 2 < u ? at[2 * width] : 0, 0, v + i, step);
}

/* sum[r] = that of column j times v [ROWS, U], of which a row begins every `step`, which lies in
 * shared memory and goes on with zeros. */
template <int LIMIT, int HELD, int ROWS>
static __device__ __forceinline__ void
column_sums(float sum[ROWS], const float held[], const float *m, int64_t width,
            const sequence_place &p, const float *v, int step)
{
    const int CHUNK = HELD < LIMIT ? HELD : HELD / 2; /* a small layer may need the first only */
    float even[ROWS], odd[ROWS];
    for (int r = 0; r < ROWS; r++) even[r] = odd[r] = 0;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int from = 0; from < HELD; from += CHUNK)
        if (HELD < LIMIT || from < p.u) {
#ifdef __CUDACC__
#pragma unroll
#endif
            for (int i = from; i < from + CHUNK; i += 4)
                four_of_column<ROWS>(even, odd, held[i], held[i + 1], held[i + 2], held[i + 3],
                                     v + i, step);
        }
    if constexpr (HELD < LIMIT) rest_of_column<HELD, ROWS>(even, odd, m + p.j, width, p.u, v, step);
    for (int r = 0; r < ROWS; r++) sum[r] = even[r] + odd[r];
}

/* ---- forward ----------------------------------------------------------------------------------
 */

/* A block's shared memory. A row of `gates` and `left` has GATES times LIMIT. */
template <class C, int LIMIT> struct forward_shared {
    static const int ROW = C::GATES * LIMIT;
    float *h;     /* [rows, LIMIT] states; 0 behind U, as in `left` */
    float *left;  /* [rows, GATES, LIMIT] of them, for each gate, where gates see different ones */
    float *gates; /* [rows, GATES U, which is closer together] */
    float *late;  /* [rows, LIMIT] what the last gate has of the inputs, if it has to wait */
    float *carry, *shown; /* [rows, LIMIT] */
};

/* The rows of a unit are g + i GATES, for i below: */
template <class C, int ROWS> static constexpr int TURNS = (ROWS + C::GATES - 1) / C::GATES;

template <class C, int ROWS, class T>
static __device__ __forceinline__ void read_masks(T masks[], const recurrent_call<T> &o,
                                                  const sequence_place &p, int64_t at)
{
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < TURNS<C, ROWS>; i++) {
        const int r = p.g + i * C::GATES;
        masks[i] = r < p.rows ? o.mask_of(p.row + r, at) : T();
    }
}

/* What a column has of the inputs at a step. */
template <int ROWS, class T>
static __device__ __forceinline__ void read_inputs(T x[ROWS], const recurrent_call<T> &o,
                                                   const sequence_place &p, int64_t at)
{
    for (int r = 0; r < ROWS; r++)
        x[r] = r < p.rows ? o.z[((p.row + r) * o.steps + o.time(at)) * o.width + p.j] : T();
}

/* What the gate of a column gives to each row. x: of the inputs. */
template <class C, class T, int LIMIT, int HELD, int ROWS>
static __device__ __forceinline__ void
forward_column(const recurrent_call<T> &o, const sequence_place &p,
               const forward_shared<C, LIMIT> &f, const float held[], const float *m,
               const T x[ROWS], float bias, float product_bias)
{
    const bool tail = C::HAS_TAIL && !o.reset_after && p.g == C::GATES - 1, own = o.drop || tail;
    float sum[ROWS];
    column_sums<LIMIT, HELD, ROWS>(sum, held, m, o.width, p, own ? f.left + p.g * LIMIT : f.h,
                                   own ? f.ROW : LIMIT);
    for (int r = 0; r < ROWS; r++) {
        if (r >= p.rows) break;
        const float of = to_f(x[r]) + bias;
        f.gates[r * f.ROW + p.j] = C::gate(o, p.g, of, sum[r] + product_bias);
        if (C::HAS_TAIL && p.g == C::GATES - 1) f.late[r * LIMIT + p.k] = of;
    }
}

/* The state as the gates see it: after it has changed, those before the tail. */
template <class C, class T, int LIMIT>
static __device__ __forceinline__ void drop_states(const recurrent_call<T> &o,
                                                   const sequence_place &p,
                                                   const forward_shared<C, LIMIT> &f, int r)
{
    const int head = C::HAS_TAIL && !o.reset_after ? C::GATES - 1 : C::GATES;
    for (int g = 0; o.drop && g < head; g++)
        f.left[r * f.ROW + g * LIMIT + p.k] = f.h[r * LIMIT + p.k] * o.factor(p.row + r, g, p.k);
}

/* What the gate before the tail has left of the state. */
template <class C, class T, int LIMIT>
static __device__ __forceinline__ void
reset_states(const recurrent_call<T> &o, const sequence_place &p, const forward_shared<C, LIMIT> &f)
{
    const int last = C::GATES - 1;
    for (int r = p.g; r < p.rows; r += C::GATES)
        f.left[r * f.ROW + last * LIMIT + p.k] =
            f.gates[r * f.ROW + (last - 1) * p.u + p.k] *
            (f.h[r * LIMIT + p.k] * o.factor(p.row + r, last, p.k));
}

/* A unit's rows at the end of a step. */
template <class C, class T, int LIMIT, int ROWS>
static __device__ __forceinline__ void
forward_units(const recurrent_call<T> &o, const sequence_place &p,
              const forward_shared<C, LIMIT> &f, const T masks[], T *y, int64_t at)
{
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < TURNS<C, ROWS>; i++) {
        const int r = p.g + i * C::GATES, e = r * LIMIT + p.k;
        if (r >= p.rows) break;
        float of[C::PARTS];
        for (int g = 0; g < C::GATES; g++) of[g] = f.gates[r * f.ROW + g * p.u + p.k];
        unit_forward<C>(o, { p.row + r, at, p.k }, o.counts(masks[i]), of,
                        C::HAS_TAIL ? f.late[e] : 0,
                        { f.h + e, f.carry + e, o.mask ? f.shown + e : nullptr }, y);
        drop_states<C>(o, p, f, r);
    }
}

template <class C, class T, int LIMIT, int HELD, int ROWS>
static __global__ void __launch_bounds__(C::GATES *LIMIT, LIMIT == SMALL_UNITS ? SMALL_BLOCKS : 1)
    forward_sequence_kernel(const recurrent_call<T> o, const float *__restrict__ m,
                            const sequence_ends<T> ends, T *y)
{
    SHARED(four<float>, h, ROWS * LIMIT / 4);
    SHARED(four<float>, left, ROWS * C::GATES * LIMIT / 4);
    SHARED(float, gates, ROWS *C::GATES *LIMIT);
    SHARED(float, late, C::HAS_TAIL ? ROWS *LIMIT : 1);
    SHARED(float, carry, C::STATES > 1 ? ROWS * LIMIT : 1);
    SHARED(float, shown, ROWS *LIMIT);
    const forward_shared<C, LIMIT> f = {
        reinterpret_cast<float *>(h), reinterpret_cast<float *>(left), gates, late, carry, shown
    };
    const sequence_place p = sequence_place_of(o, ROWS);
    const bool tail = C::HAS_TAIL && !o.reset_after;
    const bool last = p.rows > 0 && tail && p.g == C::GATES - 1, head = p.rows > 0 && !last;
    const float bias = o.bias && p.rows > 0 ? o.bias[p.j] : 0;
    const float product_bias = o.bias && p.rows > 0 ? o.bias[o.width + p.j] : 0;
    float held[HELD > 0 ? HELD : 1];
    T x[ROWS];
    hold_column<HELD>(held, m, o.width, p);
    sequence_clear(f.h, ROWS * LIMIT);
    sequence_clear(f.left, ROWS * C::GATES * LIMIT);
    __syncthreads();
    for (int r = p.g; r < p.rows; r += C::GATES) {
        sequence_begin<C, LIMIT>(o, p, ends, r, f.h, f.carry, f.shown);
        drop_states<C>(o, p, f, r);
    }
    read_inputs<ROWS>(x, o, p, 0);
    __syncthreads();
    for (int64_t at = 0; at < o.steps; at++) {
        T next[ROWS], masks[TURNS<C, ROWS>];
        read_masks<C, ROWS>(masks, o, p, at);
        read_inputs<ROWS>(next, o, p, at + 1 < o.steps ? at + 1 : at);
        if (head) forward_column<C, T, LIMIT, HELD, ROWS>(o, p, f, held, m, x, bias, product_bias);
        __syncthreads();
        if (tail) {
            reset_states<C>(o, p, f);
            __syncthreads();
            if (last)
                forward_column<C, T, LIMIT, HELD, ROWS>(o, p, f, held, m, x, bias, product_bias);
            __syncthreads();
        }
        forward_units<C, T, LIMIT, ROWS>(o, p, f, masks, y, at);
        for (int r = 0; r < ROWS; r++) x[r] = next[r];
        __syncthreads();
    }
    for (int r = p.g; r < p.rows; r += C::GATES)
        sequence_end<C, LIMIT>(o, p, ends, r, f.h, f.carry);
}

/* ---- backward ---------------------------------------------------------------------------------
 */

template <class C, int LIMIT> struct backward_shared {
    static const int ROW = C::GATES * LIMIT;
    float *d;     /* [rows, GATES, LIMIT] gradients of what the gates were given; 0 behind U */
    float *parts; /* [rows, GATES U] the products of one gate each */
    float *dh, *dc, *shown; /* [rows, LIMIT] as in unit_gradients */
};

template <class C, class T, int LIMIT, int HELD, int ROWS>
static __device__ __forceinline__ void
backward_column(const recurrent_call<T> &o, const sequence_place &p,
                const backward_shared<C, LIMIT> &b, const float held[], const float *m)
{
    float sum[ROWS];
    column_sums<LIMIT, HELD, ROWS>(sum, held, m, o.width, p, b.d + p.g * LIMIT, b.ROW);
    for (int r = 0; r < ROWS; r++)
        if (r < p.rows) b.parts[r * b.ROW + p.j] = sum[r];
}

template <class C, class T, int ROWS>
static __device__ __forceinline__ void read_past(unit_past<C, T> x[], const recurrent_call<T> &o,
                                                 const sequence_place &p, const T *dy, int64_t at)
{
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < TURNS<C, ROWS>; i++) {
        const int r = p.g + i * C::GATES;
        if (r < p.rows) x[i] = unit_past_of<C>(o, { p.row + r, at, p.k }, dy);
    }
}

/* Of a GRU's tail the gate before the last has its gradient later. */
template <class C, class T, int LIMIT, int ROWS>
static __device__ __forceinline__ void
backward_units(const recurrent_call<T> &o, const sequence_place &p,
               const backward_shared<C, LIMIT> &b, unit_past<C, T> x[], T *dz, bool adds,
               int64_t at)
{
    const bool tail = C::HAS_TAIL && !o.reset_after;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < TURNS<C, ROWS>; i++) {
        const int r = p.g + i * C::GATES, e = r * LIMIT + p.k;
        if (r >= p.rows) break;
        unit_backward<C>(o, { p.row + r, at, p.k }, &x[i], { b.dh + e, b.dc + e, b.shown + e }, dz,
                         adds);
        for (int g = 0; g < C::GATES; g++)
            if (!tail || g != C::GATES - 2) b.d[r * b.ROW + g * LIMIT + p.k] = x[i].of[g];
    }
}

template <class C, class T, int LIMIT, int ROWS>
static __device__ __forceinline__ void
backward_tail(const recurrent_call<T> &o, const sequence_place &p,
              const backward_shared<C, LIMIT> &b, const unit_past<C, T> x[], float *ddrop, T *dz,
              bool adds, int64_t at)
{
    const int last = C::GATES - 1;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < TURNS<C, ROWS>; i++) {
        const int r = p.g + i * C::GATES;
        if (r >= p.rows) break;
        b.d[r * b.ROW + (last - 1) * LIMIT + p.k] = C::tail_back(
            o, { p.row + r, at, p.k }, o.counts(x[i].mask), x[i].before, x[i].of[last - 1],
            b.parts[r * b.ROW + last * p.u + p.k], b.dh + r * LIMIT + p.k, ddrop, dz, adds);
    }
}

template <class C, class T, int LIMIT, int ROWS>
static __device__ __forceinline__ void
backward_products(const recurrent_call<T> &o, const sequence_place &p,
                  const backward_shared<C, LIMIT> &b, const unit_past<C, T> x[], float *ddrop,
                  int64_t at)
{
    const int head = C::HAS_TAIL && !o.reset_after ? C::GATES - 1 : C::GATES;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i < TURNS<C, ROWS>; i++) {
        const int r = p.g + i * C::GATES;
        if (r >= p.rows) break;
        unit_products_back(o, { p.row + r, at, p.k }, x[i].before, b.parts + r * b.ROW + p.k, p.u,
                           head, b.dh + r * LIMIT + p.k, ddrop);
    }
}

/* turned: see turn_kernel. ddrop: as in unit_products_back. */
template <class C, class T, int LIMIT, int HELD, int ROWS>
static __global__ void __launch_bounds__(C::GATES *LIMIT, LIMIT == SMALL_UNITS ? SMALL_BLOCKS : 1)
    backward_sequence_kernel(const recurrent_call<T> o, const float *__restrict__ turned,
                             const sequence_ends<T> ends, const T *dy, T *dz, bool adds,
                             float *ddrop)
{
    SHARED(four<float>, d, ROWS * C::GATES * LIMIT / 4);
    SHARED(float, parts, ROWS *C::GATES *LIMIT);
    SHARED(float, dh, ROWS *LIMIT);
    SHARED(float, dc, C::STATES > 1 ? ROWS * LIMIT : 1);
    SHARED(float, shown, ROWS *LIMIT);
    const backward_shared<C, LIMIT> b = { reinterpret_cast<float *>(d), parts, dh, dc, shown };
    const sequence_place p = sequence_place_of(o, ROWS);
    const bool tail = C::HAS_TAIL && !o.reset_after;
    const bool late = p.rows > 0 && tail && p.g == C::GATES - 2, early = p.rows > 0 && !late;
    float held[HELD > 0 ? HELD : 1];
    unit_past<C, T> x[TURNS<C, ROWS>], next[TURNS<C, ROWS>];
    hold_column<HELD>(held, turned, o.width, p);
    sequence_clear(b.d, ROWS * C::GATES * LIMIT);
    __syncthreads();
    for (int r = p.g; r < p.rows; r += C::GATES)
        sequence_begin<C, LIMIT>(o, p, ends, r, b.dh, b.dc, b.shown);
    read_past<C, T, ROWS>(x, o, p, dy, o.steps - 1);
    for (int64_t at = o.steps - 1; at >= 0; at--) {
        backward_units<C, T, LIMIT, ROWS>(o, p, b, x, dz, adds, at);
        read_past<C, T, ROWS>(next, o, p, dy, at > 0 ? at - 1 : 0);
        __syncthreads();
        if (early) backward_column<C, T, LIMIT, HELD, ROWS>(o, p, b, held, turned);
        __syncthreads();
        if constexpr (C::HAS_TAIL)
            if (tail) {
                backward_tail<C, T, LIMIT, ROWS>(o, p, b, x, ddrop, dz, adds, at);
                __syncthreads();
                if (late) backward_column<C, T, LIMIT, HELD, ROWS>(o, p, b, held, turned);
                __syncthreads();
            }
        backward_products<C, T, LIMIT, ROWS>(o, p, b, x, ddrop, at);
        for (int i = 0; i < TURNS<C, ROWS>; i++) x[i] = next[i];
    }
    for (int r = p.g; r < p.rows; r += C::GATES) sequence_end<C, LIMIT>(o, p, ends, r, b.dh, b.dc);
}

/* turned [U, gates, U] = w [U, gates, U] with its outer dims exchanged in each gate. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    turn_kernel(float *turned, const float *w, int64_t u, int64_t width)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < u * width; t += step) {
        int64_t rest = t;
        const int64_t k = take(&rest, u), g = take(&rest, width / u);
        turned[t] = w[k * width + g * u + rest];
    }
}

/* ---- launches ---------------------------------------------------------------------------------
 */

template <class T> static inline unsigned sequence_threads(const recurrent_call<T> &o)
{
    return (unsigned)((o.width + GPU_WARP - 1) / GPU_WARP * GPU_WARP);
}

/* What a kernel is made for: units at most, elements of a column in registers, rows of a block. */
template <int LIMIT, int HELD, int ROWS> struct sequence_size {
};

/* Calls launch(size) with the size that fits the units and rows of a call. */
template <class T, class L> static void sequence_by_size(const recurrent_call<T> &o, L launch)
{
    const bool few = o.rows <= FEW_ROWS;
    if (o.u <= SMALL_UNITS)
        launch(sequence_size<SMALL_UNITS, SMALL_HELD, 1>());
    else if (o.u <= MIDDLE_UNITS && few)
        launch(sequence_size<MIDDLE_UNITS, MIDDLE_HELD, 1>());
    else if (o.u <= MIDDLE_UNITS)
        launch(sequence_size<MIDDLE_UNITS, MIDDLE_HELD, MANY_ROWS>());
    else if (few)
        launch(sequence_size<LARGE_UNITS, LARGE_HELD, 1>());
    else
        launch(sequence_size<LARGE_UNITS, LARGE_HELD, MANY_ROWS>());
}

template <class C, class T, int LIMIT, int HELD, int ROWS>
static void forward_sequence_by(const keel_call *c, const recurrent_call<T> &o,
                                const sequence_ends<T> &e, sequence_size<LIMIT, HELD, ROWS>)
{
    cuda_launch(c, forward_sequence_kernel<C, T, LIMIT, HELD, ROWS>,
                (unsigned)((o.rows + ROWS - 1) / ROWS), sequence_threads(o), 0, o,
                static_cast<const float *>(c->weight[0]), e, cuda_out<T>(c));
}

template <class C, class T> static void forward_sequence(const keel_call *c)
{
    const recurrent_call<T> o = recurrent_call_of<C, T>(c);
    const keel_steps s = keel_recurrent_steps(c->node, C::cell());
    const bool gives = c->node->n_out > 1;
    sequence_ends<T> e = {};
    if (s.state >= 0) e.h = cuda_in<T>(c, s.state);
    e.carry = o.first_carry;
    if (gives) e.h_end = cuda_out<T>(c, 1);
    if (gives && C::STATES > 1) e.carry_end = cuda_out<T>(c, 2);
    sequence_by_size(o, [&](auto size) { forward_sequence_by<C>(c, o, e, size); });
}

template <class C, class T, int LIMIT, int HELD, int ROWS>
static void backward_sequence_by(const keel_call *c, const recurrent_call<T> &o,
                                 const sequence_ends<T> &e, sequence_size<LIMIT, HELD, ROWS>,
                                 const float *turned, float *ddrop)
{
    cuda_launch(c, backward_sequence_kernel<C, T, LIMIT, HELD, ROWS>,
                (unsigned)((o.rows + ROWS - 1) / ROWS), sequence_threads(o), 0, o, turned, e,
                cuda_out_grad<T>(c), cuda_in_grad<T>(c, 0), c->in_adds[0], ddrop);
}

/* turned: room for a matrix like recurrent_kernel. */
template <class C, class T>
static void backward_sequence(const keel_call *c, const recurrent_call<T> &o, float *turned,
                              float *ddrop)
{
    const keel_steps s = keel_recurrent_steps(c->node, C::cell());
    const bool given = c->node->n_out > 1;
    sequence_ends<T> e = {};
    if (given) e.h = cuda_out_grad<T>(c, 1);
    if (given && C::STATES > 1) e.carry = cuda_out_grad<T>(c, 2);
    if (s.state >= 0) e.h_end = cuda_in_grad<T>(c, s.state), e.h_adds = c->in_adds[s.state];
    if (s.state >= 0 && C::STATES > 1)
        e.carry_end = cuda_in_grad<T>(c, s.state + 1), e.carry_adds = c->in_adds[s.state + 1];
    cuda_launch(c, turn_kernel, cuda_blocks(o.u * o.width), CUDA_THREADS, 0, turned,
                static_cast<const float *>(c->weight[0]), o.u, o.width);
    sequence_by_size(o, [&](auto size) { backward_sequence_by<C>(c, o, e, size, turned, ddrop); });
}

#endif
