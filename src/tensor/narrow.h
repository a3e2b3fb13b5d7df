/* Values of float32 in memory of any type that is held between ops: float32, bfloat16, float16. */
#ifndef KEEL_TENSOR_NARROW_H
#define KEEL_TENSOR_NARROW_H
#include "tensor/dtype.h"

/* Convert n elements; the arrays must not overlap. */
void keel_narrow_read(float *to, keel_dtype type, const void *from, int64_t n);
void keel_narrow_write(void *to, keel_dtype type, const float *from, int64_t n);
/* Round n elements to the nearest of that narrow type. */
void keel_narrow_round(float *x, keel_dtype type, int64_t n);
/* The number of that type, or float32 or float64, that is nearest to x. */
double keel_real_as(keel_dtype type, double x);
/* The largest finite number of that type; float64 has the one of float32. */
double keel_real_largest(keel_dtype type);

#endif
