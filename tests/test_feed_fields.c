/* Rows of many fields: names, types and roles on the way from arrays, generators and sequences into
 * batches, and what cannot be is refused. */
#include "base/memory.h"
#include "data/feed.h"
#include "keel/pipeline.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 37, BIG = (1 << 24) + 1 }; /* BIG: the first whole number that float32 has not */

static uint8_t image_of[N][2][2];
static int64_t token_of[N][3];
static uint8_t flag_of[N];
static int32_t kind_of[N];
static double price_of[N];
static float weight_of[N];

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 4; k++) image_of[i][k / 2][k % 2] = (uint8_t)(5 * i + k);
        for (int k = 0; k < 3; k++) token_of[i][k] = INT64_C(1) * BIG + 2 * i + k;
        flag_of[i] = i % 3 == 0;
        kind_of[i] = i % 5;
        price_of[i] = i + 0.5;
        weight_of[i] = (float)(1 + i % 4);
    }
}

static const keel_array_field fields[] = {
    { "image", KEEL_ROLE_INPUT, NULL, { KEEL_UINT8, { 3, { N, 2, 2 } }, image_of } },
    { "text/0", KEEL_ROLE_INPUT, NULL, { KEEL_INT64, { 2, { N, 3 } }, token_of } },
    { "flag", KEEL_ROLE_INPUT, NULL, { KEEL_BOOL, { 1, { N } }, flag_of } },
    { "kind", KEEL_ROLE_TARGET, NULL, { KEEL_INT32, { 1, { N } }, kind_of } },
    { "price", KEEL_ROLE_TARGET, NULL, { KEEL_FLOAT64, { 1, { N } }, price_of } },
    { "w", KEEL_ROLE_WEIGHT, "price", { KEEL_FLOAT32, { 2, { N, 1 } }, weight_of } },
};

enum { IMAGE, TEXT, FLAG, KIND, PRICE, WEIGHT, COUNT };

static keel_status stream_rows(void *const *field, int at, int64_t n)
{
    const void *const from[] = { image_of, token_of, flag_of, kind_of, price_of, weight_of };
    const size_t size[] = { 4, 24, 1, 4, 8, 4 };
    for (int k = 0; k < COUNT; k++)
        memcpy(field[k], (const char *)from[k] + (size_t)at * size[k], (size_t)n * size[k]);
    return KEEL_OK;
}

static keel_status next_fields(void *context, void *const *field, int64_t capacity, int64_t *rows)
{
    int *at = context;
    if (*at == N) return KEEL_END;
    *rows = N - *at < capacity ? N - *at : capacity;
    stream_rows(field, *at, *rows);
    *at += (int)*rows;
    return KEEL_OK;
}

static keel_status reset(void *context)
{
    *(int *)context = 0;
    return KEEL_OK;
}

static int64_t five_batches(void *context)
{
    return 5;
}

static keel_status get_fields(void *context, int64_t i, void *const *field, int64_t capacity,
                              int64_t *rows)
{
    *rows = i < 4 ? 8 : N - 32;
    return stream_rows(field, (int)i * 8, *rows);
}

static void spec_of(keel_data_field out[COUNT])
{
    for (int k = 0; k < COUNT; k++) {
        const keel_array_field *f = &fields[k];
        const keel_shape *s = &f->array.shape;
        out[k] = (keel_data_field){
            .path = f->path, .dtype = f->array.dtype, .role = f->role, .target = f->target
        };
        out[k].shape.rank = s->rank - 1;
        memcpy(out[k].shape.dim, s->dim + 1, (size_t)(s->rank - 1) * sizeof *s->dim);
    }
}

static int generator_at;

/* 0: arrays, 1: generator, 2: sequence */
static keel_dataset *dataset(int kind)
{
    keel_data_field spec[COUNT];
    keel_dataset *d = NULL;
    fill();
    spec_of(spec);
    generator_at = 0;
    const keel_generator g = { .size = sizeof g,
                               .context = &generator_at,
                               .max_rows = 6,
                               .reset = reset,
                               .n_field = COUNT,
                               .field = spec,
                               .next_fields = next_fields };
    const keel_sequence q = { .size = sizeof q,
                              .max_rows = 8,
                              .length = five_batches,
                              .n_field = COUNT,
                              .field = spec,
                              .get_fields = get_fields };
    const keel_status s = kind == 0   ? keel_dataset_from_fields(&d, fields, COUNT)
                          : kind == 1 ? keel_dataset_from_generator(&d, &g)
                                      : keel_dataset_from_sequence(&d, &q);
    if (s < 0) fail_msg("%s", keel_error());
    return d;
}

