/* Layers that change images by chance: what they draw and what they make of it, against Keras where
 * chance says what is known (tests/golden/augment.json); how draws lie; images as they are where
 * nothing trains. */
#include "ops_harness.h"
#include "golden.h"
#include "model/model.h"
#include "model/parts.h"
#include "ops/augmix.h"
#include "ops/elastic.h"
#include "ops/erase.h"
#include "ops/one_of.h"

static void must(keel_status s)
{
    if (s < 0) fail_msg("%s", keel_error());
}

/* A model of one layer. */
static keel_model *model_of(const char *class_name, const json_t *config, const keel_shape *shape)
{
    keel_model *m = NULL;
    keel_symbol in, out;
    int layer;
    must(keel_model_create(&m, "m", KEEL_FLOAT32, 1));
    must(keel_model_input(m, shape, NULL, &in));
    must(keel_model_new_layer(m, class_name, config, &layer));
    must(keel_model_new_node(m, layer, &(keel_model_call_of){ &in, 1 }, &out));
    must(keel_model_outputs(m, &out, 1));
    return m;
}

static keel_graph *emitted(const keel_model *m, bool training)
{
    keel_value in, out;
    keel_model_emission e = {
        .real = KEEL_FLOAT32, .training = training, .input = &in, .output = &out
    };
    must(keel_model_emit(m, &e));
    return e.graph;
}

/* Where the draws of a node are taken from; NULL: there are none. */
static keel_range *ranges_of(const keel_op *op, void *args)
{
    if (op == &keel_op_equalize) return NULL;
    if (op == &keel_op_elastic) return ((keel_elastic_args *)args)->range;
    if (op == &keel_op_warp) return ((keel_warp_args *)args)->range;
    if (op == &keel_op_smooth) return ((keel_smooth_args *)args)->range;
    if (op == &keel_op_erase) return ((keel_erase_args *)args)->range;
    assert_ptr_equal(op, &keel_op_recolor);
    return ((keel_recolor_args *)args)->range;
}

/* The op of a lab that is opened on a node's arguments instead of a case's words. */
static const void *given;
static size_t given_size;

static void give_args(void *args, const char *text)
{
    (void)text;
    memcpy(args, given, given_size);
}

static void open_lab(lab *l, const keel_op *op, const void *args, const keel_shape *s, int64_t rows)
{
    static keel_op with_args;
    char in[80];
    snprintf(in, sizeof in, "%lld,%lld,%lld", (long long)s->dim[0], (long long)s->dim[1],
             (long long)s->dim[2]);
    with_args = *op;
    with_args.args_for_case = give_args;
    given = args;
    given_size = op->args_size;
    must(lab_open(l, &with_args, &(keel_case){ in, NULL, NULL }, false, true, rows));
}

static void same_ranges(const char *name, const keel_range *have, const json_t *want)
{
    for (size_t i = 0; i < json_array_size(want); i++) {
        const json_t *pair = json_array_get(want, i);
        const double low = json_number_value(json_array_get(pair, 0));
        const double high = json_number_value(json_array_get(pair, 1));
        if (!golden_near(have[i].low, low, 1e-12) || !golden_near(have[i].high, high, 1e-12))
            fail_msg("%s: draw %zu is from %g to %g, in Keras from %g to %g", name, i, have[i].low,
                     have[i].high, low, high);
    }
}

/* Of a node that draws one of several ops for each row: that it is the k-th. Returns its ranges. */
static keel_range *choose(keel_one_of_args *args, int k)
{
    assert_true(k < args->n && args->which.low == 0 && args->which.high == args->n);
    args->which = (keel_range){ k, k };
    return ranges_of(args->choice[k].op, &args->choice[k].args);
}

