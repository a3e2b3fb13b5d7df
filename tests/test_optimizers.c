/* Optimizers against Keras over several steps, and the same whatever the tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedules/rate.h"

static double norm_of(const void *g, int f64, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += golden_at(g, f64, i) * golden_at(g, f64, i);
    return sqrt(sum);
}

static void near_list(const char *what, size_t index, const void *got, int f64, const json_t *want,
                      double limit)
{
    for (size_t i = 0; i < json_array_size(want); i++) {
        const double w = json_number_value(json_array_get(want, i)), g = golden_at(got, f64, i);
        if (!(fabs(g - w) <= limit * fmax(1, fabs(w))))
            fail_msg("case %zu, %s[%zu]: %.17g instead of %.17g", index, what, i, g, w);
    }
}

static void check_case(const json_t *all, const json_t *k, size_t index, int64_t tile)
{
    const int f64 = !strcmp(golden_text(k, "real"), "float64");
    const size_t size = f64 ? 8 : 4;
    const keel_type *type = keel_optimizer_find(golden_text(k, "optimizer"));
    assert_non_null(type);
    const keel_optimizer *o = (const keel_optimizer *)type;
    void *args = keel_calloc(1, type->args_size);
    if (keel_fields_read(type, json_object_get(k, "config"), args) < 0)
        fail_msg("%s", keel_error());
    const keel_optimizer_common *common = args;

    const json_t *steps = json_object_get(all, "gradients"), *slots = json_object_get(k, "slots");
    void *w = golden_reals(json_object_get(all, "start"), f64);
    const size_t n = json_array_size(json_object_get(all, "start"));
    const keel_weight_info info = { .name = "dense/bias",
                                    .spec = { .shape = { 1, { (int64_t)n } } } };
    keel_slots kept = { 0 };
    assert_int_equal(keel_optimizer_slots(o, args, &info, &kept), KEEL_OK);
    const int n_slot = kept.count;
    double number = o->first_number;
    /* float32: a few roundings of a weight near one; Keras takes Nadam's 0.96 through float32 */
    const double near = !f64 ? 3e-7 : o->number[f64] ? 2e-8 : 1e-13;
    void *slot[KEEL_SLOTS_MAX] = { calloc(n, 8), calloc(n, 8), calloc(n, 8) };
    for (int i = 0; i < n_slot; i++)
        for (size_t e = 0; e < n; e++)
            if (kept.at[i].first_is_weight)
                memcpy((char *)slot[i] + e * size, (char *)w + e * size, size);
            else if (f64)
                ((double *)slot[i])[e] = kept.at[i].first;
            else
                ((float *)slot[i])[e] = (float)kept.at[i].first;
    for (size_t s = 0; s < json_array_size(steps); s++) {
        void *g = golden_reals(json_array_get(steps, s), f64);
        const double norm = norm_of(g, f64, n); /* of the weight and of all: there is one */
        if (o->number[f64]) number = o->number[f64](args, (int64_t)s + 1, number);
        const double limit =
            keel_clips(common->clipnorm) ? common->clipnorm : common->global_clipnorm;
        for (int64_t at = 0; at < (int64_t)n; at += tile) {
            keel_update u = {
                .args = args,
                .iteration = (int64_t)s + 1,
                .learning_rate = f64 ? common->learning_rate : (double)(float)common->learning_rate,
                .count = at + tile > (int64_t)n ? (int64_t)n - at : tile,
                .w = (char *)w + (size_t)at * size,
                .g = (char *)g + (size_t)at * size,
                .scale = keel_clip_scale(norm, limit),
                .clip = keel_clip_bound(common->clipvalue),
                .number = number,
            };
            for (int i = 0; i < n_slot; i++) u.slot[i] = (char *)slot[i] + (size_t)at * size;
            o->apply[f64](&u);
        }
        near_list("weights", index, w, f64, json_array_get(json_object_get(k, "weights"), s), near);
        free(g);
    }
    assert_int_equal(json_array_size(slots), n_slot + (o->number[f64] != NULL));
    for (int i = 0; i < n_slot; i++) { /* one weight: Keras's order of slots is ours */
        const json_t *pair = json_array_get(slots, (size_t)i);
        assert_string_equal(json_string_value(json_array_get(pair, 0)), kept.at[i].name);
        near_list(kept.at[i].name, index, slot[i], f64, json_array_get(pair, 1), near);
    }
    for (int i = 0; i < KEEL_SLOTS_MAX; i++) free(slot[i]);
    free(w);
    keel_free(args);
}

