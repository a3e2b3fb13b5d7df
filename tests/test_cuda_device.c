/* A GPU as a device (device/cuda/device.cu) on the emulator, with a double of CUDA's runtime: whole
 * fits with graphs have the bits of those without, and what CUDA cannot capture runs call by call,
 * and is said. A GPU that does not answer ends its fit, with the weights of the last step. The
 * double itself finds every wrong call of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include "cuda_double.h"
#include "emulator.h"
#include "device/cuda_plugin.h"
#include "reproducible_works.h"
#include "train/strategy.h"

extern const keel_cuda_plugin keel_cuda;

static void wrong_calls_are_found_and_no_others(void **unused)
{
    (void)unused;
    for (const cuda_misuse *m = runtime_misuses; m->what; m++) {
        m->run();
        const char *report = emu_report();
        if (!m->says && report) fail_msg("%s: %s", m->what, report);
        if (m->says && (!report || !strstr(report, m->says)))
            fail_msg("%s: '%s' does not say '%s'", m->what, report ? report : "", m->says);
        emu_release_all();
    }
    assert_int_equal(cuda_runtime_live(), 0);
}

static const recipe *recipe_of(const char *name)
{
    const recipe *r = recipes;
    while (strcmp(r->name, name)) r++;
    return r;
}

static outcome run(const recipe *r, bool no_graphs)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    keel_device *gpu;
    keel_strategy *s;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size, .epochs = 2,
                                       .end = r->end, .no_graphs = no_graphs };
    must(keel_cuda.open(&gpu, 0));
    must(keel_strategy_create_devices(&s, &gpu, 1));
    must(keel_strategy_reproducible(s, r->shards));
    must(keel_fit(o.model, s, d, &options, &o.history));
    must(keel_evaluate(o.model, s, d, &options, &o.logs));
    must(keel_predict(o.model, s, d, &options, &o.predicted));
    keel_strategy_destroy(s);
    gpu->type->close(gpu);
    keel_dataset_destroy(d);
    const char *fault = emu_report();
    if (fault) fail_msg("%s: %s", r->name, fault);
    emu_release_all();
    assert_int_equal(cuda_runtime_live(), 0);
    return o;
}

static void graphs_change_no_bit(void **unused)
{
    static const char *const names[] = { "convolutions", "statistics both ways", "a table",
                                         "deep in bfloat16" };
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const recipe *r = recipe_of(names[i]);
        const int64_t replays = cuda_runtime_replays();
        outcome a = run(r, false);
        if (cuda_runtime_replays() < replays + a.history.steps)
            fail_msg("%s: %d replays", r->name, (int)(cuda_runtime_replays() - replays));
        const int64_t captures = cuda_runtime_captures();
        outcome b = run(r, true);
        assert_int_equal(cuda_runtime_captures(), captures);
        compare(&a, &b, r, "graphs");
        forget(&a);
        forget(&b);
    }
}

static void what_cannot_be_captured_runs_call_by_call(void **unused)
{
    const recipe *r = recipe_of("convolutions");
    (void)unused;
    const int64_t replays = cuda_runtime_replays();
    cuda_runtime_refuses(true);
    outcome a = run(r, false);
    cuda_runtime_refuses(false);
    assert_int_equal(cuda_runtime_replays(), replays);
    assert_non_null(a.history.note);
    assert_non_null(strstr(a.history.note, "cuda:0 is given each call by itself"));
    outcome b = run(r, true);
    compare(&a, &b, r, "no graphs");
    forget(&a);
    forget(&b);
}

/* ---- a GPU that hangs ------------------------------------------------------------------------ */

static keel_status hang_after(void *context, const keel_moment *now)
{
    int64_t *left = context;
    (void)now;
    if (--*left == 0) cuda_runtime_hangs(true);
    return KEEL_OK;
}

static keel_status end_after(void *context, const keel_moment *now)
{
    int64_t *left = context;
    (void)now;
    return --*left == 0 ? KEEL_END : KEEL_OK;
}

/* What `steps` steps leave; afterwards the GPU hangs, or the fit ends. */
static outcome after(const recipe *r, int64_t steps, bool hangs)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    keel_device *gpu;
    keel_strategy *s;
    const keel_callback ends = { KEEL_CALLBACK, .context = &steps,
                                 .on_train_batch_end = hangs ? hang_after : end_after };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                       .callbacks = KEEL_CALLBACKS(&ends) };
    must(keel_cuda.open(&gpu, 0));
    must(keel_strategy_create_devices(&s, &gpu, 1));
    must(keel_strategy_timeout(s, 0.05));
    must(keel_strategy_reproducible(s, r->shards));
    const keel_status st = keel_fit(o.model, s, d, &options, &o.history);
    assert_int_equal(st, hangs ? KEEL_EDEVICE : KEEL_OK);
    if (hangs) assert_non_null(strstr(keel_error(), "cuda:0 has not answered for 0.05 seconds"));
    keel_strategy_destroy(s);
    gpu->type->close(gpu);
    cuda_runtime_ends();
    keel_dataset_destroy(d);
    emu_report();
    emu_release_all();
    return o;
}

static void a_gpu_that_hangs_ends_the_fit_with_the_last_step(void **unused)
{
    const recipe *r = recipe_of("convolutions");
    (void)unused;
    outcome a = after(r, 2, true), b = after(r, 2, false);
    assert_int_equal(keel_model_steps_done(a.model), 2);
    compare_weights(&a, &b, r, "a GPU that hangs");
    forget(&a);
    forget(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_calls_are_found_and_no_others),
        cmocka_unit_test(graphs_change_no_bit),
        cmocka_unit_test(what_cannot_be_captured_runs_call_by_call),
        cmocka_unit_test(a_gpu_that_hangs_ends_the_fit_with_the_last_step),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
