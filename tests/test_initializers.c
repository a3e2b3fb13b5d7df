/* Initializers by their distribution: moments, bounds, Kolmogorov and Smirnov's distance; the same
 * numbers on every call; Keras's scale for every shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "golden.h"
#include "initializers/initializer.h"
#include "regularizers/regularizer.h"

static const keel_chance chance = { .seed = 11, .stream = KEEL_STREAM_WEIGHTS };

/* `name` fills a new array; config is JSON or NULL. */
static double *fill(const char *name, const char *config, const keel_shape *s, uint64_t row)
{
    const keel_type *type = keel_initializer_find(name);
    assert_non_null(type);
    json_t *j = config ? json_loads(config, 0, NULL) : NULL;
    void *args = keel_calloc(1, type->args_size);
    double *out = keel_calloc((size_t)keel_shape_count(s), sizeof *out);
    if (keel_fields_read(type, j, args) < 0) fail_msg("%s", keel_error());
    if (((const keel_initializer *)type)->fill(args, s, &chance, row, out) < 0)
        fail_msg("%s", keel_error());
    json_decref(j);
    keel_fields_free(type, args);
    keel_free(args);
    return out;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef enum shape_of { UNIFORM, NORMAL, CUT } shape_of; /* CUT: at two deviations before the cut */

static double cdf(shape_of d, double z) /* of uniform in +-1, or standard normal, maybe cut */
{
    const double phi = 0.5 * erfc(-z / sqrt(2)), tail = 0.5 * erfc(2 / sqrt(2));
    if (d == UNIFORM) return fmin(fmax((z + 1) / 2, 0), 1);
    return d == NORMAL ? phi : fmin(fmax((phi - tail) / (1 - 2 * tail), 0), 1);
}

static void draws_follow_the_distributions_of_keras(void **state)
{
    const keel_shape matrix = KEEL_SHAPE(200, 300), kernel = KEEL_SHAPE(3, 3, 40, 100);
    const keel_shape line = KEEL_SHAPE(50000);
    const double cut = 0.87962566103423978;
    const struct {
        const char *name, *config;
        const keel_shape *s;
        shape_of d;
        double mean,
            unit; /* of the standard distribution: half width, or deviation before the cut */
    } cases[] = {
        { "glorot_uniform", NULL, &matrix, UNIFORM, 0, sqrt(6. / 500) },
        { "glorot_uniform", NULL, &kernel, UNIFORM, 0, sqrt(6. / (9 * 140)) },
        { "GlorotUniform", NULL, &line, UNIFORM, 0, sqrt(6. / 1e5) },
        { "glorot_normal", NULL, &matrix, CUT, 0, sqrt(2. / 500) / cut },
        { "he_uniform", NULL, &matrix, UNIFORM, 0, sqrt(6. / 200) },
        { "he_normal", NULL, &kernel, CUT, 0, sqrt(2. / 360) / cut },
        { "lecun_uniform", NULL, &matrix, UNIFORM, 0, sqrt(3. / 200) },
        { "lecun_normal", NULL, &matrix, CUT, 0, sqrt(1. / 200) / cut },
        { "random_uniform", "{\"minval\": 1, \"maxval\": 3}", &matrix, UNIFORM, 2, 1 },
        { "uniform", NULL, &matrix, UNIFORM, 0, 0.05 },
        { "random_normal", "{\"mean\": -1, \"stddev\": 2}", &matrix, NORMAL, -1, 2 },
        { "normal", NULL, &matrix, NORMAL, 0, 0.05 },
        { "truncated_normal", "{\"stddev\": 0.5}", &matrix, CUT, 0, 0.5 },
        { "variance_scaling", NULL, &matrix, CUT, 0, sqrt(1. / 200) / cut },
        { "variance_scaling",
          "{\"mode\": \"fan_out\", \"distribution\": \"uniform\", \"scale\": 2}", &matrix, UNIFORM,
          0, sqrt(6. / 300) },
        { "variance_scaling", "{\"mode\": \"fan_avg\", \"distribution\": \"untruncated_normal\"}",
          &matrix, NORMAL, 0, sqrt(1. / 250) },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int64_t n = keel_shape_count(cases[k].s);
        double *x = fill(cases[k].name, cases[k].config, cases[k].s, k), distance = 0,
               neighbours = 0;
        double mean = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] = (x[i] - cases[k].mean) / cases[k].unit;
            mean += x[i] / (double)n;
            if (i) neighbours += x[i] * x[i - 1] / (double)n;
            if (cases[k].d != NORMAL && fabs(x[i]) > (cases[k].d == CUT ? 2 : 1))
                fail_msg("%s: %g is out of bounds", cases[k].name, x[i]);
        }
        qsort(x, (size_t)n, sizeof *x, by_size);
        for (int64_t i = 0; i < n; i++) {
            const double f = cdf(cases[k].d, x[i]);
            distance =
                fmax(distance, fmax(f - (double)i / (double)n, (double)(i + 1) / (double)n - f));
        }
        /* 2.2 / sqrt(n) is passed by chance once in 8,000; the draws are fixed anyway */
        if (distance > 2.2 / sqrt((double)n))
            fail_msg("%s (case %zu): distance %g", cases[k].name, k, distance);
        assert_true(fabs(mean) < 4 / sqrt((double)n));
        assert_true(fabs(neighbours) < 4 / sqrt((double)n)); /* elements are independent */
        keel_free(x);
    }
}

