/* Layers that look texts and numbers up, against the real Keras: their outputs, the buckets of
 * hashes, arguments and words that are refused, and texts from CSV files and generators. Models
 * with vocabularies and their files are in test_vocabularies.c. */
#include "lookups.h"
#include "base/hash.h"
#include "tensor/shape.h"

/* ---- building -------------------------------------------------------------------------------- */

enum { ARGS_MAX = 12 };

/* The arguments of a JSON object; freed by free_args. */
static int take_args(keel_arg *args, const json_t *config)
{
    const char *key;
    json_t *v;
    int n = 0;
    json_object_foreach((json_t *)config, key, v)
    {
        assert_true(n < ARGS_MAX - 1);
        args[n++] = (keel_arg)KEEL_ARG_JSON(key, json_dumps(v, JSON_ENCODE_ANY));
    }
    args[n] = (keel_arg){ 0 };
    return n;
}

static void free_args(keel_arg *args)
{
    for (; args->key; args++) free((char *)args->text);
}

/* A model that is one layer on an input of that type and shape of rows. */
static keel_status build_one(keel_model **out, const char *class_name, const json_t *config,
                             const char *dtype, const keel_shape *row)
{
    keel_arg args[ARGS_MAX];
    keel_symbol x, y;
    keel_model *m;
    keel_status s;
    take_args(args, config);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, row, KEEL_ARGS(KEEL_ARG_STR("dtype", dtype)), &x));
    s = keel_model_call(m, class_name, args, &x, 1, &y);
    if (s >= 0) s = keel_model_outputs(m, &y, 1);
    if (s >= 0)
        *out = m;
    else
        keel_model_destroy(m);
    free_args(args);
    return s;
}

static keel_shape row_of(const keel_shape *s)
{
    keel_shape row = { .rank = s->rank - 1 };
    for (int i = 0; i < row.rank; i++) row.dim[i] = s->dim[i + 1];
    return row;
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void each_layer_gives_what_keras_gives(void **state)
{
    const json_t *cases = json_object_get(golden, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const keel_shape shape = golden_shape(c, "shape"), want = golden_shape(c, "out_shape");
        const keel_shape row = row_of(&shape);
        const char *dtype = golden_text(c, "dtype");
        keel_tensor x = column_of(json_object_get(c, "in"), dtype, shape);
        keel_tensor y;
        keel_model *m;
        keel_dataset *d;
        must(build_one(&m, golden_text(c, "class"), json_object_get(c, "args"), dtype, &row));
        must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
        for (int devices = 0; devices < 2; devices++) {
            must(keel_predict(m, devices ? three : one, d,
                              &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 2 }, &y));
            float *out = golden_reals(json_object_get(c, "out"), false);
            if (y.shape.rank != want.rank || memcmp(y.shape.dim, want.dim, (size_t)want.rank * 8))
                fail_msg("case %zu: another shape", i);
            for (size_t k = 0; k < json_array_size(json_object_get(c, "out")); k++)
                if (((float *)y.data)[k] != out[k])
                    fail_msg("case %zu: %zu is %g, in Keras %g", i, k, (double)((float *)y.data)[k],
                             (double)out[k]);
            free(out);
            keel_tensor_free(&y);
        }
        keel_dataset_destroy(d);
        keel_model_destroy(m);
        free(x.data);
    }
}

