/* Processes that each keep a part of the optimizer's state have the bits of one process: weights,
 * logs, predictions, and the state once it is gathered. Where parts make no sense they are refused.
 * Processes are threads here. See also test_sharded_optimizers.c, test_sharded_parts.c (their
 * size), test_sharded_lost.c and test_sharded_files.c (checkpoints). */
#include "sharded_works.h"

/* Optimizers that are refused have a test of their own. */
static bool is_whole(const recipe *r)
{
    return !strcmp(r->optimizer, "lamb") || !strcmp(r->optimizer, "muon") ||
           !strcmp(r->optimizer, "adafactor");
}

static void bits_are_those_of_one_process(void **unused)
{
    static const int counts[] = { 2, 3, 4, 7, 8 };
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const work w = { .what = recipes[i].name, .recipe = recipes[i] };
        outcome one;
        if (is_whole(&recipes[i])) continue;
        run_alone(&one, &w);
        for (size_t c = 0; c < 5; c++) {
            int lanes[THREADS_MAX], all = 0;
            if (i > 0 && (c + i) % (size_t)thin(2, 4, 5)) continue;
            for (int k = 0; k < counts[c]; k++)
                all += lanes[k] = 1 + (int)(k + c + i) % (counts[c] > 4 ? 2 : 4);
            if (all > w.recipe.shards) continue;
            runs_as_one(&w, &one, counts[c], lanes, 1 + (int)(i + c) % 2);
        }
        forget(&one);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static keel_status fit_again(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    keel_history_free(&p->outcome.history);
    KEEL_TRY(fit_work(p, s, callbacks));
    keel_history_free(&p->outcome.history);
    keel_tensor_free(&p->outcome.predicted);
    return fit_work(p, s, callbacks);
}

static keel_status as_one_likes(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    ((member *)p)->whole = keel_strategy_rank(s) == 1;
    return fit_work(p, s, callbacks);
}

static void what_makes_no_sense_is_refused_by_name(void **unused)
{
    static const struct {
        const char *what;
        int n;
        keel_status (*run)(process *p, keel_strategy *s, const keel_callback *const *callbacks);
        const char *callback;
        keel_status want;
        const char *text;
    } cases[] = {
        { "one process", 1, fit_work, NULL, KEEL_EARG, "for several processes" },
        { "one that does not", 3, as_one_likes, NULL, KEEL_EARG, "shard_optimizer is" },
        { "a model whose state is elsewhere", 2, fit_again, NULL, KEEL_EUNSUP,
          "the optimizer's state is not in this process" },
        { "SwapEMAWeights", 2, fit_work, "SwapEMAWeights()", KEEL_EUNSUP, "SwapEMAWeights needs" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        work w = works[10]; /* averages */
        job j;
        w.callback = cases[i].callback;
        begin_job(&j, &w, cases[i].n, NULL, 1);
        for (int k = 0; k < j.n; k++) j.x[k].of.run = cases[i].run;
        run_job(&j);
        for (int k = 0; k < j.n; k++) {
            const process *p = &j.x[k].of;
            if (p->status != cases[i].want || !strstr(p->error, cases[i].text))
                fail_msg("%s, process %d: %s: %s", cases[i].what, k, keel_status_name(p->status),
                         p->error);
        }
        end_job(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_process),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, start_apart, NULL);
}
