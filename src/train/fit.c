/* Keras's fit. Everything is planned and prepared before step 1: the programs are bound to the row
 * counts that the feed can have. Then an epoch is a loop of feed, step and callback. */
#include "train/fit.h"
#include "base/memory.h"
#include "graph/across.h"
#include "train/device_notes.h"
#include "train/finite.h"
#include "train/resident.h"
#include "train/run_memory.h"
#include "train/sharded.h"
#include "train/together.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* ---- memory, as the operating system sees it ---------------------------------------------------
 */

static int64_t resident_bytes(void)
{
    long pages = -1;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*s %ld", &pages) != 1) pages = -1;
    if (f) fclose(f);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

/* getrusage also counts the program that started this one, up to its call of exec. */
static int64_t peak_bytes(void)
{
    char line[128];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) != 1) kib = -1;
    if (f) fclose(f);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}

/* Of all programs for training, or for validation: what they keep for other processes. */
static int64_t across_bytes(const keel_scored *now, const keel_programs *parked)
{
    int64_t sum = now->program ? keel_across_bytes(now->program) : 0;
    for (int i = 0; parked->parked && i < parked->n; i++)
        if (parked->parked[i].scored.program)
            sum += keel_across_bytes(parked->parked[i].scored.program);
    return sum;
}

static int64_t weight_bytes(const keel_trainer *t)
{
    return t->store->n_master * (int64_t)keel_dtype_size(t->store->real);
}

/* Of copies of the model while it trains: the one that a checkpoint is written from, those that
 * callbacks keep, and the model's own, if callbacks read it or processes gather it. */
static int64_t copies_bytes(const keel_fitting *f)
{
    const keel_trainer *t = f->trainer;
    const int reads = keel_watch_reads(&f->run);
    const int64_t weights = weight_bytes(t), state = keel_trainer_state_bytes(t);
    int64_t sum = keel_watch_bytes(&f->run);
    if (f->resume.saver) sum += weights + state;
    if (reads & KEEL_LIVE_WEIGHTS) sum += weights;
    if (reads & KEEL_LIVE_STATE || t->sharded) sum += state;
    return sum;
}

static int64_t planned_bytes(const keel_fitting *f)
{
    const keel_trainer *t = f->trainer;
    const int64_t model = weight_bytes(t) + keel_trainer_state_bytes(t);
    int64_t sum = keel_trainer_moment_bytes(t) + keel_arenas_bytes(t->arenas);
    sum += across_bytes(&t->train, &t->trained) + across_bytes(&t->test, &t->tested);
    sum += keel_resident_bytes(t) + copies_bytes(f);
    if (sum < model) sum = model; /* which steps take over */
    sum += keel_store_bytes(t->store) + keel_feed_bytes(f->feed);
    if (f->validation_feed) sum += keel_feed_bytes(f->validation_feed);
    return sum;
}

/* ---- the loop -----------------------------------------------------------------------------------
 */

/* Steps of rows of another shape have a program of their own. */
static void time_program(keel_fitting *f)
{
    keel_program *p = f->trainer->train.program;
    p->timing = f->timing && keel_profile_takes(&f->work, p) ? f->timing : NULL;
}

static keel_status train_step(keel_fitting *f, const keel_batch *b)
{
    f->run.logs.count = 0;
    f->run.batch = b;
    f->run.input = f->pairing.input[0];
    const keel_status s = keel_watch_tell(&f->run, KEEL_ON_train_batch_begin);
    f->run.batch = NULL;
    if (s < 0) return s;
    keel_live_take(&f->run.live);
    KEEL_TRY(keel_trainer_meet(f->trainer, true, b));
    keel_trainer_look_ahead(f->trainer, f->feed);
    time_program(f);
    const keel_status stepped = keel_train_step(f->trainer, b, f->o.seed, &f->trained);
    if (stepped != KEEL_OK) return stepped; /* KEEL_END, too: the processes stop before this step */
    keel_live_stepped(&f->run.live);
    const keel_program *ran = f->trainer->train.program;
    if (ran->timing) keel_profile_add(&f->work, ran, b->rows);
    return KEEL_OK;
}

/* A checkpoint has what callbacks have set since. */
static keel_standing *stands(keel_fitting *f, int64_t epoch, int64_t step, int64_t rows)
{
    if (f->resume.saver) keel_live_take(&f->run.live);
    f->standing.epoch = epoch;
    f->standing.step = step;
    f->standing.rows = rows;
    return &f->standing;
}

