/* Stages of a pipeline: what they give, element by element, is what tf.data gives (its numbers, by
 * hand from its documented meaning); and it is the same for any number of threads, and from any
 * element on. */
#include "must.h"
#include "keel/keel.h"
#include "base/memory.h"
#include "data/feed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 400 };

/* ---- sources --------------------------------------------------------------------------------- */

static int64_t number[100];

/* Rows 0 .. n - 1, by index. */
static keel_dataset *range(int64_t n)
{
    keel_dataset *d;
    for (int64_t i = 0; i < 100; i++) number[i] = i;
    const keel_tensor x = { KEEL_INT64, { 1, { n } }, number };
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    return d;
}

typedef struct counter {
    int64_t n, at;
} counter;

static keel_status count(void *context, void *const *field, int64_t capacity, int64_t *rows)
{
    counter *c = context;
    (void)capacity;
    if (c->at >= c->n) return KEEL_END;
    *(int64_t *)field[0] = c->at++;
    *rows = 1;
    return KEEL_OK;
}

static keel_status again(void *context)
{
    ((counter *)context)->at = 0;
    return KEEL_OK;
}

static void release(void *context)
{
    free(context);
}

/* The same rows as a stream: a generator of one row at a time. */
static keel_dataset *stream(int64_t n)
{
    keel_dataset *d, *rows;
    counter *c = calloc(1, sizeof *c);
    c->n = n;
    static const keel_data_field x = { .path = "x", .dtype = KEEL_INT64 };
    must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                            .context = c,
                                                            .max_rows = 1,
                                                            .n_field = 1,
                                                            .field = &x,
                                                            .next_fields = count,
                                                            .reset = again,
                                                            .release = release }));
    must(keel_dataset_unbatch(&rows, d));
    keel_dataset_destroy(d);
    return rows;
}

/* ---- pipelines as texts ---------------------------------------------------------------------- */

static keel_status square(void *context, const keel_tensor *in, keel_tensor *out,
                          const keel_element_place *at)
{
    (void)context;
    (void)at;
    int64_t n = 1;
    for (int d = 0; d < in->shape.rank; d++) n *= in->shape.dim[d];
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)out->data)[i] = ((int64_t *)in->data)[i] * ((int64_t *)in->data)[i];
    return KEEL_OK;
}

static keel_status noise(void *context, const keel_tensor *in, keel_tensor *out,
                         const keel_element_place *at)
{
    (void)context;
    *(int64_t *)out->data =
        *(int64_t *)in->data * 1000 + (int64_t)(keel_element_uniform(at, 0) * 1000);
    return KEEL_OK;
}

/* Fails for 3, 7, 11 ... */
static keel_status not_three(void *context, const keel_tensor *in, keel_tensor *out,
                             const keel_element_place *at)
{
    (void)context;
    (void)at;
    *(int64_t *)out->data = *(int64_t *)in->data;
    return *(int64_t *)in->data % 4 == 3 ? KEEL_EDATA : KEEL_OK;
}

static keel_status even(void *context, const keel_tensor *in, bool *keep,
                        const keel_element_place *at)
{
    (void)context;
    (void)at;
    *keep = *(int64_t *)in->data % 2 == 0;
    return KEEL_OK;
}

