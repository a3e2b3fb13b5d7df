/* Kernels [T, 1, F / 2 + 1] of a convolution that is a Fourier transform of windows of T numbers:
 * element (t, f) is window[t] / scale times cos or sin of -2 pi t f / F. Keras has the angle in
 * float32, where it loses up to five digits, so the angle here is a float, too. */
#include "base/memory.h"
#include "initializers/initializer.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

enum { DENSITY, SPECTRUM };

static const keel_field fields[] = {
    KEEL_CHOICE(keel_stft_args, side, "\"real\"", "real|imag", "cosines or sines"),
    KEEL_STFT_WINDOW_FIELDS,
    { 0 },
};

/* Windows that are sums of cosines, w = sum a[k] cos(k x) with x from -pi to pi. */
static const struct cosines {
    const char *name;
    double a[5];
} sums[] = {
    { "boxcar", { 1 } },
    { "hann", { 0.5, 0.5 } },
    { "hamming", { 0.54, 0.46 } },
    { "blackman", { 0.42, 0.5, 0.08 } },
    { "nuttall", { 0.3635819, 0.4891775, 0.1365995, 0.0106411 } },
    { "blackmanharris", { 0.35875, 0.48829, 0.14128, 0.01168 } },
    { "flattop", { 0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368 } },
};
enum { SUMS = sizeof sums / sizeof *sums };

static const struct cosines *window_of(const char *name)
{
    for (int i = 0; i < SUMS; i++)
        if (!strcmp(sums[i].name, name)) return &sums[i];
    return NULL;
}

keel_status keel_stft_check(const keel_stft_args *a)
{
    const char *name = json_string_value(a->window);
    bool fits = !a->window || name || json_is_array(a->window);
    for (size_t i = 0; i < json_array_size(a->window); i++)
        fits = fits && json_is_number(json_array_get(a->window, i));
    if (!fits) return keel_fail(KEEL_EARG, "window must be a name or a list of numbers");
    if (name && !window_of(name))
        return keel_fail(KEEL_EUNSUP,
                         "the window '%s'; supported are boxcar, hann, hamming, blackman, nuttall, "
                         "blackmanharris, flattop and lists of numbers",
                         name);
    return KEEL_OK;
}

static keel_status ready(void *args)
{
    return keel_stft_check(args);
}

static double window_at(const keel_stft_args *a, int64_t n, int64_t t)
{
    const char *name = json_string_value(a->window);
    const int64_t points = n > 1 && a->periodic ? n + 1 : n;
    const double x = points > 1 ? M_PI * (2 * (double)t / (double)(points - 1) - 1) : 0;
    double w = 0;
    if (json_is_array(a->window)) return json_number_value(json_array_get(a->window, (size_t)t));
    if (!name || n == 1) return 1;
    for (int k = 0; k < 5; k++) w += window_of(name)->a[k] * cos(k * x);
    return w;
}

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const keel_stft_args *a = args;
    const int64_t n = shape->dim[0], bins = shape->dim[shape->rank - 1];
    char text[96];
    double norm = 0;
    (void)c;
    (void)row;
    keel_shape_text(text, shape);
    if (shape->rank != 3 || shape->dim[1] != 1 || bins < 2)
        return keel_fail(KEEL_ESHAPE, "STFT: expected (steps, 1, bins), not %s", text);
    if (json_is_array(a->window) && (int64_t)json_array_size(a->window) != n)
        return keel_fail(KEEL_ESHAPE, "STFT: a window of %zu numbers for %s",
                         json_array_size(a->window), text);
    for (int64_t t = 0; t < n; t++) {
        const double w = window_at(a, n, t);
        norm += a->scaling == DENSITY ? w * w : fabs(w);
    }
    if (a->scaling == DENSITY) norm = sqrt(norm);
    if (a->scaling < 0 || !a->window) norm = 1;
    for (int64_t t = 0; t < n; t++)
        for (int64_t f = 0; f < bins; f++) {
            const float angle =
                -2.0f * (float)t * ((float)f / (float)(2 * (bins - 1))) * 3.14159265f;
            out[t * bins + f] =
                (a->side ? sin((double)angle) : cos((double)angle)) * window_at(a, n, t) / norm;
        }
    return KEEL_OK;
}

const keel_initializer keel_initializer_stft = {
    .type = {
        .name = "STFT",
        .alias = "STFTInitializer",
        .module = "keras.initializers",
        .help = "cosines or sines of a short-time Fourier transform",
        .args_size = sizeof(keel_stft_args),
        .fields = fields,
        .ready = ready,
    },
    .fill = fill,
};
