/* Numbers of a config: one, or lists of numbers inside lists, as a tensor. */
#ifndef KEEL_LAYERS_NUMBERS_H
#define KEEL_LAYERS_NUMBERS_H
#include "layers/layer.h"

/* The shape that the first elements say; rank 0: it is no list. False: a list is empty, or there
 * are too many dims. */
bool keel_numbers_shape(const json_t *v, keel_shape *shape);
/* Copies the numbers, `true` as 1. False: something else is among them, or lists differ in length.
 */
bool keel_numbers_copy(const json_t *v, const keel_shape *shape, double *to);

#endif
