/* Training loops of one's own. A *function* is a step written in C: it calls models, operations and
 * losses on symbolic values, takes gradients and gives them to optimizers. Keel runs that C code
 * once for each shape of its inputs, to record what it does (a *trace*), plans the recorded step as
 * it plans a step of keel_fit, and runs the plan on all devices of a strategy, each with its own
 * rows. The result does not depend on the number of devices, and a step that fails changes nothing.
 *
 *     static keel_status step(void *context, keel_trace *t)
 *     {
 *         keel_traced x, y, p;
 *         keel_scalar loss;
 *         keel_gradients g;
 *         keel_trace_input(t, "x", &x);
 *         keel_trace_input(t, "y", &y);
 *         keel_trace_model(t, context, true, &x, 1, &p);
 *         keel_trace_loss(t, &(keel_named){ "mse" }, y, p, KEEL_UNWEIGHTED, &loss);
 *         keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ context }, 1, &g);
 *         keel_trace_apply(t, g, &(keel_apply){ { "adam" } });
 *         return keel_trace_return_scalar(t, "loss", loss);
 *     }
 *
 * After the first failure all further calls of a trace fail too, with the first error, so only the
 * last call must be looked at.
 *
 * With a strategy of several processes (keel/process_group.h) each process makes the same calls of
 * keel_strategy_prepare, keel_strategy_run, keel_reduce and keel_gather in the same order, with the
 * same inputs: all rows of the step, of which it computes its own. If steps, rows that were looked
 * at, weights, learning rates or states of optimizers that were set differ, the step is refused. */
#ifndef KEEL_FUNCTION_H
#define KEEL_FUNCTION_H
#include <keel/dataset.h>
#include <keel/model.h>
#include <keel/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_function keel_function;
typedef struct keel_trace keel_trace; /* valid while the step is traced */

typedef int keel_traced;    /* a value of the step: rows of a tensor that is not there yet */
typedef int keel_scalar;    /* a number of the whole step: a loss */
typedef int keel_gradients; /* of some scalars, for some weights */

/* Write the step down by calling the functions of this page. It is called once or twice for each
 * shape of the inputs, never during a step. */
typedef keel_status (*keel_step)(void *context, keel_trace *t);

typedef struct keel_function_options {
    size_t size;      /* sizeof(keel_function_options): KEEL_FUNCTION_OPTIONS */
    const char *name; /* in messages; NULL: "function" */
    keel_step step;
    void *context;    /* of the step */
    keel_dtype dtype; /* of its arithmetic and of its models: KEEL_FLOAT32 is 0 */
    /* The inputs: name (`path`), dtype, and shape of one row, where KEEL_DIM_OPEN is any size.
     * The role KEEL_ROLE_WEIGHT makes an input the weights of the rows, of which the first is
     * summed up for KEEL_FACT_WEIGHTS. Copied. */
    const keel_data_field *input;
    int n_input;
    uint64_t seed; /* of dropout and the like */
    int programs;  /* most shapes that are kept compiled; 0: 8 */
} keel_function_options;

#define KEEL_FUNCTION_OPTIONS .size = sizeof(keel_function_options)

/* Create a function. Nothing is traced before its first run.
 *
 * Returns  KEEL_OK; KEEL_EARG: the text names the option; KEEL_EUNSUP: no function computes in this
 *          dtype, or takes an input of that one; KEEL_ENOMEM
 * Owns     the caller destroys *out, before the models that its step calls
 * Threads  any
 * Source   tf.function */
keel_status keel_function_create(keel_function **out, const keel_function_options *options);

/* Destroy a function, with the states of its optimizers. Models keep what they learned. NULL is
 * allowed.
 *
 * Returns  nothing
 * Owns     frees f
 * Threads  any, while f does not run, and before its strategy is destroyed */
void keel_function_destroy(keel_function *f);

/* ---- in a step: values ----------------------------------------------------------------------- */

