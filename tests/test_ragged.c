/* Rows that differ in length: padded to the longest of a batch or to a bucket, from arrays,
 * generators and sequences, trained as in the real Keras on any number of lanes, within a bound of
 * programs. */
#include "open_dims.h"
#include "data/feed.h"
#include <jansson.h>

/* ---- against Keras -----------------------------------------------------------------------------
 */

typedef struct tokens {
    keel_tensor x, lengths, splits, y;
    keel_tensor words; /* w1, w2, ... in their place */
} tokens;

static void make_words(tokens *t)
{
    enum { VOCABULARY = 13 };
    static const char *const all[VOCABULARY] = { "",   "w1", "w2", "w3",  "w4",  "w5", "w6",
                                                 "w7", "w8", "w9", "w10", "w11", "w12" };
    must(keel_tensor_create(&t->words, KEEL_STRING, &t->x.shape));
    for (int64_t i = 0; i < t->x.shape.dim[0]; i++) {
        const char *word = all[((int32_t *)t->x.data)[i]];
        ((keel_string *)t->words.data)[i] = (keel_string){ word, (int64_t)strlen(word) };
    }
}

/* name: of the model; the targets of "tags" are one for each token, the tokens of "words" texts. */
static keel_dataset *open_tokens(tokens *t, const char *name)
{
    const bool tagged = !strcmp(name, "tags"), texts = !strcmp(name, "words");
    keel_dataset *d;
    t->x = stored("tokens");
    t->lengths = stored("tokens_row_lengths");
    t->y = stored(tagged ? "tags" : "labels");
    const int64_t n = t->lengths.shape.dim[0];
    const keel_shape shape = KEEL_SHAPE(n + 1);
    must(keel_tensor_create(&t->splits, KEEL_INT64, &shape));
    int64_t *at = t->splits.data;
    for (int64_t i = 0; i < n; i++) at[i + 1] = at[i] + ((int64_t *)t->lengths.data)[i];
    make_words(t);
    const keel_array_field f[2] = {
        { "tokens", KEEL_ROLE_INPUT, NULL, texts ? t->words : t->x, t->splits },
        { "y", KEEL_ROLE_TARGET, NULL, t->y, tagged ? t->splits : (keel_tensor){ 0 } },
    };
    must(keel_dataset_from_fields(&d, f, 2));
    return d;
}

static void close_tokens(tokens *t, keel_dataset *d)
{
    keel_dataset_destroy(d);
    keel_tensor_free(&t->x);
    keel_tensor_free(&t->words);
    keel_tensor_free(&t->lengths);
    keel_tensor_free(&t->splits);
    keel_tensor_free(&t->y);
}

static const int64_t buckets[] = { 4, 8, 16 };

static void train_tokens(const char *name, bool bucketed, int lanes, int64_t programs,
                         keel_program_counts *counts)
{
    char full[64];
    tokens t;
    const bool tagged = !strcmp(name, "tags");
    keel_dataset *d = open_tokens(&t, name);
    keel_model *m = load(name);
    keel_history h;
    keel_fit_options o = { KEEL_FIT_OPTIONS,   .batch_size = BATCH,  .epochs = EPOCHS,
                           .no_shuffle = true, .programs = programs, .counts = counts };
    if (bucketed) {
        o.bucket = buckets;
        o.bucket_count = 3;
    }
    must(keel_fit(m, strategy[lanes - 1], d, &o, &h));
    assert_int_equal(h.steps, EPOCHS * 6);
    snprintf(full, sizeof full, "%s%s", name, bucketed ? "_buckets" : "");
    compare_weights(m, full, lanes);
    if (!tagged) {
        keel_tensor want = stored("%s_predicted", full), got;
        must(keel_predict(m, strategy[lanes - 1], d, &o, &got));
        assert_true(keel_shape_equal(&got.shape, &want.shape));
        const double off = apart(got.data, want.data, keel_shape_count(&want.shape));
        if (!(off < 1e-5)) fail_msg("%s: predictions are %g off", full, off);
        keel_tensor_free(&want);
        keel_tensor_free(&got);
    }
    keel_history_free(&h);
    keel_model_destroy(m);
    close_tokens(&t, d);
}

static void rows_of_any_length_train_as_in_keras_on_any_number_of_lanes(void **unused)
{
    static const char *const names[] = { "text", "tags", "words", "time" };
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int k = 0; k < 8; k++) train_tokens(names[k / 2], k & 1, lanes, 0, NULL);
}

