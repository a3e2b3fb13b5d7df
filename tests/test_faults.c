/* Rows that cannot be read: budgets are charged in the order of the rows whatever the number of
 * threads, and go on from a checkpoint; a list of such rows is written, and read by the next run.
 */
#include "must.h"
#include "keel/keel.h"
#include "base/memory.h"
#include "data/feed.h"
#include "data/quarantine.h"
#include "data_files.h"
#include "data/stage.h"
#include "io/file.h"

/* ---- rows of which some fail ------------------------------------------------------------------
 */

enum { N = 400 };

/* Every `each`-th row fails, from row each - 1 on. */
static keel_status fails(void *context, const keel_tensor *in, keel_tensor *out,
                         const keel_element_place *at)
{
    const bool whole = in->dtype == KEEL_INT64;
    const int64_t each = *(int64_t *)context;
    const int64_t v = whole ? *(int64_t *)in->data : (int64_t) * (float *)in->data;
    (void)at;
    memcpy(out->data, in->data, whole ? sizeof v : sizeof(float));
    if (v % each == each - 1) return keel_error_set(KEEL_EDATA, "the sensor was off");
    return KEEL_OK;
}

static int64_t every;

static keel_dataset *rows(int64_t n, int64_t each)
{
    static int64_t number[N];
    keel_dataset *d, *out;
    for (int64_t i = 0; i < N; i++) number[i] = i;
    every = each;
    const keel_tensor x = { KEEL_INT64, { 1, { n } }, number };
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    const keel_map m = { .size = sizeof m, .name = "scale", .call = fails, .context = &every };
    must(keel_dataset_map(&out, d, &m));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *put(keel_dataset *d, const char *stage, const keel_arg *args)
{
    keel_dataset *out;
    must(keel_dataset_apply(&out, stage, args, &d, 1));
    keel_dataset_destroy(d);
    return out;
}

/* The number of elements up to a failure, or to the end of the pass. */
static int64_t count(const keel_dataset *d, int threads, keel_status *last)
{
    keel_reader *r;
    const keel_tensor *x;
    const keel_reader_options o = { .size = sizeof o, .threads = threads };
    int64_t n = 0;
    must(keel_reader_create(&r, d, &o));
    while ((*last = keel_reader_next(r, &x)) == KEEL_OK) n++;
    keel_reader_destroy(r);
    return n;
}

/* ---- budgets ----------------------------------------------------------------------------------
 */

static void a_budget_is_a_number_a_part_or_both(void **state)
{
    (void)state;
    static const struct {
        const char *what, *stage;
        double rate;
        int64_t most, each, want; /* want: elements until the failure; -1: none comes */
    } cases[] = {
        { "a part that suffices", "ignore_errors", 0.1, 0, 10, -1 },
        { "a part that does not", "ignore_errors", 0.09, 0, 10, 36 * 9 + 9 },
        { "a part of which no row is left", "ignore_errors", 0.001, 0, 10, 9 },
        { "the smaller of both is the number", "ignore_errors", 0.5, 3, 10, 4 * 9 },
        { "the smaller of both is the part", "ignore_errors", 0.01, 300, 10, 5 * 9 },
        { "29 of 100 are 29 %", "ignore_errors", 0.2525, 0, 4, -1 },
        { "57 of 400, which a product makes a little less", "ignore_errors", 0.1425, 0, 7, -1 },
        { "substituted, a part that suffices", "substitute", 0.1, 0, 10, -1 },
        { "substituted, a part that does not", "substitute", 0.09, 0, 10, 36 * 10 + 9 },
        { "substituted, the smaller is the number", "substitute", 0.5, 3, 10, 39 },
    };
    static const int threads[] = { -1, 1, 2, 7, 16 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < 5; t++) {
            const keel_arg all[] = { KEEL_ARG_FLOAT("rate", cases[i].rate),
                                     KEEL_ARG_INT("most", cases[i].most),
                                     { 0 } };
            const keel_arg rate[] = { KEEL_ARG_FLOAT("rate", cases[i].rate), { 0 } };
            keel_status s;
            keel_dataset *d =
                put(rows(N, cases[i].each), cases[i].stage, cases[i].most ? all : rate);
            const int64_t n = count(d, threads[t], &s);
            if (s != (cases[i].want < 0 ? KEEL_END : KEEL_ECALLBACK) ||
                (cases[i].want >= 0 && n != cases[i].want))
                fail_msg("%s, %d threads: status %d after %lld: %s", cases[i].what, threads[t], s,
                         (long long)n, keel_error());
            if (s < 0 && !strstr(keel_error(), "the sensor was off"))
                fail_msg("%s: %s", cases[i].what, keel_error());
            keel_dataset_destroy(d);
        }
}

static keel_status keep_all(void *context, const keel_tensor *in, bool *keep,
                            const keel_element_place *at)
{
    (void)context, (void)in, (void)at;
    *keep = true;
    return KEEL_OK;
}

static void of_unknown_length_a_part_is_of_those_so_far(void **state)
{
    (void)state;
    keel_status s;
    const keel_arg one[] = { KEEL_ARG_FLOAT("rate", 0.01), { 0 } };
    /* a filter does not know how many it gives: 10 may fail, and of 400 by number, 4 */
    const keel_filter filter = { .size = sizeof filter, .call = keep_all };
    for (int streams = 0; streams < 2; streams++) {
        keel_dataset *source = rows(N, 40), *d = source;
        if (streams) must(keel_dataset_filter(&d, source, &filter));
        if (streams) keel_dataset_destroy(source);
        d = put(d, "ignore_errors", one);
        assert_int_equal(count(d, 2, &s), streams ? 390 : 4 * 39 + 39);
        assert_int_equal(s, streams ? KEEL_END : KEEL_ECALLBACK);
        keel_dataset_destroy(d);
    }
}

static void wrong_budgets_are_refused(void **state)
{
    (void)state;
    static const char *const stages[] = { "ignore_errors", "substitute" };
    for (int i = 0; i < 2; i++) {
        keel_dataset *d = rows(9, 4), *out = NULL;
        assert_int_equal(keel_dataset_apply(&out, stages[i], NULL, &d, 1), KEEL_EARG);
        assert_non_null(strstr(keel_error(), "give `most`"));
        assert_int_equal(
            keel_dataset_apply(&out, stages[i], KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0)), &d, 1),
            KEEL_EARG);
        assert_int_equal(
            keel_dataset_apply(&out, stages[i], KEEL_ARGS(KEEL_ARG_FLOAT("rate", 1.5)), &d, 1),
            KEEL_EARG);
        keel_dataset_destroy(d);
    }
}

