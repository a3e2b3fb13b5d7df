/* A copy of all weights of a model, which a callback keeps and gives back. */
#ifndef KEEL_TRAIN_CALLBACKS_WEIGHTS_H
#define KEEL_TRAIN_CALLBACKS_WEIGHTS_H
#include "model/model.h"
#include "train/callbacks/watcher.h"

int64_t keel_kept_weights_bytes(const keel_model *m);
/* Room for the weights, in *kept: made anew, or that which is there if it fits. */
keel_status keel_kept_weights_create(void **kept, const keel_model *m);
void keel_kept_weights_destroy(void *kept);
void keel_kept_weights_take(void *kept, const keel_model *m);
void keel_kept_weights_give(const void *kept, keel_model *m);
/* The i-th, by its name; KEEL_END behind the last. */
keel_status keel_kept_weights_tensor(void *kept, int i, keel_callback_tensor *out);

#endif
