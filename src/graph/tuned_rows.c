/* The table of tuned.h, in a file of its own so that a test can replace it. */
#include "graph/tuned.h"
#include "ops/all.h"

#define TUNED(level, op, pass, window, stride, c, k, places, fma, exact, fast, bfloat16)           \
    { #level,                                                                                      \
      &keel_op_##op,                                                                               \
      pass,                                                                                        \
      window,                                                                                      \
      stride,                                                                                      \
      c,                                                                                           \
      k,                                                                                           \
      places,                                                                                      \
      { [KEEL_FLOAT32_FMA] = fma,                                                                  \
        [KEEL_FLOAT32_EXACT] = exact,                                                              \
        [KEEL_FLOAT32_FAST] = fast,                                                                \
        [KEEL_TUNED_BFLOAT16] = bfloat16 } },
const keel_tuned keel_tuned_rows[] = {
#include "graph/tuned.inc"
    { 0 },
};
