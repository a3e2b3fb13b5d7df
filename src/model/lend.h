/* Weights of a model that are in the memory of somebody else, a function (train/function.h), so
 * that they are in memory once: the model reads and sets them there. Its own memory stays reserved,
 * so that taking them back cannot fail, but has no pages. */
#ifndef KEEL_MODEL_LEND_H
#define KEEL_MODEL_LEND_H
#include "model/model.h"

/* From now on the weight is at `place`, which has its values, or gets them now (copies). false: it
 * stays where it is, since pipelines read it there. */
bool keel_model_lend(keel_model *m, int weight, void *place, bool copies);

/* All weights in these bytes are in the model's own memory again. leaves: the bytes are not needed
 * any more. */
void keel_model_take_back(keel_model *m, const void *begin, size_t n_bytes, bool leaves);
/* All weights, before their memory is used in another way. */
void keel_model_take_all_back(keel_model *m);

#endif
