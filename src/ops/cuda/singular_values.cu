/* See ops/singular_values.c. */
#include "ops/cuda/_orthogonal.h"

namespace
{
/* How many values are in front of value k, from the largest on; of equal ones the first. */
__device__ __forceinline__ int64_t place_of(const double *value, int64_t n, int64_t k)
{
    int64_t place = 0;
    for (int64_t i = 0; i < n; i++)
        place += value[i] > value[k] || (value[i] == value[k] && i < k) ? 1 : 0;
    return place;
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, double *scratch, const keel_tall t)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < t.matrices; m += threads::step()) {
        const orthogonal o = orthogonal_at(scratch, t, m);
        orthogonal_of<threads>(o, x + m * t.m * t.n, t, room);
        for (int64_t k = threads::number(); k < t.n; k += WIDTH)
            y[m * t.n + place_of(o.value, t.n, k)] = to_value<T>((float)o.value[k]);
    }
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *x, const T *dy, double *scratch, const keel_tall t, bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < t.matrices; m += threads::step()) {
        const orthogonal o = orthogonal_at(scratch, t, m);
        orthogonal_of<threads>(o, x + m * t.m * t.n, t, room);
        for (int64_t k = threads::number(); k < t.n; k += WIDTH) {
            const double g = to_f(dy[m * t.n + place_of(o.value, t.n, k)]);
            o.more[k] = o.value[k] > 0 ? g / o.value[k] : 0;
        }
        threads::meet();
        for (int64_t e = threads::number(); e < t.m * t.n; e += WIDTH) {
            int64_t i = e;
            const int64_t j = take(&i, t.n);
            double g = 0;
            for (int64_t k = 0; k < t.n; k++) g += o.more[k] * o.a[i * t.n + k] * o.v[j * t.n + k];
            T *to = dx + m * t.m * t.n + tall_at(t, i, j);
            *to = to_value<T>((float)(adds ? to_f(*to) + g : g));
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    orthogonal_launch(
        c, t, [](auto width) { return forward_kernel<width(), T>; }, cuda_out<T>(c),
        cuda_in<T>(c, 0), static_cast<double *>(c->scratch), t);
}

template <class T> void backward(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    if (!c->in_grad[0]) return;
    orthogonal_launch(
        c, t, [](auto width) { return backward_kernel<width(), T>; }, cuda_in_grad<T>(c, 0),
        cuda_in<T>(c, 0), cuda_out_grad<T>(c), static_cast<double *>(c->scratch), t, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_tall t = keel_tall_of(&p->node->in[0], p->rows);
    return cuda_prepare(p, t.matrices * orthogonal_room(t) * (int64_t)sizeof(double));
}
} // namespace

CUDA_KERNEL(singular_values) = { .op = &keel_op_singular_values,
                                 .name = "cuda",
                                 .prepare = prepare,
                                 .run = { forward<float>, backward<float> },
                                 .narrow = { forward<bf16>, backward<bf16> },
                                 .half = { forward<f16>, backward<f16> } };