/* ---- with other processes ---------------------------------------------------------------------
 */

/* Whether this process wants to stop, and why. */
static keel_stops stops(const keel_fitting *f)
{
    if (!f->run.stop) return KEEL_STOPS_NOT;
    return keel_resume_from_outside(&f->resume) ? KEEL_STOPS_OUTSIDE : KEEL_STOPS_ITSELF;
}

static keel_status stop_together(keel_fitting *f, keel_stops why)
{
    f->run.stop = true;
    f->resume.outside = f->resume.outside || why == KEEL_STOPS_OUTSIDE;
    return keel_resume_stop(&f->resume, &f->standing);
}

/* A failure of this kind ends the training without an error where the callback TerminateOnNaN is.
 */
static keel_status end_at_nan(keel_fitting *f, keel_status s)
{
    if (s != KEEL_ENUMERIC || !f->run.stop_at_nan) return s;
    keel_watch_say(&f->run, "training stopped: %s", keel_error());
    f->run.stop = true;
    return KEEL_OK;
}

static keel_status check_weights(keel_fitting *f)
{
    const keel_moment *at = &f->run.at;
    return end_at_nan(f, keel_finite_check(f->trainer, at->epoch, at->step));
}

/* Where all processes are at the end of a pass: if one stops, all do. */
static keel_status meet_others(keel_fitting *f, keel_status mine)
{
    keel_stops why = stops(f);
    const keel_status s = keel_together_begin(f->strategy, mine, NULL, f->trainer->set, &why);
    return s == KEEL_END ? stop_together(f, why) : s;
}

static keel_status train_epoch(keel_fitting *f)
{
    keel_history *h = &f->history;
    keel_moment *at = &f->run.at;
    const double start = keel_seconds(), waited = keel_feed_wait_seconds(f->feed);
    keel_status s = KEEL_OK;
    keel_batch b;
    keel_input_epoch(&f->input, f->feed, start);
    bool first = true; /* a stop asked for at the begin of the epoch comes after a step, too */
    while ((s = keel_gate_next(&f->gate, f->feed, &b)) == KEEL_OK) {
        const double before = keel_seconds();
        if (h->steps == 0) h->first_step_seconds = before - f->start;
        f->trainer->stops = first ? KEEL_STOPS_NOT : stops(f);
        first = false;
        s = train_step(f, &b);
        if (s == KEEL_END) { /* another process stops, or this one */
            keel_feed_retry(f->feed, &b);
            return stop_together(f, f->trainer->stops);
        }
        if (s < 0) {
            keel_feed_retry(f->feed, &b);
            return end_at_nan(f, s);
        }
        const keel_status shown = keel_shown_take(&f->run.shown, f->trainer, true, &b);
        keel_feed_release(f->feed, &b);
        const double now = keel_seconds();
        h->step_seconds += now - before;
        keel_input_step(&f->input, f->feed, now);
        h->steps++;
        h->rows += b.rows;
        at->step++;
        at->rows += b.rows;
        at->seconds = now - start;
        at->waited = keel_feed_wait_seconds(f->feed) - waited;
        at->wait_share = f->input.share;
        at->late = f->input.late;
        stands(f, at->epoch, at->step, at->rows); /* also if a callback fails now */
        if (shown < 0) return shown;
        if (keel_watch_hears(&f->run, KEEL_ON_train_batch_end)) {
            keel_scored_names(&f->trainer->train, &f->run.logs);
            keel_tally_logs(&f->trainer->train, &f->trained, &f->run.logs);
            KEEL_TRY(keel_watch_tell_rows(&f->run, KEEL_ON_train_batch_end));
            stands(f, at->epoch, at->step, at->rows); /* with what they have set */
        }
        if (f->run.stop && !f->strategy->comm) {
            KEEL_TRY(check_weights(f));
            return keel_resume_stop(&f->resume, &f->standing);
        }
        KEEL_TRY(keel_resume_step(&f->resume, &f->standing));
    }
    return meet_others(f, s < 0 ? s : check_weights(f));
}

static bool is_about_rows(keel_status s)
{
    return s == KEEL_EDATA || s == KEEL_EFORMAT || s == KEEL_EIO || s == KEEL_ESHAPE ||
           s == KEEL_ENUMERIC;
}

