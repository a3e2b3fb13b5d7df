/* The graph room by itself: schedules, memory plans, and programs whose gradients do not depend on
 * how many lanes run them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "graph/memory_plan.h"
#include "graph/program.h"
#include "graph_add.h"
#include "must.h"
#include "ops/all.h"
#include "ops/args.h"

static void live_buffers_never_overlap(void **unused)
{
    (void)unused;
    enum { N = 60 };
    keel_buffer b[N];
    uint32_t r = 1;
    for (int round = 0; round < 200; round++) {
        int64_t total, bound, sum = 0;
        for (int i = 0; i < N; i++) {
            r = r * 1664525u + 1013904223u;
            const int first = (int)(r >> 8) % 40, length = (int)(r >> 20) % 12;
            b[i] = (keel_buffer){ .bytes = 1 + (r >> 10) % 5000,
                                  .first = first,
                                  .last = first + length };
            sum += b[i].bytes;
        }
        must(keel_memory_plan(b, N, &total, &bound));
        assert_true(bound <= total);
        assert_true(total <= sum + 64 * N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(b[i].offset % 64, 0);
            assert_true(b[i].offset + b[i].bytes <= total);
            for (int j = 0; j < i; j++) {
                const bool together = b[i].first <= b[j].last && b[j].first <= b[i].last;
                const bool apart = b[i].offset + b[i].bytes <= b[j].offset ||
                                   b[j].offset + b[j].bytes <= b[i].offset;
                assert_true(!together || apart);
            }
        }
    }
}

/* ---- rows of a block --------------------------------------------------------------------------
 */

enum { STEPS = 10 };

static keel_status same_infer(keel_node *n)
{
    return keel_node_add_out(n, &n->in[0]);
}

static int64_t at_each_step(const keel_node *n, int weight)
{
    (void)n;
    return weight == 0 ? STEPS : 1;
}

static int64_t beyond_all_bounds(const keel_node *n, int weight)
{
    (void)n;
    (void)weight;
    return INT64_MAX;
}

/* Of a graph of that op alone, with two weights, on rows of 1000 float32. */
static int64_t block_of(const keel_op *op, int64_t first_weight)
{
    keel_graph *g;
    keel_schedule s;
    keel_value x, y;
    const bool gather = op == &keel_op_gather;
    const keel_spec row = { KEEL_FLOAT32, KEEL_SHAPE(1000) },
                    id = { KEEL_INT32, KEEL_SHAPE(10) }; /* 10 ids of 100 numbers */
    const keel_spec weight[2] = { { KEEL_FLOAT32, KEEL_SHAPE(first_weight, 100) },
                                  { KEEL_FLOAT32, KEEL_SHAPE(1, 100) } };
    must(keel_graph_create(&g, KEEL_FLOAT32, false));
    must(keel_graph_input(g, gather ? &id : &row, &x));
    const keel_node_parts parts = { .op = op,
                                    .n_in = 1,
                                    .in = &x,
                                    .n_weight = gather ? 1 : 2,
                                    .weight = (const keel_variable[]){ 0, 1 },
                                    .weight_spec = weight };
    must(keel_graph_add(g, &parts, &y, 1));
    must(keel_schedule_make(&s, g, (const bool[]){ false, false }, 2, false, -1));
    assert_int_equal(s.n_segment, 1);
    const int64_t block = s.segment[0].block;
    keel_schedule_free(&s, g);
    keel_graph_destroy(g);
    return block;
}

