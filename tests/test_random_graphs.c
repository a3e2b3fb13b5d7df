/* Functional models drawn by chance, trained a step: gradients against central differences in
 * float64; fused and unfused, on one to four lanes, by kernels and by the plain reference the same,
 * and the same bits where values are made again for backward; evaluate and predict what training
 * computes. Every registered layer is drawn, values are read
 * twice by one layer and by several, layers are called again.
 *
 *     test_random_graphs [SEED [COUNT]]    those graphs only
 *
 * A graph that fails is made smaller and printed as Keras would write it, with its seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include "base/memory.h"
#include "random_graph.h"
#include "random_rows.h"
#include "sweep.h"

enum { ALL = 450 }; /* so many graphs have every layer */
enum { LANES = 4, SAMPLES = 16, SHRINKS = 600, DRAWS = 3 };

static uint64_t first_seed = 1;
static int n_graph, n_usual; /* how many are trained; without arguments n_usual */
static keel_strategy *strategy[LANES + 1];
static int64_t n_checked, n_kink;

/* ---- one model and its numbers ----------------------------------------------------------------
 */

/* A model of a graph, the weights it begins with and the rows it is trained on. */
typedef struct trial {
    const random_graph *g;
    keel_dtype dtype;
    keel_model *m;
    random_rows rows;
    int64_t n; /* numbers in all weights */
    double *begin;
    double rate; /* that moves no weight by more than 1/8 in the first step */
    char *why;   /* [WHY] */
} trial;
enum { WHY = 400 };

typedef struct way {
    int lanes;
    bool unfused, reference, recompute;
    int64_t batch, micro_batch;
    double rate;
} way;

typedef enum verdict { SAME, DIFFERENT, REFUSED } verdict;

/* All weights, one after the other; how many numbers. */
static int64_t get_weights(const keel_model *m, double *out)
{
    int64_t n = 0;
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        if (keel_model_get_weight(m, keel_model_weight_name(m, i), &t) < 0)
            fail_msg("%s", keel_error());
        const int64_t count = keel_shape_count(&t.shape);
        for (int64_t k = 0; k < count; k++) out[n++] = at(t.data, t.dtype, k);
        keel_tensor_free(&t);
    }
    return n;
}

static void set_weights(keel_model *m, const double *from)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        const char *name = keel_model_weight_name(m, i);
        if (keel_model_get_weight(m, name, &t) < 0) fail_msg("%s", keel_error());
        const int64_t count = keel_shape_count(&t.shape);
        for (int64_t k = 0; k < count; k++) put(t.data, t.dtype, k, *from++);
        if (keel_model_set_weight(m, name, &t) < 0) fail_msg("%s", keel_error());
        keel_tensor_free(&t);
    }
}

/* Biases of 0 and scales of 1 are where kinks are: every weight is moved a little. */
static void shake_weights(const keel_model *m, double *w)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        if (keel_model_get_weight(m, keel_model_weight_name(m, i), &t) < 0)
            fail_msg("%s", keel_error());
        for (int64_t k = keel_shape_count(&t.shape); k > 0; k--) *w++ += 0.2 * chance_real();
        keel_tensor_free(&t);
    }
}

/* The graph's model in `dtype`; `draw`: which numbers. */
static keel_status open_trial(trial *t, random_graph *g, keel_dtype dtype, int draw, char *why)
{
    *t = (trial){ .g = g, .dtype = dtype, .why = why };
    KEEL_TRY(build_model(g, dtype, &t->m));
    chance_seed(g->seed * 16 + (uint64_t)draw);
    t->n = keel_model_count_params(t->m, NULL);
    t->begin = numbers(KEEL_FLOAT64, t->n);
    assert_int_equal(get_weights(t->m, t->begin), t->n);
    shake_weights(t->m, t->begin);
    return draw_rows(&t->rows, g, dtype);
}

static void close_trial(trial *t)
{
    free_rows(&t->rows);
    keel_model_destroy(t->m);
    free(t->begin);
}

static keel_fit_options options_of(const way *w)
{
    return (keel_fit_options){ KEEL_FIT_OPTIONS,      .batch_size = w->batch,
                               .unfused = w->unfused, .reference_kernels = w->reference,
                               .no_shuffle = true,    .seed = 3,
                               .threads = 1 };
}

