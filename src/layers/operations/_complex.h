/* Complex numbers, which Keras has as two values, and Keel's ops as pairs along the last dim. */
#ifndef KEEL_LAYERS_OPERATIONS_COMPLEX_H
#define KEEL_LAYERS_OPERATIONS_COMPLEX_H
#include "layers/operations/_values.h"
#include "ops/fourier.h"

/* The two values of the call as one; a value as two. */
static inline keel_status complex_of(keel_emit *e, keel_value *out)
{
    const keel_axis_args last = { .axis = -1 };
    keel_value part[2];
    if (e->n_in != 2)
        return keel_fail(KEEL_EUNSUP, "it needs two values of the model: real, imaginary");
    const keel_shape in = keel_emit_in(e, 0)->shape;
    if (in.rank < 1 || in.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "rows of %d dims", in.rank);
    const keel_shape one = keel_shape_with_one(in, in.rank);
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_view(e, &one, e->in[i], &part[i]));
    return keel_emit_on(e, &keel_op_concatenate, &last, part, 2, out);
}

static inline keel_status parts_of_complex(keel_emit *e, keel_value x, keel_value out[2])
{
    const keel_shape s = *keel_value_shape(e, x), one = keel_shape_without(s, s.rank - 1);
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(keel_emit_part(e, x, s.rank - 1, i, 1, &out[i]));
        KEEL_TRY(keel_emit_view(e, &one, out[i], &out[i]));
    }
    return KEEL_OK;
}

static inline keel_status emit_fourier(keel_emit *e, const keel_fourier_args *op, keel_value x,
                                       keel_value *out)
{
    return keel_emit_on(e, &keel_op_fourier, op, &x, 1, out);
}

/* Over the dims [H, W] of [.., H, W, 2]. */
static inline keel_status emit_fourier2(keel_emit *e, keel_value x, keel_value *out)
{
    int64_t from[KEEL_RANK_MAX];
    const keel_shape s = *keel_value_shape(e, x);
    if (s.rank < 3) return keel_fail(KEEL_ESHAPE, "rows must be images");
    for (int d = 0; d < s.rank; d++) from[d] = d;
    from[s.rank - 2] = s.rank - 3;
    from[s.rank - 3] = s.rank - 2;
    for (int i = 0; i < 2; i++) {
        const keel_fourier_args op = { .size = keel_value_shape(e, x)->dim[s.rank - 2] };
        KEEL_TRY(emit_fourier(e, &op, x, &x));
        KEEL_TRY(keel_emit_permuted(e, from, x, &x));
    }
    *out = x;
    return KEEL_OK;
}

#endif