/* One stage, "take 5" or "batch 3 drop", put on d, which it takes. */
static keel_dataset *put(keel_dataset *d, const char *text)
{
    char name[32];
    long long a = 0, b = 0;
    char word[20] = "";
    keel_dataset *out, *other;
    const int n = sscanf(text, "%31s %lld %lld", name, &a, &b);
    sscanf(text, "%*s %*d %19s", word);
    if (!strcmp(name, "map")) {
        const keel_map m = { .size = sizeof m, .call = square };
        must(keel_dataset_map(&out, d, &m));
    } else if (!strcmp(name, "noise")) {
        const keel_map m = { .size = sizeof m, .call = noise, .random = true };
        must(keel_dataset_map(&out, d, &m));
    } else if (!strcmp(name, "no_3")) {
        const keel_map m = { .size = sizeof m, .name = "no_3", .call = not_three };
        must(keel_dataset_map(&out, d, &m));
    } else if (!strcmp(name, "substitute") || !strcmp(name, "ignore_errors")) {
        must(keel_dataset_apply(&out, name, KEEL_ARGS(KEEL_ARG_INT("most", a)), &d, 1));
    } else if (!strcmp(name, "in_order")) {
        const keel_map m = { .size = sizeof m, .call = square, .sequential = true };
        must(keel_dataset_map(&out, d, &m));
    } else if (!strcmp(name, "even")) {
        const keel_filter f = { .size = sizeof f, .call = even };
        must(keel_dataset_filter(&out, d, &f));
    } else if (!strcmp(name, "concatenate")) {
        other = b ? put(range(a), b > 1 ? "even" : "repeat") : range(a);
        must(keel_dataset_concatenate(&out, d, other));
        keel_dataset_destroy(other);
    } else if (!strcmp(name, "batch")) {
        const bool drop = !strcmp(word, "drop_remainder");
        must(keel_dataset_apply(
            &out, "batch",
            KEEL_ARGS(KEEL_ARG_INT("batch_size", a),
                      drop ? (keel_arg)KEEL_ARG_BOOL(word, true)
                           : (keel_arg)KEEL_ARG_STR("end", *word ? word : "keep")),
            &d, 1));
    } else if (!strcmp(name, "shard")) {
        must(keel_dataset_shard(&out, d, a, b));
    } else if (!strcmp(name, "repeat")) {
        must(keel_dataset_repeat(&out, d, n > 1 ? a : -1));
    } else if (!strcmp(name, "shuffle")) {
        must(keel_dataset_shuffle(&out, d, a));
    } else if (!strcmp(name, "interleave")) {
        other = range(a);
        must(keel_dataset_apply(&out, "interleave", KEEL_ARGS(KEEL_ARG_INT("block_length", b)),
                                (keel_dataset *[]){ d, other }, 2));
        keel_dataset_destroy(other);
    } else if (!strcmp(name, "sample")) {
        other = range(a);
        must(keel_dataset_apply(&out, "sample",
                                KEEL_ARGS(KEEL_ARG_JSON("weights", "[1, 3]"),
                                          KEEL_ARG_BOOL("stop_on_empty_dataset", b)),
                                (keel_dataset *[]){ d, other }, 2));
        keel_dataset_destroy(other);
    } else if (!strcmp(name, "zip")) {
        other = b ? put(range(a), "batch 2") : range(a);
        must(keel_dataset_apply(&out, "zip", NULL, (keel_dataset *[]){ d, other }, 2));
        keel_dataset_destroy(other);
    } else if (!strcmp(name, "cache")) {
        must(keel_dataset_apply(&out, "cache", a ? KEEL_ARGS(KEEL_ARG_INT("memory", a)) : NULL, &d,
                                1));
    } else if (!strcmp(name, "rebatch")) {
        must(keel_dataset_apply(
            &out, "rebatch",
            KEEL_ARGS(KEEL_ARG_INT("batch_size", a), KEEL_ARG_BOOL("drop_remainder", *word)), &d,
            1));
    } else if (!strcmp(name, "window")) {
        must(keel_dataset_apply(
            &out, "window", KEEL_ARGS(KEEL_ARG_INT("size", a), KEEL_ARG_INT("shift", b)), &d, 1));
    } else if (!strcmp(name, "prefetch")) {
        must(
            keel_dataset_apply(&out, "prefetch", KEEL_ARGS(KEEL_ARG_INT("buffer_size", a)), &d, 1));
    } else if (!strcmp(name, "skip")) {
        must(keel_dataset_skip(&out, d, a));
    } else if (!strcmp(name, "unbatch")) {
        must(keel_dataset_unbatch(&out, d));
    } else {
        assert_string_equal(name, "take");
        must(keel_dataset_take(&out, d, a));
    }
    keel_dataset_destroy(d);
    return out;
}

