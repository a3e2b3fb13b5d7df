/* Keras's fit. Everything is planned and prepared before step 1: the programs are bound to the row
 * counts that the feed can have. Then an epoch is a loop of feed, step and callback. */
#include "base/memory.h"
#include "base/text.h"
#include "train/profile.h"
#include "train/session.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct fit {
    keel_model *model;
    keel_strategy *strategy;
    keel_fit_options o;
    keel_trainer *trainer;
    keel_timing *timing;
    keel_profile_work work; /* where there is timing */
    keel_pairing pairing, validation_pairing;
    keel_feed *feed, *validation_feed;
    keel_history history;
    keel_progress progress;
    keel_tally trained, tested; /* of the epoch */
    double start;
    bool stop;
} fit;

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

static int64_t peak_bytes(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) ? -1 : (int64_t)u.ru_maxrss * 1024;
}

static int64_t planned_bytes(const fit *f)
{
    const keel_trainer *t = f->trainer;
    int64_t sum = keel_store_bytes(t->store) + keel_arenas_bytes(t->arenas);
    sum += keel_feed_bytes(f->feed);
    if (f->validation_feed) sum += keel_feed_bytes(f->validation_feed);
    return sum;
}

/* ---- history ------------------------------------------------------------------------------------
 */

static keel_status begin_history(fit *f)
{
    keel_history *h = &f->history;
    keel_logs logs;
    char name[160];
    keel_scored_names(&f->trainer->train, &logs);
    const int sets = f->o.validation ? 2 : 1;
    const size_t rows = (size_t)(f->o.epochs - f->o.initial_epoch);
    h->value = keel_calloc(rows * (size_t)(sets * logs.count), sizeof *h->value);
    if (!h->value) return KEEL_ENOMEM;
    for (int k = 0; k < sets; k++)
        for (int i = 0; i < logs.count; i++) {
            snprintf(name, sizeof name, "%s%s", k ? "val_" : "", logs.name[i]);
            if (!(h->name[h->count] = keel_strdup(name))) return KEEL_ENOMEM;
            h->count++;
        }
    return KEEL_OK;
}

void keel_history_free(keel_history *h)
{
    if (!h) return;
    for (int i = 0; i < h->count; i++) keel_free(h->name[i]);
    keel_free(h->value);
    keel_free(h->note);
    keel_profile_destroy(h->profile);
    *h = (keel_history){ 0 };
}

/* Write a name as a CSV field; the name of a metric may have a comma. */
static void put_name(FILE *f, const char *name)
{
    const bool quoted = strpbrk(name, ",\"\r\n") != NULL;
    fputs(quoted ? ",\"" : ",", f);
    for (; *name; name++) {
        if (*name == '"') fputc('"', f);
        fputc(*name, f);
    }
    if (quoted) fputc('"', f);
}

keel_status keel_history_save(const keel_history *h, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return keel_fail(KEEL_EIO, "%s: cannot be written", path);
    fputs("epoch", f);
    for (int i = 0; i < h->count; i++) put_name(f, h->name[i]);
    fputc('\n', f);
    for (int64_t e = 0; e < h->epochs; e++) {
        fprintf(f, "%lld", (long long)e);
        for (int i = 0; i < h->count; i++) fprintf(f, ",%.9g", h->value[e * h->count + i]);
        fputc('\n', f);
    }
    const bool bad = ferror(f);
    if (fclose(f) || bad) return keel_fail(KEEL_EIO, "%s: could not be written completely", path);
    return KEEL_OK;
}

/* ---- the loop -----------------------------------------------------------------------------------
 */

static keel_status tell(fit *f)
{
    if (!f->o.on_progress) return KEEL_OK;
    const keel_status s = f->o.on_progress(f->o.context, &f->progress);
    if (s == KEEL_END) f->stop = true;
    return s < 0 ? keel_fail(KEEL_ECALLBACK, "the progress callback failed") : KEEL_OK;
}

/* Steps of rows of another shape have a program of their own. */
static void time_program(fit *f)
{
    keel_program *p = f->trainer->train.program;
    p->timing = f->timing && keel_profile_takes(&f->work, p) ? f->timing : NULL;
}

