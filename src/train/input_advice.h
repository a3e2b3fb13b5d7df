/* What the numbers of an input mean: which stage is late, and what would help. */
#ifndef KEEL_TRAIN_INPUT_ADVICE_H
#define KEEL_TRAIN_INPUT_ADVICE_H
#include "keel/input.h"

/* The stage that steps waited for most; NULL: they did not wait. */
const keel_input_stage *keel_input_latest(const keel_input_stats *in);
/* Fill in the remedies. */
void keel_input_advise(keel_input_stats *in);

#endif