static void known_draws_make_keras_s_images(void **state)
{
    (void)state;
    json_t *cases = golden_load("augment.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        char name[80];
        _Alignas(16) char args[sizeof(keel_one_of_args)];
        lab l;
        const json_t *draws = json_object_get(c, "draws"), *y = json_object_get(c, "y");
        const json_t *choice = json_object_get(c, "choice");
        const keel_shape shape = golden_shape(c, "in"), out = golden_shape(c, "out");
        snprintf(name, sizeof name, "%s %zu", golden_text(c, "class"), i);
        keel_model *m = model_of(golden_text(c, "class"), json_object_get(c, "config"), &shape);
        keel_graph *g = emitted(m, true);
        assert_int_equal(g->n_node, 1);
        const keel_node *node = &g->node[0].node;
        assert_true(node->op->args_size <= sizeof args);
        memcpy(args, node->args, node->op->args_size);
        keel_range *range = choice ? choose((void *)args, (int)json_integer_value(choice))
                                   : ranges_of(node->op, args);
        same_ranges(name, range, json_object_get(c, "ranges"));
        for (size_t k = 0; k < json_array_size(draws); k++)
            range[k].low = range[k].high = json_number_value(json_array_get(draws, k));
        open_lab(&l, node->op, args, &shape, 1);
        assert_true(keel_shape_equal(&l.node.out[0].shape, &out));
        for (int64_t k = 0; k < lab_in_count(&l, 0); k++)
            lab_set(&l, l.in[0], k, (double)((k * 37 + 11) % 101) / 101);
        lab_forward(&l, (int64_t[]){ 1 }, 1);
        assert_int_equal(json_array_size(y), lab_out_count(&l));
        for (size_t k = 0; k < json_array_size(y); k++) {
            const double got = lab_get(&l, l.out, (int64_t)k);
            const double want = json_number_value(json_array_get(y, k));
            if (!(fabs(got - want) <= 1e-5))
                fail_msg("%s: y[%zu] is %.9g, in Keras %.9g", name, k, got, want);
        }
        lab_close(&l);
        keel_graph_destroy(g);
        keel_model_destroy(m);
    }
    json_decref(cases);
    assert_int_equal(keel_memory_live(), 0);
}

static void images_stay_where_nothing_trains(void **state)
{
    (void)state;
    json_t *cases = golden_load("augment.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        const keel_shape shape = golden_shape(c, "in");
        const char *name = golden_text(c, "class");
        keel_model *m = model_of(name, json_object_get(c, "config"), &shape);
        keel_graph *g = emitted(m, false);
        if (g->n_node != (strcmp(name, "RandomCrop") == 0 ? 2 : 0)) fail_msg("%s", name);
        keel_graph_destroy(g);
        keel_model_destroy(m);
    }
    json_decref(cases);
    assert_int_equal(keel_memory_live(), 0);
}

/* Draws as brightness shows them: what is added to an image of one pixel of 0. A mean of 4096
 * uniform draws is off by 0.0045 of the range, 6 times that is never seen; of 8 equal parts each
 * has 512 with a deviation of 21. */
static void draws_lie_evenly_in_their_range(void **state)
{
    (void)state;
    enum { ROWS = 4096, PARTS = 8 };
    const keel_range range = { -0.5, 0.25 };
    const keel_recolor_args args = { .kind = KEEL_RECOLOR_BRIGHTNESS,
                                     .range = { range },
                                     .values = { -1, 1 } };
    int64_t seen[PARTS] = { 0 };
    double sum = 0;
    lab l;
    open_lab(&l, &keel_op_recolor, &args, KEEL_DIMS(1, 1, 1), ROWS);
    lab_fill(&l, l.in[0], ROWS, 0);
    lab_forward(&l, (int64_t[]){ ROWS }, 1);
    for (int64_t i = 0; i < ROWS; i++) {
        const double draw = lab_get(&l, l.out, i) / 2;
        const double part = (draw - range.low) / (range.high - range.low);
        if (!(part >= 0 && part <= 1)) fail_msg("row %lld draws %g", (long long)i, draw);
        seen[part < 1 ? (int)(part * PARTS) : PARTS - 1]++;
        sum += part;
    }
    assert_true(fabs(sum / ROWS - 0.5) < 6 * 0.0045);
    for (int i = 0; i < PARTS; i++) assert_true(llabs(seen[i] - ROWS / PARTS) < 6 * 21);
    lab_close(&l);
}

