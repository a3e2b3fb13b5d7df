/* Turns the timing of a program into a profile by layer and a trace file. */
#ifndef KEEL_TRAIN_PROFILE_H
#define KEEL_TRAIN_PROFILE_H
#include "train/trainer.h"

keel_status keel_profile_make(keel_profile **out, const keel_trainer *t, const keel_timing *timing,
                              int64_t steps, int64_t rows, double step_seconds);
void keel_profile_destroy(keel_profile *p);

/* The kernels of node `node`, as far as they were prepared. */
void keel_kernel_row_fill(keel_kernel_row *r, const keel_program *p, int node);

/* Write every call of every worker in the trace event format of Chrome and Perfetto, atomically. */
keel_status keel_trace_write(const char *path, const keel_trainer *t, const keel_timing *timing);

#endif