/* ---- training ---------------------------------------------------------------------------------
 */

static keel_feed *feed_of(const keel_dataset *d, int threads)
{
    keel_feed *f;
    const keel_feed_options o = { .batch_size = 16, .threads = threads, .epochs = 3 };
    must(keel_feed_create(&f, d, &o));
    return f;
}

/* Steps from a place on until a failure, over all epochs: epoch * 100 + step of it. */
static int64_t steps(keel_feed *f, int64_t epoch, int64_t step, int64_t stop)
{
    keel_batch b;
    for (int64_t e = epoch; e < 3; e++) {
        keel_status s = keel_feed_seek(f, (uint32_t)e, e == epoch ? step : 0);
        assert_int_equal(s, KEEL_OK);
        for (int64_t k = e == epoch ? step : 0;; k++) {
            if (e * 100 + k == stop) return stop;
            if ((s = keel_feed_next(f, &b)) == KEEL_END) break;
            if (s < 0) return e * 100 + k;
            keel_feed_release(f, &b);
        }
    }
    return -1;
}

static void a_budget_ends_a_run_at_the_same_step_with_any_threads(void **state)
{
    (void)state;
    static const int threads[] = { -1, 1, 2, 7, 16 };
    for (int t = 0; t < 5; t++)
        for (int most = 1; most <= 10; most += 3) {
            keel_dataset *d = put(rows(N, 40), "shuffle", NULL);
            d = put(d, "substitute", KEEL_ARGS(KEEL_ARG_INT("most", most)));
            keel_feed *f = feed_of(d, threads[t]), *one = feed_of(d, -1);
            const int64_t at = steps(f, 0, 0, -1);
            assert_int_equal(at, steps(one, 0, 0, -1));
            assert_int_equal(at < 0, most == 10);
            if (at >= 0) { /* again, and on */
                keel_batch b;
                assert_int_equal(keel_feed_next(f, &b), KEEL_ECALLBACK);
                assert_int_equal(keel_feed_next(f, &b), KEEL_ECALLBACK);
                assert_non_null(strstr(keel_error(), "of epoch 1"));
            }
            keel_feed_destroy(f);
            keel_feed_destroy(one);
            keel_dataset_destroy(d);
        }
}

