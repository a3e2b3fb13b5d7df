/* A training loop of one's own on GPUs by the plug-in's own source, on the emulator and doubles of
 * CUDA's runtime and libraries: after any call of them has failed, the step has changed nothing,
 * and works when it is made again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "cuda_double.h"
#include "device/cuda_plugin.h"
#include "emulator.h"
#include "loops.h"
#include "sweep.h"
#include "train/strategy.h"

extern const keel_cuda_plugin keel_cuda;

enum { MOST = 2, RUNS = 3, NUMBERS = 512 };

typedef struct trail {
    int n;
    float number[NUMBERS];    /* losses, and the weights at the end */
    int64_t calls[RUNS + 1];  /* of CUDA's runtime, before each run */
    int64_t others[RUNS + 1]; /* of a library */
} trail;

static int weights_of(const keel_model *m, float *out)
{
    int n = 0;
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        const int64_t count = keel_shape_count(&t.shape);
        assert_true(n + count <= NUMBERS - RUNS);
        for (int64_t k = 0; k < count; k++) out[n++] = (float)loop_number(&t, k);
        keel_tensor_free(&t);
    }
    return n;
}

/* In one run a call fails, counted from its begin: of CUDA, or of a library. */
static void run_loop(int gpus, int breaks, int64_t call, int64_t of_library, trail *o)
{
    loop l = { .dtype = KEEL_FLOAT32, .step = { loop_compare } };
    keel_device *gpu[MOST];
    keel_strategy *s;
    *o = (trail){ 0 };
    loop_create_siamese(&l);
    for (int i = 0; i < gpus; i++) must(keel_cuda.open(&gpu[i], i));
    must(keel_strategy_create_devices(&s, gpu, gpus));
    must(keel_strategy_reproducible(s, 16));
    keel_function *f = loop_function(&l, 0);
    for (int k = 0; k < RUNS; k++) {
        keel_tensor in[INPUTS];
        float before[NUMBERS], after[NUMBERS];
        double loss = 0;
        o->calls[k] = cuda_runtime_calls();
        o->others[k] = cuda_double_calls();
        for (int i = 0; i < l.n_input; i++) in[i] = loop_part(&l.rows[i], k * BATCH, BATCH);
        const int n = weights_of(l.model[0], before);
        if (k == breaks) cuda_runtime_fail_at(call, false);
        if (k == breaks) cuda_double_fail_at(of_library);
        keel_status ran = keel_strategy_run(s, f, in, l.n_input);
        cuda_runtime_fail_at(0, false);
        cuda_double_fail_at(0);
        if (ran < 0 && k == breaks) {
            assert_true(strstr(keel_error(), "cuda:") || strstr(keel_error(), "layer '"));
            weights_of(l.model[0], after);
            assert_memory_equal(before, after, (size_t)n * sizeof *before);
            ran = keel_strategy_run(s, f, in, l.n_input);
        }
        must(ran);
        must(keel_function_scalar(f, "loss", &loss));
        o->number[o->n++] = (float)loss;
    }
    o->calls[RUNS] = cuda_runtime_calls();
    o->others[RUNS] = cuda_double_calls();
    o->n += weights_of(l.model[0], o->number + o->n);
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    for (int i = 0; i < gpus; i++) gpu[i]->type->close(gpu[i]);
    loop_free(&l);
    cuda_double_unloads();
    const char *fault = emu_report();
    if (fault) fail_msg("%s", fault);
    emu_release_all();
    if (cuda_double_live() || cuda_runtime_live()) fail_msg("something stays");
}

/* To rounding: what a library could not prepare runs elsewhere. */
static void compare(const trail *a, const trail *b, const char *what, int64_t call, int run)
{
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++)
        if (!(fabsf(a->number[i] - b->number[i]) <= 1e-5F * fmaxf(1, fabsf(a->number[i]))))
            fail_msg("%s %d of run %d fails: number %d is %.9g, and %.9g", what, (int)call, run, i,
                     (double)a->number[i], (double)b->number[i]);
}

static void a_step_works_after_any_call_has_failed(void **unused)
{
    static trail whole, broken;
    int n = 0;
    (void)unused;
    cuda_double_counts("cublasLt");
    for (int gpus = 1; gpus <= MOST; gpus++) {
        run_loop(gpus, -1, 0, 0, &whole);
        for (int k = 0; k < RUNS; k++) {
            const int64_t calls = whole.calls[k + 1] - whole.calls[k];
            const int64_t others = whole.others[k + 1] - whole.others[k];
            for (int64_t call = 1; call <= calls; call += thin(1, 11, 29), n++) {
                run_loop(gpus, k, call, 0, &broken);
                compare(&whole, &broken, "call", call, k);
            }
            for (int64_t call = 1; call <= others; call += thin(1, 37, 97), n++) {
                run_loop(gpus, k, 0, call, &broken);
                compare(&whole, &broken, "call of a library", call, k);
            }
        }
    }
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_step_works_after_any_call_has_failed),
    };
    return cmocka_run_group_tests(test, NULL, NULL);
}