/* Half of the images are mirrored; no row as all others, no epoch as the one before. */
static void each_row_and_epoch_draws_for_itself(void **state)
{
    (void)state;
    enum { ROWS = 1024 };
    const keel_warp_args args = {
        .kind = KEEL_WARP_FLIP, .range = { { 0, 1 } }, .across = true, .nearest = true
    };
    bool before[ROWS];
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        int64_t flips = 0, changed = 0;
        lab l;
        open_lab(&l, &keel_op_warp, &args, KEEL_DIMS(1, 2, 1), ROWS);
        l.step.epoch = epoch;
        for (int64_t i = 0; i < 2 * ROWS; i++) lab_set(&l, l.in[0], i, (double)(i % 2));
        lab_forward(&l, (int64_t[]){ ROWS }, 1);
        for (int64_t i = 0; i < ROWS; i++) {
            const bool flipped = lab_get(&l, l.out, 2 * i) > 0;
            assert_true((lab_get(&l, l.out, 2 * i + 1) > 0) != flipped);
            flips += flipped;
            changed += epoch && flipped != before[i];
            before[i] = flipped;
        }
        assert_true(llabs(flips - ROWS / 2) < 6 * 16); /* the deviation is 16 */
        if (epoch) assert_true(llabs(changed - ROWS / 2) < 6 * 16);
        lab_close(&l);
    }
}

/* A crop shows every place that it can begin at. */
static void a_crop_reaches_all_places(void **state)
{
    (void)state;
    enum { ROWS = 256, SIDE = 5, CROP = 3, PLACES = SIDE - CROP + 1 };
    const keel_warp_args args = { .kind = KEEL_WARP_CROP,
                                  .range = { { 0, 1 }, { 0, 1 } },
                                  .size = { CROP, CROP },
                                  .nearest = true };
    int seen[PLACES][PLACES] = { { 0 } };
    lab l;
    open_lab(&l, &keel_op_warp, &args, KEEL_DIMS(SIDE, SIDE, 1), ROWS);
    for (int64_t i = 0; i < lab_in_count(&l, 0); i++)
        lab_set(&l, l.in[0], i, (double)(i % (SIDE * SIDE)));
    lab_forward(&l, (int64_t[]){ ROWS }, 1);
    for (int64_t row = 0; row < ROWS; row++) {
        const int first = (int)lab_get(&l, l.out, row * CROP * CROP);
        const int y = first / SIDE, x = first % SIDE;
        assert_true(y < PLACES && x < PLACES);
        seen[y][x]++;
        for (int i = 0; i < CROP * CROP; i++)
            assert_int_equal((int)lab_get(&l, l.out, row * CROP * CROP + i),
                             first + i / CROP * SIDE + i % CROP);
    }
    for (int y = 0; y < PLACES; y++)
        for (int x = 0; x < PLACES; x++) assert_true(seen[y][x] > 0);
    lab_close(&l);
}

