/* Keras's evaluate and predict: forward only, every row once, in order. */
#include "base/memory.h"
#include "train/session.h"
#include <string.h>

typedef struct look {
    keel_fit_options o;
    keel_trainer *trainer;
    keel_feed *feed;
    keel_strategy *strategy;
    bool entered;
} look;

static keel_status begin(look *l, keel_model *m, keel_strategy *s, const keel_dataset *data,
                         const keel_fit_options *options, bool scored)
{
    const keel_shape y = keel_dataset_y_shape(data);
    l->strategy = s;
    KEEL_TRY(keel_session_options(&l->o, options));
    l->o.validation = NULL;
    l->o.validation_batch_size = 0;
    l->o.validation_steps = l->o.steps_per_epoch;
    KEEL_TRY(keel_session_check(m, data, scored));
    KEEL_TRY(keel_session_feed(&l->feed, data, &l->o, false, m->dtype));
    keel_team_enter(s->team);
    l->entered = true;
    const keel_trainer_options t = { .reference_kernels = l->o.reference_kernels,
                                     .float32 = l->o.float32,
                                     .without_kernels = l->o.without_kernels,
                                     .unfused = l->o.unfused };
    KEEL_TRY(keel_trainer_create(&l->trainer, m, s, scored ? &y : NULL, 0,
                                 keel_feed_max_rows(l->feed), &t));
    KEEL_TRY(keel_session_prepare(&l->trainer->test, l->feed));
    return keel_feed_begin_epoch(l->feed, 0);
}

static void end(look *l)
{
    if (l->entered) keel_team_leave(l->strategy->team);
    keel_trainer_destroy(l->trainer);
    keel_feed_destroy(l->feed);
}

keel_status keel_evaluate(keel_model *m, keel_strategy *s, const keel_dataset *data,
                          const keel_fit_options *options, keel_logs *out)
{
    look l = { 0 };
    keel_tally tally = { 0 };
    keel_logs logs = { 0 };
    keel_status st = begin(&l, m, s, data, options, true);
    if (st >= 0) {
        keel_progress p = { .epochs = 1,
                            .steps = keel_feed_steps(l.feed),
                            .all_rows = keel_feed_rows(l.feed) };
        keel_trainer_names(l.trainer, &l.trainer->test, &p.logs);
        logs = p.logs;
        st = keel_session_test(l.trainer, l.feed, &l.o, l.o.on_progress ? &p : NULL, &tally);
    }
    if (st >= 0) {
        keel_tally_logs(&l.trainer->test, &tally, &logs);
        *out = logs;
    }
    end(&l);
    return st == KEEL_END ? KEEL_OK : st;
}

keel_status keel_predict(keel_model *m, keel_strategy *s, const keel_dataset *data,
                         const keel_fit_options *options, keel_tensor *out)
{
    look l = { 0 };
    keel_tensor t = { 0 };
    keel_batch b;
    keel_shape shape, row;
    int64_t done = 0;
    keel_status st = begin(&l, m, s, data, options, false);
    if (st < 0) goto out;
    const int64_t rows = keel_feed_rows(l.feed);
    if (rows < 0) {
        st = keel_fail(KEEL_EDATA, "%s: predict needs to know how many rows there are; set `rows`",
                       keel_dataset_name(data));
        goto out;
    }
    if ((st = keel_model_output_shape(m, 0, &row)) < 0) goto out;
    if (row.rank == KEEL_RANK_MAX) {
        st = keel_fail(KEEL_ESHAPE, "the model's output has too many dims to be predicted");
        goto out;
    }
    shape = (keel_shape){ .rank = row.rank + 1, .dim = { rows } };
    memcpy(shape.dim + 1, row.dim, (size_t)row.rank * sizeof *row.dim);
    if ((st = keel_tensor_create(&t, m->dtype, &shape)) < 0) goto out;
    const int64_t row_bytes = keel_shape_count(&row) * (int64_t)keel_dtype_size(m->dtype);
    keel_progress p = { .epochs = 1, .steps = keel_feed_steps(l.feed), .all_rows = rows };
    const double start = keel_seconds();
    while ((st = keel_feed_next(l.feed, &b)) == KEEL_OK) {
        if (b.rows > rows - done)
            st = keel_fail(KEEL_EDATA, "%s: more rows came than were announced (%lld)",
                           keel_dataset_name(data), (long long)rows);
        else
            st = keel_predict_step(l.trainer, &b, (char *)t.data + done * row_bytes);
        keel_feed_release(l.feed, &b);
        if (st < 0) goto out;
        done += b.rows;
        p.step++;
        p.rows = done;
        p.seconds = keel_seconds() - start;
        if (l.o.on_progress && l.o.on_progress(l.o.context, &p) < 0) {
            st = keel_fail(KEEL_ECALLBACK, "the progress callback failed");
            goto out;
        }
    }
    if (st < 0) goto out;
    if (done != rows) {
        st = keel_fail(KEEL_EDATA, "%s: %lld of %lld announced rows came", keel_dataset_name(data),
                       (long long)done, (long long)rows);
        goto out;
    }
    *out = t;
    t = (keel_tensor){ 0 };
    st = KEEL_OK;
out:
    keel_tensor_free(&t);
    end(&l);
    return st;
}