/* An input, by its name; and the dims of its rows, of which a function may leave some open.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such input; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  that of the trace */
keel_status keel_trace_input(keel_trace *t, const char *name, keel_traced *out);
keel_status keel_trace_input_shape(keel_trace *t, const char *name, keel_shape *out);

/* What a step knows of itself. Each is a number for every row, of shape (). */
typedef enum keel_fact {
    KEEL_FACT_ROWS,         /* rows of the whole step, on all devices */
    KEEL_FACT_WEIGHTS,      /* the sum of their weights; without weights, their number */
    KEEL_FACT_ROW,          /* the number of this row in the step, from 0 */
    KEEL_FACT_DEVICE,       /* the device that has this row, from 0, counted over all processes */
    KEEL_FACT_DEVICE_FIRST, /* the number in the step of that device's first row */
    KEEL_FACT_DEVICE_ROWS,  /* how many rows that device has */
} keel_fact;

/* A fact of the step. A result that uses the last three depends on the devices.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such fact; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  that of the trace */
keel_status keel_trace_fact(keel_trace *t, keel_fact fact, keel_traced *out);

/* Call a model. A model may be called any number of times, in any functions; it stays the caller's,
 * and all functions see the same weights.
 *
 * training  as in Keras: dropout drops, BatchNormalization uses the batch
 * out       its first output; those of its other outputs follow
 * Returns   KEEL_OK; KEEL_ESHAPE: the inputs do not fit; KEEL_EARG: not finished, or of another
 *           dtype than the function; KEEL_EUNSUP: stateful layers, layers that look texts up, a
 *           scaled loss (mixed_float16); KEEL_ENOMEM
 * Owns      m must outlive the function
 * Threads   that of the trace
 * Source    Keras: model(x, training=True) */
keel_status keel_trace_model(keel_trace *t, keel_model *m, bool training, const keel_traced *in,
                             int n_in, keel_traced *out);

/* How a model is called. */
typedef enum keel_calling {
    KEEL_INFERENCE, /* false and true are the first two */
    KEEL_TRAINING,
    /* As KEEL_TRAINING, of inputs that the step has called the model on before, as for a second
     * gradient, also behind ops.StopGradient: moving statistics stay, which the first call moves,
     * and numbers are drawn that it has drawn. A layer that the first call had no part in moves
     * what is its own. */
    KEEL_TRAINING_AGAIN,
} keel_calling;

/* Call a part of a model: what leads to the outputs that are wanted. The rest is not computed: it
 * draws no numbers, and moves no statistics.
 *
 * in        as for keel_trace_model; KEEL_UNUSED for an input that leads to none of these outputs
 * wanted    [outputs of m] whether it is
 * out       the first output, whether wanted or not; the others follow. Those that are not wanted
 *           are no values
 * Returns   as keel_trace_model; KEEL_EARG: no output is wanted, or an input is needed, or again,
 *           and the step has not called m with training before; KEEL_EUNSUP: again, and of several
 *           calls with training none was of these values, so that it is not known which one drew
 *           the numbers; or a layer reads statistics that several calls have moved (renorm); or it
 *           has a SpectralNormalization
 * Owns      m must outlive the function
 * Threads   that of the trace
 * Source    Keras: keras.Model(model.input, model.outputs[k])(x, training=True) */
keel_status keel_trace_outputs(keel_trace *t, keel_model *m, keel_calling how,
                               const keel_traced *in, int n_in, const bool *wanted,
                               keel_traced *out);
enum { KEEL_UNUSED = -1 };

/* Call an operation of keras.ops ("ops.Square"), or any layer without weights ("Concatenate").
 *
 * args, with  those of the layer and of the call, as in keel_model_call_with; NULL: none
 * out         its first output; those of its other outputs follow
 * Returns     as keel_model_call_with; a layer with weights belongs to a model
 * Owns        everything is copied
 * Threads     that of the trace
 * Source      Keras: ops.square(x) */
keel_status keel_trace_call(keel_trace *t, const char *layer, const keel_arg *args,
                            const keel_arg *with, const keel_traced *in, int n_in,
                            keel_traced *out);

