/* Sequences whose batches several threads get at once: the same rows in the same order as by one,
 * failures in their turn, and no call once nobody reads. */
#include "data/iter.h"
#include "data/pool.h"
#include "feed_rows.h"
#include "keel/pipeline.h"
#include <stdatomic.h>
#include <time.h>

enum { BATCHES = 23, EACH = 4 };

typedef struct album {
    _Atomic int gets, at_once, most, fail_at; /* fail_at: the batch that fails once; -1: none */
    _Atomic bool ended;                       /* on_epoch_end or length runs */
    _Atomic bool mixed;                       /* while a get did */
    bool meets;                               /* there are several workers */
    _Atomic bool met;
} album;

static void nap(int us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000L }, NULL);
}

static int64_t album_length(void *context)
{
    album *a = context;
    if (a->at_once) a->mixed = true;
    return BATCHES;
}

static keel_status album_end(void *context)
{
    album *a = context;
    if (a->at_once) a->mixed = true;
    return KEEL_OK;
}

static keel_status album_get(void *context, int64_t i, void *x, void *y, float *weight,
                             int64_t capacity, int64_t *rows)
{
    album *a = context;
    const int now = ++a->at_once;
    int most = a->most, failing = (int)i;
    while (now > most && !atomic_compare_exchange_weak(&a->most, &most, now)) {}
    /* The first waits for a second, however busy the machine is. */
    const bool waits = a->meets && !atomic_exchange(&a->met, true);
    for (int k = 0; waits && k < 50000 && a->most < 2; k++) nap(100);
    nap(100 + (int)(i * 7919 % 5) * 100); /* so that they end in another order */
    a->gets++;
    *rows = i == BATCHES - 1 ? 1 : EACH;
    for (int64_t k = 0; k < *rows; k++) ((float *)x)[3 * k] = (float)((EACH * i + k) * 10);
    a->at_once--;
    if (!atomic_compare_exchange_strong(&a->fail_at, &failing, -1)) return KEEL_OK;
    char text[64];
    snprintf(text, sizeof text, "page %d is torn", (int)i);
    return keel_error_set(KEEL_EIO, text);
}

static keel_sequence sequence(album *a, int workers)
{
    *a = (album){ .fail_at = -1, .meets = workers > 1 };
    return (keel_sequence){ .size = sizeof(keel_sequence),
                            .context = a,
                            .x_shape = { 1, { 3 } },
                            .max_rows = EACH,
                            .name = "album",
                            .length = album_length,
                            .get = album_get,
                            .on_epoch_end = album_end,
                            .workers = workers };
}

static keel_dataset *dataset_of(const keel_sequence *q)
{
    keel_dataset *d = NULL;
    if (keel_dataset_from_sequence(&d, q) < 0) fail_msg("%s", keel_error());
    return d;
}

static void rows_come_in_the_same_order_with_any_number_of_workers(void **state)
{
    static const int workers[] = { 0, 1, 2, 7, -1 };
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        int want[2][128];
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
            for (int threads = -1; threads < 2; threads += 2) {
                album a;
                const keel_sequence q = sequence(&a, workers[w]);
                keel_dataset *d = dataset_of(&q);
                keel_feed *f = feed_of(
                    d, (keel_feed_options){
                           .shuffle = shuffle, .seed = 3, .epochs = 2, .threads = threads });
                for (uint32_t e = 0; e < 2; e++) {
                    int rows[128];
                    assert_int_equal(read_epoch(f, e, w ? rows : want[e]),
                                     EACH * (BATCHES - 1) + 1);
                    if (w)
                        assert_memory_equal(rows, want[e],
                                            (EACH * (BATCHES - 1) + 1) * sizeof *rows);
                }
                keel_feed_destroy(f);
                assert_int_equal(a.gets, 2 * BATCHES);
                assert_false(a.mixed);
                if (workers[w] >= 0) assert_true(a.most <= (workers[w] ? workers[w] : 1));
                if (workers[w] > 1) assert_true(a.most > 1);
                keel_dataset_destroy(d);
            }
    }
}

