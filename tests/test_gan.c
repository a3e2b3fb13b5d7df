/* Two programs over one store, each training weights of its own by an optimizer of its own: a
 * generator and a discriminator against a loop of Keras, on any number of devices. The numbers are
 * golden/gan.json, made by golden/make_gan.py, whose arithmetic is repeated here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "graph_add.h"
#include "must.h"
#include "ops/all.h"
#include "train/reduce.h"
#include "train/update.h"

enum { NOISE = 3, HIDDEN = 8, SIZE = 5, ROWS = 6, ROUNDS = 12, MOST = 2 * ROWS, WEIGHTS = 8 };

/* The cross-entropy of logits, as the sum over rows. */
static keel_status entropy_infer(keel_node *n)
{
    n->sums = 1;
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

static void entropy(const keel_call *c)
{
    const double *z = c->in[0], *t = c->in[1];
    double *g = c->in_grad[0];
    for (int64_t i = 0; i < c->rows; i++) {
        c->partial[i] = fmax(z[i], 0) - z[i] * t[i] + log1p(exp(-fabs(z[i])));
        if (g) g[i] = 1 / (1 + exp(-z[i])) - t[i];
    }
}

static const keel_op entropy_op = { .name = "entropy",
                                    .infer = entropy_infer,
                                    .forward = { entropy, entropy },
                                    .backward = { entropy, entropy },
                                    .backward_reads = KEEL_READS_IN,
                                    .loss = true };

static const keel_spec specs[WEIGHTS] = {
    { KEEL_FLOAT64, { 2, { NOISE, HIDDEN } } }, { KEEL_FLOAT64, { 1, { HIDDEN } } },
    { KEEL_FLOAT64, { 2, { HIDDEN, SIZE } } },  { KEEL_FLOAT64, { 1, { SIZE } } },
    { KEEL_FLOAT64, { 2, { SIZE, HIDDEN } } },  { KEEL_FLOAT64, { 1, { HIDDEN } } },
    { KEEL_FLOAT64, { 2, { HIDDEN, 1 } } },     { KEEL_FLOAT64, { 1, { 1 } } },
};

typedef struct part { /* a program of the loop, and what moves its weights */
    keel_program *program;
    keel_updater update;
    keel_object optimizer;
    const keel_bound *bound;
    int loss;
} part;

typedef struct gan {
    keel_lanes lanes;
    keel_team *team;
    keel_store *store;
    part generator, discriminator, samples;
    part *running;
} gan;

static keel_value net(keel_graph *g, keel_value x, keel_variable first)
{
    must(graph_add(g, &keel_op_dense, NULL, &x, 1, (keel_variable[]){ first, first + 1 },
                   &specs[first], 2, &x));
    must(graph_add(g, &keel_op_tanh, NULL, &x, 1, NULL, NULL, 0, &x));
    must(graph_add(g, &keel_op_dense, NULL, &x, 1, (keel_variable[]){ first + 2, first + 3 },
                   &specs[first + 2], 2, &x));
    return x;
}

/* generates: from noise, else from rows; judges: through the discriminator to a loss. */
static void compile(gan *a, part *p, bool generates, bool judges, const bool *trains)
{
    const keel_program_options options = { .real = KEEL_FLOAT64,
                                           .max_rows = MOST,
                                           .trains = trains };
    keel_graph *g;
    keel_value x, t, ignored;
    must(keel_graph_create(&g, KEEL_FLOAT64, trains));
    must(
        keel_graph_input(g, &(keel_spec){ KEEL_FLOAT64, { 1, { generates ? NOISE : SIZE } } }, &x));
    if (generates) x = net(g, x, 0);
    if (judges) {
        must(keel_graph_input(g, &(keel_spec){ KEEL_FLOAT64, { 1, { 1 } } }, &t));
        x = net(g, x, 4);
        must(graph_add(g, &entropy_op, NULL, (keel_value[]){ x, t }, 2, NULL, NULL, 0, &ignored));
    }
    p->loss = g->n_node - 1;
    must(keel_program_create(&p->program, g, &x, 1, a->store, &a->lanes, &options));
}

static void choose(part *p, const char *name, double rate)
{
    json_t *j = json_pack("{s:s, s:{s:f, s:f, s:f}}", "class_name", name, "config", "learning_rate",
                          rate, "beta_1", 0.875, "beta_2", 0.9990234375);
    must(keel_object_read(&p->optimizer, j, keel_optimizer_find, "optimizer"));
    json_decref(j);
    must(keel_updater_create(&p->update, p->program, &p->optimizer, p->program->trains));
}

static void create(gan *a, const char *devices)
{
    static const bool of_generator[WEIGHTS] = { true, true, true, true },
                      of_discriminator[WEIGHTS] = { [4] = true, true, true, true };
    keel_weight_info info[WEIGHTS];
    *a = (gan){ 0 };
    must(keel_lanes_parse(&a->lanes, devices));
    must(keel_team_create(&a->team, a->lanes.core, a->lanes.n_worker));
    for (int v = 0; v < WEIGHTS; v++) info[v] = (keel_weight_info){ .name = "w", .spec = specs[v] };
    must(keel_store_create(&a->store, KEEL_FLOAT64, info, WEIGHTS, NULL, 0));
    for (int v = 0; v < WEIGHTS; v++)
        for (int64_t i = 0; i < a->store->weight[v].count; i++)
            ((double *)keel_store_data(a->store, v))[i] =
                (double)((i * 7919 + 131 * v) % 1021 - 510) / 1024;
    compile(a, &a->generator, true, true, of_generator);
    compile(a, &a->discriminator, false, true, of_discriminator);
    compile(a, &a->samples, true, false, NULL);
    choose(&a->generator, "Lamb", 0.0625);
    choose(&a->discriminator, "Adam", 0.03125);
}

static void destroy(gan *a)
{
    part *parts[] = { &a->generator, &a->discriminator, &a->samples };
    for (int i = 0; i < 3; i++) {
        keel_updater_free(&parts[i]->update);
        keel_object_free(&parts[i]->optimizer);
        keel_program_destroy(parts[i]->program);
    }
    keel_team_destroy(a->team);
    keel_store_destroy(a->store);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static double *gradient(const part *p, int worker, int64_t offset)
{
    return (double *)p->program->workspace[worker].grad + offset;
}

static void reduce(const gan *a, const part *p, int worker, int first)
{
    for (int i = p->update.first_tile[worker]; i < p->update.first_tile[worker + 1]; i++) {
        const keel_tile *tile = &p->update.tile[i];
        const int64_t at = tile->offset - a->store->weight[tile->variable].offset;
        keel_gradient_part of[KEEL_LANES_MAX] = { { .data = gradient(p, first, tile->offset) } };
        keel_reduction_of r = { .part = of,
                                .n_part = 1,
                                .w = a->store->master + tile->offset * 8,
                                .count = tile->count,
                                .scale = 1.0 / (double)p->bound->rows };
        const keel_tile_request request = {
            .variable = tile->variable, .first = at, .count = tile->count, .grad = of[0].data
        };
        if (p->program->tiled[tile->variable].node >= 0)
            keel_program_tile(p->program, p->bound, worker, &request);
        else
            r.n_part = keel_gradient_parts(p->program, p->bound, tile->variable, at, of);
        assert_true(keel_reduce_tile(KEEL_FLOAT64, &r));
    }
}

static void work(void *context, int worker)
{
    const gan *a = context;
    const part *p = a->running;
    const keel_updater *u = &p->update;
    const int first = p->bound->part[0].worker;
    keel_program_run(p->program, p->bound, a->team, worker);
    if (!u->optimizer) return;
    keel_program_meet(p->program, a->team, worker);
    reduce(a, p, worker, first);
    for (int pass = 0; pass < u->n_pass; pass++) {
        keel_program_meet(p->program, a->team, worker);
        for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++) {
            const keel_tile *tile = &u->tile[i];
            keel_update_whole whole;
            if (u->n_pass == 1) {
                keel_updater_move(u, tile, gradient(p, first, tile->offset), 1);
                continue;
            }
            keel_updater_whole(u, tile->variable, pass,
                               gradient(p, first, a->store->weight[tile->variable].offset), &whole);
            keel_updater_pass(u, i, pass, &whole, 1);
        }
    }
    if (a->store->n_derived > 0) {
        keel_program_meet(p->program, a->team, worker);
        keel_store_refresh(a->store, worker, a->lanes.n_worker, NULL);
    }
}

/* The mean loss. */
static double step(gan *a, part *p, int64_t rows, const double *x, const double *t)
{
    double sum = 0;
    must(keel_program_bind(p->program, rows, &p->bound));
    p->program->input[0] = x;
    if (t) p->program->input[1] = t;
    a->running = p;
    if (t) must(keel_updater_begin(&p->update));
    keel_team_run(a->team, work, a);
    if (!t) return 0;
    keel_updater_end(&p->update);
    keel_program_sums(p->program, p->bound, p->loss, &sum);
    return sum / (double)rows;
}

static void make_rows(double *to, int size, int64_t seed)
{
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < size; k++)
            to[i * size + k] =
                (double)((i * 131 + k * 37 + i * k * 7 + seed * 59) % 256 - 128) / 128;
}