static void texts_of_an_archive_have_row_splits(void **unused)
{
    (void)unused;
    keel_dataset *d;
    keel_model *m = load("words");
    must(keel_dataset_open(&d, "golden/dims_words.npz", NULL));
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                 .no_shuffle = true };
    must(keel_fit(m, strategy[1], d, &o, NULL));
    compare_weights(m, "words", 2);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

/* ---- streams -----------------------------------------------------------------------------------
 */

typedef struct stream { /* the rows of golden/dims.npz, one by one, or as batches that are padded */
    tokens t;
    int64_t at;
    bool texts;
    char padded[BATCH * 64 * sizeof(keel_string)];
    int32_t labels[BATCH];
} stream;

static size_t element_of(const stream *s)
{
    return s->texts ? sizeof(keel_string) : sizeof(int32_t);
}

static const char *element_at(const stream *s, int64_t i)
{
    const keel_tensor *all = s->texts ? &s->t.words : &s->t.x;
    return (const char *)all->data + (size_t)i * element_of(s);
}

static keel_status next_row(void *context, const void **data, keel_shape *shape)
{
    stream *s = context;
    const int64_t *splits = s->t.splits.data;
    if (s->at == s->t.lengths.shape.dim[0]) return KEEL_END;
    data[0] = element_at(s, splits[s->at]);
    data[1] = (int32_t *)s->t.y.data + s->at;
    shape[0].dim[0] = splits[s->at + 1] - splits[s->at];
    s->at++;
    return KEEL_OK;
}

static keel_status reset(void *context)
{
    ((stream *)context)->at = 0;
    return KEEL_OK;
}

static int64_t length(void *context)
{
    return (((stream *)context)->t.lengths.shape.dim[0] + BATCH - 1) / BATCH;
}

static keel_status get_shaped(void *context, int64_t i, const void **data, keel_shape *shape,
                              int64_t *rows)
{
    stream *s = context;
    const int64_t *lengths = s->t.lengths.data, *splits = s->t.splits.data;
    const int64_t n = s->t.lengths.shape.dim[0], first = i * BATCH;
    int64_t longest = 0;
    *rows = n - first < BATCH ? n - first : BATCH;
    for (int64_t k = 0; k < *rows; k++)
        longest = lengths[first + k] > longest ? lengths[first + k] : longest;
    memset(s->padded, 0, sizeof s->padded);
    for (int64_t k = 0; k < *rows; k++) {
        memcpy(s->padded + (size_t)(k * longest) * element_of(s), element_at(s, splits[first + k]),
               (size_t)lengths[first + k] * element_of(s));
        s->labels[k] = ((int32_t *)s->t.y.data)[first + k];
    }
    data[0] = s->padded;
    data[1] = s->labels;
    shape[0].dim[0] = longest;
    return KEEL_OK;
}

static const keel_data_field stream_fields[2][2] = {
    { { "tokens", KEEL_INT32, { 1, { KEEL_DIM_OPEN } }, KEEL_ROLE_INPUT },
      { "y", KEEL_INT32, { 0 }, KEEL_ROLE_TARGET } },
    { { "tokens", KEEL_STRING, { 1, { KEEL_DIM_OPEN } }, KEEL_ROLE_INPUT },
      { "y", KEEL_INT32, { 0 }, KEEL_ROLE_TARGET } },
};

static void generators_and_sequences_give_rows_of_their_own_shapes(void **unused)
{
    (void)unused;
    static stream s;
    keel_dataset *arrays = open_tokens(&s.t, "text"), *d;
    for (int k = 0; k < 8; k++) {
        const bool sequence = k & 1, bucketed = k & 2;
        s.texts = k & 4;
        keel_model *m = load(s.texts ? "words" : "text");
        char name[32];
        s.at = 0;
        if (sequence)
            must(keel_dataset_from_sequence(&d,
                                            &(keel_sequence){ .size = sizeof(keel_sequence),
                                                              .context = &s,
                                                              .max_rows = BATCH,
                                                              .length = length,
                                                              .get_shaped = get_shaped,
                                                              .n_field = 2,
                                                              .field = stream_fields[s.texts] }));
        else
            must(keel_dataset_from_generator(&d,
                                             &(keel_generator){ .size = sizeof(keel_generator),
                                                                .context = &s,
                                                                .reset = reset,
                                                                .next_row = next_row,
                                                                .n_field = 2,
                                                                .field = stream_fields[s.texts] }));
        const keel_fit_options o = { KEEL_FIT_OPTIONS,  .batch_size = sequence ? 0 : BATCH,
                                     .epochs = EPOCHS,  .no_shuffle = true,
                                     .bucket = buckets, .bucket_count = bucketed ? 3 : 0 };
        must(keel_fit(m, strategy[2], d, &o, NULL));
        snprintf(name, sizeof name, "%s%s", s.texts ? "words" : "text", bucketed ? "_buckets" : "");
        compare_weights(m, name, 3);
        keel_model_destroy(m);
        keel_dataset_destroy(d);
    }
    close_tokens(&s.t, arrays);
}

