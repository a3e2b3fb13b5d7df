/* See _unit.h. */
#include "layers/normalization/_unit.h"
#include "ops/args.h"

keel_status keel_emit_unit(keel_emit *e, const bool over[KEEL_RANK_MAX], double least,
                           keel_value *x)
{
    const keel_binary_args plain = { 0 }, square = { .constant = least * least };
    keel_reduce_args sum = { .to = KEEL_REDUCE_SUM, .keepdims = true };
    keel_value both[2] = { *x };
    for (int d = 0; d < KEEL_RANK_MAX; d++) sum.over[d] = over[d];
    KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, x, 1, &both[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &sum, &both[1], 1, &both[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &square, &both[1], 1, &both[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_rsqrt, NULL, &both[1], 1, &both[1]));
    return keel_emit_on(e, &keel_op_multiply, &plain, both, 2, x);
}