static double discriminate(gan *a, int64_t round, int k)
{
    double z[ROWS * NOISE], x[MOST * SIZE], t[MOST] = { 1, 1, 1, 1, 1, 1 };
    make_rows(x, SIZE, 10 * round + k);
    make_rows(z, NOISE, 10 * round + 5 + k);
    step(a, &a->samples, ROWS, z, NULL);
    for (int i = 0; i < a->samples.bound->n_busy; i++) {
        const keel_piece *p = &a->samples.bound->piece[i];
        memcpy(x + (ROWS + p->row) * SIZE, keel_program_output(a->samples.program, 0, p),
               (size_t)(p->rows * SIZE) * sizeof *x);
    }
    return step(a, &a->discriminator, MOST, x, t);
}

static double generate(gan *a, int64_t round)
{
    double z[ROWS * NOISE], t[ROWS] = { 1, 1, 1, 1, 1, 1 };
    make_rows(z, NOISE, 10 * round + 9);
    return step(a, &a->generator, ROWS, z, t);
}

static void is_near(const char *what, int64_t at, double got, const json_t *want)
{
    if (!golden_near(got, json_number_value(want), 1e-11))
        fail_msg("%s %d: %.15g instead of %.15g", what, (int)at, got, json_number_value(want));
}

static void two_models_train_by_two_optimizers_as_in_keras(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-3" };
    json_t *all = golden_load("gan.json");
    const json_t *d_loss = json_object_get(all, "d_loss"), *g_loss = json_object_get(all, "g_loss"),
                 *weights = json_object_get(all, "weights");
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        gan a;
        create(&a, devices[i]);
        for (int64_t r = 0; r < ROUNDS; r++) {
            if (r == ROUNDS / 2) a.discriminator.update.learning_rate = 0.0078125;
            for (int k = 0; k < 2; k++)
                is_near("loss of the discriminator", 2 * r + k, discriminate(&a, r, k),
                        json_array_get(d_loss, (size_t)(2 * r + k)));
            is_near("loss of the generator", r, generate(&a, r), json_array_get(g_loss, (size_t)r));
        }
        for (int v = 0; v < WEIGHTS; v++)
            for (int64_t e = 0; e < a.store->weight[v].count; e++)
                is_near("weight", v, ((double *)keel_store_data(a.store, v))[e],
                        json_array_get(json_array_get(weights, (size_t)v), (size_t)e));
        assert_int_equal(a.generator.update.iterations, ROUNDS);
        assert_int_equal(a.discriminator.update.iterations, 2 * ROUNDS);
        destroy(&a);
        assert_int_equal(keel_memory_live(), live);
    }
    json_decref(all);
}