static void a_block_has_more_rows_where_weights_are_read_more_often(void **unused)
{
    (void)unused;
    const keel_op once = { .name = "once", .infer = same_infer };
    const keel_op often = { .name = "often", .infer = same_infer, .weight_reads = at_each_step };
    const keel_op never_ends = { .name = "never ends",
                                 .infer = same_infer,
                                 .weight_reads = beyond_all_bounds };
    const int64_t cache = 2 << 20, values = 8000, mega = 10000; /* rows of a weight of 4 MB */
    assert_int_equal(block_of(&once, 1), cache / values);
    assert_int_equal(block_of(&once, mega), (400 * mega + 400) / values);
    assert_int_equal(block_of(&often, mega), (STEPS * 400 * mega + 400) / values);
    assert_int_equal(block_of(&often, 1), cache / values); /* all of it fits into the cache */
    assert_int_equal(block_of(&never_ends, 1), INT64_MAX / values);
    assert_int_equal(block_of(&keel_op_gather, mega), cache / 4040); /* however large the table */
    assert_int_equal(block_of(&keel_op_gather, 1), cache / 4040);
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- a program on L lanes -----------------------------------------------------------------------
 */

/* Half the squared distance to the targets, summed: a loss without divisors. */
static keel_status square_infer(keel_node *n)
{
    n->sums = 1;
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

static void square(const keel_call *c)
{
    const double *p = c->in[0], *y = c->in[1];
    double *g = c->in_grad[0];
    const int64_t n = keel_row_count(&c->node->in[0]);
    for (int64_t i = 0; i < c->rows; i++) c->partial[i] = 0;
    for (int64_t i = 0; i < c->rows * n; i++) {
        c->partial[i / n] += 0.5 * (p[i] - y[i]) * (p[i] - y[i]);
        if (g) g[i] = p[i] - y[i];
    }
}

static const keel_op square_op = { .name = "square",
                                   .infer = square_infer,
                                   .forward = { square, square },
                                   .backward = { square, square },
                                   .backward_reads = KEEL_READS_IN,
                                   .loss = true };

enum { IN = 5, HIDDEN = 6, OUT = 3, MOST = 13 };

typedef struct run {
    keel_lanes lanes;
    keel_team *team;
    keel_store *store;
    keel_program *program;
    const keel_bound *bound;
    int loss;
} run;

static void work(void *context, int worker)
{
    run *r = context;
    keel_program_run(r->program, r->bound, r->team, worker);
}

/* x -> dense -> batch norm -> relu (twice, added) -> dense -> loss */
static void build(run *r, const char *devices)
{
    static const keel_shape shapes[] = { { 2, { IN, HIDDEN } }, { 1, { HIDDEN } },
                                         { 1, { HIDDEN } },     { 1, { HIDDEN } },
                                         { 1, { HIDDEN } },     { 2, { HIDDEN, OUT } },
                                         { 1, { OUT } } };
    keel_weight_info info[7];
    keel_spec spec[7];
    bool trainable[7];
    for (int i = 0; i < 7; i++) {
        spec[i] = (keel_spec){ KEEL_FLOAT64, shapes[i] };
        trainable[i] = i != 3 && i != 4;
        info[i] = (keel_weight_info){ .name = "w", .spec = spec[i] };
    }
    keel_graph *g;
    keel_value x, y, h, n, a, b, s, p, ignored;
    must(keel_graph_create(&g, KEEL_FLOAT64, true));
    must(keel_graph_input(g, &(keel_spec){ KEEL_FLOAT64, { 1, { IN } } }, &x));
    must(keel_graph_input(g, &(keel_spec){ KEEL_FLOAT64, { 1, { OUT } } }, &y));
    const keel_batch_norm_args bn = {
        .epsilon = 1e-3, .momentum = 0.9, .center = true, .scale = true
    };
    const keel_relu_args leaky = { .negative_slope = 0.1 };
    must(graph_add(g, &keel_op_dense, NULL, &x, 1, (keel_variable[]){ 0 }, &spec[0], 1, &h));
    must(graph_add(g, &keel_op_batch_norm, &bn, &h, 1, (keel_variable[]){ 1, 2, 3, 4 }, &spec[1], 4,
                   &n));
    must(graph_add(g, &keel_op_relu, &leaky, &n, 1, NULL, NULL, 0, &a));
    must(graph_add(g, &keel_op_tanh, NULL, &h, 1, NULL, NULL, 0, &b));
    must(graph_add(g, &keel_op_add, NULL, (keel_value[]){ a, b }, 2, NULL, NULL, 0, &s));
    must(graph_add(g, &keel_op_dense, NULL, &s, 1, (keel_variable[]){ 5, 6 }, &spec[5], 2, &p));
    must(graph_add(g, &square_op, NULL, (keel_value[]){ p, y }, 2, NULL, NULL, 0, &ignored));
    r->loss = g->n_node - 1;
    keel_schedule order;
    must(keel_schedule_make(&order, g, trainable, 7, false, -1));
    must(keel_store_create(&r->store, KEEL_FLOAT64, info, 7, order.order, order.n_order));
    keel_schedule_free(&order, g);
    for (int v = 0; v < 7; v++)
        for (int64_t i = 0; i < r->store->weight[v].count; i++)
            ((double *)keel_store_data(r->store, v))[i] = v == 1   ? 1
                                                          : v == 4 ? 1
                                                          : v == 3
                                                              ? 0
                                                              : sin((double)(1 + v * 37 + i * 11));
    must(keel_lanes_parse(&r->lanes, devices));
    must(keel_team_create(&r->team, r->lanes.core, r->lanes.n_worker));
    const keel_program_options options = { .real = KEEL_FLOAT64,
                                           .max_rows = MOST,
                                           .trains = trainable };
    must(keel_program_create(&r->program, g, &p, 1, r->store, &r->lanes, &options));
}

static void destroy(run *r)
{
    keel_team_destroy(r->team);
    keel_program_destroy(r->program);
    keel_store_destroy(r->store);
}

/* Loss, outputs and gradients of a step of `rows`; returns how many numbers. */
static int step(run *r, int64_t rows, double *out)
{
    double x[MOST * IN], y[MOST * OUT];
    int n = 0;
    for (int i = 0; i < MOST * IN; i++) x[i] = cos(i * 1.7);
    for (int i = 0; i < MOST * OUT; i++) y[i] = sin(i * 0.3);
    must(keel_program_bind(r->program, rows, &r->bound));
    r->program->input[0] = x;
    r->program->input[1] = y;
    keel_team_run(r->team, work, r);
    keel_program_sums(r->program, r->bound, r->loss, &out[n++]);
    for (int i = 0; i < r->bound->n_busy; i++) {
        const keel_piece *p = &r->bound->piece[i];
        const double *o = keel_program_output(r->program, 0, p);
        for (int64_t k = 0; k < p->rows * OUT; k++) out[n + p->row * OUT + k] = o[k];
    }
    n += (int)rows * OUT;
    for (int v = 0; v < 7; v++) {
        const keel_store_weight *w = &r->store->weight[v];
        if (!r->program->trains[v]) continue;
        if (r->program->tiled[v].node >= 0) { /* in two tiles, to see that they meet */
            const int64_t last = w->info.spec.shape.dim[w->info.spec.shape.rank - 1];
            const int64_t cut =
                w->info.spec.shape.rank > 1 ? w->count / last / 2 * last : w->count / 2;
            const keel_tile_request request[2] = {
                { .variable = v, .count = cut, .grad = out + n },
                { .variable = v, .first = cut, .count = w->count - cut, .grad = out + n + cut },
            };
            for (int k = 0; k < 2; k++) keel_program_tile(r->program, r->bound, 0, &request[k]);
            n += (int)w->count;
            continue;
        }
        for (int64_t i = 0; i < w->count; i++) {
            out[n] = 0;
            for (int k = 0; k < r->lanes.n_worker; k++)
                if (r->bound->workspace[k].rows > 0)
                    out[n] += ((double *)r->program->workspace[k].grad)[w->offset + i];
            n++;
        }
    }
    return n;
}

static void gradients_do_not_depend_on_the_number_of_lanes(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0",   "cpu:0-1",       "cpu:0-2",    "cpu:0-7",
                                           "cpu:0+1", "cpu:0+1,cpu:0", "cpu:1,cpu:0" };
    run one = { 0 };
    build(&one, "cpu:0");
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        run many = { 0 };
        build(&many, devices[d]);
        for (int64_t rows = MOST; rows >= 1; rows--) {
            double a[512], b[512];
            const int n = step(&one, rows, a), m = step(&many, rows, b);
            assert_int_equal(n, m);
            for (int i = 0; i < n; i++)
                if (!(fabs(a[i] - b[i]) <= 1e-9 * (1 + fabs(a[i]))))
                    fail_msg("%s, %d rows: number %d is %.12g, on one lane %.12g", devices[d],
                             (int)rows, i, b[i], a[i]);
        }
        destroy(&many);
    }
    destroy(&one);
}

