/* Outputs that are one value, each with a loss of its own: the gradients of all of them count. Two
 * losses that are alike, with the weights 0.25 and 0.75, train as one of them does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "keel/keel.h"
#include "must.h"

enum { ROWS = 7, FEATURES = 5, UNITS = 3 };
static float x[ROWS * FEATURES], y[ROWS * UNITS];

static const struct {
    const char *loss, *activation;
} cases[] = {
    { "mse", "tanh" },                         /* has a fast kernel */
    { "categorical_crossentropy", "softmax" }, /* computed from the logits, which are one value */
    { "log_cosh", "tanh" },                    /* a row at a time */
    { "Dice", "sigmoid" },                     /* all rows together */
    { "cosine_similarity", "linear" },
};

static keel_model *network(size_t i, bool twice, keel_dtype real)
{
    keel_model *m;
    keel_symbol in, out[2];
    must(keel_model_create(&m, NULL, real, 5));
    must(keel_model_input(m, KEEL_DIMS(FEATURES), NULL, &in));
    out[0] = must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", UNITS), KEEL_ARG_STR("activation", cases[i].activation)),
        in);
    if (twice) out[1] = must_call(m, "Identity", NULL, out[0]);
    must(keel_model_outputs(m, out, twice ? 2 : 1));
    keel_compile c = { KEEL_COMPILE,
                       .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.5)) },
                       .loss = { { cases[i].loss } } };
    if (twice) c.loss_weights[0] = 0.25, c.loss_weights[1] = 0.75;
    must(keel_model_compile(m, &c));
    return m;
}

static void fit(keel_model *m, bool twice, keel_dtype real, const char *devices)
{
    double wide[2][ROWS * FEATURES];
    for (int i = 0; i < ROWS * FEATURES; i++) wide[0][i] = (double)x[i];
    for (int i = 0; i < ROWS * UNITS; i++) wide[1][i] = (double)y[i];
    const bool f64 = real == KEEL_FLOAT64;
    const keel_tensor tx = { real, { 2, { ROWS, FEATURES } }, f64 ? (void *)wide[0] : x };
    const keel_tensor ty = { real, { 2, { ROWS, UNITS } }, f64 ? (void *)wide[1] : y };
    const keel_array_field f[3] = {
        { .path = "x", .role = KEEL_ROLE_INPUT, .array = tx },
        { .path = keel_model_output_name(m, 0), .role = KEEL_ROLE_TARGET, .array = ty },
        { .path = twice ? keel_model_output_name(m, 1) : "",
          .role = KEEL_ROLE_TARGET,
          .array = ty },
    };
    keel_strategy *s;
    keel_dataset *d;
    must(keel_strategy_create(&s, devices));
    must(keel_dataset_from_fields(&d, f, twice ? 3 : 2));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4, .no_shuffle = true },
                  NULL));
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
}

static double number(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((double *)t->data)[i] : (double)((float *)t->data)[i];
}

static void two_losses_of_one_value_add_up(void **state)
{
    static const char *const devices[] = { "cpu:0", "cpu:0-2" };
    (void)state;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = sinf((float)i * 1.3F);
    for (int i = 0; i < ROWS * UNITS; i++) y[i] = i % UNITS == i / UNITS % UNITS;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 4; k++) {
            const keel_dtype real = k / 2 ? KEEL_FLOAT64 : KEEL_FLOAT32;
            keel_model *one = network(i, false, real), *two = network(i, true, real);
            keel_tensor a, b;
            fit(one, false, real, devices[k % 2]);
            fit(two, true, real, devices[k % 2]);
            must(keel_model_get_weight(one, "dense/kernel", &a));
            must(keel_model_get_weight(two, "dense/kernel", &b));
            for (int64_t e = 0; e < FEATURES * UNITS; e++)
                if (!(fabs(number(&a, e) - number(&b, e)) < (k / 2 ? 1e-13 : 2e-6)))
                    fail_msg("%s on %s: element %d is %.9g, with one loss %.9g", cases[i].loss,
                             devices[k % 2], (int)e, number(&b, e), number(&a, e));
            keel_tensor_free(&a);
            keel_tensor_free(&b);
            keel_model_destroy(one);
            keel_model_destroy(two);
        }
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(two_losses_of_one_value_add_up) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
