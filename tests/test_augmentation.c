/* Layers that change images by chance: what they draw and what they make of it, against Keras where
 * chance says what is known (tests/golden/augment.json); how draws lie; images as they are where
 * nothing trains. */
#include "ops_harness.h"
#include "golden.h"
#include "model/model.h"
#include "model/parts.h"
#include "ops/erase.h"
#include "ops/recolor.h"
#include "ops/smooth.h"
#include "ops/warp.h"

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

/* Where the draws of a node are taken from. */
static keel_range *ranges_of(const keel_op *op, void *args)
{
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

static void known_draws_make_keras_s_images(void **state)
{
    (void)state;
    json_t *cases = golden_load("augment.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        char name[80];
        _Alignas(16) char args[256];
        lab l;
        const json_t *draws = json_object_get(c, "draws"), *y = json_object_get(c, "y");
        const keel_shape shape = golden_shape(c, "in"), out = golden_shape(c, "out");
        snprintf(name, sizeof name, "%s %zu", golden_text(c, "class"), i);
        keel_model *m = model_of(golden_text(c, "class"), json_object_get(c, "config"), &shape);
        keel_graph *g = emitted(m, true);
        assert_int_equal(g->n_node, 1);
        const keel_node *node = &g->node[0].node;
        memcpy(args, node->args, node->op->args_size);
        keel_range *range = ranges_of(node->op, args);
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
        cmocka_unit_test(rows_are_not_mixed_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