static void a_draw_depends_on_seed_weight_and_element_alone(void **state)
{
    const keel_shape s = KEEL_SHAPE(31, 7), longer = KEEL_SHAPE(62, 7);
    const char *names[] = { "random_normal", "truncated_normal", "random_uniform" };
    for (int i = 0; i < 3; i++) {
        double *a = fill(names[i], NULL, &s, 4), *b = fill(names[i], NULL, &s, 4);
        double *other = fill(names[i], NULL, &s, 5), *more = fill(names[i], NULL, &longer, 4);
        double *seeded = fill(names[i], "{\"seed\": 12}", &s, 4);
        double *same = fill(names[i], "{\"seed\": 12}", &s, 9); /* of another weight: as in Keras */
        assert_memory_equal(a, b, sizeof *a * 31 * 7);
        assert_memory_equal(seeded, same, sizeof *a * 31 * 7);
        assert_memory_equal(a, more, sizeof *a * 31 * 7);
        assert_memory_not_equal(a, other, sizeof *a * 31 * 7);
        assert_memory_not_equal(a, seeded, sizeof *a * 31 * 7);
        double *all[] = { a, b, other, more, seeded, same };
        for (int k = 0; k < 6; k++) keel_free(all[k]);
    }
}

/* A SeedGenerator in a config is the seed that it has. */
static void initializers_with_one_seed_draw_the_same(void **state)
{
    static const char generator[] = "{\"seed\": {\"module\": \"keras.random\", \"class_name\": "
                                    "\"SeedGenerator\", \"config\": {\"seed\": 12, \"name\": "
                                    "\"seed_generator\"}, \"registered_name\": null}}";
    static const char *const names[] = { "RandomUniform", "GlorotNormal", "Orthogonal" };
    const keel_shape s = KEEL_SHAPE(4, 5);
    for (int i = 0; i < 3; i++) {
        double *a = fill(names[i], "{\"seed\": 12}", &s, 1), *b = fill(names[i], generator, &s, 2);
        double *other = fill(names[i], "{\"seed\": -12}", &s, 1);
        assert_memory_equal(a, b, sizeof *a * 20);
        assert_memory_not_equal(a, other, sizeof *a * 20);
        keel_free(a);
        keel_free(b);
        keel_free(other);
    }
}

static void a_filled_tensor_holds_the_draws_of_its_elements(void **state)
{
    enum { N = 203 };
    double x[N];
    keel_fill(x, N, KEEL_TRUNCATED_NORMAL, 1, 2, &chance, 9);
    for (int i = 0; i < N; i++)
        assert_true(x[i] == 1 + 2 * keel_truncated_normal(&chance, 9, (uint64_t)i));
    keel_fill(x, N, KEEL_UNTRUNCATED_NORMAL, 0, 1, &chance, 9);
    for (int i = 0; i < N; i++) assert_true(x[i] == keel_normal(&chance, 9, (uint64_t)i));
    keel_fill(x, N, KEEL_UNIFORM, 0, 1, &chance, 9);
    for (int i = 0; i < N; i++) assert_true(x[i] == keel_uniform_at(&chance, 9, (uint64_t)i));
}

