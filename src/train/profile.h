/* Turns the timing of a program into a profile by layer and a trace file. */
#ifndef KEEL_TRAIN_PROFILE_H
#define KEEL_TRAIN_PROFILE_H
#include "train/trainer.h"

/* What the steps of a fit compute, node by node. Programs for rows of several shapes have the same
 * nodes, and one timing serves them all. */
typedef struct keel_profile_work {
    int n;
    struct keel_profile_node {
        const keel_op *op;
        char layer[sizeof((keel_profile_row){ 0 }.layer)];
        double flops, backward_flops, forward_bytes, backward_bytes;
    } * node; /* [n] */
    int64_t steps;
} keel_profile_work;

/* For programs with the nodes of `p`, no step yet. */
keel_status keel_profile_begin(keel_profile_work *w, const keel_program *p);
void keel_profile_work_free(keel_profile_work *w);
/* Has it the same nodes? Ops that differ with the shape of rows are rare: Add, where it spreads. */
bool keel_profile_takes(const keel_profile_work *w, const keel_program *p);
/* One more step of `rows` rows. */
void keel_profile_add(keel_profile_work *w, const keel_program *p, int64_t rows);

keel_status keel_profile_make(keel_profile **out, const keel_trainer *t, const keel_timing *timing,
                              const keel_profile_work *work, double step_seconds);
void keel_profile_destroy(keel_profile *p);

/* The kernels of node `node`, as far as they were prepared. */
void keel_kernel_row_fill(keel_kernel_row *r, const keel_program *p, int node);

/* Every call of every worker in the trace event format of Chrome and Perfetto. `path` appears whole
 * or not at all. Kernels are named where all steps had one program. */
keel_status keel_trace_write(const char *path, const keel_trainer *t, const keel_timing *timing,
                             const keel_profile_work *work);

#endif
