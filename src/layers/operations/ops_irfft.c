/* The inverse of Fourier's transform of real numbers, from frequencies from 0 on. */
#include "layers/operations/_complex.h"

typedef struct args_t {
    int64_t fft_length;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, fft_length, "null", 1, 1 << 16, "null: twice the frequencies after the first"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const int64_t given = ((const args_t *)e->args)->fft_length;
    keel_value x;
    KEEL_TRY(complex_of(e, &x));
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_fourier_args op = { .to_reals = true,
                                   .size = given == KEEL_INT_NULL ? 2 * (in.dim[in.rank - 1] - 1)
                                                                  : given };
    return emit_fourier(e, &op, x, e->out);
}

KEEL_ARGS_OPERATION(ops_irfft, "IRFFT", "math", 2,
                    "The inverse of Fourier's transform of real numbers.")