static void a_batch_that_fails_does_so_in_its_turn_and_is_got_again(void **state)
{
    (void)state;
    for (int fail_at = 0; fail_at < BATCHES; fail_at += 11) {
        album a;
        const keel_sequence q = sequence(&a, 3);
        keel_dataset *d = dataset_of(&q);
        keel_feed *f = feed_of(d, (keel_feed_options){ .epochs = 1 });
        keel_batch b;
        a.fail_at = fail_at;
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
        for (int i = 0; i < BATCHES; i++) {
            keel_status s = keel_feed_next(f, &b);
            if (i == fail_at) {
                char want[64];
                snprintf(want, sizeof want, "page %d is torn", i);
                assert_int_equal(s, KEEL_ECALLBACK);
                assert_non_null(strstr(keel_error(), want));
                s = keel_feed_next(f, &b);
            }
            assert_int_equal(s, KEEL_OK);
            assert_int_equal(row_of(&b, 0), EACH * i);
            keel_feed_release(f, &b);
        }
        assert_int_equal(keel_feed_next(f, &b), KEEL_END);
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

static void nothing_is_called_once_nobody_reads(void **state)
{
    album a;
    const keel_sequence q = sequence(&a, 4);
    keel_dataset *d = dataset_of(&q);
    (void)state;
    for (int after = 0; after < 3; after++) {
        keel_feed *f = feed_of(d, (keel_feed_options){ .epochs = 1 });
        keel_batch b;
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
        for (int i = 0; i < after; i++) {
            assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
            assert_int_equal(row_of(&b, 0), EACH * i); /* a new feed begins again */
            keel_feed_release(f, &b);
        }
        keel_feed_destroy(f);
        const int gets = a.gets;
        assert_int_equal(a.at_once, 0);
        nap(3000);
        assert_int_equal(a.gets, gets);
    }
    for (int k = 0; k < 2; k++) { /* outside of training, too */
        keel_reader *r = NULL;
        const keel_tensor *field;
        assert_int_equal(keel_reader_create(&r, d, NULL), KEEL_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(keel_reader_next(r, &field), KEEL_OK);
            assert_true(((const float *)field[0].data)[0] == (float)(10 * EACH * i));
        }
        keel_reader_destroy(r);
        assert_int_equal(a.at_once, 0);
    }
    keel_dataset_destroy(d);
}

static keel_status get_shaped(void *context, int64_t i, const void **data, keel_shape *shape,
                              int64_t *rows)
{
    return KEEL_EUNSUP;
}

static void workers_that_cannot_be_are_refused(void **state)
{
    const keel_data_field field = { .path = "x", .shape = { 1, { 3 } } };
    album a;
    keel_sequence q = sequence(&a, 65);
    keel_dataset *d = NULL;
    (void)state;
    assert_int_equal(keel_dataset_from_sequence(&d, &q), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "album: workers are -1 to 64"));
    q.workers = 2;
    q.field = &field;
    q.n_field = 1;
    q.get_shaped = get_shaped;
    assert_int_equal(keel_dataset_from_sequence(&d, &q), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "one thread at a time"));
}

static void memory_may_run_out_at_any_point(void **state)
{
    bool done = false;
    (void)state;
    for (int64_t n = 0; !done; n++) {
        album a;
        keel_sequence q = sequence(&a, 3);
        keel_dataset *d = NULL;
        keel_reader *r = NULL;
        const keel_tensor *field;
        const int64_t blocks = keel_memory_live();
        keel_memory_fail_at(n);
        keel_status s = keel_dataset_from_sequence(&d, &q);
        if (s == KEEL_OK) s = keel_reader_create(&r, d, NULL);
        if (s == KEEL_OK) s = keel_reader_next(r, &field);
        keel_memory_fail_at(-1);
        done = s == KEEL_OK;
        if (!done) assert_int_equal(s, KEEL_ENOMEM);
        keel_reader_destroy(r);
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_the_same_order_with_any_number_of_workers),
        cmocka_unit_test(a_batch_that_fails_does_so_in_its_turn_and_is_got_again),
        cmocka_unit_test(nothing_is_called_once_nobody_reads),
        cmocka_unit_test(workers_that_cannot_be_are_refused),
        cmocka_unit_test(memory_may_run_out_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
