/* See ops/numbers.c. The numbers lie with the host, so they travel as parameters of launches, some
 * at a time: a graph keeps them, and nothing is copied. A thread has one number of several rows. */
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/numbers.h"
}

namespace
{
/* Parameters of a launch have room for 4096 bytes. The emulator takes several turns of few. */
#ifdef __CUDACC__
const int SOME = 960;
const int ROWS = 8; /* of a thread */
#else
const int SOME = 4;
const int ROWS = 3;
#endif

struct some_numbers {
    float at[SOME];
    int n;
};

/* y: where the first of them goes in the first row; count: of a row */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const some_numbers some, int64_t count, int64_t rows, int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t part = t;
        const int64_t i = take(&part, some.n), first = part * ROWS;
        const T x = to_value<T>(some.at[i]);
        UNROLL
        for (int r = 0; r < ROWS; r++)
            if (first + r < rows) y[(first + r) * count + i] = x;
    }
}

template <class T> void forward(const keel_call *c)
{
    const double *at = cuda_args<keel_numbers_args>(c)->at;
    const int64_t count = keel_row_count(&c->node->out[0]);
    for (int64_t first = 0; first < count; first += SOME) {
        some_numbers some = {};
        some.n = (int)(count - first < SOME ? count - first : SOME);
        for (int i = 0; i < some.n; i++) some.at[i] = (float)at[first + i];
        const int64_t all = some.n * ((c->rows + ROWS - 1) / ROWS);
        cuda_launch(c, forward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, cuda_out<T>(c) + first,
                    some, count, c->rows, all);
    }
}

template <class T> void backward(const keel_call *c)
{
    no_gradient<T>(c, 0);
}
} // namespace

MOVE_KERNEL(numbers);
