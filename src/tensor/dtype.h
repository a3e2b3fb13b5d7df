/* Element types. Training runs in float32, tests also in float64. bfloat16 stores values between
 * ops under Keras's policy mixed_bfloat16; it is never the type of a weight, file or batch, so it
 * is not a public type. */
#ifndef KEEL_TENSOR_DTYPE_H
#define KEEL_TENSOR_DTYPE_H
#include "keel/tensor.h"
#include <stdbool.h>
#include <stddef.h>

#define KEEL_BFLOAT16 ((keel_dtype)KEEL_DTYPE_COUNT)

size_t keel_dtype_size(keel_dtype t);
const char *keel_dtype_name(keel_dtype t);                      /* Keras's: "float32" */
keel_status keel_dtype_find(keel_dtype *out, const char *name); /* KEEL_EUNSUP: unknown name */
bool keel_dtype_is_real(keel_dtype t);                          /* float32, float64 */
bool keel_dtype_flows(keel_dtype t); /* values with gradients: also bfloat16 */

#endif
