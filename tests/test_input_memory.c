/* The memory of the input: all buffers together stay within the limit at every moment, whatever the
 * pipeline and the number of threads; rows do not depend on it; and what is too little is refused
 * before the first row, with the least that works. */
#include "input_pipelines.h"

static keel_feed_options options_of(const struct pipeline *p, int threads, keel_account *a)
{
    return (keel_feed_options){ .batch_size = p->batch_size,
                                .shuffle = p->shuffle,
                                .end = p->carries ? KEEL_CARRY : KEEL_KEEP,
                                .seed = 5,
                                .epochs = EPOCHS,
                                .threads = threads,
                                .account = a };
}

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return h;
}

/* A hash of all rows of all epochs; the first status that is not KEEL_OK. */
static keel_status rows_of(keel_feed *f, uint64_t *hash)
{
    keel_batch b;
    keel_status s = KEEL_OK;
    *hash = 14695981039346656037u;
    for (uint32_t e = 0; e < EPOCHS && s >= 0; e++) {
        if ((s = keel_feed_begin_epoch(f, e)) < 0) break;
        while ((s = keel_feed_next(f, &b)) == KEEL_OK) {
            int64_t each = 1;
            for (int k = 0; k < b.spec[0].shape.rank; k++) each *= b.spec[0].shape.dim[k];
            for (int64_t i = 0; i < b.rows; i++) {
                const float *x = (const float *)b.field[0] + i * each;
                *hash = mix(mix(*hash, x, 32), x + each - 8, 32);
            }
            *hash = mix(*hash, &b.rows, sizeof b.rows);
            note_memory();
            keel_feed_release(f, &b);
        }
    }
    return s < 0 ? s : KEEL_OK;
}

static keel_status run(const keel_dataset *d, const keel_feed_options *o, uint64_t *hash)
{
    keel_feed *f;
    KEEL_TRY(keel_feed_create(&f, d, o));
    const keel_status s = rows_of(f, hash);
    keel_feed_destroy(f);
    return s;
}

static const int threads[] = { 1, 2, 7, 0 /* its own choice */ };

static void limits_are_kept_and_change_no_row(void **state)
{
    (void)state;
    enum {
        APART = 96 << 10 /* handles and names */,
        EACH = 18 << 10 /* probe and tasks of a thread */
    };
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
        const struct pipeline *p = &pipelines[i];
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            keel_dataset *d = p->make();
            keel_feed_options o = options_of(p, threads[t], NULL);
            int64_t least;
            uint64_t want, hash;
            must(keel_feed_least(&least, NULL, d, &o));
            keel_dataset_destroy(d);
            d = p->make();
            o.threads = -1;
            must(run(d, &o, &want));
            keel_dataset_destroy(d);
            const int64_t limits[] = { least,         least + 1,     least + least / 7,
                                       least * 3 / 2, least * 5 / 2, least * 20 };
            for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
                keel_account a = { .limit = limits[k] };
                d = p->make();
                atomic_store(&before, 0);
                atomic_store(&most, 0);
                note_memory();
                atomic_store(&before, atomic_load(&most));
                atomic_store(&most, 0);
                o = options_of(p, threads[t], &a);
                const keel_status s = run(d, &o, &hash);
                if (s < 0)
                    fail_msg("%s, %d threads, %lld bytes of at least %lld: %s", p->what, threads[t],
                             (long long)limits[k], (long long)least, keel_error());
                if (hash != want)
                    fail_msg("%s, %d threads, %lld bytes: other rows", p->what, threads[t],
                             (long long)limits[k]);
                if (a.peak > a.limit)
                    fail_msg("%s, %d threads: %lld bytes of %lld", p->what, threads[t],
                             (long long)a.peak, (long long)a.limit);
                if (a.used != 0)
                    fail_msg("%s, %d threads: %lld bytes are still taken", p->what, threads[t],
                             (long long)a.used);
                if (atomic_load(&most) > a.peak + APART + EACH * (threads[t] ? threads[t] : 16))
                    fail_msg("%s, %d threads: %lld bytes allocated, but %lld of %lld counted",
                             p->what, threads[t], (long long)atomic_load(&most), (long long)a.peak,
                             (long long)a.limit);
                keel_dataset_destroy(d);
            }
        }
    }
}

static void too_little_is_refused_before_the_first_row_and_the_least_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            const struct pipeline *p = &pipelines[i];
            keel_dataset *d = p->make();
            keel_account a = { 0 };
            const keel_feed_options o = options_of(p, threads[t], &a);
            char named[64];
            keel_feed *f = NULL;
            int64_t least;
            must(keel_feed_least(&least, NULL, d, &o));
            snprintf(named, sizeof named, "at least %lld", (long long)least);
            for (int64_t limit = 1; limit < least; limit = limit * 3 + least % 5) {
                a = (keel_account){ .limit = limit };
                assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EARG);
                if (!strstr(keel_error(), named) || !strstr(keel_error(), "input_memory"))
                    fail_msg("%s: '%s' does not name %s", p->what, keel_error(), named);
                assert_true(a.used == 0 && a.peak <= limit);
            }
            a = (keel_account){ .limit = least - 1 };
            assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EARG);
            assert_non_null(strstr(keel_error(), named));
            keel_dataset_destroy(d);
        }
}

