/* Write a reference once, get it for float and double.
 *
 *     #ifndef REAL
 *     #include "ops/op.h"
 *     #define REAL_FILE "ops/relu.c"
 *     #include "ops/real.h"
 *     ... infer, and at the end the const struct, with .forward = REALS(forward) ...
 *     #else
 *     static void REAL_(forward)(const keel_call *c) { const REAL *x = c->in[0]; ... }
 *     #endif
 *
 * REALS(f) is { f_f32, f_f64 }. No include guard: the header includes the file twice. Where no
 * REAL_FILE is named it gives the words alone, for those who write the two by a macro of their own
 * (ops/pointwise.h). */
#define REALS(f)                                                                                   \
    {                                                                                              \
        f##_f32, f##_f64                                                                           \
    }
/* The first parameter of a function of (args, x) that has no arguments. */
#define NO_ARGS const void *a __attribute__((unused))

#ifdef REAL_FILE
#define REAL           float
#define REAL_(name)    name##_f32
#define REAL_IS_DOUBLE 0
#include REAL_FILE
#undef REAL
#undef REAL_
#undef REAL_IS_DOUBLE
#define REAL           double
#define REAL_(name)    name##_f64
#define REAL_IS_DOUBLE 1
#include REAL_FILE
#undef REAL_
#undef REAL_IS_DOUBLE
#undef REAL
#endif