/* Two images, of one row and of one column. */
static keel_status next_image(void *context, const void **data, keel_shape *shape)
{
    static const uint8_t pixels[2][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
    int *at = context;
    if (*at == 2) return KEEL_END;
    data[0] = pixels[*at == 1];
    shape[0].dim[*at == 0] = 2;
    shape[0].dim[*at != 0] = 1;
    if (*at < 0) shape[0].dim[2] = 9; /* a lie */
    ++*at;
    return KEEL_OK;
}

static void a_batch_is_padded_in_every_open_dim(void **unused)
{
    (void)unused;
    static const float want[16] = { 1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8, 0, 0 };
    static const keel_data_field field = {
        "image", KEEL_UINT8, { 3, { KEEL_DIM_OPEN, KEEL_DIM_OPEN, 2 } }, KEEL_ROLE_INPUT
    };
    for (int begin = 0; begin > -2; begin--) {
        int at = begin;
        keel_dataset *d;
        keel_feed *f;
        keel_batch b;
        const keel_dtype real = KEEL_FLOAT32;
        must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                                .context = &at,
                                                                .next_row = next_image,
                                                                .n_field = 1,
                                                                .field = &field }));
        must(keel_feed_create(
            &f, d,
            &(keel_feed_options){
                .real = real, .want = &real, .batch_size = 2, .epochs = 1, .threads = -1 }));
        must(keel_feed_begin_epoch(f, 0));
        if (begin < 0) { /* a row that is not as it says */
            assert_int_equal(keel_feed_next(f, &b), KEEL_ECALLBACK);
            assert_non_null(strstr(keel_error(), "(None, None, 2)"));
        } else {
            must(keel_feed_next(f, &b));
            assert_int_equal(b.rows, 2);
            assert_true(keel_shape_equal(&b.spec[0].shape, &(keel_shape){ 3, { 2, 2, 2 } }));
            assert_memory_equal(b.field[0], want, sizeof want);
            keel_feed_release(f, &b);
        }
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

/* ---- programs ----------------------------------------------------------------------------------
 */

static void few_programs_give_the_same_and_are_counted(void **unused)
{
    (void)unused;
    keel_program_counts c;
    /* the lengths of the six batches, from golden/dims.npz */
    tokens t;
    keel_dataset *d = open_tokens(&t, "text");
    const int64_t *length = t.lengths.data, n = t.lengths.shape.dim[0];
    bool seen[64] = { false };
    int shapes = 0;
    for (int64_t i = 0; i < n; i += BATCH) {
        int64_t longest = 0;
        for (int64_t k = i; k < n && k < i + BATCH; k++)
            if (length[k] > longest) longest = length[k];
        shapes += !seen[longest];
        seen[longest] = true;
    }
    close_tokens(&t, d);
    assert_true(shapes > 2);
    train_tokens("text", false, 3, 0, &c); /* counts are of the predict at its end */
    assert_int_equal(c.training, 0);
    assert_int_equal(c.inference, shapes);
    assert_int_equal(c.kept, shapes);
    assert_int_equal(c.dropped, 0);
    train_tokens("tags", false, 3, 2, &c);
    assert_true(c.training > shapes); /* made again and again */
    assert_int_equal(c.kept, 2);
    assert_int_equal(c.dropped, c.training - 2);
    train_tokens("tags", true, 3, 2, &c);
    assert_true(c.training <= 3 * EPOCHS * 6);
    train_tokens("tags", true, 2, 0, &c);
    assert_true(c.training >= 2 && c.training <= 3);
    assert_int_equal(c.dropped, 0);
}

/* ---- what is refused ---------------------------------------------------------------------------
 */