/* "range 10 | take 5 | batch 2" */
static keel_dataset *pipeline(const char *text, bool streams)
{
    char copy[256], *rest;
    snprintf(copy, sizeof copy, "%s", text);
    char *part = strtok_r(copy, "|", &rest);
    const long long n = strtoll(strpbrk(part, "0123456789"), NULL, 10);
    keel_dataset *d = streams ? stream(n) : range(n);
    while ((part = strtok_r(NULL, "|", &rest))) d = put(d, part);
    return d;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The elements from `index` of pass `pass` on as text, at most `most` of them: "0 1 | 2 3 |". */
static char *read_all(const keel_dataset *d, uint64_t pass, int64_t index, int threads, int most,
                      char *text, size_t size)
{
    keel_reader *r;
    const keel_tensor *x;
    const keel_reader_options o = { KEEL_READER_OPTIONS.size, 7, pass, index, threads, 0 };
    size_t at = 0;
    text[0] = 0;
    const keel_status made = keel_reader_create(&r, d, &o);
    if (made == KEEL_END) return text;
    must(made);
    for (int k = 0; k < most; k++) {
        const keel_status s = keel_reader_next(r, &x);
        if (s == KEEL_END) break;
        must(s);
        const int64_t n = x->shape.rank ? x->shape.dim[0] : 1;
        for (int64_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "," : "",
                                   (long long)((int64_t *)x->data)[i]);
        at += (size_t)snprintf(text + at, size - at, " ");
    }
    keel_reader_destroy(r);
    return text;
}

/* ---- what stages give ------------------------------------------------------------------------ */

static const struct gives {
    const char *what, *pipeline;
    int64_t cardinality; /* by index; of a stream it may be unknown */
    const char *elements;
} gives[] = {
    { "take gives the first elements", "range 10 | take 3", 3, "0 1 2 " },
    { "take of more than there is gives all", "range 3 | take 9", 3, "0 1 2 " },
    { "take -1 gives all", "range 3 | take -1", 3, "0 1 2 " },
    { "take 0 gives none", "range 3 | take 0", 0, "" },
    { "skip leaves out the first", "range 5 | skip 3", 2, "3 4 " },
    { "skip of more than there is gives none", "range 5 | skip 7", 0, "" },
    { "skip -1 gives none", "range 5 | skip -1", 0, "" },
    { "shard takes every third", "range 10 | shard 3 1", 3, "1 4 7 " },
    { "prefetch changes no element", "range 5 | batch 2 | prefetch 3", 3, "0,1 2,3 4 " },
    { "the shards of few rows may be empty", "range 2 | shard 3 2", 0, "" },
    { "repeat gives the data twice", "range 3 | repeat 2", 6, "0 1 2 0 1 2 " },
    { "repeat 0 gives none", "range 3 | repeat 0", 0, "" },
    { "repeat without end, taken from", "range 3 | repeat | take 7", 7, "0 1 2 0 1 2 0 " },
    { "repeat of nothing has an end", "range 3 | take 0 | repeat", 0, "" },
    { "batch keeps a short one", "range 5 | batch 2", 3, "0,1 2,3 4 " },
    { "batch drops a short one", "range 5 | batch 2 drop", 2, "0,1 2,3 " },
    { "batch drops a short one by tf.data's word", "range 5 | batch 2 drop_remainder", 2,
      "0,1 2,3 " },
    { "batch fills a short one from the start", "range 5 | batch 2 wrap", 3, "0,1 2,3 4,0 " },
    { "batch fills from fewer rows than a batch", "range 2 | batch 5 wrap", 1, "0,1,0,1,0 " },
    { "batch then repeat keeps short batches", "range 3 | batch 2 | repeat 2", 4, "0,1 2 0,1 2 " },
    { "repeat then batch fills across the end", "range 3 | repeat 2 | batch 2", 3, "0,1 2,0 1,2 " },
    { "batch then take takes batches", "range 9 | batch 2 | take 2", 2, "0,1 2,3 " },
    { "take then batch takes rows", "range 9 | take 2 | batch 2", 1, "0,1 " },
    { "batch then skip skips batches", "range 5 | batch 2 | skip 1", 2, "2,3 4 " },
    { "batch then shard gives batches away", "range 7 | batch 2 | shard 2 1", 2, "2,3 6 " },
    { "take behind repeat of take", "range 4 | take 2 | repeat 3 | take 5", 5, "0 1 0 1 0 " },
    { "concatenate puts one behind the other", "range 2 | concatenate 3", 5, "0 1 0 1 2 " },
    { "concatenate behind nothing", "range 2 | take 0 | concatenate 2", 2, "0 1 " },
    { "nothing comes behind what has no end", "range 2 | repeat | concatenate 3 | take 5", 5,
      "0 1 0 1 0 " },
    { "concatenate ends with what has no end", "range 2 | concatenate 3 1 | take 7", 7,
      "0 1 0 1 2 0 1 " },
    { "map computes each", "range 4 | map", 4, "0 1 4 9 " },
    { "map computes batches", "range 4 | batch 3 | map", 2, "0,1,4 9 " },
    { "map in order", "range 4 | in_order", 4, "0 1 4 9 " },
    { "filter keeps some", "range 7 | even", KEEL_CARDINALITY_UNKNOWN, "0 2 4 6 " },
    { "filter behind map", "range 6 | map | even", KEEL_CARDINALITY_UNKNOWN, "0 4 16 " },
    { "filter then batch", "range 9 | even | batch 2", KEEL_CARDINALITY_UNKNOWN, "0,2 4,6 8 " },
    { "filter then take", "range 9 | even | take 2", KEEL_CARDINALITY_UNKNOWN, "0 2 " },
    { "filter then repeat", "range 3 | even | repeat 2", KEEL_CARDINALITY_UNKNOWN, "0 2 0 2 " },
    { "zip ends with the shortest", "range 4 | zip 3", 3, "0 1 2 " },
    { "interleave takes one of each in turn", "range 3 | interleave 5 1", 8, "0 0 1 1 2 2 3 4 " },
    { "interleave takes blocks", "range 3 | interleave 4 2", 7, "0 1 0 1 2 2 3 " },
    { "rebatch cuts across batches", "range 7 | batch 3 | rebatch 2", KEEL_CARDINALITY_UNKNOWN,
      "0,1 2,3 4,5 6 " },
    { "rebatch drops a short batch", "range 7 | batch 3 | rebatch 2 drop", KEEL_CARDINALITY_UNKNOWN,
      "0,1 2,3 4,5 " },
    { "ignore_errors leaves out what fails", "range 9 | no_3 | ignore_errors 2",
      KEEL_CARDINALITY_UNKNOWN, "0 1 2 4 5 6 8 " },
    { "batches behind ignore_errors are full", "range 9 | no_3 | ignore_errors 2 | batch 3",
      KEEL_CARDINALITY_UNKNOWN, "0,1,2 4,5,6 8 " },
    { "a filter behind what fails", "range 9 | no_3 | even | ignore_errors 2",
      KEEL_CARDINALITY_UNKNOWN, "0 2 4 6 8 " },
    { "a map in order behind what fails", "range 9 | no_3 | in_order | ignore_errors 2",
      KEEL_CARDINALITY_UNKNOWN, "0 1 4 16 25 36 64 " },
    { "a cache behind what fails", "range 9 | no_3 | cache | ignore_errors 2 | repeat 2",
      KEEL_CARDINALITY_UNKNOWN, "0 1 2 4 5 6 8 0 1 2 4 5 6 8 " },
    { "interleave goes on in turn behind what fails",
      "range 9 | no_3 | interleave 6 1 | ignore_errors 2", KEEL_CARDINALITY_UNKNOWN,
      "0 0 1 1 2 2 4 3 5 4 6 5 8 " },
    { "concatenate goes on behind what fails", "range 9 | no_3 | concatenate 5 2 | ignore_errors 2",
      KEEL_CARDINALITY_UNKNOWN, "0 1 2 4 5 6 8 0 2 4 " },
    { "zip leaves out batches that differ in rows",
      "range 5 | batch 2 | zip 9 2 | ignore_errors 1 | take 3", KEEL_CARDINALITY_UNKNOWN,
      "0,1 2,3 " },
    { "a last batch that is refused is left out",
      "range 9 | even | batch 2 error | ignore_errors 1", KEEL_CARDINALITY_UNKNOWN, "0,2 4,6 " },
    { "unbatch gives the rows back", "range 5 | batch 2 | unbatch", KEEL_CARDINALITY_UNKNOWN,
      "0 1 2 3 4 " },
    { "unbatch then batch is another batch size", "range 5 | batch 2 | unbatch | batch 3",
      KEEL_CARDINALITY_UNKNOWN, "0,1,2 3,4 " },
};

static void a_stage_gives(void **state)
{
    const struct gives *g = *state;
    char text[4096];
    for (int streams = 0; streams < 2; streams++) {
        keel_dataset *d = pipeline(g->pipeline, streams);
        const int64_t n = keel_dataset_cardinality(d);
        if (!streams || n >= 0) assert_int_equal(n, g->cardinality);
        for (int threads = -1; threads < 4; threads += 2)
            assert_string_equal(read_all(d, 0, 0, threads, MOST, text, sizeof text), g->elements);
        keel_dataset_destroy(d);
    }
}

/* What keras.utils.timeseries_dataset_from_array(x, y[5:], 3, sequence_stride=2, sampling_rate=2)
 * gives. */
static void windows_may_have_the_target_of_one_row(void **unused)
{
    (void)unused;
    enum { ROWS = 13 };
    float x[ROWS][2], y[ROWS], w[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = (float)i;
        x[i][1] = (float)-i;
        y[i] = (float)(10 * i);
        w[i] = (float)(100 * i);
    }
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, x },
                      ty = { KEEL_FLOAT32, { 1, { ROWS } }, y },
                      tw = { KEEL_FLOAT32, { 1, { ROWS } }, w };
    keel_dataset *d, *windows;
    keel_reader *r;
    const keel_tensor *t;
    must(keel_dataset_from_arrays(&d, &tx, &ty, &tw));
    must(keel_dataset_apply(&windows, "window",
                            KEEL_ARGS(KEEL_ARG_INT("size", 3), KEEL_ARG_INT("shift", 2),
                                      KEEL_ARG_INT("stride", 2), KEEL_ARG_INT("target_offset", 5)),
                            &d, 1));
    keel_dataset_destroy(d);
    assert_int_equal(keel_dataset_cardinality(windows), 4);
    must(keel_reader_create(&r, windows, NULL));
    for (int i = 0; i < 4; i++) {
        must(keel_reader_next(r, &t));
        const float *values = t[0].data;
        assert_true(t[0].shape.rank == 2 && t[0].shape.dim[0] == 3 && t[0].shape.dim[1] == 2);
        for (int k = 0; k < 3; k++) assert_true(values[2 * k] == (float)(2 * i + 2 * k));
        for (int k = 0; k < 3; k++) assert_true(values[2 * k + 1] == -values[2 * k]);
        assert_int_equal(t[1].shape.rank, 0);
        assert_true(*(float *)t[1].data == y[2 * i + 5] && *(float *)t[2].data == w[2 * i + 5]);
    }
    assert_int_equal(keel_reader_next(r, &t), KEEL_END);
    keel_reader_destroy(r);
    keel_dataset_destroy(windows);
}

