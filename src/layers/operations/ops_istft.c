/* The signal whose windows have given Fourier transforms: the inverse transforms, times a window
 * whose products with the first one sum to 1 where windows overlap. */
#include "layers/operations/_stft.h"

static const keel_field fields[] = {
    KEEL_STFT_FIELDS,
    KEEL_INT(keel_stft, length, "null", 1, 1e9, "of the signal; null: as much as there is"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_stft *a = e->args;
    const keel_fourier_args transform = { .size = a->fft_length, .to_reals = true };
    keel_frames_args frames = stft_frames(a);
    keel_value x;
    KEEL_TRY(complex_of(e, &x));
    KEEL_TRY(emit_fourier(e, &transform, x, &x));
    const keel_shape s = *keel_value_shape(e, x);
    if (s.rank < 2) return keel_fail(KEEL_ESHAPE, "rows must be lists of transforms");
    const int64_t sums = a->fft_length + (s.dim[s.rank - 2] - 1) * a->sequence_stride;
    frames.inverse = a->window.window != NULL;
    frames.begin = a->center ? a->fft_length / 2 : 0;
    const int64_t rest = sums - frames.begin;
    frames.count = a->center ? rest - a->fft_length / 2 : rest;
    if (a->length != KEEL_INT_NULL) frames.count = a->length < rest ? a->length : rest;
    return keel_emit_on(e, &keel_op_overlap, &frames, &x, 1, e->out);
}

const keel_layer keel_layer_ops_istft = {
    .type = { KEEL_OPERATION_HEAD("ISTFT", "math", "The signal with given transforms of windows."),
              .args_size = sizeof(keel_stft), .fields = fields, .ready = stft_ready,
              .release = stft_release },
    .min_inputs = 1,
    .max_inputs = 2,
    .operation = true,
    .emit = emit,
};
