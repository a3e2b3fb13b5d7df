/* Losses against Keras, against their own differences, and against hostile data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "losses/along.h"
#include "losses/loss.h"

static const keel_loss *make(const char *name, const char *config, void **args)
{
    const keel_type *type = keel_loss_find(name);
    assert_non_null(type);
    json_t *j = config ? json_loads(config, 0, NULL) : NULL;
    *args = keel_calloc(1, type->args_size);
    if (keel_fields_read(type, j, *args) < 0) fail_msg("%s", keel_error());
    json_decref(j);
    return (const keel_loss *)type;
}

/* ---- Keras ------------------------------------------------------------------------------------
 */

static void check_case(const json_t *k, size_t index)
{
    const int f64 = !strcmp(golden_text(k, "real"), "float64");
    const double tolerance = f64 ? 1e-11 : 1e-5;
    const keel_type *type = keel_loss_find(golden_text(k, "loss"));
    assert_non_null(type);
    const keel_loss *l = (const keel_loss *)type;
    void *args = keel_calloc(1, type->args_size);
    if (keel_fields_read(type, json_object_get(k, "config"), args) < 0)
        fail_msg("%s", keel_error());
    const keel_dtype real = f64 ? KEEL_FLOAT64 : KEEL_FLOAT32;
    const keel_spec p = { real, golden_shape(k, "prediction") };
    const keel_spec t = { real, golden_shape(k, "target") };
    int64_t elements = 0;
    if (keel_loss_check(l, args, &p, &t, &elements) < 0) fail_msg("%s", keel_error());
    const int64_t rows = (int64_t)golden_number(k, "rows");
    const size_t n = (size_t)(rows * keel_shape_count(&p.shape));
    double sum[3] = { 0 };
    double *grad = calloc(n, sizeof *grad);
    keel_loss_call c = {
        .args = args,
        .prediction = &p,
        .target = &t,
        .rows = rows,
        .y_pred = golden_reals(json_object_get(k, "y_pred"), f64),
        .y_true = golden_reals(json_object_get(k, "y_true"), f64),
        .weight = golden_reals(json_object_get(k, "weight"), f64),
        .seed = 1,
        .sum = sum,
    };
    keel_loss_run(l, f64, &c);
    const double divisor = keel_loss_divisor(l, args, sum), want = golden_number(k, "value");
    if (!golden_near(sum[0] / divisor, want, tolerance))
        fail_msg("case %zu, %s: %.17g instead of %.17g", index, type->name, sum[0] / divisor, want);
    double again[3] = { 0 };
    c.sum = again;
    c.seed = 1 / divisor;
    c.grad = grad;
    keel_loss_run(l, f64, &c);
    for (int i = 0; i < 3; i++) /* the gradient changes nothing of the sums */
        assert_true(golden_near(again[i], sum[i], tolerance));
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest =
            fmax(largest, fabs(json_number_value(json_array_get(json_object_get(k, "grad"), i))));
    for (size_t i = 0; i < n; i++) {
        const double g = golden_at(grad, f64, i);
        const double wanted = json_number_value(json_array_get(json_object_get(k, "grad"), i));
        if (!(fabs(g - wanted) <= tolerance * fmax(largest, 1e-3)))
            fail_msg("case %zu, %s: gradient %zu is %.17g instead of %.17g", index, type->name, i,
                     g, wanted);
    }
    free((void *)c.y_pred);
    free((void *)c.y_true);
    free((void *)c.weight);
    free(grad);
    keel_fields_free(&l->type, args);
    keel_free(args);
}

static void values_and_gradients_are_those_of_keras(void **state)
{
    json_t *cases = golden_load("losses.json"), *k;
    size_t i;
    json_array_foreach(cases, i, k) check_case(k, i);
    assert_true(i > 50);
    json_decref(cases);
}

/* ---- properties -------------------------------------------------------------------------------
 */

enum { ROWS = 6, CLASSES = 4 };

