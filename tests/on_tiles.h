/* Runs the tests of kernels for AMX where their tiles are: on the processor's, or in programs whose
 * name ends with _emulated, which have objects of these kernels with tiles in plain C, and give the
 * linker those in place of the library's. They have the bits of the processor's. */
#ifndef KEEL_TESTS_ON_TILES_H
#define KEEL_TESTS_ON_TILES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "device/cpu/cpu.h"

static inline void this_processor_has_no_tiles(void **unused)
{
    (void)unused;
    skip();
}

static inline void this_processor_has_no_avx512(void **unused)
{
    (void)unused;
    skip();
}

static inline int on_tiles(int (*all)(void))
{
    const struct CMUnitTest none[] = { cmocka_unit_test(this_processor_has_no_tiles) };
    if (keel_cpu_level() < KEEL_CPU_AMX) return cmocka_run_group_tests(none, NULL, NULL);
    return all();
}

/* Only tiles are emulated: what packs and adds up their numbers is compiled for AVX-512. */
static inline int on_emulated_tiles(int (*all)(void))
{
    const struct CMUnitTest none[] = { cmocka_unit_test(this_processor_has_no_avx512) };
    if (keel_cpu_level() < KEEL_CPU_AVX512) return cmocka_run_group_tests(none, NULL, NULL);
    return all();
}

#endif