static void constants_are_what_they_say(void **state)
{
    const keel_shape s = KEEL_SHAPE(2, 3);
    const struct {
        const char *name, *config;
        double want[6];
    } cases[] = {
        { "zeros", NULL, { 0, 0, 0, 0, 0, 0 } },
        { "Ones", NULL, { 1, 1, 1, 1, 1, 1 } },
        { "constant", "{\"value\": -2.5}", { -2.5, -2.5, -2.5, -2.5, -2.5, -2.5 } },
        { "identity", "{\"gain\": 3}", { 3, 0, 0, 0, 3, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double *x = fill(cases[i].name, cases[i].config, &s, 0);
        for (int k = 0; k < 6; k++) assert_true(x[k] == cases[i].want[k]);
        keel_free(x);
    }
}

static void kernels_without_chance_are_those_of_keras(void **state)
{
    json_t *cases = golden_load("initializers.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        const json_t *dims = json_array_get(c, 2), *want = json_array_get(c, 3);
        char *config = json_dumps(json_array_get(c, 1), 0);
        keel_shape s = { .rank = (int)json_array_size(dims) };
        for (int d = 0; d < s.rank; d++)
            s.dim[d] = json_integer_value(json_array_get(dims, (size_t)d));
        double *x = fill(json_string_value(json_array_get(c, 0)), config, &s, 0);
        assert_int_equal(keel_shape_count(&s), json_array_size(want));
        for (size_t k = 0; k < json_array_size(want); k++)
            if (!golden_near(x[k], json_number_value(json_array_get(want, k)), 1e-6))
                fail_msg("case %zu, %s: number %zu is %.9g, in Keras %.9g", i, config, k, x[k],
                         json_number_value(json_array_get(want, k)));
        keel_free(x);
        free(config);
    }
    json_decref(cases);
}

/* They are what Gram and Schmidt make of normal draws, one vector after another: of the draws of a
 * vector, the part along it is positive, and nothing is along a later one. */
static void orthogonal_gives_orthonormal_columns_or_rows(void **state)
{
    const keel_shape shapes[] = { KEEL_SHAPE(40, 12), KEEL_SHAPE(12, 40), KEEL_SHAPE(3, 3, 4, 8),
                                  KEEL_SHAPE(1, 1),   KEEL_SHAPE(20, 20), KEEL_SHAPE(90, 90) };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const int64_t cols = shapes[k].dim[shapes[k].rank - 1];
        const int64_t rows = keel_shape_count(&shapes[k]) / cols;
        const bool tall = rows >= cols;
        double *q = fill("orthogonal", "{\"gain\": 2}", &shapes[k], k);
        double *draws = fill("random_normal", "{\"stddev\": 1}", &shapes[k], k);
        const int64_t n = tall ? cols : rows, length = tall ? rows : cols;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double dot = 0, drawn = 0;
                for (int64_t e = 0; e < length; e++) {
                    const double own = tall ? q[e * cols + i] : q[i * cols + e];
                    dot += own * (tall ? q[e * cols + j] : q[j * cols + e]);
                    drawn += own * draws[j * length + e];
                }
                assert_true(fabs(dot - (i == j ? 4 : 0)) < 2e-14);
                assert_true(i == j ? drawn > 0 : i < j || fabs(drawn) < 1e-12);
            }
        keel_free(q);
        keel_free(draws);
    }
}

/* The deviation of a normal distribution that is cut at two of them is 0.8796 of that before. */
static void a_scale_is_that_of_the_plain_distribution(void **state)
{
    static const struct {
        const char *name, *config, *plain;
        double unit; /* deviation or half width of the plain one */
    } cases[] = {
        { "glorot_normal", NULL, "{\"stddev\": %.17g}",
          0.0632455532033675867 / 0.879625661034239784 },
        { "glorot_uniform", NULL, "{\"minval\": -%.17g, \"maxval\": %.17g}", 0.109544511501033223 },
        { "variance_scaling", "{\"mode\": \"fan_avg\", \"distribution\": \"untruncated_normal\"}",
          "{\"mean\": 0, \"stddev\": %.17g}", 0.0632455532033675867 },
    };
    static const char *const plain[] = { "truncated_normal", "random_uniform", "random_normal" };
    const keel_shape matrix = KEEL_SHAPE(200, 300);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char config[120];
        snprintf(config, sizeof config, cases[k].plain, cases[k].unit, cases[k].unit);
        double *x = fill(cases[k].name, cases[k].config, &matrix, k);
        double *y = fill(plain[k], config, &matrix, k);
        for (int64_t i = 0; i < 200 * 300; i++)
            if (!(fabs(x[i] - y[i]) <= 1e-12 * cases[k].unit))
                fail_msg("%s: %.17g, not %.17g", cases[k].name, x[i], y[i]);
        keel_free(x);
        keel_free(y);
    }
}