/* Central differences through the whole program: segments, merges, adds and joins included. */
static void gradients_are_those_of_the_loss(void **unused)
{
    (void)unused;
    run r = { 0 };
    double a[512], up[512], down[512];
    const int64_t rows = 7;
    build(&r, "cpu:0-2");
    step(&r, rows, a);
    int at = 1 + (int)rows * OUT;
    for (int v = 0; v < 7; v++) {
        double *w = keel_store_data(r.store, v);
        if (!r.program->trains[v]) continue;
        for (int64_t i = 0; i < r.store->weight[v].count; i++, at++) {
            const double keep = w[i], e = 1e-5;
            w[i] = keep + e;
            step(&r, rows, up);
            w[i] = keep - e;
            step(&r, rows, down);
            w[i] = keep;
            const double slope = (up[0] - down[0]) / (2 * e);
            if (!(fabs(slope - a[at]) <= 1e-6 * (1 + fabs(slope))))
                fail_msg("weight %d[%d]: %.9g, by differences %.9g", v, (int)i, a[at], slope);
        }
    }
    destroy(&r);
}

/* Adds its inputs, one pass over the output for each. */
static keel_status passes_infer(keel_node *n)
{
    return keel_node_add_out(n, &n->in[0]);
}

static void passes(const keel_call *c)
{
    double *y = c->out[0];
    for (int k = 0; k < c->node->n_in; k++)
        for (int64_t i = 0; i < c->rows * keel_row_count(&c->node->out[0]); i++)
            y[i] = (k ? y[i] : 0) + ((const double *)c->in[k])[i];
}

