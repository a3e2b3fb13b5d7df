/* Weights that are not finite. A step checks its loss and its gradients before it changes anything,
 * but the update of finite gradients may still overflow. The next loss shows it, unless there is
 * none, or the step is skipped by a loss scale. So weights are looked at when a step was not
 * finite, and at the end of each epoch: reading them once costs less than a step. */
#ifndef KEEL_TRAIN_FINITE_H
#define KEEL_TRAIN_FINITE_H
#include "train/trainer.h"

/* Before the first step: notes the weights that are not finite in the model as it was given. They
 * are not looked at, since a model may have them on purpose. */
keel_status keel_finite_begin(keel_trainer *t);

/* A weight that is not finite and was when training began; -1: there is none. */
keel_variable keel_finite_lost(const keel_trainer *t);

/* KEEL_ENUMERIC: there is one. The text names it, and the steps since the epoch began. */
keel_status keel_finite_check(const keel_trainer *t, int64_t epoch, int64_t steps);

#endif
