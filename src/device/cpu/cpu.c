/* Instruction sets by the compiler's own query, which also asks what the operating system saves. */
#define _GNU_SOURCE
#include "device/cpu/cpu.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int limit = KEEL_CPU_AVX512;

static keel_cpu_isa detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return KEEL_CPU_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return KEEL_CPU_AVX2;
    return KEEL_CPU_AVX512;
#else
    return KEEL_CPU_BASE;
#endif
}

keel_cpu_isa keel_cpu_level(void)
{
    const keel_cpu_isa have = detect(), most = (keel_cpu_isa)atomic_load(&limit);
    return have < most ? have : most;
}

void keel_cpu_limit(keel_cpu_isa isa)
{
    atomic_store(&limit, isa);
}

const char *keel_cpu_isa_name(keel_cpu_isa isa)
{
    static const char *const name[] = { "base", "avx2", "avx512" };
    return name[isa];
}

/* Looked up rather than linked: the OpenMP library is the vendor library's, whichever it brought,
 * and is absent in a build without one. */
bool keel_cpu_single_thread(void)
{
    void *const symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    void (*set)(int);
    if (!symbol) return false;
    memcpy(&set, &symbol, sizeof set);
    set(1);
    return true;
}