static void two_inputs_are_crossed_as_in_keras(void **state)
{
    const json_t *cases = json_object_get(golden, "crossed");
    assert_true(json_array_size(cases) >= 3);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i), *in = json_object_get(c, "in");
        const keel_shape shape = golden_shape(c, "shape"), row = row_of(&shape);
        keel_array_field field[2];
        keel_arg args[ARGS_MAX];
        keel_symbol x[2], y;
        keel_tensor out;
        keel_model *m;
        keel_dataset *d;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        for (int k = 0; k < 2; k++) {
            const json_t *column = json_array_get(in, (size_t)k);
            const char *dtype = json_is_string(json_array_get(column, 0)) ? "string" : "int64";
            field[k] = (keel_array_field){ k ? "b" : "a", KEEL_ROLE_INPUT, NULL,
                                           column_of(column, dtype, shape) };
            must(keel_model_input(m, &row, KEEL_ARGS(KEEL_ARG_STR("dtype", dtype)), &x[k]));
        }
        take_args(args, json_object_get(c, "args"));
        must(keel_model_call(m, "HashedCrossing", args, x, 2, &y));
        must(keel_model_outputs(m, &y, 1));
        must(keel_dataset_from_fields(&d, field, 2));
        must(keel_predict(m, three, d, NULL, &out));
        float *want = golden_reals(json_object_get(c, "out"), false);
        assert_int_equal(keel_shape_count(&out.shape), json_array_size(json_object_get(c, "out")));
        for (int64_t k = 0; k < keel_shape_count(&out.shape); k++)
            if (((float *)out.data)[k] != want[k])
                fail_msg("case %zu: %d is %g, in Keras %g", i, (int)k,
                         (double)((float *)out.data)[k], (double)want[k]);
        free(want);
        free_args(args);
        keel_tensor_free(&out);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
        for (int k = 0; k < 2; k++) free(field[k].array.data);
    }
}

typedef struct column {
    const char *name, *dtype;
    keel_shape shape;
} column;

/* The model in the file gives what Keras gave for the columns of golden `key`, also once Keel has
 * saved it. */
static void file_predicts(const char *key, const char *file, const column *columns, int n)
{
    const json_t *c = json_object_get(golden, key), *out = json_object_get(c, "out");
    const int64_t count = (int64_t)json_array_size(out);
    keel_array_field field[3];
    keel_model *m;
    keel_dataset *d;
    keel_tensor y;
    files_begin();
    for (int k = 0; k < n; k++)
        field[k] = (keel_array_field){ columns[k].name, KEEL_ROLE_INPUT, NULL,
                                       column_of(json_object_get(c, columns[k].name),
                                                 columns[k].dtype, columns[k].shape) };
    must(keel_dataset_from_fields(&d, field, n));
    must(keel_model_load(&m, golden_path(file)));
    float *want = golden_reals(out, false);
    for (int saved = 0; saved < 2; saved++) {
        must(keel_predict(m, three, d, NULL, &y));
        assert_int_equal(keel_shape_count(&y.shape), count);
        assert_memory_equal(y.data, want, (size_t)count * sizeof *want);
        keel_tensor_free(&y);
        must(keel_model_save(m, files_path(file)));
        keel_model_destroy(m);
        must(keel_model_load(&m, files_path(file)));
    }
    free(want);
    keel_model_destroy(m);
    keel_dataset_destroy(d);
    for (int k = 0; k < n; k++) free(field[k].array.data);
    files_end();
}

static void categories_count_as_much_as_their_weights(void **state)
{
    file_predicts("weighted", "lookups_weighted.keras",
                  (column[]){ { "code", "int64", { 2, { 4, 3 } } },
                              { "weight", "float32", { 2, { 4, 3 } } } },
                  2);
}

static void what_has_another_shape_is_looked_up(void **state)
{
    file_predicts("shaped", "lookups_shaped.keras",
                  (column[]){ { "city", "string", { 1, { 4 } } },
                              { "tags", "string", { 2, { 4, 6 } } },
                              { "code", "int64", { 1, { 4 } } } },
                  3);
}