static void shapes_and_arguments_that_do_not_fit_are_refused(void **state)
{
    const keel_shape line = KEEL_SHAPE(5), cube = KEEL_SHAPE(2, 2, 2);
    const struct {
        const char *name;
        const keel_shape *s;
    } cases[] = { { "orthogonal", &line }, { "identity", &line }, { "identity", &cube } };
    double out[8] = { 7, 7, 7, 7, 7, 7, 7, 7 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_type *type = keel_initializer_find(cases[i].name);
        void *args = keel_calloc(1, type->args_size);
        assert_int_equal(keel_fields_read(type, NULL, args), KEEL_OK);
        assert_int_equal(((const keel_initializer *)type)->fill(args, cases[i].s, &chance, 0, out),
                         KEEL_ESHAPE);
        assert_true(out[0] == 7);
        keel_free(args);
    }
    const char *bad[] = { "{\"input_axes\": [0.5]}", "{\"seed\": 1.5}", "{\"mode\": \"fan\"}",
                          "{\"scale\": 0}" };
    const keel_type *type = keel_initializer_find("VarianceScaling");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *j = json_loads(bad[i], 0, NULL);
        void *args = keel_calloc(1, type->args_size);
        assert_true(keel_fields_read(type, j, args) < 0);
        keel_free(args);
        json_decref(j);
    }
    assert_null(keel_initializer_find("STFTS"));
}

static void no_memory_is_reported(void **state)
{
    const keel_shape s = KEEL_SHAPE(4, 4);
    const keel_type *type = keel_initializer_find("Orthogonal");
    void *args = keel_calloc(1, type->args_size);
    assert_int_equal(keel_fields_read(type, NULL, args), KEEL_OK);
    const int64_t live = keel_memory_live();
    double out[16];
    keel_memory_fail_at(0);
    assert_int_equal(((const keel_initializer *)type)->fill(args, &s, &chance, 0, out),
                     KEEL_ENOMEM);
    keel_memory_fail_at(-1);
    assert_int_equal(keel_memory_live(), live);
    keel_free(args);
}

