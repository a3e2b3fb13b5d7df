/* Keras's evaluate and predict: forward only, each row once, in order. */
#include "base/memory.h"
#include "train/device_notes.h"
#include "train/input.h"
#include "train/session.h"
#include "train/row_files.h"
#include "train/run_memory.h"
#include "train/together.h"
#include <string.h>

typedef struct inference {
    const keel_dataset *data;
    keel_fit_options o;
    keel_trainer *trainer;
    keel_feed *feed;
    keel_account account;
    int64_t least; /* bytes of the input, where there is a limit */
    keel_strategy *strategy;
    keel_watch run;
    bool entered;
    keel_row_files *files; /* of predictions; NULL: they stay in memory */
} inference;

static keel_status begin(inference *l, keel_model *m, keel_strategy *s, const keel_dataset *data,
                         const keel_fit_options *options, bool scored)
{
    keel_pairing pairing;
    int64_t limit;
    l->strategy = s;
    KEEL_TRY(keel_session_options(&l->o, options));
    l->o.validation = NULL;
    l->o.validation_batch_size = 0;
    l->o.validation_steps = l->o.steps_per_epoch;
    KEEL_TRY(keel_watch_begin(&l->run, m, &l->o, false, s->lanes.process));
    KEEL_TRY(keel_pairing_make(&pairing, m, data, scored));
    KEEL_TRY(keel_input_limit(&limit, l->o.input_memory));
    l->account.limit = limit;
    if (limit) KEEL_TRY(keel_session_least(&l->least, data, &l->o, false, m->dtype, &pairing));
    KEEL_TRY(keel_session_feed(&l->feed, data, &l->o, false, m->dtype, &pairing, &l->account, s));
    const keel_trainer_work none = { 0 };
    keel_trainer_work test;
    keel_team_enter(s->team);
    l->entered = true;
    KEEL_TRY(keel_session_work(&test, l->feed, &pairing, 0));
    const keel_trainer_options t = { .reference_kernels = l->o.reference_kernels,
                                     .no_graphs = l->o.no_graphs,
                                     .float32 = l->o.float32,
                                     .without_kernels = l->o.without_kernels,
                                     .unfused = l->o.unfused,
                                     .programs = (int)l->o.programs };
    KEEL_TRY(keel_trainer_create(&l->trainer, m, s, &none, &test, &t));
    KEEL_TRY(keel_session_prepare(&l->trainer->test, l->feed));
    return keel_device_notes_tell(&l->o, l->trainer, l->trainer->test.program, false,
                                  keel_feed_refused(l->feed));
}

/* Begin to read, if there is memory for that, the program, and the bytes of the outputs. */
static keel_status start(inference *l, const char *what, int64_t outputs)
{
    KEEL_TRY(
        keel_run_memory_check(&(keel_run_memory){ .what = what,
                                                  .steps = keel_arenas_bytes(l->trainer->arenas),
                                                  .outputs = outputs,
                                                  .input = { { l->feed, l->least } },
                                                  .asked = l->o.input_memory > 0 }));
    keel_watch_go_live(&l->run, l->trainer);
    return keel_feed_begin_epoch(l->feed, 0);
}

static void end(inference *l)
{
    if (l->entered) keel_team_leave(l->strategy->team);
    keel_session_count(&l->o, l->trainer);
    keel_watch_end(&l->run);
    keel_trainer_destroy(l->trainer);
    keel_feed_destroy(l->feed);
}

keel_status keel_evaluate(keel_model *m, keel_strategy *s, const keel_dataset *data,
                          const keel_fit_options *options, keel_logs *out)
{
    inference l = { 0 };
    keel_tally tally = { 0 };
    keel_status st = begin(&l, m, s, data, options, true);
    if (st >= 0) st = keel_tally_create(&tally, &l.trainer->test);
    if (st >= 0) st = start(&l, "evaluation", 0);
    if (st >= 0) st = keel_session_test(&l.run, l.trainer, l.feed, &tally);
    if (st >= 0) *out = l.run.logs;
    keel_tally_free(&tally);
    end(&l);
    return keel_together_leave(s, st);
}

/* The shape of one row of output k, in the current program. */
static keel_shape output_row(const keel_trainer *t, int k)
{
    const keel_program *p = t->test.program;
    return p->graph->value[p->output[k]].spec.shape;
}

