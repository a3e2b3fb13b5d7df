/* See ops/one_of.c. Each choice runs on all rows, by the kernel of its op, and the rows that have
 * drawn it are taken: so a row draws what it would draw by itself, and no row waits for the host.
 * Ops without a kernel for the pass leave it to the reference. */
#include "ops/cuda/_chance.h"
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/one_of.h"
extern const keel_kernel keel_kernel_warp_cuda, keel_kernel_recolor_cuda, keel_kernel_smooth_cuda,
    keel_kernel_equalize_cuda;
}

namespace
{
const keel_kernel *kernel_of(const keel_op *op)
{
    const keel_kernel *const all[] = { &keel_kernel_warp_cuda, &keel_kernel_recolor_cuda,
                                       &keel_kernel_smooth_cuda, &keel_kernel_equalize_cuda };
    for (const keel_kernel *k : all)
        if (k->op == op) return k;
    return nullptr;
}

template <class T> keel_run run_of(const keel_kernel *k, keel_pass pass)
{
    return std::is_same<T, float>::value  ? k->run[pass]
           : std::is_same<T, bf16>::value ? k->narrow[pass]
                                          : k->half[pass];
}

/* The node as if it were of that op alone. */
keel_node node_of(const keel_node *n, const keel_one_of_choice &choice)
{
    keel_node one = *n;
    one.op = choice.op;
    one.args = &choice.args;
    return one;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1)
    choices_kernel(int *to, const cuda_chance chance, const keel_range which, unsigned first,
                   int choices, int64_t rows)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows; t += step) {
        const int k = (int)cuda_draw(chance, t, first, which);
        to[t] = k < choices ? k : choices - 1;
    }
}

/* The rows that have drawn choice k; drawn NULL: all. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    select_kernel(T *to, const T *from, const int *drawn, int k, int64_t count, int64_t all,
                  bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        take(&row, count);
        if (!drawn || drawn[row] == k) move_put(to + t, from + t, 1, adds);
    }
}

const int64_t ALIGN = 256;

int64_t rounded(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Scratch: what a row has drawn, what a choice makes of all rows, and the choice's own. */
struct rooms {
    int *drawn;
    void *made, *own;
};

rooms rooms_of(const keel_call *c, size_t element)
{
    char *at = static_cast<char *>(c->scratch);
    char *made = at + rounded(c->rows * (int64_t)sizeof(int));
    return { reinterpret_cast<int *>(at), made, made + rounded(cuda_count(c) * (int64_t)element) };
}

template <class T> void run(const keel_call *c, keel_pass pass, T *to, bool adds)
{
    const keel_one_of_args *a = cuda_args<keel_one_of_args>(c);
    const int64_t count = keel_row_count(&c->node->in[0]), all = cuda_count(c);
    const rooms r = rooms_of(c, sizeof(T));
    const bool forward = pass == KEEL_FORWARD;
    cuda_launch(c, choices_kernel, cuda_blocks(c->rows), CUDA_THREADS, 0, r.drawn,
                cuda_chance_of(c), a->which, a->first, a->n, c->rows);
    for (int k = 0; k < a->n; k++) {
        const T *from = forward ? cuda_in<T>(c, 0) : cuda_out_grad<T>(c);
        bool rest = adds; /* is still to be added */
        if (a->choice[k].op) {
            const keel_node node = node_of(c->node, a->choice[k]);
            keel_call one = *c;
            void *made = r.made;
            if (adds) { /* by the op, so that the sum is rounded once */
                cuda_launch(c, select_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0,
                            static_cast<T *>(made), to, nullptr, k, count, all, false);
                rest = false;
            }
            one.node = &node;
            one.scratch = r.own;
            if (forward)
                one.out = &made;
            else
                one.in_grad = &made, one.in_adds = &adds;
            run_of<T>(kernel_of(node.op), pass)(&one);
            from = static_cast<const T *>(made);
        }
        cuda_launch(c, select_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, to, from, r.drawn, k,
                    count, all, rest);
    }
}

template <class T> void forward(const keel_call *c)
{
    run<T>(c, KEEL_FORWARD, cuda_out<T>(c), false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0]) run<T>(c, KEEL_BACKWARD, cuda_in_grad<T>(c, 0), c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_one_of_args *a = static_cast<const keel_one_of_args *>(p->node->args);
    const int64_t made = p->rows * keel_row_count(&p->node->out[0]) * (int64_t)sizeof(float);
    int64_t own = 0;
    for (int k = 0; k < a->n; k++) {
        if (!a->choice[k].op) continue;
        const keel_node node = node_of(p->node, a->choice[k]);
        const keel_kernel *kernel = kernel_of(node.op);
        keel_prepare one = *p;
        one.node = &node;
        one.scratch = 0;
        if (!kernel || !kernel->run[p->pass]) return KEEL_EUNSUP;
        const keel_status s = kernel->prepare(&one);
        if (s != KEEL_OK) return s;
        own = one.scratch > own ? one.scratch : own;
    }
    return cuda_prepare(p, rounded(p->rows * (int64_t)sizeof(int)) + rounded(made) + own);
}
} // namespace

CUDA_KERNEL(one_of) = { .op = &keel_op_one_of,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
