/* Fits drawn by chance, on devices drawn by chance: models of all layers, optimizers, ends of data
 * and policies, on one to eight stand-ins of any kind, with equal and unequal shares, with cores
 * beside them that have their rows in turn. Weights, logs and predictions are those of one device,
 * to the bit where steps are reproducible, else those of a core; a fit that was stopped goes on
 * elsewhere as if it had not been; and a call that fails leaves the weights of some step.
 *
 * `test_random_devices FROM COUNT` tries that many from one number on (random_seeds.h). */
#include <unistd.h>
#include "base/memory.h"
#include "random_fit.h"
#include "random_machine.h"
#include "random_outcome.h"
#include "random_seeds.h"
#include "sweep.h"

enum { LONGEST = 240 };

static char folder[256], trouble[4 * TEXT];
static bool prints; /* the graphs that fail */

/* ---- a fit and all it leaves ----------------------------------------------------------------- */

/* Ends a fit once its model has done so many steps, as a failure does, or after so many batches. */
typedef struct stopping {
    const keel_model *model;
    int64_t done, batches, seen;
} stopping;

static keel_status on_step(void *context, const keel_moment *now)
{
    stopping *x = context;
    (void)now;
    x->seen++;
    if (x->batches && x->seen == x->batches) return KEEL_END;
    return x->done && keel_model_steps_done(x->model) == x->done ? KEEL_ECALLBACK : KEEL_OK;
}

static bool always(void *context)
{
    (void)context;
    return true;
}

/* On devices, after a fit that may have failed there. */
static keel_status evaluate(const fitting *f, const outcome *o, keel_strategy *s, keel_logs *logs)
{
    keel_fit_options with = f->o;
    with.end = KEEL_KEEP;
    return keel_evaluate(o->model, s, f->rows.data, &with, logs);
}

/* stop: the callback that ends it, or NULL. Evaluates and predicts on `later`; what has failed is
 * evaluated on the same devices. */
static bool run(fitting *f, const machine *m, const machine *later, stopping *stop,
                const keel_checkpoint_options *checkpoint, outcome *o)
{
    opened x, y;
    keel_fit_options with = f->o;
    keel_callback *own[2] = { NULL };
    const keel_callback counts = { KEEL_CALLBACK, .name = "stop", .on_train_batch_end = on_step,
                                   .context = stop };
    *o = (outcome){ 0 };
    must(make_model(f, &o->model));
    o->there = true;
    if (!open_machine(m, f, &x)) {
        close_opened(&x, m, false);
        forget(o);
        return false;
    }
    if (m->fail_at) standin_of(x.device[m->who])->fail_at = m->fail_at;
    if (m->hang_at) standin_of(x.device[m->who])->hang_at = m->hang_at;
    if (stop) stop->model = o->model;
    const keel_callback *all[4] = { NULL };
    int n = 0;
    if (stop) all[n++] = &counts;
    for (int i = 0; i < 2; i++) {
        const char *text = i ? f->second : f->callback;
        if (text) must(keel_callback_parse(&own[i], text));
        if (text) all[n++] = own[i];
    }
    with.callbacks = all;
    with.checkpoint = checkpoint;
    o->requests = keel_memory_calls();
    keel_memory_fail_at(m->fail_memory - 1);
    o->status = keel_fit(o->model, x.strategy, f->rows.data, &with, &o->history);
    keel_memory_fail_at(-1);
    o->requests = keel_memory_calls() - o->requests;
    if (o->status < 0) snprintf(o->text, sizeof o->text, "%s", keel_error());
    for (int i = 0; i < 2; i++) keel_callback_destroy(own[i]);
    o->steps = (int)o->history.steps;
    for (int i = 0; i < x.n; i++) o->calls[i] = standin_of(x.device[i])->calls;
    for (int i = 0; i < x.n; i++) o->given[i] = standin_of(x.device[i])->given;
    if (o->status < 0 && !m->hang_at && f->open != STATEFUL)
        o->scored = evaluate(f, o, x.strategy, &o->logs);
    close_opened(&x, m, !m->hang_at);
    if (!later || o->status < 0) return true;
    const bool could = open_machine(later, f, &y);
    if (could) {
        with.callbacks = NULL;
        with.checkpoint = NULL;
        with.end = KEEL_KEEP;
        o->scored = keel_evaluate(o->model, y.strategy, f->rows.data, &with, &o->logs);
        if (o->scored >= 0)
            o->scored = keel_predict(o->model, y.strategy, f->held_out.data, &with, &o->predicted);
        if (o->scored < 0) snprintf(o->text, sizeof o->text, "%s", keel_error());
    }
    close_opened(&y, later, true);
    if (!could) forget(o);
    return could;
}