static void hashes_are_those_of_tensorflow(void **state)
{
    const json_t *all = json_object_get(golden, "hashes");
    const uint64_t buckets = (UINT64_C(1) << 62) + 11, key[2] = { 17, (uint64_t)-4 };
    assert_in_range(json_array_size(all), 80, 100);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i), *text = json_array_get(c, 0);
        const size_t n = json_string_length(text);
        char *s = malloc(n); /* so that reading beyond it is seen */
        memcpy(s, json_string_value(text), n);
        const uint64_t fast = keel_fingerprint(s, n) % buckets;
        const uint64_t strong = keel_siphash(key, s, n) % buckets;
        if (fast != strtoull(json_string_value(json_array_get(c, 1)), NULL, 10))
            fail_msg("fingerprint of %zu bytes", n);
        if (strong != strtoull(json_string_value(json_array_get(c, 2)), NULL, 10))
            fail_msg("siphash of %zu bytes", n);
        free(s);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void arguments_that_cannot_be_are_refused_by_name(void **state)
{
    static const struct {
        const char *class_name, *config, *dtype;
        int64_t shape[4];
        keel_status want;
        const char *says;
    } bad[] = {
#define S "StringLookup"
#define I "IntegerLookup"
        { S, "{}", "string", { 1 }, KEEL_EARG, "no vocabulary" },
        { S, "{\"vocabulary\": []}", "string", { 1 }, KEEL_EARG, "it is empty" },
        { S, "{\"vocabulary\": \"words.txt\"}", "string", { 1 }, KEEL_EARG, "must be a list" },
        { S, "{\"vocabulary\": [\"a\", 3]}", "string", { 1 }, KEEL_EARG, "entry 1 is no text" },
        { S,
          "{\"vocabulary\": [\"a\", \"b\", \"a\"]}",
          "string",
          { 1 },
          KEEL_EARG,
          "'a' is in it tw" },
        { S,
          "{\"vocabulary\": [\"a\", \"m\"], \"mask_token\": \"m\"}",
          "string",
          { 1 },
          KEEL_EARG,
          "mask token 'm'" },
        { S,
          "{\"vocabulary\": [\"a\", \"b\"], \"max_tokens\": 2}",
          "string",
          { 1 },
          KEEL_EARG,
          "max_tokens is 2" },
        { S,
          "{\"vocabulary\": [\"a\"], \"max_tokens\": 1}",
          "string",
          { 1 },
          KEEL_EARG,
          "max_tokens" },
        { S,
          "{\"vocabulary\": [\"a\"], \"pad_to_max_tokens\": true}",
          "string",
          { 1 },
          KEEL_EARG,
          "needs max_tokens" },
        { S,
          "{\"vocabulary\": [\"a\"], \"invert\": true}",
          "string",
          { 1 },
          KEEL_EUNSUP,
          "invert" },
        { S, "{\"vocabulary\": [\"a\"], \"sparse\": true}", "string", { 1 }, KEEL_EARG, "sparse" },
        { S,
          "{\"vocabulary\": [\"a\"], \"output_mode\": \"tf_idf\"}",
          "string",
          { 1 },
          KEEL_EARG,
          "needs idf_weights" },
        { S,
          "{\"vocabulary\": [\"a\"], \"output_mode\": \"tf_idf\", \"idf_weights\": [1, 2]}",
          "string",
          { 1 },
          KEEL_EARG,
          "2 for a vocabulary of 1" },
        { S,
          "{\"vocabulary\": [\"a\"], \"idf_weights\": [1]}",
          "string",
          { 1 },
          KEEL_EARG,
          "tf_idf" },
        { S, "{\"vocabulary\": [\"a\"], \"salt\": [1]}", "string", { 1 }, KEEL_EARG, "two whole" },
        { S,
          "{\"vocabulary\": [\"a\"], \"output_mode\": \"count\"}",
          "string",
          { 2, 3 },
          KEEL_EUNSUP,
          "'count' is there for rows of one dim" },
        { S,
          "{\"vocabulary\": [\"a\"], \"vocabulary_size\": 9, \"output_mode\": \"count\"}",
          "string",
          { 2 },
          KEEL_EARG,
          "not the 9" },
        { S, "{\"vocabulary\": [\"a\"]}", "int64", { 1 }, KEEL_EARG, "takes texts" },
        { I, "{\"vocabulary\": [1]}", "string", { 1 }, KEEL_EARG, "takes whole numbers" },
        { I, "{\"vocabulary\": [\"1\"]}", "int64", { 1 }, KEEL_EARG, "entry 0 is no whole" },
        { I, "{\"vocabulary\": [1, 1]}", "int64", { 1 }, KEEL_EARG, "1 is in it twice" },
        { I, "{\"vocabulary\": [1], \"salt\": [1, 2]}", "int64", { 1 }, KEEL_EARG, "farmhash" },
        { I,
          "{\"vocabulary\": [1], \"invert\": true, \"output_mode\": \"count\"}",
          "int64",
          { 1 },
          KEEL_EARG,
          "invert goes with" },
        { I,
          "{\"vocabulary\": [1, -1], \"invert\": true}",
          "int64",
          { 1 },
          KEEL_EARG,
          "the token -1" },
        { I,
          "{\"vocabulary\": [1], \"vocabulary_dtype\": \"int32\"}",
          "int64",
          { 1 },
          KEEL_EUNSUP,
          "vocabulary_dtype" },
#define T    "TextVectorization"
#define CATS "{\"vocabulary\": [\"cat\"], "
        { T, "{\"output_sequence_length\": 3}", "string", { 1 }, KEEL_EARG, "no vocabulary" },
        { T, CATS "\"split\": \"whitespace\"}", "string", { 1 }, KEEL_EUNSUP, "give output_se" },
        { T, CATS "\"output_sequence_length\": 3}", "string", { 2 }, KEEL_ESHAPE, "one text" },
        { T, CATS "\"split\": null}", "string", { 2, 3 }, KEEL_ESHAPE, "one dim" },
        { T, CATS "\"output_sequence_length\": 3}", "int64", { 1 }, KEEL_EARG, "takes texts" },
        { T, CATS "\"ragged\": true}", "string", { 1 }, KEEL_EUNSUP, "ragged" },
        { T, CATS "\"sparse\": true}", "string", { 1 }, KEEL_EARG, "sparse" },
        { T, CATS "\"ngrams\": 0}", "string", { 1 }, KEEL_EARG, "ngrams" },
        { T, CATS "\"ngrams\": [2, \"a\"]}", "string", { 1 }, KEEL_EARG, "ngrams" },
        { T, CATS "\"standardize\": {}}", "string", { 1 }, KEEL_EARG, "standardize" },
        { T, CATS "\"split\": \"words\"}", "string", { 1 }, KEEL_EARG, "split" },
        { T, CATS "\"output_mode\": \"one_hot\"}", "string", { 1 }, KEEL_EUNSUP, "one_hot" },
        { T,
          CATS "\"output_mode\": \"count\", \"output_sequence_length\": 3}",
          "string",
          { 1 },
          KEEL_EARG,
          "output_mode 'int' only" },
        { "CategoryEncoding", "{}", "int64", { 1 }, KEEL_EARG, "num_tokens" },
        { "CategoryEncoding",
          "{\"num_tokens\": 3}",
          "int64",
          { 2, 3 },
          KEEL_EUNSUP,
          "'multi_hot'" },
        { "CategoryEncoding", "{\"num_tokens\": 3}", "string", { 2 }, KEEL_EARG, "of texts" },
        { "Discretization", "{}", "float32", { 1 }, KEEL_EARG, "no bin_boundaries" },
        { "Discretization", "{\"num_bins\": 3}", "float32", { 1 }, KEEL_EARG, "adapt it in Keras" },
        { "Discretization", "{\"bin_boundaries\": [1, 0]}", "float32", { 1 }, KEEL_EARG, "ascend" },
        { "Discretization",
          "{\"bin_boundaries\": [0, \"1\"]}",
          "float32",
          { 1 },
          KEEL_EARG,
          "ascend" },
        { "Discretization", "{\"bin_boundaries\": [0]}", "string", { 1 }, KEEL_EARG, "of texts" },
        { "Hashing", "{}", "string", { 1 }, KEEL_EARG, "num_bins" },
        { "Hashing", "{\"num_bins\": 3, \"salt\": [1]}", "string", { 1 }, KEEL_EARG, "salt" },
        { "Hashing", "{\"num_bins\": 3, \"mask_value\": 1}", "string", { 1 }, KEEL_EARG, "a text" },
        { "Hashing",
          "{\"num_bins\": 3, \"mask_value\": \"\"}",
          "int64",
          { 1 },
          KEEL_EARG,
          "a num" },
        { "Hashing",
          "{\"num_bins\": 3, \"output_mode\": \"one_hot\"}",
          "int64",
          { 2 },
          KEEL_EUNSUP,
          "one element" },
        { "Dense", "{\"units\": 2}", "string", { 1 }, KEEL_EARG, "its input is of texts" },
        { "Permute", "{\"dims\": [1]}", "string", { 2 }, KEEL_EARG, "its input is of texts" },
        { "Flatten", "{}", "string", { 2 }, KEEL_EUNSUP, "output 0 is of texts" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int64_t live = keel_memory_live();
        json_t *config = json_loads(bad[i].config, 0, NULL);
        keel_model *m = NULL;
        keel_shape row = { 0 };
        while (bad[i].shape[row.rank]) {
            row.dim[row.rank] = bad[i].shape[row.rank];
            row.rank++;
        }
        const keel_status s = build_one(&m, bad[i].class_name, config, bad[i].dtype, &row);
        if (s != bad[i].want || !strstr(keel_error(), bad[i].says))
            fail_msg("%s %s: %d: %s", bad[i].class_name, bad[i].config, s, keel_error());
        json_decref(config);
        assert_int_equal(keel_memory_live(), live);
    }
}

static keel_model *lookup_model(const char *config)
{
    json_t *c = json_loads(config, 0, NULL);
    keel_model *m;
    must(build_one(&m, "StringLookup", c, "string", &(keel_shape){ 1, { 1 } }));
    json_decref(c);
    return m;
}

static void a_word_that_has_no_index_is_named_with_its_row(void **state)
{
    keel_string words[] = { { "a", 1 }, { "b", 1 }, { "what?", 5 }, { "a", 1 } };
    const keel_tensor x = { KEEL_STRING, { 1, { 4 } }, words };
    keel_model *m = lookup_model("{\"vocabulary\": [\"a\", \"b\"], \"num_oov_indices\": 0}");
    keel_dataset *d;
    keel_tensor y;
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    for (int threads = 0; threads < 2; threads++) {
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 2, .threads = threads };
        assert_int_equal(keel_predict(m, three, d, &o, &y), KEEL_EDATA);
        if (!strstr(keel_error(), "'what?' is not in the vocabulary") ||
            !strstr(keel_error(), "row 2 of arrays") || !strstr(keel_error(), "field 'x'"))
            fail_msg("%s", keel_error());
    }
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void a_field_of_another_kind_is_refused_before_step_1(void **state)
{
    float numbers[] = { 1, 2 };
    keel_string words[] = { { "a", 1 }, { "b", 1 } };
    const keel_tensor n = { KEEL_FLOAT32, { 1, { 2 } }, numbers };
    const keel_tensor w = { KEEL_STRING, { 1, { 2 } }, words };
    keel_model *m = lookup_model("{\"vocabulary\": [\"a\", \"b\"]}"), *dense;
    keel_dataset *numeric, *textual;
    keel_tensor y;
    must(keel_model_create(&dense, NULL, KEEL_FLOAT32, 1));
    must(keel_model_add(dense, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1))));
    must(keel_model_add(dense, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_dataset_from_arrays(&numeric, &n, NULL, NULL));
    must(keel_dataset_from_arrays(&textual, &w, NULL, NULL));
    assert_int_equal(keel_predict(m, one, numeric, NULL, &y), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "field 'x' has numbers, but input"));
    assert_int_equal(keel_predict(dense, one, textual, NULL, &y), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "field 'x' has texts, but input"));
    keel_dataset_destroy(numeric);
    keel_dataset_destroy(textual);
    keel_model_destroy(m);
    keel_model_destroy(dense);
}