static const struct property {
    const char *loss, *config;
    bool labels, probabilities;
} properties[] = {
    { "MeanSquaredError", NULL, false, false },
    { "BinaryCrossentropy", "{\"from_logits\": true, \"label_smoothing\": 0.1}", false, false },
    { "BinaryCrossentropy", "{\"label_smoothing\": 0.1}", false, true },
    { "CategoricalCrossentropy", "{\"label_smoothing\": 0.3}", false, true },
    { "CategoricalCrossentropy", "{\"from_logits\": true}", false, false },
    { "SparseCategoricalCrossentropy", "{\"from_logits\": true}", true, false },
    { "SparseCategoricalCrossentropy", NULL, true, true },
    { "MeanAbsoluteError", NULL, false, false },
    { "MeanSquaredLogarithmicError", NULL, false, true },
    { "Huber", "{\"delta\": 0.7}", false, false },
    { "LogCosh", NULL, false, false },
    { "Poisson", NULL, false, true },
    { "Hinge", NULL, false, false },
    { "SquaredHinge", NULL, false, false },
    { "CategoricalHinge", NULL, false, false },
    { "KLDivergence", NULL, false, true },
    { "CosineSimilarity", NULL, false, false },
    { "BinaryFocalCrossentropy", "{\"label_smoothing\": 0.1, \"gamma\": 1.5}", false, true },
    { "BinaryFocalCrossentropy", "{\"from_logits\": true, \"apply_class_balancing\": true}", false,
      false },
    { "CategoricalFocalCrossentropy", "{\"label_smoothing\": 0.1}", false, true },
    { "CategoricalFocalCrossentropy", "{\"from_logits\": true, \"gamma\": 1.5}", false, false },
    { "CategoricalGeneralizedCrossEntropy", "{\"q\": 0.3}", true, true },
};

typedef struct data_t {
    keel_spec p, t;
    double pred[ROWS * CLASSES], target[ROWS * CLASSES], weight[ROWS];
} data_t;

static data_t data_for(const struct property *q)
{
    data_t d = { .p = { KEEL_FLOAT64, KEEL_SHAPE(CLASSES) } };
    d.t = q->labels ? (keel_spec){ KEEL_FLOAT64, KEEL_SHAPE(1) } : d.p;
    uint32_t state = 7;
    for (int i = 0; i < ROWS * CLASSES; i++) {
        state = state * 1664525 + 1013904223;
        const double u = (state >> 8) * 0x1p-24;
        d.pred[i] = q->probabilities ? 0.05 + 0.9 * u : 6 * u - 3;
        /* one-hot, for the gradient of the categorical loss of logits is that of sums of one */
        d.target[i] = q->labels ? i % CLASSES : i % CLASSES == (i / CLASSES) % 3;
    }
    for (int i = 0; i < ROWS; i++) d.weight[i] = 0.5 + i;
    d.weight[2] = 0;
    return d;
}

static void run(const struct property *q, const data_t *d, int first, int rows, double *sum,
                double *grad)
{
    void *args;
    const keel_loss *l = make(q->loss, q->config, &args);
    const int64_t n = keel_shape_count(&d->t.shape);
    keel_loss_run(l, 1,
                  &(keel_loss_call){ .args = args,
                                     .prediction = &d->p,
                                     .target = &d->t,
                                     .rows = rows,
                                     .y_pred = d->pred + first * CLASSES,
                                     .y_true = d->target + first * n,
                                     .weight = d->weight + first,
                                     .seed = 1,
                                     .sum = sum,
                                     .grad = grad ? grad + first * CLASSES : NULL });
    keel_fields_free(&l->type, args);
    keel_free(args);
}

