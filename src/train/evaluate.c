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
} inference;

/* What predict makes: in memory, or in files. */
typedef struct outputs {
    int n;                 /* the first so many of the model */
    int64_t rows;          /* of the data; -1: not known before they have come */
    bool grows;            /* so the tensors get longer */
    keel_row_files *files; /* NULL: they stay in memory */
    keel_tensor *tensor;   /* [n] with room for all rows, or for those of a step */
    char **at;             /* [n_output of the model] where the next rows go; NULL: not asked for */
} outputs;

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
                                     .takes = true,
                                     .shows = l->run.shown.n > 0,
                                     .programs = (int)l->o.programs };
    KEEL_TRY(keel_trainer_create(&l->trainer, m, s, &none, &test, &t));
    l->trainer->test_seed = l->o.seed;
    keel_watch_go_live(&l->run, l->trainer);
    KEEL_TRY(keel_session_prepare(&l->trainer->test, l->feed));
    return keel_device_notes_tell(&l->o, l->trainer, l->trainer->test.program, false,
                                  keel_feed_refused(l->feed));
}

static int64_t bytes_of(const outputs *o)
{
    int64_t sum = 0;
    for (int k = 0; k < o->n; k++)
        sum += keel_shape_count(&o->tensor[k].shape) * (int64_t)keel_dtype_size(o->tensor[k].dtype);
    return sum;
}

/* Begin to read, if there is memory for that, the program, and the outputs (NULL: none). */
static keel_status start(inference *l, const char *what, const outputs *o)
{
    const keel_run_memory memory = { .what = what,
                                     .steps = keel_arenas_bytes(l->trainer->arenas),
                                     .outputs = o ? bytes_of(o) : 0,
                                     .grows = o && o->grows,
                                     .input = { { l->feed, l->least } },
                                     .asked = l->o.input_memory > 0 };
    KEEL_TRY(keel_run_memory_check(&memory));
    return keel_feed_begin_epoch(l->feed, 0);
}

static void end(inference *l, keel_status s)
{
    if (s < 0) keel_watch_failed(&l->run);
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
    if (st >= 0) st = start(&l, "evaluation", NULL);
    if (st >= 0) st = keel_session_test(&l.run, l.trainer, l.feed, &tally);
    if (st >= 0) *out = l.run.logs;
    keel_tally_free(&tally);
    end(&l, st);
    return keel_strategy_leave(s, st);
}

/* The shape of one row of output k, in the current program. */
static keel_shape output_row(const keel_trainer *t, int k)
{
    const keel_program *p = t->test.program;
    return p->graph->value[p->output[k]].spec.shape;
}

/* Memory for so many rows, more than there was. */
static keel_status lengthen(keel_tensor *t, int64_t rows)
{
    keel_shape shape = t->shape;
    shape.dim[0] = rows;
    const size_t size = keel_dtype_size(t->dtype);
    KEEL_TRY(keel_shape_check(&shape, size));
    void *data = keel_grow(t->data, (size_t)keel_shape_count(&shape), size);
    if (!data) return KEEL_ENOMEM;
    t->data = data;
    t->shape = shape;
    return KEEL_OK;
}

/* grows: it will be made longer. */
static keel_status create_output(const keel_trainer *trainer, int k, int64_t rows, bool grows,
                                 keel_tensor *out)
{
    const keel_shape row = output_row(trainer, k);
    if (row.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "output %d of the model has too many dimensions for predict",
                         k);
    keel_shape shape = { .rank = row.rank + 1, .dim = { rows } };
    memcpy(shape.dim + 1, row.dim, (size_t)row.rank * sizeof *row.dim);
    if (!grows) return keel_tensor_create(out, trainer->model->dtype, &shape);
    *out = (keel_tensor){ .dtype = trainer->model->dtype, .shape = shape };
    return lengthen(out, rows);
}

