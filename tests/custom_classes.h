/* The classes of golden/make_custom.py in C. */
#ifndef KEEL_TESTS_CUSTOM_CLASSES_H
#define KEEL_TESTS_CUSTOM_CLASSES_H
#include "keel/keel.h"
#include <math.h>
#include <string.h>

static inline int64_t elements(const keel_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) n *= s->dim[d];
    return n;
}

/* ---- Bend: tanh(slope (x - shift)) kernel + bias --------------------------------------------- */

typedef struct bend_config {
    int64_t units;
    double slope;
    bool use_bias;
    const char *mode;
    keel_key_ints axes;
} bend_config;

static const keel_key bend_keys[] = {
    KEEL_KEY(INT, bend_config, units, NULL, "how many outputs"),
    KEEL_KEY(FLOAT, bend_config, slope, "1.0", "at 0"),
    KEEL_KEY(BOOL, bend_config, use_bias, "true", "add a bias"),
    KEEL_KEY(STR, bend_config, mode, "\"tanh\"", "tanh or linear"),
    KEEL_KEY(INTS, bend_config, axes, "[1]", "not used"),
    { 0 },
};

static const char *bend_refuse(const void *config)
{
    const bend_config *c = config;
    if (c->units < 1) return "units must be above 0";
    return strcmp(c->mode, "tanh") && strcmp(c->mode, "linear") ? "mode must be tanh or linear"
                                                                : NULL;
}

static int64_t last_of(const keel_shape *s)
{
    return s->dim[s->rank - 1];
}

static bool bend_weight(const keel_layer_shapes *s, int i, keel_layer_weight *w)
{
    const bend_config *c = s->config;
    const int64_t n = last_of(&s->in[0]);
    if (i == 0)
        *w = (keel_layer_weight){ .name = "kernel", .shape = { 2, { n, c->units } } };
    else if (i == 1)
        *w = (keel_layer_weight){
            .name = "shift",
            .shape = { 1, { n } },
            .initializer = "{\"class_name\": \"Constant\", \"config\": {\"value\": 0.125}}",
            .state = true,
        };
    else if (i == 2 && c->use_bias)
        *w = (keel_layer_weight){ .name = "bias",
                                  .shape = { 1, { c->units } },
                                  .initializer = "zeros" };
    else
        return false;
    return true;
}

static bool bend_output(const keel_layer_shapes *s, keel_shape *out)
{
    const bend_config *c = s->config;
    if (s->in[0].rank < 1) return false;
    out->dim[out->rank - 1] = c->units;
    return true;
}

/* The bent input. */
static int64_t bend_saved(const keel_layer_shapes *s)
{
    return elements(&s->in[0]);
}

static keel_status bend_forward(const keel_layer_rows *r)
{
    const bend_config *c = r->config;
    const int64_t n = last_of(&r->in_shape[0]), k = c->units;
    const int64_t places = r->rows * (elements(&r->in_shape[0]) / n);
    const float *x = r->in[0], *kernel = r->weight[0], *shift = r->weight[1];
    for (int64_t i = 0; i < places; i++)
        for (int64_t j = 0; j < k; j++) {
            float sum = c->use_bias ? r->weight[2][j] : 0;
            for (int64_t d = 0; d < n; d++) {
                const float z = (float)c->slope * (x[i * n + d] - shift[d]);
                const float bent = c->mode[0] == 't' ? tanhf(z) : z;
                if (r->saved) r->saved[i * n + d] = bent;
                sum += bent * kernel[d * k + j];
            }
            r->out[i * k + j] = sum;
        }
    return KEEL_OK;
}

static keel_status bend_backward(const keel_layer_rows *r)
{
    const bend_config *c = r->config;
    const int64_t n = last_of(&r->in_shape[0]), k = c->units;
    const int64_t places = r->rows * (elements(&r->in_shape[0]) / n);
    const float *kernel = r->weight[0], *g = r->out_grad;
    for (int64_t i = 0; i < places; i++, g += k) {
        for (int64_t d = 0; d < n; d++) {
            const float bent = r->saved[i * n + d];
            float sum = 0;
            for (int64_t j = 0; j < k; j++) {
                sum += g[j] * kernel[d * k + j];
                if (r->weight_grad[0]) r->weight_grad[0][d * k + j] += bent * g[j];
            }
            if (c->mode[0] == 't') sum *= 1 - bent * bent;
            if (r->in_grad[0]) r->in_grad[0][i * n + d] += (float)c->slope * sum;
        }
        for (int64_t j = 0; c->use_bias && r->weight_grad[2] && j < k; j++)
            r->weight_grad[2][j] += g[j];
    }
    return KEEL_OK;
}