static void gradients_are_central_differences(void **state)
{
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
        const struct property *q = &properties[k];
        data_t d = data_for(q);
        double grad[ROWS * CLASSES], sum[3] = { 0 };
        run(q, &d, 0, ROWS, sum, grad);
        for (int i = 0; i < ROWS * CLASSES; i++) {
            const double h = 1e-6, x = d.pred[i];
            double up[3] = { 0 }, down[3] = { 0 };
            d.pred[i] = x + h;
            run(q, &d, 0, ROWS, up, NULL);
            d.pred[i] = x - h;
            run(q, &d, 0, ROWS, down, NULL);
            d.pred[i] = x;
            const double slope = (up[0] - down[0]) / (2 * h);
            if (!golden_near(grad[i], slope, 1e-6))
                fail_msg("%s %s: gradient %d is %.9g, the difference %.9g", q->loss,
                         q->config ? q->config : "", i, grad[i], slope);
        }
    }
}

static void the_cut_into_shards_changes_no_sum(void **state)
{
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
        const struct property *q = &properties[k];
        const data_t d = data_for(q);
        double whole[3] = { 0 }, cut[3] = { 0 }, grad[2][ROWS * CLASSES];
        run(q, &d, 0, ROWS, whole, grad[0]);
        run(q, &d, 0, 1, cut, grad[1]);
        run(q, &d, 1, 0, cut, grad[1]);
        run(q, &d, 1, 3, cut, grad[1]);
        run(q, &d, 4, 2, cut, grad[1]);
        for (int i = 0; i < 3; i++) assert_true(golden_near(cut[i], whole[i], 1e-14));
        assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
    }
}

static void rows_of_weight_zero_leave_no_trace(void **state)
{
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
        const struct property *q = &properties[k];
        data_t d = data_for(q);
        double grad[ROWS * CLASSES], sum[3] = { 0 };
        for (int i = 0; i < ROWS; i++) d.weight[i] = 0;
        d.pred[1] = INFINITY;
        d.pred[6] = NAN;
        d.target[0] = q->labels ? 99 : NAN;
        run(q, &d, 0, ROWS, sum, grad);
        assert_true(sum[0] == 0 && sum[2] == 0);
        for (int i = 0; i < ROWS * CLASSES; i++) assert_true(grad[i] == 0);
        void *args;
        const keel_loss *l = make(q->loss, q->config, &args);
        assert_true(keel_loss_divisor(l, args, sum) == 0);
        keel_fields_free(&l->type, args);
        keel_free(args);
        assert_int_equal(keel_call_status_take(), KEEL_OK);
    }
}

/* Or a fit would go on with it, as if nothing were wrong. */
static void a_prediction_that_is_no_number_shows_in_the_loss(void **state)
{
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++)
        for (int at = 0; at < CLASSES; at++) {
            const struct property *q = &properties[k];
            data_t d = data_for(q);
            double sum[3] = { 0 };
            /* of labels some losses read one prediction only */
            d.pred[q->labels ? (int)d.target[0] : at] = NAN;
            run(q, &d, 0, 1, sum, NULL);
            if (!isnan(sum[0]))
                fail_msg("%s %s: the loss is %g", q->loss, q->config ? q->config : "", sum[0]);
        }
}

static void huge_logits_stay_finite(void **state)
{
    for (int f64 = 0; f64 < 2; f64++)
        for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
            const struct property *q = &properties[k];
            if (!q->config || !strstr(q->config, "from_logits")) continue;
            void *args;
            const keel_loss *l = make(q->loss, q->config, &args);
            const keel_dtype real = f64 ? KEEL_FLOAT64 : KEEL_FLOAT32;
            const keel_spec p = { real, KEEL_SHAPE(3) };
            const keel_spec t = { real, q->labels ? KEEL_SHAPE(1) : KEEL_SHAPE(3) };
            const float pred[6] = { -3e37f, 3e37f, 0, 1e30f, -1e30f, 2e30f };
            const float target[6] = { 0, 1, 0, 1, 0, 0 };
            double wide[12], grad[6] = { 0 }, sum[3] = { 0 };
            for (int i = 0; i < 6; i++) wide[i] = (double)pred[i], wide[6 + i] = (double)target[i];
            keel_loss_run(l, f64,
                          &(keel_loss_call){ .args = args,
                                             .prediction = &p,
                                             .target = &t,
                                             .rows = 2,
                                             .y_pred = f64 ? (void *)wide : (void *)pred,
                                             .y_true = f64 ? (void *)(wide + 6) : (void *)target,
                                             .seed = 1,
                                             .grad = grad,
                                             .sum = sum });
            assert_true(isfinite(sum[0]));
            for (size_t i = 0; i < 6; i++) assert_true(isfinite(golden_at(grad, f64, i)));
            keel_fields_free(&l->type, args);
            keel_free(args);
        }
}

