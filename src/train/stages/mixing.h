/* MixUp and CutMix: each row of a batch is mixed with another one, its labels as its image. */
#ifndef KEEL_TRAIN_STAGES_MIXING_H
#define KEEL_TRAIN_STAGES_MIXING_H
#include "data/stage.h"

/* A stage without its type, which is that of the layer. */
extern const keel_stage keel_mixing_stage;

#endif