/* The rows of the validation are wrong, and the training goes on. */
static keel_status pass_over(keel_fitting *f)
{
    keel_fit_of_validation(KEEL_EDATA);
    if (f->strategy->comm) f->strategy->comm->told = false; /* a later failure is another one */
    f->unvalidated++;
    if (f->unvalidated == 1)
        keel_watch_say(&f->run, "epoch %lld has no validation: %s", (long long)f->run.at.epoch + 1,
                       keel_error());
    return KEEL_OK;
}

static bool is_validated(const keel_fitting *f, int64_t epoch)
{
    return f->o.validation && (epoch + 1) % f->o.validation_freq == 0;
}

/* Begin a pass over the validation data. The first one of a fit that goes on comes after those that
 * the fit before it made. */
static keel_status begin_validation(keel_fitting *f, int64_t epoch)
{
    const int64_t every = f->o.validation_freq; /* passes have numbers without gaps */
    const bool first = f->resume.found && !f->validated;
    f->validated = true;
    for (int64_t e = f->o.initial_epoch; first && e < epoch; e++)
        if (is_validated(f, e))
            KEEL_TRY(keel_feed_pass_over(f->validation_feed, (uint32_t)(e / every)));
    return keel_feed_begin_epoch(f->validation_feed, (uint32_t)(epoch / every));
}

/* Add the results to `logs`, unless a callback stopped the pass. */
static keel_status validate(keel_fitting *f, keel_logs *logs)
{
    keel_moment *at = &f->run.at;
    const keel_moment of_training = *at;
    const double start = keel_seconds();
    if (f->o.reset_states) keel_model_reset_states(f->model);
    keel_tally_clear(&f->tested);
    keel_gate_open(&f->gate);
    keel_status s = begin_validation(f, at->epoch);
    keel_gate_close(&f->gate);
    if (s >= 0) s = keel_session_test(&f->run, f->trainer, f->validation_feed, &f->tested);
    *at = of_training;
    if (f->o.validation_warns && is_about_rows(s)) return pass_over(f);
    if (s < 0) return s == KEEL_ECALLBACK ? s : keel_fit_of_validation(s);
    f->history.validation_seconds += keel_seconds() - start;
    if (f->run.stop_pass) {
        f->run.stop = true;
        return f->model->row_states.n ? KEEL_OK : keel_resume_stop(&f->resume, &f->standing);
    }
    for (int i = 0; i < f->run.logs.count; i++) {
        const char *name = keel_watch_val_name(&f->run, f->run.logs.name[i]);
        if (!name)
            return keel_fail(KEEL_ECALLBACK,
                             "a callback adds '%s' to the logs of a validation: it must name "
                             "'val_%s' in on_train_begin (with NaN)",
                             f->run.logs.name[i], f->run.logs.name[i]);
        KEEL_TRY(keel_logs_set(logs, name, f->run.logs.value[i]));
    }
    return KEEL_OK;
}

/* Begin an epoch, or go on within the one that a checkpoint was taken in. */
static keel_status begin_epoch(keel_fitting *f, int64_t epoch)
{
    keel_watch *r = &f->run;
    const keel_checkpoint *c = &f->resume.from;
    const bool within = f->resume.found && epoch == c->epoch && c->step > 0;
    if (!within) keel_tally_clear(&f->trained);
    if (!within && f->o.reset_states) keel_model_reset_states(f->model);
    keel_gate_open(&f->gate);
    const keel_status s = f->resume.found && epoch == c->epoch
                              ? keel_resume_seek(&f->resume, f->feed)
                              : keel_feed_begin_epoch(f->feed, (uint32_t)epoch);
    keel_gate_close(&f->gate);
    if (s < 0) return s;
    r->at.training = true;
    r->at.epoch = epoch;
    r->at.step = within ? c->step : 0;
    r->at.rows = within ? c->rows : 0;
    r->at.seconds = r->at.waited = 0;
    r->at.steps = keel_feed_steps(f->feed);
    r->at.all_rows = keel_feed_rows(f->feed);
    r->logs.count = 0;
    return within ? KEEL_OK : keel_watch_tell(r, KEEL_ON_epoch_begin);
}

