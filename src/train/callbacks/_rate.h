/* The learning rate as callbacks see it. */
#ifndef KEEL_TRAIN_CALLBACKS_RATE_H
#define KEEL_TRAIN_CALLBACKS_RATE_H
#include "model/model.h"

/* KEEL_EARG: the rate is made by a schedule, which the callback `who` would silently replace;
 * KEEL_EUNSUP: there are several. */
keel_status keel_rate_is_a_number(const keel_model *m, const char *who);

/* The rate, rounded as Keras stores it: to float32 unless the model is of float64. */
keel_status keel_rate_now(const keel_model *m, double *out);

#endif
