/* The history of a fit: a column for each name in the logs of epochs, a row for each epoch. */
#ifndef KEEL_TRAIN_HISTORY_H
#define KEEL_TRAIN_HISTORY_H
#include "keel/train.h"

/* Room for so many epochs. On failure keel_history_free frees what was made. */
keel_status keel_history_begin(keel_history *h, const keel_logs *names, int64_t epochs);

/* A finished epoch; NaN where its logs lack a name. */
void keel_history_add(keel_history *h, const keel_logs *logs);

#endif
