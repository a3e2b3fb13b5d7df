/* Classes that a program registers, on devices with memory of their own, for which the host or the
 * device calls them: training is that of a core, and a layer that fails ends the step with its
 * name. The devices are stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "custom_classes.h"
#include "golden.h"
#include "must.h"
#include "standin.h"
#include "train/strategy.h"
#include <math.h>
#include <string.h>

enum { ROWS = 22, MOST = 4 };

typedef struct machine {
    const char *name;
    const keel_device_type *type;
    int n;              /* 0: one core */
    const char *beside; /* NULL: none */
} machine;

static keel_device_type no_fold(void)
{
    keel_device_type t = standin_runs;
    t.fold = NULL;
    return t;
}

/* The loss and metrics of two epochs, and predictions. */
typedef struct outcome {
    double log[8];
    int n_log;
    keel_tensor predicted;
} outcome;

static keel_dataset *rows(void)
{
    static float x[ROWS * 12], y[ROWS * 2];
    keel_dataset *d;
    for (int i = 0; i < ROWS * 12; i++) x[i] = (float)((i * 37 + 11) % 101 - 50) / 32;
    for (int i = 0; i < ROWS * 2; i++) y[i] = (float)((i * 37 + 40) % 101 - 50) / 32;
    must(keel_dataset_from_arrays(&d, &(keel_tensor){ KEEL_FLOAT32, { 3, { ROWS, 4, 3 } }, x },
                                  &(keel_tensor){ KEEL_FLOAT32, { 2, { ROWS, 2 } }, y }, NULL));
    return d;
}

static outcome run(const machine *m, int shards)
{
    keel_device *device[MOST];
    keel_strategy *s;
    keel_model *model;
    keel_history h;
    outcome o = { 0 };
    keel_dataset *d = rows();
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 2,
                                       .reference_kernels = true };
    for (int i = 0; i < m->n; i++) device[i] = standin_open(m->type, i);
    if (m->n)
        must(keel_strategy_create_beside(&s, device, m->n, m->beside));
    else
        must(keel_strategy_create(&s, "cpu:0"));
    if (shards) must(keel_strategy_reproducible(s, shards));
    must(keel_model_load(&model, golden_path("custom.keras")));
    must(keel_fit(model, s, d, &options, &h));
    must(keel_predict(model, s, d, &options, &o.predicted));
    o.n_log = 2 * h.count;
    memcpy(o.log, h.value, (size_t)o.n_log * sizeof *o.log);
    keel_history_free(&h);
    keel_model_destroy(model);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    for (int i = 0; i < m->n; i++) {
        const standin *x = standin_of(device[i]);
        assert_int_equal(x->allocations, 0);
        if (x->clocks.reports > 0) fail_msg("%s: %s", m->name, x->clocks.first);
        device[i]->type->close(device[i]);
    }
    return o;
}

static void compare(const outcome *a, const outcome *b, bool bits, const char *name)
{
    const float *u = a->predicted.data, *v = b->predicted.data;
    for (int i = 0; i < a->n_log; i++)
        if (bits ? a->log[i] != b->log[i] : fabs(a->log[i] - b->log[i]) > 1e-5)
            fail_msg("%s: log %d is %.17g, and %.17g", name, i, a->log[i], b->log[i]);
    for (int64_t i = 0; i < keel_shape_count(&a->predicted.shape); i++)
        if (bits ? u[i] != v[i] : fabsf(u[i] - v[i]) > 1e-5F)
            fail_msg("%s: prediction %d is %.9g, and %.9g", name, (int)i, (double)u[i],
                     (double)v[i]);
}

