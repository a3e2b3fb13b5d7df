/* Layers, losses and metrics of your own, written in C, under the names that they have in Keras.
 *
 * A Python class with @keras.saving.register_keras_serializable(package="my") is "my>Gain" in a
 * model's file. A program that registers a class by that name before it loads the file trains the
 * model like any other, on any devices, and what it saves goes back to Python:
 *
 *     if (keel_register_layer(&gain) < 0 || keel_check_gradients("my>Gain", ...) < 0) ...
 *     keel_model_load(&m, "m.keras");
 *
 * A class without a package ("Gain") is that of custom_objects={"Gain": Gain}.
 * examples/train_custom.c has one of each.
 *
 * Callbacks run in several threads at once, on different rows, and in any order. So they may read
 * `config` and `user`, but change only what they are given to write. The result of a row must not
 * depend on other rows, on how many there are, or on earlier calls: then all that Keel says about
 * any number of devices holds for your class, too. Everything is float32; a model in float64
 * refuses the class by name. Under a mixed policy Keel widens values before a call. */
#ifndef KEEL_CUSTOM_H
#define KEEL_CUSTOM_H
#include <keel/model.h>
#include <keel/status.h>
#include <keel/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- names and configuration ----------------------------------------------------------------- */

typedef enum keel_key_kind {
    KEEL_KEY_IS_INT,   /* int64_t; null is INT64_MIN */
    KEEL_KEY_IS_FLOAT, /* double; null is NAN */
    KEEL_KEY_IS_BOOL,  /* bool */
    KEEL_KEY_IS_STR,   /* const char *; null is NULL */
    KEEL_KEY_IS_INTS,  /* keel_key_ints; null has count -1; one number n is (n) */
} keel_key_kind;

typedef struct keel_key_ints {
    int count;
    int64_t at[KEEL_ARG_INTS_MAX];
} keel_key_ints;

/* One key of get_config, and the member of the program's struct that holds it. */
typedef struct keel_key {
    const char *key; /* NULL ends a table */
    keel_key_kind kind;
    size_t offset;
    const char *dflt; /* JSON: "1", "true", "\"mean\"", "[1, 1]"; "null": null is possible, too;
                         NULL: the key must be given */
    const char *help; /* one line */
    double min, max;  /* of numbers; both 0: any */
} keel_key;

/* KEEL_KEY(INT, gain_config, units, "1", "how many outputs") */
#define KEEL_KEY(kind_, struct_, member_, dflt_, help_)                                            \
    {                                                                                              \
        .key = #member_, .kind = KEEL_KEY_IS_##kind_, .offset = offsetof(struct_, member_),        \
        .dflt = (dflt_), .help = (help_)                                                           \
    }

/* What every class has. Keys that every layer, loss or metric has in Keras (name, trainable, dtype,
 * reduction, activity_regularizer) are Keel's and cannot be in the table. */
typedef struct keel_custom_type {
    const char *name;     /* Keras's registered name: "my>Gain", or "Gain" */
    size_t config_size;   /* sizeof the struct that `keys` describe; 0: there are no keys */
    const keel_key *keys; /* ends with key NULL; NULL: none. Any other key of a file is refused */
    /* What is wrong with a configuration, in one line; NULL: nothing. May be NULL. */
    const char *(*refuse)(const void *config);
    void *user; /* given to all callbacks */
} keel_custom_type;

/* ---- layers ---------------------------------------------------------------------------------- */

enum { KEEL_CUSTOM_INPUTS_MAX = 8, KEEL_CUSTOM_WEIGHTS_MAX = 8 };

/* What a layer is told about its inputs when it is built; may be asked several times. */
typedef struct keel_layer_shapes {
    const void *config;
    void *user;
    int n_in;
    const keel_shape *in; /* [n_in] of one row, without the batch */
} keel_layer_shapes;

typedef struct keel_layer_weight {
    const char *name; /* "kernel" */
    keel_shape shape;
    const char *initializer; /* Keras's name ("zeros"), or JSON of {"class_name", "config"}; NULL:
                                "glorot_uniform" */
    bool state;              /* Keras's add_weight(trainable=False): saved, but never trained */
} keel_layer_weight;

/* Some rows of a call. Arrays are dense: row r of input i begins at r * (elements of in_shape[i]).
 */