static void what_a_layer_made_cannot_be_looked_up(void **state)
{
    keel_symbol x, y;
    keel_model *m;
    keel_tensor out;
    keel_dataset *d;
    int64_t numbers[] = { 1, 2 };
    const keel_tensor n = { KEEL_INT64, { 2, { 2, 1 } }, numbers };
    const keel_arg *vocabulary = KEEL_ARGS(KEEL_ARG_JSON("vocabulary", "[1, 2]"));
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(1), KEEL_ARGS(KEEL_ARG_STR("dtype", "int64")), &x));
    must(keel_model_call(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1)), &x, 1, &y));
    must(keel_model_call(m, "IntegerLookup", vocabulary, &y, 1, &y));
    must(keel_model_outputs(m, &y, 1));
    must(keel_dataset_from_arrays(&d, &n, NULL, NULL));
    assert_int_equal(keel_predict(m, one, d, NULL, &out), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "on an input of the model itself"));
    assert_non_null(strstr(keel_error(), "integer_lookup"));
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

/* ---- from files of rows ---------------------------------------------------------------------- */

/* Words by a generator, cut into other batches than it yields. */
static keel_status yield(void *context, void *const *field, int64_t capacity, int64_t *rows)
{
    static const keel_string words[] = { { "b", 1 }, { "a", 1 }, { "c", 1 } };
    int *at = context;
    (void)capacity;
    if (*at == 3) return KEEL_END;
    ((keel_string *)field[0])[0] = words[*at];
    ++*at;
    *rows = 1;
    return KEEL_OK;
}