static keel_status train_epoch(fit *f)
{
    keel_history *h = &f->history;
    keel_progress *p = &f->progress;
    const double start = keel_seconds(), waited = keel_feed_wait_seconds(f->feed);
    keel_status s = KEEL_OK;
    keel_batch b;
    while (!f->stop && (s = keel_feed_next(f->feed, &b)) == KEEL_OK) {
        const double before = keel_seconds();
        if (h->steps == 0) h->first_step_seconds = before - f->start;
        s = keel_trainer_meet(f->trainer, true, &b);
        time_program(f);
        if (s >= 0) s = keel_train_step(f->trainer, &b, f->o.seed, &f->trained);
        if (s < 0) {
            keel_feed_retry(f->feed, &b);
            return s;
        }
        const keel_program *ran = f->trainer->train.program;
        if (ran->timing) keel_profile_add(&f->work, ran, b.rows);
        keel_feed_release(f->feed, &b);
        const double now = keel_seconds();
        h->step_seconds += now - before;
        h->steps++;
        h->rows += b.rows;
        p->step++;
        p->rows += b.rows;
        p->seconds = now - start;
        p->waited = keel_feed_wait_seconds(f->feed) - waited;
        keel_tally_logs(&f->trainer->train, &f->trained, &p->logs);
        KEEL_TRY(tell(f));
    }
    return s < 0 ? s : KEEL_OK;
}

/* Say in the error text that it is about the validation data. */
static keel_status of_validation(keel_status s)
{
    return s < 0 ? keel_fail_within(s, "validation data") : s;
}

static keel_status validate(fit *f, int64_t epoch, keel_logs *logs)
{
    const double start = keel_seconds();
    if (f->o.reset_states) keel_model_reset_states(f->model);
    keel_tally_clear(&f->tested);
    KEEL_TRY(of_validation(keel_feed_begin_epoch(f->validation_feed, (uint32_t)epoch)));
    keel_progress p = { .epoch = epoch,
                        .epochs = f->o.epochs,
                        .steps = keel_feed_steps(f->validation_feed),
                        .all_rows = keel_feed_rows(f->validation_feed) };
    keel_scored_names(&f->trainer->test, &p.logs);
    const keel_status s = keel_session_test(f->trainer, f->validation_feed, &f->o,
                                            f->o.on_progress ? &p : NULL, &f->tested);
    if (s < 0) return s == KEEL_ECALLBACK ? s : of_validation(s);
    f->stop = s == KEEL_END;
    keel_tally_logs(&f->trainer->test, &f->tested, logs);
    f->history.validation_seconds += keel_seconds() - start;
    return KEEL_OK;
}

static keel_status run_epoch(fit *f, int64_t epoch)
{
    keel_history *h = &f->history;
    keel_progress *p = &f->progress;
    keel_logs logs;
    keel_tally_clear(&f->trained);
    if (f->o.reset_states) keel_model_reset_states(f->model);
    KEEL_TRY(keel_feed_begin_epoch(f->feed, (uint32_t)epoch));
    *p = (keel_progress){ .training = true,
                          .epoch = epoch,
                          .epochs = f->o.epochs,
                          .steps = keel_feed_steps(f->feed),
                          .all_rows = keel_feed_rows(f->feed) };
    keel_scored_names(&f->trainer->train, &p->logs);
    KEEL_TRY(train_epoch(f));
    if (f->stop && p->step == 0) return KEEL_OK;
    double *row = &h->value[h->epochs * h->count];
    const int n = p->logs.count;
    memcpy(row, p->logs.value, (size_t)n * sizeof *row);
    for (int i = n; i < h->count; i++) row[i] = NAN; /* val_ columns, until they are known */
    if (f->o.validation && !f->stop) KEEL_TRY(validate(f, epoch, &logs));
    if (f->o.validation && !f->stop) {
        memcpy(row + n, logs.value, (size_t)n * sizeof *row);
        for (int i = 0; i < n && p->logs.count < KEEL_LOGS_MAX; i++) {
            p->logs.name[p->logs.count] = h->name[n + i];
            p->logs.value[p->logs.count++] = row[n + i];
        }
    }
    h->epochs++;
    p->epoch_end = true;
    return tell(f);
}

enum { TRACE_EVENTS = 1 << 20 }; /* per worker: 24 MiB */

/* ---- notes: one line for the user at the end ---------------------------------------------------
 */

