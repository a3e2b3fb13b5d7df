/* Processes that each keep a part of the optimizer's state, of which one is lost, fails or is slow:
 * the others have the weights of a whole step, and without all of the state they do not save it.
 * Processes are threads here. */
#include "sharded_works.h"
#include <glob.h>

enum { FALLING = 3, STEPS_MOST = 16 };

/* The weights after each step, and behind them those that a fit ends with: averages, maybe. */
typedef struct steps {
    int n;
    int64_t count;
    float *after[STEPS_MOST];
} steps;

static void copy_weights(const keel_model *m, float *to)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        const size_t n = (size_t)keel_shape_count(&t.shape);
        memcpy(to, t.data, n * sizeof *to);
        to += n;
        keel_tensor_free(&t);
    }
}

static void keep_step(steps *x, const keel_model *m)
{
    if (!x->n)
        for (int i = 0; i < m->n_weight; i++)
            x->count += keel_shape_count(&m->weight[i].info.spec.shape);
    x->after[x->n] = calloc((size_t)x->count, sizeof(float));
    copy_weights(m, x->after[x->n++]);
}

static keel_status on_step(void *context, const keel_moment *at)
{
    keep_step(context, at->model);
    return KEEL_OK;
}

static void make_steps(steps *x, const work *w)
{
    const keel_callback c = { KEEL_CALLBACK, .on_train_batch_end = on_step, .context = x };
    member one = { .of = { .recipe = &w->recipe, .data = rows_of(&w->recipe) }, .work = w };
    keel_strategy *s;
    one.of.outcome.model = model_with(w);
    keep_step(x, one.of.outcome.model);
    must(keel_strategy_create(&s, "cpu:0"));
    must(fit_work(&one.of, s, KEEL_CALLBACKS(&c)));
    keep_step(x, one.of.outcome.model);
    keel_strategy_destroy(s);
    keel_dataset_destroy(one.of.data);
    forget(&one.of.outcome);
}

static bool is_step(const steps *x, const keel_model *m)
{
    float *now = calloc((size_t)x->count, sizeof *now);
    const int64_t i = m->compiled.iterations;
    copy_weights(m, now);
    const size_t bytes = (size_t)x->count * sizeof *now;
    bool same = i < x->n && !memcmp(now, x->after[i], bytes);
    if (i == x->n - 2) same = same || !memcmp(now, x->after[i + 1], bytes);
    free(now);
    return same;
}

/* The file of a process that saves what is left has the weights, and no state. */
static void saves_without_state(const keel_model *m, const steps *x)
{
    keel_model *back;
    must(keel_model_save(m, "left.keras"));
    must(keel_model_load(&back, "left.keras"));
    assert_true(keel_model_has_state(back));
    assert_int_equal(keel_model_steps_done(back), 0);
    for (int i = 0; i < back->compiled.n_state; i++) {
        const keel_tensor *t = &back->compiled.state[i];
        for (int64_t k = 0; t->data && k < keel_shape_count(&t->shape); k++)
            assert_true(((const float *)t->data)[k] == 0);
    }
    back->compiled.iterations = m->compiled.iterations;
    assert_true(is_step(x, back));
    keel_model_destroy(back);
    unlink("left.keras");
}

enum how { CANNOT_START, SILENT, CANNOT_END, HOWS };

typedef struct fallen {
    const work *work;
    const steps *steps;
    int who, k, exchanges;
    enum how how;
} fallen;

static bool fall_within(const fallen *f, double timeout, char *why, size_t size)
{
    char name[64];
    bool good = true;
    job j;
    begin_job(&j, f->work, FALLING, NULL, 1);
    struct thread_member *m = &j.group.member[f->who];
    if (f->how == SILENT) m->mute_at = f->k;
    if (f->how == CANNOT_START) m->fail_at = f->k;
    if (f->how == CANNOT_END) m->test_fails_at = f->k;
    for (int i = 0; i < FALLING; i++) j.x[i].of.timeout = timeout;
    snprintf(name, sizeof name, "process %d (here) has not answered", f->who);
    run_job(&j);
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < FALLING && good; i++) {
        const process *p = &j.x[i].of;
        const keel_model *left = p->outcome.model;
        bool named = strstr(p->error, name) || i == f->who;
        for (int q = 0; q < FALLING && !named; q++) { /* or one that has named it */
            char another[64];
            snprintf(another, sizeof another, "process %d (here) has not answered", q);
            named = strstr(p->error, another) && strstr(j.x[q].of.error, name);
        }
        good = p->status == KEEL_EREMOTE && named;
        if (!good)
            snprintf(why, size,
                     "%s: exchange %d of %d, process %d lost within %g s: process %d: "
                     "%s: %s",
                     f->work->what, f->k, f->exchanges, f->who, timeout, i,
                     keel_status_name(p->status), p->error);
        if (i == f->who) continue;
        if (!is_step(f->steps, left))
            fail_msg("%s: exchange %d, process %d lost: process %d has the weights of no step",
                     f->work->what, f->k, f->who, i);
        if (left->compiled.iterations < least) least = left->compiled.iterations;
        if (left->compiled.iterations > most) most = left->compiled.iterations;
        if (!keel_model_has_state(left) && f->k % 16 == 1) saves_without_state(left, f->steps);
        /* of a fit that went well, of which evaluate and predict fail, process 0 has all */
        if (i == 0 && keel_model_has_state(left) && left->compiled.iterations > 0 &&
            p->outcome.history.epochs < 2)
            fail_msg("exchange %d: process 0 says that it has all of the state", f->k);
    }
    if (good && most > least + 1) fail_msg("exchange %d: survivors are two steps apart", f->k);
    end_job(&j);
    return good;
}