static void changes_of_one_layer_draw_apart(void **state)
{
    (void)state;
    json_t *config = json_loads("{\"brightness_factor\": 0.5, \"contrast_factor\": 0.5,"
                                " \"saturation_factor\": 0.5, \"hue_factor\": 0.5}",
                                0, NULL);
    keel_model *m = model_of("RandomColorJitter", config, KEEL_DIMS(2, 2, 3));
    keel_graph *g = emitted(m, true);
    assert_int_equal(g->n_node, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(((const keel_recolor_args *)g->node[i].node.args)->first, 2 * i);
    keel_graph_destroy(g);
    keel_model_destroy(m);
    json_decref(config);
}

/* How often each op of a node is drawn. */
static void count_choices(const keel_one_of_args *a, int64_t rows, int64_t seen[KEEL_ONE_OF_MAX])
{
    keel_one_of_args args = *a;
    lab l;
    for (int k = 0; k < args.n; k++) /* choice k adds k / 16 to images of 0 */
        args.choice[k] =
            (keel_one_of_choice){ &keel_op_recolor,
                                  .args.recolor = { .kind = KEEL_RECOLOR_BRIGHTNESS,
                                                    .range = { { k / 16.0, k / 16.0 } },
                                                    .values = { 0, 1 } } };
    memset(seen, 0, KEEL_ONE_OF_MAX * sizeof *seen);
    open_lab(&l, &keel_op_one_of, &args, KEEL_DIMS(1, 1, 1), rows);
    lab_fill(&l, l.in[0], rows, 0);
    lab_forward(&l, (int64_t[]){ rows }, 1);
    for (int64_t i = 0; i < rows; i++) seen[(int)lround(16 * lab_get(&l, l.out, i))]++;
    lab_close(&l);
}

/* Each change is drawn as often as each other, and no two draws of a layer are the same. */
static void changes_of_a_policy_are_drawn_alike(void **state)
{
    static const struct {
        const char *layer, *config;
        int nodes, choices;
        bool stays; /* one of the choices is no change */
    } cases[] = {
        { "RandAugment", "{\"num_ops\": 3}", 3, 11, false },
        { "RandAugment", "{\"num_ops\": 0}", 0, 0, false },
        { "AugMix", "{\"num_chains\": 2, \"chain_depth\": 2}", 4, 12, true },
        { "AugMix", "{\"chain_depth\": 1, \"all_ops\": false}", 3, 8, true },
    };
    enum { ROWS = 4096 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *config = json_loads(cases[i].config, 0, NULL);
        keel_model *m = model_of(cases[i].layer, config, KEEL_DIMS(2, 2, 3));
        keel_graph *g = emitted(m, true);
        uint32_t number[64 * KEEL_ONE_OF_MAX];
        int n_number = 0, n_node = 0;
        for (int k = 0; k < g->n_node; k++) {
            const keel_one_of_args *a = g->node[k].node.args;
            int64_t seen[KEEL_ONE_OF_MAX];
            if (g->node[k].node.op != &keel_op_one_of) continue;
            n_node++;
            number[n_number++] = a->first;
            assert_int_equal(a->n, cases[i].choices);
            assert_true((a->choice[a->n - 1].op == NULL) == cases[i].stays);
            count_choices(a, ROWS, seen);
            for (int c = 0; c < a->n; c++) /* the deviation is below 22 */
                assert_true(llabs(seen[c] - ROWS / a->n) < 6 * 22);
            if (n_node > 1 && !cases[i].stays) continue; /* of RandAugment the same changes again */
            for (int c = 0; c < a->n; c++) {
                const keel_one_of_choice *to = &a->choice[c];
                if (to->op == &keel_op_recolor) number[n_number++] = to->args.recolor.first;
                if (to->op == &keel_op_warp) number[n_number++] = to->args.warp.first;
                if (to->op == &keel_op_smooth) number[n_number++] = to->args.smooth.first;
            }
        }
        assert_int_equal(n_node, cases[i].nodes);
        for (int a = 0; a < n_number; a++)
            for (int b = 0; b < a; b++) assert_true(number[a] != number[b]);
        keel_graph_destroy(g);
        keel_model_destroy(m);
        json_decref(config);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* The share of an image itself has a Beta distribution of mean 1/2 and variance 1 / (8 alpha + 4);
 * that of each of three chains Dirichlet's, of mean 1/3 and variance 2 / (9 (3 alpha + 1)). Seen in
 * an image of three channels, which are 0 but for one input each. */
static void shares_of_chains_are_distributed_as_in_keras(void **state)
{
    static const double alphas[] = { 0.25, 1, 4 };
    enum { ROWS = 4096, CHAINS = 3, INS = 1 + CHAINS };
    (void)state;
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        const keel_augmix_args args = { .alpha = alphas[i], .first = 17, .values = { 0, 1 } };
        double sum[INS] = { 0 }, squares[INS] = { 0 };
        lab l;
        static keel_op with_args;
        with_args = keel_op_augmix;
        with_args.args_for_case = give_args;
        given = &args;
        given_size = sizeof args;
        must(lab_open(&l, &with_args, &(keel_case){ "1,1,4|1,1,4|1,1,4|1,1,4", NULL, NULL }, true,
                      true, ROWS));
        for (int64_t k = 0; k < INS; k++)
            for (int64_t at = 0; at < ROWS * INS; at++) lab_set(&l, l.in[k], at, at % INS == k);
        lab_forward(&l, (int64_t[]){ ROWS }, 1);
        for (int64_t row = 0; row < ROWS; row++) {
            const double own = lab_get(&l, l.out, row * INS);
            double all = own;
            for (int64_t k = 0; k < INS; k++) {
                const double share = lab_get(&l, l.out, row * INS + k);
                const double v = k && own < 1 ? share / (1 - own) : share;
                assert_true(share >= 0 && share <= 1);
                if (k) all += share;
                sum[k] += v;
                squares[k] += v * v;
            }
            assert_true(fabs(all - 1) < 1e-12);
        }
        for (int k = 0; k < INS; k++) {
            const double mean = k ? 1.0 / CHAINS : 0.5, a = alphas[i];
            const double variance = k ? 2 / (9 * (3 * a + 1)) : 1 / (8 * a + 4);
            const double have = sum[k] / ROWS;
            assert_true(fabs(have - mean) < 6 * sqrt(variance / ROWS));
            assert_true(fabs(squares[k] / ROWS - have * have - variance) < 0.1 * variance);
        }
        lab_close(&l);
    }
}

/* As often as its probability says, and then by a field that differs from row to row. */
static void images_are_bent_by_fields_of_their_own(void **state)
{
    enum { ROWS = 1024, SIDE = 4, COUNT = SIDE * SIDE };
    const keel_elastic_args args = { .range = { { 0.25, 0.25 }, { 0, 1 }, { 1, 1 } },
                                     .fill = KEEL_ELASTIC_NEAREST,
                                     .values = { -1, 1 } };
    int64_t bent = 0, alike = 0;
    lab l;
    (void)state;
    open_lab(&l, &keel_op_elastic, &args, KEEL_DIMS(SIDE, SIDE, 1), ROWS);
    for (int64_t i = 0; i < ROWS * COUNT; i++) /* 0 to 15 sixteenths */
        lab_set(&l, l.in[0], i, (double)(i % COUNT) / COUNT);
    lab_forward(&l, (int64_t[]){ ROWS }, 1);
    for (int64_t row = 0, last = -1; row < ROWS; row++) {
        bool same = true, same_as_last = last >= 0;
        for (int64_t k = 0; k < COUNT; k++) {
            const double v = lab_get(&l, l.out, row * COUNT + k);
            same = same && v == (double)k / COUNT;
            same_as_last = same_as_last && v == lab_get(&l, l.out, last * COUNT + k);
        }
        bent += !same;
        alike += !same && same_as_last;
        if (!same) last = row;
    }
    assert_true(llabs(bent - ROWS / 4) < 6 * 14); /* the deviation is 14 */
    assert_int_equal(alike, 0);
    lab_close(&l);
}

static void rows_are_not_mixed_in_training(void **state)
{
    static const char *const layers[] = { "MixUp", "CutMix" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        keel_model *m = model_of(layers[i], NULL, KEEL_DIMS(2, 2, 3));
        keel_value in, out;
        keel_model_emission e = {
            .real = KEEL_FLOAT32, .training = true, .input = &in, .output = &out
        };
        assert_int_equal(keel_model_emit(m, &e), KEEL_EUNSUP);
        assert_non_null(strstr(keel_error(), "labels"));
        keel_graph *g = emitted(m, false);
        assert_int_equal(g->n_node, 0);
        keel_graph_destroy(g);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_draws_make_keras_s_images),
        cmocka_unit_test(images_stay_where_nothing_trains),
        cmocka_unit_test(draws_lie_evenly_in_their_range),
        cmocka_unit_test(each_row_and_epoch_draws_for_itself),
        cmocka_unit_test(a_crop_reaches_all_places),
        cmocka_unit_test(changes_of_one_layer_draw_apart),
        cmocka_unit_test(changes_of_a_policy_are_drawn_alike),
        cmocka_unit_test(shares_of_chains_are_distributed_as_in_keras),
        cmocka_unit_test(images_are_bent_by_fields_of_their_own),
        cmocka_unit_test(rows_are_not_mixed_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
