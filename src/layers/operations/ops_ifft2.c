/* The inverse of Fourier's transform along the last two dims: that of the conjugate, conjugated, by
 * the number of places. */
#include "layers/operations/_complex.h"

static keel_status emit(keel_emit *e)
{
    const keel_axis_args last = { .axis = -1 };
    keel_value x, part[2];
    KEEL_TRY(complex_of(e, &x));
    const keel_shape s = *keel_value_shape(e, x);
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_part(e, x, s.rank - 1, i, 1, &part[i]));
    KEEL_TRY(keel_emit_scaled(e, part[1], -1, 0, &part[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_concatenate, &last, part, 2, &x));
    KEEL_TRY(emit_fourier2(e, x, &x));
    KEEL_TRY(parts_of_complex(e, x, part));
    const double places = (double)(s.dim[s.rank - 2] * s.dim[s.rank - 3]);
    KEEL_TRY(keel_emit_outputs(e, 2));
    KEEL_TRY(keel_emit_scaled(e, part[0], 1 / places, 0, &e->out[0]));
    return keel_emit_scaled(e, part[1], -1 / places, 0, &e->out[1]);
}

KEEL_PLAIN_OPERATION(ops_ifft2, "IFFT2", "math", 2,
                     "The inverse of Fourier's transform along the last two dims.")