static void fans_are_those_of_keras(void **state)
{
    const struct {
        keel_shape s;
        double in, out;
    } cases[] = {
        { { 0 }, 1, 1 },
        { KEEL_SHAPE(7), 7, 7 },
        { KEEL_SHAPE(3, 5), 3, 5 },
        { KEEL_SHAPE(3, 3, 4, 8), 36, 72 },
        { KEEL_SHAPE(5, 2, 6), 10, 30 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double in, out;
        keel_compute_fans(&cases[i].s, &in, &out);
        assert_true(in == cases[i].in && out == cases[i].out);
    }
}

/* The limit of a uniform distribution is sqrt(3 scale / fan). One of the two alone does not count.
 */
static void fans_can_be_those_of_given_dims(void **state)
{
    const keel_shape s = KEEL_SHAPE(4, 3, 5);
    static const struct {
        const char *name, *config;
        double fan, plain; /* of compute_fans with and without the dims */
    } cases[] = {
        { "VarianceScaling", "\"distribution\": \"uniform\"", 4, 12 },
        { "VarianceScaling", "\"distribution\": \"uniform\", \"mode\": \"fan_out\"", 15, 20 },
        { "GlorotUniform", "\"seed\": null", 9.5, 16 },
        { "LecunNormal", "\"seed\": null", 4, 12 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[128], with[256], half[256];
        snprintf(config, sizeof config, "{%s}", cases[i].config);
        snprintf(with, sizeof with, "{%s, \"input_axes\": [0], \"output_axes\": [1, -1]}",
                 cases[i].config);
        snprintf(half, sizeof half, "{%s, \"input_axes\": [0]}", cases[i].config);
        double *a = fill(cases[i].name, config, &s, 0), *b = fill(cases[i].name, with, &s, 0),
               *c = fill(cases[i].name, half, &s, 0);
        for (int64_t k = 0; k < keel_shape_count(&s); k++) {
            assert_true(fabs(b[k] - a[k] * sqrt(cases[i].plain / cases[i].fan)) < 1e-12);
            assert_true(a[k] == c[k]);
        }
        keel_free(a);
        keel_free(b);
        keel_free(c);
    }
    json_t *j = json_loads("{\"input_axes\": [3], \"output_axes\": [0]}", 0, NULL);
    const keel_type *type = keel_initializer_find("HeNormal");
    keel_object o;
    double out[60];
    json_t *object = json_pack("{s:s,s:o}", "class_name", "HeNormal", "config", j);
    assert_int_equal(keel_object_read(&o, object, keel_initializer_find, "initializer"), KEEL_OK);
    assert_int_equal(((const keel_initializer *)type)->fill(o.args, &s, &chance, 0, out),
                     KEEL_EARG);
    keel_object_free(&o);
    json_decref(object);
}

static void regularizers_give_their_factors(void **state)
{
    const struct {
        const char *name, *config;
        double l1, l2, orthogonal;
        bool columns;
    } cases[] = {
        { "orthogonal_regularizer", NULL, 0, 0, 0.01, false },
        { "OrthogonalRegularizer", "{\"factor\": 2, \"mode\": \"columns\"}", 0, 0, 2, true },
        { "l1", NULL, 0.01, 0 },
        { "L2", NULL, 0, 0.01 },
        { "l1_l2", NULL, 0, 0 },
        { "L1L2", "{\"l1\": 0.5, \"l2\": 0.25}", 0.5, 0.25 },
        { "L2", "{\"l2\": 0.0001}", 0, 0.0001 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_type *type = keel_regularizer_find(cases[i].name);
        assert_non_null(type);
        json_t *j = cases[i].config ? json_loads(cases[i].config, 0, NULL) : NULL;
        void *args = keel_calloc(1, type->args_size);
        assert_int_equal(keel_fields_read(type, j, args), KEEL_OK);
        keel_penalty p = { 0 };
        ((const keel_regularizer *)type)->penalty(args, &p);
        assert_true(p.l1 == cases[i].l1 && p.l2 == cases[i].l2);
        assert_true(p.orthogonal == cases[i].orthogonal && p.columns == cases[i].columns);
        keel_free(args);
        json_decref(j);
    }
    assert_null(keel_regularizer_find("Orthogonal"));
}

static void lists_that_do_not_fit_a_weight_are_refused(void **state)
{
    const struct {
        const char *config, *says;
        keel_status want;
    } cases[] = {
        { "{\"value\": [1, 2, 3]}", "a list of 3", KEEL_ESHAPE },
        { "{\"value\": []}", "a list of 0", KEEL_ESHAPE },
        { "{\"value\": [[[1, 2]]]}", "3 dims", KEEL_ESHAPE },
        { "{\"value\": [[1, 2], [3]]}", "a list of 2", KEEL_ESHAPE },
        { "{\"value\": [1, [2]]}", "a list of 1", KEEL_ESHAPE },
        { "{\"value\": [1, \"2\"]}", "numbers", KEEL_EARG },
    };
    const keel_shape s = KEEL_SHAPE(3, 2);
    const keel_type *type = keel_initializer_find("constant");
    double out[6];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *j = json_loads(cases[i].config, 0, NULL);
        void *args = keel_calloc(1, type->args_size);
        assert_int_equal(keel_fields_read(type, j, args), KEEL_OK);
        const keel_status got = ((const keel_initializer *)type)->fill(args, &s, &chance, 0, out);
        if (got != cases[i].want || !strstr(keel_error(), cases[i].says))
            fail_msg("%s: %d, '%s'", cases[i].config, got, keel_error());
        json_decref(j);
        keel_fields_free(type, args);
        keel_free(args);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_follow_the_distributions_of_keras),
        cmocka_unit_test(a_draw_depends_on_seed_weight_and_element_alone),
        cmocka_unit_test(initializers_with_one_seed_draw_the_same),
        cmocka_unit_test(a_filled_tensor_holds_the_draws_of_its_elements),
        cmocka_unit_test(constants_are_what_they_say),
        cmocka_unit_test(kernels_without_chance_are_those_of_keras),
        cmocka_unit_test(orthogonal_gives_orthonormal_columns_or_rows),
        cmocka_unit_test(a_scale_is_that_of_the_plain_distribution),
        cmocka_unit_test(shapes_and_arguments_that_do_not_fit_are_refused),
        cmocka_unit_test(lists_that_do_not_fit_a_weight_are_refused),
        cmocka_unit_test(no_memory_is_reported),
        cmocka_unit_test(fans_are_those_of_keras),
        cmocka_unit_test(fans_can_be_those_of_given_dims),
        cmocka_unit_test(regularizers_give_their_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
