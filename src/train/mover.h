/* What a step decides of an optimizer, once the gradients of all rows are reduced. */
#ifndef KEEL_TRAIN_MOVER_H
#define KEEL_TRAIN_MOVER_H
#include "train/trainer.h"

/* Keras's clips: by the norm of all weights of an optimizer, which gives one scale, or by each
 * weight's norm. */
double keel_mover_scale_of_all(const keel_mover *x);
double keel_mover_scale(const keel_mover *x, keel_variable v, double of_all);

/* False for a weight that no loss and no regulariser depends on. As in Keras it does not change,
 * not even by weight decay. */
bool keel_mover_has_gradient(const keel_trainer *t, keel_variable v);

/* Whether no row has a weight in the losses of this optimizer, while others may have some: as for a
 * step without any weight, it does not move, not even by momentum. */
bool keel_mover_is_idle(const keel_mover *x, const keel_score *score);

/* At the commit point, by one worker: which movers rest in this step. What they are asked with is
 * the same for any devices, and so is what they answer. */
void keel_movers_ask(const keel_trainer *t, const keel_score *score);

#endif
