/* Classes that a program registers: what is refused, the check of gradients, and training like that
 * of real Keras with the same classes in Python (golden/make_custom.py), on any devices. It is one
 * file of more than 600 lines because what is registered stays in the process: each test builds on
 * those before it. */
#include "data_files.h"
#include "base/memory.h"
#include "custom_classes.h"
#include "golden.h"
#include "must.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { ROWS = 22 };

/* As number() in make_custom.py. */
static keel_tensor numbers(keel_shape shape, int k)
{
    keel_tensor t;
    must(keel_tensor_create(&t, KEEL_FLOAT32, &shape));
    for (int64_t i = 0; i < elements(&shape); i++)
        ((float *)t.data)[i] = (float)((i * 37 + 29 * k + 11) % 101 - 50) / 32;
    return t;
}

static void fails(keel_status s, keel_status want, const char *text, const char *what)
{
    if (s != want || !strstr(keel_error(), text))
        fail_msg("%s: %s '%s', not %s '%s'", what, keel_status_name(s), s < 0 ? keel_error() : "",
                 keel_status_name(want), text);
}

/* ---- registering ----------------------------------------------------------------------------- */

static void a_file_with_unknown_classes_says_how_to_register_them(void **state)
{
    (void)state;
    keel_model *m;
    const keel_status s = keel_model_load(&m, golden_path("custom.keras"));
    fails(s, KEEL_EUNSUP, "no class 'tests>Bend' (see keel_register_layer)", "the golden file");
    if (!strstr(keel_error(), "loss 'tests>PowerLoss' (see keel_register_loss)") ||
        !strstr(keel_error(), "metric 'tests>Within' (see keel_register_metric)"))
        fail_msg("%s", keel_error());
}

static keel_status nothing(const keel_layer_rows *r)
{
    (void)r;
    return KEEL_OK;
}

static const keel_key twice[] = { KEEL_KEY(INT, bend_config, units, "1", ""),
                                  KEEL_KEY(INT, bend_config, units, "1", ""),
                                  { 0 } };
static const keel_key of_keras[] = { { .key = "trainable", .kind = KEEL_KEY_IS_BOOL }, { 0 } };
static const keel_key outside[] = { { .key = "far", .kind = KEEL_KEY_IS_INT, .offset = 12 },
                                    { 0 } };
static const keel_key no_json[] = { { .key = "mode", .kind = KEEL_KEY_IS_STR, .dflt = "tanh" },
                                    { 0 } };
static const keel_key no_number[] = { { .key = "n", .kind = KEEL_KEY_IS_INT, .dflt = "1.5" },
                                      { 0 } };
static const keel_key no_kind[] = { { .key = "n", .kind = (keel_key_kind)9 }, { 0 } };

static void what_is_no_class_is_refused(void **state)
{
    (void)state;
#define LAYER(...)                                                                                 \
    {                                                                                              \
        KEEL_CUSTOM_LAYER, .type = { __VA_ARGS__ }, .inputs = 1, .forward = nothing                \
    }
    static const struct {
        const char *what, *text;
        keel_custom_layer layer;
    } cases[] = {
        { "no size", "begin with KEEL_CUSTOM", { .inputs = 1, .forward = nothing } },
        { "no name", "must have a name", LAYER(0) },
        { "a name with a space", "that of a Python class", LAYER("my>Two Words") },
        { "an empty package", "that of a Python class", LAYER(">Gain") },
        { "a package with a slash", "that of a Python class", LAYER("a/b>Gain") },
        { "a number first", "that of a Python class", LAYER("1Gain") },
        { "two packages", "that of a Python class", LAYER("a>b>Gain") },
        { "a class of Keras", "Keras has this name itself", LAYER("Dense") },
        { "another name of such a class", "Keras has this name", LAYER("MaxPool2D") },
        { "a model", "Keras has this name itself", LAYER("Functional") },
        { "a key twice", "'units' is there already", LAYER("my>A", 99, twice) },
        { "a key of every layer", "'trainable' is there already", LAYER("my>A", 99, of_keras) },
        { "a key outside of the struct", "does not lie in a struct", LAYER("my>A", 16, outside) },
        { "a default that is no JSON", "is not JSON", LAYER("my>A", 16, no_json) },
        { "a default of another kind", "must be a whole number", LAYER("my>A", 16, no_number) },
        { "a key of no kind", "'n' is of no kind", LAYER("my>A", 16, no_kind) },
        { "no inputs", "0 inputs", { KEEL_CUSTOM_LAYER, { "my>A" }, .forward = nothing } },
        { "no forward", "no `forward`", { KEEL_CUSTOM_LAYER, { "my>A" }, .inputs = 1 } },
    };
#undef LAYER
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fails(keel_register_layer(&cases[i].layer), KEEL_EARG, cases[i].text, cases[i].what);
    fails(keel_register_loss(&(keel_custom_loss){ KEEL_CUSTOM_LOSS, { "my>A" } }), KEEL_EARG,
          "no `value`", "a loss of nothing");
    fails(keel_register_loss(&(keel_custom_loss){ KEEL_CUSTOM_LOSS, { "mse" } }), KEEL_EARG,
          "Keras has this name itself", "a loss of Keras");
    fails(keel_register_metric(&(keel_custom_metric){ KEEL_CUSTOM_METRIC, { "my>A" } }), KEEL_EARG,
          "no `add`", "a metric of nothing");
    fails(keel_register_metric(&(keel_custom_metric){
              KEEL_CUSTOM_METRIC, { "my>A" }, .add = within_add, .state = largest_state }),
          KEEL_EARG, "no `result`", "a metric without a result");
    assert_int_equal(keel_memory_live(), live);
}

