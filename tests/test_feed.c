/* The feed on rows by index, beyond its table (test_feed_table.c): shuffling, batches without a
 * copy, weights, retries, allocations, and options that are refused. */
#include "feed_rows.h"

static void shuffling_is_a_permutation_that_only_seed_and_epoch_decide(void **state)
{
    int first[N], rows[N], epochs[3][N];
    keel_dataset *d = arrays();
    for (int threads = -1; threads <= 4; threads++)
        for (int batch = 1; batch < 40; batch += 13) {
            keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = batch,
                                                           .shuffle = true,
                                                           .seed = 5,
                                                           .epochs = 3,
                                                           .threads = threads });
            for (uint32_t e = 0; e < 3; e++) {
                bool seen[N] = { 0 };
                assert_int_equal(read_epoch(f, e, rows), N);
                for (int i = 0; i < N; i++) seen[rows[i]] = true;
                for (int i = 0; i < N; i++) assert_true(seen[i]);
                if (threads == -1 && batch == 1) memcpy(epochs[e], rows, sizeof rows);
                assert_memory_equal(rows, epochs[e], sizeof rows);
            }
            keel_feed_destroy(f);
        }
    assert_memory_not_equal(epochs[0], epochs[1], sizeof first);
    keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 8, .shuffle = true, .seed = 6 });
    read_epoch(f, 0, first);
    assert_memory_not_equal(first, epochs[0], sizeof first);
    /* any epoch can be asked for again: a resumed run sees the same rows */
    keel_feed_destroy(f);
    f = feed_of(d,
                (keel_feed_options){ .batch_size = 8, .shuffle = true, .seed = 5, .threads = 1 });
    read_epoch(f, 2, rows);
    assert_memory_equal(rows, epochs[2], sizeof rows);
    read_epoch(f, 1, rows);
    assert_memory_equal(rows, epochs[1], sizeof rows);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

static void batches_point_into_arrays_that_fit_as_they_are(void **state)
{
    keel_dataset *d = arrays();
    keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 10 });
    keel_batch b;
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    for (int i = 0; keel_feed_next(f, &b) == KEEL_OK; i++) {
        assert_ptr_equal(b.field[0], x_of[10 * i]);
        assert_ptr_equal(b.field[1], &y_of[10 * i]);
        assert_null(keel_batch_field(&b, KEEL_ROLE_WEIGHT, 0));
        assert_true(b.weight_sum == (double)b.rows);
        keel_feed_release(f, &b);
    }
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

static void rows_left_to_the_steps_are_those_that_the_feed_would_read(void **state)
{
    keel_dataset *d = arrays();
    const keel_feed_options o = { .batch_size = 10, .shuffle = true, .seed = 3 };
    keel_feed_options leaving = o;
    leaving.leaves_rows = true;
    keel_feed *f = feed_of(d, o), *g = feed_of(d, leaving);
    keel_batch a, b;
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(g, 0), KEEL_OK);
    for (int step = 0; keel_feed_next(f, &a) == KEEL_OK; step++) {
        assert_int_equal(keel_feed_next(g, &b), KEEL_OK);
        assert_null(a.unread);
        assert_non_null(b.unread);
        assert_int_equal(b.rows, a.rows);
        assert_true(b.weight_sum == a.weight_sum);
        if (step == 2) { /* the step failed, and is asked for again */
            keel_feed_read(&b, 0, 1);
            keel_feed_retry(g, &b);
            assert_int_equal(keel_feed_next(g, &b), KEEL_OK);
        }
        const int64_t cut = b.rows / 3;
        memset((void *)b.field[0], 0xff, (size_t)b.rows * sizeof x_of[0]);
        keel_feed_read(&b, cut, b.rows);
        keel_feed_read(&b, 0, cut);
        assert_memory_equal(b.field[0], a.field[0], (size_t)b.rows * sizeof x_of[0]);
        assert_memory_equal(b.field[1], a.field[1], (size_t)b.rows * sizeof *y_of);
        keel_feed_release(f, &a);
        keel_feed_release(g, &b);
    }
    keel_feed_destroy(f);
    keel_feed_destroy(g);
    keel_dataset_destroy(d);
}