static keel_feed *feed_of(const keel_dataset *d, keel_feed_options o)
{
    keel_feed *f = NULL;
    if (keel_feed_create(&f, d, &o) < 0) fail_msg("%s", keel_error());
    return f;
}

static void a_dataset_says_what_its_fields_are(void **state)
{
    for (int kind = 0; kind < 3; kind++) {
        keel_dataset *d = dataset(kind);
        keel_data_field f, want[COUNT];
        spec_of(want);
        assert_int_equal(keel_dataset_field_count(d), COUNT);
        for (int k = 0; k < COUNT; k++) {
            assert_int_equal(keel_dataset_field(d, k, &f), KEEL_OK);
            assert_string_equal(f.path, want[k].path);
            assert_int_equal(f.dtype, want[k].dtype);
            assert_int_equal(f.role, want[k].role);
            assert_memory_equal(&f.shape, &want[k].shape, sizeof f.shape);
            if (want[k].target)
                assert_string_equal(f.target, want[k].target);
            else
                assert_null(f.target);
        }
        assert_int_equal(keel_dataset_field(d, COUNT, &f), KEEL_EARG);
        assert_int_equal(keel_dataset_field(d, -1, &f), KEEL_EARG);
        assert_int_equal(keel_dataset_x_dtype(d), KEEL_UINT8);
        assert_int_equal(keel_dataset_y_dtype(d), KEEL_INT32);
        assert_true(keel_dataset_has_weight(d));
        keel_dataset_destroy(d);
    }
    const keel_tensor x = { KEEL_FLOAT32, { 2, { N, 1 } }, weight_of };
    keel_dataset *d = NULL;
    keel_data_field f;
    assert_int_equal(keel_dataset_from_arrays(&d, &x, &x, &x), KEEL_OK);
    const char *const name[] = { "x", "y", "sample_weight" };
    for (int k = 0; k < 3; k++) {
        assert_int_equal(keel_dataset_field(d, k, &f), KEEL_OK);
        assert_string_equal(f.path, name[k]);
        assert_int_equal(f.role, k);
    }
    keel_dataset_destroy(d);
}

/* Every row once, with every field in its own type, whichever the source and whoever reads. */
static void types_stay_what_they_are(void **state)
{
    for (int kind = 0; kind < 3; kind++)
        for (int way = 0; way < 8; way++) {
            keel_dataset *d = dataset(kind);
            keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 5,
                                                           .shuffle = way & 1,
                                                           .threads = way & 2 ? 2 : -1,
                                                           .leaves_rows = way & 4 });
            keel_batch b;
            int seen[N] = { 0 }, n = 0;
            assert_int_equal(keel_feed_field_count(f), COUNT);
            assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
            while (keel_feed_next(f, &b) == KEEL_OK) {
                keel_feed_read(&b, 0, b.rows);
                const float *price = b.field[PRICE]; /* floats become `real`, float32 here */
                double sum = 0;
                for (int64_t k = 0; k < b.rows; k++, n++) {
                    const int i = (int)price[k];
                    assert_true(price[k] == (float)price_of[i]);
                    assert_memory_equal((const uint8_t(*)[2][2])b.field[IMAGE] + k, image_of[i], 4);
                    assert_memory_equal((const int64_t(*)[3])b.field[TEXT] + k, token_of[i], 24);
                    assert_int_equal(((const uint8_t *)b.field[FLAG])[k], flag_of[i]);
                    assert_int_equal(((const int32_t *)b.field[KIND])[k], kind_of[i]);
                    assert_true(((const float *)b.field[WEIGHT])[k] == weight_of[i]);
                    sum += (double)weight_of[i];
                    seen[i]++;
                }
                assert_true(b.weight_sum == sum);
                keel_feed_release(f, &b);
            }
            assert_int_equal(n, N);
            for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
}

