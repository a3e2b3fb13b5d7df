/* The feed on streams: generators and sequences, their failures, and what holds for streams and
 * rows by index alike: beginning an epoch again, resuming a run, weights that are refused. */
#include "feed_rows.h"

/* ---- generators -------------------------------------------------------------------------- */

typedef struct maker {
    int rows, at, resets, fail_at, per_yield, released;
    keel_status fail_with;
} maker;

static keel_status make_next(void *context, void *x, void *y, float *weight, int64_t capacity,
                             int64_t *rows)
{
    maker *m = context;
    if (m->fail_at && m->at >= m->fail_at) {
        m->fail_at = 0;
        return m->fail_with;
    }
    if (m->at >= m->rows) return KEEL_END;
    int64_t n = m->rows - m->at < m->per_yield ? m->rows - m->at : m->per_yield;
    for (int64_t i = 0; i < n && i < capacity; i++)
        for (int k = 0; k < 3; k++) ((float *)x)[3 * i + k] = (float)((m->at + i) * 10 + k);
    m->at += (int)n;
    *rows = n;
    return KEEL_OK;
}

static keel_status make_reset(void *context)
{
    maker *m = context;
    m->at = 0;
    m->resets++;
    return KEEL_OK;
}

static void make_release(void *context)
{
    ((maker *)context)->released++;
}

static keel_generator generator(maker *m)
{
    return (keel_generator){ .size = sizeof(keel_generator),
                             .context = m,
                             .x_shape = { 1, { 3 } },
                             .max_rows = 8,
                             .name = "camera",
                             .next = make_next,
                             .reset = make_reset,
                             .release = make_release };
}

static keel_dataset *dataset_of(const keel_generator *g)
{
    keel_dataset *d = NULL;
    if (keel_dataset_from_generator(&d, g) < 0) fail_msg("%s", keel_error());
    return d;
}

static void each_yield_is_a_step_where_no_batch_size_is_given(void **state)
{
    for (int threads = -1; threads < 2; threads += 2) {
        maker m = { .rows = 20, .per_yield = 8 };
        const keel_generator g = generator(&m);
        keel_dataset *d = dataset_of(&g);
        keel_feed *f = feed_of(d, (keel_feed_options){ .epochs = 2, .threads = threads });
        keel_batch b;
        bool complete;
        int64_t counts[4];
        assert_int_equal(keel_feed_steps(f), -1);
        assert_int_equal(keel_feed_row_counts(f, counts, 4, &complete), 1);
        assert_int_equal(counts[0], 8);
        assert_false(complete);
        for (uint32_t e = 0; e < 2; e++) {
            assert_int_equal(keel_feed_begin_epoch(f, e), KEEL_OK);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
                assert_int_equal(b.rows, i < 2 ? 8 : 4);
                assert_int_equal(row_of(&b, 0), 8 * i);
                keel_feed_release(f, &b);
            }
            assert_int_equal(keel_feed_next(f, &b), KEEL_END);
        }
        keel_feed_destroy(f);
        assert_int_equal(m.resets, 1);
        keel_dataset_destroy(d);
        assert_int_equal(m.released, 1);
    }
}