/* A step of one program moves nothing of the other's: not its weights, slots, iterations. */
static void a_program_moves_its_own_weights_alone(void **unused)
{
    (void)unused;
    gan a;
    double before[WEIGHTS][HIDDEN * HIDDEN];
    create(&a, "cpu:0-1");
    for (int which = 0; which < 2; which++) {
        const part *other = which ? &a.discriminator : &a.generator;
        double kept = 0;
        for (int v = 0; v < WEIGHTS; v++)
            memcpy(before[v], keel_store_data(a.store, v),
                   (size_t)a.store->weight[v].count * sizeof(double));
        if (which)
            generate(&a, 0);
        else
            discriminate(&a, 0, 0);
        for (int v = 0; v < WEIGHTS; v++) {
            const bool moved = memcmp(before[v], keel_store_data(a.store, v),
                                      (size_t)a.store->weight[v].count * sizeof(double));
            assert_int_equal(moved, which ? v < 4 : v >= 4);
            for (int64_t k = 0; other->update.weight[v].n_tile && k < a.store->weight[v].count; k++)
                kept += fabs(((double *)keel_updater_slot(&other->update, v, 0, 0))[k]);
        }
        assert_int_equal(kept > 0, which);
        assert_int_equal(other->update.iterations, which);
    }
    destroy(&a);
}

static void a_step_allocates_nothing(void **unused)
{
    (void)unused;
    gan a;
    create(&a, "cpu:0-1");
    discriminate(&a, 0, 0);
    generate(&a, 0);
    const int64_t before = keel_memory_calls();
    discriminate(&a, 1, 0);
    generate(&a, 1);
    assert_int_equal(keel_memory_calls(), before);
    destroy(&a);
}

static void each_failing_allocation_of_an_updater_is_an_error_without_a_leak(void **unused)
{
    (void)unused;
    gan a;
    create(&a, "cpu:0-1");
    const int64_t live = keel_memory_live();
    for (int64_t at = 0;; at++) {
        keel_updater u;
        keel_memory_fail_at(at);
        const keel_status s = keel_updater_create(&u, a.generator.program, &a.generator.optimizer,
                                                  a.generator.program->trains);
        keel_memory_fail_at(-1);
        if (s >= 0) keel_updater_free(&u);
        assert_int_equal(keel_memory_live(), live);
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_true(at < 50);
    }
    destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_models_train_by_two_optimizers_as_in_keras),
        cmocka_unit_test(a_program_moves_its_own_weights_alone),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(each_failing_allocation_of_an_updater_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
