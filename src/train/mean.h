/* Means over steps, element by element: of gradients and of weights. Arrays are float32 or float64.
 */
#ifndef KEEL_TRAIN_MEAN_H
#define KEEL_TRAIN_MEAN_H
#include "tensor/dtype.h"
#include <stdint.h>

/* sum += grad */
void keel_mean_add(keel_dtype real, void *sum, const void *grad, int64_t count);

/* grad = (grad + sum) / steps; *norm, unless NULL, is the sum of its squares, in the order of
 * keel_device_measure. */
void keel_mean_join(keel_dtype real, void *grad, const void *sum, int64_t count, double steps,
                    double *norm);

/* average = momentum average + (1 - momentum) w */
void keel_mean_move(keel_dtype real, void *average, const void *w, int64_t count, double momentum);

#endif