static void a_window_needs_all_its_rows(void **unused)
{
    (void)unused;
    static const struct {
        const char *what;
        int rows, size, shift, stride, offset; /* offset -1: none */
        int64_t want;
    } cases[] = {
        { "one row less than a window", 3, 4, 1, 1, -1, 0 },
        { "as many rows as a window", 4, 4, 1, 1, -1, 1 },
        { "one row more", 5, 4, 1, 1, -1, 2 },
        { "one row more, which is not enough to shift", 5, 4, 2, 1, -1, 1 },
        { "one row less than a window with a stride", 6, 4, 1, 2, -1, 0 },
        { "as many rows as a window with a stride", 7, 4, 1, 2, -1, 1 },
        { "no row for the target", 4, 4, 1, 1, 4, 0 },
        { "a row for the target", 5, 4, 1, 1, 4, 1 },
        { "a target within the window", 4, 4, 1, 1, 2, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x[8] = { 0 }, y[8] = { 0 };
        const keel_tensor tx = { KEEL_FLOAT32, { 1, { cases[i].rows } }, x },
                          ty = { KEEL_FLOAT32, { 1, { cases[i].rows } }, y };
        keel_dataset *d, *windows;
        must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
        const keel_arg target = KEEL_ARG_INT("target_offset", cases[i].offset);
        must(keel_dataset_apply(&windows, "window",
                                KEEL_ARGS(KEEL_ARG_INT("size", cases[i].size),
                                          KEEL_ARG_INT("shift", cases[i].shift),
                                          KEEL_ARG_INT("stride", cases[i].stride),
                                          cases[i].offset < 0 ? (keel_arg){ 0 } : target),
                                &d, 1));
        if (keel_dataset_cardinality(windows) != cases[i].want)
            fail_msg("%s: %lld windows, not %lld", cases[i].what,
                     (long long)keel_dataset_cardinality(windows), (long long)cases[i].want);
        keel_dataset_destroy(windows);
        keel_dataset_destroy(d);
    }
}

/* ---- the same for any threads, from any element ---------------------------------------------- */

static const char *const chains[] = {
    "range 23 | shuffle 0",
    "range 23 | shuffle 5 | batch 4",
    "range 23 | shuffle 5 | even | shuffle 3",
    "range 23 | batch 4 | shuffle 0 | repeat 2",
    "range 23 | shuffle 0 | repeat | take 50 | batch 7",
    "range 23 | repeat | shuffle 9 | take 40",
    "range 11 | noise | shuffle 4 | batch 3 drop",
    "range 11 | shuffle 0 | noise | even | batch 3",
    "range 30 | shard 3 1 | shuffle 4 | concatenate 5 | map | skip 2",
    "range 20 | sample 9 1 | batch 4",
    "range 20 | sample 9 0 | shuffle 4",
    "range 20 | map | cache 0 | shuffle 0 | batch 3",
    "range 20 | map | cache 700 | shuffle 3 | batch 3",
    "range 20 | window 4 3 | shuffle 0",
    "range 20 | batch 4 | shuffle 0 | rebatch 7",
    "range 20 | batch 6 | map | unbatch | shuffle 5 | batch 4 wrap",
};

static void any_threads_give_the_same(void **unused)
{
    (void)unused;
    static const int threads[] = { 1, 2, 7, 16 };
    char one[8192], more[8192];
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
        for (uint64_t pass = 0; pass < 2; pass++) {
            keel_dataset *d = pipeline(chains[i], false);
            read_all(d, pass, 0, -1, MOST, one, sizeof one);
            assert_true(strlen(one) > 10);
            for (size_t k = 0; k < sizeof threads / sizeof *threads; k++)
                assert_string_equal(read_all(d, pass, 0, threads[k], MOST, more, sizeof more), one);
            keel_dataset_destroy(d);
        }
}

static void streams_are_shuffled_as_rows_by_number(void **unused)
{
    (void)unused;
    static const char *const all[] = {
        "range 23 | shuffle 1",
        "range 23 | shuffle 5",
        "range 23 | shuffle 22",
        "range 23 | shuffle 23",
        "range 23 | shuffle 24",
        "range 23 | shuffle 5 | repeat 2",
        "range 1 | shuffle 1",
        "range 23 | take 0 | shuffle 4",
        "range 23 | shuffle 5 | batch 4",
        "range 23 | batch 4 | shuffle 3",
    };
    char one[8192], other[8192];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (uint64_t pass = 0; pass < 2; pass++) {
            char text[256]; /* with as many stages: the generator's rows are unbatched */
            snprintf(text, sizeof text, "%.8s | take -1%s", all[i], strchr(all[i], '|') - 1);
            if (all[i][7] == ' ') snprintf(text, sizeof text, "range 1 | take -1%s", all[i] + 7);
            keel_dataset *d = pipeline(text, false), *s = pipeline(all[i], true);
            assert_string_equal(read_all(d, pass, 0, 2, MOST, one, sizeof one),
                                read_all(s, pass, 0, 2, MOST, other, sizeof other));
            keel_dataset_destroy(d);
            keel_dataset_destroy(s);
        }
}

static void reading_goes_on_from_any_element(void **unused)
{
    (void)unused;
    char all[8192], rest[8192];
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        keel_dataset *d = pipeline(chains[i], false);
        read_all(d, 1, 0, 2, MOST, all, sizeof all);
        const char *from = all;
        for (int64_t k = 0; *from; k++) {
            assert_string_equal(read_all(d, 1, k, 2, MOST, rest, sizeof rest), from);
            from = strchr(from, ' ') + 1;
        }
        keel_dataset_destroy(d);
    }
}

