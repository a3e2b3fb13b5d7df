/* Rows that do not come: who waits for whom is said once, and where there is a limit the wait ends
 * with an error of its own kind. */
#define _GNU_SOURCE
#include "must.h"
#include "keel/keel.h"
#include "data/feed.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what hangs -------------------------------------------------------------------------------
 */

enum { N = 40, HANGS_AT = 17 };

static atomic_bool released;

/* Until the test lets go, and 10 s at most. */
static void hang(void)
{
    for (int i = 0; i < 2000 && !atomic_load(&released); i++) usleep(5000);
}

static keel_status slow_map(void *context, const keel_tensor *in, keel_tensor *out,
                            const keel_element_place *at)
{
    (void)context, (void)at;
    *(int64_t *)out->data = *(int64_t *)in->data;
    if (*(int64_t *)in->data == HANGS_AT) hang();
    return KEEL_OK;
}

static keel_status keep_all(void *context, const keel_tensor *in, bool *keep,
                            const keel_element_place *at)
{
    (void)context, (void)in, (void)at;
    *keep = true;
    return KEEL_OK;
}

static int64_t at;

static keel_status slow_next(void *context, void *const *field, int64_t capacity, int64_t *rows)
{
    (void)context, (void)capacity;
    if (at == N) return KEEL_END;
    if (at == HANGS_AT) hang();
    *(int64_t *)field[0] = at++;
    *rows = 1;
    return KEEL_OK;
}

static keel_status again(void *context)
{
    (void)context;
    at = 0;
    return KEEL_OK;
}

static int64_t length(void *context)
{
    (void)context;
    return N;
}

static keel_status slow_get(void *context, int64_t i, void *const *field, int64_t capacity,
                            int64_t *rows)
{
    (void)context, (void)capacity;
    if (i == HANGS_AT) hang();
    *(int64_t *)field[0] = i;
    *rows = 1;
    return KEEL_OK;
}

static const keel_data_field x = { .path = "x", .dtype = KEEL_INT64 };

static keel_dataset *numbers(void)
{
    static int64_t number[N];
    keel_dataset *d;
    for (int64_t i = 0; i < N; i++) number[i] = i;
    const keel_tensor t = { KEEL_INT64, { 1, { N } }, number };
    must(keel_dataset_from_arrays(&d, &t, NULL, NULL));
    return d;
}

static keel_dataset *by_number(void)
{
    keel_dataset *d = numbers(), *out;
    const keel_map m = { .size = sizeof m, .call = slow_map };
    must(keel_dataset_map(&out, d, &m));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *stream(void)
{
    keel_dataset *d = numbers(), *kept, *mapped, *out;
    const keel_filter f = { .size = sizeof f, .call = keep_all };
    const keel_map m = { .size = sizeof m, .call = slow_map };
    must(keel_dataset_filter(&kept, d, &f));
    must(keel_dataset_map(&mapped, kept, &m));
    must(keel_dataset_batch(&out, mapped, 4, false));
    keel_dataset_destroy(d);
    keel_dataset_destroy(kept);
    keel_dataset_destroy(mapped);
    return out;
}

static keel_dataset *generator(void)
{
    keel_dataset *d;
    at = 0;
    must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                            .max_rows = 1,
                                                            .name = "camera",
                                                            .n_field = 1,
                                                            .field = &x,
                                                            .next_fields = slow_next,
                                                            .reset = again }));
    return d;
}

static keel_dataset *generator_behind_a_filter(void)
{
    keel_dataset *d = generator(), *rows, *out;
    const keel_filter f = { .size = sizeof f, .call = keep_all };
    must(keel_dataset_unbatch(&rows, d));
    must(keel_dataset_filter(&out, rows, &f));
    keel_dataset_destroy(d);
    keel_dataset_destroy(rows);
    return out;
}

static keel_dataset *sequence(void)
{
    keel_dataset *d;
    must(keel_dataset_from_sequence(&d, &(keel_sequence){ .size = sizeof(keel_sequence),
                                                          .max_rows = 1,
                                                          .name = "blocks",
                                                          .n_field = 1,
                                                          .field = &x,
                                                          .length = length,
                                                          .get_fields = slow_get }));
    return d;
}

/* ---- what is said -----------------------------------------------------------------------------
 */

typedef struct said {
    pthread_mutex_t lock;
    int lines, last;
    char first[600], end[600];
} said;

static void tell(void *context, const char *line, bool last)
{
    said *s = context;
    pthread_mutex_lock(&s->lock);
    if (!s->lines++) snprintf(s->first, sizeof s->first, "%s", line);
    s->last += last;
    if (last) snprintf(s->end, sizeof s->end, "%s", line);
    pthread_mutex_unlock(&s->lock);
}

static const struct {
    const char *what;
    keel_dataset *(*open)(void);
    int64_t batch;
    const char *says;
} cases[] = {
    { "a map of rows by number", by_number, 4,
      ": step <- map: a thread has been at element 17 of map for " },
    { "a map of a stream", stream, 0,
      ": step <- batch <- map: a thread has been at element 17 of map for " },
    { "a generator", generator, 1, ": step <- camera: a thread has been at row 17 of camera for " },
    { "a generator in a pipeline", generator_behind_a_filter, 4,
      ": step <- filter <- unbatch <- camera: a thread has been at row 17 of camera for " },
    { "a sequence", sequence, 1, ": step <- blocks: a thread has been at row 17 of blocks for " },
};

