/* The instruction set of this processor, and a limit of one thread for vendor libraries. */
#ifndef KEEL_DEVICE_CPU_CPU_H
#define KEEL_DEVICE_CPU_CPU_H
#include <stdbool.h>

/* Instruction sets; each includes all before it. A file NAME_SET.c is compiled for its set, and its
 * functions are called only on processors that have it. */
typedef enum keel_cpu_isa {
    KEEL_CPU_BASE,
    KEEL_CPU_AVX2,        /* and FMA */
    KEEL_CPU_AVX512,      /* F, BW, DQ, VL */
    KEEL_CPU_AVX512_BF16, /* products of bfloat16 pairs: twice the operations per second of float32
                           */
    KEEL_CPU_AMX,         /* bfloat16 tile products, which the operating system must permit */
    KEEL_CPU_ISAS
} keel_cpu_isa;

/* The best set that processor and operating system support, up to the limit. Thread-safe; cheap. */
keel_cpu_isa keel_cpu_level(void);

/* Use no set above `isa`. The default, KEEL_CPU_AMX, is no limit. oneDNN keeps the limit that was
 * set when its first kernel was made. */
void keel_cpu_limit(keel_cpu_isa isa);
keel_cpu_isa keel_cpu_limit_now(void);

const char *keel_cpu_isa_name(keel_cpu_isa isa); /* "avx512" */

/* True if the processor multiplies bfloat16 pairs, so that kernels for bfloat16 values are faster.
 * Thread-safe; cheap. */
bool keel_cpu_bf16(void);

/* The version of the loaded oneDNN, "3.2.0". Defined in dnnl.c, so only in builds with oneDNN. */
const char *keel_dnnl_version(void);

/* Limit OpenMP to one thread in calls from this thread. Every worker calls it once before it
 * prepares or runs a kernel. False: the process has no OpenMP. */
bool keel_cpu_single_thread(void);

/* Restore this thread's OpenMP team size from before keel_cpu_single_thread. */
void keel_cpu_restore_threads(void);

#endif
