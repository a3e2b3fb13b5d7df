/* The answer does not depend on the number of devices: weights after two epochs on L lanes equal
 * one lane's, for every number of rows, batch size and lanes, with uneven tails and fewer rows than
 * lanes. Other networks and mixtures of their parts: test_exactness_networks.c. */
#include "exact_trainings.h"

static int64_t next_rows(int64_t n) /* 1..40, 96..104 */
{
    return n == 40 ? 96 : n + 1;
}

/* Every number of rows, batch size and number of lanes, without holes: each of these sizes either
 * alone or with BatchNorm, and with one of the four other options; two of three also with AdamW and
 * one of all six. Under a sanitizer every number occurs, but not with every other. */
static void every_size_gives_the_weights_of_one_lane(void **unused)
{
    (void)unused;
    static const int alone[] = { 0, BATCH_NORM, DROPOUT, SAMPLE_WEIGHT, CLASS_WEIGHT, L2 };
    for (int adamw = 0; adamw < 2; adamw++)
        for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
            const recipe r = { DENSE, alone[i] + adamw * ADAMW };
            for (int64_t n = 1; n <= ROWS; n = next_rows(n))
                for (int64_t batch = 1; batch <= 17; batch++) {
                    const int64_t place = n + batch * 3 + (int64_t)i;
                    const int64_t every = adamw   ? thin(9, 27, 34)
                                          : i < 2 ? thin(2, 7, 34)
                                                  : thin(4, 13, 34);
                    if (place % every == 0) sweep(&r, n, batch);
                }
        }
}

/* Row i is the i-th unit vector with target 1, so that weight i moves only with row i, and by
 * 2 * rate / (rows of its step): a row left out, trained twice or wrongly weighted shows. */
static void every_row_is_trained_exactly_once_an_epoch(void **unused)
{
    (void)unused;
    static float unit[ROWS * ROWS], target[ROWS];
    const double rate = 0.25;
    for (int i = 0; i < ROWS; i++) unit[i * ROWS + i] = target[i] = 1;
    for (int64_t n = 1; n <= ROWS; n = next_rows(n))
        for (int64_t batch = 1; batch <= 17; batch += thin(1, 3, 4))
            for (int on = 1; on <= STRATEGIES; on++) {
                keel_model *m;
                keel_dataset *d;
                keel_tensor w;
                const keel_tensor x = { KEEL_FLOAT32, { 2, { n, ROWS } }, unit };
                const keel_tensor y = { KEEL_FLOAT32, { 2, { n, 1 } }, target };
                must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
                must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", ROWS))));
                must(keel_model_add(m, "Dense",
                                    KEEL_ARGS(KEEL_ARG_STR("name", "dense"),
                                              KEEL_ARG_INT("units", 1),
                                              KEEL_ARG_BOOL("use_bias", false),
                                              KEEL_ARG_STR("kernel_initializer", "zeros"))));
                must(keel_model_compile(
                    m, &(keel_compile){
                           KEEL_COMPILE,
                           .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", rate)) },
                           .loss = { { "mse" } } }));
                must(keel_dataset_from_arrays(&d, &x, &y, NULL));
                must(keel_fit(
                    m, strategy[on], d,
                    &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = batch, .seed = 5 }, NULL));
                must(keel_model_get_weight(m, "dense/kernel", &w));
                const int64_t tail = n % batch;
                int64_t in_full = 0, in_tail = 0;
                for (int64_t i = 0; i < ROWS; i++) {
                    const double moved = ((float *)w.data)[i];
                    if (tail && fabs(moved - 2 * rate / (double)tail) < 1e-6)
                        in_tail++;
                    else if (fabs(moved - 2 * rate / (double)batch) < 1e-6)
                        in_full++;
                    else
                        assert_true(i >= n && moved == 0);
                }
                assert_int_equal(in_tail, tail);
                assert_int_equal(in_full, n - tail);
                keel_tensor_free(&w);
                keel_dataset_destroy(d);
                keel_model_destroy(m);
            }
}

/* To the bit: what rounding differs by, BatchNorm over two rows lets grow. */
static void a_row_s_output_does_not_depend_on_the_rows_beside_it(void **unused)
{
    (void)unused;
    enum { WIDE = 600, FEW = 18 };
    keel_model *m;
    keel_dataset *d;
    keel_tensor all, some;
    const keel_tensor x = { KEEL_FLOAT32, { 2, { FEW, WIDE } }, x_image };
    assert_true(FEW * WIDE <= ROWS * SIDE * SIDE * 3);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", WIDE))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 7))));
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    must(keel_predict(m, strategy[1], d, NULL, &all));
    for (int64_t batch = 1; batch <= 17; batch++) {
        must(keel_predict(m, strategy[1 + batch % LANES], d,
                          &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = batch }, &some));
        assert_memory_equal(all.data, some.data, FEW * 7 * sizeof(float));
        keel_tensor_free(&some);
    }
    keel_tensor_free(&all);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_s_output_does_not_depend_on_the_rows_beside_it),
        cmocka_unit_test(every_row_is_trained_exactly_once_an_epoch),
        cmocka_unit_test(every_size_gives_the_weights_of_one_lane),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
