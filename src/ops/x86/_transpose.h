/* 16 x 16 words of 32 bits, transposed in registers. */
#ifndef KEEL_OPS_X86_TRANSPOSE_H
#define KEEL_OPS_X86_TRANSPOSE_H
#include <stdint.h>

typedef int32_t words16 __attribute__((vector_size(64), aligned(4), may_alias));

/* Word [i][j] to [j][i], by swapping ever larger blocks. */
#define SWAP(d)                                                                                    \
    for (int i = 0; i < 16; i++)                                                                   \
        if (!(i & d)) {                                                                            \
            const words16 a = r[i], b = r[i + d];                                                  \
            r[i] = __builtin_shufflevector(a, b, LOW(0, d), LOW(1, d), LOW(2, d), LOW(3, d),       \
                                           LOW(4, d), LOW(5, d), LOW(6, d), LOW(7, d), LOW(8, d),  \
                                           LOW(9, d), LOW(10, d), LOW(11, d), LOW(12, d),          \
                                           LOW(13, d), LOW(14, d), LOW(15, d));                    \
            r[i + d] = __builtin_shufflevector(                                                    \
                a, b, HIGH(0, d), HIGH(1, d), HIGH(2, d), HIGH(3, d), HIGH(4, d), HIGH(5, d),      \
                HIGH(6, d), HIGH(7, d), HIGH(8, d), HIGH(9, d), HIGH(10, d), HIGH(11, d),          \
                HIGH(12, d), HIGH(13, d), HIGH(14, d), HIGH(15, d));                               \
        }
#define LOW(l, d)  ((l) & (d) ? 16 + (l) - (d) : (l))
#define HIGH(l, d) ((l) & (d) ? 16 + (l) : (l) + (d))
static inline void transpose(words16 r[16])
{
    SWAP(1)
    SWAP(2)
    SWAP(4)
    SWAP(8)
}
#undef SWAP
#undef LOW
#undef HIGH

#endif
