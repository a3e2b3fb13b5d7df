/* Training on pipelines: batches found by index and the same batches through a stream give the same
 * bits, on any number of devices; how pipelines end, repeat and go on is tf.data's meaning. */
#include "data_files.h"
#include "must.h"
#include "training_rows.h"
#include <string.h>

static rows all;

static keel_dataset *source(void)
{
    keel_dataset *d;
    make_rows(&all, 0, ROWS, 5);
    const keel_tensor x = { KEEL_FLOAT32, { 2, { ROWS, 20 } }, all.x };
    const keel_tensor y = { KEEL_FLOAT32, { 1, { ROWS } }, all.y };
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    return d;
}

static keel_status all_stay(void *context, const keel_tensor *in, bool *keep,
                            const keel_element_place *at)
{
    (void)context;
    (void)in;
    (void)at;
    *keep = true;
    return KEEL_OK;
}

static void put(keel_dataset **d, keel_dataset *next)
{
    keel_dataset_destroy(*d);
    *d = next;
}

/* shuffle, batches of 16, of which `take` are taken if it is above 0, repeated. */
static keel_dataset *pipeline(bool streams, int64_t take, int64_t repeat)
{
    keel_dataset *d = source(), *next;
    const keel_filter f = { .size = sizeof f, .call = all_stay };
    must(keel_dataset_shuffle(&next, d, 20));
    put(&d, next);
    if (streams) {
        must(keel_dataset_filter(&next, d, &f));
        put(&d, next);
    }
    must(keel_dataset_batch(&next, d, 16, false));
    put(&d, next);
    if (take) {
        must(keel_dataset_take(&next, d, take));
        put(&d, next);
    }
    if (repeat) {
        must(keel_dataset_repeat(&next, d, repeat));
        put(&d, next);
    }
    return d;
}

enum { EPOCHS_MAX = 8 };

typedef struct outcome {
    keel_status status;
    int64_t epochs, steps;
    double loss[EPOCHS_MAX];
    float weight[20 * CLASSES];
} outcome;

static outcome fitted(const keel_dataset *d, const char *devices, const keel_fit_options *with)
{
    keel_model *m;
    keel_strategy *s;
    outcome o = { 0 };
    keel_history h = { 0 };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 20))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(m,
                            &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" },
                                             .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_strategy_create(&s, devices));
    must(keel_strategy_reproducible(s, 16));
    o.status = keel_fit(m, s, d, with, &h);
    if (o.status >= 0) {
        keel_tensor w;
        o.epochs = h.epochs;
        o.steps = h.steps;
        for (int64_t e = 0; e < h.epochs && e < EPOCHS_MAX; e++) o.loss[e] = h.value[e * h.count];
        must(keel_model_get_weight(m, keel_model_weight_name(m, 0), &w));
        memcpy(o.weight, w.data, sizeof o.weight);
        keel_tensor_free(&w);
    }
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return o;
}

/* ---- the same bits --------------------------------------------------------------------------- */

static void by_index_and_as_a_stream_give_the_same_bits(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-4" };
    const keel_fit_options with = { KEEL_FIT_OPTIONS, .epochs = 3, .seed = 9 };
    outcome first;
    for (int streams = 0; streams < 2; streams++)
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
            keel_dataset *d = pipeline(streams, 0, 0);
            const outcome o = fitted(d, devices[i], &with);
            must(o.status);
            if (!streams && !i) first = o;
            assert_memory_equal(o.weight, first.weight, sizeof o.weight);
            assert_true(o.loss[2] < o.loss[0]);
            keel_dataset_destroy(d);
        }
}

/* ---- ends ------------------------------------------------------------------------------------ */

static const struct ends {
    const char *what;
    int64_t take, repeat; /* of 5 batches, the last of 6 rows; repeat -1: for ever */
    int64_t steps_per_epoch, epochs;
    int64_t steps; /* of each epoch */
    keel_status status;
} ends[] = {
    { "an epoch is the data", 0, 0, 0, 3, 5, KEEL_OK },
    { "take counts batches, in each epoch", 2, 0, 0, 3, 2, KEEL_OK },
    { "a repeat is part of an epoch", 0, 2, 0, 2, 10, KEEL_OK },
    { "steps_per_epoch cuts epochs from the data", 0, 0, 2, 3, 2, KEEL_OK },
    { "more steps_per_epoch than batches: epochs end early", 0, 0, 7, 2, 5, KEEL_OK },
    { "steps_per_epoch of data without end", 0, -1, 7, 3, 7, KEEL_OK },
    { "data without end needs steps_per_epoch", 0, -1, 0, 1, 0, KEEL_EDATA },
};

static void it_ends(void **state)
{
    const struct ends *e = *state;
    const keel_fit_options with = { KEEL_FIT_OPTIONS, .epochs = e->epochs, .seed = 9,
                                    .steps_per_epoch = e->steps_per_epoch };
    for (int streams = 0; streams < 2; streams++) {
        keel_dataset *d = pipeline(streams, e->take, e->repeat);
        const outcome o = fitted(d, "cpu:0-1", &with);
        assert_int_equal(o.status, e->status);
        if (o.status >= 0) assert_int_equal(o.epochs, e->epochs);
        assert_int_equal(o.steps, e->steps * o.epochs);
        keel_dataset_destroy(d);
    }
}

