/* Element types. Training runs in float32, tests also in float64. bfloat16 and float16
 * store values between ops under Keras's policies mixed_bfloat16 and mixed_float16; they are never
 * the type of a weight, file or batch, so they are not public types. */
#ifndef KEEL_TENSOR_DTYPE_H
#define KEEL_TENSOR_DTYPE_H
#include "keel/tensor.h"
#include <stdbool.h>
#include <stddef.h>

#define KEEL_BFLOAT16 ((keel_dtype)KEEL_DTYPE_COUNT)
#define KEEL_FLOAT16  ((keel_dtype)(KEEL_DTYPE_COUNT + 1))

size_t keel_dtype_size(keel_dtype t);
const char *keel_dtype_name(keel_dtype t);                      /* Keras's: "float32" */
keel_status keel_dtype_find(keel_dtype *out, const char *name); /* KEEL_EUNSUP: unknown name */
bool keel_dtype_find_narrow(keel_dtype *out, const char *name); /* "bfloat16" or "float16" */
bool keel_dtype_is_real(keel_dtype t);                          /* float32, float64 */
bool keel_dtype_is_narrow(keel_dtype t);                        /* bfloat16, float16 */
bool keel_dtype_flows(keel_dtype t); /* values with gradients: real or narrow */

#endif