static void each_allocation_that_fails_gives_all_bytes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
        const struct pipeline *p = &pipelines[i];
        keel_account a = { 0 };
        const keel_feed_options o = options_of(p, 2, &a);
        for (int64_t at = 0;; at++) {
            keel_dataset *d = p->make();
            keel_feed *f = NULL;
            const int64_t live = keel_memory_live();
            a = (keel_account){ .limit = 64 << 20 };
            keel_memory_fail_at(at);
            const keel_status s = keel_feed_create(&f, d, &o);
            keel_memory_fail_at(-1);
            keel_feed_destroy(f);
            if (s < 0 && s != KEEL_ENOMEM) fail_msg("%s: %s", p->what, keel_error());
            assert_int_equal(a.used, 0);
            assert_int_equal(keel_memory_live(), live);
            keel_dataset_destroy(d);
            if (s >= 0) break;
        }
    }
}

/* ---- a limit that comes later -----------------------------------------------------------------
 */

static void a_limit_that_is_lowered_before_the_first_step_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            const struct pipeline *p = &pipelines[i];
            keel_feed *f;
            keel_account a = { 0 };
            keel_feed_options o = options_of(p, threads[t], &a);
            uint64_t want, hash;
            int64_t least;
            keel_dataset *d = p->make();
            must(keel_feed_least(&least, NULL, d, &o));
            must(keel_feed_create(&f, d, &o));
            must(rows_of(f, &want));
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
            a = (keel_account){ .limit = t % 2 ? 0 : 20 * least };
            d = p->make();
            must(keel_feed_create(&f, d, &o));
            keel_feed_limit(f, 30 * least);
            keel_feed_limit(f, 1);
            if (a.limit < least || a.limit > least + least / 8)
                fail_msg("%s, %d threads: a limit of %lld, not %lld", p->what, threads[t],
                         (long long)a.limit, (long long)least);
            a.peak = 0;
            must(rows_of(f, &hash));
            keel_feed_destroy(f);
            if (hash != want) fail_msg("%s, %d threads: other rows", p->what, threads[t]);
            assert_true(a.peak <= a.limit && a.used == 0);
            keel_dataset_destroy(d);
        }
}

/* ---- fit --------------------------------------------------------------------------------------
 */

static keel_status fit(keel_dataset *d, keel_dataset *validation, int64_t memory, keel_history *h)
{
    keel_model *m;
    keel_strategy *s;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", WIDTH))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
    must(keel_strategy_create(&s, "cpu:0"));
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .epochs = 2, .batch_size = BATCH,
                                 .validation = validation, .input_memory = memory };
    const keel_status got = keel_fit(m, s, d, &o, h);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return got;
}

static keel_dataset *labelled(void)
{
    static float x[N * WIDTH], y[N];
    keel_dataset *d;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < WIDTH; k++) x[i * WIDTH + k] = (float)((i + k) % 5) / 500;
        y[i] = (float)(i % 2);
    }
    must(keel_dataset_from_arrays(&d, &(keel_tensor){ KEEL_FLOAT32, { 2, { N, WIDTH } }, x },
                                  &(keel_tensor){ KEEL_FLOAT32, { 1, { N } }, y }, NULL));
    return d;
}

static void a_fit_shares_its_memory_with_the_validation(void **state)
{
    (void)state;
    keel_dataset *d = labelled();
    for (int v = 0; v < 2; v++) {
        keel_history h;
        assert_int_equal(fit(d, v ? d : NULL, 1, &h), KEEL_EARG);
        const char *named = strstr(keel_error(), "at least ");
        assert_non_null(named);
        const long long least = strtoll(named + strlen("at least "), NULL, 10);
        keel_history_free(&h);
        assert_true(least > (v + 1) * 2 * BATCH * WIDTH * (int)sizeof(float));
        assert_int_equal(fit(d, v ? d : NULL, least - 1, &h), KEEL_EARG);
        keel_history_free(&h);
        must(fit(d, v ? d : NULL, least, &h));
        assert_non_null(h.input);
        assert_true(h.input->memory_limit <= least &&
                    h.input->memory_peak <= h.input->memory_limit);
        keel_history_free(&h);
    }
    keel_history h;
    assert_int_equal(fit(d, NULL, -5, &h), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "must not be negative"));
    keel_history_free(&h);
    keel_dataset_destroy(d);
}

static int end(void **state)
{
    (void)state;
    files_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_kept_and_change_no_row),
        cmocka_unit_test(too_little_is_refused_before_the_first_row_and_the_least_is_named),
        cmocka_unit_test(each_allocation_that_fails_gives_all_bytes_back),
        cmocka_unit_test(a_limit_that_is_lowered_before_the_first_step_is_kept),
        cmocka_unit_test(a_fit_shares_its_memory_with_the_validation),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