static void a_name_is_registered_once(void **state)
{
    (void)state;
    must(register_golden_classes());
    fails(keel_register_layer(&bend), KEEL_EARG, "'tests>Bend' is registered already", "a layer");
    fails(keel_register_loss(&power_loss), KEEL_EARG, "is registered already", "a loss");
    fails(keel_register_metric(&largest), KEEL_EARG, "is registered already", "a metric");
}

/* ---- layers that are wrong ------------------------------------------------------------------- */

/* y = gain x, with something wrong. */
typedef enum fault {
    NO_FAULT,
    WRONG_SIGN,
    HALF_WEIGHT,
    OVERWRITES,
    SEES_ROWS,
    REMEMBERS,
    WRITES_NOT_ALL,
    FAILS,
    NOT_FINITE,
    NO_ROWS, /* shapes */
    NEGATIVE,
    OVERFLOWS,
    RANK_7,
    EMPTY_WEIGHT,
    NO_WEIGHT_NAME,
    TOO_MANY_WEIGHTS,
    NO_INITIALIZER,
    SAVES_LESS_THAN_NOTHING,
    REFUSES,
    FAULTS
} fault;

static const fault fault_numbers[FAULTS] = {
    NO_FAULT,         WRONG_SIGN,     HALF_WEIGHT,
    OVERWRITES,       SEES_ROWS,      REMEMBERS,
    WRITES_NOT_ALL,   FAILS,          NOT_FINITE,
    NO_ROWS,          NEGATIVE,       OVERFLOWS,
    RANK_7,           EMPTY_WEIGHT,   NO_WEIGHT_NAME,
    TOO_MANY_WEIGHTS, NO_INITIALIZER, SAVES_LESS_THAN_NOTHING,
    REFUSES,
};

static fault fault_of(void *user)
{
    return *(const fault *)user;
}

static bool gain_weight(const keel_layer_shapes *s, int i, keel_layer_weight *w)
{
    const fault f = fault_of(s->user);
    *w = (keel_layer_weight){ .name = f == NO_WEIGHT_NAME ? NULL : "gain",
                              .shape = { 1, { f == EMPTY_WEIGHT ? 0 : last_of(&s->in[0]) } },
                              .initializer = f == NO_INITIALIZER ? "nothing" : "ones" };
    return i == 0 || f == TOO_MANY_WEIGHTS;
}

static bool gain_output(const keel_layer_shapes *s, keel_shape *out)
{
    switch (fault_of(s->user)) {
    case NO_ROWS:
        out->dim[0] = 0;
        return true;
    case NEGATIVE:
        out->dim[0] = -2;
        return true;
    case OVERFLOWS:
        *out = (keel_shape){ 3, { INT64_MAX / 2, 4, 4 } };
        return true;
    case RANK_7:
        out->rank = 7;
        return true;
    default:
        return fault_of(s->user) != REFUSES;
    }
}

static int64_t gain_saved(const keel_layer_shapes *s)
{
    return fault_of(s->user) == SAVES_LESS_THAN_NOTHING ? -1 : 0;
}

static keel_status gain_forward(const keel_layer_rows *r)
{
    static float calls; /* what no layer may have */
    const fault f = fault_of(r->user);
    const int64_t n = elements(r->out_shape), c = last_of(r->out_shape);
    if (f == REMEMBERS) calls++;
    for (int64_t i = 0; i < r->rows * n - (f == WRITES_NOT_ALL); i++)
        r->out[i] = r->weight[0][i % c] * r->in[0][i] + (f == SEES_ROWS ? (float)r->rows : 0) +
                    (f == REMEMBERS ? calls : 0) + (f == NOT_FINITE ? INFINITY : 0);
    return f == FAILS ? KEEL_EDATA : KEEL_OK;
}

static keel_status gain_backward(const keel_layer_rows *r)
{
    const fault f = fault_of(r->user);
    const int64_t n = r->rows * elements(r->out_shape), c = last_of(r->out_shape);
    for (int64_t i = 0; i < n; i++) {
        const float g = r->out_grad[i], w = r->weight[0][i % c];
        if (r->in_grad[0] && f == OVERWRITES)
            r->in_grad[0][i] = g * w;
        else if (r->in_grad[0])
            r->in_grad[0][i] += f == WRONG_SIGN ? -g * w : g * w;
        if (r->weight_grad[0])
            r->weight_grad[0][i % c] += g * r->in[0][i] * (f == HALF_WEIGHT ? 0.5f : 1);
    }
    return KEEL_OK;
}

static const char *gain_name(fault f)
{
    static char name[32];
    snprintf(name, sizeof name, "tests>Gain%d", (int)f);
    return name;
}

