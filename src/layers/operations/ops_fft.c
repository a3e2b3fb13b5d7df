/* Fourier's transform along the last dim. */
#include "layers/operations/_complex.h"

static keel_status emit(keel_emit *e)
{
    keel_value x;
    KEEL_TRY(complex_of(e, &x));
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_fourier_args op = { .size = in.dim[in.rank - 1] };
    KEEL_TRY(emit_fourier(e, &op, x, &x));
    KEEL_TRY(keel_emit_outputs(e, 2));
    return parts_of_complex(e, x, e->out);
}

KEEL_PLAIN_OPERATION(ops_fft, "FFT", "math", 2, "Fourier's transform along the last dim.")
