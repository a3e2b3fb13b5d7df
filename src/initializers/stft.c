/* Kernels [T, 1, F / 2 + 1] of a convolution that is a Fourier transform of windows of T numbers:
 * element (t, f) is window[t] / scale times cos or sin of -2 pi t f / F. Keras has the angle in
 * float32, where it loses up to five digits, so the angle here is a float, too. */
#include "base/memory.h"
#include "initializers/initializer.h"
#include "initializers/window.h"
#include "tensor/shape.h"
#include <math.h>

enum { DENSITY, SPECTRUM };

static const keel_field fields[] = {
    KEEL_CHOICE(keel_stft_args, side, "\"real\"", "real|imag", "cosines or sines"),
    KEEL_STFT_WINDOW_FIELDS,
    { 0 },
};

keel_status keel_stft_check(const keel_stft_args *a)
{
    const char *name = json_string_value(a->window);
    keel_window_name found;
    bool fits = !a->window || name || json_is_array(a->window);
    for (size_t i = 0; i < json_array_size(a->window); i++)
        fits = fits && json_is_number(json_array_get(a->window, i));
    if (!fits) return keel_fail(KEEL_EARG, "window must be a name or a list of numbers");
    return name ? keel_window_find(name, &found) : KEEL_OK;
}

static keel_status ready(void *args)
{
    return keel_stft_check(args);
}

static double window_at(const keel_stft_args *a, keel_window_name name, int64_t n, int64_t t)
{
    if (json_is_array(a->window)) return json_number_value(json_array_get(a->window, (size_t)t));
    return a->window ? keel_window_by_name(name, a->periodic, n, t) : 1;
}

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const keel_stft_args *a = args;
    const int64_t n = shape->dim[0], bins = shape->dim[2];
    const char *named = json_string_value(a->window);
    keel_window_name name = { 0 };
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
    if (named) KEEL_TRY(keel_window_find(named, &name));
    for (int64_t t = 0; t < n; t++) {
        const double w = window_at(a, name, n, t);
        norm += a->scaling == DENSITY ? w * w : fabs(w);
    }
    if (a->scaling == DENSITY) norm = sqrt(norm);
    if (a->scaling < 0 || !a->window) norm = 1;
    for (int64_t t = 0; t < n; t++) {
        const double w = window_at(a, name, n, t);
        for (int64_t f = 0; f < bins; f++) {
            const float angle =
                -2.0f * (float)t * ((float)f / (float)(2 * (bins - 1))) * 3.14159265f;
            out[t * bins + f] = (a->side ? sin((double)angle) : cos((double)angle)) * w / norm;
        }
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
