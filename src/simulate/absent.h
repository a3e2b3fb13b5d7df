/* A group of processes of which only one is there. What the others would have sent is made of what
 * it sends itself, so that they agree with it, and their sums and gradients are like its own. Its
 * exchanges are complete when they would be by the time of a simulated network: who waits for one
 * does so for no real time at all. */
#ifndef KEEL_SIMULATE_ABSENT_H
#define KEEL_SIMULATE_ABSENT_H
#include "keel/process_group.h"
#include "simulate/timeline.h"

typedef struct keel_absent {
    int rank, count, per_machine; /* consecutive processes share a machine */
    double eager;                 /* see keel_network */
    int64_t begin_ns, lost_ns;    /* of the step: its begin, and time that the others' data took */
    int64_t sent_bytes, messages; /* of the step: sent to others */
    int exchanges;                /* of the step, as the next */
    double link_bytes;            /* to other machines */
    int64_t events, asked[KEEL_EXCHANGES_MAX]; /* [number]: the event after which it was tested */
    const bool *passing;                       /* see keel_comm; NULL: nobody passes by */
    keel_timeline timeline;                    /* of the step */
} keel_absent;

keel_process_group keel_absent_group(keel_absent *a);

/* Around a step: what is counted is that of this step. */
void keel_absent_begin(keel_absent *a);
void keel_absent_end(keel_absent *a); /* timeline.now, .computed: of the whole step */

/* Measure how late a process that waits sees that an exchange is complete. Takes some 0.03 s. */
keel_status keel_absent_notice(keel_noticed *out);

#endif
