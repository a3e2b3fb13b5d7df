/* See layers/activity.c. A row's term has a warp or, where it is long, a block; all sums are in
 * double, as there. */
#include "ops/cuda/_lines.h"
#include "ops/cuda/_numbers.h"
extern "C" {
#include "layers/activity.h"
extern const keel_kernel keel_kernel_activity_cuda;
}

namespace
{
struct row_term {
    double share, l1, l2; /* of a sum, of sizes and of squares */
};

template <bool LONG>
__global__ void __launch_bounds__(CUDA_THREADS)
    term_kernel(double *to, float *grad, const float *values, int64_t n, int64_t rows,
                const row_term a, const keel_step_facts *step, bool adds)
{
    typedef line_threads<LONG> threads;
    SHARED(double, room, 33);
    const double scale = (step->loss_seed ? step->loss_seed[0] : 1) / (double)step->rows;
    const float g0 = (float)(scale * a.share), g1 = (float)(scale * a.l1);
    const float g2 = (float)(scale * 2 * a.l2);
    for (int64_t row = threads::first_line(); row < rows; row += threads::step()) {
        const float *x = values + row * n;
        float *dx = grad ? grad + row * n : nullptr;
        double sum = 0;
        for (int64_t k = threads::number(); k < n; k += threads::WIDTH) {
            const double v = x[k];
            sum += a.share * v + a.l1 * fabs(v) + a.l2 * (v * v);
            if (!dx) continue;
            const float g = g0 + g1 * (float)((x[k] > 0) - (x[k] < 0)) + g2 * x[k];
            dx[k] = adds ? dx[k] + g : g;
        }
        sum = threads::fold(sum, room, gpu_plus());
        if (threads::number() == 0) to[row] = sum;
    }
}

void run(const keel_call *c)
{
    const keel_activity *a = cuda_args<keel_activity>(c);
    const int64_t n = keel_row_count(&c->node->in[0]);
    const bool is_long = n > LINE_LONG;
    float *grad = c->in_grad ? cuda_in_grad<float>(c, 0) : nullptr;
    const row_term term = { n ? a->mean / (double)n : 0, a->l1, a->l2 };
    cuda_launch(c, is_long ? term_kernel<true> : term_kernel<false>, line_blocks(c->rows, is_long),
                CUDA_THREADS, 0, c->partial, grad, cuda_in<float>(c, 0), n, c->rows, term, c->facts,
                grad && c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    return cuda_prepare(p, 0);
}
} // namespace

const keel_kernel keel_kernel_activity_cuda = { .op = &keel_activity_op,
                                                .name = "cuda",
                                                .prepare = prepare,
                                                .run = { run, run, nullptr, nullptr, nullptr } };
