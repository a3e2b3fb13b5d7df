/* Rounding up of numbers that are not negative. */
#ifndef KEEL_BASE_ROUND_H
#define KEEL_BASE_ROUND_H
#include <stdint.h>

/* n / by, rounded up. */
static inline int64_t keel_div_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* n rounded up to a multiple of `to`; the caller ensures that it does not overflow. */
static inline int64_t keel_round_up(int64_t n, int64_t to)
{
    return keel_div_up(n, to) * to;
}

#endif
