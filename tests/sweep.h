/* How many of its cases a long test runs. `make check` takes a part of them, so that it ends in
 * time; `make check-all` sets KEEL_TEST_ALL and takes all; sanitizers, which are much slower, take
 * a few. */
#ifndef KEEL_TESTS_SWEEP_H
#define KEEL_TESTS_SWEEP_H
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

/* A number of cases, or the step from one case to the next: for all, for some, and for a few. */
static inline int thin(int all, int some, int few)
{
    return SLOW ? few : getenv("KEEL_TEST_ALL") ? all : some;
}

#endif