static const keel_op passes_op = {
    .name = "passes", .infer = passes_infer, .forward = { passes, passes }, .inplace = true
};

static void nothing_is_written_over_what_the_call_reads_as_another_input(void **unused)
{
    (void)unused;
    const keel_spec spec = { KEEL_FLOAT64, { 1, { IN } } };
    const keel_weight_info info = { .name = "w", .spec = spec };
    const keel_reshape_args same = { .shape = spec.shape };
    const keel_program_options options = { .real = KEEL_FLOAT64, .max_rows = MOST };
    double x[MOST * IN];
    for (int i = 0; i < MOST * IN; i++) x[i] = cos(i * 1.7);
    for (int views = 0; views < 2; views++) {
        run r = { 0 };
        keel_graph *g;
        keel_value v, in[3], out;
        must(keel_graph_create(&g, KEEL_FLOAT64, false));
        must(keel_graph_input(g, &spec, &v));
        must(graph_add(g, &keel_op_tanh, NULL, &v, 1, NULL, NULL, 0, &v));
        for (int k = 0; k < 3; k++) {
            in[k] = v;
            if (views && k)
                must(graph_add(g, &keel_op_reshape, &same, &v, 1, NULL, NULL, 0, &in[k]));
        }
        must(graph_add(g, &passes_op, NULL, in, 3, NULL, NULL, 0, &out));
        must(keel_lanes_parse(&r.lanes, "cpu:0"));
        must(keel_team_create(&r.team, r.lanes.core, r.lanes.n_worker));
        must(keel_store_create(&r.store, KEEL_FLOAT64, &info, 1, NULL, 0));
        must(keel_program_create(&r.program, g, &out, 1, r.store, &r.lanes, &options));
        must(keel_program_bind(r.program, MOST, &r.bound));
        r.program->input[0] = x;
        keel_team_run(r.team, work, &r);
        const double *y = keel_program_output(r.program, 0, &r.bound->piece[0]);
        for (int i = 0; i < MOST * IN; i++) assert_true(fabs(y[i] - 3 * tanh(x[i])) < 1e-14);
        destroy(&r);
    }
}

static keel_status fixed_infer(keel_node *n)
{
    return keel_node_add_out(n, &n->in[0]);
}

static void fixed(const keel_call *c)
{
    const double *x = c->in[0], *w = c->weight[0];
    double *y = c->out[0];
    for (int64_t i = 0; i < c->rows * IN; i++) y[i] = x[i] * w[i % IN];
}

