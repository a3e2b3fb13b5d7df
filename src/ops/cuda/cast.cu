/* See ops/cast.c. */
#include "ops/cuda/_numbers.h"

namespace
{
template <class To, class From>
__global__ void __launch_bounds__(CUDA_THREADS)
    cast_kernel(To *to, const From *from, int64_t count, bool wide, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; 4 * t < count; t += step) {
        const int64_t n = count - 4 * t;
        float x[4], old[4];
        load_some(x, from + 4 * t, n, wide);
        if (adds) load_some(old, to + 4 * t, n, wide);
        for (int e = 0; adds && e < 4; e++) x[e] += old[e];
        store_some(to + 4 * t, x, n, wide);
    }
}

template <class To>
void cast_to(const keel_call *c, To *to, const void *from, keel_dtype type, bool adds)
{
    const int64_t count = cuda_count(c);
    with_type(type, from, [&](const auto *x) {
        typedef std::remove_cv_t<std::remove_pointer_t<decltype(x)>> From;
        cuda_launch(c, cast_kernel<To, From>, cuda_blocks((count + 3) / 4), CUDA_THREADS, 0, to, x,
                    count, wide4(to) && wide4(x), adds);
    });
}

void cast(const keel_call *c, void *to, keel_dtype to_type, const void *from, keel_dtype type,
          bool adds)
{
    if (to_type == KEEL_BFLOAT16)
        cast_to(c, static_cast<bf16 *>(to), from, type, adds);
    else if (to_type == KEEL_FLOAT16)
        cast_to(c, static_cast<f16 *>(to), from, type, adds);
    else
        cast_to(c, static_cast<float *>(to), from, type, adds);
}

void forward(const keel_call *c)
{
    cast(c, c->out[0], c->node->out[0].dtype, c->in[0], c->node->in[0].dtype, false);
}

void backward(const keel_call *c)
{
    if (c->in_grad[0])
        cast(c, c->in_grad[0], c->node->in[0].dtype, c->out_grad[0], c->node->out[0].dtype,
             c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_dtype to = p->node->out[0].dtype;
    if (!knows_type(p->node->in[0].dtype) || (to != KEEL_FLOAT32 && !keel_dtype_is_narrow(to)))
        return KEEL_EUNSUP;
    return cuda_always(p);
}
} // namespace

CUDA_KERNEL(cast) = {
    .op = &keel_op_cast, .name = "cuda", .prepare = prepare, .run = { forward, backward }
};