static void labels_outside_the_classes_are_named(void **state)
{
    const struct {
        double label;
        bool ok;
    } cases[] = { { 0, true },      { 2, true },    { 2.9, true },
                  { 3, false },     { -1, false },  { 1e30, false },
                  { -1e30, false }, { NAN, false }, { INFINITY, false } };
    static const char *const names[] = { "sparse_categorical_crossentropy",
                                         "CategoricalGeneralizedCrossEntropy" };
    enum { CASES = sizeof cases / sizeof *cases };
    const keel_spec p = { KEEL_FLOAT64, KEEL_SHAPE(3) }, t = { KEEL_FLOAT64, KEEL_SHAPE(1) };
    for (size_t k = 0; k < 2 * CASES; k++) {
        void *args;
        const size_t i = k % CASES;
        const keel_loss *l = make(names[k / CASES], NULL, &args);
        const double pred[6] = { .2, .3, .5, .1, .1, .8 }, target[2] = { 1, cases[i].label };
        double grad[6], sum[3] = { 0 };
        keel_loss_run(l, 1,
                      &(keel_loss_call){ .args = args,
                                         .prediction = &p,
                                         .target = &t,
                                         .rows = 2,
                                         .row = 40,
                                         .y_pred = pred,
                                         .y_true = target,
                                         .seed = 1,
                                         .grad = grad,
                                         .sum = sum });
        assert_int_equal(keel_call_status_take(), cases[i].ok ? KEEL_OK : KEEL_EDATA);
        if (!cases[i].ok) {
            assert_non_null(strstr(keel_error(), "row 41"));
            assert_non_null(strstr(keel_error(), "0..2"));
            assert_true(grad[3] == 0 && isfinite(sum[0]));
        }
        keel_fields_free(&l->type, args);
        keel_free(args);
    }
}

static void labels_may_be_whole_numbers_of_any_type(void **state)
{
    void *args;
    const keel_loss *l = make("sparse_categorical_crossentropy", NULL, &args);
    const double pred[6] = { .2, .3, .5, .1, .1, .8 }, f64[2] = { 1, 2 };
    const float f32[2] = { 1, 2 };
    const uint8_t u8[2] = { 1, 2 };
    const int32_t i32[2] = { 1, 2 };
    const int64_t i64[2] = { 1, 2 };
    const void *labels[KEEL_DTYPE_COUNT] = { f32, f64, u8, i32, i64, u8 };
    const keel_spec p = { KEEL_FLOAT64, KEEL_SHAPE(3) };
    for (int d = 0; d <= KEEL_BOOL; d++) {
        const keel_spec t = { (keel_dtype)d, { 0 } };
        int64_t elements;
        double sum[3] = { 0 };
        assert_int_equal(keel_loss_check(l, args, &p, &t, &elements), KEEL_OK);
        keel_loss_run(l, 1,
                      &(keel_loss_call){ .args = args,
                                         .prediction = &p,
                                         .target = &t,
                                         .rows = 2,
                                         .y_pred = pred,
                                         .y_true = labels[d],
                                         .seed = 1,
                                         .sum = sum });
        assert_true(golden_near(sum[0], -log(.3) - log(.8), 1e-6));
    }
    keel_fields_free(&l->type, args);
    keel_free(args);
}

