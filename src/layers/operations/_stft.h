/* What the short-time Fourier transform and its inverse share. */
#ifndef KEEL_LAYERS_OPERATIONS_STFT_H
#define KEEL_LAYERS_OPERATIONS_STFT_H
#include "layers/operations/_complex.h"
#include "ops/frames.h"
#include <string.h>

typedef struct keel_stft {
    int64_t sequence_length, sequence_stride, fft_length;
    char *window;
    bool center;
    int64_t length; /* of istft */
} keel_stft;

#define KEEL_STFT_FIELDS                                                                           \
    KEEL_INT(keel_stft, sequence_length, NULL, 1, KEEL_FFT_MAX, "numbers of a window"),            \
        KEEL_INT(keel_stft, sequence_stride, NULL, 1, 1e9, "from one window to the next"),         \
        KEEL_INT(keel_stft, fft_length, NULL, 1, KEEL_FFT_MAX, "of each transform"),               \
        { .key = "window",                                                                         \
          .kind = KEEL_FIELD_STRING,                                                               \
          .offset = offsetof(keel_stft, window),                                                   \
          .dflt = "\"hann\"",                                                                      \
          .nullable = true,                                                                        \
          .help = "hann, hamming or null" },                                                       \
        KEEL_BOOL(keel_stft, center, "true", "windows are around their samples, not after them")

static inline keel_status stft_frames(const keel_stft *a, keel_frames_args *out)
{
    const bool hann = a->window && !strcmp(a->window, "hann");
    *out = (keel_frames_args){ .size = a->fft_length,
                               .stride = a->sequence_stride,
                               .length = a->window ? a->sequence_length : a->fft_length,
                               .window = hann        ? KEEL_HANN
                                         : a->window ? KEEL_HAMMING
                                                     : KEEL_NO_WINDOW };
    if (a->window && !hann && strcmp(a->window, "hamming"))
        return keel_fail(KEEL_EUNSUP, "window '%.40s' is not supported: hann and hamming are",
                         a->window);
    if (a->fft_length < a->sequence_length)
        return keel_fail(KEEL_EARG, "fft_length must not be below sequence_length");
    return KEEL_OK;
}

#endif