/* An epoch from `from`: its loss, and (after not NULL) the weights behind it. */
static keel_status train(trial *t, const double *from, const way *w, double *after, double *loss)
{
    const keel_fit_options o = options_of(w);
    keel_history h = { 0 };
    set_weights(t->m, from);
    KEEL_TRY(keel_model_set_learning_rate(t->m, w->rate));
    keel_strategy_recompute(strategy[w->lanes], w->recompute);
    KEEL_TRY(keel_strategy_micro_batch(strategy[w->lanes], w->micro_batch));
    const keel_status s = keel_fit(t->m, strategy[w->lanes], t->rows.data, &o, &h);
    if (s >= 0) {
        *loss = h.value[0];
        if (after) get_weights(t->m, after);
    }
    keel_history_free(&h);
    return s;
}

/* ---- what must hold ---------------------------------------------------------------------------
 */

/* The weight that number i is of. */
static const keel_model_weight *weight_of(const keel_model *m, int64_t i)
{
    int k = 0;
    while (i >= keel_shape_count(&m->weight[k].info.spec.shape))
        i -= keel_shape_count(&m->weight[k++].info.spec.shape);
    return &m->weight[k];
}

static verdict refused(const trial *t)
{
    snprintf(t->why, WHY, "%s", keel_error());
    return REFUSED;
}

/* The slope of the loss along weight i by differences agrees with g at one of three widths; where
 * it does not, and the slopes of the two sides are not one, it is a kink. */
static verdict slope(trial *t, const way *w, double *now, double here, int64_t i, double g,
                     double size)
{
    double right = 0, left = 0, middle = 0;
    n_checked++;
    for (double h = 1e-5; h > 5e-8; h /= 10) {
        double up, down;
        now[i] = t->begin[i] + h;
        keel_status s = train(t, now, w, NULL, &up);
        now[i] = t->begin[i] - h;
        if (s >= 0) s = train(t, now, w, NULL, &down);
        now[i] = t->begin[i];
        if (s < 0) return refused(t);
        right = (up - here) / h;
        left = (here - down) / h;
        middle = (up - down) / (2 * h);
        if (fabs(middle - g) <= 1e-5 * fmax(size, fabs(middle))) return SAME;
    }
    if (fabs(right - left) > 1e-3 * fmax(size, fabs(middle))) {
        n_kink++;
        return SAME;
    }
    snprintf(t->why, WHY, "%s[%lld]: the gradient is %.9g, differences give %.9g",
             weight_of(t->m, i)->info.name, (long long)i, g, middle);
    return DIFFERENT;
}

static verdict gradients(trial *t)
{
    way w = { .lanes = 1, .batch = t->g->rows };
    double *after = numbers(KEEL_FLOAT64, t->n), *now = numbers(KEEL_FLOAT64, t->n);
    double here, size = 1;
    verdict v = SAME;
    memcpy(now, t->begin, (size_t)t->n * sizeof *now);
    w.rate = 1;
    if (train(t, t->begin, &w, after, &here) < 0) v = refused(t);
    if (v == SAME && !(fabs(here) < 1e4)) v = REFUSED;
    for (int64_t i = 0; i < t->n && v == SAME; i++) {
        if (!(fabs(after[i]) < 1e6)) v = REFUSED;
        const keel_model_weight *of = weight_of(t->m, i);
        if (of->trainable) {
            size = fmax(size, fabs(t->begin[i] - after[i]));
        } else if (!of->state && after[i] != t->begin[i]) {
            snprintf(t->why, WHY, "%s is frozen, but moved", of->info.name);
            v = DIFFERENT;
        }
    }
    t->rate = 0.125 / size;
    w.rate = 0;
    for (int k = 0; k < SAMPLES && v == SAME && t->n > 0; k++) {
        const int64_t i = chance((int)t->n);
        if (!weight_of(t->m, i)->trainable) continue;
        v = slope(t, &w, now, here, i, t->begin[i] - after[i], size);
    }
    free(after);
    free(now);
    return v;
}

