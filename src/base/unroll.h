/* What kernels ask of the compiler. A block of sums stays in registers only where every index into
 * it is a constant: its loops are unrolled, and the function that holds them is inlined where its
 * counts are known. */
#ifndef KEEL_BASE_UNROLL_H
#define KEEL_BASE_UNROLL_H

#define INLINE     static inline __attribute__((always_inline))
#define EACH(i, n) _Pragma("GCC unroll 32") for (int i = 0; i < (n); i++)

#endif
