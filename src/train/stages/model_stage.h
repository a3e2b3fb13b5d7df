/* The stage of a whole model; it is listed beside those of layers. */
#ifndef KEEL_TRAIN_STAGES_MODEL_STAGE_H
#define KEEL_TRAIN_STAGES_MODEL_STAGE_H
#include "data/stage.h"

extern const keel_stage keel_model_stage;

#endif