static int64_t row_bytes(const keel_tensor *t)
{
    const keel_shape row = keel_shape_of(t->shape.rank - 1, t->shape.dim + 1);
    return keel_shape_count(&row) * (int64_t)keel_dtype_size(t->dtype);
}

/* Room for `more` rows behind the `done` before them, where nobody has said how many come. */
static keel_status make_room(outputs *o, int64_t done, int64_t more)
{
    if (!o->grows || o->n == 0) return KEEL_OK;
    if (more <= o->tensor[0].shape.dim[0] - done) return KEEL_OK;
    const int64_t rows = done + more, room = rows <= INT64_MAX / 2 ? rows + rows / 2 : rows;
    int64_t wanted = -bytes_of(o);
    for (int k = 0; k < o->n; k++) wanted += room * row_bytes(&o->tensor[k]);
    KEEL_TRY(keel_run_memory_more(wanted));
    for (int k = 0; k < o->n; k++) {
        KEEL_TRY(lengthen(&o->tensor[k], room));
        o->at[k] = (char *)o->tensor[k].data + done * row_bytes(&o->tensor[k]);
    }
    return KEEL_OK;
}

/* The outputs of all batches must have the same row shape, to make one array. */
static keel_status check_outputs(const inference *l, const outputs *o)
{
    char now[96], before[96];
    for (int k = 0; k < o->n; k++) {
        const keel_tensor *t = &o->tensor[k];
        const keel_shape row = output_row(l->trainer, k);
        const keel_shape first = keel_shape_of(t->shape.rank - 1, t->shape.dim + 1);
        if (keel_shape_equal(&row, &first)) continue;
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

static keel_status predict_step(inference *l, const keel_batch *b, outputs *o)
{
    const int64_t done = l->run.at.rows;
    KEEL_TRY(keel_watch_tell(&l->run, KEEL_ON_predict_batch_begin));
    keel_live_take(&l->run.live);
    if (o->rows >= 0 && b->rows > o->rows - done)
        return keel_fail(KEEL_EDATA, "%s: has more rows than announced (%lld)",
                         keel_dataset_name(l->data), (long long)o->rows);
    KEEL_TRY(keel_trainer_meet(l->trainer, false, b));
    KEEL_TRY(check_outputs(l, o));
    KEEL_TRY(make_room(o, done, b->rows));
    const keel_status s = keel_predict_step(l->trainer, b, (void *const *)o->at, !o->files);
    if (s != KEEL_OK || !o->files) return s;
    return keel_row_files_put(o->files, done, b->rows, o->at);
}

/* The rows of a step, `rows` of them at the ends of the outputs, as its callbacks see them. */
static void show_outputs(keel_tensor *shown, const outputs *o, int64_t rows)
{
    for (int k = 0; k < o->n; k++) {
        shown[k] = (keel_tensor){ o->tensor[k].dtype, o->tensor[k].shape, o->at[k] };
        shown[k].shape.dim[0] = rows;
    }
}

/* Run all steps; each appends its rows to the outputs. */
static keel_status predict_rows(inference *l, outputs *o)
{
    keel_status s = KEEL_OK;
    keel_batch b;
    keel_watch *r = &l->run;
    keel_tensor shown[KEEL_OUTPUTS_MAX];
    const double start = keel_seconds();
    r->at.steps = keel_feed_steps(l->feed);
    r->at.all_rows = o->rows;
    KEEL_TRY(keel_watch_tell(r, KEEL_ON_predict_begin));
    while (keel_session_goes_on(r, l->trainer) && (s = keel_feed_next(l->feed, &b)) == KEEL_OK) {
        keel_trainer_look_ahead(l->trainer, l->feed);
        s = predict_step(l, &b, o);
        keel_feed_release(l->feed, &b);
        if (s < 0) return s;
        if (s == KEEL_END) break; /* another process stops */
        r->at.step++;
        r->at.rows += b.rows;
        r->at.seconds = keel_seconds() - start;
        r->at.waited = keel_feed_wait_seconds(l->feed);
        if (o->n <= KEEL_OUTPUTS_MAX && !o->files) {
            show_outputs(shown, o, b.rows);
            r->at.outputs = shown;
            r->at.output_count = o->n;
        }
        KEEL_TRY(keel_watch_tell(r, KEEL_ON_predict_batch_end));
        r->at.outputs = NULL;
        r->at.output_count = 0;
        for (int k = 0; k < o->n && !o->files; k++) o->at[k] += b.rows * row_bytes(&o->tensor[k]);
    }
    KEEL_TRY(keel_session_end_pass(r, l->trainer, s));
    if (o->rows >= 0 && r->at.rows != o->rows && !r->stop_pass)
        return keel_fail(KEEL_EDATA, "%s: has %lld of the %lld announced rows",
                         keel_dataset_name(l->data), (long long)r->at.rows, (long long)o->rows);
    return keel_watch_tell(r, KEEL_ON_predict_end);
}

/* -1: not known. */
static int64_t rows_of(const inference *l)
{
    const int64_t rows = keel_feed_rows(l->feed);
    return rows >= 0 || l->o.steps_per_epoch ? rows : keel_dataset_rows(l->data); /* of batches */
}

static keel_status create_outputs(const inference *l, const char *const *path, outputs *o)
{
    o->rows = rows_of(l);
    o->grows = !path && o->rows < 0;
    const int64_t room = path || o->grows ? keel_feed_max_rows(l->feed) : o->rows;
    for (int k = 0; k < o->n; k++) {
        KEEL_TRY(create_output(l->trainer, k, room, o->grows, &o->tensor[k]));
        o->at[k] = o->tensor[k].data;
    }
    if (!path) return KEEL_OK;
    const int64_t announced = o->rows < 0 ? 0 : o->rows;
    return keel_row_files_create(&o->files, l->strategy, path, o->tensor, o->n, announced);
}

/* Predict the first `n` outputs into out [n]; or into files of these paths, and out gets their
 * types and shapes. */
static keel_status predict(keel_model *m, keel_strategy *s, const keel_dataset *data,
                           const keel_fit_options *options, const char *const *path,
                           keel_tensor *out, int n)
{
    inference l = { .data = data };
    const size_t n_output = (size_t)(m->n_output > n ? m->n_output : n);
    outputs o = { .n = n,
                  .tensor = keel_calloc(n_output, sizeof *o.tensor),
                  .at = keel_calloc(n_output, sizeof *o.at) };
    keel_status st = KEEL_ENOMEM;
    if (!o.tensor || !o.at) goto out;
    if ((st = begin(&l, m, s, data, options, false)) < 0) goto out;
    if ((st = create_outputs(&l, path, &o)) < 0) goto out;
    if ((st = start(&l, "prediction", &o)) < 0) goto out;
    if ((st = predict_rows(&l, &o)) < 0) goto out;
    if (path && (st = keel_row_files_commit(o.files, l.run.at.rows)) < 0) goto out;
    for (int k = 0; k < n; k++) o.tensor[k].shape.dim[0] = l.run.at.rows; /* fewer if stopped */
    memcpy(out, o.tensor, (size_t)n * sizeof *out);
    memset(o.tensor, 0, (size_t)n * sizeof *o.tensor);
out:
    for (int k = 0; o.tensor && k < n; k++) keel_tensor_free(&o.tensor[k]);
    keel_free(o.tensor);
    keel_free(o.at);
    keel_row_files_destroy(o.files);
    end(&l, st);
    return keel_strategy_leave(s, st);
}

keel_status keel_predict_npy(keel_model *m, keel_strategy *s, const keel_dataset *data,
                             const keel_fit_options *options, const char *const *path,
                             keel_tensor *made)
{
    const int n = m->n_output;
    for (int k = 0; k < n; k++)
        if (!path || !path[k])
            return keel_strategy_leave(
                s, keel_fail(KEEL_EARG, "no path is given for the file of output %d", k));
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
