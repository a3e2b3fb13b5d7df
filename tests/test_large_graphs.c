/* Graphs of very many nodes are compiled and bound in a time that grows with their number, not with
 * its square; so a file with 90,000 calls of one layer costs what its size lets expect. Times are
 * bounded generously: what is quadratic takes minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>
#include "base/memory.h"
#include "graph/memory_plan.h"
#include "graph/program.h"
#include "graph_add.h"
#include "keel/keel.h"
#include "must.h"
#include "ops/args.h"

enum { CALLS = 90000, SECONDS = 20 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void within(double begin, const char *what)
{
    const double seconds = now() - begin;
    printf("%s: %.2f s\n", what, seconds);
    if (seconds > SECONDS) fail_msg("%s takes %.1f s", what, seconds);
}

static keel_status mean_infer(keel_node *n)
{
    n->sums = 1;
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

static void mean(const keel_call *c)
{
    const float *p = c->in[0];
    float *g = c->in_grad[0];
    const int64_t n = keel_row_count(&c->node->in[0]);
    for (int64_t i = 0; i < c->rows; i++) c->partial[i] = 0;
    for (int64_t i = 0; i < c->rows * n; i++) {
        c->partial[i / n] += p[i];
        if (g) g[i] = 1;
    }
}

static const keel_op mean_op = { .name = "mean",
                                 .infer = mean_infer,
                                 .forward = { mean, mean },
                                 .backward = { mean, mean },
                                 .backward_reads = KEEL_READS_IN,
                                 .loss = true };

/* A chain of 90,000 calls, each on what the one before it gave, all with one weight where the op
 * has one; then a loss. */
static void compile(const keel_op *op, const char *what)
{
    static const keel_shape shape = { 2, { 2, 2 } };
    const keel_spec kernel = { KEEL_FLOAT32, shape };
    const keel_reshape_args reshape = { .shape = shape };
    const keel_weight_info info = { .name = "w", .spec = kernel };
    const bool dense = op == &keel_op_dense, view = op == &keel_op_reshape;
    const bool trainable = true;
    const keel_program_options options = { .real = KEEL_FLOAT32,
                                           .max_rows = 4,
                                           .trains = &trainable };
    const int64_t live = keel_memory_live();
    keel_graph *g;
    keel_store *store;
    keel_lanes lanes;
    keel_program *p;
    keel_schedule order;
    const keel_bound *bound;
    keel_value v, out;
    must(keel_lanes_parse(&lanes, "cpu:0"));
    const double begin = now();
    must(keel_graph_create(&g, KEEL_FLOAT32, true));
    must(keel_graph_input(g, &(keel_spec){ KEEL_FLOAT32, shape }, &v));
    must(graph_add(g, &keel_op_dense, NULL, &v, 1, (keel_variable[]){ 0 }, &kernel, 1, &v));
    for (int i = 1; i < CALLS; i++)
        must(graph_add(g, op, view ? &reshape : NULL, &v, 1, (keel_variable[]){ 0 }, &kernel, dense,
                       &v));
    must(graph_add(g, &mean_op, NULL, &v, 1, NULL, NULL, 0, &out));
    must(keel_schedule_make(&order, g, &trainable, 1, false, 0));
    must(keel_store_create(&store, KEEL_FLOAT32, &info, 1, order.order, order.n_order));
    keel_schedule_free(&order, g);
    must(keel_program_create(&p, g, &v, 1, store, &lanes, &options));
    must(keel_program_bind(p, 4, &bound));
    must(keel_program_bind(p, 3, &bound));
    within(begin, what);
    keel_program_destroy(p);
    keel_store_destroy(store);
    assert_int_equal(keel_memory_live(), live);
}

static void ninety_thousand_calls_of_a_layer_are_compiled_at_once(void **unused)
{
    (void)unused;
    compile(&keel_op_dense, "dense");
    compile(&keel_op_tanh, "tanh");
    compile(&keel_op_rescaling, "rescaling");
    compile(&keel_op_reshape, "reshape");
    compile(&keel_op_softmax, "softmax");
}

static void call(keel_model *m, const char *name, keel_symbol *x)
{
    must(keel_model_call(m, "ReLU", name ? KEEL_ARGS(KEEL_ARG_STR("name", name)) : NULL, x, 1, x));
}

static void eight_thousand_layers_without_a_name_are_called_at_once(void **unused)
{
    (void)unused;
    keel_model *m;
    keel_symbol x;
    const double begin = now();
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(3), NULL, &x));
    call(m, "re_lu_4", &x);
    call(m, "re_lu_two", &x);
    call(m, "re_lu_07", &x);
    for (int i = 0; i < 8000; i++) call(m, NULL, &x);
    must(keel_model_outputs(m, &x, 1));
    within(begin, "layers");
    assert_string_equal(keel_model_layer_name(m, 4), "re_lu");
    assert_string_equal(keel_model_layer_name(m, 7), "re_lu_3");
    assert_string_equal(keel_model_layer_name(m, 8), "re_lu_5");
    assert_string_equal(keel_model_layer_name(m, 8003), "re_lu_8000");
    keel_model_destroy(m);
}

/* Buffers of all sizes that end in an order of their own leave as many gaps as can be. */
static void a_plan_of_many_buffers_holds_and_is_soon_made(void **unused)
{
    (void)unused;
    enum { N = 200000 };
    keel_buffer *b = keel_calloc(N, sizeof *b);
    int64_t total, bound, sum = 0;
    uint32_t r = 1;
    assert_non_null(b);
    for (int way = 0; way < 3; way++) {
        for (int i = 0; i < N; i++) {
            r = r * 1664525u + 1013904223u;
            const int length = way == 0   ? (int)(r >> 8) % 12
                               : way == 1 ? (int)(r >> 8) % N
                               : i % 2    ? N
                                          : i / 2 % 5000;
            b[i] = (keel_buffer){ .bytes = 1 + (r >> 10) % 5000 + (way == 2) * (int64_t)i,
                                  .first = i,
                                  .last = i + length };
            sum += b[i].bytes + 64;
        }
        const double begin = now();
        must(keel_memory_plan(b, N, &total, &bound));
        within(begin, "a plan");
        assert_true(bound <= total && total <= sum);
        if (way == 0) assert_true(total < 3 * bound);
        for (int i = 0; i < N; i++)
            for (int j = i > 12 ? i - 12 : 0; j < i; j++)
                if (b[i].first <= b[j].last)
                    assert_true(b[i].offset + b[i].bytes <= b[j].offset ||
                                b[j].offset + b[j].bytes <= b[i].offset);
    }
    keel_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ninety_thousand_calls_of_a_layer_are_compiled_at_once),
        cmocka_unit_test(eight_thousand_layers_without_a_name_are_called_at_once),
        cmocka_unit_test(a_plan_of_many_buffers_holds_and_is_soon_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
