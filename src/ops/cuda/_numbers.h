/* Arrays of any type: what a kernel does with each is chosen by the type on the host. */
#ifndef KEEL_OPS_CUDA_NUMBERS_H
#define KEEL_OPS_CUDA_NUMBERS_H
#include "ops/cuda/_kernel.h"

/* Calls f(static_cast<const X *>(x)) for the type; false: kernels do not know it. */
template <class F> static bool with_type(keel_dtype type, const void *x, F f)
{
    switch ((int)type) {
    case KEEL_FLOAT32:
        f(static_cast<const float *>(x));
        return true;
    case (int)KEEL_BFLOAT16:
        f(static_cast<const bf16 *>(x));
        return true;
    case (int)KEEL_FLOAT16:
        f(static_cast<const f16 *>(x));
        return true;
    case KEEL_UINT8:
    case KEEL_BOOL:
        f(static_cast<const uint8_t *>(x));
        return true;
    case KEEL_INT32:
        f(static_cast<const int32_t *>(x));
        return true;
    case KEEL_INT64:
        f(static_cast<const int64_t *>(x));
        return true;
    default:
        return false;
    }
}

static inline bool knows_type(keel_dtype type)
{
    return with_type(type, nullptr, [](const auto *) {});
}

#endif
