/* Finds the instruction set by the compiler's builtin, which also checks that the operating system
 * saves the registers. */
#define _GNU_SOURCE
#include "device/cpu/cpu.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static atomic_int limit = KEEL_CPU_AMX;

#if defined(__x86_64__)
/* AMX tiles are 8 KiB of state, which Linux saves only for a process that requested it. The
 * permission is for all threads; a second request has no effect. */
static bool tiles_allowed(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    const unsigned tile_and_bf16 = 1u << 24 | 1u << 22; /* of CPUID 7, EDX */
    static atomic_int answer;                           /* 0: not requested yet, 1: no, 2: yes */
    int known = atomic_load(&answer);
    if (!known) {
        unsigned a, b, c, d;
        const bool has =
            __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tile_and_bf16) == tile_and_bf16;
        known = has && !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) ? 2 : 1;
        atomic_store(&answer, known);
    }
    return known == 2;
}
#endif

static keel_cpu_isa detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return KEEL_CPU_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return KEEL_CPU_AVX2;
    if (!__builtin_cpu_supports("avx512bf16")) return KEEL_CPU_AVX512;
    return tiles_allowed() ? KEEL_CPU_AMX : KEEL_CPU_AVX512_BF16;
#else
    return KEEL_CPU_BASE;
#endif
}

keel_cpu_isa keel_cpu_level(void)
{
    const keel_cpu_isa have = detect(), most = keel_cpu_limit_now();
    return have < most ? have : most;
}

void keel_cpu_limit(keel_cpu_isa isa)
{
    atomic_store(&limit, isa);
}

keel_cpu_isa keel_cpu_limit_now(void)
{
    return (keel_cpu_isa)atomic_load(&limit);
}

bool keel_cpu_bf16(void)
{
    return keel_cpu_level() >= KEEL_CPU_AVX512_BF16;
}

const char *keel_cpu_isa_name(keel_cpu_isa isa)
{
    static const char *const name[] = { "base", "avx2", "avx512", "avx512_bf16", "amx" };
    return name[isa];
}

/* OpenMP's team size of this thread before keel_cpu_single_thread; 0: not called. */
static _Thread_local int team_before;

/* Looked up at run time, not linked: the OpenMP library is the one that oneDNN loads, and a build
 * without oneDNN has none. */
static bool openmp_set(int threads)
{
    void *const symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    void (*set)(int);
    if (!symbol) return false;
    memcpy(&set, &symbol, sizeof set);
    set(threads);
    return true;
}

static int openmp_get(void)
{
    void *const symbol = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    int (*get)(void);
    if (!symbol) return 0;
    memcpy(&get, &symbol, sizeof get);
    return get();
}

bool keel_cpu_single_thread(void)
{
    if (!team_before) team_before = openmp_get();
    return openmp_set(1);
}

void keel_cpu_restore_threads(void)
{
    if (team_before) openmp_set(team_before);
    team_before = 0;
}
