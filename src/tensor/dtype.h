/* The types a value can have. Training runs in float32, checks in float64. */
#ifndef KEEL_TENSOR_DTYPE_H
#define KEEL_TENSOR_DTYPE_H
#include "keel/tensor.h"
#include <stdbool.h>
#include <stddef.h>

size_t keel_dtype_size(keel_dtype t);
const char *keel_dtype_name(keel_dtype t);                      /* Keras's: "float32" */
keel_status keel_dtype_find(keel_dtype *out, const char *name); /* KEEL_EUNSUP names it */
bool keel_dtype_is_real(keel_dtype t);                          /* float32, float64 */

#endif