static keel_status create_output(const keel_trainer *trainer, int k, int64_t rows, keel_tensor *out)
{
    const keel_shape row = output_row(trainer, k);
    if (row.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "output %d of the model has too many dimensions for predict",
                         k);
    keel_shape shape = { .rank = row.rank + 1, .dim = { rows } };
    memcpy(shape.dim + 1, row.dim, (size_t)row.rank * sizeof *row.dim);
    return keel_tensor_create(out, trainer->model->dtype, &shape);
}

static int64_t bytes_of(const keel_tensor *t, int n)
{
    int64_t sum = 0;
    for (int k = 0; k < n; k++)
        sum += keel_shape_count(&t[k].shape) * (int64_t)keel_dtype_size(t[k].dtype);
    return sum;
}

/* The outputs of all batches must have the same row shape, to make one array. */
static keel_status check_outputs(const inference *l, const keel_tensor *t, int n)
{
    char now[96], before[96];
    for (int k = 0; k < n; k++) {
        const keel_shape row = output_row(l->trainer, k);
        const keel_shape first = keel_shape_of(t[k].shape.rank - 1, t[k].shape.dim + 1);
        if (!t[k].data || keel_shape_equal(&row, &first)) continue;
        keel_shape_text(now, &row);
        keel_shape_text(before, &first);
        return keel_fail(
            KEEL_ESHAPE,
            "output rows have shape %s, earlier ones %s, so they do not make one array; "
            "pad all rows of the data to one bucket",
            now, before);
    }
    return KEEL_OK;
}

static keel_status predict_step(inference *l, const keel_batch *b, const keel_tensor *t, char **at,
                                int64_t left)
{
    const int n = l->trainer->model->n_output;
    KEEL_TRY(keel_watch_tell(&l->run, KEEL_ON_predict_batch_begin));
    keel_live_take(&l->run.live);
    if (b->rows > left)
        return keel_fail(KEEL_EDATA, "%s: has more rows than announced (%lld)",
                         keel_dataset_name(l->data), (long long)(l->run.at.rows + left));
    KEEL_TRY(keel_trainer_meet(l->trainer, false, b));
    KEEL_TRY(check_outputs(l, t, n));
    const keel_status s = keel_predict_step(l->trainer, b, (void *const *)at, !l->files);
    if (s != KEEL_OK || !l->files) return s;
    return keel_row_files_put(l->files, l->run.at.rows, b->rows, at);
}

/* The rows of a step, `rows` of them at the ends of the outputs [n], as its callbacks see them. */
static void show_outputs(keel_tensor *shown, const keel_tensor *t, char *const *at, int n,
                         int64_t rows)
{
    for (int k = 0; k < n; k++) {
        shown[k] = (keel_tensor){ t[k].dtype, t[k].shape, at[k] };
        shown[k].shape.dim[0] = rows;
    }
}

/* Run all steps; each appends its rows at at[n_output], which advance. n: outputs asked for. */
static keel_status predict_rows(inference *l, const keel_tensor *t, char **at, int n, int64_t rows)
{
    keel_status s = KEEL_OK;
    keel_batch b;
    keel_watch *r = &l->run;
    keel_tensor shown[KEEL_OUTPUTS_MAX];
    const double start = keel_seconds();
    r->at.steps = keel_feed_steps(l->feed);
    r->at.all_rows = rows;
    KEEL_TRY(keel_watch_tell(r, KEEL_ON_predict_begin));
    while (keel_session_goes_on(r, l->trainer) && (s = keel_feed_next(l->feed, &b)) == KEEL_OK) {
        keel_trainer_look_ahead(l->trainer, l->feed);
        s = predict_step(l, &b, t, at, rows - r->at.rows);
        keel_feed_release(l->feed, &b);
        if (s < 0) return s;
        if (s == KEEL_END) break; /* another process stops */
        r->at.step++;
        r->at.rows += b.rows;
        r->at.seconds = keel_seconds() - start;
        r->at.waited = keel_feed_wait_seconds(l->feed);
        if (n <= KEEL_OUTPUTS_MAX && !l->files) {
            show_outputs(shown, t, at, n, b.rows);
            r->at.outputs = shown;
            r->at.output_count = n;
        }
        KEEL_TRY(keel_watch_tell(r, KEEL_ON_predict_batch_end));
        r->at.outputs = NULL;
        r->at.output_count = 0;
        for (int k = 0; k < n && !l->files; k++)
            at[k] += b.rows * (keel_shape_count(&t[k].shape) / rows) *
                     (int64_t)keel_dtype_size(t[k].dtype);
    }
    KEEL_TRY(keel_session_end_pass(r, l->trainer, s));
    if (r->at.rows != rows && !r->stop_pass)
        return keel_fail(KEEL_EDATA, "%s: has %lld of the %lld announced rows",
                         keel_dataset_name(l->data), (long long)r->at.rows, (long long)rows);
    return keel_watch_tell(r, KEEL_ON_predict_end);
}

