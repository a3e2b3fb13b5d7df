/* Numbers in ascending order. */
#ifndef KEEL_BASE_ASCENDING_H
#define KEEL_BASE_ASCENDING_H
#include <stdint.h>
#include <stdlib.h>

static inline int keel_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void keel_sort_ascending(double *of, int64_t n)
{
    if (n > 0) qsort(of, (size_t)n, sizeof *of, keel_ascending);
}

#endif