static void register_gains(void)
{
    for (int f = 0; f < FAULTS; f++)
        must(keel_register_layer(&(keel_custom_layer){
            KEEL_CUSTOM_LAYER,
            { .name = gain_name((fault)f), .user = (void *)&fault_numbers[f] },
            .inputs = 1,
            .weight = gain_weight,
            .output = gain_output,
            .saved = gain_saved,
            .forward = gain_forward,
            .backward = gain_backward }));
}

static void a_wrong_gradient_is_found(void **state)
{
    (void)state;
    static const struct {
        fault fault;
        keel_status want;
        const char *text;
    } cases[] = {
        { WRONG_SIGN, KEEL_ENUMERIC, "input 0, row " },
        { HALF_WEIGHT, KEEL_ENUMERIC, "weight 'gain', element " },
        { OVERWRITES, KEEL_ENUMERIC, "input 0, row 0, element 0: backward must add" },
        { SEES_ROWS, KEEL_ENUMERIC, "in a call of all rows and in one of that row alone" },
        { REMEMBERS, KEEL_ENUMERIC, "from the same call twice" },
        { WRITES_NOT_ALL, KEEL_ENUMERIC, "output, element 11 is nan" },
        { NOT_FINITE, KEEL_ENUMERIC, "output, element 0 is inf" },
        { FAILS, KEEL_ECALLBACK, "forward of tests>Gain7 returned KEEL_EDATA" },
        { NO_ROWS, KEEL_ESHAPE, "its output has the shape (0,)" },
        { REFUSES, KEEL_ESHAPE, "takes no rows of (4,)" },
    };
    const keel_shape in = { 1, { 4 } };
    keel_gradient_report r;
    register_gains();
    const int64_t live = keel_memory_live();
    must(keel_check_gradients(gain_name(NO_FAULT), NULL, &in, 1, NULL, &r));
    assert_int_equal(r.compared, 3 * 4 + 4);
    assert_true(r.worst < 1e-4 && r.kinks == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fails(keel_check_gradients(gain_name(cases[i].fault), NULL, &in, 1, NULL, NULL),
              cases[i].want, cases[i].text, gain_name(cases[i].fault));
    fails(keel_check_gradients(gain_name(HALF_WEIGHT), NULL, &in, 1, NULL, &r), KEEL_ENUMERIC,
          "differ by 0.5", "half of a gradient");
    assert_true(fabs(r.differences - 2 * r.backward) < 1e-3 && fabs(r.worst - 0.5) < 1e-3);
    fails(keel_check_gradients("Dense", NULL, &in, 1, NULL, NULL), KEEL_EARG, "is registered",
          "a layer of Keras");
    fails(keel_check_gradients(gain_name(NO_FAULT), NULL, (keel_shape[2]){ in, in }, 2, NULL, NULL),
          KEEL_EARG, "takes 1 input, not 2", "two inputs");
    assert_int_equal(keel_memory_live(), live);
}

static keel_status relu_forward(const keel_layer_rows *r)
{
    for (int64_t i = 0; i < r->rows * elements(r->out_shape); i++)
        r->out[i] = r->in[0][i] > 0 ? r->in[0][i] : 0;
    return KEEL_OK;
}

static keel_status relu_backward(const keel_layer_rows *r)
{
    for (int64_t i = 0; r->in_grad[0] && i < r->rows * elements(r->out_shape); i++)
        r->in_grad[0][i] += r->in[0][i] > 0 ? r->out_grad[i] : 0;
    return KEEL_OK;
}

static void right_gradients_pass(void **state)
{
    (void)state;
    const keel_arg *const units = KEEL_ARGS(KEEL_ARG_INT("units", 5));
    const keel_arg *const linear =
        KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_STR("mode", "linear"),
                  KEEL_ARG_BOOL("use_bias", false), KEEL_ARG_FLOAT("slope", -3));
    const keel_shape one = { 1, { 7 } }, two[2] = { { 2, { 4, 3 } }, { 2, { 4, 3 } } };
    keel_gradient_report r;
    must(keel_register_layer(&(keel_custom_layer){ KEEL_CUSTOM_LAYER,
                                                   { "tests>Rectify" },
                                                   .inputs = 1,
                                                   .forward = relu_forward,
                                                   .backward = relu_backward }));
    must(keel_check_gradients("tests>Bend", units, &one, 1, NULL, &r));
    must(keel_check_gradients("tests>Bend", units, two, 1, NULL, NULL));
    must(keel_check_gradients("tests>Bend", linear, &one, 1, NULL, NULL));
    must(keel_check_gradients("tests>Gate", NULL, two, 2, NULL, NULL));
    /* of many elements some lie at the kink */
    must(keel_check_gradients("tests>Rectify", NULL, &(keel_shape){ 1, { 400 } }, 1,
                              &(keel_gradient_options){ KEEL_GRADIENT_OPTIONS, .elements = 1200 },
                              &r));
    assert_true(r.kinks > 0 && r.compared + r.kinks == 1200);
    fails(keel_check_gradients("tests>Bend", NULL, &one, 1, NULL, NULL), KEEL_EARG,
          "units must be given", "no units");
}

/* ---- models that are refused ----------------------------------------------------------------- */

