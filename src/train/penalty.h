/* The regularisers' part of the loss outside of a step that moves weights. */
#ifndef KEEL_TRAIN_PENALTY_H
#define KEEL_TRAIN_PENALTY_H
#include "train/trainer.h"

/* As in Keras, frozen weights have none. */
double keel_trainer_penalty(const keel_trainer *t);

#endif