/* ---- one seed -------------------------------------------------------------------------------- */

static bool wrong(const fitting *f, const machine *m, const char *what)
{
    char fits[TEXT], on[TEXT];
    describe(f, fits);
    describe_machine(m, on);
    snprintf(trouble, sizeof trouble, "seed %llu: %s: %s\n  %s\n  on %s",
             (unsigned long long)f->g.seed, what, why, fits, on);
    return false;
}

static void empty_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static const machine host = { .patience = PATIENCE };
/* Its statistics have the bits of many devices; those of cores alone are merged otherwise. */
static const machine gpu = { .n = 1, .patience = PATIENCE, .bucket_bytes = 256 };

/* Stopped after any step, it goes on from the checkpoint on other devices. */
static bool goes_on(fitting *f, const outcome *whole)
{
    const machine first = draw_machine(), second = draw_machine();
    const machine any = percent(50) ? first : draw_machine();
    stopping at = { .batches = 1 + chance(whole->steps > 1 ? whole->steps - 1 : 1) };
    const keel_checkpoint_options begin = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                            .every_steps = percent(50) ? 1000 : 1,
                                            .interrupted = always };
    keel_checkpoint_options again = begin;
    outcome part, rest;
    stopping never = { 0 };
    bool fine = true;
    again.resume = true;
    empty_folder();
    if (whole->status < 0 || whole->steps < 2) return true;
    if (!run(f, &first, NULL, &at, &begin, &part)) return true;
    if (part.status < 0) {
        why = part.text;
        fine = wrong(f, &first, "the run that was stopped");
    } else if (run(f, &second, &any, &never, &again, &rest)) {
        if (!same(whole, &rest, f->shards > 0)) fine = wrong(f, &second, "the run that goes on");
        forget(&rest);
    }
    forget(&part);
    return fine;
}

/* Devices on which a fit has failed are as good as others. */
static bool goes_on_there(fitting *f, const machine *m, const outcome *o)
{
    opened x;
    keel_logs logs = { 0 };
    why = o->scored < 0 ? keel_error() : "";
    if (!open_machine(f->shards ? &gpu : &host, f, &x)) return true;
    const keel_status s = evaluate(f, o, x.strategy, &logs);
    close_opened(&x, &gpu, true);
    if (s != o->scored || (s >= 0 && !alike("a log of evaluate", logs.value, o->logs.value,
                                            KEEL_FLOAT64, logs.count, f->shards > 0)))
        return wrong(f, m, "evaluated where a fit has failed");
    return true;
}