/* Two ways of training an epoch end in the same weights and the same loss, to `limit`. */
static verdict same_training(trial *t, way a, way b, double limit)
{
    double *u = numbers(KEEL_FLOAT64, t->n), *v = numbers(KEEL_FLOAT64, t->n);
    double loss[2], size = 1;
    verdict is = SAME;
    if (train(t, t->begin, &a, u, &loss[0]) < 0 || train(t, t->begin, &b, v, &loss[1]) < 0)
        is = refused(t);
    for (int64_t i = 0; i < t->n && is == SAME; i++) size = fmax(size, fabs(u[i]));
    if (size > 1e3) {
        snprintf(t->why, WHY, "training diverges");
        is = REFUSED;
    }
    for (int64_t i = 0; i < t->n && is == SAME; i++)
        if (!(fabs(u[i] - v[i]) <= limit * size)) {
            snprintf(t->why, WHY, "%s[%lld] is %.17g %s on %d lanes, but %.17g %s on %d (%s)",
                     weight_of(t->m, i)->info.name, (long long)i, u[i],
                     a.unfused ? "unfused" : "fused", a.lanes, v[i],
                     b.reference     ? "by the reference"
                     : b.micro_batch ? "in micro-batches"
                     : b.recompute   ? "with values made again"
                     : b.unfused     ? "unfused"
                                     : "fused",
                     b.lanes, keel_dtype_name(t->dtype));
            is = DIFFERENT;
        }
    if (is == SAME && !(fabs(loss[0] - loss[1]) <= limit * fmax(1, fabs(loss[0])))) {
        snprintf(t->why, WHY, "the loss is %.17g and %.17g on %d lanes", loss[0], loss[1], b.lanes);
        is = DIFFERENT;
    }
    free(u);
    free(v);
    return is;
}

/* Is there a layer that computes something else when it trains? */
static bool trains_otherwise(const random_graph *g)
{
    bool reached[STEPS_MAX];
    reached_steps(g, reached);
    for (int i = 0; i < g->n; i++)
        if (reached[i] && drawer_of(g->step[i].layer)->trains_otherwise) return true;
    return false;
}

/* The loss of evaluate is that of training, and predict gives the same rows on any lanes. */
static verdict same_inference(trial *t, double limit)
{
    const way w = { .lanes = 1, .batch = t->g->rows };
    const way many = { .lanes = 2 + chance(LANES - 1), .unfused = true, .batch = t->g->batch };
    const keel_fit_options o = options_of(&w), p = options_of(&many);
    keel_tensor a = { 0 }, b = { 0 };
    keel_logs logs;
    double loss;
    verdict is = SAME;
    if (train(t, t->begin, &w, NULL, &loss) < 0) return refused(t);
    set_weights(t->m, t->begin);
    if (keel_evaluate(t->m, strategy[1], t->rows.data, &o, &logs) < 0) return refused(t);
    if (!trains_otherwise(t->g) && !(fabs(logs.value[0] - loss) <= limit * fmax(1, fabs(loss)))) {
        snprintf(t->why, WHY, "evaluate gives a loss of %.17g, training %.17g (%s)", logs.value[0],
                 loss, keel_dtype_name(t->dtype));
        return DIFFERENT;
    }
    if (keel_predict(t->m, strategy[1], t->rows.data, &o, &a) < 0) return refused(t);
    if (keel_predict(t->m, strategy[many.lanes], t->rows.data, &p, &b) < 0) is = refused(t);
    for (int64_t i = 0; is == SAME && i < keel_shape_count(&a.shape); i++) {
        const double u = at(a.data, a.dtype, i), v = at(b.data, b.dtype, i);
        if (fabs(u - v) <= limit * fmax(1, fabs(u)) || (isnan(u) && isnan(v))) continue;
        snprintf(t->why, WHY, "predict[%lld] is %.17g, but %.17g unfused on %d lanes (%s)",
                 (long long)i, u, v, many.lanes, keel_dtype_name(t->dtype));
        is = DIFFERENT;
    }
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    return is;
}