static void training_is_that_of_one(void **unused)
{
    const keel_device_type unfolded = no_fold();
    const machine core = { "a core", NULL, 0, NULL }, one = { "one", &standin_runs, 1, NULL };
    const machine others[] = { { "one that runs references", &standin_runs, 1, NULL },
                               { "one that has the host run them", &standin_stores, 1, NULL },
                               { "two", &standin_runs, 2, NULL },
                               { "four by the host", &standin_stores, 4, NULL },
                               { "three that fold nothing", &unfolded, 3, NULL },
                               { "three that add up themselves", &standin_sums, 3, NULL },
                               { "two beside a core", &standin_stores, 2, "cpu:0" } };
    (void)unused;
    for (int shards = 0; shards <= 16; shards += 16) {
        outcome a = run(shards ? &one : &core, shards);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            outcome b = run(&others[i], shards);
            compare(&a, &b, shards > 0, others[i].name);
            keel_tensor_free(&b.predicted);
        }
        keel_tensor_free(&a.predicted);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

static int seen, fails_at;

static keel_status counted_forward(const keel_layer_rows *r)
{
    const int64_t n = elements(r->out_shape);
    if (__atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED) == fails_at) return KEEL_EDATA;
    for (int64_t i = 0; i < n * r->rows; i++) ((float *)r->out)[i] = ((const float *)r->in[0])[i];
    return KEEL_OK;
}

static keel_status counted_backward(const keel_layer_rows *r)
{
    const int64_t n = elements(r->out_shape);
    for (int64_t i = 0; r->in_grad[0] && i < n * r->rows; i++) r->in_grad[0][i] += r->out_grad[i];
    return KEEL_OK;
}

static const keel_custom_layer counted = { KEEL_CUSTOM_LAYER,
                                           { "tests>Counted" },
                                           .inputs = 1,
                                           .forward = counted_forward,
                                           .backward = counted_backward };

static keel_status fit_counted(const machine *m)
{
    keel_device *device[MOST];
    keel_strategy *s;
    keel_model *model;
    keel_symbol x;
    keel_dataset *d = rows();
    must(keel_model_create(&model, NULL, KEEL_FLOAT32, 3));
    must(keel_model_input(model, KEEL_DIMS(4, 3), NULL, &x));
    x = must_call(model, "Flatten", NULL, x);
    x = must_call(model, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2)), x);
    x = must_call(model, "tests>Counted", KEEL_ARGS(KEEL_ARG_STR("name", "mine")), x);
    must(keel_model_outputs(model, &x, 1));
    must(keel_model_compile(
        model, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
    for (int i = 0; i < m->n; i++) device[i] = standin_open(m->type, i);
    must(keel_strategy_create_beside(&s, device, m->n, m->beside));
    seen = 0;
    const keel_status st = keel_fit(
        model, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 1 }, NULL);
    if (st < 0 && (st != KEEL_ECALLBACK || !strstr(keel_error(), "layer 'mine'")))
        fail_msg("%s, call %d: %s", m->name, fails_at, keel_error());
    keel_strategy_destroy(s);
    for (int i = 0; i < m->n; i++) {
        assert_int_equal(standin_of(device[i])->allocations, 0);
        device[i]->type->close(device[i]);
    }
    keel_model_destroy(model);
    keel_dataset_destroy(d);
    return st;
}

static void a_layer_that_fails_ends_the_step_and_is_named(void **unused)
{
    static const machine on[] = { { "runs", &standin_runs, 1, NULL },
                                  { "stores", &standin_stores, 2, NULL },
                                  { "sums", &standin_sums, 3, NULL },
                                  { "stores, beside a core", &standin_stores, 2, "cpu:0" } };
    (void)unused;
    must(keel_register_layer(&counted));
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        fails_at = 0;
        must(fit_counted(&on[i]));
        const int calls = seen;
        assert_true(calls >= 3);
        for (fails_at = 1; fails_at <= calls; fails_at++)
            if (fit_counted(&on[i]) >= 0) fail_msg("%s: call %d passes", on[i].name, fails_at);
    }
}

static int prepare(void **unused)
{
    (void)unused;
    must(register_golden_classes());
    return 0;
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(training_is_that_of_one),
        cmocka_unit_test(a_layer_that_fails_ends_the_step_and_is_named),
    };
    return cmocka_run_group_tests(test, prepare, NULL);
}
