/* Every fast kernel computes what its op's reference computes: over the cases of the op and some
 * larger ones, odd numbers of rows, results that overwrite and results that are added, training and
 * not. For passes on bfloat16 see test_ops_narrow.c. */
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "kernel_bench.h"
#include "ops/args.h"
#include "sweep.h"
#include <dirent.h>

/* Long sums, over channels and, of 16 rows, places; in float32 only: the reference takes its time.
 */
static const kernel_case long_sums[] = {
    { "conv2d", { "5,9,900", "1,1,900,300|300", NULL } },
    { "conv2d", { "5,5,290", "1,1,290,1010", NULL } },
    { "conv2d", { "13,9,70", "1,1,70,181|181", NULL } },
    { "dense", { "7,100", "100,330|330", NULL } },
    { "dense", { "5,800", "800,830|830", NULL } },
    { "dense", { "5,830", "830,800|800", NULL } },
    { "dense", { "150,390", "390,370|370", NULL } },
};

/* The reference's forward, which all passes are compared with or read: run once for all of them,
 * since it takes most of the time. */
static void copy_forward(const bench *b, const results *from, results *to)
{
    const keel_node *n = &b->wide;
    memcpy(to->out, from->out, (size_t)(b->rows * keel_row_count(&n->out[0])) * sizeof(float));
    for (int i = 1; i < n->n_out; i++)
        memcpy(to->more_out[i], from->more_out[i],
               (size_t)(b->rows * keel_row_count(&n->out[i])) * sizeof(float));
    for (int i = 0; i < n->n_saved; i++)
        memcpy(to->saved[i], from->saved[i],
               (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                   keel_dtype_size(n->saved[i].dtype));
}

static int compare_pass(bench *b, const keel_kernel *k, const char *name, keel_pass pass, bool adds,
                        results *forward)
{
    results want, got;
    if (!has_pass(b, pass) || !pass_takes(b, k, pass, adds)) return 0;
    if (!forward->out) {
        results_open(forward, b, false);
        pass_run(b, NULL, KEEL_FORWARD, false, 1, forward);
    }
    results_open(&want, b, false);
    results_open(&got, b, false);
    copy_forward(b, forward, &want);
    if (pass != KEEL_FORWARD) copy_forward(b, forward, &got); /* backward may read it */
    const bool ran = pass_run(b, k, pass, adds, 1, &got);
    if (ran) {
        if (pass != KEEL_FORWARD) pass_run(b, NULL, pass, adds, 1, &want);
        compare(b, pass, name, &want, &got);
    }
    results_free(&want);
    results_free(&got);
    return ran;
}

static int compare_case(const keel_kernel *k, const keel_op *op, const keel_case *c)
{
#ifdef __SANITIZE_ADDRESS__ /* the plain build compares the numbers of all */
    static const int64_t rows[] = { 1, 3, 7 };
#else
    static const int64_t rows[] = { 1, 2, 3, 7, 16 };
#endif
    char name[160];
    int ran = 0;
    snprintf(name, sizeof name, "%s_%s in %s weights %s args %s", op->name, k->name, c->in,
             c->weights ? c->weights : "-", c->args ? c->args : "-");
    for (int training = 0; training < 2; training++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bench b;
            results forward = { 0 };
            if (bench_open(&b, op, c, training, rows[i], false) < 0)
                fail_msg("%s: %s", name, keel_error());
            merge(&b);
            ran += compare_pass(&b, k, name, KEEL_FORWARD, false, &forward);
            for (int adds = 0; training && adds < 2; adds++) {
                ran += compare_pass(&b, k, name, KEEL_BACKWARD, adds, &forward);
                ran += compare_pass(&b, k, name, KEEL_WEIGHTS, adds, &forward);
            }
            if (training) {
                ran += compare_pass(&b, k, name, KEEL_PARTIAL, false, &forward);
                ran += compare_pass(&b, k, name, KEEL_PARTIAL_BACKWARD, false, &forward);
            }
            results_free(&forward);
            bench_close(&b);
        }
    return ran;
}

static void every_kernel_equals_its_reference(void **state)
{
    (void)state;
    keel_cpu_single_thread();
    const int64_t live = keel_memory_live();
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        const keel_op *op = k->op;
        int ran = 0;
        same_unbounded = strcmp(op->name, "divide") == 0;
        for (const keel_case *c = op->cases; c && c->in; c++) ran += compare_case(k, op, c);
        const int every = thin(1, 2, 7);
        for (int e = i % every; e < KERNEL_CASES; e += every)
            if (strcmp(kernel_cases[e].op, op->name) == 0)
                ran += compare_case(k, op, &kernel_cases[e].c);
        for (size_t e = 0; e < sizeof long_sums / sizeof *long_sums; e++)
            if (strcmp(long_sums[e].op, op->name) == 0) ran += compare_case(k, op, &long_sums[e].c);
        print_message("%s_%s: %d passes compared\n", op->name, k->name, ran);
        assert_int_equal(keel_memory_live(), live);
    }
    same_unbounded = false;
}

