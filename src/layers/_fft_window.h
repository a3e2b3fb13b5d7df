/* The argument `window` of layers and operations that transform a signal window by window. */
#ifndef KEEL_LAYERS_FFT_WINDOW_H
#define KEEL_LAYERS_FFT_WINDOW_H
#include "layers/layer.h"
#include "ops/mel_spectrogram.h"

typedef struct keel_fft_window_args {
    json_t *window; /* as in the config */
    double *given;  /* if it is numbers: these */
} keel_fft_window_args;

#define KEEL_FFT_WINDOW_FIELD(args, member)                                                        \
    {                                                                                              \
        .key = "window", .kind = KEEL_FIELD_LIST, .offset = offsetof(args, member.window),         \
        .dflt = "\"hann\"", .count = 1, .nullable = true,                                          \
        .help = "hann, hamming, or as many numbers as sequence_length; null: none"                 \
    }

/* In `ready`: a window of sequence_length numbers. KEEL_EUNSUP: a name that Keras has not either;
 * KEEL_EARG: not so many numbers. In `release`: free. */
keel_status keel_fft_window_ready(keel_fft_window_args *a, int64_t sequence_length);
void keel_fft_window_free(keel_fft_window_args *a);

/* For a frame of `size` numbers. It points into the args. */
keel_fft_window keel_fft_window_of(const keel_fft_window_args *a, int64_t sequence_length,
                                   int64_t size);

#endif