static keel_status run_epoch(keel_fitting *f, int64_t epoch)
{
    keel_watch *r = &f->run;
    keel_logs logs;
    KEEL_TRY(begin_epoch(f, epoch));
    KEEL_TRY(train_epoch(f));
    keel_resident_keep(f->trainer);
    keel_scored_names(&f->trainer->train, &logs);
    keel_tally_logs(&f->trainer->train, &f->trained, &logs);
    for (int i = 0; r->at.step == 0 && i < logs.count; i++) logs.value[i] = NAN; /* no step */
    if (is_validated(f, epoch)) KEEL_TRY(validate(f, &logs));
    r->logs = logs;
    KEEL_TRY(keel_watch_tell(r, KEEL_ON_epoch_end));
    keel_history_add(&f->history, &r->logs);
    KEEL_TRY(keel_resume_epoch(&f->resume, stands(f, epoch + 1, 0, 0)));
    return meet_others(f, KEEL_OK);
}

/* Take what a checkpoint has, once the callbacks have begun. */
static keel_status resume(keel_fitting *f)
{
    const keel_checkpoint *c = &f->resume.from;
    f->standing = (keel_standing){ .trainer = f->trainer,
                                   .tally = &f->trained,
                                   .history = &f->history,
                                   .epoch = f->o.initial_epoch,
                                   .identity = f->resume.identity,
                                   .ledger = keel_feed_ledger(f->feed),
                                   .callback = f->run.callback,
                                   .n_callback = f->run.n };
    KEEL_TRY(keel_resume_begin(&f->resume, &f->standing));
    if (f->resume.found) stands(f, c->epoch, c->step, c->rows);
    return KEEL_OK;
}

/* Training is over: weights become their averages, and the model gets all that there is of them. */
static keel_status finish(keel_fitting *f)
{
    keel_trainer *t = f->trainer;
    keel_watch *r = &f->run;
    if (t->sharded) KEEL_TRY(keel_sharded_finish(t));
    KEEL_TRY(keel_resident_leave(t)); /* averages become weights there, too */
    for (int k = 0; k < t->n_mover && !t->sharded; k++)
        keel_updater_finish(&t->mover[k].update, r->averaged && *r->averaged);
    r->live.pulled = 0; /* a state that was gathered for a checkpoint stays */
    return keel_sharded_gather(t, KEEL_OK);
}

/* All epochs, from the first call of a callback to the last. */
static keel_status train(keel_fitting *f)
{
    keel_watch *r = &f->run;
    keel_logs names;
    r->at.epochs = f->o.epochs;
    r->at.epoch = r->at.initial_epoch = f->o.initial_epoch;
    r->at.training = true;
    r->at.steps = keel_feed_steps(f->feed);
    r->at.all_rows = keel_feed_rows(f->feed);
    keel_scored_names(&f->trainer->train, &names);
    KEEL_TRY(keel_watch_name_logs(r, &names, f->o.validation));
    KEEL_TRY(keel_watch_tell(r, KEEL_ON_train_begin));
    if (r->averaged && f->trainer->sharded)
        return keel_fail(KEEL_EUNSUP, "SwapEMAWeights needs the averages of all weights, and a "
                                      "sharded optimizer has a part of them: leave out one of the "
                                      "two");
    f->history.initial_epoch = f->o.initial_epoch;
    KEEL_TRY(keel_history_begin(&f->history, &r->known, f->o.epochs - f->o.initial_epoch));
    KEEL_TRY(resume(f));
    f->history.compile_seconds = keel_seconds() - f->start;
    const bool complete = f->resume.found && f->resume.from.finished;
    for (int64_t e = f->standing.epoch; e < f->o.epochs && !complete; e++) {
        KEEL_TRY(run_epoch(f, e));
        if (r->stop) break; /* not before: one asked for in on_train_begin comes after a step */
    }
    KEEL_TRY(keel_resident_fetch(f->trainer)); /* a device that fails takes steps along */
    f->history.complete = true;
    keel_live_take(&r->live);
    KEEL_TRY(keel_resume_end(&f->resume, &f->standing, r->stop));
    KEEL_TRY(finish(f));
    return keel_watch_tell(r, KEEL_ON_train_end);
}

enum { TRACE_EVENTS = 1 << 20 }; /* per worker: 24 MiB */

/* ---- timing ---------------------------------------------------------------------------------- */

static keel_status begin_timing(keel_fitting *f)
{
    keel_program *p = f->trainer->train.program;
    if (!f->o.profile && !f->o.trace) return KEEL_OK;
    KEEL_TRY(keel_timing_create(&f->timing, p->lanes->n_worker, p->graph->n_node,
                                f->o.trace ? TRACE_EVENTS : 0));
    return keel_profile_begin(&f->work, p);
}

