/* Tables of which a step asks for a few rows: the gradient is made of the rows that were asked for.
 * Every optimizer moves the whole table as if it had a gradient of zeros elsewhere, on any devices
 * with the same bits; what rests stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"

enum { TABLE = 3000, WIDTH = 24, TOKENS = 7, ROWS = 22, BATCH = 8, LANES = 4 };

static const char *const devices[LANES] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };

static const struct {
    const char *name;
    keel_arg args[4];
    bool rests;
} optimizers[] = {
    { "SGD", { KEEL_ARG_FLOAT("learning_rate", 0.5) }, true },
    { "SGD", { KEEL_ARG_FLOAT("learning_rate", 0.5), KEEL_ARG_FLOAT("momentum", 0.5) }, false },
    { "SGD", { KEEL_ARG_FLOAT("learning_rate", 0.5), KEEL_ARG_FLOAT("weight_decay", 0.1) }, false },
    { "SGD", { KEEL_ARG_FLOAT("learning_rate", 0.5), KEEL_ARG_FLOAT("clipvalue", 0.001) }, true },
    { "SGD", { KEEL_ARG_FLOAT("learning_rate", 0.5), KEEL_ARG_FLOAT("clipnorm", 0.01) }, true },
    { "Adagrad", { KEEL_ARG_FLOAT("learning_rate", 0.1) }, true },
    { "Adam", { KEEL_ARG_FLOAT("learning_rate", 0.01) }, false },
    { "Lamb", { KEEL_ARG_FLOAT("learning_rate", 0.01) }, false },
};
enum { N_OPTIMIZER = sizeof optimizers / sizeof *optimizers };

/* Ids come several times in a row, and from the end; the last rows of the table are neighbours. */
static int32_t id_of(int64_t i, int64_t k)
{
    if (k == 0) return -1 - (int32_t)(i % 3);
    if (k == 1) return 17;
    return (int32_t)((i * 7919 + k * k * 131) % TABLE);
}

static keel_model *model_of(keel_dtype real, int optimizer)
{
    const keel_shape shape = KEEL_SHAPE(TOKENS);
    keel_symbol x;
    keel_model *m;
    must(keel_model_create(&m, NULL, real, 1));
    must(keel_model_input(m, &shape, NULL, &x));
    x = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_INT("input_dim", TABLE), KEEL_ARG_INT("output_dim", WIDTH)),
                  x);
    x = must_call(m, "GlobalAveragePooling1D", NULL, x);
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_STR("activation", "softmax")), x);
    must(keel_model_outputs(m, &x, 1));
    for (int k = 0; k < m->n_weight; k++)
        for (int64_t n = 0; n < keel_shape_count(&m->weight[k].info.spec.shape); n++) {
            const double v = (double)((n * 7919 + 131 * k) % 1021 - 510) / 1024;
            if (real == KEEL_FLOAT64)
                ((double *)m->weight[k].data)[n] = v;
            else
                ((float *)m->weight[k].data)[n] = (float)v;
        }
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { optimizers[optimizer].name, optimizers[optimizer].args },
                            .loss = { { "sparse_categorical_crossentropy" } } }));
    return m;
}

static keel_model *train(keel_dtype real, int optimizer, int lanes, int shards)
{
    static int32_t x[ROWS * TOKENS], y[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        y[i] = (int32_t)(i % 3);
        for (int64_t k = 0; k < TOKENS; k++) x[i * TOKENS + k] = id_of(i, k);
    }
    const keel_tensor tx = { KEEL_INT32, KEEL_SHAPE(ROWS, TOKENS), x };
    const keel_tensor ty = { KEEL_INT32, KEEL_SHAPE(ROWS), y };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 4,
                                       .no_shuffle = true };
    keel_model *m = model_of(real, optimizer);
    keel_strategy *s;
    keel_dataset *d;
    keel_history h;
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, devices[lanes]));
    if (shards) must(keel_strategy_reproducible(s, shards));
    must(keel_fit(m, s, d, &options, &h));
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return m;
}

static void any_devices_give_the_bits_of_one(void **unused)
{
    (void)unused;
    for (int o = 0; o < N_OPTIMIZER; o++)
        for (int shards = 0; shards < 9; shards += 8) {
            keel_model *one = train(KEEL_FLOAT32, o, 0, shards);
            for (int lanes = 1; lanes < LANES; lanes++) {
                keel_model *m = train(KEEL_FLOAT32, o, lanes, shards);
                assert_memory_equal(m->weight[0].data, one->weight[0].data,
                                    TABLE * WIDTH * sizeof(float));
                keel_model_destroy(m);
            }
            keel_model_destroy(one);
        }
}

/* float64 never moves a tile in parts, so its table is moved as a whole. */
static void the_table_is_moved_as_by_a_gradient_that_is_mostly_zero(void **unused)
{
    (void)unused;
    for (int o = 0; o < N_OPTIMIZER; o++) {
        keel_model *m = train(KEEL_FLOAT32, o, 1, 0), *wide = train(KEEL_FLOAT64, o, 1, 0);
        for (int64_t i = 0; i < TABLE * WIDTH; i++) {
            const double got = (double)((float *)m->weight[0].data)[i];
            const double want = ((double *)wide->weight[0].data)[i];
            if (!(fabs(got - want) <= 2e-5))
                fail_msg("%s %d: element %lld is %.9g instead of %.9g", optimizers[o].name, o,
                         (long long)i, got, want);
        }
        keel_model_destroy(m);
        keel_model_destroy(wide);
    }
}

static void what_rests_is_not_touched_and_all_else_is(void **unused)
{
    (void)unused;
    for (int o = 0; o < N_OPTIMIZER; o++) {
        bool asked[TABLE] = { false };
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t k = 0; k < TOKENS; k++) asked[(id_of(i, k) + TABLE) % TABLE] = true;
        keel_model *m = train(KEEL_FLOAT32, o, 1, 0), *before = model_of(KEEL_FLOAT32, o);
        const float *now = m->weight[0].data, *then = before->weight[0].data;
        int moved = 0;
        for (int r = 0; r < TABLE; r++) {
            const bool same = !memcmp(now + r * WIDTH, then + r * WIDTH, WIDTH * sizeof(float));
            if (asked[r])
                assert_false(same);
            else if (optimizers[o].rests)
                assert_true(same);
            moved += !same;
        }
        assert_true(moved > 50 && moved < (optimizers[o].rests ? 200 : TABLE + 1));
        keel_model_destroy(m);
        keel_model_destroy(before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_devices_give_the_bits_of_one),
        cmocka_unit_test(the_table_is_moved_as_by_a_gradient_that_is_mostly_zero),
        cmocka_unit_test(what_rests_is_not_touched_and_all_else_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
