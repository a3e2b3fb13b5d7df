/* Stages against the numbers that tf.data gives (golden/make_pipelines.py): read by number and as
 * streams, with 1 to 16 threads, and from each element on. */
#include "must.h"
#include "base/memory.h"
#include "data/element.h"
#include "data/feed.h"
#include "golden.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ------------------------------------------------------------------------------- */

static int64_t first(const keel_tensor *in)
{
    return *(const int64_t *)in[0].data;
}

#define CALLED(name, out_type)                                                                     \
    static keel_status name(void *context, const keel_tensor *in, out_type *out,                   \
                            const keel_element_place *at)

CALLED(all_stay, bool)
{
    (void)context, (void)in, (void)at;
    *out = true;
    return KEEL_OK;
}

CALLED(small, bool)
{
    (void)context, (void)at;
    *out = first(in) * first(in) < 20;
    return KEEL_OK;
}

CALLED(below_3, bool)
{
    (void)context, (void)at;
    *out = first(in) < 3;
    return KEEL_OK;
}

CALLED(no_threes, bool)
{
    (void)context, (void)at;
    *out = first(in) % 3 > 0;
    return KEEL_OK;
}

static keel_status product(void *context, keel_tensor *state, const keel_tensor *in,
                           keel_tensor *out, const keel_element_place *at)
{
    (void)context, (void)at;
    int64_t *s = state->data;
    *(int64_t *)out->data = *s * first(in);
    *s += first(in);
    return KEEL_OK;
}

static keel_status sum(void *context, keel_tensor *state, const keel_tensor *in, keel_tensor *out,
                       const keel_element_place *at)
{
    (void)context, (void)at;
    int64_t *s = state->data;
    *(int64_t *)out->data = *s += first(in);
    return KEEL_OK;
}

/* k numbers from 10 k on; in batches of `context`. */
CALLED(tens, keel_dataset *)
{
    (void)at;
    const int64_t k = first(in), *batch = context;
    char spec[64];
    keel_dataset *all, *some;
    snprintf(spec, sizeof spec, "range:%lld:%lld", (long long)(10 * k), (long long)(10 * k + 9));
    keel_status s = keel_dataset_open(&all, spec, NULL);
    if (s < 0) return s;
    s = keel_dataset_take(&some, all, k);
    keel_dataset_destroy(all);
    if (s < 0) return s;
    *out = some;
    if (!batch) return KEEL_OK;
    s = keel_dataset_batch(out, some, *batch, false);
    keel_dataset_destroy(some);
    return s;
}

CALLED(key, int64_t)
{
    (void)context, (void)at;
    *out = (first(in) * first(in) + 2) % 5;
    return KEEL_OK;
}

static keel_status key_and_1(void *context, int64_t k, int64_t *size)
{
    (void)context;
    *size = k + 1;
    return KEEL_OK;
}

