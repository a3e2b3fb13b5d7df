/* The memory that sources take to read: whatever is allocated while rows are read is taken from the
 * account first, for every source. What rows take is known before the first one or, where it is
 * not, named by the failure. */
#include "source_files.h"
#include "keel/keel.h"
#include "data/feed.h"
#include "data/source.h"
#include <malloc.h>
#include <stdatomic.h>

/* ---- what the process allocates ---------------------------------------------------------------
 * glibc's allocator by its other names, so that libraries are counted too. Not under a sanitizer,
 * which has an allocator of its own. */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
enum { COUNTS = 0 };
static _Atomic int64_t now_allocated, most_allocated;
#else
enum { COUNTS = 1 };
static _Atomic int64_t now_allocated, most_allocated;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t count, size_t each);
extern void *__libc_realloc(void *at, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
extern void __libc_free(void *at);
void *malloc(size_t n);
void *calloc(size_t count, size_t each);
void *realloc(void *at, size_t n);
void *aligned_alloc(size_t alignment, size_t n);
int posix_memalign(void **out, size_t alignment, size_t n);
void free(void *at);

static void *counted(void *at)
{
    const int64_t n = at ? (int64_t)malloc_usable_size(at) : 0;
    const int64_t now = atomic_fetch_add(&now_allocated, n) + n;
    int64_t most = atomic_load(&most_allocated);
    while (now > most && !atomic_compare_exchange_weak(&most_allocated, &most, now)) continue;
    return at;
}

static void gone(void *at)
{
    if (at) atomic_fetch_sub(&now_allocated, (int64_t)malloc_usable_size(at));
}

void *malloc(size_t n)
{
    return counted(__libc_malloc(n));
}

void *calloc(size_t count, size_t each)
{
    return counted(__libc_calloc(count, each));
}

void *realloc(void *at, size_t n)
{
    gone(at);
    return counted(__libc_realloc(at, n));
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return counted(__libc_memalign(alignment, n));
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    *out = counted(__libc_memalign(alignment, n));
    return *out ? 0 : 12;
}

void free(void *at)
{
    gone(at);
    __libc_free(at);
}
#endif

/* ---- sources ----------------------------------------------------------------------------------
 */

static const struct source {
    const char *what, *spec; /* @: the folder of files */
    const char *label, *input, *target;
    bool one_shape; /* images are resized to it */
    bool program;   /* a stream */
    int64_t frames; /* audio_length */
    bool grows;     /* what comes later may take more than the least */
} sources[] = {
    { "a CSV", "@table.csv", .label = "y" },
    { "JSON lines", "@table.jsonl" },
    { "lines of text", "@lines.txt" },
    { "an archive of arrays", "@arrays.npz" },
    { "arrays", "@x.npy,@y.npy" },
    { "raw records", "raw(y=uint8,x=float32(4096)):@rows.bin" },
    { "TFRecord files of numbers", "@numbers.tfrecord" },
    { "gzipped TFRecord files", "@numbers_gz.tfrecord.gz" },
    { "TFRecord files of images", "@images.tfrecord", .one_shape = true },
    { "tar shards of images", "@images.tar", .one_shape = true },
    { "gzipped tar shards", "@images_gz.tar.gz", .one_shape = true },
    { "tar shards of arrays", "@arrays.tar", .input = "npy" },
    { "chunks of an HDF5 file", "golden/memory_chunks.h5" },
    { "sounds", "audio:@sounds" },
    { "sounds cut to one length", "audio:@sounds", .frames = WIDTH },
    { "a folder of images", "@photos", .one_shape = true },
    { "drawn rows", "synthetic(x=float32(4096),z=float64(1000),y=int(2),rows=48)", .input = "x" },
    { "a program", "exec(x,y):cat @batches.bin", .program = true, .grows = true },
};
enum { SOURCES = sizeof sources / sizeof *sources };

static const char *spec_of(const char *spec)
{
    static char text[1024];
    size_t n = 0;
    for (const char *c = spec; *c && n + 1 < sizeof text; c++)
        if (*c == '@')
            n += (size_t)snprintf(text + n, sizeof text - n, "%s/", files_root);
        else
            text[n++] = *c;
    text[n] = 0;
    return text;
}

static void options_for(keel_dataset_options *o, const struct source *s)
{
    *o = KEEL_DATASET_OPTIONS;
    o->label = s->label;
    o->audio_length = s->frames;
    if (s->one_shape) o->height = o->width = SIDE;
    if (s->input) {
        o->inputs = &s->input;
        o->n_input = 1;
    }
}

static keel_dataset *open_source(const struct source *s)
{
    keel_dataset *d;
    keel_dataset_options o;
    options_for(&o, s);
    if (keel_dataset_open(&d, spec_of(s->spec), &o) < 0) fail_msg("%s: %s", s->what, keel_error());
    return d;
}

static keel_feed_options options_of(int threads, keel_account *a)
{
    return (
        keel_feed_options){ .batch_size = BATCH, .epochs = 2, .threads = threads, .account = a };
}

/* A sum over all bytes that come, in their order; stops at the first failure. */
static keel_status read_all(keel_feed *f, uint64_t *sum)
{
    keel_batch b;
    keel_status s = KEEL_OK;
    *sum = 0;
    for (uint32_t e = 0; e < 2 && s >= 0; e++) {
        if ((s = keel_feed_begin_epoch(f, e)) < 0) return s;
        while ((s = keel_feed_next(f, &b)) == KEEL_OK) {
            int64_t each = 1;
            for (int k = 0; k < b.spec[0].shape.rank; k++) each *= b.spec[0].shape.dim[k];
            const float *x = b.field[0];
            for (int64_t i = 0; b.spec[0].dtype == KEEL_FLOAT32 && i < b.rows * each; i += 37)
                *sum = *sum * 31 + (uint64_t)(int64_t)(x[i] * 8);
            *sum = *sum * 31 + (uint64_t)b.rows;
            keel_feed_release(f, &b);
        }
    }
    return s < 0 ? s : KEEL_OK;
}

static const int threads[] = { -1, 1, 3 };
enum {
    APART = 96 << 10, /* handles and names */
    EACH = 18 << 10,  /* probe and tasks of a thread */
    LOOSE = 64 << 10, /* taken, and not needed at the same time */
};

static void each_source_of_rows_by_number_says_what_a_row_takes(void **state)
{
    (void)state;
    for (int i = 0; keel_sources[i]; i++) {
        const keel_source *s = keel_sources[i];
        if (s->read && !s->in_memory && !s->needs) fail_msg("%s does not", s->name);
    }
}

static void what_is_allocated_is_taken_first(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            const struct source *c = &sources[i];
            keel_dataset *d = open_source(c);
            uint64_t want = 0, sum;
            int64_t least;
            keel_feed_options o = options_of(threads[t], NULL);
            must(keel_feed_least(&least, NULL, d, &o));
            const int64_t limits[] = { 0, least, 2 * least, 20 * least };
            for (int k = 0; k < 4; k++) {
                keel_account a = { .limit = limits[k] };
                keel_feed *f;
                if (k == 1 && c->grows) continue;
                o.account = &a;
                const int64_t before = now_allocated;
                most_allocated = before;
                must(keel_feed_create(&f, d, &o));
                const keel_status s = read_all(f, &sum);
                if (s < 0)
                    fail_msg("%s, %d threads, %lld of %lld bytes: %s", c->what, threads[t],
                             (long long)a.limit, (long long)least, keel_error());
                keel_feed_destroy(f);
                const int64_t most = most_allocated - before, peak = a.peak;
                const int64_t apart = APART + EACH * (threads[t] > 0 ? threads[t] : 1);
                const bool loose = !c->grows && most < peak - LOOSE; /* it has a batch before */
                if (COUNTS && (most > peak + apart || loose))
                    fail_msg("%s, %d threads: %lld bytes are allocated, and %lld of %lld taken",
                             c->what, threads[t], (long long)most, (long long)peak,
                             (long long)a.limit);
                if (a.used || (a.limit && a.peak > a.limit))
                    fail_msg("%s, %d threads: %lld bytes of %lld, and %lld at the end", c->what,
                             threads[t], (long long)a.peak, (long long)a.limit, (long long)a.used);
                if (k == 0) want = sum;
                if (sum != want)
                    fail_msg("%s, %lld bytes: other rows", c->what, (long long)a.limit);
            }
            keel_dataset_destroy(d);
        }
}

