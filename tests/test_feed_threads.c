/* The feed under threads: the same stream for any number of them, and leaving at any moment. Run
 * under ThreadSanitizer too. The source is one of rows that take uneven time to read. */
#include "data/feed.h"
#include "data/source.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 211 };

typedef struct rows {
    _Atomic int reads;
    _Atomic int bad; /* this row fails; -1: none */
} rows;

static keel_status read_row(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    rows *r = (rows *)state;
    volatile unsigned work = 0;
    for (int64_t k = (i * 7919) % 23; k > 0; k--)
        for (int j = 0; j < 300; j++) work += (unsigned)j;
    atomic_fetch_add(&r->reads, 1);
    float *buffer = keel_scratch_reserve(s, 0, 64);
    if (!buffer) return KEEL_ENOMEM;
    if (i == r->bad || i == r->bad + 1) return keel_fail(KEEL_EIO, "row %d is bad", (int)i);
    *buffer = (float)i;
    ((float *)row->at[0])[0] = *buffer;
    if (row->at[1]) ((float *)row->at[1])[0] = (float)(i % 3);
    if (row->at[2]) ((float *)row->at[2])[0] = (float)(i + 1);
    return KEEL_OK;
}

static const keel_source slow = { .name = "slow", .read = read_row };

static keel_dataset *slow_rows(rows *r)
{
    const keel_data_field x = { .shape = { 1, { 1 } } }, y = { .dtype = KEEL_FLOAT32 };
    keel_data_spec spec = { .rows = N, .yields = -1 };
    keel_spec_add_xy(&spec, &x, &y, true);
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_create(&d, &slow, r, &spec, "slow"), KEEL_OK);
    return d;
}

/* FNV over everything that the epochs give. */
static uint64_t hash_of(const keel_dataset *d, keel_feed_options o)
{
    uint64_t h = 14695981039346656037u;
    keel_feed *f = NULL;
    keel_batch b;
    if (keel_feed_create(&f, d, &o) < 0) fail_msg("%s", keel_error());
    for (uint32_t e = 0; e < 3; e++) {
        assert_int_equal(keel_feed_begin_epoch(f, e), KEEL_OK);
        while (keel_feed_next(f, &b) == KEEL_OK) {
            for (int64_t i = 0; i < b.rows; i++) {
                const int x = (int)((const float *)b.field[0])[i];
                assert_int_equal((int)((const float *)b.field[1])[i], x % 3);
                assert_int_equal((int)((const float *)b.field[2])[i], x + 1);
                h = (h ^ (unsigned)x) * 1099511628211u;
            }
            h = (h ^ (uint64_t)b.rows ^ b.first_row << 20) * 1099511628211u;
            keel_feed_release(f, &b);
        }
    }
    keel_feed_destroy(f);
    return h;
}

static void the_stream_is_the_same_for_any_number_of_threads(void **state)
{
    rows r = { .bad = -5 };
    keel_dataset *d = slow_rows(&r);
    for (int end = KEEL_KEEP; end <= KEEL_WRAP; end++) {
        keel_feed_options o = { .batch_size = 16,
                                .shuffle = true,
                                .seed = 9,
                                .epochs = 3,
                                .end = (keel_end_of_data)end,
                                .threads = -1 };
        const uint64_t want = hash_of(d, o);
        for (o.threads = 1; o.threads <= 8; o.threads++)
            for (o.slots = 2; o.slots <= 5; o.slots += 3) assert_true(hash_of(d, o) == want);
    }
    keel_dataset_destroy(d);
}

static void the_first_failing_row_is_told_whoever_meets_it(void **state)
{
    rows r = { .bad = 37 };
    keel_dataset *d = slow_rows(&r);
    for (int threads = 1; threads <= 8; threads++) {
        keel_feed *f = NULL;
        keel_batch b;
        const keel_feed_options o = { .batch_size = 30, .threads = threads };
        r.bad = 37;
        assert_int_equal(keel_feed_create(&f, d, &o), KEEL_OK);
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
        assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
        keel_feed_release(f, &b);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(keel_feed_next(f, &b), KEEL_EIO);
            assert_non_null(strstr(keel_error(), "row 37 is bad"));
            assert_non_null(strstr(keel_error(), "step 2 of epoch 1, row 37 of slow"));
        }
        r.bad = -5;
        assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
        assert_int_equal((int)((const float *)b.field[0])[7], 37);
        keel_feed_release(f, &b);
        keel_feed_destroy(f);
    }
    keel_dataset_destroy(d);
}

