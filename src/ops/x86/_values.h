/* Write the loops of a vector kernel once, get them for values held in float32 and in bfloat16;
 * sums and all that is worked out stay float32 in registers.
 *
 *     #ifndef VALUE
 *     #include "ops/x86/_vector.h"
 *     #define VALUE_FILE "ops/x86/relu.c"
 *     #include "ops/x86/_values.h"
 *     VECTOR_BOTH(relu, vector_prepare);
 *     #else
 *     static void VALUE_(forward)(const keel_call *c) { const VALUE *x = c->in[0]; ... }
 *     #endif
 *
 * Values are read by vx_load_some() and written by vx_store_some(), which go by the type of the
 * pointer. No include guard: the header includes the file twice. */
#define VALUE        float
#define VALUE_(name) name##_f32
#include VALUE_FILE
#undef VALUE
#undef VALUE_
#define VALUE        keel_bf16
#define VALUE_(name) name##_bf16
#include VALUE_FILE
#undef VALUE_
#undef VALUE
#undef VALUE_FILE