static void lengths_that_cannot_be_are_refused_before_step_1(void **unused)
{
    (void)unused;
    const keel_tensor x = { KEEL_INT32, { 1, { 5 } }, (int32_t[]){ 1, 2, 3, 4, 5 } },
                      y = { KEEL_INT32, { 1, { 2 } }, (int32_t[]){ 0, 1 } };
    const struct {
        int64_t splits[3];
        keel_status status;
        const char *says;
    } bad[] = {
        { { 0, 3, 4 }, KEEL_EDATA, "from 0 to 4" },
        { { 1, 3, 5 }, KEEL_EDATA, "from 1 to 5" },
        { { 0, 6, 5 }, KEEL_EDATA, "row 1, from 6" },
        { { 0, -1, 5 }, KEEL_EDATA, "row 0, from 0 to -1" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_dataset *d = NULL;
        const keel_tensor splits = { KEEL_INT64, { 1, { 3 } }, (void *)bad[i].splits };
        const keel_array_field f[2] = { { "x", KEEL_ROLE_INPUT, NULL, x, splits },
                                        { "y", KEEL_ROLE_TARGET, NULL, y } };
        assert_int_equal(keel_dataset_from_fields(&d, f, 2), bad[i].status);
        if (!strstr(keel_error(), bad[i].says)) fail_msg("%s", keel_error());
        assert_null(d);
    }
}

static void options_that_cannot_be_followed_are_refused_by_name(void **unused)
{
    (void)unused;
    static const int64_t falling[] = { 8, 4 }, small[] = { 4, 8 }, one[] = { 16 };
    const struct {
        keel_fit_options o;
        keel_status status;
        const char *says;
    } bad[] = {
        { { KEEL_FIT_OPTIONS, .programs = 1 }, KEEL_EARG, "programs is 1" },
        { { KEEL_FIT_OPTIONS, .programs = 31 }, KEEL_EARG, "2 to 30" },
        { { KEEL_FIT_OPTIONS, .bucket_count = 2 }, KEEL_EARG, "buckets" },
        { { KEEL_FIT_OPTIONS, .bucket = falling, .bucket_count = 2 }, KEEL_EARG, "ascend" },
        { { KEEL_FIT_OPTIONS, .bucket = small, .bucket_count = 2 }, KEEL_EDATA, "largest bucket" },
        { { KEEL_FIT_OPTIONS, .profile = true, .bucket = one, .bucket_count = 1 }, KEEL_OK, "" },
    };
    tokens t;
    keel_dataset *d = open_tokens(&t, "text");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_model *m = load("text");
        keel_history h = { 0 };
        const keel_status s = keel_fit(m, strategy[1], d, &bad[i].o, &h);
        if (s != bad[i].status || (s < 0 && !strstr(keel_error(), bad[i].says)))
            fail_msg("%zu: %s, %s", i, keel_status_name(s), keel_error());
        if (s < 0) assert_int_equal(h.steps, 0);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    close_tokens(&t, d);
}

/* Two dense layers of 6x5 and 5x3, on each token of the padded batch, forward and both backwards;
 * the clock ran for each of the shapes. */
static void a_profile_is_of_all_shapes(void **unused)
{
    (void)unused;
    enum { FLOPS = 2 * (6 * 5 + 5 * 3) };
    const char *path = files_path("shapes.json");
    tokens t;
    keel_dataset *d = open_tokens(&t, "tags");
    keel_model *m = load("tags");
    keel_history h;
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true,
                                 .profile = true,  .trace = path,       .programs = 2 };
    const int64_t n = t.lengths.shape.dim[0], *length = t.lengths.data;
    double want = 0, flops = 0, seconds = 0, busy = 0;
    for (int64_t i = 0, longest = 0; i < n; i++) {
        longest = i % BATCH == 0 || length[i] > longest ? length[i] : longest;
        if (i % BATCH == BATCH - 1 || i == n - 1)
            want += 3.0 * FLOPS * (double)((i % BATCH + 1) * longest);
    }
    must(keel_fit(m, strategy[2], d, &o, &h));
    assert_int_equal(h.profile->steps, h.steps);
    for (int i = 0; i < h.profile->count; i++) {
        const keel_profile_row *r = &h.profile->row[i];
        seconds += r->forward_seconds + r->backward_seconds;
        if (strcmp(r->op, "dense")) continue;
        flops += r->forward_flops + r->backward_flops;
        assert_true(*r->forward_kernel != 0);
    }
    for (int w = 0; w < h.profile->workers; w++) busy += h.profile->call_seconds[w];
    assert_true(fabs(flops - want) < 1);
    assert_true(fabs(seconds - busy) < 1e-6);
    assert_non_null(strstr(h.note, "shapes"));
    json_t *trace = json_load_file(path, 0, NULL);
    assert_true(json_array_size(json_object_get(trace, "traceEvents")) > 100);
    json_decref(trace);
    keel_history_free(&h);
    keel_model_destroy(m);
    close_tokens(&t, d);
}