static void shapes_and_arguments_that_do_not_fit_are_refused(void **state)
{
    const keel_shape one = KEEL_SHAPE(1), four = KEEL_SHAPE(4), grid = KEEL_SHAPE(2, 4),
                     none = { 0 };
    const keel_shape line = KEEL_SHAPE(2), column = KEEL_SHAPE(2, 1);
    const struct {
        const char *loss;
        const keel_shape *p, *t;
        int64_t elements; /* 0: refused */
    } cases[] = {
        { "mse", &four, &four, 1 },
        { "mse", &grid, &grid, 2 },
        { "mse", &one, &none, 1 },
        { "mse", &line, &column, 1 },
        { "mse", &column, &line, 1 },
        { "mse", &four, &one, 0 }, /* Keras broadcasts, and trains nonsense */
        { "mse", &none, &none, 0 },
        { "bce", &one, &none, 1 },
        { "bce", &four, &line, 0 },
        { "cce", &four, &four, 1 },
        { "cce", &four, &none, 0 },
        { "cce", &column, &line, 0 },
        { "sparse_categorical_crossentropy", &four, &none, 1 },
        { "sparse_categorical_crossentropy", &four, &one, 1 },
        { "sparse_categorical_crossentropy", &grid, &line, 2 },
        { "sparse_categorical_crossentropy", &grid, &column, 2 },
        { "sparse_categorical_crossentropy", &four, &four, 0 },
        { "sparse_categorical_crossentropy", &none, &none, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *args;
        const keel_loss *l = make(cases[i].loss, NULL, &args);
        const keel_spec p = { KEEL_FLOAT32, *cases[i].p }, t = { KEEL_FLOAT32, *cases[i].t };
        int64_t elements = -7;
        const keel_status s = keel_loss_check(l, args, &p, &t, &elements);
        if (s != (cases[i].elements ? KEEL_OK : KEEL_ESHAPE)) fail_msg("case %zu: %d", i, s);
        assert_int_equal(elements, cases[i].elements ? cases[i].elements : -7);
        keel_fields_free(&l->type, args);
        keel_free(args);
    }
    void *args;
    const keel_loss *l = make("mse", NULL, &args);
    const keel_spec p = { KEEL_FLOAT32, four }, whole = { KEEL_INT32, four };
    int64_t elements;
    assert_int_equal(keel_loss_check(l, args, &p, &whole, &elements), KEEL_EARG);
    keel_fields_free(&l->type, args);
    keel_free(args);
}

static void an_axis_moves_to_the_end_or_is_refused(void **state)
{
    const keel_shape grid = KEEL_SHAPE(2, 3, 4), rest = KEEL_SHAPE(3, 4), line = KEEL_SHAPE(4);
    const struct {
        const char *loss, *config;
        const keel_shape *p, *t;
        keel_status want;
        int64_t elements, last;
    } cases[] = {
        { "bce", "{\"axis\": 1}", &grid, &grid, KEEL_OK, 12, 2 },
        { "bce", "{\"axis\": -2}", &grid, &grid, KEEL_OK, 8, 3 },
        { "bce", "{\"axis\": 3}", &grid, &grid, KEEL_OK, 6, 4 },
        { "cosine_similarity", "{\"axis\": 1}", &line, &line, KEEL_OK, 1, 4 },
        { "sparse_categorical_crossentropy", "{\"axis\": 1}", &grid, &rest, KEEL_OK, 12, 2 },
        { "sparse_categorical_crossentropy", "{\"axis\": 2}", &grid, &rest, KEEL_ESHAPE, 0, 0 },
        { "bce", "{\"axis\": 1}", &grid, &rest, KEEL_ESHAPE, 0, 0 },
        { "bce", "{\"axis\": 0}", &grid, &grid, KEEL_EUNSUP, 0, 0 }, /* the batch */
        { "bce", "{\"axis\": -4}", &grid, &grid, KEEL_EUNSUP, 0, 0 },
        { "bce", "{\"axis\": 4}", &grid, &grid, KEEL_EARG, 0, 0 },
        { "bce", "{\"axis\": -5}", &grid, &grid, KEEL_EARG, 0, 0 },
        { "cce", "{\"axis\": 1, \"label_smoothing\": 0.1}", &grid, &grid, KEEL_EUNSUP, 0, 0 },
        { "CategoricalFocalCrossentropy", "{\"axis\": 1, \"alpha\": [0.5, 1]}", &grid, &grid,
          KEEL_EUNSUP, 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *args;
        const keel_loss *l = make(cases[i].loss, cases[i].config, &args);
        const keel_spec p = { KEEL_FLOAT32, *cases[i].p }, t = { KEEL_FLOAT32, *cases[i].t };
        keel_along along = { 0 };
        int64_t elements = 0;
        const keel_status s = keel_along_check(l, args, &p, &t, &elements);
        if (s != cases[i].want) fail_msg("case %zu: %d, %s", i, s, keel_error());
        assert_int_equal(elements, cases[i].elements);
        if (s >= 0) {
            const keel_shape *moved = &along.prediction.shape;
            assert_int_equal(keel_along_loss(&along, l, args, &p, &t), KEEL_OK);
            assert_int_equal(moved->dim[moved->rank - 1], cases[i].last);
        }
        keel_fields_free(&l->type, args);
        keel_free(args);
    }
}

static void cross_entropies_take_logits_when_told(void **state)
{
    const char *names[] = { "bce", "cce", "sparse_categorical_crossentropy" };
    const char *of[] = { "sigmoid", "softmax", "softmax" };
    for (int i = 0; i < 3; i++) {
        void *args;
        const keel_loss *l = make(names[i], NULL, &args);
        assert_string_equal(l->logits_of->name, of[i]);
        assert_false(keel_loss_has_logits(l, args));
        keel_loss_use_logits(l, args);
        assert_true(keel_loss_has_logits(l, args));
        keel_fields_free(&l->type, args);
        keel_free(args);
    }
}

/* ---- CTC --------------------------------------------------------------------------------------
 */

enum { STEPS = 5, SYMBOLS = 3 };

static double ctc(const double *z, const double *symbols, double *grad)
{
    double scratch[256], sum[3] = { 0 };
    void *args;
    const keel_loss *l = make("CTC", NULL, &args);
    const keel_spec p = { KEEL_FLOAT64, KEEL_SHAPE(STEPS, CLASSES) };
    const keel_spec t = { KEEL_FLOAT64, KEEL_SHAPE(SYMBOLS) };
    assert_true(l->scratch(&p, &t) <= (int64_t)sizeof scratch);
    keel_loss_run(l, 1,
                  &(keel_loss_call){ .args = args,
                                     .prediction = &p,
                                     .target = &t,
                                     .rows = 1,
                                     .row = 7,
                                     .y_pred = z,
                                     .y_true = symbols,
                                     .scratch = scratch,
                                     .seed = 1,
                                     .grad = grad,
                                     .sum = sum });
    keel_fields_free(&l->type, args);
    keel_free(args);
    return sum[0];
}

static void the_gradient_of_ctc_is_central_differences(void **state)
{
    const double symbols[][SYMBOLS] = { { 1, 2, 3 }, { 2, 2, 0 }, { 3, 1, 1 }, { 1 }, { 0 } };
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols; k++) {
        double z[STEPS * CLASSES], grad[STEPS * CLASSES];
        for (int i = 0; i < STEPS * CLASSES; i++) z[i] = (i * 37 + 11) % 19 / 6.0 - 1.5;
        ctc(z, symbols[k], grad);
        for (int i = 0; i < STEPS * CLASSES; i++) {
            const double h = 1e-6, x = z[i];
            z[i] = x + h;
            const double up = ctc(z, symbols[k], NULL);
            z[i] = x - h;
            const double slope = (up - ctc(z, symbols[k], NULL)) / (2 * h);
            z[i] = x;
            if (!golden_near(grad[i], slope, 1e-7))
                fail_msg("symbols %zu: gradient %d is %.9g, the difference %.9g", k, i, grad[i],
                         slope);
        }
    }
}

static void symbols_that_cannot_be_spelled_are_named(void **state)
{
    const struct {
        double symbols[SYMBOLS];
        const char *says;
    } bad[] = { { { 1, 4, 0 }, "label 4 at row 7" },
                { { 1, -1, 2 }, "label -1 at row 7" },
                { { NAN, 1, 2 }, "row 7" },
                { { 1, 2, 1e30 }, "row 7" } };
    double z[STEPS * CLASSES] = { 0 }, grad[STEPS * CLASSES];
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ctc(z, bad[k].symbols, grad);
        assert_int_equal(keel_call_status_take(), KEEL_EDATA);
        if (!strstr(keel_error(), bad[k].says)) fail_msg("%s", keel_error());
    }
    /* three times the same symbol needs five steps, and there are so many; four need seven */
    assert_true(isfinite(ctc(z, (double[]){ 2, 2, 2 }, grad)));
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    void *args;
    const keel_loss *l = make("CTC", NULL, &args);
    const keel_spec p = { KEEL_FLOAT64, KEEL_SHAPE(2, CLASSES) }, t = { KEEL_INT32, KEEL_SHAPE(3) };
    double scratch[128], sum[3] = { 0 };
    keel_loss_run(l, 1,
                  &(keel_loss_call){ .args = args,
                                     .prediction = &p,
                                     .target = &t,
                                     .rows = 1,
                                     .row = 7,
                                     .y_pred = z,
                                     .y_true = (int32_t[]){ 1, 2, 3 },
                                     .scratch = scratch,
                                     .seed = 1,
                                     .sum = sum });
    assert_int_equal(keel_call_status_take(), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "3 symbols of row 7"));
    keel_fields_free(&l->type, args);
    keel_free(args);
}