static const keel_custom_layer bend = {
    KEEL_CUSTOM_LAYER,
    .type = { .name = "tests>Bend",
              .config_size = sizeof(bend_config),
              .keys = bend_keys,
              .refuse = bend_refuse },
    .inputs = 1,
    .weight = bend_weight,
    .output = bend_output,
    .saved = bend_saved,
    .forward = bend_forward,
    .backward = bend_backward,
};

/* ---- Gate: a sigmoid(b) ---------------------------------------------------------------------- */

static bool gate_output(const keel_layer_shapes *s, keel_shape *out)
{
    (void)out;
    return elements(&s->in[0]) == elements(&s->in[1]);
}

static keel_status gate_forward(const keel_layer_rows *r)
{
    const int64_t n = r->rows * elements(r->out_shape);
    for (int64_t i = 0; i < n; i++) r->out[i] = r->in[0][i] / (1 + expf(-r->in[1][i]));
    return KEEL_OK;
}

static keel_status gate_backward(const keel_layer_rows *r)
{
    const int64_t n = r->rows * elements(r->out_shape);
    for (int64_t i = 0; i < n; i++) {
        const float open = 1 / (1 + expf(-r->in[1][i]));
        if (r->in_grad[0]) r->in_grad[0][i] += r->out_grad[i] * open;
        if (r->in_grad[1]) r->in_grad[1][i] += r->out_grad[i] * r->in[0][i] * open * (1 - open);
    }
    return KEEL_OK;
}

static const keel_custom_layer gate = {
    KEEL_CUSTOM_LAYER,     .type = { .name = "tests>Gate" }, .inputs = 2,
    .output = gate_output, .forward = gate_forward,          .backward = gate_backward,
};

/* ---- PowerLoss, Largest, Within -------------------------------------------------------------- */

typedef struct power_config {
    double power;
} power_config;

static const keel_key power_keys[] = {
    { "power", KEEL_KEY_IS_FLOAT, offsetof(power_config, power), "2.0", "of the error", 1, 8 },
    { 0 },
};

static double power_value(const keel_loss_element *e)
{
    const float power = (float)((const power_config *)e->config)->power;
    double sum = 0;
    for (int64_t j = 0; j < e->n; j++) {
        const float off = e->y_pred[j] - e->y_true[j], size = fabsf(off);
        sum += (double)powf(size, power);
        if (e->grad) e->grad[j] = (off < 0 ? -power : power) * powf(size, power - 1) / (float)e->n;
    }
    return sum / (double)e->n;
}

static const keel_custom_loss power_loss = {
    KEEL_CUSTOM_LOSS,
    .type = { .name = "tests>PowerLoss", .config_size = sizeof(power_config), .keys = power_keys },
    .value = power_value,
};

static int64_t largest_state(const void *config, void *user, int64_t n)
{
    (void)config;
    (void)user;
    (void)n;
    return 1;
}

static void largest_add(const keel_metric_element *e, double *state)
{
    for (int64_t j = 0; j < e->n; j++)
        state[0] = fmax(state[0], (double)fabsf(e->y_pred[j] - e->y_true[j]));
}

static void largest_merge(const void *config, void *user, double *into, const double *from,
                          int64_t size)
{
    (void)config;
    (void)user;
    for (int64_t i = 0; i < size; i++) into[i] = fmax(into[i], from[i]);
}

static double largest_result(const void *config, void *user, const double *state, int64_t size)
{
    (void)config;
    (void)user;
    (void)size;
    return state[0];
}

static const keel_custom_metric largest = {
    KEEL_CUSTOM_METRIC,     .type = { .name = "tests>Largest" },
    .state = largest_state, .add = largest_add,
    .merge = largest_merge, .result = largest_result,
};

typedef struct within_config {
    double limit;
} within_config;

static const keel_key within_keys[] = {
    KEEL_KEY(FLOAT, within_config, limit, "0.5", "of the error"),
    { 0 },
};

static void within_add(const keel_metric_element *e, double *state)
{
    const within_config *c = e->config;
    for (int64_t j = 0; j < e->n; j++) {
        state[0] += e->weight * (fabsf(e->y_pred[j] - e->y_true[j]) <= (float)c->limit);
        state[1] += e->weight;
    }
}

static const keel_custom_metric within = {
    KEEL_CUSTOM_METRIC,
    .type = { .name = "tests>Within", .config_size = sizeof(within_config), .keys = within_keys },
    .add = within_add,
};

static inline keel_status register_golden_classes(void)
{
    keel_status s = keel_register_layer(&bend);
    if (s >= 0) s = keel_register_layer(&gate);
    if (s >= 0) s = keel_register_loss(&power_loss);
    if (s >= 0) s = keel_register_metric(&largest);
    return s >= 0 ? keel_register_metric(&within) : s;
}

#endif