/* Name the layers that only the slow plain reference can run. */
static void add_slow(keel_text *t, const keel_program *p)
{
    enum { NAMED = 6 };
    int n = 0;
    for (int i = 0; i < p->graph->n_node; i++) {
        const keel_node *node = &p->graph->node[i].node;
        if (!keel_program_is_slow(p, i)) continue;
        if (n == 0) keel_text_add(t, "%sno fast kernel runs all passes of ", t->length ? "; " : "");
        if (n < NAMED)
            keel_text_add(t, "%s'%.60s' (%s)", n ? ", " : "", node->layer, node->op->name);
        n++;
    }
    if (n > NAMED) keel_text_add(t, " and %d more", n - NAMED);
    if (n) keel_text_add(t, ": the plain reference runs (see keel inspect --kernels)");
}

/* Name the weights that no loss depends on, which are not trained. */
static void add_unreached(keel_text *t, const keel_trainer *trainer)
{
    enum { NAMED = 6 };
    int n = 0;
    for (int v = 0; v < trainer->store->n_weight; v++) {
        const keel_weight_info *info = &trainer->store->weight[v].info;
        const keel_program *p = trainer->train.program;
        if (!p->trains[v] || p->schedule.reached[v]) continue;
        if (n == 0) keel_text_add(t, "%sno loss depends on ", t->length ? "; " : "");
        if (n < NAMED) keel_text_add(t, "%s'%.80s'", n ? ", " : "", info->name);
        n++;
    }
    if (n > NAMED) keel_text_add(t, " and %d more", n - NAMED);
    if (n) keel_text_add(t, ": %s not trained", n > 1 ? "they are" : "it is");
}

/* Row i of a shuffled step has nothing to do with row i of the step before. */
static void add_shuffled_states(keel_text *t, const fit *f)
{
    const keel_graph *g = f->trainer->train.program->graph;
    if (g->n_carried == 0 || f->o.no_shuffle) return;
    keel_text_add(t,
                  "%sthe layer of '%.80s' is stateful, but rows are shuffled: each goes on from "
                  "the state of another (--no-shuffle keeps their order)",
                  t->length ? "; " : "", g->carried[0].name);
}

/* Tell that the trace is incomplete; a profile shows this itself. */
static void add_cut(keel_text *t, const fit *f)
{
    int64_t lost = 0;
    for (int w = 0; f->timing && w < f->timing->n_worker; w++) lost += f->timing->workspace[w].lost;
    if (lost && !f->o.profile)
        keel_text_add(t, "%sthe trace is incomplete: %lld later events did not fit",
                      t->length ? "; " : "", (long long)lost);
}

/* Which steps a profile and a trace show, where rows have several shapes. */
static void add_shapes(keel_text *t, const fit *f)
{
    if (!f->timing || f->trainer->trained.made < 2) return;
    keel_text_add(t, "%sthe profile and the trace are of steps of %lld shapes, their kernels of ",
                  t->length ? "; " : "", (long long)f->trainer->trained.made);
    keel_text_add(t, "the last");
    if (f->work.steps < f->history.steps)
        keel_text_add(t, "; without %lld steps of shapes for which the model has other ops",
                      (long long)(f->history.steps - f->work.steps));
}

/* Tell how many steps the loss scale was too large for. */
static void add_skipped(keel_text *t, const fit *f)
{
    const keel_loss_scale *l = &f->trainer->loss_scale;
    if (l->skipped == 0) return;
    keel_text_add(t, "%s%lld of %lld steps skipped, since a loss or gradient was not finite; the ",
                  t->length ? "; " : "", (long long)l->skipped, (long long)f->history.steps);
    keel_text_add(t, "loss scale is now %g", (double)l->now);
}

static void take_notes(fit *f)
{
    keel_text t = { 0 };
    const keel_program *p = f->trainer ? f->trainer->train.program : NULL;
    if (f->feed && keel_feed_note(f->feed)) keel_text_add(&t, "%s", keel_feed_note(f->feed));
    if (p && !f->o.reference_kernels) add_slow(&t, p);
    if (p) add_unreached(&t, f->trainer);
    if (p) add_shuffled_states(&t, f);
    if (f->trainer) add_skipped(&t, f);
    add_cut(&t, f);
    add_shapes(&t, f);
    if (t.failed) keel_text_free(&t);
    f->history.note = t.data;
}

