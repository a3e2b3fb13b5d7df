/* The arguments of the op mel_spectrogram: a signal becomes its loudness in bands of frequencies.
 */
#ifndef KEEL_OPS_MEL_SPECTROGRAM_H
#define KEEL_OPS_MEL_SPECTROGRAM_H
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_FFT_MAX = 1 << 16 }; /* numbers of a frame */

typedef enum keel_fft_window_kind {
    KEEL_NO_WINDOW,
    KEEL_HANN,
    KEEL_HAMMING,
    KEEL_GIVEN_WINDOW
} keel_fft_window_kind;

typedef struct keel_fft_window { /* in the middle of a frame, which is 0 beside it */
    keel_fft_window_kind kind;
    int64_t length;      /* without a window that of the frame */
    const double *given; /* [length], the layer's, which outlives the graph */
} keel_fft_window;

typedef struct keel_mel_spectrogram_args {
    int64_t size, stride; /* of the transform; steps of the window */
    keel_fft_window window;
    int64_t bands;           /* mel bins */
    double rate;             /* samples per second */
    double low, high;        /* edges of the bands, in hertz */
    double exponent;         /* of the magnitude */
    bool decibels;           /* 10 log10 of what follows, else the sum itself */
    double least, reference; /* powers: the smallest that counts, and that of 0 dB */
    double top;              /* dB below the loudest number of the row, where it is cut off */
} keel_mel_spectrogram_args;

#endif
