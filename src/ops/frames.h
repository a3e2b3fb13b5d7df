/* The args of the ops frames and overlap: windows of a signal, and a signal made of windows. */
#ifndef KEEL_OPS_FRAMES_H
#define KEEL_OPS_FRAMES_H
#include "ops/mel_spectrogram.h"

typedef struct keel_frames_args {
    int64_t size, stride;   /* numbers of a frame, and from one to the next */
    keel_fft_window window; /* that multiplies a frame */
    bool
        centred; /* frames: frame i is around sample i stride of the signal, mirrored at its ends */
    bool inverse; /* overlap: the window by the sum of its squares in all frames that overlap */
    int64_t begin, count; /* overlap: which numbers of the signal */
} keel_frames_args;

#endif
