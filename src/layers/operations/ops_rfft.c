/* Fourier's transform of real numbers along the last dim: frequencies from 0 on. */
#include "layers/operations/_complex.h"

typedef struct args_t {
    int64_t fft_length;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, fft_length, "null", 1, 1 << 16, "null: as many as there are numbers"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const int64_t given = ((const args_t *)e->args)->fft_length;
    keel_value x;
    if (in.rank < 1) return keel_fail(KEEL_ESHAPE, "rows must be lists of numbers");
    const keel_fourier_args op = { .from_reals = true,
                                   .size = given == KEEL_INT_NULL ? in.dim[in.rank - 1] : given };
    KEEL_TRY(emit_fourier(e, &op, e->in[0], &x));
    KEEL_TRY(keel_emit_outputs(e, 2));
    return parts_of_complex(e, x, e->out);
}

KEEL_ARGS_OPERATION(ops_rfft, "RFFT", "math", 1, "Fourier's transform of real numbers.")