/* The status of x -> layer, and of compiling and one epoch after it. */
static keel_status build(keel_model **out, keel_dtype dtype, const char *layer,
                         const keel_arg *args)
{
    keel_model *m;
    must(keel_model_create(&m, "m", dtype, 1));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 4))));
    keel_status s = keel_model_add(m, layer, args);
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

static keel_status train(keel_model *m, const char *loss, const char *metric, float first)
{
    keel_tensor x = numbers((keel_shape){ 2, { 9, 4 } }, 0);
    keel_tensor y = numbers((keel_shape){ 2, { 9, 4 } }, 1);
    keel_dataset *d;
    keel_strategy *st;
    if (strcmp(loss, "mse")) y.shape.dim[1] = 1; /* labels */
    for (int i = 0; y.shape.dim[1] == 1 && i < 9; i++) ((float *)y.data)[i] = (float)(i % 4);
    ((float *)y.data)[0] = first;
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                                .loss = { { loss } }, .metrics = { { metric } } }));
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    must(keel_strategy_create(&st, "cpu:0-1"));
    const keel_status s = keel_fit(
        m, st, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4, .no_shuffle = true },
        NULL);
    keel_strategy_destroy(st);
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    return s;
}

static void what_does_not_fit_is_refused_before_a_step(void **state)
{
    (void)state;
    static const struct {
        fault fault;
        keel_status want;
        const char *text;
    } cases[] = {
        { NO_ROWS, KEEL_ESHAPE, "its output has the shape (0,), with no elements" },
        { NEGATIVE, KEEL_ESHAPE, "its output: shape (-2,): dimension 0 is negative" },
        { OVERFLOWS, KEEL_ESHAPE, "is larger than the address space" },
        { RANK_7, KEEL_ESHAPE, "a shape of rank 7" },
        { EMPTY_WEIGHT, KEEL_ESHAPE, "weight 'gain' has the shape (0,), with no elements" },
        { NO_WEIGHT_NAME, KEEL_EARG, "weight 0 must have a name" },
        { TOO_MANY_WEIGHTS, KEEL_EUNSUP, "more than 8 weights" },
        { NO_INITIALIZER, KEEL_EUNSUP, "weight 'gain': initializer: 'nothing'" },
        { SAVES_LESS_THAN_NOTHING, KEEL_ESHAPE, "it saves -1 numbers" },
        { REFUSES, KEEL_ESHAPE, "tests>Gain18 takes no rows of (4,)" },
    };
    keel_model *m;
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fails(build(&m, KEEL_FLOAT32, gain_name(cases[i].fault), NULL), cases[i].want,
              cases[i].text, gain_name(cases[i].fault));
    fails(build(&m, KEEL_FLOAT32, "tests>Bend", KEEL_ARGS(KEEL_ARG_INT("unit", 4))), KEEL_EARG,
          "there is no argument 'unit' (did you mean 'units'?)", "an unknown key");
    fails(build(&m, KEEL_FLOAT32, "tests>Bend", KEEL_ARGS(KEEL_ARG_INT("units", 0))), KEEL_EARG,
          "units must be above 0", "a value that the class refuses");
    fails(build(&m, KEEL_FLOAT32, "tests>Gate", NULL), KEEL_EARG, "takes at least 2 inputs, not 1",
          "one input of two");
    fails(build(&m, KEEL_FLOAT64, gain_name(NO_FAULT), NULL), KEEL_EUNSUP,
          "computes in float32, not in float64", "a model in float64");
    assert_int_equal(keel_memory_live(), live);
}

static void a_call_that_fails_ends_the_step_and_names_the_layer(void **state)
{
    (void)state;
    keel_model *m;
    must(build(&m, KEEL_FLOAT32, gain_name(FAILS), NULL));
    fails(train(m, "mse", NULL, 0), KEEL_ECALLBACK,
          "layer 'gain7': forward of tests>Gain7 returned KEEL_EDATA", "a failing forward");
    keel_model_destroy(m);
    must(build(&m, KEEL_FLOAT32, gain_name(NOT_FINITE), NULL));
    fails(train(m, "mse", NULL, 0), KEEL_ENUMERIC, "", "an output that is not finite");
    keel_model_destroy(m);
}

static void a_layer_without_backward_predicts_only(void **state)
{
    (void)state;
    keel_model *m;
    keel_tensor y, x = numbers((keel_shape){ 2, { 5, 4 } }, 0);
    keel_dataset *d;
    keel_strategy *st;
    must(keel_register_layer(&(keel_custom_layer){
        KEEL_CUSTOM_LAYER, { "Forward" }, .inputs = 1, .forward = relu_forward }));
    must(build(&m, KEEL_FLOAT32, "Forward", NULL));
    fails(train(m, "mse", NULL, 0), KEEL_EUNSUP, "Forward was registered without `backward`",
          "training");
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    must(keel_strategy_create(&st, "cpu:0-1"));
    must(keel_predict(m, st, d, NULL, &y));
    for (int i = 0; i < 20; i++)
        assert_true(((float *)y.data)[i] == fmaxf(((float *)x.data)[i], 0));
    keel_tensor_free(&y);
    keel_tensor_free(&x);
    keel_dataset_destroy(d);
    keel_strategy_destroy(st);
    keel_model_destroy(m);
}

