/* The types a value can have. Training runs in float32, checks in float64; bfloat16 is how values
 * are held between ops under Keras's policy mixed_bfloat16, never the type of a weight, a file or
 * a batch, and so not among the public ones. */
#ifndef KEEL_TENSOR_DTYPE_H
#define KEEL_TENSOR_DTYPE_H
#include "keel/tensor.h"
#include <stdbool.h>
#include <stddef.h>

#define KEEL_BFLOAT16 ((keel_dtype)KEEL_DTYPE_COUNT)

size_t keel_dtype_size(keel_dtype t);
const char *keel_dtype_name(keel_dtype t);                      /* Keras's: "float32" */
keel_status keel_dtype_find(keel_dtype *out, const char *name); /* KEEL_EUNSUP names it */
bool keel_dtype_is_real(keel_dtype t);                          /* float32, float64 */
bool keel_dtype_flows(keel_dtype t); /* gradients flow through such values: bfloat16 too */

#endif