static void a_generator_without_reset_is_refused_before_the_epoch_it_cannot_serve(void **state)
{
    for (int threads = -1; threads < 2; threads += 2) {
        maker m = { .rows = 20, .per_yield = 8 };
        keel_generator g = generator(&m);
        keel_feed *f = NULL;
        keel_batch b;
        int rows[64];
        g.reset = NULL;
        keel_dataset *d = dataset_of(&g);
        /* known before step 1 where the epochs are */
        assert_int_equal(keel_feed_create(&f, d, &(keel_feed_options){ .epochs = 2 }), KEEL_EDATA);
        assert_non_null(strstr(keel_error(), "camera has no reset"));
        assert_int_equal(m.at, 0);
        f = feed_of(d, (keel_feed_options){ .batch_size = 6, .threads = threads });
        assert_int_equal(read_epoch(f, 0, rows), 20);
        assert_int_equal(keel_feed_begin_epoch(f, 1), KEEL_EDATA);
        assert_non_null(strstr(keel_error(), "epoch 2"));
        assert_int_equal(keel_feed_next(f, &b), KEEL_EDATA);
        keel_feed_destroy(f);
        f = feed_of(d, (keel_feed_options){ .batch_size = 6, .threads = threads });
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_EDATA); /* used up by the other feed */
        assert_non_null(strstr(keel_error(), "used up"));
        keel_feed_destroy(f);
        keel_dataset_destroy(d);

        m = (maker){ .rows = 20, .per_yield = 8 };
        d = dataset_of(&g);
        f = feed_of(d,
                    (keel_feed_options){
                        .batch_size = 4, .steps_per_epoch = 2, .epochs = 4, .threads = threads });
        assert_int_equal(read_epoch(f, 0, rows), 8);
        assert_int_equal(read_epoch(f, 1, rows), 8);
        assert_int_equal(rows[0], 8); /* goes on where the epoch before stopped */
        assert_int_equal(read_epoch(f, 2, rows), 4);
        assert_non_null(strstr(keel_feed_note(f), "epoch 3 ends early"));
        assert_int_equal(keel_feed_begin_epoch(f, 3), KEEL_EDATA);
        keel_feed_destroy(f);
        keel_dataset_destroy(d);

        g.rows = 20; /* where the rows are known it is refused at once */
        d = dataset_of(&g);
        const keel_feed_options o = { .batch_size = 4, .steps_per_epoch = 3, .epochs = 3 };
        assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EDATA);
        assert_non_null(strstr(keel_error(), "too few for 3 epochs of 3 steps"));
        keel_dataset_destroy(d);
    }
}

static void an_endless_generator_needs_steps(void **state)
{
    maker m = { .rows = 1 << 20, .per_yield = 5 };
    keel_generator g = generator(&m);
    keel_feed *f = NULL;
    int rows[64];
    g.endless = true;
    g.reset = NULL;
    keel_dataset *d = dataset_of(&g);
    assert_int_equal(keel_feed_create(&f, d, &(keel_feed_options){ .batch_size = 4 }), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "never ends: say how many steps an epoch has"));
    f = feed_of(d, (keel_feed_options){ .batch_size = 4, .steps_per_epoch = 3, .epochs = 3 });
    for (uint32_t e = 0; e < 3; e++) {
        assert_int_equal(read_epoch(f, e, rows), 12);
        assert_int_equal(rows[0], 12 * e);
    }
    keel_feed_destroy(f);
    assert_in_range(m.at, 36, 40); /* nothing was asked for beyond what was planned */
    keel_dataset_destroy(d);
}

static void a_failed_callback_loses_no_row(void **state)
{
    for (int threads = -1; threads < 2; threads += 2)
        for (int fail_at = 1; fail_at < 20; fail_at++) {
            maker m = { .rows = 20, .per_yield = 3, .fail_at = fail_at, .fail_with = KEEL_EIO };
            const keel_generator g = generator(&m);
            keel_dataset *d = dataset_of(&g);
            keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 4, .threads = threads });
            keel_batch b;
            keel_status s;
            int n = 0, failures = 0;
            assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
            while ((s = keel_feed_next(f, &b)) != KEEL_END) {
                if (s < 0) {
                    assert_int_equal(s, KEEL_ECALLBACK);
                    assert_non_null(strstr(keel_error(), "camera: next returned KEEL_EIO"));
                    assert_non_null(strstr(keel_error(), "of epoch 1"));
                    failures++;
                    continue;
                }
                for (int64_t i = 0; i < b.rows; i++) assert_int_equal(row_of(&b, i), n++);
                keel_feed_release(f, &b);
            }
            assert_int_equal(n, 20);
            assert_int_equal(failures, fail_at < 20);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
}

static keel_status say_next(void *context, void *x, void *y, float *weight, int64_t capacity,
                            int64_t *rows)
{
    (void)x, (void)y, (void)weight, (void)capacity, (void)rows;
    const char *text = context;
    return text ? keel_error_set(KEEL_EIO, text) : KEEL_EIO;
}

static keel_status say_get(void *context, int64_t i, void *x, void *y, float *weight,
                           int64_t capacity, int64_t *rows)
{
    (void)i;
    return say_next(context, x, y, weight, capacity, rows);
}

static int64_t say_length(void *context)
{
    (void)context;
    return 3;
}