static void class_weights_multiply_into_the_weights_of_rows(void **state)
{
    static const double weight[] = { 2, 0.5, 0 }; /* class 3 is not there: 1 */
    static float x[4], w[4] = { 1, 2, 3, 4 }, hot[4][4];
    static int32_t label[4] = { 0, 1, 2, 3 };
    for (int i = 0; i < 4; i++) hot[i][i] = 1;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { 4, 1 } }, x };
    const keel_tensor ty[] = { { KEEL_INT32, { 1, { 4 } }, label },
                               { KEEL_INT32, { 2, { 4, 1 } }, label },
                               { KEEL_FLOAT32, { 2, { 4, 4 } }, hot } };
    const keel_tensor tw = { KEEL_FLOAT32, { 1, { 4 } }, w };
    for (int kind = 0; kind < 3; kind++)
        for (int weighted = 0; weighted < 2; weighted++) {
            const float want[2][4] = { { 2, 0.5f, 0, 1 }, { 2, 1, 0, 4 } };
            keel_dataset *d = NULL;
            keel_batch b;
            assert_int_equal(keel_dataset_from_arrays(&d, &tx, &ty[kind], weighted ? &tw : NULL),
                             KEEL_OK);
            keel_feed *f =
                feed_of(d, (keel_feed_options){
                               .batch_size = 4, .class_weight = weight, .class_weight_count = 3 });
            assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
            assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
            assert_memory_equal(keel_batch_field(&b, KEEL_ROLE_WEIGHT, 0), want[weighted],
                                sizeof want[weighted]);
            assert_true(b.weight_sum == (weighted ? 7 : 3.5));
            keel_feed_release(f, &b);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
    assert_true(w[0] == 1 && w[2] == 3); /* the user's weights are as they were */
}

static void a_retried_step_gives_the_same_rows(void **state)
{
    keel_dataset *d = arrays();
    for (int threads = -1; threads <= 2; threads++) {
        keel_feed *f =
            feed_of(d, (keel_feed_options){
                           .batch_size = 10, .shuffle = true, .epochs = 2, .threads = threads });
        keel_batch b, again;
        int64_t rows = 0;
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
        while (keel_feed_next(f, &b) == KEEL_OK) {
            int before[10];
            for (int64_t i = 0; i < b.rows; i++) before[i] = row_of(&b, i);
            for (int k = 0; k < 2; k++) {
                keel_feed_retry(f, &b);
                assert_int_equal(keel_feed_next(f, &again), KEEL_OK);
                assert_int_equal(again.rows, b.rows);
                assert_int_equal(again.first_row, b.first_row);
                for (int64_t i = 0; i < b.rows; i++) assert_int_equal(row_of(&again, i), before[i]);
            }
            rows += b.rows;
            keel_feed_release(f, &again);
        }
        assert_int_equal(rows, N);
        keel_feed_destroy(f);
    }
    keel_dataset_destroy(d);
}

static void nothing_is_allocated_once_the_feed_is_made(void **state)
{
    keel_dataset *d = arrays();
    for (int threads = -1; threads <= 2; threads++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            int rows[N];
            keel_feed *f = feed_of(
                d, (keel_feed_options){
                       .batch_size = 7, .shuffle = shuffle, .epochs = 3, .threads = threads });
            const int64_t calls = keel_memory_calls();
            for (uint32_t e = 0; e < 3; e++) read_epoch(f, e, rows);
            assert_int_equal(keel_memory_calls(), calls);
            keel_feed_destroy(f);
        }
    keel_dataset_destroy(d);
}

typedef struct lender {
    int left, lent; /* buffers */
} lender;

static void *lend(void *context, size_t bytes)
{
    lender *x = context;
    if (x->left == 0) return NULL;
    x->left--;
    x->lent++;
    return keel_aligned_calloc(1, bytes);
}

static void take_back(void *context, void *at)
{
    ((lender *)context)->lent--;
    keel_free(at);
}

