/* Files of processes that keep parts of the optimizer's state: they have all of it, so a fit goes
 * on from a checkpoint with another number of processes, to the bits of one that never stopped; and
 * who is lost leaves the newest checkpoint to go on from. Processes are threads here. */
#include "sharded_works.h"
#include <dirent.h>

static void empty(const char *folder)
{
    char path[600];
    const struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%.300s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}

static void set_out(job *j, const work *w, int n, const member *how)
{
    begin_job(j, w, n, NULL, 1);
    for (int i = 0; i < n; i++) {
        j->x[i].folder = how->folder;
        j->x[i].every_steps = how->every_steps;
        j->x[i].epochs = how->epochs;
        j->x[i].resume = how->resume;
        j->x[i].whole = how->whole;
    }
}

static void a_checkpoint_goes_on_in_any_number_of_processes(void **unused)
{
    static const struct {
        int work; /* of works, or -1 - the recipe */
        int before, after;
        bool whole_before, whole_after;
        int64_t every_steps;
    } cases[] = {
        { 0, 2, 3, false, false, 0 },   { 2, 3, 1, false, true, 0 },
        { 5, 4, 2, false, true, 2 },    { 6, 2, 4, true, false, 1 },
        { 10, 3, 2, false, false, 3 },  { 13, 2, 3, false, false, 1 },
        { -4, 3, 2, false, false, 0 },  /* float64 */
        { -24, 2, 4, false, false, 0 }, /* a loss scale */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int k = cases[i].work;
        const work of_recipe = { .what = "a recipe", .recipe = recipes[k < 0 ? -1 - k : 0] };
        const work *w = k < 0 ? &of_recipe : &works[k];
        member how = { .folder = "ck",
                       .every_steps = cases[i].every_steps,
                       .epochs = 1,
                       .whole = cases[i].whole_before };
        outcome one;
        job before, after;
        if (i % (size_t)thin(1, 2, 4)) continue;
        empty("ck");
        run_alone(&one, w);
        set_out(&before, w, cases[i].before, &how);
        run_job(&before);
        all_went_well(&before);
        how.epochs = 2;
        how.resume = true;
        how.whole = cases[i].whole_after;
        set_out(&after, w, cases[i].after, &how);
        run_job(&after);
        all_went_well(&after);
        for (int q = 0; q < cases[i].after; q++)
            compare(&one, &after.x[q].of.outcome, &w->recipe, w->what);
        assert_true(keel_model_has_state(after.x[0].of.outcome.model));
        end_job(&before);
        end_job(&after);
        forget(&one);
        empty("ck");
    }
}

/* Lost in the last epoch: its checkpoint is not written, the one before it is used. */
static void who_is_lost_leaves_the_last_checkpoint(void **unused)
{
    (void)unused;
    const work *w = &works[7];
    outcome one;
    run_alone(&one, w);
    for (int who = 0; who < 3; who++) {
        const member how = { .folder = "ck" };
        member again = how;
        job first, next;
        int exchanges;
        empty("ck");
        set_out(&first, w, 3, &how);
        run_job(&first);
        all_went_well(&first);
        exchanges = first.group.member[who].exchanges;
        end_job(&first);
        empty("ck");
        set_out(&first, w, 3, &how);
        first.group.member[who].mute_at = exchanges * 3 / 5; /* in the second epoch */
        for (int i = 0; i < 3; i++) first.x[i].of.timeout = SLOW ? 8 : 2;
        run_job(&first);
        for (int i = 0; i < 3; i++) {
            if (first.x[i].of.status != KEEL_EREMOTE) fail_msg("%s", first.x[i].of.error);
            assert_false(keel_model_has_state(first.x[i].of.outcome.model));
        }
        const char *note = first.x[0].of.outcome.history.note;
        if (!note || !strstr(note, "a part of the optimizer's state is lost"))
            fail_msg("the note of process 0 is %s", note ? note : "missing");
        end_job(&first);
        again.resume = true;
        set_out(&next, w, 2, &again);
        run_job(&next);
        all_went_well(&next);
        compare(&one, &next.x[1].of.outcome, &w->recipe, "a fit that goes on");
        compare(&one, &next.x[0].of.outcome, &w->recipe, "a fit that goes on");
        end_job(&next);
        empty("ck");
    }
    forget(&one);
}

static keel_model *saved_by(const work *w, int n, const char *path)
{
    keel_model *m;
    unlink(path);
    if (n == 1) {
        outcome one;
        run_alone(&one, w);
        forget(&one);
    } else {
        job j;
        begin_job(&j, w, n, NULL, 1);
        run_job(&j);
        all_went_well(&j);
        end_job(&j);
    }
    must(keel_model_load(&m, path));
    unlink(path);
    return m;
}

static void model_checkpoint_saves_all_of_the_state(void **unused)
{
    static const char *const callbacks[] = {
        "ModelCheckpoint('kept.keras')",
        "ModelCheckpoint('kept.keras', save_freq=3)",
        "ModelCheckpoint('kept.keras', monitor='loss', save_best_only=True)",
    };
    (void)unused;
    for (int i = 0; i < 3; i++) {
        work w = works[2];
        w.callback = callbacks[i];
        outcome alone = { .model = saved_by(&w, 1, "kept.keras") };
        outcome three = { .model = saved_by(&w, 3, "kept.keras") };
        assert_true(three.model->compiled.iterations > 0);
        assert_int_equal(three.model->compiled.iterations, alone.model->compiled.iterations);
        compare_weights(&alone, &three, &w.recipe, callbacks[i]);
        forget(&alone);
        forget(&three);
    }
}

/* A callback of the program's own, in process 0 alone: it cannot make the others take part. */
static keel_status save_alone(void *context, const keel_moment *at)
{
    const process *p = context;
    return p->group.rank == 0 ? keel_model_save(at->model, "own.keras") : KEEL_OK;
}

static keel_status fit_and_save(process *p, keel_strategy *s, const keel_callback *const *ignored)
{
    const keel_callback c = { KEEL_CALLBACK, .on_epoch_end = save_alone, .context = p };
    (void)ignored;
    return fit_work(p, s, KEEL_CALLBACKS(&c));
}

static void a_callback_that_saves_alone_saves_no_wrong_state(void **unused)
{
    (void)unused;
    keel_model *m;
    job j;
    begin_job(&j, &works[2], 3, NULL, 1);
    for (int i = 0; i < 3; i++) j.x[i].of.run = fit_and_save;
    run_job(&j);
    all_went_well(&j);
    must(keel_model_load(&m, "own.keras"));
    assert_int_equal(m->compiled.iterations, 0);
    for (int i = 0; i < m->n_weight; i++)
        assert_memory_equal(m->weight[i].data, j.x[0].of.outcome.model->weight[i].data,
                            (size_t)keel_shape_count(&m->weight[i].info.spec.shape) *
                                sizeof(float));
    keel_model_destroy(m);
    unlink("own.keras");
    end_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_goes_on_in_any_number_of_processes),
        cmocka_unit_test(who_is_lost_leaves_the_last_checkpoint),
        cmocka_unit_test(model_checkpoint_saves_all_of_the_state),
        cmocka_unit_test(a_callback_that_saves_alone_saves_no_wrong_state),
    };
    return cmocka_run_group_tests(tests, start_apart, NULL);
}