static keel_status again(void *context)
{
    *(int *)context = 0;
    return KEEL_OK;
}

static void texts_are_looked_up_from_csv_and_from_generators(void **state)
{
    files_begin();
    files_text("t.csv", "word,y\nb,1\na,2\nc,3\n");
    static const char *const inputs[] = { "word" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.inputs = inputs;
    o.n_input = 1;
    o.label = "y";
    int at = 0;
    keel_model *m = lookup_model("{\"vocabulary\": [\"a\", \"b\"]}");
    keel_dataset *d[2];
    must(keel_dataset_open(&d[0], files_path("t.csv"), &o));
    const keel_data_field word = { .path = "w", .dtype = KEEL_STRING, .shape = { 1, { 1 } } };
    const keel_generator g = { .size = sizeof g,
                               .context = &at,
                               .max_rows = 1,
                               .rows = 3,
                               .reset = again,
                               .n_field = 1,
                               .field = &word,
                               .next_fields = yield };
    must(keel_dataset_from_generator(&d[1], &g));
    for (int i = 0; i < 2; i++) {
        keel_tensor y;
        must(keel_predict(m, one, d[i], &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 2 },
                          &y));
        const float want[] = { 2, 1, 0 };
        assert_memory_equal(y.data, want, sizeof want);
        keel_tensor_free(&y);
        keel_dataset_destroy(d[i]);
    }
    keel_model_destroy(m);
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_layer_gives_what_keras_gives),
        cmocka_unit_test(two_inputs_are_crossed_as_in_keras),
        cmocka_unit_test(categories_count_as_much_as_their_weights),
        cmocka_unit_test(what_has_another_shape_is_looked_up),
        cmocka_unit_test(hashes_are_those_of_tensorflow),
        cmocka_unit_test(arguments_that_cannot_be_are_refused_by_name),
        cmocka_unit_test(a_word_that_has_no_index_is_named_with_its_row),
        cmocka_unit_test(a_field_of_another_kind_is_refused_before_step_1),
        cmocka_unit_test(what_a_layer_made_cannot_be_looked_up),
        cmocka_unit_test(texts_are_looked_up_from_csv_and_from_generators),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
