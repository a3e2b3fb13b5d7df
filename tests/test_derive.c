/* Gradients as ops (ops/derive.h): on each op's own cases they are what central differences of the
 * op give. The gradients of these gradients are in test_loops.c, against Keras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "graph/derive.h"
#include "graph/program.h"
#include "graph_add.h"
#include "must.h"
#include "ops/cases.h"

enum { ROWS = 2, IN_MAX = 4, WEIGHTS_MAX = 7 };

typedef struct bench {
    keel_lanes lanes;
    keel_team *team;
    keel_store *store;
    keel_program *program;
    int n_in, n_grad; /* outputs are y, then the gradients */
    keel_spec in[IN_MAX];
    double *x[IN_MAX];
} bench;

/* Shapes separated by bars: "4,5,3|3". */
static int read_shapes(const char *text, keel_spec *out)
{
    int n = 0;
    for (; text && *text; n++) {
        out[n] = (keel_spec){ .dtype = KEEL_FLOAT64 };
        while (*text && *text != '|') {
            out[n].shape.dim[out[n].shape.rank++] = strtoll(text, (char **)&text, 10);
            if (*text == ',') text++;
        }
        if (*text == '|') text++;
    }
    return n;
}

/* Positive for roots and logarithms. */
static bool has_negative(const keel_op *op)
{
    return op != &keel_op_sqrt && op != &keel_op_rsqrt && op != &keel_op_log &&
           op != &keel_op_log1p;
}

/* Away from 0, where some ops have a kink or a pole; numbers near each other differ, since a
 * pooling or a maximum has a kink where they are equal. */
static double value_at(const keel_op *op, int64_t i)
{
    const double x = 0.25 + (double)(i * 37 % 101) / 64;
    return i % 2 && has_negative(op) ? -x : x;
}

static double weight_at(const keel_op *op, int64_t i)
{
    const double w = (double)(i % 31 - 15) / 16;
    return op == &keel_op_batch_norm ? 0.25 + fabs(w) : w; /* a variance is not negative */
}

/* These draw in training only. */
static bool is_by_chance(const keel_op *op)
{
    return op == &keel_op_dropout || op == &keel_op_noise;
}

static void create(bench *b, const keel_op *op, const keel_case *c)
{
    keel_graph *g;
    keel_value in[IN_MAX], out[1 + IN_MAX];
    keel_weight_info info[WEIGHTS_MAX] = { { 0 } };
    keel_spec weight[WEIGHTS_MAX];
    _Alignas(16) char args[4096] = { 0 };
    *b = (bench){ 0 };
    if (op->args_for_case) op->args_for_case(args, c->args ? c->args : "");
    b->n_in = read_shapes(c->in, b->in);
    const int n_weight = read_shapes(c->weights, weight);
    must(keel_lanes_parse(&b->lanes, "cpu:0"));
    must(keel_team_create(&b->team, b->lanes.core, b->lanes.n_worker));
    for (int w = 0; w < n_weight; w++)
        info[w] = (keel_weight_info){ .name = "w", .spec = weight[w] };
    must(keel_store_create(&b->store, KEEL_FLOAT64, info, n_weight, NULL, 0));
    for (int w = 0; w < n_weight; w++)
        for (int64_t i = 0; i < b->store->weight[w].count; i++)
            ((double *)keel_store_data(b->store, w))[i] = weight_at(op, i * 29 + w);
    must(keel_graph_create(&g, KEEL_FLOAT64, is_by_chance(op)));
    g->stream = 3;
    for (int k = 0; k < b->n_in; k++) {
        const int64_t n = ROWS * keel_row_count(&b->in[k]);
        must(keel_graph_input(g, &b->in[k], &in[k]));
        assert_non_null(b->x[k] = calloc((size_t)n, sizeof(double)));
        for (int64_t i = 0; i < n; i++) b->x[k][i] = value_at(op, i + 53 * k);
    }
    must(graph_add(g, op, args, in, b->n_in, (keel_variable[]){ 0, 1, 2, 3, 4, 5, 6 }, weight,
                   n_weight, &out[0]));
    must(graph_add(g, &keel_op_square, NULL, &out[0], 1, NULL, NULL, 0, &out[0]));
    g->stream = 5; /* of a later layer, which has other draws */
    g->training = false;
    for (int k = 0; k < b->n_in; k++) {
        const keel_status s = keel_graph_derive(g, out[0], in[k], &out[1 + k]);
        if (s == KEEL_EUNSUP) break; /* a case that it refuses */
        must(s);
        b->n_grad++;
    }
    must(keel_program_create(&b->program, g, out, 1 + b->n_grad, b->store, &b->lanes,
                             &(keel_program_options){ .real = KEEL_FLOAT64, .max_rows = ROWS }));
}

static void destroy(bench *b)
{
    keel_program_destroy(b->program);
    keel_team_destroy(b->team);
    keel_store_destroy(b->store);
    for (int k = 0; k < b->n_in; k++) free(b->x[k]);
}

static const keel_bound *bound;

static void work(void *context, int worker)
{
    bench *b = context;
    keel_program_run(b->program, bound, b->team, worker);
}