static void weights_and_slots_are_those_of_keras(void **state)
{
    static const struct {
        const char *file;
        size_t most;
    } made[] = { { "optimizers.json", 50 }, { "optimizers_jax.json", 12 } };
    for (size_t f = 0; f < sizeof made / sizeof *made; f++) {
        json_t *all = golden_load(made[f].file), *cases = json_object_get(all, "cases"), *k;
        size_t i;
        json_array_foreach(cases, i, k) for (int64_t tile = 1; tile <= 7; tile += 3)
            check_case(all, k, i, tile);
        assert_true(i >= made[f].most);
        json_decref(all);
    }
}

/* Keras leaves an infinite weight alone where neither gradient nor decay moves it; models mask with
 * such weights what they add up. Decay makes it NaN, there as here. */
static void an_infinite_weight_stays_where_nothing_moves_it(void **state)
{
    static const struct {
        const char *optimizer, *config;
        bool stays;
    } table[] = {
        { "SGD", "{}", true },
        { "SGD", "{\"momentum\": 0.9}", true },
        { "SGD", "{\"momentum\": 0.9, \"clipvalue\": 0.5}", true },
        { "SGD", "{\"momentum\": 0.9, \"nesterov\": true}", true },
        { "SGD", "{\"weight_decay\": 0.1}", false },
        { "RMSprop", "{}", true },
        { "RMSprop", "{\"momentum\": 0.9, \"centered\": true}", true },
        { "Adam", "{}", true },
        { "Adam", "{\"amsgrad\": true}", true },
        { "AdamW", "{}", false },
        { "Adadelta", "{}", true },
        { "Adagrad", "{}", true },
        { "Adamax", "{}", true },
        { "Nadam", "{}", true },
        { "Lion", "{}", true },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const keel_optimizer *o = (const keel_optimizer *)keel_optimizer_find(table[i].optimizer);
        void *args = keel_calloc(1, o->type.args_size);
        json_t *config = json_loads(table[i].config, 0, NULL);
        assert_int_equal(keel_fields_read(&o->type, config, args), KEEL_OK);
        float w[3] = { 1, -INFINITY, 2 }, g[3] = { 0.5f, 0, 0.25f }, slot[KEEL_SLOTS_MAX][3];
        const keel_weight_info info = { .name = "bias", .spec = { .shape = { 1, { 3 } } } };
        keel_slots kept = { 0 };
        keel_update u = { .args = args,
                          .iteration = 1,
                          .learning_rate = 0.1,
                          .count = 3,
                          .w = w,
                          .g = g,
                          .scale = 1,
                          .clip = INFINITY };
        assert_int_equal(keel_optimizer_slots(o, args, &info, &kept), KEEL_OK);
        for (int k = 0; k < kept.count; k++) {
            for (int e = 0; e < 3; e++) slot[k][e] = (float)kept.at[k].first;
            u.slot[k] = slot[k];
        }
        u.number = o->number[0] ? o->number[0](args, 1, o->first_number) : 0;
        o->apply[0](&u);
        if (table[i].stays ? w[1] != -INFINITY : !isnan(w[1]))
            fail_msg("%s(%s): -inf became %g", table[i].optimizer, table[i].config, w[1]);
        assert_true(w[0] < 1 && w[2] < 2);
        json_decref(config);
        keel_free(args);
    }
}

/* Keras writes null for weight_decay=None, also where its default is a number. */
static void weight_decay_may_be_none(void **state)
{
    static const char *const table[] = { "SGD", "Adam", "AdamW", "Muon", "Lion" };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const keel_type *type = keel_optimizer_find(table[i]);
        keel_optimizer_common *args = keel_calloc(1, type->args_size);
        json_t *config = json_pack("{s:n}", "weight_decay");
        if (keel_fields_read(type, config, args) < 0) fail_msg("%s", keel_error());
        assert_true(isnan(args->weight_decay));
        keel_fields_free(type, args);
        json_decref(config);
        keel_free(args);
    }
}

