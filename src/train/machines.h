/* Inside keel/machines.h: which processes act as one, and the devices of all of them. */
#ifndef KEEL_TRAIN_MACHINES_H
#define KEEL_TRAIN_MACHINES_H
#include "device/discover.h"
#include "keel/machines.h"

/* Processors that a process may run on, one bit each. */
enum { KEEL_MASK_WORDS = KEEL_CORES_MAX / 64 };

/* What a process says of itself. */
typedef struct keel_neighbour {
    uint64_t machine; /* equal on one machine, if a process can see the others there; 0: no */
    uint64_t alike;
    int64_t pid;
    uint64_t mask[KEEL_MASK_WORDS];
    int32_t n_core;
    uint16_t core[KEEL_CORES_MAX]; /* as keel_cores */
} keel_neighbour;

/* The devices of processes with the same text, in their order, as devices of one process that has
 * the cores `all`. NULL: that cannot be said, since their cores overlap and only some are used, or
 * out of memory. The caller frees it by keel_free. */
char *keel_neighbours_devices(const keel_neighbour *const *of, int n, const char *devices,
                              const keel_cores *all);

#endif