typedef struct keel_layer_rows {
    const void *config;
    void *user;
    bool training; /* Keras's argument of call */
    int64_t rows;
    int n_in;
    const keel_shape *in_shape; /* [n_in] of one row */
    const float *const *in;     /* [n_in] */
    const keel_shape *out_shape;
    float *out;         /* of forward: overwritten; NULL in backward */
    int64_t saved_size; /* numbers of one row */
    float *saved;       /* forward writes it for backward; NULL: no backward will follow */
    int n_weight;
    const keel_shape *weight_shape; /* [n_weight] in the order of keel_custom_layer.weight */
    const float *const *weight;     /* [n_weight] */
    /* Of backward, else NULL: gradients are added to what is there. NULL entry: not wanted. */
    const float *out_grad;
    float *const *in_grad;     /* [n_in] */
    float *const *weight_grad; /* [n_weight]: the sum over rows, added one row after another */
} keel_layer_rows;

typedef struct keel_custom_layer {
    size_t size; /* sizeof(keel_custom_layer): KEEL_CUSTOM_LAYER */
    keel_custom_type type;
    int inputs; /* 1 to KEEL_CUSTOM_INPUTS_MAX; of two or more Keras's call takes a list */
    bool supports_masking; /* Keras's: the mask of the first input goes on to the output */
    /* Describe weight i, which is zero at first; false: there are no more. At most
     * KEEL_CUSTOM_WEIGHTS_MAX. NULL: the layer has none. In a file those that are trained come
     * first, as in Keras. */
    bool (*weight)(const keel_layer_shapes *s, int i, keel_layer_weight *out);
    /* The shape of a row of the output; false: such inputs do not fit. NULL: that of input 0. */
    bool (*output)(const keel_layer_shapes *s, keel_shape *out);
    /* Numbers that forward saves for backward, for each row; NULL: none. */
    int64_t (*saved)(const keel_layer_shapes *s);
    /* Compute `out` from `in` and `weight`; add to the gradients what out_grad gives. A negative
     * status fails the step. The gradients of inputs and those of weights are asked for in calls of
     * their own. backward NULL: a model with the layer can predict, but is not trained. */
    keel_status (*forward)(const keel_layer_rows *r);
    keel_status (*backward)(const keel_layer_rows *r);
} keel_custom_layer;

#define KEEL_CUSTOM_LAYER .size = sizeof(keel_custom_layer)

/* Register a class of layers.
 *
 * Returns  KEEL_OK; KEEL_EARG: the text says what is missing or wrong, as a name that Keras or
 *          another registered layer has; KEEL_ENOMEM
 * Owns     the struct and the name are copied; other texts, the table of keys, functions and `user`
 *          must live as long as the process. A class cannot be removed
 * Threads  any; before models with the class are built or loaded
 * Source   keras.saving.register_keras_serializable */
keel_status keel_register_layer(const keel_custom_layer *layer);

/* ---- losses ---------------------------------------------------------------------------------- */

/* One element: the numbers along the last axis of the predictions, and their targets. */
typedef struct keel_loss_element {
    const void *config;
    void *user;
    int64_t n;           /* numbers */
    const float *y_pred; /* [n] */
    const float *y_true; /* [n]; NULL if targets are labels */
    int64_t label;       /* 0 to n - 1, if they are */
    float *grad; /* [n]: overwritten by the gradient of the loss by y_pred; NULL: not wanted */
} keel_loss_element;

/* Keel weights the losses of elements, leaves out masked ones and those of weight 0, and divides
 * the sum as the loss's `reduction` says, over all devices. */
typedef struct keel_custom_loss {
    size_t size; /* sizeof(keel_custom_loss): KEEL_CUSTOM_LOSS */
    keel_custom_type type;
    bool labels; /* targets are class numbers, as of Keras's sparse losses; a label that is no class
                    fails the step */
    double (*value)(const keel_loss_element *e); /* the loss of the element */
} keel_custom_loss;

#define KEEL_CUSTOM_LOSS .size = sizeof(keel_custom_loss)

/* Register a loss: a class, or a function of y_true and y_pred, which has no configuration.
 *
 * Returns  as keel_register_layer
 * Owns     as keel_register_layer
 * Threads  as keel_register_layer
 * Source   keras.saving.register_keras_serializable of a keras.losses.Loss */
keel_status keel_register_loss(const keel_custom_loss *loss);

/* ---- metrics --------------------------------------------------------------------------------- */