static void a_budget_goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    keel_dataset *d =
        put(put(rows(N, 40), "shuffle", NULL), "substitute", KEEL_ARGS(KEEL_ARG_INT("most", 6)));
    keel_feed *f = feed_of(d, 2);
    const int64_t at = steps(f, 0, 0, -1);
    assert_true(at > 2 && at < 25);
    keel_feed_destroy(f);
    for (int64_t k = 1; k < at; k++) {
        keel_feed *before = feed_of(d, 2), *after = feed_of(d, 7);
        assert_int_equal(steps(before, 0, 0, k), k);
        const keel_ledger *from = keel_feed_ledger(before);
        keel_ledger *to = keel_feed_ledger(after);
        assert_int_equal(from->n, 1);
        to->at[0] = from->at[0];
        assert_int_equal(steps(after, 0, k, -1), at);
        keel_feed_destroy(before);
        keel_feed_destroy(after);
    }
    keel_dataset_destroy(d);
}

/* ---- lists ------------------------------------------------------------------------------------
 */

static char *text_of(const char *path)
{
    void *data = NULL;
    size_t n;
    must(keel_file_read(path, 1 << 20, &data, &n));
    assert_non_null(data);
    return data;
}

static void a_list_has_each_row_once(void **state)
{
    (void)state;
    static const char *const stages[] = { "ignore_errors", "substitute" };
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s", files_path(stages[i]));
        for (int run = 0; run < 2; run++) {
            keel_status s;
            keel_dataset *d = put(rows(9, 4), "shuffle", NULL);
            d = put(d, stages[i],
                    KEEL_ARGS(KEEL_ARG_INT("most", 4), KEEL_ARG_STR("quarantine", path)));
            d = put(d, "repeat", KEEL_ARGS(KEEL_ARG_INT("count", 3)));
            assert_int_equal(count(d, 3, &s), i ? 27 : 21);
            assert_int_equal(s, KEEL_END);
            keel_dataset_destroy(d);
        }
        char *text = text_of(path);
        int lines = 0; /* in the order of the shuffle */
        for (const char *c = text; *c; c++) lines += *c == '\n';
        assert_int_equal(lines, 2);
        assert_non_null(strstr(text, "arrays\t3\tmap\t"));
        assert_non_null(strstr(text, "arrays\t7\tmap\t"));
        assert_non_null(strstr(text, ": the sensor was off\n"));
        keel_free(text);
    }
}

static void a_list_that_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "a\tb\tc\td\n", ":1: not a line of such a list" },
        { "a\t1\tc\td\nhello\n", ":2: not a line" },
        { "a\t1111111111111111111111\tc\td\n", ":1: not a line" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = files_text("wrong.txt", cases[i].text);
        keel_dataset *d = rows(9, 4), *out = NULL;
        assert_int_equal(
            keel_dataset_apply(&out, "substitute",
                               KEEL_ARGS(KEEL_ARG_INT("most", 4), KEEL_ARG_STR("quarantine", path)),
                               &d, 1),
            KEEL_EFORMAT);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("%s", keel_error());
        keel_dataset_destroy(d);
    }
    keel_dataset *d = rows(9, 4), *out = NULL;
    assert_int_equal(keel_dataset_apply(&out, "substitute",
                                        KEEL_ARGS(KEEL_ARG_INT("most", 4),
                                                  KEEL_ARG_STR("quarantine", "/none/x.txt")),
                                        &d, 1),
                     KEEL_EIO);
    keel_dataset_destroy(d);
}

/* A line that a crash has cut short does not run into the next one. */
static void a_list_that_was_cut_short_goes_on(void **state)
{
    (void)state;
    keel_status s;
    char path[512];
    snprintf(path, sizeof path, "%s", files_text("cut.txt", "arrays\t3\tma"));
    keel_dataset *d = put(rows(9, 4), "ignore_errors",
                          KEEL_ARGS(KEEL_ARG_INT("most", 4), KEEL_ARG_STR("quarantine", path)));
    count(d, 1, &s);
    keel_dataset_destroy(d);
    char *text = text_of(path);
    assert_memory_equal(text, "arrays\t3\tma\narrays\t7\tmap\t", 25);
    assert_non_null(strstr(text, "the sensor was off\n"));
    keel_free(text);
}

