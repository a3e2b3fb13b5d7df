/* A layer, a loss and a metric of your own. A net of radial bases learns the 0.9 quantile of noisy
 * numbers: a bound that nine of ten stay below. In Keras the three would be classes with the
 * decorator @keras.saving.register_keras_serializable("my"); the file that is saved here loads
 * there, and one that was saved there loads here.
 *
 * As a shared library the same file is a plug-in of the command, with which it evaluates, predicts
 * and trains the model:
 *
 *     cc -shared -fPIC train_custom.c -o my.so -lkeel -lm
 *     keel evaluate quantile.keras --plugin my.so --data rows.npz */
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 1024 };

/* ---- the layer: y[k] = exp(-sharpness |x - center[k]|^2), x is [n] --------------------------- */

typedef struct bases_config {
    int64_t units;
    double sharpness;
} bases_config;

static const keel_key bases_keys[] = {
    KEEL_KEY(INT, bases_config, units, NULL, "how many centers"),
    KEEL_KEY(FLOAT, bases_config, sharpness, "1.0", "of a base around its center"),
    { 0 },
};

static const char *bases_refuse(const void *config)
{
    return ((const bases_config *)config)->units < 1 ? "units must be above 0" : NULL;
}

static bool bases_output(const keel_layer_shapes *s, keel_shape *out)
{
    if (s->in[0].rank != 1) return false;
    out->dim[0] = ((const bases_config *)s->config)->units;
    return true;
}

static bool bases_weight(const keel_layer_shapes *s, int i, keel_layer_weight *out)
{
    const bases_config *c = s->config;
    if (i > 0) return false;
    *out = (keel_layer_weight){
        .name = "centers",
        .shape = { 2, { c->units, s->in[0].dim[0] } },
        .initializer = "{\"class_name\": \"RandomUniform\", \"config\": {\"minval\": -1, "
                       "\"maxval\": 1}}",
    };
    return true;
}

static keel_status bases_forward(const keel_layer_rows *r)
{
    const bases_config *c = r->config;
    const int64_t n = r->in_shape[0].dim[0];
    const float *centers = r->weight[0];
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t k = 0; k < c->units; k++) {
            float squares = 0;
            for (int64_t j = 0; j < n; j++) {
                const float off = r->in[0][i * n + j] - centers[k * n + j];
                squares += off * off;
            }
            r->out[i * c->units + k] = expf(-(float)c->sharpness * squares);
            if (r->saved) r->saved[i * c->units + k] = r->out[i * c->units + k];
        }
    return KEEL_OK;
}

/* dy[k] / dx[j] = -2 sharpness (x[j] - center[k][j]) y[k], and the opposite for the center. */
static keel_status bases_backward(const keel_layer_rows *r)
{
    const bases_config *c = r->config;
    const int64_t n = r->in_shape[0].dim[0];
    const float *centers = r->weight[0];
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t k = 0; k < c->units; k++) {
            const int64_t at = i * c->units + k;
            const float slope = -2 * (float)c->sharpness * r->saved[at] * r->out_grad[at];
            for (int64_t j = 0; j < n; j++) {
                const float off = r->in[0][i * n + j] - centers[k * n + j];
                if (r->in_grad[0]) r->in_grad[0][i * n + j] += slope * off;
                if (r->weight_grad[0]) r->weight_grad[0][k * n + j] -= slope * off;
            }
        }
    return KEEL_OK;
}

static int64_t bases_saved(const keel_layer_shapes *s)
{
    return ((const bases_config *)s->config)->units;
}

static const keel_custom_layer bases = {
    KEEL_CUSTOM_LAYER,
    .type = { .name = "my>RadialBases",
              .config_size = sizeof(bases_config),
              .keys = bases_keys,
              .refuse = bases_refuse },
    .inputs = 1,
    .weight = bases_weight,
    .output = bases_output,
    .saved = bases_saved,
    .forward = bases_forward,
    .backward = bases_backward,
};

/* ---- the loss: an error below the target costs `quantile`, one above it 1 - quantile --------- */

typedef struct quantile_config {
    double quantile;
} quantile_config;

static const keel_key quantile_keys[] = {
    KEEL_KEY(FLOAT, quantile_config, quantile, "0.5", "part of the targets that stay below"),
    { 0 },
};

static double quantile_value(const keel_loss_element *e)
{
    const double q = ((const quantile_config *)e->config)->quantile;
    double sum = 0;
    for (int64_t j = 0; j < e->n; j++) {
        const double below = (double)e->y_true[j] - (double)e->y_pred[j];
        sum += below > 0 ? q * below : (q - 1) * below;
        if (e->grad) e->grad[j] = (float)((below > 0 ? -q : 1 - q) / (double)e->n);
    }
    return sum / (double)e->n;
}