/* The vector loop, its rest and every tile give each element the same bits. */
static void tiles_change_no_bit(void **state)
{
    enum { N = 1000 };
    int ran = 0;
    static float w[2][N], g[N], slot[2][KEEL_SLOTS_MAX][N];
    const char *configs[] = { "{}",
                              "{\"momentum\": 0.9}",
                              "{\"momentum\": 0.9, \"nesterov\": true}",
                              "{\"momentum\": 0.9, \"centered\": true}",
                              "{\"amsgrad\": true}",
                              "{\"learning_rate_power\": -0.75}" };
    for (int i = 0; keel_optimizers[i]; i++)
        for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
            const keel_optimizer *o = keel_optimizers[i];
            json_t *j = json_loads(configs[c], 0, NULL);
            void *args = keel_calloc(1, o->type.args_size);
            const keel_status s = keel_fields_read(&o->type, j, args);
            json_decref(j);
            if (s == KEEL_OK && !o->passes) { /* of the others: test_optimizer_training.c */
                ran++;
                memset(slot, 0, sizeof slot);
                for (int e = 0; e < N; e++) w[0][e] = w[1][e] = sinf((float)e);
                for (int step = 1; step <= 3; step++) {
                    for (int e = 0; e < N; e++) g[e] = cosf((float)(e * step));
                    for (int k = 0; k < 2; k++)
                        for (int at = 0, n; at < N; at += n) {
                            n = k ? 1 + at % 37 : N;
                            if (n > N - at) n = N - at;
                            keel_update u = { .args = args,
                                              .iteration = step,
                                              .learning_rate = 0.01,
                                              .count = n,
                                              .w = w[k] + at,
                                              .g = g + at,
                                              .scale = 0.7,
                                              .clip = 0.5 };
                            for (int q = 0; q < KEEL_SLOTS_MAX; q++) u.slot[q] = slot[k][q] + at;
                            o->apply[0](&u);
                        }
                }
                assert_memory_equal(w[0], w[1], sizeof w[0]);
                assert_memory_equal(slot[0], slot[1], sizeof slot[0]);
            }
            if (s == KEEL_OK) keel_fields_free(&o->type, args);
            keel_free(args);
        }
    assert_true(ran > 15);
}

static void what_a_weight_is_moved_by_is_a_question_of_its_name_and_shape(void **state)
{
    const struct {
        const char *name, *config;
        int rank;
        keel_slot_kind velocity; /* NONE: by Muon */
        keel_status status;
    } t[] = {
        { "dense/kernel", "{}", 2, KEEL_SLOT_NONE, KEEL_OK },
        { "dense/bias", "{}", 1, KEEL_SLOT_ALIKE, KEEL_OK },
        { "conv/kernel", "{}", 4, KEEL_SLOT_ALIKE, KEEL_OK },
        { "tokens/embeddings", "{}", 2, KEEL_SLOT_ALIKE, KEEL_OK },
        { "Embedding_1/kernel", "{}", 2, KEEL_SLOT_ALIKE, KEEL_OK },
        { "tokens/embeddings", "{\"exclude_embeddings\": false}", 2, KEEL_SLOT_NONE, KEEL_OK },
        { "out/kernel", "{\"exclude_layers\": [\"a\", \"out\"]}", 2, KEEL_SLOT_ALIKE, KEEL_OK },
        { "outer/kernel", "{\"exclude_layers\": [\"^out/\"]}", 2, KEEL_SLOT_NONE, KEEL_OK },
        { "block12/kernel", "{\"exclude_layers\": [\"k[0-9]+/\"]}", 2, KEEL_SLOT_ALIKE, KEEL_OK },
        { "a/kernel", "{\"exclude_layers\": [\"a(\"]}", 2, KEEL_SLOT_NONE, KEEL_EARG },
        { "a/kernel", "{\"exclude_layers\": [\"\\\\w\"]}", 2, KEEL_SLOT_NONE, KEEL_EUNSUP },
        { "a/kernel", "{\"exclude_layers\": [\"(?=a)\"]}", 2, KEEL_SLOT_NONE, KEEL_EUNSUP },
        { "a/kernel", "{\"exclude_layers\": [\"a{9999}{9999}\"]}", 2, KEEL_SLOT_NONE, KEEL_EUNSUP },
        { "a/kernel", "{\"exclude_layers\": []}", 2, KEEL_SLOT_NONE, KEEL_OK },
    };
    const keel_optimizer *o = (const keel_optimizer *)keel_optimizer_find("muon");
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const keel_weight_info info = { .name = t[i].name,
                                        .spec = { .shape = { t[i].rank, { 3, 4, 5, 6 } } } };
        keel_slots kept = { 0 };
        json_t *j = json_loads(t[i].config, 0, NULL);
        void *args = keel_calloc(1, o->type.args_size);
        assert_int_equal(keel_fields_read(&o->type, j, args), KEEL_OK);
        const keel_status s = keel_optimizer_slots(o, args, &info, &kept);
        if (s != t[i].status) fail_msg("case %zu: %d, %s", i, s, keel_error());
        if (s < 0) assert_non_null(strstr(keel_error(), "exclude_layers"));
        if (s >= 0) assert_int_equal(kept.at[1].kind, t[i].velocity);
        json_t *back = keel_fields_json(&o->type, args);
        if (json_object_get(j, "exclude_layers"))
            assert_true(json_equal(json_object_get(back, "exclude_layers"),
                                   json_object_get(j, "exclude_layers")));
        json_decref(back);
        json_decref(j);
        keel_fields_free(&o->type, args);
        keel_free(args);
    }
}

