/* The doubles of cuBLASLt and cuDNN find every wrong call of a table and say nothing of right ones;
 * kernels by these libraries leave nothing behind where any call of a library or any allocation
 * fails; without a library, or where it has no way, they leave the pass to others. */
#include "cuda_calls.h"
#include "device/cpu/cpu.h"
#include "misuses_said.h"

extern const keel_kernel *const keel_cuda_kernels[];

static void wrong_calls_are_found_and_no_others(void **state)
{
    (void)state;
    check_misuses(cublaslt_misuses);
    check_misuses(cudnn_misuses);
    assert_int_equal(cuda_double_live(), 0);
}

/* The op's first case, or one that is large enough for the library, and for Winograd's tiles. */
static const keel_case *case_of(const keel_kernel *k)
{
    static const struct {
        const char *op;
        keel_case c;
    } large[] = { { "conv2d", { "4,4,64", "3,3,64,64|64", "pad 1,1,1,1" } },
                  { "lstm", { "2,304", "76,304", NULL } },
                  { "gru", { "2,231", "77,231|2,231", "reset_after" } },
                  { "simple_rnn", { "2,76", "76,76", NULL } } };
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        if (!strcmp(large[i].op, k->op->name)) return &large[i].c;
    return &k->op->cases[0];
}

/* One pass of the op's case at two rows, by the library: the status of what failed first, its
 * prepare or its run. */
static keel_status attempt_with(const keel_kernel *k, keel_pass pass, bool narrow,
                                keel_float32 float32)
{
    bench b;
    results r;
    if (bench_open(&b, k->op, case_of(k), true, 2, narrow) < 0) fail_msg("%s", keel_error());
    results_open(&r, &b, narrow);
    keel_prepare p = {
        .node = narrow ? &b.narrow : &b.wide, .pass = pass, .rows = 2, .float32 = float32
    };
    cuda_kernel = k;
    cuda_pass = pass;
    cuda_name = k->op->name;
    cuda_error[0] = 0;
    keel_status s = cuda_staged_prepare(&p);
    if (s == KEEL_OK) {
        cuda_may_fail = true;
        call_some(&b, cuda_staged_run, narrow, pass, &p, &r, 0, 2);
        cuda_may_fail = false;
        k->release(p.plan);
        if (cuda_error[0]) s = KEEL_EDEVICE;
    }
    results_free(&r);
    bench_close(&b);
    return s;
}

static keel_status attempt(const keel_kernel *k, keel_pass pass, bool narrow)
{
    return attempt_with(k, pass, narrow, KEEL_FLOAT32_EXACT);
}

/* The largest distance of forward's output from the reference's, of what is close to 1. */
static double distance(const keel_kernel *k, keel_float32 float32)
{
    bench b;
    results want, got;
    double most = 0, size = 0;
    if (bench_open(&b, k->op, &k->op->cases[0], true, 2, false) < 0) fail_msg("%s", keel_error());
    for (int64_t i = 0; i < 2 * keel_row_count(&b.wide.in[0]); i++)
        b.in[0][i] = 1 + (float)(i % 7) / 16384; /* 15 bits */
    results_open(&want, &b, false);
    results_open(&got, &b, false);
    pass_run(&b, NULL, KEEL_FORWARD, false, 1, &want);
    keel_prepare p = { .node = &b.wide, .pass = KEEL_FORWARD, .rows = 2, .float32 = float32 };
    cuda_kernel = k;
    cuda_pass = KEEL_FORWARD;
    assert_int_equal(cuda_staged_prepare(&p), KEEL_OK);
    call_some(&b, cuda_staged_run, false, KEEL_FORWARD, &p, &got, 0, 2);
    k->release(p.plan);
    for (int64_t i = 0; i < 2 * keel_row_count(&b.wide.out[0]); i++) {
        const double x = ((const float *)want.out)[i], y = ((const float *)got.out)[i];
        most = fmax(most, fabs(x - y));
        size = fmax(size, fabs(x));
    }
    results_free(&want);
    results_free(&got);
    bench_close(&b);
    return most / size;
}

/* Doubles round as tensor cores do where they are allowed to. */
static void float32_is_exact_unless_it_shall_be_fast(void **state)
{
    int checked = 0;
    (void)state;
    for (int i = 0; keel_cuda_kernels[i]; i++) {
        const keel_kernel *k = keel_cuda_kernels[i];
        if (!k->vendor) continue;
        const int64_t calls = cuda_double_calls();
        /* a recurrent layer's gates have the functions of the device */
        assert_true(distance(k, KEEL_FLOAT32_EXACT) < 5e-7);
        assert_true(distance(k, KEEL_FLOAT32_FMA) < 5e-7);
        if (cuda_double_calls() == calls) continue; /* its first case needs no library */
        const double fast = distance(k, KEEL_FLOAT32_FAST);
        if (!(fast > 2e-6 && fast < 1e-2)) fail_msg("%s: %g", k->op->name, fast);
        checked++;
    }
    assert_true(checked > 0);
}