/* Runs it; the sum of y. */
static double run(bench *b)
{
    double sum = 0;
    must(keel_program_bind(b->program, ROWS, &bound));
    for (int k = 0; k < b->n_in; k++) b->program->input[k] = b->x[k];
    keel_team_run(b->team, work, b);
    const double *y = keel_program_output(b->program, 0, &bound->piece[0]);
    const int64_t n =
        ROWS * keel_row_count(keel_graph_spec(b->program->graph, b->program->output[0]));
    for (int64_t i = 0; i < n; i++) sum += y[i];
    return sum;
}

/* Checks the gradient of input k at some of its numbers. */
static void check(bench *b, const keel_op *op, const keel_case *c, int k)
{
    const double step = 1e-5;
    const int64_t n = ROWS * keel_row_count(&b->in[k]);
    for (int64_t i = 0; i<n; i += n> 40 ? n / 20 : 1) {
        const double x = b->x[k][i];
        run(b);
        const double *grad = keel_program_output(b->program, 1 + k, &bound->piece[0]);
        const double got = grad[i];
        b->x[k][i] = x + step;
        const double above = run(b);
        b->x[k][i] = x - step;
        const double want = (above - run(b)) / (2 * step);
        b->x[k][i] = x;
        if (!(fabs(got - want) < 1e-6 * (1 + fabs(want))))
            fail_msg("%s, %s %s, input %d, %d: %g instead of %g", op->name, c->in,
                     c->args ? c->args : "", k, (int)i, got, want);
    }
}

static void gradients_made_of_ops_are_those_of_central_differences(void **unused)
{
    (void)unused;
    int ops = 0;
    for (int o = 0; keel_ops[o]; o++) {
        const keel_op *op = keel_ops[o];
        int checked = 0;
        if (!op->derive) continue;
        for (const keel_case *c = op->cases; c->in; c++) {
            bench b;
            create(&b, op, c);
            for (int k = 0; k < b.n_grad; k++, checked++) check(&b, op, c, k);
            destroy(&b);
        }
        if (!checked) fail_msg("%s: no case", op->name);
        ops++;
    }
    assert_true(ops >= 60);
}

static void what_cannot_be_differentiated_twice_is_named(void **unused)
{
    (void)unused;
    static const struct {
        const keel_op *op;
        const char *in, *weights, *args, *why;
    } bad[] = {
        { &keel_op_erfinv, "4", NULL, "", "erfinv" },
        { &keel_op_max_unpool2d, "4,4,1|2,2,1", NULL, "", "max_unpool2d" },
        { &keel_op_power, "4|4", NULL, "", "power: only its gradient with a number" },
        { &keel_op_upsample, "4", NULL, "axis 0 between", "upsample: the gradient of an interp" },
        { &keel_op_batch_norm, "4", "4|4|4|4", "", "batch_norm: its gradient cannot be diff" },
        { &keel_op_conv3d, "3,3,3,2", "1,1,1,1,2", "groups 2 no_bias", "conv3d: its gradient" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_graph *g;
        keel_spec in[IN_MAX], weight[WEIGHTS_MAX];
        keel_value v[IN_MAX], alone, y, out;
        _Alignas(16) char args[4096] = { 0 };
        const int n_in = read_shapes(bad[i].in, in), n_weight = read_shapes(bad[i].weights, weight);
        if (bad[i].op->args_for_case) bad[i].op->args_for_case(args, bad[i].args);
        must(keel_graph_create(&g, KEEL_FLOAT64, true));
        for (int k = 0; k < n_in; k++) must(keel_graph_input(g, &in[k], &v[k]));
        must(keel_graph_input(g, &in[0], &alone));
        g->layer = "mine";
        must(graph_add(g, bad[i].op, args, v, n_in, (keel_variable[]){ 0, 1, 2, 3 }, weight,
                       n_weight, &y));
        assert_int_equal(keel_graph_derive(g, y, v[n_in - 1], &out), KEEL_EUNSUP);
        assert_non_null(strstr(keel_error(), "'mine'"));
        if (!strstr(keel_error(), bad[i].why)) fail_msg("%s: %s", bad[i].why, keel_error());
        assert_int_equal(keel_graph_derive(g, y, alone, &out), KEEL_EARG);
        keel_graph_destroy(g);
    }
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    (void)unused;
    const int64_t live = keel_memory_live();
    for (int64_t at = 0;; at++) {
        keel_graph *g;
        keel_value x, y, out;
        const keel_spec row = { KEEL_FLOAT64, { 1, { 4 } } };
        must(keel_graph_create(&g, KEEL_FLOAT64, true));
        must(keel_graph_input(g, &row, &x));
        must(graph_add(g, &keel_op_tanh, NULL, &x, 1, NULL, NULL, 0, &y));
        must(graph_add(g, &keel_op_square, NULL, &y, 1, NULL, NULL, 0, &y));
        keel_memory_fail_at(at);
        const keel_status s = keel_graph_derive(g, y, x, &out);
        keel_memory_fail_at(-1);
        keel_graph_destroy(g);
        assert_int_equal(keel_memory_live(), live);
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_true(at < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_made_of_ops_are_those_of_central_differences),
        cmocka_unit_test(what_cannot_be_differentiated_twice_is_named),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