/* On any lanes, to the bit. */
static verdict same_made_again(trial *t, way w)
{
    w.lanes = 1 + chance(LANES);
    w.unfused = chance(2);
    way again = w;
    again.recompute = true;
    return same_training(t, w, again, 0);
}

/* But for the order in which gradients are added up. */
static verdict same_in_micro_batches(trial *t, way w, double limit)
{
    w.lanes = 1 + chance(LANES);
    w.unfused = chance(2);
    way micro = w;
    micro.recompute = chance(2);
    micro.micro_batch = 1 + chance((int)w.batch);
    const verdict v = same_training(t, w, micro, limit);
    if (v != REFUSED || !strstr(t->why, "cannot be trained in micro-batches")) return v;
    *t->why = 0;
    return SAME;
}

static verdict float64_agrees(trial *t)
{
    verdict v = gradients(t);
    const way one = { .lanes = 1, .batch = t->g->batch, .rate = t->rate };
    if (v == SAME) v = same_inference(t, 1e-12);
    for (int k = 1; k < 2 * LANES && v == SAME; k++) {
        way w = one;
        w.lanes = 1 + k / 2;
        w.unfused = k % 2;
        v = same_training(t, one, w, 1e-12);
    }
    if (v == SAME) v = same_made_again(t, one);
    return v == SAME ? same_in_micro_batches(t, one, 1e-12) : v;
}

static verdict float32_agrees(trial *t)
{
    const way one = { .lanes = 1, .batch = t->g->batch, .rate = t->rate };
    way w = one;
    verdict v = same_inference(t, 2e-5);
    w.unfused = true;
    if (v == SAME) v = same_training(t, one, w, 2e-5);
    if (v == SAME) v = same_made_again(t, one);
    if (v == SAME) v = same_in_micro_batches(t, one, 2e-5);
    w.lanes = 2 + chance(LANES - 1);
    if (v == SAME) v = same_training(t, one, w, 2e-5);
    w = one;
    w.reference = true;
    if (v == SAME) v = same_training(t, one, w, 2e-5);
    w.unfused = true;
    way plain = w;
    plain.unfused = false;
    return v == SAME ? same_training(t, plain, w, 2e-5) : v;
}

/* ---- one graph --------------------------------------------------------------------------------
 */

/* A rectifier or a pool may take another side when a number that is next to a kink is rounded
 * otherwise: what only one draw of numbers shows is that. A mistake shows in all. */
static verdict check(random_graph *g, char *why)
{
    double rate = 0;
    for (int wide = 1; wide >= 0; wide--) {
        verdict v = DIFFERENT;
        for (int draw = 0; draw < (wide ? 1 : DRAWS) && v == DIFFERENT; draw++) {
            trial t;
            if (open_trial(&t, g, wide ? KEEL_FLOAT64 : KEEL_FLOAT32, draw, why) < 0) {
                v = refused(&t);
            } else {
                t.rate = rate;
                v = wide ? float64_agrees(&t) : float32_agrees(&t);
                rate = t.rate;
            }
            close_trial(&t);
        }
        if (v != SAME) return v;
    }
    return SAME;
}

/* `g` without step i, whose place its input k takes; or, where k is -1 - j, without its input j. */
static bool without(const random_graph *g, int i, int k, random_graph *out)
{
    *out = *g;
    if (k < 0) {
        step *s = &out->step[i];
        if (s->n_in < 2) return false;
        for (int j = -1 - k; j + 1 < s->n_in; j++) s->in[j] = s->in[j + 1];
        s->n_in--;
        return true;
    }
    for (int j = i + 1; j < out->n; j++)
        for (int l = 0; l < out->step[j].n_in; l++)
            if (out->step[j].in[l] == i) out->step[j].in[l] = g->step[i].in[k];
    for (int j = 0; j < out->n_out; j++)
        if (out->out[j] == i) out->out[j] = g->step[i].in[k];
    return true;
}

/* `g` without its output k. */
static bool without_output(const random_graph *g, int k, random_graph *out)
{
    *out = *g;
    out->n_out--;
    for (int j = k; j < out->n_out; j++) {
        out->out[j] = g->out[j + 1];
        out->loss[j] = g->loss[j + 1];
        out->loss_weight[j] = g->loss_weight[j + 1];
    }
    return out->n_out > 0;
}