static void rows_lie_in_memory_that_is_lent_while_there_is_some(void **state)
{
    enum { SLOTS = 3, FIELDS = 2, BATCH = 10, X = BATCH * sizeof *x_of, Y = BATCH * sizeof *y_of };
    static const struct {
        int has, lent;
        int64_t refused;
    } cases[] = {
        { 0, 0, SLOTS * (X + Y) },
        { 1, 1, Y + (SLOTS - 1) * (X + Y) },
        { 2, 2, (SLOTS - 1) * (X + Y) },
        { SLOTS * FIELDS - 1, SLOTS * FIELDS - 1, Y },
        { SLOTS * FIELDS, SLOTS * FIELDS, 0 },
        { 100, SLOTS * FIELDS, 0 },
    };
    keel_dataset *d = arrays();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = -1; threads <= 2; threads += 3) {
            lender x = { .left = cases[i].has };
            int with[N], without[N];
            keel_feed_options o = {
                .batch_size = BATCH, .shuffle = true, .seed = 4, .slots = SLOTS, .threads = threads
            };
            keel_feed *g = feed_of(d, o);
            o.memory = (keel_row_memory){ lend, take_back, &x };
            keel_feed *f = feed_of(d, o);
            assert_int_equal(x.lent, cases[i].lent);
            assert_int_equal(keel_feed_refused(f), cases[i].refused);
            assert_int_equal(keel_feed_refused(g), 0);
            assert_int_equal(read_epoch(f, 0, with), N);
            assert_int_equal(read_epoch(g, 0, without), N);
            assert_memory_equal(with, without, sizeof with);
            keel_feed_destroy(f);
            keel_feed_destroy(g);
            assert_int_equal(x.lent, 0);
        }
    keel_dataset_destroy(d);
}

static void as_many_batches_can_be_held_as_there_are_slots(void **state)
{
    keel_dataset *d = arrays();
    keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 10, .slots = 2, .threads = 1 });
    keel_batch b[2], more;
    assert_int_equal(keel_feed_next(f, &more), KEEL_EARG); /* no epoch yet */
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b[0]), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b[1]), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &more), KEEL_EARG);
    keel_feed_release(f, &b[0]);
    assert_int_equal(keel_feed_next(f, &more), KEEL_OK);
    assert_int_equal(more.first_row, 20);
    keel_feed_release(f, &b[1]);
    keel_feed_release(f, &more);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    static const double minus[] = { -1 };
    static const struct {
        keel_feed_options o;
        keel_status status;
        const char *says;
    } bad[] = {
        { { .batch_size = 0 }, KEEL_EARG, "give a batch size" },
        { { .batch_size = -1 }, KEEL_EARG, "negative" },
        { { .batch_size = 8, .real = KEEL_INT32 }, KEEL_EARG, "float32 or float64" },
        { { .batch_size = 8, .end = (keel_end_of_data)9 }, KEEL_EARG, "policy" },
        { { .batch_size = 8, .slots = 1000 }, KEEL_EARG, "slots" },
        { { .batch_size = 8, .class_weight = minus, .class_weight_count = 1 }, KEEL_EARG, "-1" },
        { { .batch_size = 200, .end = KEEL_DROP }, KEEL_EDATA, "never fill" },
        { { .batch_size = 8, .end = KEEL_REFUSE }, KEEL_EDATA, "last batch of 7" },
        { { .batch_size = INT64_C(1) << 45, .end = KEEL_WRAP }, KEEL_EARG, "and this machine has" },
    };
    keel_dataset *d = arrays();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_feed *f = NULL;
        const int64_t live = keel_memory_live();
        if (keel_feed_create(&f, d, &bad[i].o) != bad[i].status ||
            !strstr(keel_error(), bad[i].says))
            fail_msg("%zu: %s", i, keel_error());
        assert_null(f);
        assert_int_equal(keel_memory_live(), live);
    }
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffling_is_a_permutation_that_only_seed_and_epoch_decide),
        cmocka_unit_test(batches_point_into_arrays_that_fit_as_they_are),
        cmocka_unit_test(rows_left_to_the_steps_are_those_that_the_feed_would_read),
        cmocka_unit_test(class_weights_multiply_into_the_weights_of_rows),
        cmocka_unit_test(a_retried_step_gives_the_same_rows),
        cmocka_unit_test(nothing_is_allocated_once_the_feed_is_made),
        cmocka_unit_test(rows_lie_in_memory_that_is_lent_while_there_is_some),
        cmocka_unit_test(as_many_batches_can_be_held_as_there_are_slots),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