static void too_little_is_refused_before_the_first_row(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        keel_dataset *d = open_source(&sources[i]);
        keel_account a = { 0 };
        keel_feed_options o = options_of(1, &a);
        keel_dataset_memory m;
        keel_feed *f;
        int64_t least;
        must(keel_feed_least(&least, NULL, d, &o));
        a.limit = least - 1;
        assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EARG);
        assert_true(a.used == 0 && a.peak < least);
        must(keel_dataset_least_memory(&m, d, BATCH));
        assert_true(m.known && m.n_bytes > 0 && m.row_bytes < m.n_bytes);
        if (strstr(sources[i].what, "image") && !strstr(m.row, "20"))
            fail_msg("%s: the largest row is '%s'", sources[i].what, m.row);
        keel_dataset_destroy(d);
    }
}

static void each_allocation_that_fails_gives_all_bytes_back(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        keel_dataset *d = open_source(&sources[i]);
        uint64_t sum;
        for (int64_t at = 0;; at = at < 60 ? at + 1 : at + 1 + at / 8) {
            keel_account a = { .limit = 64 << 20 };
            keel_feed *f = NULL;
            const keel_feed_options o = options_of(-1, &a);
            keel_memory_fail_at(at);
            keel_status s = keel_feed_create(&f, d, &o);
            if (s >= 0) s = read_all(f, &sum);
            const bool failed = s < 0;
            keel_memory_fail_at(-1);
            keel_feed_destroy(f);
            if (failed && s != KEEL_ENOMEM) fail_msg("%s: %s", sources[i].what, keel_error());
            assert_int_equal(a.used, 0);
            if (!failed) break;
        }
        keel_dataset_destroy(d);
    }
}

