/* Inside step*.c: what one worker does in a step, and what all workers know once it has ended. */
#ifndef KEEL_TRAIN_STEP_WORKER_H
#define KEEL_TRAIN_STEP_WORKER_H
#include "train/trainer.h"

/* One worker's part of a step that trains, and of one that tests. trainer: a keel_trainer, whose
 * step has begun. A failure is that of the program. */
void keel_step_train_worker(void *trainer, int worker);
void keel_step_test_worker(void *trainer, int worker);

/* Behind a meeting, the same in every worker: the failure of the lowest worker that has one ... */
keel_status keel_step_failure(const keel_trainer *t, const keel_program *p);
/* ... and, once all have voted, whether the loss and all gradients are finite: then the step is
 * applied. */
bool keel_step_is_finite(const keel_trainer *t, const keel_score *score);

#endif
