/* What this processor can do, and how vendor code is kept to one thread. */
#ifndef KEEL_DEVICE_CPU_CPU_H
#define KEEL_DEVICE_CPU_CPU_H
#include <stdbool.h>

/* Instruction sets, each with all before it. A file NAME_SET.c is compiled for its set:
 * what is in it is called on processors only that have it. */
typedef enum keel_cpu_isa {
    KEEL_CPU_BASE,
    KEEL_CPU_AVX2,        /* and FMA */
    KEEL_CPU_AVX512,      /* F, BW, DQ, VL */
    KEEL_CPU_AVX512_BF16, /* products of bfloat16 pairs: twice as many operations a second as in
                             float32 */
    KEEL_CPU_AMX,         /* tiles and their products of bfloat16, which the operating system has
                             allowed this process to use */
    KEEL_CPU_ISAS
} keel_cpu_isa;

/* The best set of this processor that the operating system saves, no better than the limit. Any
 * thread; cheap. */
keel_cpu_isa keel_cpu_level(void);

/* Pretend to be no better than `isa`; KEEL_CPU_AMX, where it stands at first, takes the limit away.
 * oneDNN keeps to the limit that stood when its first kernel was made. */
void keel_cpu_limit(keel_cpu_isa isa);
keel_cpu_isa keel_cpu_limit_now(void);

const char *keel_cpu_isa_name(keel_cpu_isa isa); /* "avx512" */

/* Does this processor multiply bfloat16 pairs, and are kernels for values held so worth their
 * while? Any thread; cheap. */
bool keel_cpu_bf16(void);

/* The version of oneDNN that is loaded, "3.2.0"; in dnnl.c, so not in a build without oneDNN. */
const char *keel_dnnl_version(void);

/* Every worker calls this once before it prepares or runs a kernel: libraries that use OpenMP then
 * start no team in this thread. A lane of several cores is several workers. false: no OpenMP in the
 * process. */
bool keel_cpu_single_thread(void);

/* Give this thread back the team size that it had before keel_cpu_single_thread. */
void keel_cpu_restore_threads(void);

#endif
