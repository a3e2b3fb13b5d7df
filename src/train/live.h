/* The trainer's side of a live model (model/live.h): copies its values to the model when a callback
 * reads them, and takes what callbacks have set before the next step. */
#ifndef KEEL_TRAIN_LIVE_H
#define KEEL_TRAIN_LIVE_H
#include "train/trainer.h"

/* While a trainer is made that takes the weights: they leave the model as they are copied, so that
 * both together take little more than one. Until the model is live nobody may read them there. And
 * back, if it never is. */
void keel_live_take_over(keel_trainer *t);
void keel_live_give_back(keel_trainer *t);

/* From here on the trainer has the model's values, and the optimizer's state, which it is given
 * now. The model's own copies then take no memory until somebody pulls them. */
void keel_live_begin(keel_model_live *l, keel_trainer *t);
int64_t keel_live_leaves(const keel_trainer *t); /* the bytes that the model gives back then */
/* After a step that was made: the model's copies are old. */
void keel_live_stepped(keel_model_live *l);
/* Of a sharded optimizer, by all processes at the same moment: the model of process 0 gets its
 * state. A failure of any process is that of all. */
keel_status keel_live_gather(keel_model_live *l);
/* Before a step: take what was set. True if anything was. Cannot fail. */
bool keel_live_take(keel_model_live *l);
/* At the end, also after a failure: the model has its values itself again. Nothing if it was not
 * begun. */
void keel_live_end(keel_model_live *l);

#endif
