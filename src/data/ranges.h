/* A loop over many elements, in ranges that threads take. */
#ifndef KEEL_DATA_RANGES_H
#define KEEL_DATA_RANGES_H
#include "base/error.h"
#include <stdint.h>

typedef void keel_range_run(void *context, int64_t begin, int64_t end);

/* Runs a function on ranges that make up 0 to n - 1, by as many threads as that is worth, and
 * returns when all are done. The function must not fail. KEEL_ENOMEM: it was not run. */
keel_status keel_ranges(int64_t n, keel_range_run *run, void *context);

#endif
