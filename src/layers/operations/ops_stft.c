/* Fourier's transform of each window of a signal. */
#include "layers/operations/_stft.h"

static const keel_field fields[] = { KEEL_STFT_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_stft *a = e->args;
    const keel_fourier_args transform = { .size = a->fft_length, .from_reals = true };
    keel_frames_args frames = stft_frames(a);
    keel_value x;
    frames.centred = a->center;
    KEEL_TRY(keel_emit_on(e, &keel_op_frames, &frames, e->in, 1, &x));
    KEEL_TRY(emit_fourier(e, &transform, x, &x));
    KEEL_TRY(keel_emit_outputs(e, 2));
    return parts_of_complex(e, x, e->out);
}

const keel_layer keel_layer_ops_stft = {
    .type = { KEEL_OPERATION_HEAD("STFT", "math",
                                  "Fourier's transform of each window of a signal."),
              .args_size = sizeof(keel_stft), .fields = fields, .ready = stft_ready,
              .release = stft_release },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
