/* The memory of a program on a device: what of it each kind of arena takes, and whether the device
 * has so much. */
#ifndef KEEL_GRAPH_DEVICE_MEMORY_H
#define KEEL_GRAPH_DEVICE_MEMORY_H
#include "graph/program.h"

/* What the program needs on a worker's device, in bytes; 0: it has none. Scratch is of the row
 * counts that were prepared so far, and so is what libraries and kernels take. */
int64_t keel_device_bytes(const keel_program *p, int worker);

/* The parts of that, and at the end what was taken before; returns how many. */
typedef struct keel_device_part {
    const char *what;
    int64_t bytes;
} keel_device_part;
enum { KEEL_DEVICE_PARTS = (int)KEEL_ARENA_HOST + (int)KEEL_OWN_KINDS };
int keel_device_parts(const keel_program *p, int worker, keel_device_part *out);

/* What it takes of the host's memory for a worker's device: what is copied from and to. */
int64_t keel_device_host_bytes(const keel_program *p, int worker);

/* Before anything is allocated: whether each worker's device has room for the program, beside what
 * other programs of the same arenas need. KEEL_ENOMEM: it has not; the text has the bytes of each
 * part, and the way out. */
keel_status keel_device_memory_check(const keel_program *p);

#endif
