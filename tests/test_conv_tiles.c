/* The kernel of conv_tiles_cases.h on the tiles of this processor, where it has any. */
#include "conv_tiles_cases.h"

static void this_processor_has_no_tiles(void **unused)
{
    (void)unused;
    skip();
}

int main(void)
{
    const struct CMUnitTest none[] = { cmocka_unit_test(this_processor_has_no_tiles) };
    if (keel_cpu_level() < KEEL_CPU_AMX) return cmocka_run_group_tests(none, NULL, NULL);
    return run_all();
}