static void files_are_closed_even_if_an_allocation_fails(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        const int before = files_open();
        for (int64_t at = 0, failed = 1; failed; at = at < 60 ? at + 1 : at + 1 + at / 8) {
            keel_dataset_options o;
            keel_dataset *d = NULL;
            keel_feed *f = NULL;
            uint64_t sum;
            const keel_feed_options feed = options_of(-1, NULL);
            options_for(&o, &sources[i]);
            keel_memory_fail_at(at);
            keel_status s = keel_dataset_open(&d, spec_of(sources[i].spec), &o);
            if (s >= 0) s = keel_feed_create(&f, d, &feed);
            if (s >= 0) s = read_all(f, &sum);
            failed = s < 0;
            keel_memory_fail_at(-1);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
            if (files_open() != before)
                fail_msg("%s, allocation %d: %d files are left open", sources[i].what, (int)at,
                         files_open() - before);
        }
    }
}

static void what_a_cache_keeps_is_taken_from_the_run_that_goes_on(void **state)
{
    (void)state;
    keel_dataset *rows = open_source(&sources[5]), *d;
    keel_account first = { .limit = 64 << 20 }, second = first, before;
    keel_feed_options o = options_of(-1, &first);
    keel_feed *f;
    keel_batch b;
    uint64_t sum;
    must(keel_dataset_apply(&d, "cache", NULL, &rows, 1));
    must(keel_feed_create(&f, d, &o)); /* a run that ends early */
    must(keel_feed_begin_epoch(f, 0));
    must(keel_feed_next(f, &b));
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    assert_int_equal(first.used, 0);
    before = first;
    o.account = &second;
    must(keel_feed_create(&f, d, &o));
    must(read_all(f, &sum));
    assert_true(second.used > N * WIDTH * (int64_t)sizeof(float));
    keel_feed_destroy(f);
    assert_int_equal(second.used, 0);
    assert_memory_equal(&first, &before, sizeof first);
    keel_dataset_destroy(d);
    keel_dataset_destroy(rows);
}

static void a_program_whose_batches_grow_beyond_the_limit_is_named(void **state)
{
    (void)state;
    keel_dataset *d = open_source(&sources[SOURCES - 1]);
    keel_account a = { 0 };
    const keel_feed_options o = options_of(1, &a);
    keel_feed *f;
    uint64_t sum;
    int64_t least;
    must(keel_feed_least(&least, NULL, d, &o));
    a.limit = least;
    must(keel_feed_create(&f, d, &o));
    assert_int_equal(read_all(f, &sum), KEEL_ENOMEM);
    assert_non_null(strstr(keel_error(), "'x' of batch"));
    assert_non_null(strstr(keel_error(), "input_memory"));
    assert_true(a.peak <= a.limit);
    keel_feed_destroy(f);
    assert_int_equal(a.used, 0);
    keel_dataset_destroy(d);
}

/* ---- what is not known before -----------------------------------------------------------------
 */

static keel_dataset *open_many(bool filters);

static keel_status keep(void *context, const keel_tensor *in, bool *keeps,
                        const keel_element_place *at)
{
    (void)context, (void)in, (void)at;
    *keeps = true;
    return KEEL_OK;
}

