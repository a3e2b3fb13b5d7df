/* Lists the devices of this machine. A pure query: no context, no thread, no device memory; safe
 * before fork. */
#ifndef KEEL_DEVICE_DISCOVER_H
#define KEEL_DEVICE_DISCOVER_H
#include "base/error.h"
#include <stdint.h>

enum { KEEL_CORES_MAX = 1024 };

typedef struct keel_cores {
    int n;
    int os[KEEL_CORES_MAX]; /* the operating system's numbers of the cores this process may use */
} keel_cores;

keel_status keel_cores_find(keel_cores *out);

typedef struct keel_machine {
    char model[64];        /* of the processor */
    char instructions[32]; /* "AVX-512" */
    int n_core, n_node;    /* NUMA nodes */
    int64_t memory;        /* bytes of main memory */
    int64_t l2, l3;        /* bytes of one cache */
} keel_machine;

keel_status keel_machine_find(keel_machine *out);

#endif
