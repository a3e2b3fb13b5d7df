/* Every activation that Keras knows by name, through the op and the arguments that it names here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "activations/activation.h"
#include "base/memory.h"
#include "golden.h"
#include "ops/op.h"

enum { ROWS = 3, LAST = 6, SAVED_MAX = 2 };

static void near_list(const char *name, const char *what, const void *got, int f64,
                      const json_t *want)
{
    for (size_t i = 0; i < json_array_size(want); i++) {
        const double w = json_number_value(json_array_get(want, i)), g = golden_at(got, f64, i);
        /* Keras holds some constants in float32 even for float64 */
        if (!golden_near(g, w, f64 ? 1e-7 : 1e-5))
            fail_msg("%s: %s[%zu] is %.9g instead of %.9g", name, what, i, g, w);
    }
}

static void check_case(const json_t *all, const json_t *k, int f64)
{
    const char *name = golden_text(k, "name");
    const keel_type *type = keel_activation_find(name);
    if (!type) fail_msg("%s is not known", name);
    const keel_activation *a = (const keel_activation *)type;
    const json_t *y = json_object_get(k, "y"), *upstream = json_object_get(all, "upstream");
    void *x = golden_reals(json_object_get(all, "x"), f64);
    double out[ROWS * LAST] = { 0 }, dx[ROWS * LAST] = { 0 }, dy[ROWS * LAST] = { 0 };
    double saved[SAVED_MAX][ROWS * LAST * 2] = { 0 };
    if (!a->op) { /* linear */
        near_list(name, "y", x, f64, y);
        free(x);
        return;
    }
    const keel_op *op = a->op;
    void *args = keel_calloc(1, op->args_size + 1);
    if (a->op_args) memcpy(args, a->op_args, op->args_size);
    const keel_spec in = { f64 ? KEEL_FLOAT64 : KEEL_FLOAT32, KEEL_SHAPE(LAST) };
    keel_node n = { .op = op,
                    .args = args,
                    .layer = "activation",
                    .training = true,
                    .backward = true,
                    .real = in.dtype,
                    .held = in.dtype,
                    .n_in = 1,
                    .in = &in };
    if (keel_node_infer(&n) < 0) fail_msg("%s: %s", name, keel_error());
    const size_t width = (size_t)keel_row_count(&n.out[0]);
    assert_int_equal(width * ROWS, json_array_size(y));
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < width; i++) {
            const double u = json_number_value(json_array_get(json_array_get(upstream, r), i));
            if (f64)
                dy[r * width + i] = u;
            else
                ((float *)dy)[r * width + i] = (float)u;
        }
    void *scratch = keel_aligned_calloc((size_t)n.scratch + 1, 1);
    const bool adds = false;
    keel_call c = { .node = &n,
                    .rows = ROWS,
                    .in = (const void *[]){ x },
                    .out = (void *[]){ out },
                    .out_grad = (const void *[]){ dy },
                    .saved = (void *[SAVED_MAX]){ 0 },
                    .in_grad = (void *[]){ dx },
                    .in_adds = &adds,
                    .scratch = scratch };
    assert_true(n.n_saved <= SAVED_MAX);
    for (int i = 0; i < n.n_saved; i++) c.saved[i] = saved[i];
    op->forward[f64](&c);
    op->backward[f64](&c);
    if (!strcmp(name, "sparsemax")) {
        /* Keras 3.15 adds up the sums of the whole support for tau, so that its y does not sum to 1
         * where that has more than one element; ours is the projection of the paper. */
        for (size_t r = 0; r < ROWS; r++) {
            double sum = 0;
            for (size_t i = 0; i < width; i++) sum += golden_at(out, f64, r * width + i);
            assert_true(golden_near(sum, 1, 1e-6));
        }
    } else {
        near_list(name, "y", out, f64, y);
        near_list(name, "grad", dx, f64, json_object_get(k, "grad"));
    }
    keel_free(scratch);
    keel_node_clear(&n);
    keel_free(args);
    free(x);
}

static void values_and_gradients_are_those_of_keras(void **state)
{
    json_t *all = golden_load("activations.json"), *cases = json_object_get(all, "cases"), *k;
    size_t i;
    json_array_foreach(cases, i, k) for (int f64 = 0; f64 < 2; f64++) check_case(all, k, f64);
    assert_int_equal(i, 31); /* all that Keras has, with both spellings of silu and hard_silu */
    json_decref(all);
}

static void at_0_selu_has_the_slope_above_it(void **state)
{
    const keel_op *op = ((const keel_activation *)keel_activation_find("selu"))->op;
    const keel_spec in = { KEEL_FLOAT64, KEEL_SHAPE(3) };
    keel_node n = { .op = op,
                    .layer = "selu",
                    .training = true,
                    .backward = true,
                    .real = in.dtype,
                    .held = in.dtype,
                    .n_in = 1,
                    .in = &in };
    double x[] = { 0, -0.0, -1e-9 }, y[3], dy[] = { 1, 1, 1 }, dx[3];
    const bool adds = false;
    assert_int_equal(keel_node_infer(&n), KEEL_OK);
    const keel_call c = { .node = &n,
                          .rows = 1,
                          .in = (const void *[]){ x },
                          .out = (void *[]){ y },
                          .out_grad = (const void *[]){ dy },
                          .in_grad = (void *[]){ dx },
                          .in_adds = &adds };
    op->forward[1](&c);
    op->backward[1](&c);
    assert_true(golden_near(dx[0], 1.0507009873554805, 1e-12));
    assert_true(golden_near(dx[1], 1.0507009873554805, 1e-12));
    assert_true(golden_near(dx[2], 1.7580993408473766, 1e-6));
    keel_node_clear(&n);
}

static void every_activation_has_the_arguments_of_its_op(void **state)
{
    for (int i = 0; keel_activations[i]; i++) {
        const keel_activation *a = keel_activations[i];
        if (!a->op) continue;
        const keel_op *op = a->op;
        if (!a->op_args && a->type.args_size) assert_int_equal(a->type.args_size, op->args_size);
    }
}

static void configs_are_names_and_threshold_wants_its_arguments(void **state)
{
    keel_object o = { 0 };
    json_t *j = json_string("swish");
    assert_int_equal(keel_object_read(&o, j, keel_activation_find, "Dense: activation"), KEEL_OK);
    json_decref(j);
    j = keel_object_json(&o);
    assert_string_equal(json_string_value(j), "silu");
    json_decref(j);
    keel_object_free(&o);
    j = json_string("threshold");
    assert_int_equal(keel_object_read(&o, j, keel_activation_find, "activation"), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "threshold"));
    json_decref(j);
    assert_null(keel_activation_find("no_such_activation"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients_are_those_of_keras),
        cmocka_unit_test(at_0_selu_has_the_slope_above_it),
        cmocka_unit_test(every_activation_has_the_arguments_of_its_op),
        cmocka_unit_test(configs_are_names_and_threshold_wants_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
