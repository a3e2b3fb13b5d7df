/* The kernels of split_cases.h on tiles in plain C, which give the bits of the processor's: this
 * program brings its own _split_amx.c, and the linker takes it in place of the library's. */
#define KEEL_TILES_EMULATED
#pragma GCC optimize("O3")
#include "split_cases.h"
#include "ops/x86/_split_amx.c"

static void this_processor_has_no_avx512(void **unused)
{
    (void)unused;
    skip();
}

/* Only tiles are emulated: what packs and adds up their numbers is compiled for AVX-512. */
int main(void)
{
    const struct CMUnitTest none[] = { cmocka_unit_test(this_processor_has_no_avx512) };
    if (keel_cpu_level() < KEEL_CPU_AVX512) return cmocka_run_group_tests(none, NULL, NULL);
    return run_all();
}
