/* The real cuBLASLt takes every description of a product, and the real cuDNN accepts the graph of
 * every pass of every convolution of the tests, in float32, bfloat16 and float16, added or
 * not: shapes, layouts, windows. This needs no GPU, only the library; where it is missing the test
 * says so. */
#include "kernel_bench.h"
#include "ops/args.h"
#include "cudnn/graphs.h"

/* Our own kernels: of groups, which have no plan, and of few channels. */
static bool is_ours(const bench *b, const keel_prepare *p)
{
    const keel_node *n = p->node;
    return !p->plan || (b->both && p->pass != KEEL_BACKWARD && !strcmp(n->op->name, "conv2d") &&
                        n->in[0].shape.dim[2] <= 4);
}

static int ask(const keel_kernel *k, const keel_case *c, int64_t rows, bool narrow, bool adds)
{
    bench b;
    char refused[400];
    int asked = 0;
    if (bench_open(&b, k->op, c, true, rows, narrow) < 0) fail_msg("%s", keel_error());
    for (int pass = 0; pass <= KEEL_WEIGHTS; pass++) {
        keel_prepare p = { .node = narrow ? &b.narrow : &b.wide,
                           .pass = (keel_pass)pass,
                           .rows = rows,
                           .in_adds = adds,
                           .weight_adds = adds };
        const keel_status s = k->prepare(&p);
        const int accepted = cudnn_graphs_accepted(refused);
        if (s == KEEL_OK && !accepted && is_ours(&b, &p)) {
            k->release(p.plan);
            continue;
        }
        if (narrow && pass == KEEL_WEIGHTS && !strcmp(k->op->name, "conv3d") && c->args &&
            strstr(c->args, "groups") && s == KEEL_EUNSUP && !accepted)
            continue; /* it would be wrong: see _conv.cu */
        if (accepted < 1 || *refused || s != KEEL_EUNSUP)
            fail_msg("%s in %s weights %s args %s, pass %d, %lld rows: %s", k->op->name, c->in,
                     c->weights, c->args ? c->args : "-", pass, (long long)rows,
                     *refused ? refused
                     : s < 0  ? keel_error()
                              : "no graph");
        asked++;
    }
    bench_close(&b);
    return asked;
}

static int ask_all(const keel_kernel *k, const keel_case *c)
{
    int asked = 0;
    for (int type = 0; type < BENCH_TYPES; type++) {
        const bool narrow = bench_choose(type);
        for (int adds = 0; adds < 2; adds++) asked += ask(k, c, narrow ? 8 : 1, narrow, adds);
    }
    return asked;
}

static void every_graph_is_accepted(void **state)
{
    (void)state;
    const char *why = cudnn_graphs_open();
    if (why) {
        print_message("cuDNN is not on this machine: %s\n", why);
        skip();
    }
    const int64_t live = keel_memory_live();
    int asked = 0;
    for (int i = 0; cudnn_graph_kernels[i]; i++) {
        const keel_kernel *k = cudnn_graph_kernels[i];
        for (const keel_case *c = k->op->cases; c->in; c++) asked += ask_all(k, c);
        for (int e = 0; e < KERNEL_CASES; e++)
            if (strcmp(kernel_cases[e].op, k->op->name) == 0)
                asked += ask_all(k, &kernel_cases[e].c);
    }
    print_message("%d graphs\n", asked);
    assert_int_equal(keel_memory_live(), live);
}

static int describe(const keel_kernel *k, const keel_case *c, bool narrow, keel_float32 float32)
{
    bench b;
    int described = 0;
    if (bench_open(&b, k->op, c, true, 3, narrow) < 0) fail_msg("%s", keel_error());
    for (int pass = 0; pass <= KEEL_WEIGHTS; pass++) {
        keel_prepare p = { .node = narrow ? &b.narrow : &b.wide,
                           .pass = (keel_pass)pass,
                           .rows = 3,
                           .float32 = float32 };
        if (!k->run[pass]) continue;
        const keel_status s = k->prepare(&p);
        if (cublaslt_asked() < 1 || s != KEEL_EUNSUP)
            fail_msg("%s in %s, pass %d: %s", k->op->name, c->in, pass, keel_error());
        described++;
    }
    bench_close(&b);
    return described;
}

/* cuBLASLt takes every attribute of a product, up to the question for an algorithm. */
static void every_product_can_be_described(void **state)
{
    (void)state;
    int described = 0;
    const char *why = cublaslt_open();
    if (why) {
        print_message("cuBLASLt is not on this machine: %s\n", why);
        skip();
    }
    for (int i = 0; cublaslt_kernels[i]; i++)
        for (const keel_case *c = cublaslt_kernels[i]->op->cases; c->in; c++)
            for (int type = 0; type < BENCH_TYPES; type++) {
                const bool narrow = bench_choose(type);
                for (int fast = 0; fast < 2; fast++)
                    described += describe(cublaslt_kernels[i], c, narrow,
                                          fast ? KEEL_FLOAT32_FAST : KEEL_FLOAT32_EXACT);
            }
    print_message("%d products\n", described);
}

/* So that what is accepted means something. */
static void a_wrong_window_is_refused(void **state)
{
    const keel_kernel *k = cudnn_graph_kernels[0];
    char refused[400];
    bench b;
    (void)state;
    if (cudnn_graphs_open()) skip();
    if (bench_open(&b, k->op, &k->op->cases[0], true, 2, false) < 0) fail_msg("%s", keel_error());
    keel_conv2d_args wrong = *(const keel_conv2d_args *)b.wide.args;
    wrong.pad[0]++;
    b.wide.args = &wrong;
    keel_prepare p = { .node = &b.wide, .pass = KEEL_FORWARD, .rows = 2 };
    assert_int_equal(k->prepare(&p), KEEL_EDEVICE);
    assert_int_equal(cudnn_graphs_accepted(refused), 0);
    assert_true(*refused);
    assert_non_null(strstr(keel_error(), "cuDNN: "));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_product_can_be_described),
                                        cmocka_unit_test(every_graph_is_accepted),
                                        cmocka_unit_test(a_wrong_window_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
