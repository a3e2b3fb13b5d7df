/* Reproducible: the same bits for any number of lanes on any number of workers, also more workers
 * than this machine has cores. Weights, the optimizer's state, BatchNorm's statistics, logs and
 * predictions of two epochs are compared with those of one lane on one worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "device/discover.h"
#include "reproducible_works.h"
#include "sweep.h"
#include "train/strategy.h"

enum { WORKERS = 8 };

/* ---- lanes on workers ------------------------------------------------------------------------ */

static keel_strategy *strategy_of(int lanes, int workers)
{
    keel_cores real, cores = { .n = workers };
    keel_strategy *s;
    char devices[32];
    must(keel_cores_find(&real));
    for (int i = 0; i < workers; i++) cores.os[i] = real.os[i % real.n];
    snprintf(devices, sizeof devices, lanes == 1 ? "cpu:0" : "cpu:0-%d", lanes - 1);
    must(keel_strategy_create_on(&s, devices, &cores));
    assert_int_equal(keel_strategy_cores(s), lanes < workers ? lanes : workers);
    return s;
}

static outcome run(const recipe *r, int lanes, int workers)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    keel_strategy *s = strategy_of(lanes, workers);
    must(run_on(&o, r, s, d));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return o;
}

static void bits_are_those_of_one_lane(void **unused)
{
    static const int lanes[] = { 2, 3, 4, 5, 7, 8, 16 }, workers[] = { 1, 2, 3, 4, 6, 8 };
    enum { N_LANES = 7, N_WORKERS = 6 };
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        outcome one = run(&recipes[i], 1, 1);
        char how[48];
        int runs = 0;
        /* the first has every pair; of the others each number of lanes and of workers comes, under
         * a sanitizer once for each number of lanes */
        for (int l = 0; l < N_LANES; l++)
            for (int w = 0; w < N_WORKERS; w++) {
                if (i > 0 && (l + w + (int)i) % thin(3, 5, 6)) continue;
                outcome many = run(&recipes[i], lanes[l], workers[w]);
                snprintf(how, sizeof how, "%d lanes on %d workers", lanes[l], workers[w]);
                compare(&one, &many, &recipes[i], how);
                forget(&many);
                runs++;
            }
        print_message("%s: %d runs\n", recipes[i].name, runs);
        forget(&one);
    }
}

static void a_number_of_shards_that_cannot_be_is_refused(void **unused)
{
    (void)unused;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-19"));
    assert_int_equal(keel_strategy_reproducible(s, 16), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "16 shards for 20 devices"));
    assert_int_equal(keel_strategy_reproducible(s, 257), KEEL_EARG);
    assert_int_equal(keel_strategy_reproducible(s, 0), KEEL_EARG);
    assert_int_equal(keel_strategy_shards(s), 0);
    must(keel_strategy_reproducible(s, 20));
    assert_int_equal(keel_strategy_shards(s), 20);
    for (int64_t n = 1; n < 100; n++) { /* every row once */
        int64_t sum = 0;
        for (int i = 0; i < 20; i++) sum += keel_strategy_rows(s, i, n);
        assert_int_equal(sum, n);
    }
    keel_strategy_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_lane),
        cmocka_unit_test(a_number_of_shards_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