static keel_dataset *open_many(bool filters)
{
    static const struct source many = { "many", "@many", .one_shape = true };
    keel_dataset *d = open_source(&many), *out, *batches;
    const keel_filter all = { .size = sizeof all, .call = keep };
    if (!filters) return d;
    must(keel_dataset_filter(&out, d, &all));
    must(keel_dataset_apply(&batches, "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", BATCH)), &out,
                            1));
    keel_dataset_destroy(d);
    keel_dataset_destroy(out);
    return batches;
}

static void hear(void *line, const char *text)
{
    if (!*(char *)line) snprintf(line, 600, "%s", text);
}

/* The number behind these words in the error text. */
static int64_t number(const char *words)
{
    const char *at = strstr(keel_error(), words);
    if (!at) fail_msg("no '%s' in: %s", words, keel_error());
    return strtoll(at + strlen(words), NULL, 10);
}

static void an_image_without_room_is_named_with_the_least_that_works(void **state)
{
    (void)state;
    enum { SMALL_IMAGE = 128 << 10 };
    for (int filters = 0; filters < 2; filters++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            keel_dataset *d = open_many(filters);
            char line[600] = "";
            keel_account a = { 0 };
            keel_feed_options o = options_of(threads[t], &a);
            keel_feed *f;
            uint64_t sum;
            int64_t least;
            o.on_decision = hear;
            o.context = line;
            if (filters) o.batch_size = 0;
            must(keel_feed_least(&least, NULL, d, &o));
            a.limit = least + SMALL_IMAGE;
            must(keel_feed_create(&f, d, &o));
            assert_int_equal(read_all(f, &sum), KEEL_ENOMEM);
            assert_non_null(strstr(line, "known only once they are read"));
            if (!strstr(keel_error(), "many/00.tfrecord: record 5 at byte "))
                fail_msg("%d threads, %d: %s", threads[t], filters, keel_error());
            const int64_t takes = number("reading it takes "), works = number("at least ");
            assert_int_equal(number("may hold "), a.limit);
            assert_true(takes > 900 * 800 * 3 && works > a.limit);
            assert_true(a.peak <= a.limit);
            keel_feed_destroy(f);
            assert_int_equal(a.used, 0);
            a = (keel_account){ .limit = works - 1 };
            assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EARG);
            assert_int_equal(number("at least "), works);
            a = (keel_account){ .limit = works };
            must(keel_feed_create(&f, d, &o));
            must(read_all(f, &sum));
            keel_feed_destroy(f);
            assert_true(a.peak <= a.limit && a.used == 0);
            keel_dataset_destroy(d);
        }
}

static void once_all_rows_were_read_the_least_is_known(void **state)
{
    (void)state;
    keel_dataset *d = open_many(false);
    keel_dataset_memory before, after;
    keel_reader *r;
    const keel_tensor *field;
    keel_account a = { 0 };
    const keel_feed_options o = options_of(1, &a);
    keel_feed *f;
    uint64_t sum;
    must(keel_dataset_least_memory(&before, d, BATCH));
    must(keel_reader_create(&r, d, NULL));
    while (keel_reader_next(r, &field) == KEEL_OK) continue;
    keel_reader_destroy(r);
    must(keel_dataset_least_memory(&after, d, BATCH));
    assert_false(before.known);
    assert_true(after.n_bytes > before.n_bytes + 900 * 800 * 3);
    assert_non_null(strstr(after.row, "many/00.tfrecord: record 5 at byte "));
    a.limit = after.n_bytes - 1;
    assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EARG);
    a.limit = after.n_bytes;
    must(keel_feed_create(&f, d, &o));
    must(read_all(f, &sum));
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

static int begin(void **state)
{
    (void)state;
    make_source_files();
    return 0;
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
        cmocka_unit_test(each_source_of_rows_by_number_says_what_a_row_takes),
        cmocka_unit_test(what_is_allocated_is_taken_first),
        cmocka_unit_test(too_little_is_refused_before_the_first_row),
        cmocka_unit_test(each_allocation_that_fails_gives_all_bytes_back),
        cmocka_unit_test(what_a_cache_keeps_is_taken_from_the_run_that_goes_on),
        cmocka_unit_test(files_are_closed_even_if_an_allocation_fails),
        cmocka_unit_test(a_program_whose_batches_grow_beyond_the_limit_is_named),
        cmocka_unit_test(an_image_without_room_is_named_with_the_least_that_works),
        cmocka_unit_test(once_all_rows_were_read_the_least_is_known),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