/* ---- timing ---------------------------------------------------------------------------------- */

static keel_status begin_timing(fit *f)
{
    keel_program *p = f->trainer->train.program;
    if (!f->o.profile && !f->o.trace) return KEEL_OK;
    KEEL_TRY(keel_timing_create(&f->timing, p->lanes->n_worker, p->graph->n_node,
                                f->o.trace ? TRACE_EVENTS : 0));
    return keel_profile_begin(&f->work, p);
}

static keel_status end_timing(fit *f)
{
    keel_history *h = &f->history;
    if (f->o.trace) KEEL_TRY(keel_trace_write(f->o.trace, f->trainer, f->timing, &f->work));
    if (!f->o.profile) return KEEL_OK;
    return keel_profile_make(&h->profile, f->trainer, f->timing, &f->work, h->step_seconds);
}

static keel_status prepare(fit *f)
{
    keel_trainer_work train, test = { 0 };
    keel_trainer_options options = { .reference_kernels = f->o.reference_kernels,
                                     .float32 = f->o.float32,
                                     .without_kernels = f->o.without_kernels,
                                     .unfused = f->o.unfused,
                                     .programs = (int)f->o.programs };
    KEEL_TRY(keel_session_work(&train, f->feed, &f->pairing, f->o.initial_epoch));
    if (f->o.validation)
        KEEL_TRY(of_validation(keel_session_work(&test, f->validation_feed, &f->validation_pairing,
                                                 f->o.initial_epoch)));
    KEEL_TRY(keel_trainer_create(&f->trainer, f->model, f->strategy, &train, &test, &options));
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
    KEEL_TRY(begin_timing(f));
    return begin_history(f);
}

static keel_status open_validation(fit *f)
{
    const keel_dataset *d = f->o.validation;
    KEEL_TRY(keel_pairing_make(&f->validation_pairing, f->model, d, true));
    return keel_session_feed(&f->validation_feed, d, &f->o, false, f->model->dtype,
                             &f->validation_pairing);
}

keel_status keel_fit(keel_model *m, keel_strategy *strategy, const keel_dataset *data,
                     const keel_fit_options *options, keel_history *history)
{
    fit f = { .model = m, .strategy = strategy, .start = keel_seconds() };
    const int64_t resident = resident_bytes();
    bool entered = false;
    keel_status s = keel_session_options(&f.o, options);
    if (history) *history = (keel_history){ 0 };
    if (s < 0) return s;
    if ((s = keel_pairing_make(&f.pairing, m, data, true)) < 0) goto out;
    /* Feeds start their threads before this thread is bound to a core, or they would inherit that.
     */
    if ((s = keel_session_feed(&f.feed, data, &f.o, true, m->dtype, &f.pairing)) < 0) goto out;
    if (f.o.validation && (s = of_validation(open_validation(&f))) < 0) goto out;
    keel_team_enter(strategy->team);
    entered = true;
    if ((s = prepare(&f)) < 0) goto out;
    f.history.compile_seconds = keel_seconds() - f.start;
    for (int64_t e = f.o.initial_epoch; e < f.o.epochs && !f.stop && s >= 0; e++)
        s = run_epoch(&f, e);
    if (s >= 0) keel_updater_finish(&f.trainer->update);
    keel_trainer_store(f.trainer);
    f.history.memory_planned = planned_bytes(&f);
    if (f.timing && s >= 0) s = end_timing(&f);
out:
    if (entered) keel_team_leave(strategy->team);
    f.history.stopped = f.stop;
    f.history.seconds = keel_seconds() - f.start;
    f.history.wait_seconds = f.feed ? keel_feed_wait_seconds(f.feed) : 0;
    const int64_t peak = peak_bytes();
    f.history.memory_used = peak < 0 || resident < 0 ? -1 : peak - resident;
    take_notes(&f);
    keel_session_count(&f.o, f.trainer);
    keel_tally_free(&f.trained);
    keel_tally_free(&f.tested);
    keel_trainer_destroy(f.trainer);
    keel_timing_destroy(f.timing);
    keel_profile_work_free(&f.work);
    keel_feed_destroy(f.feed);
    keel_feed_destroy(f.validation_feed);
    if (history)
        *history = f.history;
    else
        keel_history_free(&f.history);
    return s;
}