static void lookups_that_need_one_length_are_refused_by_name(void **unused)
{
    (void)unused;
    tokens t;
    keel_dataset *d = open_tokens(&t, "words");
    keel_model *m;
    must(keel_model_create(&m, "hot", KEEL_FLOAT32, 1));
    must(
        keel_model_add(m, "InputLayer",
                       KEEL_ARGS(KEEL_ARG_INTS("shape", KEEL_DIM_OPEN),
                                 KEEL_ARG_STR("dtype", "string"), KEEL_ARG_STR("name", "tokens"))));
    must(keel_model_add(m, "StringLookup",
                        KEEL_ARGS(KEEL_ARG_JSON("vocabulary", "[\"w1\"]"),
                                  KEEL_ARG_STR("output_mode", "one_hot"))));
    must(keel_model_add(m, "GlobalAveragePooling1D", NULL));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
    assert_int_equal(
        keel_fit(m, strategy[0], d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4 }, NULL),
        KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "'tokens'"));
    keel_model_destroy(m);
    close_tokens(&t, d);
}

static void predictions_of_several_shapes_are_no_one_array(void **unused)
{
    (void)unused;
    static const int64_t bucket[] = { 20 };
    tokens t;
    keel_dataset *d = open_tokens(&t, "tags");
    keel_model *m = load("tags");
    keel_tensor out = { 0 };
    keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    assert_int_equal(keel_predict(m, strategy[1], d, &o, &out), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "one bucket"));
    o.bucket = bucket;
    o.bucket_count = 1;
    must(keel_predict(m, strategy[1], d, &o, &out));
    assert_int_equal(out.shape.dim[1], 20);
    keel_tensor_free(&out);
    keel_model_destroy(m);
    close_tokens(&t, d);
}

/* Every allocation of a fit over several shapes, with programs that go, fails once. */
static void fail_every_allocation(keel_dataset *d)
{
    keel_model *m = load("text");
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 8, .no_shuffle = true,
                                 .programs = 2 };
    must(keel_fit(m, strategy[1], d, &o, NULL)); /* what is made once is there */
    const int64_t live = keel_memory_live();
    keel_status s = KEEL_ENOMEM;
    int64_t n = 0;
    for (; s < 0 && n < 20000; n++) {
        keel_memory_fail_at(n);
        s = keel_fit(m, strategy[1], d, &o, NULL);
        keel_memory_fail_at(-1);
        assert_int_equal(keel_memory_live(), live);
        if (s < 0 && s != KEEL_ENOMEM) fail_msg("%lld: %s", (long long)n, keel_error());
    }
    assert_int_equal(s, KEEL_OK);
    assert_true(n > 100);
    keel_model_destroy(m);
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    static stream s;
    keel_dataset *arrays = open_tokens(&s.t, "text"), *d;
    must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                            .context = &s,
                                                            .reset = reset,
                                                            .next_row = next_row,
                                                            .n_field = 2,
                                                            .field = stream_fields[s.texts] }));
    fail_every_allocation(arrays);
    fail_every_allocation(d);
    keel_dataset_destroy(d);
    close_tokens(&s.t, arrays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_any_length_train_as_in_keras_on_any_number_of_lanes),
        cmocka_unit_test(texts_of_an_archive_have_row_splits),
        cmocka_unit_test(generators_and_sequences_give_rows_of_their_own_shapes),
        cmocka_unit_test(a_batch_is_padded_in_every_open_dim),
        cmocka_unit_test(few_programs_give_the_same_and_are_counted),
        cmocka_unit_test(lengths_that_cannot_be_are_refused_before_step_1),
        cmocka_unit_test(options_that_cannot_be_followed_are_refused_by_name),
        cmocka_unit_test(a_profile_is_of_all_shapes),
        cmocka_unit_test(lookups_that_need_one_length_are_refused_by_name),
        cmocka_unit_test(predictions_of_several_shapes_are_no_one_array),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