/* By row number only: a stream cannot be asked for another row. */
static void another_row_stands_for_one_that_fails(void **unused)
{
    (void)unused;
    char text[256];
    keel_dataset *d = pipeline("range 9 | no_3 | substitute 2 | batch 4", false);
    assert_string_equal(read_all(d, 0, 0, 2, MOST, text, sizeof text), "0,1,2,4 4,5,6,8 8 ");
    keel_dataset_destroy(d);
}

/* A row keeps its number where rows are read by it; a stream counts what it gives. */
static void rows_that_fail_count_by_number_before_they_are_left_out(void **unused)
{
    (void)unused;
    static const struct {
        const char *pipeline, *by_number, *stream;
    } cases[] = {
        { "range 9 | no_3 | take 5 | ignore_errors 2", "0 1 2 4 ", "0 1 2 4 5 " },
        { "range 9 | no_3 | skip 4 | ignore_errors 2", "4 5 6 8 ", "5 6 8 " },
        { "range 9 | no_3 | shard 2 1 | ignore_errors 2", "1 5 ", "1 4 6 " },
        { "range 9 | no_3 | batch 3 | ignore_errors 2", "0,1,2 ", "0,1,2 4,5,6 8 " },
        { "range 9 | no_3 | ignore_errors 2 | take 5", "0 1 2 4 5 ", "0 1 2 4 5 " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int streams = 0; streams < 2; streams++) {
            char text[256];
            keel_dataset *d = pipeline(cases[i].pipeline, streams);
            assert_string_equal(read_all(d, 0, 0, 2, MOST, text, sizeof text),
                                streams ? cases[i].stream : cases[i].by_number);
            keel_dataset_destroy(d);
        }
}

static void one_failure_too_many_fails(void **unused)
{
    (void)unused;
    static const char *const all[] = { "range 9 | no_3 | substitute 1",
                                       "range 9 | no_3 | ignore_errors 1" };
    for (int i = 0; i < 2; i++) {
        keel_reader *r;
        const keel_tensor *x;
        keel_status s;
        keel_dataset *d = pipeline(all[i], false);
        must(keel_reader_create(&r, d, NULL));
        while ((s = keel_reader_next(r, &x)) == KEEL_OK) continue;
        assert_int_equal(s, KEEL_ECALLBACK);
        assert_non_null(strstr(keel_error(), "the failure after 1"));
        assert_non_null(strstr(keel_error(), "no_3"));
        assert_int_equal(keel_reader_next(r, &x), KEEL_ECALLBACK); /* it is not passed over */
        keel_reader_pass(r);
        assert_int_equal(keel_reader_next(r, &x), KEEL_OK);
        keel_reader_destroy(r);
        keel_dataset_destroy(d);
    }
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void a_shuffle_gives_each_element_once(void **unused)
{
    (void)unused;
    static const char *const all[] = { "range 40 | shuffle 0", "range 40 | shuffle 6",
                                       "range 40 | shuffle 1", "range 40 | shuffle 40" };
    char text[4096], next[4096];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int streams = 0; streams < 2; streams++) {
            if (streams && strstr(all[i], "shuffle 0")) continue; /* of unknown length: refused */
            keel_dataset *d = pipeline(all[i], streams);
            int seen[40], n = 0;
            read_all(d, 0, 0, 2, MOST, text, sizeof text);
            read_all(d, 1, 0, 2, MOST, next, sizeof next);
            const bool in_order = strstr(all[i], "shuffle 1") != NULL;
            assert_int_equal(strcmp(text, next) == 0, in_order);
            char *rest = text;
            for (; *rest; rest++) {
                seen[n] = (int)strtol(rest, &rest, 10);
                if (strstr(all[i], "shuffle 6")) assert_true(seen[n] < n + 6);
                n++;
            }
            assert_int_equal(n, 40);
            qsort(seen, 40, sizeof *seen, compare);
            for (int k = 0; k < 40; k++) assert_int_equal(seen[k], k);
            keel_dataset_destroy(d);
        }
}

/* One more is in use by the step. Rows are counted in the batches that a fit makes of them. */
static void prefetch_says_how_many_batches_are_ready(void **state)
{
    static const struct {
        const char *pipeline;
        int64_t batch_size;
        int slots; /* 0: refused */
    } cases[] = {
        { "range 40 | batch 2 | prefetch 5", 0, 6 },
        { "range 40 | prefetch 8", 4, 3 },
        { "range 40 | prefetch 9", 4, 4 },
        { "range 40 | even | batch 2 | prefetch 5", 0, 6 },
        { "range 40 | batch 2 | prefetch 64", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_feed *f = NULL;
        keel_dataset *d = pipeline(cases[i].pipeline, false);
        const keel_feed_options o = { .real = KEEL_FLOAT32, .batch_size = cases[i].batch_size };
        const keel_status s = keel_feed_create(&f, d, &o);
        assert_int_equal(s < 0, !cases[i].slots);
        if (s < 0) assert_non_null(strstr(keel_error(), "64 batches are to be ready; at most 63"));
        if (s >= 0) assert_int_equal(keel_feed_slots(f), cases[i].slots);
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

int main(void)
{
    enum { N = sizeof gives / sizeof *gives };
    static struct CMUnitTest test[N + 10];
    for (int i = 0; i < N; i++)
        test[i] = (struct CMUnitTest){ .name = gives[i].what,
                                       .test_func = a_stage_gives,
                                       .initial_state = (void *)&gives[i] };
    test[N] = (struct CMUnitTest)cmocka_unit_test(any_threads_give_the_same);
    test[N + 1] = (struct CMUnitTest)cmocka_unit_test(reading_goes_on_from_any_element);
    test[N + 2] = (struct CMUnitTest)cmocka_unit_test(a_shuffle_gives_each_element_once);
    test[N + 3] = (struct CMUnitTest)cmocka_unit_test(another_row_stands_for_one_that_fails);
    test[N + 4] = (struct CMUnitTest)cmocka_unit_test(one_failure_too_many_fails);
    test[N + 5] = (struct CMUnitTest)cmocka_unit_test(streams_are_shuffled_as_rows_by_number);
    test[N + 6] = (struct CMUnitTest)cmocka_unit_test(prefetch_says_how_many_batches_are_ready);
    test[N + 7] = (struct CMUnitTest)cmocka_unit_test(windows_may_have_the_target_of_one_row);
    test[N + 8] = (struct CMUnitTest)cmocka_unit_test(a_window_needs_all_its_rows);
    test[N + 9] = (struct CMUnitTest)cmocka_unit_test(
        rows_that_fail_count_by_number_before_they_are_left_out);
    return cmocka_run_group_tests(test, NULL, NULL);
}