/* -log of the prediction of the label, which is at least 1e-3. */
static double label_value(const keel_loss_element *e)
{
    const float p = fmaxf(e->y_pred[e->label], 1e-3f);
    for (int64_t j = 0; e->grad && j < e->n; j++) e->grad[j] = j == e->label ? -1 / p : 0;
    return -log((double)p);
}

static void a_label_that_is_no_class_fails_the_step(void **state)
{
    (void)state;
    keel_model *m;
    must(keel_register_loss(&(keel_custom_loss){
        KEEL_CUSTOM_LOSS, { "tests>Labels" }, .labels = true, .value = label_value }));
    must(build(&m, KEEL_FLOAT32, gain_name(NO_FAULT), NULL));
    fails(train(m, "tests>Labels", NULL, 4), KEEL_EDATA, "label 4 at row 0", "label 4 of 4");
    fails(train(m, "tests>Labels", NULL, NAN), KEEL_EDATA, "label nan at row 0", "label NAN");
    keel_model_destroy(m);
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct run {
    keel_tensor out;
    double history[8]; /* of two epochs: loss and metrics */
    int count;
} run;

static run run_golden(keel_strategy *s, keel_model *m, const json_t *before)
{
    run r = { 0 };
    keel_history h;
    keel_tensor x = numbers((keel_shape){ 3, { ROWS, 4, 3 } }, 0);
    keel_tensor y = numbers((keel_shape){ 2, { ROWS, 2 } }, 1);
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    for (int trained = before ? 0 : 1; trained < 2; trained++) {
        if (trained)
            must(keel_fit(m, s, d,
                          &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 2,
                                               .no_shuffle = true },
                          &h));
        must(keel_predict(m, s, d, NULL, &r.out));
        if (trained) break;
        for (size_t i = 0; i < json_array_size(before); i++)
            if (!golden_near((double)((float *)r.out.data)[i],
                             json_number_value(json_array_get(before, i)), 1e-6))
                fail_msg("number %zu before training: %.9g", i, (double)((float *)r.out.data)[i]);
        keel_tensor_free(&r.out);
    }
    r.count = h.count;
    memcpy(r.history, h.value, (size_t)(2 * h.count) * sizeof *r.history);
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    return r;
}

static void training_is_that_of_keras(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-7" };
    static const char *const names[] = { "loss", "largest", "within" };
    json_t *want = golden_load("custom.json");
    const json_t *after = json_object_get(want, "after"), *list;
    const int64_t live = keel_memory_live();
    for (int k = 0; k < 4; k++) {
        keel_model *m;
        keel_strategy *s;
        must(keel_strategy_create(&s, devices[k]));
        must(keel_model_load(&m, golden_path("custom.keras")));
        run r = run_golden(s, m, json_object_get(want, "before"));
        assert_int_equal(r.count, 3);
        for (int i = 0; i < 6; i++) {
            list = json_object_get(json_object_get(want, "history"), names[i % 3]);
            const double keras = json_number_value(json_array_get(list, (size_t)(i / 3)));
            if (!golden_near(r.history[i], keras, 1e-5))
                fail_msg("%s: %s of epoch %d is %.9g, in Keras %.9g", devices[k], names[i % 3],
                         i / 3, r.history[i], keras);
        }
        for (size_t i = 0; i < json_array_size(after); i++)
            if (!golden_near((double)((float *)r.out.data)[i],
                             json_number_value(json_array_get(after, i)), 1e-5))
                fail_msg("%s: number %zu is %.9g, in Keras %.9g", devices[k], i,
                         (double)((float *)r.out.data)[i],
                         json_number_value(json_array_get(after, i)));
        keel_tensor_free(&r.out);
        keel_model_destroy(m);
        keel_strategy_destroy(s);
    }
    json_decref(want);
    assert_int_equal(keel_memory_live(), live);
}

static void reproducible_training_has_the_same_bits_on_1_to_8_devices(void **state)
{
    (void)state;
    run first = { 0 };
    for (int lanes = 1; lanes <= 8; lanes++) {
        char devices[16];
        keel_model *m;
        keel_strategy *s;
        snprintf(devices, sizeof devices, "cpu:0-%d", lanes - 1);
        must(keel_strategy_create(&s, devices));
        must(keel_strategy_reproducible(s, KEEL_SHARDS));
        must(keel_model_load(&m, golden_path("custom.keras")));
        run r = run_golden(s, m, NULL);
        if (lanes == 1) {
            first = r;
        } else {
            assert_memory_equal(r.out.data, first.out.data, ROWS * 2 * sizeof(float));
            assert_memory_equal(r.history, first.history, sizeof r.history);
            keel_tensor_free(&r.out);
        }
        keel_model_destroy(m);
        keel_strategy_destroy(s);
    }
    keel_tensor_free(&first.out);
}

/* What was saved goes on as what stayed in memory. */
static void goes_on(keel_model *m)
{
    keel_model *again;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-1"));
    run r = run_golden(s, m, NULL);
    keel_tensor_free(&r.out);
    must(keel_model_save(m, files_path("c.keras")));
    must(keel_model_load(&again, files_path("c.keras")));
    for (int k = 0; k < keel_model_weight_count(m); k++)
        assert_string_equal(keel_model_weight_name(again, k), keel_model_weight_name(m, k));
    run a = run_golden(s, m, NULL), b = run_golden(s, again, NULL);
    assert_memory_equal(a.out.data, b.out.data, ROWS * 2 * sizeof(float));
    keel_tensor_free(&a.out);
    keel_tensor_free(&b.out);
    keel_model_destroy(again);
    keel_strategy_destroy(s);
}