static void fall(const fallen *f)
{
    char why[1400] = "";
    bool good = false;
    for (double s = SLOW ? 2 : 0.25; s < 20 && !good; s *= 4)
        good = fall_within(f, s, why, sizeof why);
    if (!good) fail_msg("%s", why);
}

static void whoever_is_lost_at_any_exchange_leaves_whole_steps(void **unused)
{
    static const int lost_works[] = { 7, 10 }; /* norms; averages */
    (void)unused;
    for (int i = 0; i < 2; i++) {
        work w = works[lost_works[i]];
        steps x = { 0 };
        w.recipe.batch_size = 40;
        make_steps(&x, &w);
        job j;
        begin_job(&j, &w, FALLING, NULL, 1);
        run_job(&j);
        all_went_well(&j);
        const int all = j.group.member[1].exchanges;
        end_job(&j);
        assert_true(all > 50);
        /* each exchange of the second step, and some before and after */
        const int from = all / 6 * 2, by = SLOW ? 5 : 1;
        for (int k = 1 + i; k < all; k += i == 0 && k >= from && k < from + 24 ? 2 * by : 26 * by)
            fall(&(fallen){ .work = &w,
                            .steps = &x,
                            .who = k % 4 ? 1 : k / 4 % 2 * 2,
                            .k = k,
                            .exchanges = all,
                            .how = (enum how)(k % HOWS) });
        for (int k = 0; k < x.n; k++) free(x.after[k]);
    }
}

static void late_messages_change_nothing(void **unused)
{
    (void)unused;
    const work *w = &works[7];
    outcome one;
    job j;
    run_alone(&one, w);
    begin_job(&j, w, FALLING, NULL, 1);
    for (int i = 0; i < FALLING; i++) j.group.member[i].late = 5 + 20 * i;
    run_job(&j);
    all_went_well(&j);
    for (int i = 0; i < FALLING; i++)
        compare(&one, &j.x[i].of.outcome, &w->recipe, "a process on a slow network");
    end_job(&j);
    forget(&one);
}

/* A callback of one process fails, which the others learn; and all give their parts. */
static void a_failure_of_one_process_leaves_process_0_with_the_state(void **unused)
{
    (void)unused;
    for (int who = 0; who < FALLING; who++) {
        job j;
        begin_job(&j, &works[0], FALLING, NULL, 1);
        j.x[who].of.fails_at = 2;
        run_job(&j);
        for (int i = 0; i < FALLING; i++) {
            const process *p = &j.x[i].of;
            if (p->status != KEEL_ECALLBACK || !strstr(p->error, "the test ends it"))
                fail_msg("process %d: %s", i, p->error);
            assert_int_equal(p->outcome.model->compiled.iterations, 2);
            assert_true(keel_model_has_state(p->outcome.model) == (i == 0));
        }
        end_job(&j);
    }
}

/* Counts the checkpoints of a folder, which goes away; all must have their steps. */
static int whole_checkpoints(const char *folder, int k)
{
    glob_t all;
    char pattern[64];
    snprintf(pattern, sizeof pattern, "%s/*.keras", folder);
    const int n = glob(pattern, 0, NULL, &all) ? 0 : (int)all.gl_pathc;
    for (int i = 0; i < n; i++) {
        keel_model *m;
        must(keel_model_load(&m, all.gl_pathv[i]));
        if (keel_model_steps_done(m) == 0)
            fail_msg("exchange %d: %s has no state of the optimizer", k, all.gl_pathv[i]);
        keel_model_destroy(m);
        unlink(all.gl_pathv[i]);
    }
    if (n) globfree(&all);
    return n;
}

/* Each process has a disk of its own, and process 0 falls silent, with the state that it has been
 * given. */
static void who_stands_in_writes_no_checkpoint_without_the_state(void **unused)
{
    static const char *const folder[FALLING] = { "ck0", "ck1", "ck2" };
    const int by = SLOW ? 7 : 1;
    int written = 0;
    (void)unused;
    for (int k = 60; k < 90; k += by) {
        job j;
        begin_job(&j, &works[0], FALLING, NULL, 1);
        j.group.member[0].mute_at = k;
        for (int i = 0; i < FALLING; i++) {
            j.x[i].of.timeout = SLOW ? 2 : 0.25;
            j.x[i].folder = folder[i];
            j.x[i].every_steps = 1;
        }
        run_job(&j);
        end_job(&j);
        for (int i = 0; i < FALLING; i++) written += whole_checkpoints(folder[i], k);
    }
    assert_true(written > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_lost_at_any_exchange_leaves_whole_steps),
        cmocka_unit_test(late_messages_change_nothing),
        cmocka_unit_test(a_failure_of_one_process_leaves_process_0_with_the_state),
        cmocka_unit_test(who_stands_in_writes_no_checkpoint_without_the_state),
    };
    return cmocka_run_group_tests(tests, start_apart, NULL);
}
