/* The kernel of conv_tiles_cases.h on tiles in plain C, which give the bits of the processor's:
 * this program has its own objects of this kernel, and the linker takes them in place of the
 * library's. */
#include "conv_tiles_cases.h"

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