/* ---- leaving out ------------------------------------------------------------------------------
 */

static keel_dataset *table(const char *list, keel_status want)
{
    keel_dataset *d = NULL;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    char path[512];
    o.skip_list = list;
    o.label = NULL;
    snprintf(path, sizeof path, "%s", files_text("t.csv", "x\n0\n1\n2\n3\n4\n5\n6\n7\n"));
    const keel_status s = keel_dataset_open(&d, path, &o);
    if (s != want) fail_msg("status %d: %s", s, keel_error());
    return d;
}

static const char *list_of(const char *numbers)
{
    char text[4096] = "";
    int n = 0;
    for (const char *p = numbers; *p; p++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s\t%c\tcsv\twrong\n",
                      files_path("t.csv"), *p);
    return files_text("skip.txt", text);
}

static void a_skip_list_leaves_rows_out_and_others_keep_their_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *gone, *want;
    } cases[] = {
        { "0", "1 2 3 4 5 6 7 " }, { "7", "0 1 2 3 4 5 6 " },  { "34", "0 1 2 5 6 7 " },
        { "0127", "3 4 5 6 " },    { "", "0 1 2 3 4 5 6 7 " }, { "013579", "2 4 6 " },
        { "0123456", "7 " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = -1; threads < 3; threads++) {
            char text[256] = "";
            keel_reader *r;
            const keel_tensor *x;
            const keel_reader_options o = { .size = sizeof o, .threads = threads };
            char list[512];
            snprintf(list, sizeof list, "%s", list_of(cases[i].gone));
            keel_dataset *d = table(list, KEEL_OK);
            must(keel_reader_create(&r, d, &o));
            while (keel_reader_next(r, &x) == KEEL_OK)
                sprintf(text + strlen(text), "%g ", (double)*(float *)x->data);
            assert_string_equal(text, cases[i].want);
            keel_reader_destroy(r);
            /* batches too, which point into arrays where they can */
            keel_feed *f;
            keel_batch b;
            *text = 0;
            const keel_feed_options feed = { .batch_size = 3, .threads = threads };
            must(keel_feed_create(&f, d, &feed));
            must(keel_feed_begin_epoch(f, 0));
            while (keel_feed_next(f, &b) == KEEL_OK) {
                const float *v = keel_batch_field(&b, KEEL_ROLE_INPUT, 0);
                for (int64_t k = 0; k < b.rows; k++)
                    sprintf(text + strlen(text), "%g ", (double)v[k]);
                keel_feed_release(f, &b);
            }
            assert_string_equal(text, cases[i].want);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
}

static void a_skip_list_says_what_it_left_out(void **state)
{
    (void)state;
    char list[512];
    snprintf(list, sizeof list, "%s", list_of("359"));
    keel_dataset *d = table(list, KEEL_OK);
    assert_int_equal(keel_dataset_rows(d), 6);
    assert_non_null(strstr(keel_dataset_note(d), "2 of 8 rows are left out, of the 3 that"));
    keel_dataset *t, *v; /* a split is of the rows that stay */
    must(keel_dataset_split(d, 0.5, 0, &t, &v));
    assert_int_equal(keel_dataset_rows(t) + keel_dataset_rows(v), 6);
    keel_dataset_destroy(t);
    keel_dataset_destroy(v);
    keel_dataset_destroy(d);
    snprintf(list, sizeof list, "%s", list_of("01234567"));
    table(list, KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "leaves no row"));
    table("/none.txt", KEEL_EIO);
}

static void a_skip_list_is_refused_for_a_stream(void **state)
{
    (void)state;
    keel_dataset *d = NULL;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    char spec[700], list[512];
    snprintf(list, sizeof list, "%s", list_of("3"));
    o.skip_list = list;
    o.label_mode = KEEL_LABEL_NONE;
    snprintf(spec, sizeof spec, "exec:%s",
             "printf '\\x93NUMPY\\x01\\x00\\x46\\x00{\\x27descr\\x27: \\x27<f4\\x27, "
             "\\x27fortran_order\\x27: False, \\x27shape\\x27: (1,), }           \\n\\0\\0\\0\\0'");
    assert_true(keel_dataset_open(&d, spec, &o) < 0);
    keel_dataset_destroy(d);
}

