/* Windows of a signal, which ops/transform.h describes: the numbers that multiply a frame. One that
 * the layer gives lies with the host (_given.h). */
#ifndef KEEL_OPS_CUDA_WINDOW_H
#define KEEL_OPS_CUDA_WINDOW_H
#include "ops/cuda/_given.h"
#include <math.h>
extern "C" {
#include "ops/mel_spectrogram.h"
}

static inline bool window_is_given(const keel_fft_window &w)
{
    return w.kind == KEEL_GIVEN_WINDOW;
}

/* As keel_window_at, of such a one. */
static inline double window_given_at(const keel_fft_window &w, int64_t size, int64_t i)
{
    const int64_t k = i - (size - w.length) / 2;
    return k < 0 || k >= w.length ? 0 : w.given[k];
}

/* As keel_window_at, of any other. */
static __device__ __forceinline__ double window_at(const keel_fft_window &w, int64_t size,
                                                   int64_t i)
{
    const int64_t k = i - (size - w.length) / 2, period = w.length - w.length % 2;
    if (k < 0 || k >= w.length) return 0;
    if (w.kind == KEEL_NO_WINDOW || w.length == 1) return 1;
    const double part = w.kind == KEEL_HANN ? 0.5 : 0.54;
    return part - (1 - part) * cos(2 * 3.14159265358979323846 * (double)k / (double)period);
}

#endif