static void a_model_that_was_loaded_is_saved_and_loaded_again(void **state)
{
    (void)state;
    keel_model *m;
    files_begin();
    must(keel_model_load(&m, golden_path("custom.keras")));
    goes_on(m);
    keel_model_destroy(m);
    files_end();
}

static void a_model_that_c_built_is_saved_and_loaded_again(void **state)
{
    (void)state;
    keel_model *m;
    keel_symbol x, ab[2], y;
    files_begin();
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_input(m, KEEL_DIMS(4, 3), NULL, &x));
    ab[0] = must_call(m, "tests>Bend", KEEL_ARGS(KEEL_ARG_INT("units", 5)), x);
    ab[1] = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 5)), x);
    must(keel_model_call(m, "tests>Gate", NULL, ab, 2, &y));
    y = must_call(m, "tests>Bend",
                  KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_INTS("axes", 1, 2),
                            KEEL_ARG_BOOL("use_bias", false), KEEL_ARG_STR("mode", "linear")),
                  y);
    y = must_call(m, "Flatten", NULL, y);
    y = must_call(m, "tests>Bend", KEEL_ARGS(KEEL_ARG_INT("units", 2)), y);
    must(keel_model_outputs(m, &y, 1));
    must(keel_model_compile(
        m,
        &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                         .loss = { { "tests>PowerLoss", KEEL_ARGS(KEEL_ARG_FLOAT("power", 3)) } },
                         .metrics = { { "tests>Largest" }, { "tests>Within" } } }));
    goes_on(m);
    keel_model_destroy(m);
    files_end();
}

static void under_a_mixed_policy_values_are_widened(void **state)
{
    (void)state;
    keel_model *m;
    keel_strategy *s;
    json_t *want = golden_load("custom.json");
    const json_t *after = json_object_get(want, "after");
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_model_load(&m, golden_path("custom.keras")));
    must(keel_model_set_dtype_policy(m, "mixed_bfloat16"));
    run r = run_golden(s, m, NULL);
    for (size_t i = 0; i < json_array_size(after); i++)
        if (!golden_near((double)((float *)r.out.data)[i],
                         json_number_value(json_array_get(after, i)), 0.05))
            fail_msg("number %zu is %.9g", i, (double)((float *)r.out.data)[i]);
    keel_tensor_free(&r.out);
    keel_model_destroy(m);
    keel_strategy_destroy(s);
    json_decref(want);
}

/* ---- like classes of Keras ------------------------------------------------------------------- */

/* A dense layer, shared by two calls and in a TimeDistributed, as one of Keras's or as a Bend. */
static keel_model *dense_model(bool own, const keel_compile *c)
{
    const keel_arg *const args =
        own ? KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_STR("mode", "linear"),
                        KEEL_ARG_BOOL("use_bias", false), KEEL_ARG_STR("name", "d"))
            : KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_BOOL("use_bias", false),
                        KEEL_ARG_STR("name", "d"));
    const char *const inner =
        own ? "{\"class_name\": \"Bend\", \"registered_name\": \"tests>Bend\", \"config\": "
              "{\"name\": \"inner\", \"units\": 2, \"mode\": \"linear\"}}"
            : "{\"class_name\": \"Dense\", \"config\": {\"name\": \"inner\", \"units\": 2}}";
    keel_model *m;
    keel_symbol x, y;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_input(m, KEEL_DIMS(4, 3), NULL, &x));
    y = must_call(m, own ? "tests>Bend" : "Dense", args, x);
    must(keel_model_call_again(m, "d", &y, 1, &y));
    y = must_call(m, "TimeDistributed", KEEL_ARGS(KEEL_ARG_JSON("layer", inner)), y);
    y = must_call(m, "GlobalAveragePooling1D", NULL, y);
    must(keel_model_outputs(m, &y, 1));
    for (int k = 0; k < keel_model_weight_count(m); k++) {
        const char *name = keel_model_weight_name(m, k), *end = strrchr(name, '/') + 1;
        keel_tensor w;
        must(keel_model_get_weight(m, name, &w));
        for (int64_t i = 0; i < elements(&w.shape); i++)
            ((float *)w.data)[i] = strcmp(end, "kernel") ? 0 : (float)(i * 7 % 5 - 2) / 4;
        must(keel_model_set_weight(m, name, &w));
        keel_tensor_free(&w);
    }
    must(keel_model_compile(m, c));
    return m;
}