/* It would never move, and nobody would know. */
static void a_weight_of_an_op_without_a_gradient_is_refused_by_name(void **unused)
{
    (void)unused;
    static const keel_op op = { .name = "fixed",
                                .infer = fixed_infer,
                                .forward = { fixed, fixed } };
    for (int k = 0; k < 2; k++) {
        const bool trainable = k;
        const keel_spec row = { KEEL_FLOAT64, { 1, { IN } } };
        const keel_weight_info info = { .name = "w", .spec = row };
        const keel_program_options o = { .real = KEEL_FLOAT64,
                                         .max_rows = 4,
                                         .trains = &trainable };
        keel_lanes lanes;
        keel_graph *g;
        keel_store *store;
        keel_program *p = NULL;
        keel_value x, y, h, ignored;
        must(keel_lanes_parse(&lanes, "cpu:0"));
        must(keel_graph_create(&g, KEEL_FLOAT64, true));
        must(keel_graph_input(g, &row, &x));
        must(keel_graph_input(g, &row, &y));
        g->layer = "a layer";
        must(graph_add(g, &op, NULL, &x, 1, (keel_variable[]){ 0 }, &row, 1, &h));
        must(graph_add(g, &square_op, NULL, (keel_value[]){ h, y }, 2, NULL, NULL, 0, &ignored));
        must(keel_store_create(&store, KEEL_FLOAT64, &info, 1, NULL, 0));
        const keel_status s = keel_program_create(&p, g, NULL, 0, store, &lanes, &o);
        assert_int_equal(s, trainable ? KEEL_EUNSUP : KEEL_OK);
        if (trainable) assert_non_null(strstr(keel_error(), "'a layer'"));
        keel_program_destroy(p);
        keel_store_destroy(store);
    }
}

static void a_run_allocates_nothing(void **unused)
{
    (void)unused;
    run r = { 0 };
    double a[512];
    build(&r, "cpu:0-2");
    step(&r, 9, a);
    const int64_t before = keel_memory_calls();
    for (int i = 0; i < 10; i++) step(&r, 9, a);
    assert_int_equal(keel_memory_calls() - before, 0);
    destroy(&r);
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    (void)unused;
    const int64_t before = keel_memory_live();
    for (int64_t at = 0;; at++) {
        keel_lanes lanes;
        keel_graph *g = NULL;
        keel_store *store = NULL;
        keel_program *p = NULL;
        const keel_bound *bound;
        const keel_spec spec = { KEEL_FLOAT64, { 1, { IN } } };
        const keel_spec ws = { KEEL_FLOAT64, { 2, { IN, OUT } } };
        const keel_weight_info info = { .name = "w", .spec = ws };
        keel_value x, y;
        must(keel_lanes_parse(&lanes, "cpu:0-1"));
        keel_memory_fail_at(at);
        keel_status s = keel_graph_create(&g, KEEL_FLOAT64, false);
        if (s >= 0) s = keel_graph_input(g, &spec, &x);
        if (s >= 0)
            s = graph_add(g, &keel_op_dense, NULL, &x, 1, (keel_variable[]){ 0 }, &ws, 1, &y);
        if (s >= 0) s = keel_store_create(&store, KEEL_FLOAT64, &info, 1, NULL, 0);
        if (s >= 0) {
            const keel_program_options o = { .real = KEEL_FLOAT64, .max_rows = 4 };
            s = keel_program_create(&p, g, &y, 1, store, &lanes, &o);
            g = NULL;
        }
        if (s >= 0) s = keel_program_bind(p, 3, &bound);
        keel_memory_fail_at(-1);
        keel_program_destroy(p);
        keel_store_destroy(store);
        if (g) keel_graph_destroy(g);
        assert_int_equal(keel_memory_live(), before);
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_true(at < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_has_more_rows_where_weights_are_read_more_often),
        cmocka_unit_test(live_buffers_never_overlap),
        cmocka_unit_test(gradients_do_not_depend_on_the_number_of_lanes),
        cmocka_unit_test(gradients_are_those_of_the_loss),
        cmocka_unit_test(nothing_is_written_over_what_the_call_reads_as_another_input),
        cmocka_unit_test(a_weight_of_an_op_without_a_gradient_is_refused_by_name),
        cmocka_unit_test(a_run_allocates_nothing),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
