/* Callbacks: functions that fit, evaluate and predict call between steps, as Keras calls them, and
 * the callbacks of Keras by name. Included by train.h. */
#ifndef KEEL_CALLBACK_H
#define KEEL_CALLBACK_H
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_LOGS_MAX = 400 };

/* Named numbers: "loss", "accuracy", ... in the order of Keras's logs. */
typedef struct keel_logs {
    int count;
    const char *name[KEEL_LOGS_MAX];
    double value[KEEL_LOGS_MAX];
} keel_logs;

/* Get a value by name, or set it; a name that is not there yet is added at the end. A name must
 * live as long as the logs.
 *
 * Returns  the value, NaN: there is none; KEEL_OK, KEEL_EARG: there are KEEL_LOGS_MAX already
 * Owns     nothing changes hands
 * Threads  one at a time on one struct */
double keel_logs_get(const keel_logs *logs, const char *name);
keel_status keel_logs_set(keel_logs *logs, const char *name, double value);

/* Where a run is when it calls back.
 *
 * The model is live. Its weights, the optimizer's state and the learning rate, read or saved in a
 * callback, are those after the last finished step; what a callback sets has its effect in the next
 * step. Reading or saving them during a fit takes memory for the model's own copies, of the weights
 * or of all (keel_plan.model_bytes), which a fit otherwise does without; the plan of a fit has that
 * for Keel's own callbacks, and cannot know of others. keel_model_reset_states works too. Anything
 * that would not fit the running programs (building, compiling, freezing, another type, fit,
 * evaluate, predict or plan of the same model) is refused with KEEL_EARG; keel_model_destroy does
 * nothing then, and the run fails. Another model may be run, on another strategy. */
typedef struct keel_moment {
    keel_model *model;
    bool fits;              /* within keel_fit; else evaluate or predict */
    bool training;          /* false: validation, evaluation or prediction */
    int64_t epoch, epochs;  /* epoch counts from 0 */
    int64_t initial_epoch;  /* the first of this fit */
    int64_t step, steps;    /* steps done in this epoch or pass, and in all (-1: not known): Keras's
                               number of the batch is `step` in a batch_begin, step - 1 in its end */
    int64_t rows, all_rows; /* rows done, and in all (-1: not known) */
    double seconds;         /* of this epoch or pass so far */
    double waited;          /* part of `seconds` that was spent waiting for input */
    /* Means over the epoch or pass so far in a batch_end, of all of it in an epoch_end and
     * test_end; an epoch_end has those of the validation too, as val_. Otherwise there are none,
     * except in on_train_begin, which has the names that the ends of epochs will have, with NaN.
     * There a callback names what it will add to the logs of epochs, so that callbacks behind it
     * and the history know of it. A name that was not given there is refused later. */
    keel_logs *logs;
    const keel_tensor *outputs; /* of a step of predict, in its batch_end: one for each output that
                                   is asked for; see sees_rows for other runs; else NULL */
    int output_count;
    struct keel_watch *watch; /* Keel's own */
    double
        wait_share; /* of the last 25 to 50 steps of a fit: part of the time, waiting for input */
    const char
        *late; /* the stage of the input that most of it was for; "": none; NULL: not a fit */
    /* [output_count] with `outputs`, where a callback sees rows; else NULL. The data of one is NULL
     * if the output has no target, its rows have no weights, or it has no mask. A mask has ones for
     * what counts, and zeros. */
    const keel_tensor *targets, *weights, *masks;
} keel_moment;

/* KEEL_OK: continue. KEEL_END: stop, as Keras's stop_training: the epoch ends after this step (at
 * its begin, and in train_begin, after the first), is validated, and was the last one; train_end
 * is called. Returned by a test or predict function it stops that pass after this step; in fit it
 * stops the training too, without results of this validation (NaN). Any other: the run fails with
 * KEEL_ECALLBACK (KEEL_ENOMEM, if Keel returned that to it), and the text of the last error if the
 * callback made one. The model is then as after the last step. */
typedef keel_status (*keel_on)(void *context, const keel_moment *at);

/* A tensor of a callback's state: best weights, for example. */
typedef struct keel_callback_tensor {
    char name[192];
    keel_tensor tensor; /* borrowed */
} keel_callback_tensor;

/* Functions in the order in which they are called; any may be NULL. Called from the thread that
 * called fit, while no device computes. Keras: LambdaCallback, and subclasses of Callback. */