/* Factors that are rounded are those of windows: transformed ones would lose more. */
static void tiles_are_for_exact_float32_only(void **state)
{
    int checked = 0;
    (void)state;
    for (int i = 0; keel_cuda_kernels[i]; i++)
        for (int pass = 0; pass <= KEEL_WEIGHTS; pass++) {
            if (strcmp(keel_cuda_kernels[i]->op->name, "conv2d")) continue;
            const int64_t before = cuda_double_products();
            assert_int_equal(
                attempt_with(keel_cuda_kernels[i], (keel_pass)pass, false, KEEL_FLOAT32_FAST),
                KEEL_OK);
            assert_int_equal(cuda_double_products(), before);
            assert_int_equal(attempt(keel_cuda_kernels[i], (keel_pass)pass, false), KEEL_OK);
            assert_true(cuda_double_products() > before);
            checked++;
        }
    assert_int_equal(checked, 3);
}

static bool has(const keel_kernel *k, keel_pass pass, bool narrow)
{
    return k->vendor && (narrow ? narrow_pass(k, pass) : k->run[pass]);
}

/* Of each pass of each kernel by a library, in each type. */
static void each_pass(void (*check)(const keel_kernel *k, keel_pass pass, bool narrow))
{
    keel_cpu_single_thread();
    int checked = 0;
    for (int i = 0; keel_cuda_kernels[i]; i++)
        for (int pass = 0; pass < KEEL_PASS_COUNT; pass++)
            for (int type = 0; type < BENCH_TYPES; type++) {
                const bool narrow = bench_choose(type);
                if (!has(keel_cuda_kernels[i], (keel_pass)pass, narrow)) continue;
                check(keel_cuda_kernels[i], (keel_pass)pass, narrow);
                checked++;
            }
    bench_choose(0);
    assert_true(checked > 0);
    assert_int_equal(cuda_double_live(), 0);
}

static void fails_at_each_call(const keel_kernel *k, keel_pass pass, bool narrow)
{
    const int64_t live = keel_memory_live();
    bool reached = true;
    int n = 1;
    for (; reached; n++) {
        const int64_t before = cuda_double_calls();
        cuda_double_fail_at(n);
        const keel_status s = attempt(k, pass, narrow);
        reached = cuda_double_calls() >= before + n;
        cuda_double_fail_at(0);
        if (strstr(cuda_report, "after one that failed"))
            fail_msg("%s, pass %d, call %d: %s", k->op->name, (int)pass, n, cuda_report);
        if (emu_report()) fail_msg("%s, pass %d: a fault in prepare", k->op->name, (int)pass);
        /* a plan that fails is followed by the next engine's */
        if (s != KEEL_EDEVICE && s != KEEL_OK && s != KEEL_EUNSUP)
            fail_msg("%s, pass %d, call %d: status %d", k->op->name, (int)pass, n, (int)s);
        if (cuda_double_live())
            fail_msg("%s, pass %d, call %d: %d things were not destroyed", k->op->name, (int)pass,
                     n, (int)cuda_double_live());
        assert_int_equal(keel_memory_live(), live);
        if (!reached) assert_int_equal(s, KEEL_OK);
    }
    assert_true(n > 4);
}

static void any_call_of_a_library_may_fail(void **state)
{
    (void)state;
    each_pass(fails_at_each_call);
}

static void no_library(const keel_kernel *k, keel_pass pass, bool narrow)
{
    static const int lacks[] = { CUDA_DOUBLE_NO_CUBLASLT | CUDA_DOUBLE_NO_CUDNN,
                                 CUDA_DOUBLE_NO_ALGORITHM };
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        cuda_double_without(lacks[i]);
        assert_int_equal(attempt(k, pass, narrow), KEEL_EUNSUP);
        cuda_double_without(0);
    }
}

static void what_a_library_cannot_do_is_left_to_others(void **state)
{
    (void)state;
    each_pass(no_library);
}

static void without_memory(const keel_kernel *k, keel_pass pass, bool narrow)
{
    bench b;
    keel_status s = KEEL_ENOMEM;
    if (bench_open(&b, k->op, case_of(k), true, 2, narrow) < 0) fail_msg("%s", keel_error());
    const int64_t live = keel_memory_live();
    for (int call = 0; s != KEEL_OK; call++) {
        keel_prepare p = { .node = narrow ? &b.narrow : &b.wide, .pass = pass, .rows = 2 };
        keel_memory_fail_at(call);
        s = k->prepare(&p);
        keel_memory_fail_at(-1);
        if (s == KEEL_OK)
            k->release(p.plan);
        else
            assert_int_equal(s, KEEL_ENOMEM);
        assert_int_equal(cuda_double_live(), 0);
        assert_int_equal(keel_memory_live(), live);
    }
    bench_close(&b);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    each_pass(without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_calls_are_found_and_no_others),
        cmocka_unit_test(any_call_of_a_library_may_fail),
        cmocka_unit_test(what_a_library_cannot_do_is_left_to_others),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(float32_is_exact_unless_it_shall_be_fast),
        cmocka_unit_test(tiles_are_for_exact_float32_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
