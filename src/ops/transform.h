/* Fourier transforms of any length, in double, and the windows of a signal: what the ops fourier,
 * frames and mel_spectrogram share. */
#ifndef KEEL_OPS_TRANSFORM_H
#define KEEL_OPS_TRANSFORM_H
#include "ops/cases.h"
#include "ops/mel_spectrogram.h"
#include <math.h>

enum { KEEL_FFT_FACTOR_MAX = 64 };

/* turn[n][2]: cos and -sin of 2 pi k / n. */
static inline void keel_turns(double *turn, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        turn[2 * k] = cos(2 * M_PI * (double)k / (double)n);
        turn[2 * k + 1] = -sin(2 * M_PI * (double)k / (double)n);
    }
}

static inline int64_t keel_least_factor(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}

/* to[k] = sum of from[i stride] turn^(i k), i < n, where turn is the n-th root of 1: by the least
 * factor p of n, p transforms of every p-th number are combined. Large primes are summed plainly.
 * `whole`: numbers of the table. */
static inline void keel_transform(const double *from, int64_t stride, double *to, int64_t n,
                                  const double *turn, int64_t whole)
{
    if (n == 1) {
        to[0] = from[0];
        to[1] = from[1];
        return;
    }
    const int64_t p = keel_least_factor(n), m = n / p;
    if (m == 1 || p > KEEL_FFT_FACTOR_MAX) {
        for (int64_t k = 0; k < n; k++) {
            double re = 0, im = 0;
            for (int64_t i = 0; i < n; i++) {
                const double *x = from + 2 * i * stride, *t = turn + 2 * (i * k % n * (whole / n));
                re += x[0] * t[0] - x[1] * t[1];
                im += x[0] * t[1] + x[1] * t[0];
            }
            to[2 * k] = re;
            to[2 * k + 1] = im;
        }
        return;
    }
    for (int64_t r = 0; r < p; r++)
        keel_transform(from + 2 * r * stride, stride * p, to + 2 * r * m, m, turn, whole);
    for (int64_t q = 0; q < m; q++) {
        double part[2 * KEEL_FFT_FACTOR_MAX];
        for (int64_t r = 0; r < p; r++) {
            part[2 * r] = to[2 * (r * m + q)];
            part[2 * r + 1] = to[2 * (r * m + q) + 1];
        }
        for (int64_t s = 0; s < p; s++) {
            double re = 0, im = 0;
            for (int64_t r = 0; r < p; r++) {
                const double *t = turn + 2 * (r * (q + s * m) % n * (whole / n));
                re += part[2 * r] * t[0] - part[2 * r + 1] * t[1];
                im += part[2 * r] * t[1] + part[2 * r + 1] * t[0];
            }
            to[2 * (s * m + q)] = re;
            to[2 * (s * m + q) + 1] = im;
        }
    }
}

/* The window in the middle of a frame of `size` numbers, at i. As in TensorFlow a Hann or Hamming
 * window of an odd length is symmetric, and one of an even length periodic. */
static inline double keel_window_at(const keel_fft_window *w, int64_t size, int64_t i)
{
    const int64_t k = i - (size - w->length) / 2;
    if (k < 0 || k >= w->length) return 0;
    if (w->kind == KEEL_GIVEN_WINDOW) return w->given[k];
    if (w->kind == KEEL_NO_WINDOW || w->length == 1) return 1;
    const int64_t period = w->length - w->length % 2;
    const double part = w->kind == KEEL_HANN ? 0.5 : 0.54;
    return part - (1 - part) * cos(2 * M_PI * (double)k / (double)period);
}

/* Of the cases of ops: "hann length 5", "given length 3". */
static inline keel_fft_window keel_window_for_case(const char *text, int64_t size)
{
    static const double given[] = { 0.5, 2, -1, 0.25, 1 };
    keel_fft_window w = { .length = size };
    keel_case_ints(text, "length", &w.length, 1);
    w.kind = keel_case_has(text, "hann")      ? KEEL_HANN
             : keel_case_has(text, "hamming") ? KEEL_HAMMING
             : keel_case_has(text, "given")   ? KEEL_GIVEN_WINDOW
                                              : KEEL_NO_WINDOW;
    w.given = given;
    return w;
}

#endif