static void an_axis_that_predictions_do_not_have_is_refused(void **state)
{
    const keel_spec p = { KEEL_FLOAT32, KEEL_SHAPE(4, 2) };
    const struct {
        const char *config;
        int64_t elements; /* 0: refused */
    } cases[] = { { "{}", 1 },
                  { "{\"axis\": [0, 1, 2]}", 1 },
                  { "{\"axis\": [1, 2]}", 1 },
                  { "{\"axis\": [0, -1]}", 1 },
                  { "{\"axis\": -1}", 4 },
                  { "{\"axis\": [1]}", 2 },
                  { "{\"axis\": [3]}", 0 },
                  { "{\"axis\": [-4]}", 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *args;
        const keel_loss *l = make("Dice", cases[i].config, &args);
        int64_t elements = 0;
        const keel_status s = keel_loss_check(l, args, &p, &p, &elements);
        assert_int_equal(s, cases[i].elements ? KEEL_OK : KEEL_EARG);
        if (s >= 0) assert_int_equal(elements, cases[i].elements);
        keel_fields_free(&l->type, args);
        keel_free(args);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients_are_those_of_keras),
        cmocka_unit_test(gradients_are_central_differences),
        cmocka_unit_test(the_cut_into_shards_changes_no_sum),
        cmocka_unit_test(rows_of_weight_zero_leave_no_trace),
        cmocka_unit_test(a_prediction_that_is_no_number_shows_in_the_loss),
        cmocka_unit_test(huge_logits_stay_finite),
        cmocka_unit_test(labels_outside_the_classes_are_named),
        cmocka_unit_test(labels_may_be_whole_numbers_of_any_type),
        cmocka_unit_test(shapes_and_arguments_that_do_not_fit_are_refused),
        cmocka_unit_test(an_axis_moves_to_the_end_or_is_refused),
        cmocka_unit_test(cross_entropies_take_logits_when_told),
        cmocka_unit_test(the_gradient_of_ctc_is_central_differences),
        cmocka_unit_test(symbols_that_cannot_be_spelled_are_named),
        cmocka_unit_test(an_axis_that_predictions_do_not_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