/* What one run has written, the next one takes. */
static void the_next_run_leaves_out_what_the_first_has_listed(void **state)
{
    (void)state;
    keel_dataset *d, *s;
    keel_status last;
    char folder[512], list[512], one[32];
    /* PCM, mono, 16 bits, 2 frames */
    static const char whole[49] = "RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0"
                                  "\x80\x3e\0\0\2\0\x10\0data\4\0\0\0\0\0\0\0";
    snprintf(folder, sizeof folder, "%s", files_folder("sounds"));
    snprintf(list, sizeof list, "%s", files_path("bad.txt"));
    for (int i = 0; i < 6; i++) {
        snprintf(one, sizeof one, "sounds/%d.wav", i);
        files_write(one, whole, 48);
    }
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.label_mode = KEEL_LABEL_NONE;
    must(keel_dataset_from_audio_directory(&d, folder, &o));
    for (int i = 2; i <= 4; i += 2) {
        snprintf(one, sizeof one, "sounds/%d.wav", i);
        if (truncate(files_path(one), 46)) abort();
    }
    must(keel_dataset_apply(
        &s, "ignore_errors",
        KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5), KEEL_ARG_STR("quarantine", list)), &d, 1));
    assert_int_equal(count(s, 2, &last), 4);
    assert_int_equal(last, KEEL_END);
    keel_dataset_destroy(s);
    keel_dataset_destroy(d);
    char *text = text_of(list);
    assert_non_null(strstr(text, "sounds/2.wav\t2\taudio_directory\t"));
    assert_non_null(strstr(text, "sounds/4.wav\t4\taudio_directory\t"));
    keel_free(text);
    /* files are left out wherever they stand now, before a directory looks into them */
    assert_int_equal(keel_dataset_from_audio_directory(&d, folder, &o), KEEL_EFORMAT);
    files_write("sounds/0a.wav", whole, 48);
    o.skip_list = list;
    must(keel_dataset_from_audio_directory(&d, folder, &o));
    assert_int_equal(keel_dataset_rows(d), 5);
    assert_non_null(strstr(keel_dataset_note(d), "2 of 7 rows are left out, of the 2 that"));
    assert_int_equal(count(d, 2, &last), 5);
    assert_int_equal(last, KEEL_END);
    keel_dataset_destroy(d);
}

/* ---- faults of memory -------------------------------------------------------------------------
 */

static void tell_nobody(void *context, const char *line, bool last)
{
    (void)context, (void)line, (void)last;
}