/* The gradient of a value with respect to another, row by row, as a value: for losses that have a
 * gradient in them, as the gradient penalty of a WGAN. y is summed up over its numbers. Its own
 * gradient is the second derivative: that of a derivative of Dense layers may be taken again, as
 * for the residual of a differential equation.
 *
 * Shapes   out: that of x
 * Returns  KEEL_OK; KEEL_EARG: y does not depend on x; KEEL_EUNSUP: between them is an op whose
 *          gradient cannot be differentiated, which the text names. These can: Dense,
 *          convolutions without groups and transposed ones, poolings over windows and global
 *          averages, UpSampling by repeating, LayerNormalization, RMSNormalization,
 *          BatchNormalization that takes its moving statistics, Dropout, noise, PReLU, the
 *          activations relu, relu6, leaky_relu, elu, selu, gelu, silu, softplus, softsign, tanh,
 *          sigmoid, hard_sigmoid, log_sigmoid, softmax and log_softmax, exp, log, log1p, sin,
 *          cos, erf, abs, square, sqrt, rsqrt, power with a number, matmul, maximum, minimum, +,
 *          -, *, /, sums and means, reshapes, padding, slices, Permute, Concatenate, places that
 *          another value names (take_along_axis)
 * Owns     nothing changes hands
 * Threads  that of the trace
 * Source   Keras on TensorFlow: tape.gradient(y, x) inside of another tape */
keel_status keel_trace_gradient_of(keel_trace *t, keel_traced y, keel_traced x, keel_traced *out);

/* ---- in a step: losses; those that compare rows with each other are in keel/whole_loss.h ----- */

enum { KEEL_UNWEIGHTED = -1 };

/* A loss of Keras over the whole step. It is divided once, by what its reduction says, whatever
 * rows devices have.
 *
 * weight   of the rows, or KEEL_UNWEIGHTED
 * Returns  KEEL_OK; KEEL_EARG, KEEL_ESHAPE: the text names the loss; KEEL_EUNSUP: the targets
 *          depend on weights whose gradient is taken; KEEL_ENOMEM
 * Owns     everything is copied
 * Threads  that of the trace
 * Source   Keras: loss(y_true, y_pred, sample_weight) */
keel_status keel_trace_loss(keel_trace *t, const keel_named *loss, keel_traced y_true,
                            keel_traced y_pred, keel_traced weight, keel_scalar *out);

/* The mean of a value over its numbers and over the rows of the step: sum(weight * value) divided
 * by the number of rows. For losses made of operations.
 *
 * Returns  as keel_trace_loss
 * Owns     nothing changes hands
 * Threads  that of the trace
 * Source   Keras: ops.mean(value * weight) */
keel_status keel_trace_mean(keel_trace *t, keel_traced value, keel_traced weight, keel_scalar *out);

/* ---- in a step: gradients -------------------------------------------------------------------- */

typedef struct keel_term { /* factor * scalar */
    keel_scalar scalar;
    double factor;
} keel_term;

typedef struct keel_watched {
    keel_model *model;  /* called in this step */
    const char *weight; /* "dense/kernel"; NULL: all its trainable weights */
} keel_watched;

/* The gradient of a sum of scalars for some weights. Regularizers of these weights are added, as in
 * fit. A layer may lie on the way of one gradient only: for a second one, call the model again.
 * What a loss shall not move is either not watched, or behind "ops.StopGradient".
 *
 * Returns  KEEL_OK; KEEL_EARG: a model that was not called, no such weight; KEEL_ENOMEM; when the
 *          step has been traced, KEEL_EUNSUP: a layer lies on the way of two gradients
 * Owns     everything is copied
 * Threads  that of the trace
 * Source   Keras: tape.gradient(loss, model.trainable_weights) */
keel_status keel_trace_gradients(keel_trace *t, const keel_term *terms, int n_term,
                                 const keel_watched *watched, int n_watched, keel_gradients *out);

