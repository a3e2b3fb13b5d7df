/* Windows of signals by their names in scipy.signal.windows, which Keras's STFT asks for them. */
#ifndef KEEL_INITIALIZERS_WINDOW_H
#define KEEL_INITIALIZERS_WINDOW_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_window_name {
    int window;               /* where it is in the table of _window.c */
    bool symmetric, periodic; /* the name ends with it, and says so in place of the argument */
} keel_window_name;

/* KEEL_EUNSUP: there is no such window, or it needs parameters, which the name does not have. */
keel_status keel_window_find(const char *name, keel_window_name *out);
/* Number t of a window of n; periodic: of the first n numbers of a window of n + 1. */
double keel_window_by_name(keel_window_name name, bool periodic, int64_t n, int64_t t);

#endif