/* A call that fails, or work that never ends, leaves the weights of some step. */
static bool fails(fitting *f, const machine *m, const outcome *whole)
{
    machine failing = *m;
    outcome o, known;
    bool fine = true;
    failing.who = chance(m->n);
    /* a fit that fails while it validates leaves the averages in the model */
    const bool swaps =
        (f->callback && strstr(f->callback, "Swap")) || (f->second && strstr(f->second, "Swap"));
    if (whole->calls[failing.who] == 0 || swaps) return true;
    if (percent(25)) {
        failing.fail_memory = 1 + chance((int)whole->requests);
    } else if (percent(85)) {
        failing.fail_at = 1 + chance(whole->calls[failing.who]);
    } else {
        failing.hang_at = 1 + chance(whole->given[failing.who] > 0 ? whole->given[failing.who] : 1);
        failing.patience = SLOW ? 2 : 0.3;
    }
    stopping never = { 0 };
    if (!run(f, &failing, NULL, percent(50) ? &never : NULL, NULL, &o)) return true;
    stopping at = { .done = keel_model_steps_done(o.model) };
    why = o.text;
    if (o.status < 0 && o.status != KEEL_EDEVICE && o.status != KEEL_ENOMEM && whole->status >= 0)
        fine = wrong(f, &failing, "another status");
    if (fine && o.status < 0 && whole->status >= 0 && !failing.fail_memory &&
        !strstr(o.text, "standin:"))
        fine = wrong(f, &failing, "no device is named");
    if (o.status >= 0 || o.history.complete) { /* others have gone on, or it was at its end */
        if (!same_weights(whole, &o, f->shards > 0))
            fine = wrong(f, &failing, "a fit that went on");
    } else if (fine && at.done == 0) {
        known = (outcome){ .there = true };
        must(make_model(f, &known.model));
        if (!same_weights(&known, &o, f->shards > 0))
            fine = wrong(f, &failing, "other weights than before the fit");
        forget(&known);
    } else if (fine && run(f, f->shards ? &gpu : &host, NULL, &at, NULL, &known)) {
        if (!same_state(&known, &o, f->shards > 0)) fine = wrong(f, &failing, "other weights");
        forget(&known);
    }
    if (fine && o.status < 0 && !failing.hang_at && f->open != STATEFUL)
        fine = goes_on_there(f, &failing, &o);
    forget(&o);
    return fine;
}

static int n_refused, n_failed;

static bool try(uint64_t seed)
{
    fitting f;
    keel_model *m;
    outcome one, many;
    bool fine = true;
    alarm(LONGEST);
    if (draw_fitting(&f, seed) < 0) fail_msg("%s", keel_error());
    if (make_model(&f, &m) < 0) { /* as an optimizer that has no such argument */
        n_refused++;
        if (getenv("KEEL_SEEDS")) fprintf(stderr, "  refused: %s\n", keel_error());
        free_fitting(&f);
        return true;
    }
    keel_model_destroy(m);
    const machine *first = f.shards ? &gpu : &host;
    assert_true(run(&f, first, first, NULL, NULL, &one));
    if (one.status < 0 || one.scored < 0) {
        n_failed++;
        if (getenv("KEEL_SEEDS")) fprintf(stderr, "  fails: %s\n", one.text);
    }
    for (int k = 0; k < 2 && fine; k++) {
        const machine on = draw_machine(), later = percent(50) ? on : draw_machine();
        if (!run(&f, &on, &later, NULL, NULL, &many)) continue;
        if (!same(&one, &many, f.shards > 0)) fine = wrong(&f, &on, "beside one device");
        if (fine && many.calls[0] > 0) fine = fails(&f, &on, &many);
        forget(&many);
    }
    if (fine) fine = goes_on(&f, &one);
    if (fine && *fault) {
        fine = wrong(&f, &host, "what a device has told of");
        snprintf(trouble + strlen(trouble), sizeof trouble - strlen(trouble), "\n  %s", fault);
    }
    if (!fine && prints) print_graph(&f.g);
    *fault = 0;
    forget(&one);
    free_fitting(&f);
    alarm(0);
    return fine;
}

static int prepare(void **unused)
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    (void)unused;
    snprintf(folder, sizeof folder, "%s/ckpt", tmp ? tmp : "/tmp");
    make_kinds();
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    empty_folder();
    return 0;
}

static void a_fit_on_any_devices_is_that_of_one(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= (uint64_t)thin(200, 40, 10); seed++)
        if (!try(seed)) fail_msg("%s", trouble);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_fit_on_any_devices_is_that_of_one),
    };
    if (argc < 3) return cmocka_run_group_tests(test, prepare, finish);
    prints = true;
    prepare(NULL);
    const int bad = try_seeds(argv, try, trouble);
    printf("%d were refused, and %d failed alike\n", n_refused, n_failed);
    finish(NULL);
    return bad > 0;
}
