/* The memory that this process may use, as the system limits it. */
#ifndef KEEL_DEVICE_MEMORY_LIMIT_H
#define KEEL_DEVICE_MEMORY_LIMIT_H
#include "base/error.h"
#include <stdint.h>

typedef struct keel_memory_limit {
    int64_t limit;   /* bytes; -1: no control group limits the memory */
    int64_t free;    /* that are left of it now; caches of files count as free */
    char group[256]; /* the control group that has the limit */
} keel_memory_limit;

/* The tightest limit of this process's own control group and of those above it, of version 1 and 2:
 * that which leaves the least free. What cannot be read is no limit. root: "" for the system; a
 * folder with proc/self and sys/fs/cgroup, for tests. */
void keel_memory_limit_find(keel_memory_limit *out, const char *root);

/* For tests: such a folder, borrowed, is the system from now on; NULL: no longer. */
void keel_memory_limit_pretend(const char *root);

#endif