/* Does the smaller one fail as well? Then it takes the place of `g`. */
static bool take(random_graph *g, random_graph *less, char *why)
{
    char other[WHY];
    if (check(less, other) != DIFFERENT) return false;
    *g = *less;
    memcpy(why, other, WHY);
    return true;
}

/* The smallest graph that still fails, one step at a time. */
static void shrink(random_graph *g, char *why)
{
    int tries = 0;
    bool smaller = true;
    random_graph less;
    while (smaller && tries < SHRINKS) {
        bool reached[STEPS_MAX];
        smaller = false;
        for (int k = 0; k < g->n_out && !smaller; k++)
            smaller = without_output(g, k, &less) && ++tries < SHRINKS && take(g, &less, why);
        reached_steps(g, reached);
        for (int i = g->n - 1; i > 0 && !smaller; i--)
            for (int k = -g->step[i].n_in; k < g->step[i].n_in && !smaller && reached[i]; k++)
                smaller = without(g, i, k, &less) && ++tries < SHRINKS && take(g, &less, why);
    }
}

static void graphs_drawn_by_chance_train_as_they_should(void **unused)
{
    (void)unused;
    int n_refused = 0, n_used[DRAWERS] = { 0 };
    char why[WHY] = "";
    for (int i = 0; i < ALL || i < n_graph; i++) {
        const int64_t live = keel_memory_live();
        random_graph g;
        bool reached[STEPS_MAX];
        if (draw_graph(&g, first_seed + (uint64_t)i, false) < 0) fail_msg("%s", keel_error());
        reached_steps(&g, reached);
        for (int k = 0; k < g.n; k++) n_used[drawer_of(g.step[k].layer) - drawers] += reached[k];
        if (i >= n_graph) continue; /* it only counts layers */
        const verdict v = check(&g, why);
        if (v == DIFFERENT) {
            printf("seed %llu: %s\n", (unsigned long long)g.seed, why);
            print_graph(&g);
            shrink(&g, why);
            printf("made smaller: %s\n", why);
            print_graph(&g);
            fail_msg("seed %llu: %s", (unsigned long long)g.seed, why);
        }
        n_refused += v == REFUSED;
        if (v == REFUSED && n_graph == 1) printf("refused: %s\n", why);
        if (keel_memory_live() != live) fail_msg("seed %llu: leaks", (unsigned long long)g.seed);
    }
    printf("%d graphs: %lld slopes, %lld at kinks, %d graphs refused (%s)\n", n_graph,
           (long long)n_checked, (long long)n_kink, n_refused, why);
    if (n_graph < n_usual) return;
    assert_true(n_kink * 10 <= n_checked);
    assert_true(n_refused * 10 <= n_graph);
    for (int i = 0; i < DRAWERS; i++)
        if (!drawers[i].excuse && !n_used[i]) fail_msg("no graph had a %s", drawers[i].layer);
}

static void every_layer_is_drawn_or_excused(void **unused)
{
    (void)unused;
    for (int i = 0; keel_layer_class(i); i++) {
        const struct drawer *d = drawer_of(keel_layer_class(i));
        if (!d)
            fail_msg("%s: no random graph has it; give it a line in tests/random_layers.h",
                     keel_layer_class(i));
        assert_true(d->draw || (d->excuse && *d->excuse));
    }
}

static int start(void **unused)
{
    (void)unused;
    for (int i = 1; i <= LANES; i++) {
        char devices[16];
        snprintf(devices, sizeof devices, i == 1 ? "cpu:0" : "cpu:0-%d", i - 1);
        if (keel_strategy_create(&strategy[i], devices) < 0) return -1;
    }
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    for (int i = 1; i <= LANES; i++) keel_strategy_destroy(strategy[i]);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_is_drawn_or_excused),
        cmocka_unit_test(graphs_drawn_by_chance_train_as_they_should),
    };
    n_graph = n_usual = thin(ALL, 200, 40);
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        n_graph = argc > 2 ? atoi(argv[2]) : 1;
    }
    return cmocka_run_group_tests(tests, start, finish);
}
