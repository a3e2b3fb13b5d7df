/* A pass of an op for which a device has no kernel: its plain reference. A device that computes as
 * the host does runs it itself (keel_device_type.launch). Otherwise the host runs it on copies of
 * what it reads, and what it writes is copied back: slow, so reports name it. */
#ifndef KEEL_GRAPH_STAGED_H
#define KEEL_GRAPH_STAGED_H
#include "device/device.h"
#include "ops/ranges.h"

typedef struct keel_staged {
    keel_pass pass;
    keel_run run; /* on the host's memory */
    void *plan;   /* of it */
    int64_t scratch;
    keel_call call; /* of the host, while it runs */
    keel_range *range;
    void **foreign;  /* where each range is on the device */
    void **pointers; /* of the call */
} keel_staged;

/* For one pass of a node, for one worker. The caller fills run, plan and scratch. */
keel_status keel_staged_create(keel_staged **out, const keel_node *n, keel_pass pass);
void keel_staged_destroy(keel_staged *s); /* NULL is allowed */

/* Bytes of the host's scratch that a call of `rows` rows needs, including those of the pass. */
int64_t keel_staged_bytes(const keel_staged *s, const keel_node *n, int64_t rows);

/* The pass as the program calls it: c->plan is the keel_staged. c->scratch is the device's if it
 * launches, else the host's. */
void keel_staged_run(const keel_call *c);

#endif