static void what_a_callback_says_of_its_failure_is_kept(void **state)
{
    static const struct {
        const char *said, *next, *get;
    } cases[] = {
        { "no light\n", "camera: next returned KEEL_EIO: no light ",
          "camera: get of batch 0 returned KEEL_EIO: no light " },
        { NULL, "camera: next returned KEEL_EIO", "camera: get of batch 0 returned KEEL_EIO" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int sequence = 0; sequence < 2; sequence++) {
            keel_dataset *d = NULL;
            keel_batch b;
            keel_generator g = { .size = sizeof g,
                                 .context = (void *)cases[i].said,
                                 .x_shape = { 1, { 3 } },
                                 .max_rows = 8,
                                 .name = "camera",
                                 .next = say_next };
            keel_sequence q = { .size = sizeof q,
                                .context = (void *)cases[i].said,
                                .x_shape = { 1, { 3 } },
                                .max_rows = 8,
                                .name = "camera",
                                .length = say_length,
                                .get = say_get };
            if ((sequence ? keel_dataset_from_sequence(&d, &q)
                          : keel_dataset_from_generator(&d, &g)) < 0)
                fail_msg("%s", keel_error());
            keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 4, .threads = 1 });
            assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
            keel_error_set(KEEL_OK, "an older text");
            assert_int_equal(keel_feed_next(f, &b), KEEL_ECALLBACK);
            const char *want = sequence ? cases[i].get : cases[i].next;
            const char *at = strstr(keel_error(), want);
            if (!at || strcmp(at, want) != 0) fail_msg("%s", keel_error());
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
}