static keel_status end_timing(keel_fitting *f)
{
    keel_history *h = &f->history;
    if (f->o.trace) KEEL_TRY(keel_trace_write(f->o.trace, f->trainer, f->timing, &f->work));
    if (!f->o.profile) return KEEL_OK;
    return keel_profile_make(&h->profile, f->trainer, f->timing, &f->work, h->step_seconds);
}

static keel_status prepare(keel_fitting *f)
{
    keel_trainer_work train, test = { 0 };
    keel_trainer_options options = { .reference_kernels = f->o.reference_kernels,
                                     .no_graphs = f->o.no_graphs,
                                     .float32 = f->o.float32,
                                     .without_kernels = f->o.without_kernels,
                                     .unfused = f->o.unfused,
                                     .shows = f->run.shown.n > 0,
                                     .programs = (int)f->o.programs };
    KEEL_TRY(keel_session_work(&train, f->feed, &f->pairing, f->o.initial_epoch));
    if (f->o.validation)
        KEEL_TRY(keel_fit_of_validation(
            keel_session_work(&test, f->validation_feed, &f->validation_pairing,
                              f->o.initial_epoch / f->o.validation_freq)));
    KEEL_TRY(keel_trainer_create(&f->trainer, f->model, f->strategy, &train, &test, &options));
    f->trainer->test_seed = f->o.seed;
    KEEL_TRY(keel_session_prepare(&f->trainer->train, f->feed));
    KEEL_TRY(keel_tally_create(&f->trained, &f->trainer->train));
    if (test.pairing) {
        KEEL_TRY(keel_tally_create(&f->tested, &f->trainer->test));
        KEEL_TRY(keel_session_prepare(&f->trainer->test, f->validation_feed));
        /* again, since binding may have needed larger arenas */
        KEEL_TRY(keel_session_prepare(&f->trainer->train, f->feed));
    }
    f->history.full_rows = keel_feed_max_rows(f->feed);
    int64_t rows[8];
    const int n = keel_feed_row_counts(f->feed, rows, 8, NULL);
    for (int i = 0; i < n && i < 8; i++) {
        if (i == 0)
            f->history.full_rows = rows[i];
        else
            f->history.last_rows = rows[i];
    }
    return begin_timing(f);
}

/* The most that a worker has on its device. */
static int64_t device_bytes(const keel_trainer *t)
{
    int64_t most = 0;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) {
        const keel_device *d = t->strategy->lanes.device[w];
        const int64_t n = d ? keel_arenas_device_bytes(t->arenas, w) + keel_device_own_bytes(d) : 0;
        if (n > most) most = n;
    }
    return most;
}

static keel_status check_memory(const keel_fitting *f)
{
    const keel_trainer *t = f->trainer;
    const int64_t steps = keel_arenas_bytes(t->arenas) + keel_trainer_untouched(t);
    const int64_t given = keel_live_leaves(t);
    return keel_run_memory_check(&(keel_run_memory){
        .what = "fit",
        .steps = steps > given ? steps - given : 0,
        .copies = copies_bytes(f),
        .keeps = !f->strategy->recompute,
        .whole = !f->strategy->micro_batch && !keel_lanes_device(&f->strategy->lanes) &&
                 !keel_schedule_waits(t->train.program->graph),
        .input = { { f->feed, f->least[0] }, { f->validation_feed, f->least[1] } },
        .asked = f->o.input_memory > 0 });
}

/* After a failure a checkpoint is taken too, unless nothing can be learned from its weights any
 * more. The failure stays the last error, whatever fails while weights are fetched. */
static keel_status end_of(keel_fitting *f, keel_status s)
{
    keel_failure failure = { 0 };
    keel_failure_take(&failure, s);
    if (s < 0) keel_watch_failed(&f->run);
    if (s < 0 && f->history.steps > 0 && keel_finite_lost(f->trainer) < 0) {
        keel_live_take(&f->run.live);
        (void)keel_resume_end(&f->resume, &f->standing, false); /* what fails is told there */
    }
    keel_gate_leave(&f->gate);
    keel_live_end(&f->run.live);
    return keel_failure_raise(&failure);
}

