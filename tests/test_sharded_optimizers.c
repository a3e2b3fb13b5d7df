/* Optimizers with all kinds of state have the bits of one process where each process keeps a part
 * of it, and those that move whole weights are refused. Processes are threads here. */
#include "sharded_works.h"

static void optimizers_with_all_kinds_of_state_have_the_bits_of_one_process(void **unused)
{
    static const int counts[] = { 2, 3, 4, 7, 8 }, two_lanes[] = { 2, 1, 2, 1, 2, 1, 2, 1 };
    (void)unused;
    for (size_t i = 0; i < N_WORKS; i++) {
        outcome one;
        run_alone(&one, &works[i]);
        for (size_t c = 0; c < 5; c++)
            if ((c + i) % (size_t)thin(2, 4, 5) == 0)
                runs_as_one(&works[i], &one, counts[c], c < 3 ? two_lanes : NULL, 2);
        forget(&one);
    }
}

/* Gradients travel as bfloat16, weights do not: the bits are those of processes that each have the
 * whole state. */
static void compressed_gradients_give_the_weights_that_they_give_without(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < N_WORKS; i += (size_t)thin(3, 4, 5)) {
        work w = works[i];
        job parts, whole;
        w.compress = true;
        w.recipe.shards = 0;
        begin_job(&parts, &w, 3, NULL, 1);
        run_job(&parts);
        all_went_well(&parts);
        w.whole = true;
        begin_job(&whole, &w, 3, NULL, 1);
        run_job(&whole);
        all_went_well(&whole);
        for (int k = 0; k < 3; k++)
            compare(&whole.x[0].of.outcome, &parts.x[k].of.outcome, &w.recipe, w.what);
        end_job(&parts);
        end_job(&whole);
    }
}

static void what_moves_whole_weights_is_refused_by_name(void **unused)
{
    static const char *const names[] = { "Lamb", "Muon", "Adafactor" };
    (void)unused;
    for (int i = 0; i < 3; i++) {
        const work w = { .what = names[i], .optimizer = names[i], .recipe = like };
        job j;
        begin_job(&j, &w, 2, NULL, 1);
        run_job(&j);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(j.x[k].of.status, KEEL_EUNSUP);
            if (!strstr(j.x[k].of.error, names[i]) || !strstr(j.x[k].of.error, "as a whole"))
                fail_msg("%s", j.x[k].of.error);
            assert_true(keel_model_has_state(j.x[k].of.outcome.model));
        }
        end_job(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_with_all_kinds_of_state_have_the_bits_of_one_process),
        cmocka_unit_test(compressed_gradients_give_the_weights_that_they_give_without),
        cmocka_unit_test(what_moves_whole_weights_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, start_apart, NULL);
}