/* Lets go once a line was said. */
static void *release_soon(void *context)
{
    said *s = context;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&s->lock);
        const bool told = s->lines > 0;
        pthread_mutex_unlock(&s->lock);
        if (told) break;
        usleep(5000);
    }
    usleep(50000); /* a second line would come */
    atomic_store(&released, true);
    return NULL;
}

static void a_wait_is_told_once_and_goes_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = -1; threads < 3; threads += threads ? 1 : 2) {
            said s = { .lock = PTHREAD_MUTEX_INITIALIZER };
            const keel_input_watch w = { sizeof w, .seconds = 0.05, .tell = tell, .context = &s };
            keel_dataset *d = cases[i].open();
            keel_feed *f;
            keel_batch b;
            int64_t rows = 0;
            const keel_feed_options o = { .batch_size = cases[i].batch,
                                          .threads = threads,
                                          .watch = &w };
            atomic_store(&released, false);
            must(keel_feed_create(&f, d, &o));
            must(keel_feed_begin_epoch(f, 0));
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, release_soon, &s), 0);
            while (keel_feed_next(f, &b) == KEEL_OK) {
                rows += b.rows;
                keel_feed_release(f, &b);
            }
            pthread_join(thread, NULL);
            assert_int_equal(rows, N);
            if (s.lines != 1 || s.last || !strstr(s.first, cases[i].says))
                fail_msg("%s, %d threads: %d lines: %s", cases[i].what, threads, s.lines, s.first);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
}

static void a_limit_ends_the_wait_with_an_error_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        said s = { .lock = PTHREAD_MUTEX_INITIALIZER };
        const keel_input_watch w = { sizeof w, 0.05, 0.1, tell, &s };
        keel_dataset *d = cases[i].open();
        keel_feed *f;
        keel_batch b;
        keel_status got;
        const keel_feed_options o = { .batch_size = cases[i].batch, .threads = 2, .watch = &w };
        atomic_store(&released, false);
        must(keel_feed_create(&f, d, &o));
        must(keel_feed_begin_epoch(f, 0));
        while ((got = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
        if (got != KEEL_ETIMEOUT || !strstr(keel_error(), cases[i].says))
            fail_msg("%s: status %d: %s", cases[i].what, got, keel_error());
        assert_int_equal(s.last, 1);
        assert_string_equal(s.end, keel_error());
        assert_int_equal(keel_feed_next(f, &b), KEEL_ETIMEOUT);
        atomic_store(&released, true);
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

static void a_reader_is_watched_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        said s = { .lock = PTHREAD_MUTEX_INITIALIZER };
        const keel_input_watch w = { sizeof w, .seconds = 0.05, .tell = tell, .context = &s };
        keel_dataset *d = cases[i].open();
        keel_reader *r;
        const keel_tensor *t;
        pthread_t thread;
        const keel_reader_options o = { .size = sizeof o, .threads = 2, .watch = &w };
        atomic_store(&released, false);
        must(keel_reader_create(&r, d, &o));
        assert_int_equal(pthread_create(&thread, NULL, release_soon, &s), 0);
        while (keel_reader_next(r, &t) == KEEL_OK) continue;
        pthread_join(thread, NULL);
        if (s.lines != 1 || !strstr(s.first, cases[i].says))
            fail_msg("%s: %d lines: %s", cases[i].what, s.lines, s.first);
        keel_reader_destroy(r);
        keel_dataset_destroy(d);
    }
}

static void opening_is_watched(void **state)
{
    (void)state;
    said s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    const keel_input_watch w = { sizeof w, .seconds = 0.05, .tell = tell, .context = &s };
    keel_dataset *d = NULL;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.watch = &w;
    assert_true(keel_dataset_open(&d, "exec:sleep 0.4", &o) < 0); /* it writes nothing */
    assert_int_equal(s.lines, 1);
    assert_non_null(strstr(s.first, "exec:sleep 0.4 is being opened"));
}

static void a_wrong_watch_is_refused(void **state)
{
    (void)state;
    static const keel_input_watch wrong[] = { { 1 },
                                              { sizeof *wrong, .seconds = -1 },
                                              { sizeof *wrong, .limit = -1 } };
    keel_dataset *d = numbers();
    for (int i = 0; i < 3; i++) {
        keel_reader *r;
        const keel_reader_options o = { .size = sizeof o, .watch = &wrong[i] };
        assert_int_equal(keel_reader_create(&r, d, &o), KEEL_EARG);
    }
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_told_once_and_goes_on),
        cmocka_unit_test(a_limit_ends_the_wait_with_an_error_of_its_own),
        cmocka_unit_test(a_reader_is_watched_too),
        cmocka_unit_test(opening_is_watched),
        cmocka_unit_test(a_wrong_watch_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
