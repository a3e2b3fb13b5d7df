/* Callbacks that see rows get outputs, targets and weights of each step: the loss and the metric
 * that these give are those of the logs, on any devices and in several processes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "must.h"
#include "standin.h"
#include "thread_processes.h"

enum { ROWS = 27, TESTED = 11, FEATURES = 3, BATCH = 8, EPOCHS = 2, PROCESSES = 3, LANES = 4 };
static float x[ROWS * FEATURES], y[ROWS], w[ROWS];

static int start(void **unused)
{
    (void)unused;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)sin(1.3 * i);
    for (int i = 0; i < ROWS; i++) w[i] = (y[i] = 0.125f * (float)i - 1) + 2;
    return 0;
}

static keel_dataset *rows_of(int64_t n, bool weighs)
{
    keel_dataset *d;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { n, FEATURES } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { n, 1 } }, y };
    const keel_tensor tw = { KEEL_FLOAT32, { 1, { n } }, w };
    must(keel_dataset_from_arrays(&d, &tx, &ty, weighs ? &tw : NULL));
    return d;
}

/* With dropout, which trains other outputs than it tests. */
static keel_model *network(void)
{
    keel_model *m;
    must(keel_model_create(&m, "m", KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Dense",
                        KEEL_ARGS(KEEL_ARG_INT("units", 9), KEEL_ARG_STR("activation", "tanh"))));
    must(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                                .loss = { { "mse" } }, .metrics = { { "mae" } } }));
    return m;
}

/* A run, and what its callback has added up. */
typedef struct run {
    keel_process_group group;     /* of no processes: it is alone */
    const keel_device_type *type; /* of stand-ins, which are the lanes; NULL: the processor */
    bool weighs, evaluates;
    int lanes, calls;
    double loss, mae, rows;
    keel_status status;
    char error[512];
} run;

static void add_rows(run *r, const keel_moment *at)
{
    const keel_tensor *p = &at->outputs[0], *t = &at->targets[0], *weight = &at->weights[0];
    assert_int_equal(at->output_count, 1);
    assert_int_equal(t->shape.dim[0], p->shape.dim[0]);
    assert_int_equal(weight->data != NULL, r->weighs);
    for (int64_t i = 0; i < p->shape.dim[0]; i++) {
        const float want = ((const float *)t->data)[i];
        const double apart = (double)((const float *)p->data)[i] - (double)want;
        const float by = r->weighs ? ((const float *)weight->data)[i] : 1;
        if (r->weighs && fabsf(by - want - 2) > 1e-6f)
            fail_msg("the weight of a row is %g, its target %g", (double)by, (double)want);
        r->loss += (double)by * apart * apart;
        r->mae += fabs(apart);
    }
    r->rows += (double)p->shape.dim[0];
    r->calls++;
}

static keel_status begins(void *context, const keel_moment *at)
{
    run *r = context;
    assert_null(at->outputs);
    r->loss = r->mae = r->rows = 0;
    return KEEL_OK;
}

static keel_status ended_batch(void *context, const keel_moment *at)
{
    run *r = context;
    add_rows(r, at);
    const double loss = keel_logs_get(at->logs, "loss"), mae = keel_logs_get(at->logs, "mae");
    if (!(fabs(loss - r->loss / r->rows) < 1e-5) || !(fabs(mae - r->mae / r->rows) < 1e-5))
        fail_msg("step %d of %s: the rows give %g and %g, the logs have %g and %g", (int)at->step,
                 at->training ? "training" : "a test", r->loss / r->rows, r->mae / r->rows, loss,
                 mae);
    return KEEL_OK;
}

static keel_status open_devices(run *r, keel_device **device, keel_strategy **out)
{
    r->group.timeout = PATIENT;
    if (!r->type) return open_lanes(out, &r->group, r->lanes, 1);
    for (int i = 0; i < r->lanes; i++) device[i] = standin_open(r->type, i);
    return keel_strategy_create_devices(out, device, r->lanes);
}

