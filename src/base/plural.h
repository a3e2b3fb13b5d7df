/* "1 row", and "2 rows". */
#ifndef KEEL_BASE_PLURAL_H
#define KEEL_BASE_PLURAL_H
#include <stdint.h>

/* The end of "row%s" for n of them. */
static inline const char *keel_s(int64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