static const keel_custom_loss quantile_loss = {
    KEEL_CUSTOM_LOSS,
    .type = { .name = "my>QuantileLoss",
              .config_size = sizeof(quantile_config),
              .keys = quantile_keys },
    .value = quantile_value,
};

/* ---- the metric: the share of targets below the prediction ----------------------------------- */

static void covered_add(const keel_metric_element *e, double *state)
{
    for (int64_t j = 0; j < e->n; j++) {
        state[0] += e->weight * (e->y_true[j] <= e->y_pred[j]);
        state[1] += e->weight;
    }
}

/* Two sums, whose quotient is the result. */
static const keel_custom_metric covered = {
    KEEL_CUSTOM_METRIC,
    .type = { .name = "my>Covered" },
    .add = covered_add,
};

/* ---- the program ----------------------------------------------------------------------------- */

static float x[ROWS][2], y[ROWS][1];

static void make_rows(void)
{
    uint32_t seed = 1;
    for (int i = 0; i < ROWS; i++) {
        float noise;
        x[i][0] = (float)(i * 37 % 101) / 50 - 1;
        x[i][1] = (float)(i * 61 % 97) / 48 - 1;
        seed = seed * 1664525u + 1013904223u;
        noise = (float)(seed >> 8) / (1 << 24);
        y[i][0] = sinf(3 * x[i][0]) * x[i][1] + noise;
    }
}

/* The command calls this one, too. */
keel_status keel_plugin(void)
{
    keel_status s = keel_register_layer(&bases);
    if (s >= 0) s = keel_register_loss(&quantile_loss);
    return s >= 0 ? keel_register_metric(&covered) : s;
}

static keel_status check(void)
{
    keel_gradient_report report;
    const keel_status s = keel_check_gradients(
        "my>RadialBases", KEEL_ARGS(KEEL_ARG_INT("units", 5)), KEEL_DIMS(3), 1, NULL, &report);
    if (s >= 0)
        printf("gradients: %d compared, the largest difference is %.1g of the largest\n",
               (int)report.compared, report.worst);
    return s;
}

static keel_status build(keel_model **out)
{
    keel_model *m;
    keel_status s = keel_model_create(&m, "quantile", KEEL_FLOAT32, 1);
    if (s < 0) return s;
    s = keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 2)));
    if (s >= 0)
        s = keel_model_add(m, "my>RadialBases",
                           KEEL_ARGS(KEEL_ARG_INT("units", 24), KEEL_ARG_FLOAT("sharpness", 2)));
    if (s >= 0) s = keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)));
    if (s >= 0)
        s = keel_model_compile(
            m, &(keel_compile){
                   KEEL_COMPILE,
                   .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01)) },
                   .loss = { { "my>QuantileLoss", KEEL_ARGS(KEEL_ARG_FLOAT("quantile", 0.9)) } },
                   .metrics = { { "my>Covered" } } });
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

int main(void)
{
    keel_model *m = NULL, *again = NULL;
    keel_dataset *data = NULL;
    keel_strategy *devices = NULL;
    keel_logs logs;
    const keel_tensor rows = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, x };
    const keel_tensor targets = { KEEL_FLOAT32, { 2, { ROWS, 1 } }, y };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 60, .epochs = 60 };
    make_rows();
    keel_status s = keel_plugin();
    if (s >= 0) s = check();
    if (s >= 0) s = build(&m);
    if (s >= 0) s = keel_dataset_from_arrays(&data, &rows, &targets, NULL);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0) s = keel_fit(m, devices, data, &options, NULL);
    if (s >= 0) s = keel_model_save(m, "quantile.keras");
    if (s >= 0) s = keel_model_load(&again, "quantile.keras");
    if (s >= 0) s = keel_evaluate(again, devices, data, &options, &logs);
    const bool good = s >= 0 && fabs(logs.value[1] - 0.9) < 0.05;
    if (s < 0)
        fprintf(stderr, "train_custom: %s\n", keel_error());
    else
        printf("saved quantile.keras: loss %.4f, %.1f %% of the targets below the prediction\n",
               logs.value[0], 100 * logs.value[1]);
    keel_strategy_destroy(devices);
    keel_dataset_destroy(data);
    keel_model_destroy(m);
    keel_model_destroy(again);
    return !good;
}