static void a_generator_that_lies_is_found_out(void **state)
{
    static const struct {
        int rows, per_yield, says;
        const char *text;
    } liar[] = {
        { 20, 9, 0, "max_rows is 8" },
        { 20, -1, 0, "next returned -1 rows" },
        { 20, 0, 0, "empty yields in succession" },
        { 20, 8, 30, "ended after 20 rows" },
        { 20, 8, 10, "more than the 10" },
        { 0, 8, 0, "has no rows" },
    };
    for (size_t i = 0; i < sizeof liar / sizeof *liar; i++) {
        maker m = { .rows = liar[i].rows, .per_yield = liar[i].per_yield };
        keel_generator g = generator(&m);
        g.rows = liar[i].says;
        keel_dataset *d = dataset_of(&g);
        keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 10, .threads = -1 });
        keel_batch b;
        keel_status s = keel_feed_begin_epoch(f, 0);
        while (s == KEEL_OK && (s = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
        if (s >= 0 || !strstr(keel_error(), liar[i].text)) fail_msg("%zu: %s", i, keel_error());
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

static void an_epoch_can_be_begun_again_and_again(void **state)
{
    for (int threads = -1; threads < 2; threads += 2) {
        maker m = { .rows = 20, .per_yield = 8 };
        const keel_generator g = generator(&m);
        keel_dataset *d[] = { dataset_of(&g), arrays() };
        for (int k = 0; k < 2; k++) {
            int rows[N];
            keel_batch b;
            keel_feed *f =
                feed_of(d[k], (keel_feed_options){ .batch_size = 6, .threads = threads });
            for (int i = 0; i < 3; i++) {
                assert_int_equal(read_epoch(f, 0, rows), k ? N : 20);
                assert_int_equal(rows[0], 0);
                assert_int_equal(rows[19], 19);
                /* left in the middle */
                assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
                assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
                keel_feed_release(f, &b);
            }
            keel_feed_destroy(f);
            keel_dataset_destroy(d[k]);
        }
    }
}

/* Validations: each looks at the same rows, where the data allows it. */
static void epochs_of_fewer_steps_begin_anew_if_asked(void **state)
{
    for (int threads = -1; threads < 2; threads += 2) {
        maker m = { .rows = 20, .per_yield = 8 }, once = m;
        const keel_generator g = generator(&m);
        keel_generator one_pass = generator(&once);
        one_pass.reset = NULL;
        keel_dataset *d[] = { dataset_of(&g), arrays(), dataset_of(&one_pass) };
        for (int k = 0; k < 3; k++) {
            int rows[N];
            int64_t counts[4];
            const int epochs = k < 2 ? 3 : 1;
            keel_feed *f = feed_of(d[k], (keel_feed_options){ .batch_size = 6,
                                                              .steps_per_epoch = 2,
                                                              .anew = true,
                                                              .epochs = epochs,
                                                              .threads = threads });
            for (int e = 0; e < epochs; e++) {
                assert_int_equal(read_epoch(f, (uint32_t)e, rows), 12);
                for (int i = 0; i < 12; i++) assert_int_equal(rows[i], i);
            }
            if (k == 1) assert_int_equal(keel_feed_row_counts(f, counts, 4, NULL), 1);
            keel_feed_destroy(f);
            keel_dataset_destroy(d[k]);
        }
    }
}

/* ---- sequences --------------------------------------------------------------------------- */

typedef struct album {
    int64_t length;
    int gets, ends, order[256];
} album;

static int64_t album_length(void *context)
{
    return ((album *)context)->length;
}

/* Batch i has rows 8 i .. 8 i + 7, the last one three. */
static keel_status album_get(void *context, int64_t i, void *x, void *y, float *weight,
                             int64_t capacity, int64_t *rows)
{
    album *a = context;
    *rows = i == a->length - 1 ? 3 : 8;
    for (int64_t k = 0; k < *rows; k++) {
        ((float *)x)[3 * k] = (float)((8 * i + k) * 10);
        ((float *)y)[k] = (float)i;
    }
    a->order[a->gets++] = (int)i;
    return i < a->length ? KEEL_OK : KEEL_EARG;
}

static keel_status album_end(void *context)
{
    ((album *)context)->ends++;
    return KEEL_OK;
}

static void a_sequence_gives_every_batch_once_a_pass_the_short_one_too(void **state)
{
    for (int threads = -1; threads < 2; threads += 2)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            album a = { .length = 5 };
            const keel_sequence q = { .size = sizeof q,
                                      .context = &a,
                                      .x_shape = { 1, { 3 } },
                                      .has_y = true,
                                      .max_rows = 8,
                                      .rows = 35,
                                      .length = album_length,
                                      .get = album_get,
                                      .on_epoch_end = album_end };
            keel_dataset *d = NULL;
            int rows[64], first[2][8] = { { 0 } };
            assert_int_equal(keel_dataset_from_sequence(&d, &q), KEEL_OK);
            keel_feed *f =
                feed_of(d, (keel_feed_options){
                               .shuffle = shuffle, .seed = 3, .epochs = 2, .threads = threads });
            int64_t counts[4];
            bool complete;
            assert_int_equal(keel_feed_steps(f), 5);
            assert_int_equal(keel_feed_rows(f), 35);
            assert_int_equal(keel_feed_row_counts(f, counts, 4, &complete), 2);
            assert_true(complete && counts[0] == 8 && counts[1] == 3);
            for (uint32_t e = 0; e < 2; e++) {
                bool seen[35] = { 0 };
                assert_int_equal(read_epoch(f, e, rows), 35);
                for (int i = 0; i < 35; i++) seen[rows[i]] = true;
                for (int i = 0; i < 35; i++) assert_true(seen[i]);
                for (int i = 0; i < 5; i++) first[e][i] = a.order[5 * e + i];
            }
            if (shuffle)
                assert_memory_not_equal(first[0], first[1], sizeof first[0]);
            else
                for (int i = 0; i < 5; i++) assert_int_equal(first[1][i], i);
            keel_feed_destroy(f);
            assert_int_equal(a.gets, 10);
            assert_int_equal(a.ends, 2);
            keel_dataset_destroy(d);
        }
}

static void a_sequence_goes_on_where_fewer_steps_are_asked(void **state)
{
    album a = { .length = 5 };
    const keel_sequence q = { .size = sizeof q,
                              .context = &a,
                              .x_shape = { 1, { 3 } },
                              .has_y = true,
                              .max_rows = 8,
                              .length = album_length,
                              .get = album_get,
                              .on_epoch_end = album_end };
    keel_dataset *d = NULL;
    int rows[64];
    assert_int_equal(keel_dataset_from_sequence(&d, &q), KEEL_OK);
    keel_feed *f = feed_of(d, (keel_feed_options){ .steps_per_epoch = 3, .epochs = 3 });
    assert_int_equal(keel_feed_steps(f), 3);
    assert_int_equal(read_epoch(f, 0, rows), 24);
    assert_int_equal(read_epoch(f, 1, rows), 8 + 3 + 8);
    assert_int_equal(read_epoch(f, 2, rows), 24);
    assert_int_equal(rows[0], 8);
    keel_feed_destroy(f);
    assert_int_equal(a.ends, 1);
    keel_dataset_destroy(d);
}

static void a_run_can_be_resumed_at_any_step(void **state)
{
    maker m = { .rows = N, .per_yield = 8 };
    const keel_generator g = generator(&m);
    keel_dataset *d[] = { arrays(), dataset_of(&g) };
    for (int k = 0; k < 2; k++) {
        for (int threads = -1; threads < 3; threads++)
            for (uint32_t e = 0; e < 3; e++) {
                int all[N], n = 0;
                keel_batch b;
                const keel_feed_options o = {
                    .batch_size = 10, .shuffle = true, .epochs = 3, .threads = threads
                };
                keel_feed *f = feed_of(d[k], o);
                read_epoch(f, e, all);
                for (int step = 0; step <= 11; step += 3) {
                    assert_int_equal(keel_feed_seek(f, e, step), KEEL_OK);
                    n = 10 * step;
                    while (keel_feed_next(f, &b) == KEEL_OK) {
                        assert_int_equal(b.first_row, n);
                        assert_int_equal(b.step, n / 10);
                        for (int64_t i = 0; i < b.rows; i++)
                            assert_int_equal(row_of(&b, i), all[n++]);
                        keel_feed_release(f, &b);
                    }
                    assert_int_equal(n, N);
                }
                assert_int_equal(keel_feed_seek(f, e, 12), KEEL_EARG);
                keel_feed_destroy(f);
            }
        keel_dataset_destroy(d[k]);
    }
}

static keel_status weigh_next(void *context, void *x, void *y, float *weight, int64_t capacity,
                              int64_t *rows)
{
    maker *m = context;
    const int first = m->at;
    const keel_status s = make_next(context, x, y, NULL, capacity, rows);
    for (int64_t i = 0; s == KEEL_OK && i < *rows; i++) weight[i] = first + i == 13 ? -1 : 1;
    return s;
}

static void a_weight_below_0_is_refused_with_its_row(void **state)
{
    static const float weights[] = { -0.5F, NAN, INFINITY };
    static const char *const says[] = { "row 7 is -0.5", "row 7 is nan", "row 7 is inf" };
    static float x[10], w[10];
    const keel_tensor tx = { KEEL_FLOAT32, { 1, { 10 } }, x };
    const keel_tensor tw = { KEEL_FLOAT32, { 2, { 10, 1 } }, w };
    keel_dataset *d = NULL;
    for (int i = 0; i < 3; i++) {
        w[7] = weights[i];
        assert_int_equal(keel_dataset_from_arrays(&d, &tx, NULL, &tw), KEEL_EDATA);
        if (!strstr(keel_error(), says[i])) fail_msg("%s", keel_error());
        assert_null(d);
    }
    /* rows of a generator are known when they come */
    maker m = { .rows = 24, .per_yield = 8 };
    keel_generator g = generator(&m);
    g.has_weight = true;
    g.next = weigh_next;
    d = dataset_of(&g);
    keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 5 });
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    keel_batch b;
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK); /* rows 0 to 4 of 8 that came */
    assert_true(b.weight_sum == 5);
    keel_feed_release(f, &b);
    for (int i = 0; i < 2; i++) { /* and asking again does not help */
        assert_int_equal(keel_feed_next(f, &b), KEEL_EDATA);
        if (!strstr(keel_error(), "camera: the weight of row 13 is -1"))
            fail_msg("%s", keel_error());
    }
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_yield_is_a_step_where_no_batch_size_is_given),
        cmocka_unit_test(a_generator_without_reset_is_refused_before_the_epoch_it_cannot_serve),
        cmocka_unit_test(an_endless_generator_needs_steps),
        cmocka_unit_test(a_failed_callback_loses_no_row),
        cmocka_unit_test(what_a_callback_says_of_its_failure_is_kept),
        cmocka_unit_test(a_generator_that_lies_is_found_out),
        cmocka_unit_test(an_epoch_can_be_begun_again_and_again),
        cmocka_unit_test(epochs_of_fewer_steps_begin_anew_if_asked),
        cmocka_unit_test(a_sequence_gives_every_batch_once_a_pass_the_short_one_too),
        cmocka_unit_test(a_sequence_goes_on_where_fewer_steps_are_asked),
        cmocka_unit_test(a_run_can_be_resumed_at_any_step),
        cmocka_unit_test(a_weight_below_0_is_refused_with_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