typedef struct keel_metric_element {
    const void *config;
    void *user;
    int64_t n;
    const float *y_pred; /* [n] */
    const float *y_true; /* [n]; NULL if targets are labels */
    int64_t label;
    double weight; /* never 0; 1 unless the metric is a weighted one */
} keel_metric_element;

enum { KEEL_METRIC_STATE_MAX = 4096 };

/* A state of some doubles: zeros before the first row. Rows add to states of their own, which are
 * put together in one order for any number of devices. */
typedef struct keel_custom_metric {
    size_t size; /* sizeof(keel_custom_metric): KEEL_CUSTOM_METRIC */
    keel_custom_type type;
    bool labels;
    /* Doubles of a state, 1 to KEEL_METRIC_STATE_MAX, for elements of n numbers; NULL: 2. */
    int64_t (*state)(const void *config, void *user, int64_t n);
    void (*add)(const keel_metric_element *e, double *state);
    /* Put `from`, the state of later rows, into `into`. Either may be zeros, if it has no rows.
     * NULL: states are added. */
    void (*merge)(const void *config, void *user, double *into, const double *from, int64_t size);
    /* NULL: state[0] / state[1], or 0 if state[1] is 0. */
    double (*result)(const void *config, void *user, const double *state, int64_t size);
} keel_custom_metric;

#define KEEL_CUSTOM_METRIC .size = sizeof(keel_custom_metric)

/* Register a metric.
 *
 * Returns  as keel_register_layer
 * Owns     as keel_register_layer
 * Threads  as keel_register_layer
 * Source   keras.saving.register_keras_serializable of a keras.metrics.Metric */
keel_status keel_register_metric(const keel_custom_metric *metric);

/* ---- checking gradients ---------------------------------------------------------------------- */

typedef struct keel_gradient_options {
    size_t size;      /* sizeof(keel_gradient_options): KEEL_GRADIENT_OPTIONS */
    int64_t rows;     /* 0: 3 */
    double low, high; /* inputs are drawn from this range; both 0: -1 to 1 */
    double tolerance; /* of the largest gradient of the same input or weight; 0: 1e-3 */
    int64_t elements; /* of an input or weight that are compared, spread over it; 0: 200 */
    bool inference;   /* with training=False */
    uint64_t seed;
} keel_gradient_options;

#define KEEL_GRADIENT_OPTIONS .size = sizeof(keel_gradient_options)

typedef struct keel_gradient_report {
    int64_t compared;
    int64_t kinks;  /* left out, since the slopes on both sides differ (as of ReLU at 0) */
    double worst;   /* the largest difference, as a part of the largest gradient beside it */
    char where[96]; /* of it: "input 0, row 2, element 7", "weight 'kernel', element 3" */
    double backward, differences; /* its gradient by backward, and by central differences */
} keel_gradient_report;

/* Compare the backward of a registered layer with central differences of its forward, on drawn
 * inputs; and check that both treat rows alike however many a call has, give the same bits twice,
 * and add to gradients that are there.
 *
 * layer    its name, "my>Gain"
 * args     its configuration; NULL: defaults
 * in       [n_in] shapes of one row of its inputs
 * options  NULL: defaults
 * report   NULL: not wanted; filled if gradients were compared, whatever they were
 * Returns  KEEL_OK; KEEL_ENUMERIC: a gradient is wrong, or a result is not finite or not the same
 *          again; the text says of which input or weight, which element, and by how much;
 *          KEEL_EARG, KEEL_ESHAPE: no such layer, or it does not fit; KEEL_EUNSUP: it has no
 *          backward; KEEL_ECALLBACK: a callback failed; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  any; calls the callbacks from this thread */
keel_status keel_check_gradients(const char *layer, const keel_arg *args, const keel_shape *in,
                                 int n_in, const keel_gradient_options *options,
                                 keel_gradient_report *report);

/* ---- the command ----------------------------------------------------------------------------- */

/* Not in the library: what a shared library of yours has, so that `keel fit m.keras --plugin
 * ./my.so` knows its classes. It registers them. Link it with -lkeel.
 *
 * Returns  KEEL_OK; a negative status ends the command, with the text of the last error
 * Owns     the library stays loaded
 * Threads  called once, before a model is loaded */
keel_status keel_plugin(void);

#ifdef __cplusplus
}
#endif
#endif