/* A list, a budget, a skip list and a watch, from opening to the end of a pass. */
static keel_status everything(const char *path, const char *list, const char *skip, int stream)
{
    const keel_input_watch w = { sizeof w, .tell = tell_nobody };
    const keel_map m = { .size = sizeof m, .name = "scale", .call = fails, .context = &every };
    keel_dataset *d = NULL, *mapped = NULL, *out = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.skip_list = skip;
    o.watch = &w;
    keel_status s = keel_dataset_open(&d, path, &o);
    if (s >= 0) s = keel_dataset_map(&mapped, d, &m);
    if (s >= 0)
        s = keel_dataset_apply(
            &out, stream ? "ignore_errors" : "substitute",
            KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.9), KEEL_ARG_STR("quarantine", list)), &mapped, 1);
    const keel_feed_options feed = { .batch_size = 2, .threads = -1, .watch = &w };
    if (s >= 0) s = keel_feed_create(&f, out, &feed);
    if (s >= 0) s = keel_feed_begin_epoch(f, 0);
    while (s >= 0 && (s = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(out);
    keel_dataset_destroy(mapped);
    keel_dataset_destroy(d);
    return s;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    char skip[512], list[512], path[512];
    snprintf(path, sizeof path, "%s", files_text("t.csv", "x\n0\n1\n2\n3\n4\n5\n6\n7\n"));
    snprintf(skip, sizeof skip, "%s", list_of("15"));
    snprintf(list, sizeof list, "%s", files_path("faults.txt"));
    every = 4;
    for (int stream = 0; stream < 2; stream++) {
        const int64_t live = keel_memory_live(), calls = keel_memory_calls();
        assert_int_equal(everything(path, list, skip, stream), KEEL_END);
        const int64_t n = keel_memory_calls() - calls;
        assert_true(n > 20);
        for (int64_t at = 0; at < n; at++) {
            unlink(list);
            keel_memory_fail_at(at);
            const keel_status s = everything(path, list, skip, stream);
            keel_memory_fail_at(-1);
            assert_int_equal(keel_memory_live(), live);
            if (s == KEEL_ENOMEM) continue;
            assert_int_equal(s, KEEL_END); /* a line of the list may be missing, no row */
        }
    }
}

static int begin(void **state)
{
    (void)state;
    files_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    files_end();
    return 0;
}

typedef struct listed {
    char text[200];
    int stop_after; /* lines; 0: never */
    int n;
} listed;

static keel_status list_line(void *context, const char *file, int64_t row)
{
    listed *l = context;
    const size_t at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%s:%lld ", file, (long long)row);
    return ++l->n == l->stop_after ? keel_fail(KEEL_ENOMEM, "enough") : KEEL_OK;
}

static void a_list_of_rows_is_read_line_by_line(void **unused)
{
#define TEXT(t) t, sizeof t - 1
    static const struct {
        const char *text;
        size_t n_bytes;
        int stop_after;
        const char *want, *says; /* says NULL: it is read */
    } cases[] = {
        { TEXT(""), 0, "", NULL },
        { TEXT("a\t3\n"), 0, "a:3 ", NULL },
        { TEXT("a b\t0\twhy\tso\n\nc\t-\n"), 0, "a b:0 c:-1 ", NULL },
        { TEXT("a\t-\twhy\nb\t999999999999999999"), 0, "a:-1 b:999999999999999999 ", NULL },
        { TEXT("a\t1\nb\t2\nc\t3\n"), 2, "a:1 b:2 ", "enough" },
        { TEXT("a\t1\nb\n"), 0, "a:1 ", "list:2: not a line" },
        { TEXT("a\n"), 0, "", "list:1: not a line" },
        { TEXT("\n\na\t\n"), 0, "", "list:3: not a line" },
        { TEXT("a\t3x\n"), 0, "", "list:1: not a line" },
        { TEXT("a\t-1\n"), 0, "", "list:1: not a line" },
        { TEXT("a\t 1\n"), 0, "", "list:1: not a line" },
        { TEXT("a\t1000000000000000000\n"), 0, "", "list:1: not a line" },
        { TEXT("a\0b\t3\n"), 0, "", "list:1: not a line" },
        { TEXT("a\t3\0\twhy\n"), 0, "", "list:1: not a line" },
        { TEXT("a\t3\twhy\0\n"), 0, "", "list:1: not a line" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        listed l = { .stop_after = cases[i].stop_after };
        const keel_status s =
            keel_quarantine_parse(cases[i].text, cases[i].n_bytes, "list", list_line, &l);
        if ((s < 0) != !!cases[i].says || (s < 0 && !strstr(keel_error(), cases[i].says)))
            fail_msg("case %zu: %s", i, s < 0 ? keel_error() : "it is read");
        assert_string_equal(l.text, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_rows_is_read_line_by_line),
        cmocka_unit_test(a_budget_is_a_number_a_part_or_both),
        cmocka_unit_test(of_unknown_length_a_part_is_of_those_so_far),
        cmocka_unit_test(wrong_budgets_are_refused),
        cmocka_unit_test(a_budget_ends_a_run_at_the_same_step_with_any_threads),
        cmocka_unit_test(a_budget_goes_on_from_a_checkpoint),
        cmocka_unit_test(a_list_has_each_row_once),
        cmocka_unit_test(a_list_that_is_none_is_refused),
        cmocka_unit_test(a_list_that_was_cut_short_goes_on),
        cmocka_unit_test(a_skip_list_leaves_rows_out_and_others_keep_their_numbers),
        cmocka_unit_test(a_skip_list_says_what_it_left_out),
        cmocka_unit_test(a_skip_list_is_refused_for_a_stream),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(the_next_run_leaves_out_what_the_first_has_listed),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
