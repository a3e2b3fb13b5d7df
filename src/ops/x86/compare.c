/* Comparisons: see ops/compare.c. */
#define BINARY_FORWARD_ONLY
#include "ops/x86/_binary.h"

/* 1 or 0 by how two numbers are to each other; the last is for those of which one is NaN. */
static inline vf value(const void *args, vf a, vf b)
{
    enum { ABOVE, BELOW, SAME, NEITHER, WAYS };
    static const float holds[][WAYS] = {
        [KEEL_EQUAL] = { [SAME] = 1 },
        [KEEL_NOT_EQUAL] = { [ABOVE] = 1, [BELOW] = 1, [NEITHER] = 1 },
        [KEEL_LESS] = { [BELOW] = 1 },
        [KEEL_LESS_EQUAL] = { [BELOW] = 1, [SAME] = 1 },
        [KEEL_GREATER] = { [ABOVE] = 1 },
        [KEEL_GREATER_EQUAL] = { [ABOVE] = 1, [SAME] = 1 },
    };
    const float *of = holds[((const keel_compare_args *)args)->is];
    const vf same = vf_choose(vf_equal(a, b), vf_set(of[SAME]), vf_set(of[NEITHER]));
    const vf below = vf_choose(vf_greater(b, a), vf_set(of[BELOW]), same);
    return vf_choose(vf_greater(a, b), vf_set(of[ABOVE]), below);
}

#define VALUE_FILE "ops/x86/_binary.h"
#include "ops/x86/_values.h"

KEEL_USES_OP(compare);

const keel_kernel VECTOR_KERNEL(compare) = {
    VECTOR_HEAD(compare, binary_prepare),
    .run = { [KEEL_FORWARD] = forward_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16 },
};