static void a_batch_size_beside_batches_is_refused(void **unused)
{
    (void)unused;
    keel_dataset *d = pipeline(false, 0, 0);
    const outcome o = fitted(d, "cpu:0", &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8 });
    assert_int_equal(o.status, KEEL_EARG);
    assert_non_null(strstr(keel_error(), "leave the batch size out"));
    keel_dataset_destroy(d);
}

static void rows_of_a_pipeline_are_batched_by_fit(void **unused)
{
    (void)unused;
    keel_dataset *d = source(), *some;
    must(keel_dataset_take(&some, d, 50));
    keel_dataset_destroy(d);
    const outcome o =
        fitted(some, "cpu:0-1", &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 16 });
    assert_int_equal(o.steps, 4);
    keel_dataset_destroy(some);
}

static keel_status weigh(void *context, const keel_tensor *in, keel_tensor *out,
                         const keel_element_place *at)
{
    (void)context;
    memcpy(out[0].data, in[0].data, 20 * sizeof(float));
    memcpy(out[1].data, in[1].data, sizeof(float));
    *(float *)out[2].data = at->index == 17 ? -1 : 1;
    return KEEL_OK;
}

static void a_weight_that_a_stage_makes_is_checked(void **unused)
{
    (void)unused;
    static const keel_data_field fields[] = {
        { .path = "x", .dtype = KEEL_FLOAT32, .shape = { 1, { 20 } }, .role = KEEL_ROLE_INPUT },
        { .path = "y", .dtype = KEEL_FLOAT32, .role = KEEL_ROLE_TARGET },
        { .path = "w", .dtype = KEEL_FLOAT32, .role = KEEL_ROLE_WEIGHT },
    };
    const keel_map map = { .size = sizeof map, .n_field = 3, .field = fields, .call = weigh };
    const keel_filter f = { .size = sizeof f, .call = all_stay };
    for (int streams = 0; streams < 2; streams++) {
        keel_dataset *d = source(), *next;
        must(keel_dataset_map(&next, d, &map));
        put(&d, next);
        if (streams) {
            must(keel_dataset_filter(&next, d, &f));
            put(&d, next);
        }
        const outcome o = fitted(d, "cpu:0-1", &(keel_fit_options){ KEEL_FIT_OPTIONS });
        assert_int_equal(o.status, KEEL_EDATA);
        assert_non_null(strstr(keel_error(), "-1"));
        keel_dataset_destroy(d);
    }
}

/* A shuffle whose order is of the run, but the same in each pass, and what is kept of it. */
static keel_dataset *kept_order(void)
{
    keel_dataset *d = source(), *next;
    must(keel_dataset_apply(&next, "shuffle",
                            KEEL_ARGS(KEEL_ARG_BOOL("reshuffle_each_iteration", false)), &d, 1));
    put(&d, next);
    must(keel_dataset_apply(&next, "cache", NULL, &d, 1));
    put(&d, next);
    return d;
}

static void a_cache_has_the_order_of_the_run_also_where_it_writes_checkpoints(void **unused)
{
    outcome o[2];
    (void)unused;
    files_begin();
    const keel_checkpoint_options checkpoint = { KEEL_CHECKPOINT_OPTIONS,
                                                 .folder = files_path("ckpt") };
    for (int k = 0; k < 2; k++) {
        keel_dataset *d = kept_order();
        o[k] = fitted(d, "cpu:0-1",
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 7, .seed = 4,
                                           .checkpoint = k ? &checkpoint : NULL });
        must(o[k].status);
        keel_dataset_destroy(d);
    }
    assert_memory_equal(o[0].weight, o[1].weight, sizeof o[0].weight);
    files_end();
}

int main(void)
{
    enum { N = sizeof ends / sizeof *ends };
    static struct CMUnitTest test[N + 5];
    for (int i = 0; i < N; i++)
        test[i] = (struct CMUnitTest){ ends[i].what, it_ends, NULL, NULL, (void *)&ends[i] };
    test[N] = (struct CMUnitTest)cmocka_unit_test(by_index_and_as_a_stream_give_the_same_bits);
    test[N + 1] = (struct CMUnitTest)cmocka_unit_test(a_batch_size_beside_batches_is_refused);
    test[N + 2] = (struct CMUnitTest)cmocka_unit_test(rows_of_a_pipeline_are_batched_by_fit);
    test[N + 3] = (struct CMUnitTest)cmocka_unit_test(a_weight_that_a_stage_makes_is_checked);
    test[N + 4] = (struct CMUnitTest)cmocka_unit_test(
        a_cache_has_the_order_of_the_run_also_where_it_writes_checkpoints);
    return cmocka_run_group_tests(test, NULL, NULL);
}