static void the_rates_of_schedules_are_those_of_keras(void **state)
{
    json_t *all = golden_load("schedules.json"), *k;
    const json_t *steps = json_object_get(all, "steps");
    size_t i;
    json_array_foreach(json_object_get(all, "cases"), i, k)
    {
        keel_object o = { 0 };
        if (keel_object_read(&o, k, keel_rate_find, "learning_rate") < 0)
            fail_msg("%s", keel_error());
        const keel_rate *rate = (const keel_rate *)o.type;
        for (size_t s = 0; s < json_array_size(steps); s++) {
            const double got = rate->at(o.args, json_integer_value(json_array_get(steps, s)));
            const double want = json_number_value(json_array_get(json_object_get(k, "rates"), s));
            if (!(fabs(got - want) <= 3e-7))
                fail_msg("case %zu, %s, step %d: %.17g instead of %.17g", i, o.type->name,
                         (int)json_integer_value(json_array_get(steps, s)), got, want);
        }
        keel_object_free(&o);
    }
    assert_true(i >= 30);
    json_decref(all);
}

static void a_schedule_that_makes_no_sense_is_refused(void **state)
{
    const struct {
        const char *config, *says;
    } t[] = {
        { "{\"class_name\": \"ExponentialDecay\", \"config\": {\"initial_learning_rate\": 1, "
          "\"decay_steps\": 0, \"decay_rate\": 0.5}}",
          "decay_steps" },
        { "{\"class_name\": \"CosineDecay\", \"config\": {\"decay_steps\": 5}}",
          "initial_learning_rate" },
        { "{\"class_name\": \"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [], "
          "\"values\": [1]}}",
          "boundaries" },
        { "{\"class_name\": \"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [3, \"a\"], "
          "\"values\": [1]}}",
          "boundaries" },
        { "{\"class_name\": \"PolynomialDecay\", \"config\": {\"initial_learning_rate\": 1, "
          "\"decay_steps\": 5, \"cycles\": true}}",
          "cycle" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        json_t *j = json_loads(t[i].config, 0, NULL);
        keel_object o = { 0 };
        assert_non_null(j);
        assert_int_equal(keel_object_read(&o, j, keel_rate_find, "learning_rate"), KEEL_EARG);
        assert_non_null(strstr(keel_error(), t[i].says));
        json_decref(j);
    }
    double three[] = { 1, 2, 3 };
    struct {
        keel_reals boundaries, values;
    } pieces = { { 2, three }, { 2, three } };
    const keel_rate *of = (const keel_rate *)keel_rate_find("PiecewiseConstantDecay");
    assert_int_equal(of->check(&pieces), KEEL_EARG);
    pieces.values.count = 3;
    assert_int_equal(of->check(&pieces), KEEL_OK);
}

/* The schedule that a text makes is that of the configuration. */
static void a_schedule_can_be_written_as_in_python(void **state)
{
    const struct {
        const char *text, *name, *config;
    } t[] = {
        { "CosineDecay(0.1, 1000)", "CosineDecay",
          "{\"initial_learning_rate\": 0.1, \"decay_steps\": 1000}" },
        { " CosineDecay ( 1e-1,1000 , alpha = .25,warmup_target=None ) ", "CosineDecay",
          "{\"initial_learning_rate\": 0.1, \"decay_steps\": 1000, \"alpha\": 0.25}" },
        { "CosineDecay(0.1, 1000, 0.5, 'slow', 0.2, 10)", "CosineDecay",
          "{\"initial_learning_rate\": 0.1, \"decay_steps\": 1000, \"alpha\": 0.5, "
          "\"warmup_target\": 0.2, \"warmup_steps\": 10}" },
        { "CosineDecayRestarts(0.1, 5, m_mul=0.5)", "CosineDecayRestarts",
          "{\"initial_learning_rate\": 0.1, \"first_decay_steps\": 5, \"m_mul\": 0.5}" },
        { "ExponentialDecay(0.1, 10, 0.9, True)", "ExponentialDecay",
          "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"decay_rate\": 0.9, "
          "\"staircase\": true}" },
        { "InverseTimeDecay(decay_rate=0.9, initial_learning_rate=0.1, decay_steps=10)",
          "InverseTimeDecay",
          "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"decay_rate\": 0.9}" },
        { "PolynomialDecay(0.1, 10, 0.01, 0.5, cycle=True,)", "PolynomialDecay",
          "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"end_learning_rate\": 0.01, "
          "\"power\": 0.5, \"cycle\": true}" },
        { "PiecewiseConstantDecay([100, 200], (0.1, 0.01, 0.001))", "PiecewiseConstantDecay",
          "{\"boundaries\": [100, 200], \"values\": [0.1, 0.01, 0.001]}" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        keel_object o = { 0 }, want = { 0 };
        json_t *config = json_loads(t[i].config, 0, NULL);
        json_t *whole = json_pack("{s:s, s:o}", "class_name", t[i].name, "config", config);
        assert_int_equal(keel_object_read(&want, whole, keel_rate_find, "rate"), KEEL_OK);
        if (keel_rate_parse(&o, t[i].text) < 0) fail_msg("%s: %s", t[i].text, keel_error());
        json_t *a = keel_object_json(&o), *b = keel_object_json(&want);
        if (!json_equal(a, b)) fail_msg("%s: %s", t[i].text, json_dumps(a, 0));
        json_decref(a);
        json_decref(b);
        json_decref(whole);
        keel_object_free(&o);
        keel_object_free(&want);
    }
}

static void a_schedule_that_cannot_be_read_says_why(void **state)
{
    const struct {
        const char *text, *says;
    } t[] = {
        { "CosinDecay(0.1, 1000)", "there is no schedule 'CosinDecay'" },
        { "", "there is no schedule ''" },
        { "(0.1)", "there is no schedule ''" },
        { "CosineDecay", "initial_learning_rate" },
        { "CosineDecay()", "initial_learning_rate" },
        { "CosineDecay(0.1)", "decay_steps" },
        { "CosineDecay(0.1, -5)", "decay_steps" },
        { "CosineDecay(0.1, many)", "decay_steps" },
        { "CosineDecay(0.1, 1000", "no ) at the end" },
        { "CosineDecay(0.1, 1000) * 2", "goes on behind" },
        { "CosineDecay(0.1, 1000, decay_steps=5)", "decay_steps is given twice" },
        { "CosineDecay(decay_steps=5, 0.1)", "without a name come first" },
        { "CosineDecay(0.1,, 5)", "decay_steps has no value" },
        { "CosineDecay(0.1, 5, alfa=1)", "no argument 'alfa' (did you mean 'alpha'?)" },
        { "ExponentialDecay(0.1, 5, 0.9, True, 'name', 7)", "6 arguments" },
        { "PiecewiseConstantDecay([1, 2], [0.1, 0.2])", "one value more" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        keel_object o = { 0 };
        assert_int_equal(keel_rate_parse(&o, t[i].text), KEEL_EARG);
        assert_null(o.type);
        if (!strstr(keel_error(), t[i].says))
            fail_msg("%s: '%s' does not say '%s'", t[i].text, keel_error(), t[i].says);
    }
}

static void a_saved_config_of_keras_is_read(void **state)
{
    json_t *j = json_loads(
        "{\"module\": \"keras.optimizers\", \"class_name\": \"AdamW\", \"config\": {\"name\": "
        "\"adam_w\","
        "\"learning_rate\": 0.0010000000474974513, \"weight_decay\": 0.004, \"clipnorm\": null,"
        "\"global_clipnorm\": null, \"clipvalue\": null, \"use_ema\": false, \"ema_momentum\": "
        "0.99,"
        "\"ema_overwrite_frequency\": null, \"loss_scale_factor\": null,"
        "\"gradient_accumulation_steps\": null, \"beta_1\": 0.9, \"beta_2\": 0.999, \"epsilon\": "
        "1e-07,"
        "\"amsgrad\": false}, \"registered_name\": null}",
        0, NULL);
    keel_object o = { 0 };
    if (keel_object_read(&o, j, keel_optimizer_find, "optimizer") < 0) fail_msg("%s", keel_error());
    const keel_optimizer_common *c = o.args;
    assert_true(c->weight_decay == 0.004 && isnan(c->clipnorm));
    keel_object_free(&o);
    json_t *config = json_object_get(j, "config");
    json_object_set_new(config, "use_ema", json_true());
    json_object_set_new(config, "gradient_accumulation_steps", json_integer(1));
    assert_int_equal(keel_object_read(&o, j, keel_optimizer_find, "optimizer"), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "gradient_accumulation_steps"));
    json_object_set_new(config, "gradient_accumulation_steps", json_integer(2));
    json_object_set_new(config, "ema_momentum", json_real(1.5));
    assert_int_equal(keel_object_read(&o, j, keel_optimizer_find, "optimizer"), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "ema_momentum"));
    json_decref(j);
    assert_non_null(keel_optimizer_find("sgd"));
    assert_non_null(keel_optimizer_find("adamw"));
    assert_null(keel_optimizer_find("adamx"));
    const keel_type *type = keel_optimizer_find("sgd");
    const keel_optimizer_common one = { .clipnorm = NAN, .clipvalue = 1, .global_clipnorm = NAN };
    const keel_optimizer_common two = { .clipnorm = 2, .clipvalue = 1, .global_clipnorm = NAN };
    assert_int_equal(keel_optimizer_check(type, &one), KEEL_OK);
    assert_int_equal(keel_optimizer_check(type, &two), KEEL_EARG);

    /* in Keras a clipvalue without an end clips nothing, and such a clipnorm makes NaN */
    j = json_loads("{\"class_name\": \"SGD\", \"config\": {\"clipvalue\": \"keel:Infinity\"}}", 0,
                   NULL);
    assert_int_equal(keel_object_read(&o, j, keel_optimizer_find, "optimizer"), KEEL_OK);
    assert_false(keel_clips(((const keel_optimizer_common *)o.args)->clipvalue));
    keel_object_free(&o);
    json_decref(j);
    j = json_loads("{\"class_name\": \"SGD\", \"config\": {\"clipnorm\": \"keel:Infinity\"}}", 0,
                   NULL);
    assert_int_equal(keel_object_read(&o, j, keel_optimizer_find, "optimizer"), KEEL_EARG);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_slots_are_those_of_keras),
        cmocka_unit_test(an_infinite_weight_stays_where_nothing_moves_it),
        cmocka_unit_test(weight_decay_may_be_none),
        cmocka_unit_test(tiles_change_no_bit),
        cmocka_unit_test(what_a_weight_is_moved_by_is_a_question_of_its_name_and_shape),
        cmocka_unit_test(the_rates_of_schedules_are_those_of_keras),
        cmocka_unit_test(a_schedule_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_schedule_can_be_written_as_in_python),
        cmocka_unit_test(a_schedule_that_cannot_be_read_says_why),
        cmocka_unit_test(a_saved_config_of_keras_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
