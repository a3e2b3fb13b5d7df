/* What the short-time Fourier transform and its inverse share. */
#ifndef KEEL_LAYERS_OPERATIONS_STFT_H
#define KEEL_LAYERS_OPERATIONS_STFT_H
#include "layers/_fft_window.h"
#include "layers/operations/_complex.h"
#include "ops/frames.h"

typedef struct keel_stft {
    int64_t sequence_length, sequence_stride, fft_length;
    keel_fft_window_args window;
    bool center;
    int64_t length; /* of istft */
} keel_stft;

#define KEEL_STFT_FIELDS                                                                           \
    KEEL_INT(keel_stft, sequence_length, NULL, 1, KEEL_FFT_MAX, "numbers of a window"),            \
        KEEL_INT(keel_stft, sequence_stride, NULL, 1, 1e9, "from one window to the next"),         \
        KEEL_INT(keel_stft, fft_length, NULL, 1, KEEL_FFT_MAX, "of each transform"),               \
        KEEL_FFT_WINDOW_FIELD(keel_stft, window),                                                  \
        KEEL_BOOL(keel_stft, center, "true", "windows are around their samples, not after them")

static inline keel_status stft_ready(void *args)
{
    keel_stft *a = args;
    if (a->fft_length < a->sequence_length)
        return keel_fail(KEEL_EARG, "fft_length must not be below sequence_length");
    return keel_fft_window_ready(&a->window, a->sequence_length);
}

static inline void stft_release(void *args)
{
    keel_fft_window_free(&((keel_stft *)args)->window);
}

static inline keel_frames_args stft_frames(const keel_stft *a)
{
    return (keel_frames_args){
        .size = a->fft_length,
        .stride = a->sequence_stride,
        .window = keel_fft_window_of(&a->window, a->sequence_length, a->fft_length),
    };
}

#endif