/* What is known when a step is about to be applied: sums over all rows on all devices. */
typedef struct keel_applying {
    double gradient_norm; /* of all watched weights together, before clipping */
    double loss;          /* the sum of the terms, without regularizers */
    int64_t rows;         /* of the step */
    int64_t applied;      /* how often this optimizer has been applied */
} keel_applying;

typedef struct keel_apply {
    /* "adam", with arguments; clipnorm, global_clipnorm and clipvalue clip the gradient of all rows
     * on all devices, and gradient_accumulation_steps adds up gradients, as in Keras. The learning
     * rate is a number; for a schedule, set it before a step: keel_function_set_learning_rate. */
    keel_named optimizer;
    /* Asked once in each step, after the gradients are added up: false leaves weights and optimizer
     * as they are. It must not call Keel, and must say the same in each process. NULL: always. */
    bool (*when)(void *context, const keel_applying *now);
    void *context;
} keel_apply;

/* Move the watched weights by an optimizer of their own, whose state the function keeps. All
 * gradients of a step are of the weights before it, and all optimizers move at its end, together;
 * to let one loss see what another has moved, run two functions. Every trace must apply the same
 * optimizers in the same order.
 *
 * Returns  KEEL_OK; KEEL_EARG: the optimizer, or a weight that another one moves; KEEL_ENOMEM
 * Owns     everything is copied; when's context must outlive the function
 * Threads  that of the trace
 * Source   Keras: optimizer.apply */
keel_status keel_trace_apply(keel_trace *t, keel_gradients g, const keel_apply *apply);

/* ---- in a step: results ---------------------------------------------------------------------- */

/* Give a value of every row, or a scalar, back to the caller of the run, under a name.
 *
 * Returns  KEEL_OK; KEEL_EARG: the name is taken; KEEL_ENOMEM
 * Owns     everything is copied
 * Threads  that of the trace */
keel_status keel_trace_return(keel_trace *t, const char *name, keel_traced value);
keel_status keel_trace_return_scalar(keel_trace *t, const char *name, keel_scalar scalar);

/* ---- running --------------------------------------------------------------------------------- */

/* Run one step on all devices: device k takes keel_strategy_rows(s, k, rows) of the rows, in order.
 * The first run of a shape traces and compiles. Weights of models are up to date afterwards.
 *
 * inputs   [n] in the order of the options: [rows, shape], with the dtypes given there
 * Returns  KEEL_OK; KEEL_EARG, KEEL_ESHAPE: the inputs do not fit, or f has run on another
 *          strategy; KEEL_EDATA: no rows, or a weight that is negative or not finite;
 *          KEEL_ENUMERIC: a loss or gradient is not finite; KEEL_EUNSUP; KEEL_ENOMEM; what the step
 *          returned. After a failure weights and optimizers are as before
 * Owns     the inputs are borrowed during the call
 * Threads  one at a time on f, its models and the strategy; all processes together
 * Cost     with processes: what a step of fit sends, and reading some rows to compare them
 * Source   tf.distribute: strategy.run */
keel_status keel_strategy_run(keel_strategy *s, keel_function *f, const keel_tensor *inputs, int n);

/* A scalar of the last run that was successful.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such scalar, or no run
 * Owns     nothing changes hands
 * Threads  one at a time on f */
keel_status keel_function_scalar(const keel_function *f, const char *name, double *out);

typedef enum keel_rows_op {
    KEEL_ROWS_SUM,
    KEEL_ROWS_MEAN, /* over rows, whatever devices they were on */
    KEEL_ROWS_MIN,
    KEEL_ROWS_MAX,
} keel_rows_op;

/* Reduce a returned value of the last successful run over all its rows, on all devices. Devices may
 * have unequal numbers of rows, or none. Sums are made in float64, row after row, so they do not
 * depend on the devices.
 *
 * Shapes   out: that of one row; its dtype is the function's
 * Returns  KEEL_OK; KEEL_EARG: no such value, or no run; KEEL_ENOMEM
 * Owns     the caller frees *out with keel_tensor_free
 * Threads  one at a time on f; all processes together
 * Cost     with processes: the rows of the value go to everybody
 * Source   tf.distribute: strategy.reduce */
