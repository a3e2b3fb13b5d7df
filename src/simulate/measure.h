/* Runs the steps of some processes of a job, of which the others are not there. */
#ifndef KEEL_SIMULATE_MEASURE_H
#define KEEL_SIMULATE_MEASURE_H
#include "device/discover.h"
#include "model/model.h"
#include "simulate/timeline.h"

typedef struct keel_measuring {
    keel_model *model;
    const keel_simulate_options *options;
    const keel_network *network;
    const keel_noticed *noticed;
    int processes, per_machine; /* of the job */
    int64_t batch_size;         /* of all processes */
    int at_once;                /* processes that run here together; the first is measured */
    const keel_cores *cores;    /* [at_once] of each */
} keel_measuring;

/* Fills in what is measured of the process with the most rows, which is the first. The calling
 * thread is that process. */
keel_status keel_measure_steps(const keel_measuring *x, keel_simulated *out);

#endif