typedef struct keel_callback {
    size_t size;      /* sizeof(keel_callback): KEEL_CALLBACK */
    const char *name; /* in errors; NULL: "of the caller" */
    void *context;
    keel_on on_train_begin, on_train_end, on_epoch_begin, on_epoch_end;
    keel_on on_train_batch_begin, on_train_batch_end;
    keel_on on_test_begin, on_test_end, on_test_batch_begin, on_test_batch_end;
    keel_on on_predict_begin, on_predict_end, on_predict_batch_begin, on_predict_batch_end;
    /* What a later fit needs to go on as if this one had never ended; NULL: nothing. save_state
     * makes a JSON object, freed by keel_model_summary_free. load_state takes one, after
     * on_train_begin. state_tensor gives the i-th tensor of the state, KEEL_END behind the last: to
     * be written after save_state, to be filled after load_state. */
    keel_status (*save_state)(void *context, char **json);
    keel_status (*load_state)(void *context, const char *json);
    keel_status (*state_tensor)(void *context, int i, keel_callback_tensor *out);
    /* In each train_batch_end and test_batch_end the moment has `outputs`, `targets`, `weights` and
     * `masks` of the rows of this step, those of all processes in their order, as losses and
     * metrics get them: outputs as the step has computed them, in training with what layers do only
     * there. They are copies, which last until the callback returns. A fit then takes no
     * micro_batch (KEEL_EUNSUP). */
    bool sees_rows;
} keel_callback;

#define KEEL_CALLBACK .size = sizeof(keel_callback)

/* The `callbacks` of keel_fit_options: .callbacks = KEEL_CALLBACKS(early, &mine). They are called
 * in this order; the structs are copied when the run begins. */
#define KEEL_CALLBACKS(...) ((const keel_callback *const[]){ __VA_ARGS__, NULL })

/* ---- Keras's callbacks ----------------------------------------------------------------------- */

/* Make a callback by Keras's class name and arguments: keel_callback_create(&early,
 * "EarlyStopping", KEEL_ARGS(KEEL_ARG_STR("monitor", "val_loss"), KEEL_ARG_INT("patience", 5))).
 * One serves one run at a time, and any number of them. With `verbose` it adds what it did to the
 * history's note.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such callback or argument, or a wrong value; KEEL_EUNSUP: Keras
 *          has it, and Keel does not; the text says why; KEEL_ENOMEM
 * Owns     the caller destroys *out, after the runs that use it
 * Threads  any
 * Source   keras.callbacks */
keel_status keel_callback_create(keel_callback **out, const char *name, const keel_arg *args);

/* The same from a text: "EarlyStopping(monitor='val_loss', patience=5)".
 *
 * Returns  as keel_callback_create
 * Owns     the caller destroys *out
 * Threads  any */
keel_status keel_callback_parse(keel_callback **out, const char *text);

/* Set the learning rate at the begin of each epoch (from 0) to what `schedule` makes of the current
 * one; it is added to the logs as learning_rate. A rate that is negative or not finite fails.
 *
 * Returns  KEEL_OK; KEEL_ENOMEM
 * Owns     the caller destroys *out; context is borrowed
 * Threads  any
 * Source   Keras: LearningRateScheduler */
keel_status keel_callback_create_schedule(keel_callback **out,
                                          double (*schedule)(void *context, int64_t epoch,
                                                             double rate),
                                          void *context);

/* Destroy a callback that one of these functions made. NULL is allowed.
 *
 * Returns  nothing
 * Owns     frees c
 * Threads  any, while no run uses it */
void keel_callback_destroy(keel_callback *c);

/* The name of the i-th callback of Keel ("EarlyStopping"), NULL behind the last; and a text with
 * the arguments of one, their defaults and help.
 *
 * Returns  the name; KEEL_OK, KEEL_EARG: no such callback, KEEL_ENOMEM
 * Owns     names are static; *out is freed with keel_model_summary_free
 * Threads  any */
const char *keel_callback_class(int i);
keel_status keel_callback_help(const char *name, char **out);

/* The file that a callback of Keel's writes, as its argument names it, or the folder in which it
 * makes files.
 *
 * Returns  the path; NULL: it writes none, or is one of the caller's own
 * Owns     the path lives as long as the callback; is_folder is written only if there is a path
 * Threads  any */
const char *keel_callback_output(const keel_callback *c, bool *is_folder);

#ifdef __cplusplus
}
#endif
#endif