static void no_kernel_starts_a_thread(void **state)
{
    (void)state;
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    if (!tasks) skip();
#ifdef __SANITIZE_THREAD__
    n--; /* its own */
#endif
    for (struct dirent *d; (d = readdir(tasks));) n += d->d_name[0] != '.';
    closedir(tasks);
    assert_int_equal(n, 1);
}

static void odd_numbers_come_out_as_the_references(void **state)
{
    static const float odd[] = {
        NAN, 100, -100, 1e-8f, -1e-8f, 88, -88, 0, 0.62f, 0.63f, 3, -0.5f
    };
    static const keel_op *const ops[] = { &keel_op_relu,      &keel_op_relu6, &keel_op_leaky_relu,
                                          &keel_op_sigmoid,   &keel_op_tanh,  &keel_op_silu,
                                          &keel_op_max_pool2d };
    static const keel_case flat = { "12", NULL, NULL }, image = { "2,3,2", NULL, "strides 1,1" };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++)
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            const keel_kernel *k = keel_kernels[i];
            bench b;
            results want, got;
            if (k->op != ops[o]) continue;
            const bool pool = k->op == &keel_op_max_pool2d;
            assert_int_equal(bench_open(&b, k->op, pool ? &image : &flat, true, 1, false), KEEL_OK);
            memcpy(b.in[0], odd, sizeof odd);
            results_open(&want, &b, false);
            results_open(&got, &b, false);
            pass_run(&b, NULL, KEEL_FORWARD, false, 1, &want);
            if (pass_run(&b, k, KEEL_FORWARD, false, 1, &got))
                for (int64_t e = 0; e < keel_row_count(&b.wide.out[0]); e++) {
                    const float x = ((float *)want.out)[e], y = ((float *)got.out)[e];
                    if (isnan(x) ? !isnan(y) : !(fabsf(x - y) <= 2e-6f * fabsf(x) + 1e-30f))
                        fail_msg("%s_%s: element %lld is %.9g, the reference has %.9g", k->op->name,
                                 k->name, (long long)e, y, x);
                }
            results_free(&want);
            results_free(&got);
            bench_close(&b);
        }
}

static void kernels_decline_on_a_lesser_processor(void **state)
{
    (void)state;
    const keel_op *op = keel_op_find("relu");
    keel_cpu_limit(KEEL_CPU_BASE);
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        bench b;
        if (k->op != &keel_op_relu || strcmp(k->name, "dnnl") == 0) continue;
        assert_int_equal(bench_open(&b, op, &op->cases[0], true, 2, false), KEEL_OK);
        keel_prepare p = { .node = &b.wide, .pass = KEEL_FORWARD, .rows = 2 };
        assert_int_equal(keel_kernel_prepare(k, &p), KEEL_EUNSUP);
        bench_close(&b);
    }
    keel_cpu_limit(KEEL_CPU_AMX);
}

