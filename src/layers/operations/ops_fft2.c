/* Fourier's transform along the last two dims. */
#include "layers/operations/_complex.h"

static keel_status emit(keel_emit *e)
{
    keel_value x;
    KEEL_TRY(complex_of(e, &x));
    KEEL_TRY(emit_fourier2(e, x, &x));
    KEEL_TRY(keel_emit_outputs(e, 2));
    return parts_of_complex(e, x, e->out);
}

KEEL_PLAIN_OPERATION(ops_fft2, "FFT2", "math", 2, "Fourier's transform along the last two dims.")