/* -1: not known. */
static int64_t rows_of(const inference *l)
{
    const int64_t rows = keel_feed_rows(l->feed);
    return rows >= 0 || l->o.steps_per_epoch ? rows : keel_dataset_rows(l->data); /* of batches */
}

/* Predict the first `n` outputs into out [n]; or into files of these paths, and out gets their
 * types and shapes. */
static keel_status predict(keel_model *m, keel_strategy *s, const keel_dataset *data,
                           const keel_fit_options *options, const char *const *path,
                           keel_tensor *out, int n)
{
    inference l = { .data = data };
    const size_t n_output = (size_t)(m->n_output > n ? m->n_output : n);
    keel_status st = KEEL_ENOMEM;
    keel_tensor *t = keel_calloc(n_output, sizeof *t);
    char **at = keel_calloc(n_output, sizeof *at);
    if (!t || !at) goto out;
    if ((st = begin(&l, m, s, data, options, false)) < 0) goto out;
    const int64_t rows = rows_of(&l);
    if (rows < 0) {
        st = keel_fail(KEEL_EDATA,
                       "%s: predict needs the number of rows in advance, and this stream does not "
                       "say it; a generator says it in `rows`",
                       keel_dataset_name(data));
        goto out;
    }
    for (int k = 0; k < n; k++) {
        const int64_t kept = path ? keel_feed_max_rows(l.feed) : rows;
        if ((st = create_output(l.trainer, k, kept, &t[k])) < 0) goto out;
        at[k] = t[k].data;
    }
    if (path && (st = keel_row_files_create(&l.files, s, path, t, n, rows)) < 0) goto out;
    if ((st = start(&l, "prediction", bytes_of(t, n))) < 0) goto out;
    if ((st = predict_rows(&l, t, at, n, rows)) < 0) goto out;
    if (path && (st = keel_row_files_commit(l.files, l.run.at.rows)) < 0) goto out;
    for (int k = 0; k < n; k++) t[k].shape.dim[0] = l.run.at.rows; /* fewer if it was stopped */
    memcpy(out, t, (size_t)n * sizeof *out);
    memset(t, 0, (size_t)n * sizeof *t);
out:
    for (int k = 0; t && k < n; k++) keel_tensor_free(&t[k]);
    keel_free(t);
    keel_free(at);
    keel_row_files_destroy(l.files);
    end(&l);
    return keel_together_leave(s, st);
}

keel_status keel_predict_npy(keel_model *m, keel_strategy *s, const keel_dataset *data,
                             const keel_fit_options *options, const char *const *path,
                             keel_tensor *made)
{
    const int n = m->n_output;
    keel_tensor *t = keel_calloc((size_t)n + 1, sizeof *t);
    const keel_status st = t ? predict(m, s, data, options, path, t, n) : KEEL_ENOMEM;
    for (int k = 0; k < n && st >= 0; k++) {
        if (made) made[k] = (keel_tensor){ t[k].dtype, t[k].shape, NULL };
        keel_tensor_free(&t[k]);
    }
    keel_free(t);
    return st;
}

keel_status keel_predict(keel_model *m, keel_strategy *s, const keel_dataset *data,
                         const keel_fit_options *options, keel_tensor *out)
{
    return predict(m, s, data, options, NULL, out, 1);
}

keel_status keel_predict_outputs(keel_model *m, keel_strategy *s, const keel_dataset *data,
                                 const keel_fit_options *options, keel_tensor *out)
{
    return predict(m, s, data, options, NULL, out, m->n_output);
}
