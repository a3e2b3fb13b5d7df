/* See ops/gru.c and _recurrent.h. Without reset_after the last gate is a tail: its product is of
 * the state that the reset gate has left. */
#include "ops/cuda/_recurrent.h"

namespace
{
/* left [rows, U] = the state as the last gate sees it. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    reset_kernel(const recurrent_call<T> o, const forward_room f, int64_t at)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < o.rows * o.u;
         t += step) {
        int64_t row = t;
        const int64_t k = take(&row, o.u);
        const float x = to_f(o.z[(row * o.steps + o.time(at)) * o.width + o.u + k]);
        const float r = gate_value(o.recurrent, x + f.sums[row * o.width + o.u + k]);
        f.left[t] = r * (f.h[t] * o.factor(row, 2, k));
    }
}

/* From what the last gate multiplies, whose gradient is in `parts`, to the reset gate. */
template <class C, class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    reset_back_kernel(const recurrent_call<T> o, const backward_room b, T *dz, bool adds,
                      int64_t at)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < o.rows * o.u;
         t += step) {
        int64_t row = t;
        const int64_t k = take(&row, o.u), place = row * o.steps + at;
        C::tail_back(o, { row, at, k }, o.counts(o.mask_of(row, at)), o.before[place * o.u + k],
                     o.of[place * o.all + o.u + k], b.parts[t], b.dh + t, b.ddrop, dz, adds);
    }
}

/* db [2, 3 U] = sums [4 U] of z, r, the product's last gate, and its input; or +=. */
__global__ void __launch_bounds__(CUDA_THREADS)
    bias_kernel(float *db, const float *sums, int64_t u, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; k < 6 * u; k += step) {
        const float sum = sums[k < 2 * u ? k : k < 3 * u ? k + u : k - 3 * u];
        db[k] = adds ? db[k] + sum : sum;
    }
}

struct gru {
    static const int GATES = 3, PARTS = 4, STATES = 1;
    static const bool HAS_TAIL = true;

    static const keel_cell *cell()
    {
        return &keel_cell_gru;
    }

    template <class T>
    static __device__ __forceinline__ float gate(const recurrent_call<T> &o, int g, float x,
                                                 float product)
    {
        return g == 2 ? product : gate_value(o.recurrent, x + product);
    }

    template <class T>
    static __device__ __forceinline__ void forward(const recurrent_call<T> &o, float x,
                                                   float before, float dropped, float *of, float *h,
                                                   float *)
    {
        const float product = of[2];
        of[3] = o.reset_after ? product : of[1] * dropped;
        of[2] = gate_value(o.activation, x + (o.reset_after ? of[1] * of[3] : product));
        *h = of[0] * before + (1 - of[0]) * of[2];
    }

    template <class T>
    static __device__ __forceinline__ void backward(const recurrent_call<T> &o, float *of,
                                                    float before, float, float, float *dh, float *,
                                                    float *d)
    {
        const float inner = of[3];
        d[0] = *dh * (before - of[2]) * gate_slope(o.recurrent, of[0]);
        d[2] = *dh * (1 - of[0]) * gate_slope(o.activation, of[2]);
        *dh *= of[0];
        of[0] = d[0];
        of[2] = d[2];
        if (!o.reset_after) return; /* of[1] is for the tail */
        d[1] = d[2] * inner * gate_slope(o.recurrent, of[1]);
        of[2] = d[2] * of[1];
        of[1] = d[1];
        of[3] = d[2];
    }

    /* The gradient of the reset gate r, and those of the state and of its factors, from `inner`,
     * that of what the last gate multiplies. */
    template <class T>
    static __device__ __forceinline__ float
    tail_back(const recurrent_call<T> &o, const unit_place &p, bool counts, float before, float r,
              float inner, float *dh, float *ddrop, T *dz, bool adds)
    {
        const float factor = o.factor(p.row, 2, p.k); /* r: of a masked step 0 */
        const float d = counts ? inner * before * factor * gate_slope(o.recurrent, r) : 0;
        o.of[(p.row * o.steps + p.at) * o.all + o.u + p.k] = d;
        *dh += inner * r * factor;
        if (ddrop) ddrop[p.row * o.width + 2 * o.u + p.k] += inner * r * before;
        if (!dz) return d;
        T *to = dz + (p.row * o.steps + o.time(p.at)) * o.width + o.u + p.k;
        *to = to_value<T>(adds ? to_f(*to) + d : d);
        return d;
    }

    template <class T>
    static bool tail_forward(const keel_call *c, const recurrent_call<T> &o, const forward_room &f,
                             int64_t at)
    {
        const recurrent_plan *pl = static_cast<const recurrent_plan *>(c->plan);
        const float *w = static_cast<const float *>(c->weight[0]) + 2 * o.u;
        cuda_launch(c, reset_kernel<T>, cuda_blocks(o.rows * o.u), CUDA_THREADS, 0, o, f, at);
        return cuda_product_run(c, pl->tail, f.left, w, nullptr, f.sums + 2 * o.u, false,
                                c->scratch);
    }

    template <class T>
    static bool tail_backward(const keel_call *c, const recurrent_call<T> &o,
                              const backward_room &b, int64_t at)
    {
        const recurrent_plan *pl = static_cast<const recurrent_plan *>(c->plan);
        const float *w = static_cast<const float *>(c->weight[0]) + 2 * o.u;
        if (!cuda_product_run(c, pl->tail, o.of + at * o.all + 2 * o.u, w, nullptr, b.parts, false,
                              c->scratch))
            return false;
        cuda_launch(c, reset_back_kernel<gru, T>, cuda_blocks(o.rows * o.u), CUDA_THREADS, 0, o, b,
                    cuda_in_grad<T>(c, 0), c->in_adds[0], at);
        return true;
    }

    static int64_t bias_scratch(const keel_prepare *p)
    {
        const int64_t all = 4 * p->node->weight[0].shape.dim[0];
        if (p->node->n_weight < 2) return 0;
        return cuda_piece(all * (int64_t)sizeof(float)) +
               cuda_places_scratch(p->rows * p->node->in[0].shape.dim[0], all);
    }

    template <class T> static void bias_gradient(const keel_call *c, const recurrent_call<T> &o)
    {
        if (c->node->n_weight < 2 || !c->weight_grad[1]) return;
        float *sums = room_of(c, ROOM_BIAS);
        places_sum(c, sums, static_cast<const float *>(o.of), o.rows * o.steps, o.all, false,
                   reinterpret_cast<char *>(sums) + cuda_piece(o.all * (int64_t)sizeof(float)));
        cuda_launch(c, bias_kernel, cuda_blocks(6 * o.u), CUDA_THREADS, 0,
                    static_cast<float *>(c->weight_grad[1]), static_cast<const float *>(sums), o.u,
                    c->weight_adds);
    }
};
} // namespace

RECURRENT_KERNEL(gru, gru);