keel_status keel_reduce(const keel_function *f, const char *name, keel_rows_op how,
                        keel_tensor *out);

/* All rows of a returned value, in the order of the rows of the step.
 *
 * Shapes   out [rows, shape of one row]
 * Returns  as keel_reduce
 * Owns     the caller frees *out with keel_tensor_free
 * Threads  one at a time on f; all processes together
 * Cost     with processes: the rows go to everybody
 * Source   tf.distribute: strategy.gather(axis=0) */
keel_status keel_gather(const keel_function *f, const char *name, keel_tensor *out);

/* What keel_strategy_run does before its first step of such inputs, without a step: it traces and
 * compiles, looks whether there is memory, and makes the optimizers, whose learning rates and
 * states can then be set. Results of the last run are gone.
 *
 * inputs   as for keel_strategy_run, with data, which no step sees
 * Returns  as keel_strategy_run; nothing is computed, so never KEEL_ENUMERIC
 * Owns     the inputs are borrowed during the call
 * Threads  one at a time on f, its models and the strategy; all processes together
 * Source   Keras: optimizer.build */
keel_status keel_strategy_prepare(keel_strategy *s, keel_function *f, const keel_tensor *inputs,
                                  int n);

/* The learning rate of the k-th optimizer that the step applies, from 0; for the steps to come.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such optimizer, not traced yet, negative or not finite
 * Owns     nothing changes hands
 * Threads  one at a time on f */
keel_status keel_function_learning_rate(const keel_function *f, int optimizer, double *out);
keel_status keel_function_set_learning_rate(keel_function *f, int optimizer, double rate);

/* How often the k-th optimizer has been applied; for the steps to come. A step that its `when` has
 * left out does not count, one that only adds up gradients does.
 *
 * Returns  the number, -1: no such optimizer, or not traced yet; set: KEEL_OK; KEEL_EARG: that, or
 *          n is negative or above 10^15
 * Owns     nothing changes hands
 * Threads  one at a time on f; what is set must be the same in all processes
 * Source   Keras: optimizer.iterations */
int64_t keel_function_iterations(const keel_function *f, int optimizer);
keel_status keel_function_set_iterations(keel_function *f, int optimizer, int64_t n);

/* What the k-th optimizer keeps of its steps, as Keras's optimizer.variables has it behind
 * iterations and learning_rate, and in that order: slots, group by group, of the weights that it
 * moves, in the order of the models as the step calls them first. For Adam of a kernel and a bias
 * these are momentum and velocity of the kernel, then both of the bias; SGD without momentum has
 * none. The last state of Nadam is a number. A function that goes on with the states and iterations
 * of another takes the same steps as that one, if weights and inputs are the same, and nothing in
 * it is drawn.
 *
 * Shapes   a slot: mostly that of its weight; Nadam's number: (). The dtype is the function's, but
 *          int32 for what Keras has in the place of a slot that is not kept: (), always 0
 * Returns  count: the number of states, -1: no such optimizer, not traced yet, or no memory;
 *          KEEL_OK; KEEL_EARG: no such optimizer or state, not traced yet, another dtype, no data;
 *          KEEL_ESHAPE: another shape; KEEL_ENOMEM. After a failure nothing has changed
 * Owns     *out is a copy, which the caller frees with keel_tensor_free; value is copied
 * Threads  one at a time on f; what is set must be the same in all processes, whose next step is
 *          refused otherwise
 * Source   Keras: optimizer.variables, variable.assign */
int64_t keel_function_state_count(const keel_function *f, int optimizer);
keel_status keel_function_state(const keel_function *f, int optimizer, int64_t i, keel_tensor *out);
keel_status keel_function_set_state(keel_function *f, int optimizer, int64_t i,
                                    const keel_tensor *value);

/* How often the step was traced and compiled so far.
 *
 * Returns  the number
 * Owns     nothing changes hands
 * Threads  one at a time on f */
int64_t keel_function_compiled(const keel_function *f);

#ifdef __cplusplus
}
#endif
#endif
