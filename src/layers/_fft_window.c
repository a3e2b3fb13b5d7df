/* See _fft_window.h. */
#include "layers/_fft_window.h"
#include "base/memory.h"
#include "layers/_numbers.h"
#include <string.h>

keel_status keel_fft_window_ready(keel_fft_window_args *a, int64_t sequence_length)
{
    const char *name = json_string_value(a->window);
    keel_shape shape;
    if (!a->window) return KEEL_OK;
    if (name && strcmp(name, "hann") != 0 && strcmp(name, "hamming") != 0)
        return keel_fail(KEEL_EUNSUP,
                         "window '%.40s': Keras has hann and hamming here; others are given as "
                         "numbers",
                         name);
    if (name) return KEEL_OK;
    if (!keel_numbers_shape(a->window, &shape) || shape.rank != 1 ||
        shape.dim[0] != sequence_length)
        return keel_fail(KEEL_EARG,
                         "window: expected a name, or %lld numbers: as many as sequence_length",
                         (long long)sequence_length);
    if (!(a->given = keel_calloc((size_t)sequence_length, sizeof *a->given))) return KEEL_ENOMEM;
    return keel_numbers_copy(a->window, &shape, a->given)
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "window: something is no number");
}

void keel_fft_window_free(keel_fft_window_args *a)
{
    keel_free(a->given);
    a->given = NULL;
}

keel_fft_window keel_fft_window_of(const keel_fft_window_args *a, int64_t sequence_length,
                                   int64_t size)
{
    const char *name = json_string_value(a->window);
    if (!a->window) return (keel_fft_window){ .kind = KEEL_NO_WINDOW, .length = size };
    return (keel_fft_window){ .kind = !name                   ? KEEL_GIVEN_WINDOW
                                      : !strcmp(name, "hann") ? KEEL_HANN
                                                              : KEEL_HAMMING,
                              .length = sequence_length,
                              .given = a->given };
}