static void *live(void *context)
{
    run *r = context;
    keel_strategy *s = NULL;
    keel_device *device[LANES] = { 0 };
    keel_model *m = network();
    keel_dataset *d = rows_of(ROWS, r->weighs), *tested = rows_of(TESTED, r->weighs);
    const keel_callback sees = { KEEL_CALLBACK,
                                 .context = r,
                                 .on_epoch_begin = begins,
                                 .on_test_begin = begins,
                                 .on_train_batch_end = ended_batch,
                                 .on_test_batch_end = ended_batch,
                                 .sees_rows = true };
    const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                 .batch_size = BATCH,
                                 .epochs = EPOCHS,
                                 .seed = 5,
                                 .validation = r->evaluates ? NULL : tested,
                                 .callbacks = KEEL_CALLBACKS(&sees) };
    keel_logs logs;
    r->status = open_devices(r, device, &s);
    if (r->status >= 0)
        r->status = r->evaluates ? keel_evaluate(m, s, d, &o, &logs) : keel_fit(m, s, d, &o, NULL);
    if (r->status < 0) snprintf(r->error, sizeof r->error, "%s", keel_error());
    keel_strategy_destroy(s);
    for (int i = 0; i < LANES && device[i]; i++) device[i]->type->close(device[i]);
    keel_dataset_destroy(d);
    keel_dataset_destroy(tested);
    keel_model_destroy(m);
    return NULL;
}

enum { FIT_CALLS = EPOCHS * (4 + 2), EVALUATION_CALLS = 4 };

static void rows_of_each_step_give_the_loss_and_the_metric_of_the_logs(void **unused)
{
    (void)unused;
    const keel_device_type *const type[] = { NULL, &standin_stores, &standin_runs, &standin_sums };
    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int i = 0; i < 16; i++) {
            run r = { .lanes = lanes, .type = type[i / 4], .weighs = i & 1, .evaluates = i & 2 };
            live(&r);
            if (r.status < 0) fail_msg("%d lanes: %s", lanes, r.error);
            assert_int_equal(r.calls, r.evaluates ? EVALUATION_CALLS : FIT_CALLS);
        }
}

static void each_process_sees_the_rows_of_all(void **unused)
{
    (void)unused;
    for (int evaluates = 0; evaluates < 2; evaluates++) {
        thread_group g;
        run r[PROCESSES] = { 0 };
        thread_group_begin(&g, PROCESSES);
        for (int p = 0; p < PROCESSES; p++) {
            r[p] = (run){ .lanes = 1, .weighs = true, .evaluates = evaluates };
            r[p].group = thread_group_of(&g, p);
        }
        live_together(live, r, sizeof *r, PROCESSES);
        for (int p = 0; p < PROCESSES; p++) {
            if (r[p].status < 0) fail_msg("process %d: %s", p, r[p].error);
            assert_int_equal(r[p].calls, evaluates ? EVALUATION_CALLS : FIT_CALLS);
        }
        thread_group_end(&g);
    }
}

static void micro_batches_are_refused(void **unused)
{
    (void)unused;
    keel_strategy *s;
    keel_model *m = network();
    keel_dataset *d = rows_of(ROWS, false);
    const keel_callback sees = { KEEL_CALLBACK, .sees_rows = true };
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_strategy_micro_batch(s, 2));
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .callbacks = KEEL_CALLBACKS(&sees) };
    assert_int_equal(keel_fit(m, s, d, &o, NULL), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "micro_batch"));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void each_failing_allocation_is_an_error_and_no_leak(void **unused)
{
    (void)unused;
    keel_strategy *s;
    keel_model *m = network();
    keel_dataset *d = rows_of(ROWS, true);
    keel_logs logs;
    run r = { .weighs = true };
    const keel_callback sees = { KEEL_CALLBACK, .context = &r, .on_test_begin = begins,
                                 .on_test_batch_end = ended_batch, .sees_rows = true };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH,
                                 .callbacks = KEEL_CALLBACKS(&sees) };
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_evaluate(m, s, d, NULL, &logs)); /* a model keeps names of logs */
    const int64_t live_before = keel_memory_live();
    keel_status st = KEEL_ENOMEM;
    for (int64_t at = 0; st < 0; at++) {
        keel_memory_fail_at(at);
        st = keel_evaluate(m, s, d, &o, &logs);
        keel_memory_fail_at(-1);
        if (keel_memory_live() != live_before) fail_msg("failing allocation %d leaks", (int)at);
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)at, keel_error());
    }
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_each_step_give_the_loss_and_the_metric_of_the_logs),
        cmocka_unit_test(each_process_sees_the_rows_of_all),
        cmocka_unit_test(micro_batches_are_refused),
        cmocka_unit_test(each_failing_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
