/* A GPU as a device (device/cuda/device.cu) on the emulator, with a double of CUDA's runtime: whole
 * fits with graphs have the bits of those without, and what CUDA cannot capture runs call by call,
 * and is said. A GPU that does not answer ends its fit, with the weights of the last step. The
 * double itself finds every wrong call of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "misuses_said.h"
#include "emulator.h"
#include "device/cuda_plugin.h"
#include "reproducible_works.h"
#include "sweep.h"
#include "train/strategy.h"

extern const keel_cuda_plugin keel_cuda;

static void wrong_calls_are_found_and_no_others(void **unused)
{
    (void)unused;
    check_misuses(runtime_misuses);
    assert_int_equal(cuda_runtime_live(), 0);
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
    for (size_t i = 0; i < sizeof names / sizeof *names; i += (size_t)thin(1, 2, 3)) {
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

static void graphs_that_find_no_memory_cost_time_and_no_fit(void **unused)
{
    const recipe *r = recipe_of("convolutions");
    (void)unused;
    outcome b = run(r, true);
    for (int most = 0; most < 4; most++) {
        cuda_runtime_graphs(most);
        const int64_t replays = cuda_runtime_replays();
        outcome a = run(r, false);
        cuda_runtime_graphs(-1);
        assert_non_null(a.history.note);
        if (!strstr(a.history.note, "its memory has no room for a graph of them"))
            fail_msg("%d graphs: %s", most, a.history.note);
        assert_int_equal(cuda_runtime_replays(), replays);
        compare(&a, &b, r, "few graphs");
        forget(&a);
    }
    forget(&b);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t part_of(const keel_plan *p, const char *what)
{
    for (int i = 0; i < p->n_part; i++)
        if (strstr(p->part[i].what, what)) return p->part[i].bytes;
    return 0;
}

/* What is taken of the GPU in the middle of a fit. */
static keel_status see_memory(void *context, const keel_moment *now)
{
    int64_t *taken = context;
    (void)now;
    *taken = cuda_double_taken();
    return KEEL_OK;
}

static void the_plan_has_what_libraries_take_and_cuda_shows_no_more(void **unused)
{
    static const struct {
        const char *work;
        bool convolves;
        int without;
    } cases[] = { { "convolutions, full steps", true, 0 },
                  { "products", false, 0 },
                  { "convolutions, full steps", false, CUDA_DOUBLE_NO_CUDNN } };
    (void)unused;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const recipe *r = recipe_of(cases[c].work);
        cuda_double_unloads();
        const int64_t before = cuda_double_taken();
        int64_t taken = 0, parts = 0;
        const keel_callback sees = { KEEL_CALLBACK, .context = &taken,
                                     .on_train_batch_end = see_memory };
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                           .callbacks = KEEL_CALLBACKS(&sees) };
        keel_model *m = model_of(r);
        keel_dataset *d = rows_of(r);
        keel_history h;
        keel_device *gpu;
        keel_strategy *s;
        keel_plan p;
        cuda_double_without(cases[c].without);
        must(keel_cuda.open(&gpu, 0));
        must(keel_strategy_create_devices(&s, &gpu, 1));
        must(keel_plan_make(&p, m, s, ROWS, r->batch_size, KEEL_KEEP, NULL));
        assert_int_equal(part_of(&p, "cuBLASLt"), CUDA_DOUBLE_CUBLASLT);
        assert_int_equal(part_of(&p, "cuDNN"), cases[c].convolves ? CUDA_DOUBLE_CUDNN : 0);
        assert_int_equal(part_of(&p, "loaded kernels"), cases[c].convolves ? CUDA_DOUBLE_CODE : 0);
        assert_int_equal(part_of(&p, "the context"), CUDA_DOUBLE_CONTEXT);
        for (int i = 0; i < p.n_part; i++)
            if (!strstr(p.part[i].what, "the context")) parts += p.part[i].bytes;
        assert_int_equal(parts, p.device_bytes[0]);
        must(keel_fit(m, s, d, &options, &h));
        taken -= before;
        if (llabs(taken - p.device_bytes[0]) > p.device_bytes[0] / 50)
            fail_msg("%s: %lld bytes are planned, CUDA shows %lld", r->name,
                     (long long)p.device_bytes[0], (long long)taken);
        assert_int_equal(h.device_memory, p.device_bytes[0]);
        keel_history_free(&h);
        const int64_t needs = p.device_bytes[0];
        gpu->memory = needs - 1; /* libraries count, too */
        assert_int_equal(keel_fit(m, s, d, &options, &h), KEEL_ENOMEM);
        assert_non_null(strstr(keel_error(), "for the library of products (cuBLASLt)"));
        keel_history_free(&h);
        keel_plan_free(&p);
        keel_strategy_destroy(s);
        gpu->type->close(gpu);
        cuda_double_without(0);
        cuda_double_unloads();
        keel_dataset_destroy(d);
        keel_model_destroy(m);
        const char *fault = emu_report();
        if (fault) fail_msg("%s: %s", r->name, fault);
        emu_release_all();
        assert_int_equal(cuda_double_taken(), before);
    }
}

