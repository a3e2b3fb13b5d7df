/* What this processor can do, and how vendor code is kept to one thread. */
#ifndef KEEL_DEVICE_CPU_CPU_H
#define KEEL_DEVICE_CPU_CPU_H
#include <stdbool.h>

/* Instruction sets, each with all before it. A file NAME_avx2.c is compiled for KEEL_CPU_AVX2 (AVX2
 * and FMA), NAME_avx512.c for KEEL_CPU_AVX512 (F, BW, DQ, VL), NAME_amx.c for KEEL_CPU_AMX (tiles
 * and their products of bfloat16, which the operating system has allowed this process to use); its
 * prepare answers KEEL_EUNSUP below that. */
typedef enum keel_cpu_isa {
    KEEL_CPU_BASE,
    KEEL_CPU_AVX2,
    KEEL_CPU_AVX512,
    KEEL_CPU_AMX
} keel_cpu_isa;

/* The best set of this processor that the operating system saves. Any thread; cheap. */
keel_cpu_isa keel_cpu_level(void);

/* For tests: pretend to be no better than `isa`; KEEL_CPU_AMX takes the limit away. */
void keel_cpu_limit(keel_cpu_isa isa);

const char *keel_cpu_isa_name(keel_cpu_isa isa); /* "avx512" */

/* KEEL_CPU_AVX512 and its products of bfloat16 pairs: a file NAME_avx512_bf16.c is compiled for
 * those. Twice as many operations a second as in float32, but on a processor with AMX half as many:
 * there a library that knows AMX is the better choice, and this says false. Any thread; cheap. */
bool keel_cpu_bf16(void);

/* Every worker calls this once before it prepares or runs a kernel: libraries that use OpenMP then
 * start no team in this thread. A lane of several cores is several workers. false: no OpenMP in the
 * process. */
bool keel_cpu_single_thread(void);

/* Give this thread back the team size that it had before keel_cpu_single_thread. */
void keel_cpu_restore_threads(void);

#endif
