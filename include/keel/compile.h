/* What a model is compiled with: optimizer, losses, metrics. Included by model.h. */
#ifndef KEEL_COMPILE_H
#define KEEL_COMPILE_H
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_OUTPUTS_MAX = 64, KEEL_METRICS_MAX = 128 };

/* An optimizer, loss or metric by Keras's name ("adam", "CategoricalCrossentropy"), with arguments.
 */
typedef struct keel_named {
    const char *name;
    const keel_arg *args; /* NULL: defaults */
    int output;           /* of losses and metrics: the index of the output, from 0 */
} keel_named;

typedef struct keel_compile {
    size_t size; /* sizeof(keel_compile): KEEL_COMPILE */
    keel_named optimizer;
    keel_named loss[KEEL_OUTPUTS_MAX]; /* ends with name NULL; a single one is for all outputs */
    double loss_weights[KEEL_OUTPUTS_MAX]; /* by output; all 0: each is 1 */
    keel_named metrics[KEEL_METRICS_MAX];  /* ends with name NULL */
    keel_named weighted_metrics[KEEL_METRICS_MAX];
} keel_compile;

#define KEEL_COMPILE .size = sizeof(keel_compile)

/* Choose optimizer, losses and metrics: keel_model_compile(m, &(keel_compile){ KEEL_COMPILE,
 *   .optimizer = { "adam" }, .loss = { { "mse" } }, .metrics = { { "mae" } } }). The state of an
 * earlier optimizer is dropped.
 *
 * Returns  KEEL_OK; KEEL_EARG, KEEL_EUNSUP: the text names what is unknown or does not fit;
 *          KEEL_ENOMEM. After a failure the model is unchanged
 * Owns     everything is copied
 * Threads  one at a time on one model
 * Source   Keras: Model.compile */
keel_status keel_model_compile(keel_model *m, const keel_compile *c);

/* Change parts of the compile configuration. Empty parts of `c` (no optimizer name, no loss, no
 * metrics) stay as they are. If the optimizer stays, so does its state. On a model that is not
 * compiled it is keel_model_compile.
 *
 * Returns  as keel_model_compile
 * Owns     everything is copied
 * Threads  one at a time on one model */
keel_status keel_model_recompile(keel_model *m, const keel_compile *c);

/* The loss of an output, by Keras's class name: "CategoricalCrossentropy".
 *
 * Returns  the name; NULL: the model is not compiled, or this output has no loss
 * Owns     the text is static
 * Threads  any, not while the model is changed */
const char *keel_model_loss_name(const keel_model *m, int output);

/* Whether the loss of an output takes it as logits rather than as probabilities: `from_logits`.
 *
 * Returns  true; false: as probabilities, or there is no such loss
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
bool keel_model_loss_takes_logits(const keel_model *m, int output);

/* True if the model has an optimizer and a loss.
 *
 * Returns  true after keel_model_compile, or if a loaded file had a compile configuration
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
bool keel_model_is_compiled(const keel_model *m);

/* How many steps the optimizer has done, in all fits, as the model's file says.
 *
 * Returns  the number; 0: it is not compiled, or was not trained
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed
 * Source   Keras: optimizer.iterations */
int64_t keel_model_steps_done(const keel_model *m);

/* The bytes of what the optimizer keeps for all weights, in memory and in files; if it was left in
 * the file, in that.
 *
 * Returns  the number; 0: it is not compiled, or keeps nothing
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
int64_t keel_model_state_bytes(const keel_model *m);

/* Why the compile configuration of a loaded file is not used: it has an optimizer or a loss that
 * Keel does not have, which the text names. The model can predict; to train, recompile it.
 *
 * Returns  the text; NULL: it is used, there was none, or the model was compiled since
 * Owns     the text belongs to the model
 * Threads  any, not while the model is changed */
const char *keel_model_refused(const keel_model *m);

/* The metrics of a loaded file that Keel does not have, as names with commas. Keel trains without
 * them and writes them back to the file.
 *
 * Returns  the text; NULL: there are none, or other metrics were chosen since
 * Owns     the text belongs to the model
 * Threads  any, not while the model is changed */
const char *keel_model_metrics_left_out(const keel_model *m);

/* What a loaded file has of the optimizer's state that is not used, because it is that of other
 * weights: layers were frozen, or are trained again, since the model was compiled. The optimizer
 * begins anew, as in Keras.
 *
 * Returns  how many variables the optimizer has in the file; 0: they are used, or there are none,
 *          or another optimizer was chosen since
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
int64_t keel_model_state_left_out(const keel_model *m);

/* The learning rate schedule of a loaded file, by Keras's class name. Keel has Keras's own
 * schedules; to train with any other, set a learning rate in its place.
 *
 * Returns  the name; NULL: there is none, or a learning rate was set
 * Owns     the text belongs to the model
 * Threads  any, not while the model is changed */
const char *keel_model_schedule(const keel_model *m);

/* The optimizer's learning rate; with a schedule, that of the next step. Setting it replaces a
 * schedule.
 *
 * Returns  KEEL_OK; KEEL_EARG: not compiled, negative or not finite
 * Owns     nothing changes hands
 * Threads  one at a time on one model */
keel_status keel_model_learning_rate(const keel_model *m, double *out);
keel_status keel_model_set_learning_rate(keel_model *m, double rate);

/* Let a schedule give the learning rate, in place of the number or schedule that did. `text` is the
 * call that makes it in Python: "CosineDecay(0.1, 1000, alpha=0.01)".
 *
 * Returns  KEEL_OK; KEEL_EARG: not compiled, no such schedule, or an argument that it does not have
 *          or that does not fit; the text says which
 * Owns     nothing changes hands
 * Threads  one at a time on one model */
keel_status keel_model_set_schedule(keel_model *m, const char *text);

/* Let a function of the program give the learning rate, in place of the number or schedule that
 * did: rate(context, step) for the steps done so far, 0 before the first. It is called once in each
 * step, before the step, where the rate is asked for, and where the model is saved; by one thread
 * at a time, mostly the caller's. A rate that is not finite ends a fit, with the model as it was
 * before that step. A file has no function: it has the rate of the next step, as a schedule that
 * stays there.
 *
 * Returns  KEEL_OK; KEEL_EARG: not compiled
 * Owns     context stays the caller's, and valid as long as the model has the function
 * Threads  one at a time on one model
 * Source   Keras: a subclass of LearningRateSchedule */
keel_status keel_model_set_rate(keel_model *m, double (*rate)(void *context, int64_t step),
                                void *context);

/* Name the weights that weight decay leaves alone, in place of those named before: of the model's
 * own optimizer, and of those of functions (keel/function.h) whose first run comes later. A name
 * with a slash is that of one weight ("dense/kernel"). Any other is looked for in the last part of
 * all names, and may be a regular expression ("bias", "^(gamma|beta)$"). It is not saved with the
 * model, as in Keras, and another optimizer begins without it.
 *
 * Returns  KEEL_OK; KEEL_EARG: a count below 0, a name that no weight has, or no expression;
 *          KEEL_EUNSUP: an expression that Python may read otherwise. Nothing changes then
 * Owns     nothing changes hands
 * Threads  one at a time on one model
 * Source   Keras: Optimizer.exclude_from_weight_decay */
keel_status keel_model_exclude_from_weight_decay(keel_model *m, const char *const *names,
                                                 int count);

#ifdef __cplusplus
}
#endif
#endif
