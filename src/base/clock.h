/* The only clock of the library: the machine's monotonic clock. */
#ifndef KEEL_BASE_CLOCK_H
#define KEEL_BASE_CLOCK_H
#include <stdint.h>

int64_t keel_clock_ns(void);

static inline double keel_seconds(void)
{
    return 1e-9 * (double)keel_clock_ns();
}

#endif