static void a_consumer_gets_the_types_it_wants_and_no_field_it_does_not(void **state)
{
    static const keel_dtype want[] = { KEEL_FLOAT32, KEEL_INT32,   KEEL_INT64,
                                       KEEL_UINT8,   KEEL_FLOAT64, KEEL_FLOAT64 };
    for (int kind = 0; kind < 3; kind++)
        for (int threads = -1; threads < 2; threads++) {
            keel_dataset *d = dataset(kind);
            keel_feed *f = feed_of(
                d, (keel_feed_options){
                       .batch_size = N, .want = want, .unwanted = 1 << FLAG, .threads = threads });
            keel_batch b;
            assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
            if (keel_feed_next(f, &b) < 0) fail_msg("%s", keel_error());
            assert_int_equal(b.rows, N);
            assert_null(b.field[FLAG]);
            assert_ptr_equal(keel_batch_field(&b, KEEL_ROLE_INPUT, 1), b.field[TEXT]);
            assert_null(keel_batch_field(&b, KEEL_ROLE_INPUT, 2));
            for (int i = 0; i < N; i++) {
                assert_true(((const float(*)[4])b.field[IMAGE])[i][3] == image_of[i][1][1]);
                assert_int_equal(((const int32_t(*)[3])b.field[TEXT])[i][2], token_of[i][2]);
                assert_int_equal(((const uint8_t *)b.field[KIND])[i], kind_of[i]);
                assert_true(((const double *)b.field[PRICE])[i] == price_of[i]);
            }
            for (int k = 0; k < COUNT; k++) assert_int_equal(keel_feed_field(f, k)->dtype, want[k]);
            keel_feed_release(f, &b);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
}

static void what_a_type_cannot_hold_is_an_error_with_field_and_value(void **state)
{
    static const struct {
        int field;
        keel_dtype want;
        const char *says;
    } bad[] = {
        { PRICE, KEEL_INT32, "field 'price' has 0.5, which int32 cannot hold exactly" },
        { PRICE, KEEL_BOOL, "field 'price' has 0.5, which bool cannot hold exactly" },
        { TEXT, KEEL_UINT8, "field 'text/0' has 16777217, which uint8 cannot hold exactly" },
        { KIND, KEEL_BOOL, "field 'kind' has 2, which bool cannot hold exactly" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int kind = 0; kind < 3; kind++)
            for (int threads = -1; threads < 2; threads++) {
                keel_dtype want[COUNT];
                for (int k = 0; k < COUNT; k++) want[k] = fields[k].array.dtype;
                want[bad[i].field] = bad[i].want;
                keel_dataset *d = dataset(kind);
                keel_feed *f = feed_of(d, (keel_feed_options){ .batch_size = 8,
                                                               .want = want,
                                                               .threads = threads,
                                                               .leaves_rows = true });
                keel_batch b;
                assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
                assert_int_equal(keel_feed_next(f, &b), KEEL_EDATA);
                if (!strstr(keel_error(), bad[i].says)) fail_msg("%s", keel_error());
                keel_feed_destroy(f);
                keel_dataset_destroy(d);
            }
}

static void class_weights_need_a_single_target(void **state)
{
    static const double two[] = { 1, 2 };
    keel_feed *f = NULL;
    keel_feed_options o = { .batch_size = N, .class_weight = two, .class_weight_count = 2 };
    keel_dataset *d = dataset(0);
    assert_int_equal(keel_feed_create(&f, d, &o), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "'kind' and 'price'"));
    o.unwanted = 1 << PRICE; /* then there is one; a weight of its own is there as well */
    f = feed_of(d, o);
    keel_batch b;
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
    for (int i = 0; i < N; i++)
        assert_true(((const float *)b.field[WEIGHT])[i] ==
                    weight_of[i] * (kind_of[i] == 1 ? 2 : 1));
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

static void fields_that_cannot_be_are_refused(void **state)
{
    static float a[N];
#define ARRAY(path, role, target, ...)                                                             \
    {                                                                                              \
        path, KEEL_ROLE_##role, target,                                                            \
        {                                                                                          \
            KEEL_FLOAT32, __VA_ARGS__, a                                                           \
        }                                                                                          \
    }
    static const struct {
        keel_array_field f[3];
        int n;
        keel_status status;
        const char *says;
    } bad[] = {
        { { ARRAY("y", TARGET, NULL, { 1, { N } }) }, 1, KEEL_EARG, "no field is an input" },
        { { { 0 } }, 0, KEEL_EARG, "1 to 64 fields" },
        { { ARRAY("", INPUT, NULL, { 1, { N } }) }, 1, KEEL_EARG, "field 0 has no name" },
        { { ARRAY("a", INPUT, NULL, { 1, { N } }), ARRAY("a", INPUT, NULL, { 1, { N } }) },
          2,
          KEEL_EARG,
          "two fields are called 'a'" },
        { { ARRAY("a", INPUT, NULL, { 1, { N } }), ARRAY("b", INPUT, NULL, { 1, { 5 } }) },
          2,
          KEEL_ESHAPE,
          "a has 37 rows but b has 5" },
        { { ARRAY("a", INPUT, NULL, { 1, { N } }), ARRAY("w", WEIGHT, "y", { 1, { N } }) },
          2,
          KEEL_EARG,
          "'w' has weights for 'y', but there is no such target" },
        { { ARRAY("a", INPUT, NULL, { 1, { N } }), ARRAY("w", WEIGHT, NULL, { 2, { 1, 37 } }) },
          2,
          KEEL_ESHAPE,
          "1" },
        { { ARRAY("a", INPUT, NULL, { 1, { N } }), ARRAY("v", WEIGHT, NULL, { 1, { N } }),
            ARRAY("w", WEIGHT, NULL, { 1, { N } }) },
          3,
          KEEL_EARG,
          "'v' and 'w' are weights of the same target" },
        { { { "a", KEEL_ROLE_INPUT, NULL, { KEEL_FLOAT32, { 1, { N } }, NULL } } },
          1,
          KEEL_EARG,
          "a is NULL" },
        { { { "a", (keel_data_role)7, NULL, { KEEL_FLOAT32, { 1, { N } }, a } } },
          1,
          KEEL_EARG,
          "must be input, target or weight" },
        { { { "a", KEEL_ROLE_INPUT, NULL, { (keel_dtype)99, { 1, { N } }, a } } },
          1,
          KEEL_EARG,
          "no known dtype" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_dataset *d = NULL;
        const int64_t live = keel_memory_live();
        if (keel_dataset_from_fields(&d, bad[i].f, bad[i].n) != bad[i].status ||
            !strstr(keel_error(), bad[i].says))
            fail_msg("%zu: %s", i, keel_error());
        assert_null(d);
        assert_int_equal(keel_memory_live(), live);
    }
}

/* One row of fields named like "x y w:y": what begins with x is an input, with y a target, with w a
 * weight, of the target behind the colon. */
static keel_dataset *named(const char *text)
{
    static float one = 1;
    char copy[64], *rest, *part;
    keel_array_field f[8] = { 0 };
    keel_dataset *d = NULL;
    int n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (part = strtok_r(copy, " ", &rest); part; part = strtok_r(NULL, " ", &rest)) {
        char *colon = strchr(part, ':');
        if (colon) *colon = 0;
        const keel_data_role role = *part == 'x'   ? KEEL_ROLE_INPUT
                                    : *part == 'y' ? KEEL_ROLE_TARGET
                                                   : KEEL_ROLE_WEIGHT;
        f[n++] = (keel_array_field){
            part, role, colon ? colon + 1 : NULL, { KEEL_FLOAT32, { 1, { 1 } }, &one }
        };
    }
    assert_int_equal(keel_dataset_from_fields(&d, f, n), KEEL_OK);
    return d;
}

static void zip_names_fields_anew_and_weights_keep_their_targets(void **state)
{
    static const struct {
        const char *what, *a, *b, *zipped, *says; /* says: why it is refused */
    } cases[] = {
        { "other names stay", "x y", "x2 y2", "x y x2 y2", NULL },
        { "the same names get a number", "x y", "x y", "x y x_1 y_1", NULL },
        { "a number that is taken is passed over", "x x_1 x_2", "x", "x x_1 x_2 x_3", NULL },
        { "a weight follows its target to its new name", "x y w:y", "w:y x y",
          "x y w:y w_1:y_1 x_1 y_1", NULL },
        { "a weight is of the targets of its own dataset", "x y", "x y w", "x y x_1 y_1 w:y_1",
          NULL },
        { "also that of the first dataset", "x y w", "x y", "x y w:y x_1 y_1", NULL },
        { "where only one has targets, a weight of all stays one", "x y y2 w", "x2", "x y y2 w x2",
          NULL },
        { "a dataset without targets weighs those of the other", "x y", "x2 w", "x y x2 w", NULL },
        { "a weight of several targets is not one of further ones", "x y y2 w", "x y", NULL,
          "'w' is the weight of all 2 targets of arrays, and not of those beside it" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_dataset *d[2] = { named(cases[i].a), named(cases[i].b) }, *z = NULL;
        char got[128] = "";
        size_t at = 0;
        const keel_status s = keel_dataset_apply(&z, "zip", NULL, d, 2);
        for (int k = 0; s >= 0 && k < keel_dataset_field_count(z); k++) {
            keel_data_field f;
            assert_int_equal(keel_dataset_field(z, k, &f), KEEL_OK);
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%s%s%s", k ? " " : "", f.path,
                                   f.target ? ":" : "", f.target ? f.target : "");
        }
        if (s < 0 ? !cases[i].says || !strstr(keel_error(), cases[i].says)
                  : !cases[i].zipped || strcmp(got, cases[i].zipped) != 0)
            fail_msg("%s: %s", cases[i].what, s < 0 ? keel_error() : got);
        keel_dataset_destroy(z);
        keel_dataset_destroy(d[0]);
        keel_dataset_destroy(d[1]);
    }
}

static void weights_of_other_targets_do_not_follow_each_other(void **state)
{
    static const char *const second[] = { "x y y2 w:y", "x y y2 w:y2", "x y y2 w" };
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        keel_dataset *d[2] = { named("x y y2 w:y"), named(second[i]) }, *both = NULL;
        const keel_status s = keel_dataset_apply(&both, "concatenate", NULL, d, 2);
        assert_int_equal(s, i ? KEEL_ESHAPE : KEEL_OK);
        if (i) assert_non_null(strstr(keel_error(), "'w' weighs other targets"));
        keel_dataset_destroy(both);
        keel_dataset_destroy(d[0]);
        keel_dataset_destroy(d[1]);
    }
}

static void every_failed_allocation_is_survived(void **state)
{
    for (int kind = 0; kind < 3; kind++) {
        bool done = false;
        for (int n = 0; !done; n++) {
            const int64_t live = keel_memory_live();
            keel_dataset *d = dataset(0), *e = NULL;
            keel_data_field spec[COUNT];
            keel_feed *f = NULL;
            spec_of(spec);
            const keel_generator g = { .size = sizeof g,
                                       .context = &generator_at,
                                       .max_rows = 6,
                                       .n_field = COUNT,
                                       .field = spec,
                                       .next_fields = next_fields };
            const keel_feed_options o = { .batch_size = 5,
                                          .end = kind ? KEEL_CARRY : KEEL_KEEP,
                                          .threads = -1 };
            keel_memory_fail_at(n);
            keel_status s = kind ? keel_dataset_from_generator(&e, &g)
                                 : keel_dataset_from_fields(&e, fields, COUNT);
            if (s >= 0) s = keel_feed_create(&f, e, &o);
            keel_memory_fail_at(-1);
            done = s >= 0;
            if (!done) assert_int_equal(s, KEEL_ENOMEM);
            keel_feed_destroy(f);
            keel_dataset_destroy(e);
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), live);
            assert_in_range(n, 0, 500);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dataset_says_what_its_fields_are),
        cmocka_unit_test(types_stay_what_they_are),
        cmocka_unit_test(a_consumer_gets_the_types_it_wants_and_no_field_it_does_not),
        cmocka_unit_test(what_a_type_cannot_hold_is_an_error_with_field_and_value),
        cmocka_unit_test(class_weights_need_a_single_target),
        cmocka_unit_test(fields_that_cannot_be_are_refused),
        cmocka_unit_test(zip_names_fields_anew_and_weights_keep_their_targets),
        cmocka_unit_test(weights_of_other_targets_do_not_follow_each_other),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