static keel_status check_state(const keel_model *m)
{
    if (!m->compiled.stateless || !m->compiled.unread) return KEEL_OK;
    return keel_fail(
        KEEL_EARG,
        "model '%s' was loaded without the state of its optimizer "
        "(keel_model_load_without_state): load it with keel_model_load to train it, or "
        "compile it, which begins anew",
        m->name);
}

static keel_status fit(keel_fitting *f, const keel_dataset *data, const keel_fit_options *options,
                       keel_history *history)
{
    keel_model *m = f->model;
    keel_strategy *strategy = f->strategy;
    const int64_t resident = resident_bytes();
    int64_t given = 0; /* bytes of the model that were resident, and that steps have instead */
    bool entered = false;
    keel_status s = keel_session_options(&f->o, options);
    if (strategy->lanes.process > 0) f->o.trace = f->o.input_report = NULL; /* one writes for all */
    if (s >= 0) s = keel_watch_begin(&f->run, m, &f->o, true, strategy->lanes.process);
    if (s < 0) return s;
    if ((s = keel_strategy_check_compress(strategy, m->dtype)) < 0) goto out;
    if ((s = keel_strategy_check_shards(strategy, m)) < 0) goto out;
    if ((s = check_state(m)) < 0) goto out;
    if ((s = keel_pairing_make(&f->pairing, m, data, true)) < 0) goto out;
    /* Processes that differ, as in whether they validate, would wait for each other in the feeds.
     */
    if ((s = keel_resume_identify(&f->resume, m, strategy, data, &f->o)) < 0) goto out;
    /* Feeds start their threads before this thread is bound to a core, or they would inherit that.
     */
    if ((s = keel_fit_open_feeds(f, data)) < 0) goto out;
    if ((s = keel_resume_open(&f->resume, m, strategy, &f->o)) < 0) goto out;
    keel_team_enter(strategy->team);
    entered = true;
    if ((s = prepare(f)) < 0) goto out;
    if ((s = check_memory(f)) < 0) goto out;
    s = keel_device_notes_tell(&f->o, f->trainer, f->trainer->train.program, true,
                               keel_feed_refused(f->feed) + keel_feed_refused(f->validation_feed));
    if (s < 0) goto out;
    given = keel_live_leaves(f->trainer);
    keel_watch_go_live(&f->run, f->trainer);
    keel_gate_enter(&f->gate, f->trainer);
    f->run.gate = &f->gate;
    keel_sharded_leave(f->trainer);
    s = end_of(f, keel_sharded_end(f->trainer, train(f)));
    f->history.memory_planned = planned_bytes(f);
    f->history.device_memory = device_bytes(f->trainer);
    if (f->timing && s >= 0) s = end_timing(f);
out:
    s = keel_strategy_leave(strategy, s);
    if (entered) keel_team_leave(strategy->team);
    f->history.stopped = f->run.stop;
    f->history.seconds = keel_seconds() - f->start;
    f->history.wait_seconds = f->feed ? keel_feed_wait_seconds(f->feed) : 0;
    const int64_t peak = peak_bytes();
    f->history.memory_used = peak < 0 || resident < 0 ? -1 : peak - resident + given;
    keel_fit_take_notes(f, data);
    if (s >= 0 && f->feed) s = keel_input_end(&f->input, f->feed, f->history.input);
    if (s < 0) {
        keel_free(f->history.input);
        f->history.input = NULL;
    }
    keel_session_count(&f->o, f->trainer);
    keel_resume_close(&f->resume);
    keel_watch_end(&f->run);
    keel_tally_free(&f->trained);
    keel_tally_free(&f->tested);
    keel_trainer_destroy(f->trainer);
    keel_timing_destroy(f->timing);
    keel_profile_work_free(&f->work);
    keel_feed_destroy(f->feed);
    keel_feed_destroy(f->validation_feed);
    if (history)
        *history = f->history;
    else
        keel_history_free(&f->history);
    return s;
}

keel_status keel_fit(keel_model *m, keel_strategy *strategy, const keel_dataset *data,
                     const keel_fit_options *options, keel_history *history)
{
    keel_fitting *f = keel_calloc(1, sizeof *f); /* larger than some stacks */
    if (history) *history = (keel_history){ 0 };
    if (!f) return keel_strategy_leave(strategy, KEEL_ENOMEM);
    f->model = m;
    f->strategy = strategy;
    f->start = keel_seconds();
    const keel_status s = fit(f, data, options, history);
    keel_free(f);
    return s;
}
