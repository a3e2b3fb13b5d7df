/* The kernels of winograd_cases.h that use the tiles of AMX, on tiles in plain C: this program has
 * its own objects of these kernels, and the linker takes them in place of the library's. */
enum { EMULATED = 1 };
#include "winograd_cases.h"

static void this_processor_has_no_avx512(void **unused)
{
    (void)unused;
    skip();
}

/* Only tiles are emulated: the transforms are compiled for AVX-512. */
int main(void)
{
    const struct CMUnitTest none[] = { cmocka_unit_test(this_processor_has_no_avx512) };
    if (keel_cpu_level() < KEEL_CPU_AVX512) return cmocka_run_group_tests(none, NULL, NULL);
    return run_all();
}