/* A window's largest is what is no number, the last of those, whatever is beside it. */
static void pooling_lets_what_is_no_number_win(void **state)
{
    enum { IN = 7 * 7 * 19, OUT = 3 * 3 * 19 };
    static const float odd[] = { NAN, INFINITY, -INFINITY, NAN, 0, -0.0f };
    static float x[IN], want[OUT], got[OUT];
    static uint8_t want_taps[OUT], got_taps[OUT];
    const keel_op *op = keel_op_find("max_pool2d");
    const void *in = x;
    (void)state;
    for (int i = 0; i < IN; i++)
        x[i] = i * 37 % 11 < 2 ? odd[i * 13 % 6] : (float)(i * 29 % 17) - 8;
    for (int i = 0; keel_kernels[i]; i++)
        for (int relu = 0; relu < 2; relu++) {
            const keel_kernel *k = keel_kernels[i];
            const keel_pool2d_args a = { .pool = { 3, 3 }, .strides = { 2, 2 }, .relu = relu };
            keel_spec spec = { KEEL_FLOAT32, KEEL_SHAPE(7, 7, 19) };
            keel_node n = { .op = op,
                            .args = &a,
                            .training = true,
                            .backward = true,
                            .real = KEEL_FLOAT32,
                            .held = KEEL_FLOAT32,
                            .n_in = 1,
                            .in = &spec };
            void *out = want, *saved = want_taps;
            keel_call c = { .node = &n, .rows = 1, .in = &in, .out = &out, .saved = &saved };
            keel_prepare p = { .node = &n, .rows = 1 };
            if (k->op != &keel_op_max_pool2d || strstr(k->name, "dnnl")) continue;
            assert_int_equal(keel_node_infer(&n), KEEL_OK);
            if (keel_kernel_prepare(k, &p) < 0) {
                keel_node_clear(&n);
                continue;
            }
            op->forward[0](&c);
            out = got;
            saved = got_taps;
            k->run[KEEL_FORWARD](&c);
            for (int e = 0; e < OUT; e++)
                assert_true(isnan(want[e]) ? isnan(got[e]) : want[e] == got[e]);
            assert_memory_equal(want_taps, got_taps, sizeof want_taps);
            keel_node_clear(&n);
        }
}

/* What shares of the peak are worked out from. */
static void products_are_counted_as_they_are_made(void **state)
{
    static const struct {
        const char *what, *op;
        keel_case c;
        double forward, backward;
    } t[] = {
        { "attention: two products, backward five",
          "dot_product_attention",
          { "10,2,4|10,2,4|10,2,6", NULL, NULL },
          2 * 200 * (4 + 6),
          2 * 200 * (3 * 4 + 2 * 6) },
        { "causal attention: of half of the scores",
          "dot_product_attention",
          { "10,2,4|10,2,4|10,2,6", NULL, "causal" },
          2 * 110 * (4 + 6),
          2 * 110 * (3 * 4 + 2 * 6) },
        { "a product of two values has two gradients",
          "matmul",
          { "3,4|4,5", NULL, NULL },
          2 * 3 * 4 * 5,
          4 * 3 * 4 * 5 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const keel_op *op = keel_op_find(t[i].op);
        bench b;
        assert_int_equal(bench_open(&b, op, &t[i].c, true, 1, false), KEEL_OK);
        if (op->flops(&b.wide) != t[i].forward || op->backward_flops(&b.wide) != t[i].backward)
            fail_msg("%s: forward %g, backward %g", t[i].what, op->flops(&b.wide),
                     op->backward_flops(&b.wide));
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_lets_what_is_no_number_win),
        cmocka_unit_test(every_kernel_equals_its_reference),
        cmocka_unit_test(products_are_counted_as_they_are_made),
        cmocka_unit_test(no_kernel_starts_a_thread),
        cmocka_unit_test(odd_numbers_come_out_as_the_references),
        cmocka_unit_test(kernels_decline_on_a_lesser_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