/* Two epochs, in which some rows have weights of 0; the logs of the last one. */
static void train_weighted(keel_model *m, const char *devices, double *last, int n)
{
    keel_tensor x = numbers((keel_shape){ 3, { ROWS, 4, 3 } }, 0);
    keel_tensor y = numbers((keel_shape){ 2, { ROWS, 2 } }, 1);
    keel_tensor w = numbers((keel_shape){ 1, { ROWS } }, 2);
    keel_dataset *d;
    keel_strategy *s;
    keel_history h;
    for (int i = 0; i < ROWS; i++)
        ((float *)w.data)[i] = i % 5 == 0 ? 0 : fabsf(((float *)w.data)[i]);
    must(keel_dataset_from_arrays(&d, &x, &y, &w));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(
        m, s, d,
        &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 2, .no_shuffle = true },
        &h));
    assert_int_equal(h.count, n);
    memcpy(last, h.value + n, (size_t)n * sizeof *last);
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    keel_tensor_free(&w);
}

static void weights_are_near(const keel_model *a, const keel_model *b)
{
    for (int k = 0; k < keel_model_weight_count(a); k++) {
        const char *name = keel_model_weight_name(a, k);
        keel_tensor x, y;
        must(keel_model_get_weight(a, name, &x));
        must(keel_model_get_weight(b, name, &y));
        for (int64_t i = 0; i < elements(&x.shape); i++)
            if (!golden_near((double)((float *)y.data)[i], (double)((float *)x.data)[i], 1e-6))
                fail_msg("%s, number %d: %.9g, of Keras's layer %.9g", name, (int)i,
                         (double)((float *)y.data)[i], (double)((float *)x.data)[i]);
        keel_tensor_free(&x);
        keel_tensor_free(&y);
    }
}

/* A mean with a state of its own. */
static void mean_add(const keel_metric_element *e, double *state)
{
    double sum = 0;
    for (int64_t j = 0; j < e->n; j++) sum += (double)fabsf(e->y_pred[j] - e->y_true[j]);
    state[0] += e->weight * sum / (double)e->n;
    state[1] += e->weight;
}

static void classes_train_as_the_same_ones_of_keras(void **state)
{
    (void)state;
    static const char *const reductions[] = { "sum_over_batch_size", "sum",
                                              "mean_with_sample_weight" };
    static const char *const devices[] = { "cpu:0", "cpu:0-2" };
    must(keel_register_metric(
        &(keel_custom_metric){ KEEL_CUSTOM_METRIC, { "tests>MeanError" }, .add = mean_add }));
    const int64_t live = keel_memory_live();
    for (int r = 0; r < 3; r++)
        for (int k = 0; k < 2; k++) {
            const keel_arg *const args = KEEL_ARGS(KEEL_ARG_STR("reduction", reductions[r]));
            const char *const rate = r == 1 ? "0.005" : "0.05";
            const keel_named sgd = { "sgd", KEEL_ARGS(KEEL_ARG_JSON("learning_rate", rate)) };
            keel_model *keras =
                dense_model(false, &(keel_compile){ KEEL_COMPILE, .optimizer = sgd,
                                                    .loss = { { "MeanSquaredError", args } },
                                                    .metrics = { { "mae" } },
                                                    .weighted_metrics = { { "mae" } } });
            keel_model *own =
                dense_model(true, &(keel_compile){ KEEL_COMPILE, .optimizer = sgd,
                                                   .loss = { { "tests>PowerLoss", args } },
                                                   .metrics = { { "tests>MeanError" } },
                                                   .weighted_metrics = { { "tests>MeanError" } } });
            double want[3], got[3];
            train_weighted(keras, devices[k], want, 3);
            train_weighted(own, devices[k], got, 3);
            for (int i = 0; i < 3; i++)
                if (!golden_near(got[i], want[i], 1e-6))
                    fail_msg("%s, %s, log %d: %.9g and %.9g", reductions[r], devices[k], i, got[i],
                             want[i]);
            weights_are_near(keras, own);
            keel_model_destroy(keras);
            keel_model_destroy(own);
        }
    assert_int_equal(keel_memory_live(), live);
}

static void labels_train_as_those_of_keras(void **state)
{
    (void)state;
    static const char *const losses[] = { "sparse_categorical_crossentropy", "tests>Labels" };
    keel_model *m[2];
    for (int k = 0; k < 2; k++) {
        must(keel_model_create(&m[k], "m", KEEL_FLOAT32, 1));
        must(keel_model_add(m[k], "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 4))));
        must(keel_model_add(
            m[k], "Dense",
            KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_STR("activation", "softmax"))));
        must(train(m[k], losses[k], "sparse_categorical_accuracy", 0));
    }
    weights_are_near(m[0], m[1]);
    keel_model_destroy(m[0]);
    keel_model_destroy(m[1]);
}

/* Three labels a row, or three times four numbers. A row of weight 0 has labels that are no class:
 * it is left out. */
static void steps_train_as_those_of_keras(void **state)
{
    (void)state;
    static const char *const losses[] = { "sparse_categorical_crossentropy", "tests>Labels",
                                          "MeanSquaredError", "tests>PowerLoss" };
    keel_model *m[4];
    for (int k = 0; k < 4; k++) {
        keel_tensor x = numbers((keel_shape){ 3, { 9, 3, 4 } }, 0);
        keel_tensor y = numbers((keel_shape){ k < 2 ? 2 : 3, { 9, 3, 4 } }, 1);
        keel_tensor w = numbers((keel_shape){ 1, { 9 } }, 2);
        keel_dataset *d;
        keel_strategy *st;
        for (int i = 0; i < 27 && k < 2; i++)
            ((float *)y.data)[i] = (float)(i / 3 == 5 ? -1 : i * 7 % 4);
        for (int i = 0; i < 9; i++) ((float *)w.data)[i] = i == 5 ? 0 : 1 + (float)i / 8;
        must(keel_model_create(&m[k], "m", KEEL_FLOAT32, 1));
        must(keel_model_add(m[k], "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 3, 4))));
        must(keel_model_add(
            m[k], "Dense",
            KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_STR("activation", "softmax"))));
        must(keel_model_compile(m[k], &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                                       .loss = { { losses[k] } } }));
        must(keel_dataset_from_arrays(&d, &x, &y, &w));
        must(keel_strategy_create(&st, "cpu:0-1"));
        must(keel_fit(m[k], st, d,
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4, .no_shuffle = true },
                      NULL));
        keel_strategy_destroy(st);
        keel_dataset_destroy(d);
        keel_tensor_free(&x);
        keel_tensor_free(&y);
        keel_tensor_free(&w);
    }
    weights_are_near(m[0], m[1]);
    weights_are_near(m[2], m[3]);
    for (int k = 0; k < 4; k++) keel_model_destroy(m[k]);
}