/* ---- a GPU that hangs ------------------------------------------------------------------------ */

static keel_status hang_after(void *context, const keel_moment *now)
{
    int64_t *left = context;
    (void)now;
    if (--*left == 0) cuda_runtime_hangs(true);
    return KEEL_OK;
}

/* What `steps` steps leave; afterwards the GPU hangs, or the fit ends. */
static outcome after(const recipe *r, int64_t steps, bool hangs)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    keel_device *gpu;
    keel_strategy *s;
    keel_callback ends = end_after(&steps);
    if (hangs) ends.on_train_batch_end = hang_after;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                       .callbacks = KEEL_CALLBACKS(&ends) };
    must(keel_cuda.open(&gpu, 0));
    keel_device_type type = *gpu->type;
    type.move = NULL; /* the host moves, so it has the last step */
    gpu->type = &type;
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

/* ---- calls that fail ------------------------------------------------------------------------- */

static void use_all(keel_device *d, void *host, keel_status *ended)
{
    const keel_device_type *t = d->type;
    void *at = NULL, *graph = NULL;
    *ended = t->allocate(d, 64, "numbers", &at);
    if (*ended < 0) return;
    t->copy_in(d, KEEL_COPY_IN_STREAM, at, host, 64);
    t->record(d, KEEL_COPY_IN_STREAM, 0);
    t->wait(d, KEEL_COMPUTE_STREAM, 0);
    t->clear(d, at, 32);
    *ended = keel_device_finish(d);
    if (*ended >= 0) *ended = t->capture_begin(d);
    if (*ended >= 0) {
        t->clear(d, at, 32);
        *ended = t->capture_end(d, &graph);
    }
    if (*ended >= 0) {
        t->replay(d, graph);
        t->copy_out(d, KEEL_COPY_OUT_STREAM, host, at, 64);
        *ended = keel_device_finish(d);
        t->forget(d, graph);
    }
    t->look(d);
    t->release(d, at);
}

static void what_fails_before_a_graph_is_begun_is_not_forgotten(void **unused)
{
    float two[16] = { 2 };
    keel_device *gpu;
    void *at;
    (void)unused;
    must(keel_cuda.open(&gpu, 0));
    must(gpu->type->allocate(gpu, 64, "numbers", &at));
    cuda_runtime_fail_at(2, false); /* behind the choice of the GPU */
    gpu->type->copy_in(gpu, KEEL_COPY_IN_STREAM, at, two, 64);
    for (int k = 0; k < 2; k++) {
        const keel_status s = k ? keel_device_finish(gpu) : gpu->type->capture_begin(gpu);
        assert_int_equal(s, KEEL_EDEVICE);
        assert_non_null(strstr(keel_error(), "while a copy to it"));
    }
    must(keel_device_finish(gpu));
    gpu->type->release(gpu, at);
    gpu->type->close(gpu);
    cuda_runtime_fail_at(0, false);
    assert_null(emu_report());
    emu_release_all();
    assert_int_equal(cuda_runtime_live(), 0);
}

/* A launch tells of any error that CUDA still keeps: so none may be left. */
static void no_call_that_failed_is_told_of_a_later_launch(void **unused)
{
    int failed = 0;
    bool reached = true;
    (void)unused;
    for (int64_t k = 1; reached; k++) {
        float two[16] = { 2 };
        keel_device *gpu;
        keel_status s;
        void *at;
        const int64_t before = cuda_runtime_calls();
        cuda_runtime_fail_at(k, false);
        s = keel_cuda.open(&gpu, 0);
        if (s >= 0)
            use_all(gpu, two, &s);
        else
            must(keel_cuda.open(&gpu, 0));
        reached = cuda_runtime_calls() - before >= k;
        if (!reached) cuda_runtime_fail_at(0, false);
        failed += s < 0;
        must(gpu->type->allocate(gpu, 8, "numbers", &at));
        gpu->type->add(gpu, KEEL_FLOAT32, at, at, 2);
        must(keel_device_finish(gpu));
        gpu->type->release(gpu, at);
        gpu->type->close(gpu);
        const char *fault = emu_report();
        if (fault) fail_msg("call %d (%s): %s", (int)k, cuda_runtime_failed(), fault);
        cuda_runtime_fail_at(0, false);
        emu_release_all();
        assert_int_equal(cuda_runtime_live(), 0);
    }
    assert_true(failed > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_calls_are_found_and_no_others),
        cmocka_unit_test(graphs_change_no_bit),
        cmocka_unit_test(what_cannot_be_captured_runs_call_by_call),
        cmocka_unit_test(graphs_that_find_no_memory_cost_time_and_no_fit),
        cmocka_unit_test(the_plan_has_what_libraries_take_and_cuda_shows_no_more),
        cmocka_unit_test(what_fails_before_a_graph_is_begun_is_not_forgotten),
        cmocka_unit_test(no_call_that_failed_is_told_of_a_later_launch),
        cmocka_unit_test(a_gpu_that_hangs_ends_the_fit_with_the_last_step),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
