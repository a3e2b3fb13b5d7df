/* Unrolling and inlining for kernels. A block of sums stays in registers only if every index into
 * it is a constant, so its loops are unrolled, and its function is inlined where the counts are
 * known. */
#ifndef KEEL_BASE_UNROLL_H
#define KEEL_BASE_UNROLL_H

#define INLINE     static inline __attribute__((always_inline))
#define EACH(i, n) _Pragma("GCC unroll 32") for (int i = 0; i < (n); i++)

#endif