/* With a mean over open dims a model has a program for each length. */
static void open_dims_are_numbers_when_rows_arrive(void **state)
{
    (void)state;
    float first[2] = { 0 };
    for (int open = 0; open < 2; open++) {
        keel_model *m;
        keel_strategy *s;
        keel_dataset *d;
        keel_tensor out, x = numbers((keel_shape){ 3, { 5, 7, 3 } }, 0);
        const keel_shape shape = { 2, { open ? KEEL_DIM_OPEN : 7, 3 } };
        keel_symbol y;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
        must(keel_model_input(m, &shape, NULL, &y));
        y = must_call(m, "tests>Bend", KEEL_ARGS(KEEL_ARG_INT("units", 2)), y);
        y = must_call(m, "GlobalAveragePooling1D", NULL, y);
        must(keel_model_outputs(m, &y, 1));
        must(keel_strategy_create(&s, "cpu:0-1"));
        must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
        must(keel_predict(m, s, d, NULL, &out));
        if (!open) memcpy(first, out.data, sizeof first);
        assert_memory_equal(first, out.data, sizeof first);
        keel_tensor_free(&out);
        keel_tensor_free(&x);
        keel_dataset_destroy(d);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static keel_status register_again(void)
{
    static int number;
    char name[32];
    keel_custom_layer layer = bend;
    keel_custom_loss loss = power_loss;
    keel_custom_metric metric = within;
    snprintf(name, sizeof name, "tests>Again%d", number++);
    layer.type.name = loss.type.name = metric.type.name = name;
    const int64_t live = keel_memory_live();
    keel_status s = keel_register_layer(&layer);
    if (s >= 0) s = keel_register_loss(&loss);
    if (s >= 0) s = keel_register_metric(&metric);
    /* name, type, keys, class, entry: what is registered stays */
    assert_int_equal((keel_memory_live() - live) % 5, 0);
    return s;
}

static keel_status check_again(void)
{
    return keel_check_gradients("tests>Bend", KEEL_ARGS(KEEL_ARG_INT("units", 2)), KEEL_DIMS(3), 1,
                                NULL, NULL);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    static keel_status (*const tried[])(void) = { register_again, check_again };
    for (int k = 0; k < 2; k++)
        for (int at = 0;; at++) {
            const int64_t live = keel_memory_live();
            keel_memory_fail_at(at);
            const keel_status s = tried[k]();
            keel_memory_fail_at(-1);
            if (s >= 0) {
                assert_true(at > 5);
                break;
            }
            if (s != KEEL_ENOMEM || at > 200) fail_msg("%d, %d: %s", k, at, keel_error());
            if (k == 1) assert_int_equal(keel_memory_live(), live);
        }
}

int main(void)
{
    /* in this order: what is registered stays */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_with_unknown_classes_says_how_to_register_them),
        cmocka_unit_test(what_is_no_class_is_refused),
        cmocka_unit_test(a_name_is_registered_once),
        cmocka_unit_test(a_wrong_gradient_is_found),
        cmocka_unit_test(right_gradients_pass),
        cmocka_unit_test(what_does_not_fit_is_refused_before_a_step),
        cmocka_unit_test(a_call_that_fails_ends_the_step_and_names_the_layer),
        cmocka_unit_test(a_layer_without_backward_predicts_only),
        cmocka_unit_test(a_label_that_is_no_class_fails_the_step),
        cmocka_unit_test(training_is_that_of_keras),
        cmocka_unit_test(reproducible_training_has_the_same_bits_on_1_to_8_devices),
        cmocka_unit_test(a_model_that_was_loaded_is_saved_and_loaded_again),
        cmocka_unit_test(a_model_that_c_built_is_saved_and_loaded_again),
        cmocka_unit_test(under_a_mixed_policy_values_are_widened),
        cmocka_unit_test(classes_train_as_the_same_ones_of_keras),
        cmocka_unit_test(labels_train_as_those_of_keras),
        cmocka_unit_test(steps_train_as_those_of_keras),
        cmocka_unit_test(open_dims_are_numbers_when_rows_arrive),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
