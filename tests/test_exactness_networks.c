/* The answer does not depend on the number of devices: as test_exactness.c, for mixtures of what a
 * network can have and for networks with convolutions, on sizes drawn at random. */
#include "exact_trainings.h"

static void random_sizes(const recipe *r, int count)
{
    for (int k = 0; k < count; k++) {
        const int64_t pick = (int64_t)((noise() + 1) * 24.5f);
        sweep(r, pick < 40 ? pick + 1 : 96 + pick - 40, 1 + (int64_t)((noise() + 1) * 8.5f));
    }
}

static void every_mixture_gives_the_weights_of_one_lane(void **unused)
{
    (void)unused;
    for (int with = 0; with < ALL; with++) random_sizes(&(recipe){ DENSE, with }, thin(8, 3, 1));
}

static void every_network_gives_the_weights_of_one_lane(void **unused)
{
    (void)unused;
    for (int kind = CONVOLUTION; kind < NETWORKS; kind++)
        for (int with = 0; with < ALL; with += thin(1, 4, 9))
            random_sizes(&(recipe){ (network)kind, with }, thin(2, 1, 1));
}

static void a_last_step_of_one_row_through_batch_norm_is_finite(void **unused)
{
    (void)unused;
    for (int kind = DENSE; kind < NETWORKS; kind++)
        for (int64_t n = 1; n <= 33; n += 16) sweep(&(recipe){ (network)kind, BATCH_NORM }, n, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mixture_gives_the_weights_of_one_lane),
        cmocka_unit_test(every_network_gives_the_weights_of_one_lane),
        cmocka_unit_test(a_last_step_of_one_row_through_batch_norm_is_finite),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