static keel_status all_but_one(void *context, int64_t k, keel_dataset *window, keel_dataset **out)
{
    (void)context, (void)k;
    return keel_dataset_skip(out, window, 1);
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static bool streams; /* sources are streams */

static keel_dataset *then(keel_dataset *d, const char *stage, const keel_arg *args)
{
    keel_dataset *out;
    must(keel_dataset_apply(&out, stage, args, &d, 1));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *filtered(keel_dataset *d,
                              keel_status (*call)(void *, const keel_tensor *, bool *,
                                                  const keel_element_place *))
{
    keel_dataset *out;
    must(keel_dataset_filter(&out, d, &(keel_filter){ .size = sizeof(keel_filter), .call = call }));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *joined(keel_dataset *a, keel_dataset *b)
{
    keel_dataset *out;
    must(keel_dataset_concatenate(&out, a, b));
    keel_dataset_destroy(a);
    keel_dataset_destroy(b);
    return out;
}

static keel_dataset *open_rows(const char *spec)
{
    keel_dataset *d;
    must(keel_dataset_open(&d, spec, NULL));
    return streams ? filtered(d, all_stay) : d;
}

static keel_dataset *array_of(const int64_t *from, int64_t n)
{
    keel_dataset *d;
    const keel_tensor x = { KEEL_INT64, { 1, { n } }, (void *)from };
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    return streams ? filtered(d, all_stay) : d;
}

/* The squares from 0 on modulo 97, of which there are 49. */
static keel_dataset *squares(int64_t n)
{
    static int64_t value[100];
    for (int64_t i = 0; i < n; i++) value[i] = i * i % 97;
    return array_of(value, n);
}

static keel_dataset *texts(void)
{
    static const keel_string text[] = { { "b", 1 },  { "a", 1 }, { "", 0 },  { "b", 1 },
                                        { "ab", 2 }, { "", 0 },  { "a", 1 }, { "ba", 2 } };
    keel_dataset *d;
    const keel_tensor x = { KEEL_STRING, { 1, { 8 } }, (void *)text };
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    return streams ? filtered(d, all_stay) : d;
}

/* Rows of 1 to n numbers, as many as the number is. */
static keel_dataset *ragged(int64_t n, bool zero_last)
{
    static int64_t values[100], splits[11];
    keel_dataset *d;
    int64_t at = 0;
    for (int64_t k = 1; k <= n; k++) {
        for (int64_t i = 0; i < k; i++) values[at++] = zero_last && i == k - 1 ? 0 : k;
        splits[k] = at;
    }
    const keel_array_field x = { "x",
                                 KEEL_ROLE_INPUT,
                                 NULL,
                                 { KEEL_INT64, { 1, { at } }, values },
                                 { KEEL_INT64, { 1, { n + 1 } }, splits } };
    must(keel_dataset_from_fields(&d, &x, 1));
    return streams ? filtered(d, all_stay) : d;
}

/* Rows of k times k, of k, and of 5 - k times 10 k, for k from 1 to 4. */
static keel_dataset *two_ragged(void)
{
    enum { ROWS = 4, ALL = 10 };
    static int64_t left[ALL], right[ALL], number[ROWS], splits[2][ROWS + 1];
    keel_dataset *d;
    int64_t n = 0, m = 0;
    for (int64_t k = 1; k <= ROWS; k++) {
        for (int64_t i = 0; i < k; i++) left[n++] = k;
        for (int64_t i = k; i <= ROWS; i++) right[m++] = 10 * k;
        splits[0][k] = n;
        splits[1][k] = m;
        number[k - 1] = k;
    }
    const keel_tensor split[2] = { { KEEL_INT64, { 1, { ROWS + 1 } }, splits[0] },
                                   { KEEL_INT64, { 1, { ROWS + 1 } }, splits[1] } };
    const keel_array_field f[] = {
        { "x", KEEL_ROLE_INPUT, NULL, { KEEL_INT64, { 1, { ALL } }, left }, split[0] },
        { "n", KEEL_ROLE_INPUT, NULL, { KEEL_INT64, { 1, { ROWS } }, number } },
        { "z", KEEL_ROLE_INPUT, NULL, { KEEL_INT64, { 1, { ALL } }, right }, split[1] }
    };
    must(keel_dataset_from_fields(&d, f, 3));
    return streams ? filtered(d, all_stay) : d;
}

/* Each row twice, side by side. */
static keel_status twice(void *context, const keel_tensor *in, keel_tensor *out,
                         const keel_element_place *at)
{
    (void)context, (void)at;
    const int64_t n = in->shape.dim[in->shape.rank - 1];
    const int64_t rows = in->shape.rank > 1 ? in->shape.dim[0] : 1;
    for (int64_t i = 0; i < 2 * n * rows; i++)
        ((int64_t *)out->data)[i] = ((int64_t *)in->data)[i / (2 * n) * n + i % n];
    return KEEL_OK;
}

static keel_status as_much_again(void *context, const keel_shape *in, keel_shape *out)
{
    (void)context;
    out[0] = in[0];
    out[0].dim[in[0].rank - 1] *= 2;
    return KEEL_OK;
}

static keel_status of_another_rank(void *context, const keel_shape *in, keel_shape *out)
{
    (void)context;
    out[0] = (keel_shape){ in[0].rank + 1, { in[0].dim[0], 1 } };
    return KEEL_OK;
}

static keel_status of_less_than_nothing(void *context, const keel_shape *in, keel_shape *out)
{
    (void)context, (void)in;
    out[0].dim[0] = -7;
    return KEEL_OK;
}

static keel_status of_no_shape(void *context, const keel_shape *in, keel_shape *out)
{
    (void)context, (void)in, (void)out;
    return keel_error_set(KEEL_EDATA, "it has no shape");
}

static keel_dataset *lengthened(keel_dataset *d,
                                keel_status (*shapes)(void *, const keel_shape *, keel_shape *))
{
    keel_dataset *out;
    const keel_data_field x = { "x", KEEL_INT64, { 1, { KEEL_DIM_OPEN } }, KEEL_ROLE_INPUT };
    must(keel_dataset_map(&out, d,
                          &(keel_map){ .size = sizeof(keel_map),
                                       .n_field = 1,
                                       .field = &x,
                                       .call = twice,
                                       .shapes = shapes }));
    keel_dataset_destroy(d);
    return out;
}

/* The numbers from 0 on, in the shape (k, 6 - k, 3, 2) where a row has k. */
static keel_status count_up(void *context, const keel_tensor *in, keel_tensor *out,
                            const keel_element_place *at)
{
    (void)context, (void)at;
    const int64_t k = in->shape.dim[0];
    for (int64_t i = 0; i < k * (6 - k) * 6; i++) ((int64_t *)out->data)[i] = i;
    return KEEL_OK;
}

static keel_status of_a_box(void *context, const keel_shape *in, keel_shape *out)
{
    (void)context;
    out[0] = (keel_shape){ 4, { in[0].dim[0], 6 - in[0].dim[0], 3, 2 } };
    return KEEL_OK;
}

/* Streams, since by number the first dim alone may be open. */
static keel_dataset *boxes(void)
{
    keel_dataset *d = filtered(ragged(5, false), all_stay), *out;
    const keel_data_field x = {
        "x", KEEL_INT64, { 4, { KEEL_DIM_OPEN, KEEL_DIM_OPEN, 3, 2 } }, KEEL_ROLE_INPUT
    };
    must(keel_dataset_map(&out, d,
                          &(keel_map){ .size = sizeof(keel_map),
                                       .n_field = 1,
                                       .field = &x,
                                       .call = count_up,
                                       .shapes = of_a_box }));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *scanned(keel_dataset *d, int64_t from,
                             keel_status (*call)(void *, keel_tensor *, const keel_tensor *,
                                                 keel_tensor *, const keel_element_place *))
{
    keel_dataset *out;
    const keel_tensor state = { KEEL_INT64, { 0 }, &from };
    must(keel_dataset_scan(
        &out, d,
        &(keel_scan){ .size = sizeof(keel_scan), .n_state = 1, .state = &state, .call = call }));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *taken_while(keel_dataset *d,
                                 keel_status (*call)(void *, const keel_tensor *, bool *,
                                                     const keel_element_place *))
{
    keel_dataset *out;
    must(keel_dataset_take_while(&out, d,
                                 &(keel_filter){ .size = sizeof(keel_filter), .call = call }));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *mapped(keel_dataset *d, int64_t cycle, int64_t block, int64_t *batch)
{
    keel_dataset *out, *numbers, *like = NULL;
    const keel_flat_map m = { .size = sizeof m, .context = batch, .call = tens };
    keel_flat_map n = m;
    n.cycle_length = cycle;
    n.block_length = block;
    if (batch) {
        must(keel_dataset_open(&numbers, "range:9", NULL));
        must(keel_dataset_batch(&like, numbers, *batch, false));
        keel_dataset_destroy(numbers);
        n.like = like;
    }
    must(cycle ? keel_dataset_interleave(&out, d, &n) : keel_dataset_flat_map(&out, d, &n));
    keel_dataset_destroy(like);
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *given(int64_t cycle, int64_t block)
{
    keel_dataset *part[4], *out;
    static const char *const specs[] = { "range:3", "range:10:11", "range:20:24", "range:30:32" };
    for (int i = 0; i < 4; i++) part[i] = open_rows(specs[i]);
    must(keel_dataset_apply(
        &out, "interleave",
        KEEL_ARGS(KEEL_ARG_INT("cycle_length", cycle), KEEL_ARG_INT("block_length", block)), part,
        4));
    for (int i = 0; i < 4; i++) keel_dataset_destroy(part[i]);
    return out;
}

static keel_dataset *choose(bool stop)
{
    static const int64_t numbers[] = { 0, 1, 2, 2, 1, 0, 1, 2, 0, 0, 2, 1, 0 };
    keel_dataset *part[4], *out;
    part[0] = open_rows("range:3");
    part[1] = open_rows("range:10:12");
    part[2] = open_rows("range:20:25");
    part[3] = array_of(numbers, 13);
    must(keel_dataset_apply(&out, "choose_from_datasets",
                            KEEL_ARGS(KEEL_ARG_BOOL("stop_on_empty_dataset", stop)), part, 4));
    for (int i = 0; i < 4; i++) keel_dataset_destroy(part[i]);
    return out;
}

static keel_dataset *grouped(keel_group g)
{
    keel_dataset *d = open_rows("range:20"), *out;
    g.size = sizeof g;
    g.key = key;
    must(keel_dataset_group_by_window(&out, d, &g));
    keel_dataset_destroy(d);
    return out;
}

static const int64_t repeats[] = { 1, 37, 2, 37, 2, 1, 0 }, pairs[] = { 1, 2, 1, 2, 2, 1, 1 };

#define BATCH(d, n)         then(d, "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", n)))
#define TWICE(d)            then(d, "repeat", KEEL_ARGS(KEEL_ARG_INT("count", 2)))
#define WITH(d, stage, ...) then(d, stage, KEEL_ARGS(__VA_ARGS__))

static int64_t two = 2;

/* The pipeline of case i; NULL: there is none. */
static keel_dataset *make(int i, const char **what)
{
    int n = 0;
#define CASE(name, ...)                                                                            \
    if (i == n++) {                                                                                \
        *what = name;                                                                              \
        return __VA_ARGS__;                                                                        \
    }
    CASE("enumerate from 5", WITH(open_rows("range:3:7"), "enumerate", KEEL_ARG_INT("start", 5)))
    CASE("enumerate, twice", TWICE(then(open_rows("range:3"), "enumerate", NULL)))
    CASE("take_while", taken_while(open_rows("range:10"), small))
    CASE("take_while of none", taken_while(open_rows("range:3:10"), below_3))
    CASE("scan", scanned(open_rows("range:7"), 10, product))
    CASE("scan, twice", TWICE(scanned(open_rows("range:4"), 0, sum)))
    CASE("unique", then(array_of(repeats, 7), "unique", NULL))
    CASE("unique, more than 32", then(squares(100), "unique", NULL))
    CASE("unique of texts", then(texts(), "unique", NULL))
    CASE("unique of lists of texts", then(TWICE(BATCH(texts(), 2)), "unique", NULL))
    CASE("unique of batches", then(BATCH(array_of(pairs, 7), 2), "unique", NULL))
    CASE("range", open_rows("range:5"))
    CASE("range by steps", open_rows("range:3:10:3"))
    CASE("range backward", open_rows("range:9:2:-2"))
    CASE("counter", WITH(open_rows("counter:10:3"), "take", KEEL_ARG_INT("count", 4)))
    CASE("choose until one is empty", choose(true))
    CASE("choose until all are", choose(false))
    CASE("flat_map", mapped(open_rows("range:5"), 0, 0, NULL))
    CASE("flat_map then batch", BATCH(mapped(open_rows("range:5"), 0, 0, NULL), 4))
    CASE("flat_map of batches", mapped(open_rows("range:5"), 0, 0, &two))
    CASE("interleave of 2", mapped(open_rows("range:6"), 2, 1, NULL))
    CASE("interleave of 2 by 3", mapped(open_rows("range:7"), 2, 3, NULL))
    CASE("interleave of 3 by 2", mapped(open_rows("range:1:8"), 3, 2, NULL))
    CASE("interleave of 10 by 4", mapped(open_rows("range:6"), 10, 4, NULL))
    CASE("interleave then repeat", TWICE(mapped(open_rows("range:4"), 2, 1, NULL)))
    CASE("interleave given", given(4, 1))
    CASE("interleave given by 2", given(4, 2))
    CASE("interleave given, 2 open", given(2, 1))
    CASE("interleave given, 3 open by 2", given(3, 2))
    CASE("group_by_window", grouped((keel_group){ .window_size = 3 }))
    CASE("group_by_window by key",
         grouped((keel_group){ .window_size = 9, .window_size_of = key_and_1 }))
    CASE("group_by_window, rows", grouped((keel_group){ .window_size = 4, .reduce = all_but_one }))
    CASE("padded_batch", WITH(ragged(5, false), "padded_batch", KEEL_ARG_INT("batch_size", 2)))
    CASE("map to rows of other lengths", WITH(lengthened(ragged(5, false), as_much_again),
                                              "padded_batch", KEEL_ARG_INT("batch_size", 2)))
    CASE("map of batches to others",
         lengthened(WITH(ragged(5, false), "padded_batch", KEEL_ARG_INT("batch_size", 2)),
                    as_much_again))
    CASE("padded_batch by -1", WITH(ragged(5, false), "padded_batch", KEEL_ARG_INT("batch_size", 2),
                                    KEEL_ARG_INT("padding_values", -1)))
    CASE("padded_batch to 6",
         WITH(ragged(5, false), "padded_batch", KEEL_ARG_INT("batch_size", 3),
              KEEL_ARG_JSON("padded_shapes", "[6]"), KEEL_ARG_JSON("padding_values", "[7]")))
    CASE("padded_batch of rows of several dims",
         WITH(boxes(), "padded_batch", KEEL_ARG_INT("batch_size", 3),
              KEEL_ARG_INT("padding_values", -1)))
    CASE("padded_batch, dropped",
         WITH(ragged(5, false), "padded_batch", KEEL_ARG_INT("batch_size", 2),
              KEEL_ARG_BOOL("drop_remainder", true)))
    CASE("padded_batch of rows that are too long",
         WITH(WITH(joined(ragged(6, false), ragged(4, false)), "padded_batch",
                   KEEL_ARG_INT("batch_size", 3), KEEL_ARG_JSON("padded_shapes", "[4]")),
              "ignore_errors", KEEL_ARG_INT("most", 2)))
    CASE("pad to 3",
         WITH(ragged(5, false), "pad", KEEL_ARG_INT("length", 3), KEEL_ARG_INT("value", 9)))
    CASE("pad before",
         WITH(ragged(5, true), "pad", KEEL_ARG_INT("length", 3), KEEL_ARG_INT("value", 8),
              KEEL_ARG_STR("padding", "pre"), KEEL_ARG_STR("truncating", "pre")))
    CASE("pad two fields of three",
         WITH(two_ragged(), "pad", KEEL_ARG_INT("length", 3), KEEL_ARG_INT("value", 9)))
    CASE("rebatch", WITH(BATCH(open_rows("range:11"), 4), "rebatch", KEEL_ARG_INT("batch_size", 3)))
    CASE("rebatch in turn",
         WITH(BATCH(open_rows("range:11"), 4), "rebatch", KEEL_ARG_JSON("batch_size", "[2, 1, 3]")))
    CASE("rebatch in turn, dropped",
         WITH(BATCH(open_rows("range:11"), 4), "rebatch", KEEL_ARG_JSON("batch_size", "[2, 4]"),
              KEEL_ARG_BOOL("drop_remainder", true)))
    CASE("bucket_by_sequence_length", WITH(ragged(9, false), "bucket_by_sequence_length",
                                           KEEL_ARG_JSON("bucket_boundaries", "[3, 6]"),
                                           KEEL_ARG_JSON("bucket_batch_sizes", "[2, 2, 3]")))
    CASE("cache then repeat", TWICE(then(filtered(open_rows("range:7"), no_threes), "cache", NULL)))
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A field as text: numbers or texts joined by , and rows of them by ; */
static size_t write_field(char *to, size_t size, const keel_tensor *t)
{
    size_t at = 0;
    int64_t n = 1;
    for (int d = 0; d < t->shape.rank; d++) n *= t->shape.dim[d];
    const int64_t line = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
    for (int64_t i = 0; i < n; i++) {
        at += (size_t)snprintf(to + at, size - at, "%s", !i ? "" : i % line ? "," : ";");
        if (t->dtype == KEEL_STRING) {
            const keel_string *text = (const keel_string *)t->data + i;
            at += (size_t)snprintf(to + at, size - at, "%.*s", (int)text->n_bytes, text->data);
        } else {
            at += (size_t)snprintf(to + at, size - at, "%lld", (long long)((int64_t *)t->data)[i]);
        }
    }
    return at;
}

static const char *read_all(const keel_dataset *d, uint64_t pass, int64_t index, int threads)
{
    static char text[2][8192];
    static int which;
    char *to = text[which ^= 1];
    const size_t size = sizeof text[0];
    keel_reader *r;
    const keel_tensor *x;
    keel_status s;
    size_t at = 0;
    to[0] = 0;
    s = keel_reader_create(
        &r, d, &(keel_reader_options){ KEEL_READER_OPTIONS.size, 7, pass, index, threads, 0 });
    if (s == KEEL_END) return to;
    must(s);
    while ((s = keel_reader_next(r, &x)) == KEEL_OK) {
        for (int i = 0; i < keel_dataset_field_count(d); i++) {
            if (i) at += (size_t)snprintf(to + at, size - at, "/");
            at += write_field(to + at, size - at, &x[i]);
        }
        at += (size_t)snprintf(to + at, size - at, " ");
    }
    must(s);
    keel_reader_destroy(r);
    return to;
}

static json_t *cases;

static void it_gives_what_tf_data_gives(void **state)
{
    static const int threads[] = { -1, 1, 2, 7, 16 };
    const char *what = "";
    for (int kind = 0; kind < 2; kind++) {
        streams = kind;
        keel_dataset *d = make(*(int *)*state, &what);
        const char *want = golden_text(cases, what), *from = want;
        assert_non_null(want);
        for (size_t k = 0; k < sizeof threads / sizeof *threads; k++)
            for (uint64_t pass = 0; pass < 2; pass++)
                assert_string_equal(read_all(d, pass, 0, threads[k]), want);
        int64_t n = 0;
        for (; *from; n++) {
            assert_string_equal(read_all(d, 1, n, 2), from);
            from = strchr(from, ' ') + 1;
        }
        if (keel_dataset_cardinality(d) != KEEL_CARDINALITY_UNKNOWN)
            assert_int_equal(keel_dataset_cardinality(d), n);
        keel_dataset_destroy(d);
    }
}

/* ---- chance ---------------------------------------------------------------------------------- */

static void resampled_classes_come_as_often_as_wanted(void **unused)
{
    (void)unused;
    enum { N = 6000 };
    static int64_t x[N];
    static int32_t y[N];
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = i % 10 < 7 ? 0 : i % 10 < 9 ? 1 : 2; /* 70, 20, 10 percent */
    }
    const keel_tensor tx = { KEEL_INT64, { 1, { N } }, x }, ty = { KEEL_INT32, { 1, { N } }, y };
    /* Of the class that is rarest beside its target all rows stay. */
    static const struct {
        const char *target;
        int percent[3], stay;
    } wanted[] = { { "[0.2, 0.5, 0.3]", { 20, 50, 30 }, 2000 },
                   { "[0.2, 0.7, 0.1]", { 20, 70, 10 }, 1714 } };
    for (int known = 0; known < 4; known++) {
        keel_dataset *d;
        keel_reader *r;
        const keel_tensor *e;
        const int w = known / 2;
        int64_t count[3] = { 0 }, last = -1, n = 0;
        must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
        d = WITH(d, "rejection_resample", KEEL_ARG_JSON("target_dist", wanted[w].target),
                 KEEL_ARG_JSON("initial_dist", known % 2 ? "[7, 2, 1]" : "null"));
        must(keel_reader_create(&r, d, NULL));
        while (keel_reader_next(r, &e) == KEEL_OK) {
            assert_true(first(e) > last); /* each at most once, in order */
            last = first(e);
            count[*(int32_t *)e[1].data]++;
            n++;
        }
        keel_reader_destroy(r);
        keel_dataset_destroy(d);
        assert_true(n > wanted[w].stay - 300 && n < wanted[w].stay + 300);
        for (int c = 0; c < 3; c++)
            assert_true(labs(count[c] * 100 - n * wanted[w].percent[c]) < n * 10 / 3);
    }
}

/* The numbers 0 to 39 in the order that the stage gives them in a run with this seed. */
static const char *drawn_order(const char *stage, const char *seed, uint64_t of_run)
{
    static char text[2][400];
    static int which;
    char *to = text[which ^= 1];
    keel_dataset *d[2] = { open_rows("range:20"), open_rows("range:20:40") }, *out;
    const bool both = !strcmp(stage, "sample"), resample = !strcmp(stage, "rejection_resample");
    const keel_arg none = { .key = NULL };
    must(keel_dataset_apply(
        &out, stage,
        KEEL_ARGS(KEEL_ARG_JSON("seed", seed),
                  resample ? (keel_arg)KEEL_ARG_JSON("target_dist", "[1,1,1,1,1,1,1,1,1,1,"
                                                                    "9,9,9,9,9,9,9,9,9,9]")
                           : none,
                  resample ? (keel_arg)KEEL_ARG_STR("field", "x") : none),
        d, both ? 2 : 1));
    keel_dataset_destroy(d[0]);
    keel_dataset_destroy(d[1]);
    keel_reader *r;
    const keel_tensor *x;
    size_t at = 0;
    must(keel_reader_create(
        &r, out, &(keel_reader_options){ KEEL_READER_OPTIONS.size, .seed = of_run, .threads = 2 }));
    while (keel_reader_next(r, &x) == KEEL_OK)
        at += (size_t)snprintf(to + at, sizeof text[0] - at, "%lld ", (long long)first(x));
    keel_reader_destroy(r);
    keel_dataset_destroy(out);
    return to;
}

static void a_seed_of_its_own_draws_alike_in_every_run(void **unused)
{
    static const char *const stages[] = { "shuffle", "sample", "rejection_resample" };
    (void)unused;
    streams = false;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        const char *const s = stages[i];
        assert_string_equal(drawn_order(s, "3", 7), drawn_order(s, "3", 8));
        assert_string_not_equal(drawn_order(s, "3", 7), drawn_order(s, "4", 7));
        assert_string_not_equal(drawn_order(s, "null", 7), drawn_order(s, "null", 8));
        /* a seed of 0 is a seed, and no other than that of a run of 0 */
        assert_string_equal(drawn_order(s, "0", 7), drawn_order(s, "0", 8));
        assert_string_equal(drawn_order(s, "0", 7), drawn_order(s, "null", 0));
    }
}

/* Of class 0, which the data are said not to have, no row stays; of class 2 none is wanted. */
static void classes_that_are_not_wanted_do_not_come(void **unused)
{
    static const int64_t classes[] = { 0, 1, 2, 3, 0, 1, 2, 3 };
    (void)unused;
    streams = false;
    keel_dataset *d = WITH(array_of(classes, 8), "rejection_resample", KEEL_ARG_STR("field", "x"),
                           KEEL_ARG_JSON("target_dist", "[0, 2, 0, 2]"),
                           KEEL_ARG_JSON("initial_dist", "[0, 3, 1, 3]"));
    assert_string_equal(read_all(d, 0, 0, 2), "1 3 1 3 ");
    keel_dataset_destroy(d);
}

static void numbers_without_end_are_drawn_by_their_seed(void **unused)
{
    (void)unused;
    keel_dataset *d;
    must(keel_dataset_open(&d, "random:3", NULL));
    assert_int_equal(keel_dataset_cardinality(d), KEEL_CARDINALITY_INFINITE);
    d = WITH(d, "take", KEEL_ARG_INT("count", 5));
    char one[512];
    snprintf(one, sizeof one, "%s", read_all(d, 0, 0, 2));
    assert_string_equal(read_all(d, 1, 0, -1), one);
    keel_dataset_destroy(d);
    must(keel_dataset_open(&d, "random:4", NULL));
    d = WITH(d, "take", KEEL_ARG_INT("count", 5));
    assert_string_not_equal(read_all(d, 0, 0, 2), one);
    keel_dataset_destroy(d);
}

static keel_status count_elements(const keel_dataset *d, int threads, int *n)
{
    keel_reader *r = NULL;
    const keel_tensor *x;
    keel_status s = keel_reader_create(
        &r, d, &(keel_reader_options){ KEEL_READER_OPTIONS.size, .threads = threads });
    for (*n = 0; s == KEEL_OK && (s = keel_reader_next(r, &x)) == KEEL_OK;) ++*n;
    keel_reader_destroy(r);
    return s < 0 ? s : KEEL_OK;
}

/* ---- refused --------------------------------------------------------------------------------- */

CALLED(substituted, keel_dataset *)
{
    (void)context, (void)in, (void)at;
    keel_dataset *d;
    must(keel_dataset_open(&d, "range:9", NULL));
    *out = WITH(d, "substitute", KEEL_ARG_INT("most", 1));
    return KEEL_OK;
}

CALLED(no_dataset, keel_dataset *)
{
    (void)context, (void)in, (void)at;
    *out = NULL;
    return KEEL_OK;
}

CALLED(batches, keel_dataset *)
{
    (void)context, (void)in, (void)at;
    keel_dataset *d;
    must(keel_dataset_open(&d, "range:9", NULL));
    *out = BATCH(d, 2);
    return KEEL_OK;
}

static void what_a_function_makes_is_refused_by_what_is_wrong(void **unused)
{
    (void)unused;
    const struct {
        keel_status (*call)(void *, const keel_tensor *, keel_dataset **,
                            const keel_element_place *);
        keel_status status;
        const char *says;
    } some[] = {
        { substituted, KEEL_EUNSUP, "substitute counts the rows of a run" },
        { no_dataset, KEEL_ECALLBACK, "it gave no dataset" },
        { batches, KEEL_ESHAPE, "has batches" },
    };
    streams = false;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        int n;
        keel_dataset *d = open_rows("range:3"), *out;
        must(keel_dataset_flat_map(
            &out, d, &(keel_flat_map){ .size = sizeof(keel_flat_map), .call = some[i].call }));
        assert_int_equal(count_elements(out, 2, &n), some[i].status);
        if (!strstr(keel_error(), some[i].says)) fail_msg("%s", keel_error());
        keel_dataset_destroy(out);
        keel_dataset_destroy(d);
    }
}

/* Each time, and not only the first one. */
static void numbers_without_end_that_choose_nothing_are_refused(void **unused)
{
    (void)unused;
    static const int64_t zero;
    int n;
    streams = false;
    keel_dataset *part[3] = { open_rows("range:2"), open_rows("range:3"),
                              then(array_of(&zero, 1), "repeat", NULL) },
                 *d;
    must(keel_dataset_apply(&d, "choose_from_datasets",
                            KEEL_ARGS(KEEL_ARG_BOOL("stop_on_empty_dataset", false)), part, 3));
    for (int i = 0; i < 3; i++) keel_dataset_destroy(part[i]);
    d = WITH(d, "ignore_errors", KEEL_ARG_INT("most", 2));
    assert_int_equal(count_elements(d, 2, &n), KEEL_EDATA);
    assert_int_equal(n, 2);
    assert_non_null(strstr(keel_error(), "chose datasets that have ended"));
    keel_dataset_destroy(d);
}

static void shapes_that_do_not_fit_are_refused(void **unused)
{
    (void)unused;
    const struct {
        keel_status (*shapes)(void *, const keel_shape *, keel_shape *);
        keel_status status;
        const char *says;
    } some[] = {
        { of_another_rank, KEEL_ESHAPE, "map: shapes gave (1, 1) for 'x', which is (None,)" },
        { of_less_than_nothing, KEEL_ESHAPE, "map: shapes gave" },
        { of_no_shape, KEEL_ECALLBACK, "map: shapes returned KEEL_EDATA: it has no shape" },
    };
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            int n;
            streams = kind;
            keel_dataset *d = lengthened(ragged(3, false), some[i].shapes);
            assert_int_equal(count_elements(d, 2, &n), some[i].status);
            if (!strstr(keel_error(), some[i].says)) fail_msg("%s", keel_error());
            keel_dataset_destroy(d);
        }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Stage k on a dataset of numbers, of ragged rows or of batches; KEEL_END: there is none. */
static keel_status apply_stage(int k, keel_dataset *n, keel_dataset *r, keel_dataset *b,
                               keel_dataset **out)
{
    static int64_t zero;
    const keel_tensor state = { KEEL_INT64, { 0 }, &zero };
    const keel_filter f = { .size = sizeof f, .call = small };
    keel_flat_map m = { .size = sizeof m, .call = tens };
    keel_group g = { .size = sizeof g, .key = key, .window_size = 3 };
    const keel_scan s = { .size = sizeof s, .n_state = 1, .state = &state, .call = sum };
    switch (k) {
    case 0:
        return keel_dataset_apply(out, "enumerate", NULL, &n, 1);
    case 1:
        return keel_dataset_take_while(out, n, &f);
    case 2:
        return keel_dataset_scan(out, n, &s);
    case 3:
        return keel_dataset_apply(out, "unique", NULL, &n, 1);
    case 4:
        return keel_dataset_flat_map(out, n, &m);
    case 5:
        m.cycle_length = 3;
        return keel_dataset_interleave(out, n, &m);
    case 6:
        return keel_dataset_group_by_window(out, n, &g);
    case 7:
        g.reduce = all_but_one;
        return keel_dataset_group_by_window(out, n, &g);
    case 8:
        return keel_dataset_apply(out, "padded_batch",
                                  KEEL_ARGS(KEEL_ARG_INT("batch_size", 2),
                                            KEEL_ARG_JSON("padded_shapes", "[9]"),
                                            KEEL_ARG_JSON("padding_values", "[7]")),
                                  &r, 1);
    case 9:
        return keel_dataset_apply(out, "pad", KEEL_ARGS(KEEL_ARG_INT("length", 3)), &r, 1);
    case 10:
        return keel_dataset_apply(out, "rebatch", KEEL_ARGS(KEEL_ARG_JSON("batch_size", "[2, 1]")),
                                  &b, 1);
    case 11:
        return keel_dataset_apply(out, "choose_from_datasets", NULL, (keel_dataset *[]){ n, n, n },
                                  3);
    case 12:
        return keel_dataset_apply(
            out, "rejection_resample",
            KEEL_ARGS(KEEL_ARG_JSON("target_dist", "[1, 1, 1, 1, 1]"), KEEL_ARG_STR("field", "x")),
            &n, 1);
    case 13:
        return keel_dataset_apply(out, "cache", NULL, &b, 1);
    case 14:
        return keel_dataset_apply(out, "interleave", NULL, (keel_dataset *[]){ n, n }, 2);
    case 15: /* room for the first row, and not for all */
        return keel_dataset_apply(out, "cache", KEEL_ARGS(KEEL_ARG_INT("memory", 300)), &n, 1);
    default:
        return KEEL_END;
    }
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 2; kind++)
        for (int k = 0;; k++) {
            streams = kind;
            keel_dataset *n = open_rows("range:2"), *r = ragged(5, false), *d = NULL;
            keel_dataset *b = BATCH(open_rows("range:7"), 3);
            const keel_status there = apply_stage(k, n, r, b, &d);
            int want = 0, got = 0;
            if (there == KEEL_OK) must(count_elements(d, 2, &want));
            if (there == KEEL_OK) keel_dataset_destroy(d);
            const int64_t before = keel_memory_live();
            keel_status s = there == KEEL_OK ? KEEL_ENOMEM : KEEL_OK;
            for (int64_t i = 0; s < 0; i += 1 + i / 40) {
                keel_memory_fail_at(i);
                s = apply_stage(k, n, r, b, &d);
                if (s >= 0) {
                    s = count_elements(d, i % 2 ? 2 : -1, &got);
                    keel_dataset_destroy(d);
                }
                keel_memory_fail_at(-1);
                if (s < 0 && s != KEEL_ENOMEM && !strstr(keel_error(), "KEEL_ENOMEM"))
                    fail_msg("stage %d, allocation %d: %s", k, (int)i, keel_error());
                if (s >= 0 && got != want) fail_msg("stage %d: %d elements", k, got);
                if (keel_memory_live() != before)
                    fail_msg("stage %d, allocation %d leaks", k, (int)i);
            }
            keel_dataset_destroy(n);
            keel_dataset_destroy(r);
            keel_dataset_destroy(b);
            if (there == KEEL_END) break;
            must(there);
        }
}

/* Bytes that reading all elements twice takes from an account at most; all are given back. */
static int64_t peak_of(keel_dataset *d, int threads)
{
    keel_account a = { .limit = 64 << 20 };
    keel_feed *f;
    keel_batch b;
    keel_feed_options o = { .batch_size = 2, .epochs = 2, .threads = threads, .account = &a };
    if (keel_feed_create(&f, d, &o) < 0) { /* its elements are batches */
        o.batch_size = 0;
        must(keel_feed_create(&f, d, &o));
    }
    for (uint32_t e = 0; e < 2; e++) {
        keel_status s;
        must(keel_feed_begin_epoch(f, e));
        while ((s = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
        must(s);
    }
    keel_feed_destroy(f);
    keel_account_drop(&a);
    assert_int_equal(a.used, 0);
    assert_true(a.peak > 0);
    return a.peak;
}

static void what_stages_take_is_counted_and_given_back(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 2; kind++)
        for (int k = 0;; k++) {
            streams = kind;
            keel_dataset *n = open_rows("range:5"), *r = ragged(5, false), *d = NULL;
            keel_dataset *b = BATCH(open_rows("range:7"), 3);
            const keel_status there = apply_stage(k, n, r, b, &d);
            const bool feeds = there == KEEL_OK && k != 11; /* which chooses by numbers below 2 */
            if (feeds) peak_of(d, -1);
            if (feeds) peak_of(d, 2);
            keel_dataset_destroy(d);
            keel_dataset_destroy(n);
            keel_dataset_destroy(r);
            keel_dataset_destroy(b);
            if (there == KEEL_END) break;
        }
    streams = true;
    keel_dataset *plain = open_rows("range:200");
    const int64_t rows = peak_of(plain, -1);
    keel_dataset *numbered = then(open_rows("range:200"), "enumerate", NULL);
    keel_dataset *once = then(open_rows("range:200"), "unique", NULL);
    assert_true(peak_of(numbered, -1) >= rows + 8);
    assert_true(peak_of(once, -1) >= rows + 512 * 16 + 199 * 8); /* the table, and what it holds */
    keel_dataset_destroy(plain);
    keel_dataset_destroy(numbered);
    keel_dataset_destroy(once);
}

static keel_status counted(void *context, const keel_tensor *in, keel_tensor *out,
                           const keel_element_place *at)
{
    (void)at;
    ++*(int *)context;
    memcpy(out->data, in->data, (size_t)(in->shape.rank ? in->shape.dim[0] : 1) * sizeof(int64_t));
    return KEEL_OK;
}

/* Row by row, what it has no room for is made once more in each pass, and not twice. Of a stream
 * all is. */
static void a_cache_takes_no_more_than_its_memory(void **unused)
{
    (void)unused;
    enum { ROWS = 5, BY_NUMBER, OF_OPEN_DIMS, AS_STREAM, KINDS };
    for (int kind = BY_NUMBER; kind < KINDS; kind++) {
        int calls = 0, n;
        streams = kind == AS_STREAM;
        keel_dataset *rows = kind == OF_OPEN_DIMS ? ragged(ROWS, false) : open_rows("range:5");
        keel_dataset *made;
        must(keel_dataset_map(
            &made, rows,
            &(keel_map){ .size = sizeof(keel_map), .call = counted, .context = &calls }));
        keel_dataset_destroy(rows);
        const int64_t size = keel_dataset_element_size(made);
        const struct {
            int64_t memory;
            int row_by_row, as_stream; /* calls of the second pass */
        } limits[] = { { 0, ROWS, ROWS },
                       { 2 * size - 1, ROWS - 1, ROWS },
                       { 2 * size, ROWS - 2, ROWS },
                       { ROWS * size - 1, 1, ROWS },
                       { ROWS * size, 0, 0 } };
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            keel_dataset *d;
            must(keel_dataset_apply(&d, "cache",
                                    KEEL_ARGS(KEEL_ARG_INT("memory", limits[i].memory)), &made, 1));
            for (int pass = 0; pass < 2; pass++) {
                calls = 0;
                must(count_elements(d, -1, &n));
                assert_int_equal(n, ROWS);
                assert_int_equal(calls, pass == 0 ? ROWS
                                        : streams ? limits[i].as_stream
                                                  : limits[i].row_by_row);
            }
            keel_dataset_destroy(d);
        }
        keel_dataset_destroy(made);
    }
}

/* ---- words of tf.data ------------------------------------------------------------------------ */

static void the_docs_name_every_method_of_tf_data(void **state)
{
    size_t i, n = 0;
    json_t *v;
    char *text = calloc(1, 1 << 17), want[80];
    FILE *f = fopen(golden_path("../../docs/pipelines.md"), "r");
    assert_non_null(f);
    n = fread(text, 1, (1 << 17) - 1, f);
    fclose(f);
    assert_true(n > 0);
    json_array_foreach(*state, i, v)
    {
        snprintf(want, sizeof want, "| `%s` |", json_string_value(v));
        if (!strstr(text, want)) fail_msg("docs/pipelines.md has no row for %s", want);
    }
    free(text);
}

int main(void)
{
    enum { MOST = 100 };
    static struct CMUnitTest test[MOST];
    static int number[MOST];
    json_t *golden = golden_load("pipelines.json");
    int n = 0;
    cases = json_object_get(golden, "cases");
    for (keel_dataset *d; n < MOST - 10; n++) {
        const char *what;
        if (!(d = make(n, &what))) break;
        keel_dataset_destroy(d);
        number[n] = n;
        test[n] = (struct CMUnitTest){ what, it_gives_what_tf_data_gives, NULL, NULL, &number[n] };
    }
    if (n != (int)json_object_size(cases)) {
        fprintf(stderr, "%d of %zu cases\n", n, json_object_size(cases));
        return 1;
    }
    test[n++] = (struct CMUnitTest)cmocka_unit_test(resampled_classes_come_as_often_as_wanted);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_seed_of_its_own_draws_alike_in_every_run);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(classes_that_are_not_wanted_do_not_come);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(numbers_without_end_are_drawn_by_their_seed);
    test[n++] =
        (struct CMUnitTest)cmocka_unit_test(what_a_function_makes_is_refused_by_what_is_wrong);
    test[n++] =
        (struct CMUnitTest)cmocka_unit_test(numbers_without_end_that_choose_nothing_are_refused);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(shapes_that_do_not_fit_are_refused);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(every_allocation_may_fail);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(what_stages_take_is_counted_and_given_back);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_cache_takes_no_more_than_its_memory);
    test[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(the_docs_name_every_method_of_tf_data,
                                                             json_object_get(golden, "methods"));
    const int failed = _cmocka_run_group_tests("stages", test, (size_t)n, NULL, NULL);
    json_decref(golden);
    return failed;
}