static void a_feed_can_be_left_and_begun_again_at_any_moment(void **state)
{
    rows r = { .bad = -5 };
    keel_dataset *d = slow_rows(&r);
    for (int stop = 0; stop < 14; stop++)
        for (int threads = 1; threads <= 4; threads++) {
            keel_feed *f = NULL;
            keel_batch b;
            const keel_feed_options o = { .batch_size = 16, .epochs = 3, .threads = threads };
            assert_int_equal(keel_feed_create(&f, d, &o), KEEL_OK);
            for (uint32_t e = 0; e < 3; e++) {
                assert_int_equal(keel_feed_begin_epoch(f, (e * 2) % 3), KEEL_OK);
                for (int i = 0; i < stop; i++) {
                    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
                    assert_int_equal((int)((const float *)b.field[0])[0], 16 * i);
                    if (i % 3 == 1) {
                        keel_feed_retry(f, &b);
                        assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
                        assert_int_equal((int)((const float *)b.field[0])[0], 16 * i);
                    }
                    keel_feed_release(f, &b);
                }
            }
            keel_feed_destroy(f);
        }
    keel_dataset_destroy(d);
}

typedef struct counter {
    int at, end;
} counter;

static keel_status count_next(void *context, void *x, void *y, float *weight, int64_t capacity,
                              int64_t *n)
{
    counter *c = context;
    if (c->at == c->end) return KEEL_END;
    for (*n = 0; *n < capacity && c->at < c->end; ++*n) {
        ((float *)x)[*n] = (float)c->at;
        ((float *)y)[*n] = (float)(c->at % 3);
        weight[*n] = (float)++c->at;
    }
    return KEEL_OK;
}

static keel_status count_reset(void *context)
{
    ((counter *)context)->at = 0;
    return KEEL_OK;
}

static void a_generator_in_a_thread_gives_what_it_gives_without(void **state)
{
    counter c = { .end = N };
    const keel_generator g = { .size = sizeof g,
                               .context = &c,
                               .x_shape = { 1, { 1 } },
                               .has_y = true,
                               .has_weight = true,
                               .max_rows = 7,
                               .next = count_next,
                               .reset = count_reset };
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_from_generator(&d, &g), KEEL_OK);
    for (int end = KEEL_KEEP; end <= KEEL_WRAP; end++)
        for (int steps = 0; steps < 20; steps += 6) {
            keel_feed_options o = { .batch_size = 16,
                                    .epochs = 3,
                                    .end = (keel_end_of_data)end,
                                    .steps_per_epoch = steps,
                                    .threads = -1 };
            const uint64_t want = hash_of(d, o);
            for (o.threads = 0, o.slots = 2; o.slots < 6; o.slots++)
                assert_true(hash_of(d, o) == want);
        }
    for (int i = 0; i < 30; i++) { /* left in the middle of a callback or not */
        keel_feed *f = NULL;
        keel_batch b;
        assert_int_equal(keel_feed_create(&f, d, &(keel_feed_options){ .batch_size = 5 }), KEEL_OK);
        for (uint32_t e = 0; e < 3; e++) {
            assert_int_equal(keel_feed_begin_epoch(f, e), KEEL_OK);
            for (int k = 0; k < i; k++) {
                assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
                assert_int_equal((int)((const float *)b.field[0])[0], 5 * k);
                keel_feed_release(f, &b);
            }
        }
        keel_feed_destroy(f);
    }
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_is_the_same_for_any_number_of_threads),
        cmocka_unit_test(the_first_failing_row_is_told_whoever_meets_it),
        cmocka_unit_test(a_feed_can_be_left_and_begun_again_at_any_moment),
        cmocka_unit_test(a_generator_in_a_thread_gives_what_it_gives_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
