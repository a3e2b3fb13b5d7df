/* Training: devices, fit, evaluate, predict; plan.h has a plan of a run without running it. */
#ifndef KEEL_TRAIN_H
#define KEEL_TRAIN_H
#include <keel/callback.h>
#include <keel/checkpoint.h>
#include <keel/dataset.h>
#include <keel/input.h>
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices --------------------------------------------------------------------------------- */

/* One logical device, as `keel devices` lists it. */
typedef struct keel_device_info {
    char name[64];         /* "cpu:0" */
    char description[160]; /* processor, instructions */
    int64_t memory;        /* of the machine, in bytes; 0: unknown */
} keel_device_info;

/* The devices of this machine. A pure query: no context, no device memory, no thread; safe before
 * fork.
 *
 * Returns  KEEL_OK, with at most `max` entries in info and the number of all in *count;
 *          KEEL_EDEVICE: the topology of the machine cannot be read
 * Owns     nothing changes hands
 * Threads  any */
keel_status keel_devices(keel_device_info *info, int max, int *count);

/* Use no instructions beyond those of `name`: "base" (of any x86-64), "avx2", "avx512",
 * "avx512_bf16" or "amx", to reproduce the results of another machine; numbers agree to rounding. A
 * name beyond this processor has no effect. Call it before the first fit, evaluate, predict or plan
 * of the process, since oneDNN chooses its code once.
 *
 * Returns  KEEL_OK; KEEL_EARG: not one of these names
 * Owns     nothing changes hands
 * Threads  any, while no thread trains */
keel_status keel_instructions_limit(const char *name);

/* The instruction set in use, by the name that keel_instructions_limit takes. Unlike
 * keel_computes_with it does not make oneDNN choose its code.
 *
 * Returns  a text
 * Owns     the text belongs to the library
 * Threads  any */
const char *keel_instructions(void);

/* Whether kernels were measured on a processor with that instruction set, by `make tune`. Else they
 * are asked in the order of their priorities.
 *
 * Returns  the answer
 * Owns     nothing changes hands
 * Threads  any */
bool keel_instructions_tuned(void);

/* The instruction set and the version of oneDNN in use: "avx512_bf16, oneDNN 3.2.0".
 *
 * Returns  a text
 * Owns     the text belongs to the library, and is valid until the next call in this thread
 * Threads  any */
const char *keel_computes_with(void);

/* The devices that share each step, and the threads that run them. */
typedef struct keel_strategy keel_strategy;

/* Open devices: "cpu:0-3" is four logical devices of one core each, "cpu:0+1" one device of two
 * cores, "cpu:0,cpu:1" two devices; NULL or "cpu" one device per core. If there are more devices
 * than cores, a core runs several.
 *
 * Returns  KEEL_OK; KEEL_EARG: the text is invalid; KEEL_EDEVICE: a kind of device that Keel does
 *          not have, which the text names; KEEL_ENOMEM
 * Owns     the caller destroys *out
 * Threads  any; a strategy serves one fit, evaluate or predict at a time
 * Cost     starts a thread for each core except the first
 * Source   tf.distribute.MirroredStrategy */
keel_status keel_strategy_create(keel_strategy **out, const char *devices);

/* Close the devices. NULL is allowed.
 *
 * Returns  nothing
 * Owns     frees s and ends its threads
 * Threads  any, while nothing runs on it */
void keel_strategy_destroy(keel_strategy *s);

/* The number of devices (lanes), the number of cores that run them, and the name of a device.
 *
 * Returns  the number; the name, NULL: no such device
 * Owns     the text belongs to the strategy
 * Threads  any */
int keel_strategy_devices(const keel_strategy *s);
int keel_strategy_cores(const keel_strategy *s);
const char *keel_strategy_device_name(const keel_strategy *s, int device);

/* Make all further results equal to the bit for any devices and any number of cores: weights,
 * optimizer state, metrics, predictions. A step is cut into `shards`, each device gets whole
 * shards, and sums follow the order of one tree of shards. Without this, results agree to rounding,
 * and on one and two cores to the bit.
 *
 * Returns  KEEL_OK; KEEL_EARG: shards is below the number of devices or above KEEL_SHARDS_MAX
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s
 * Cost     weight gradients are computed per shard; keel plan --reproducible measures the cost */
enum { KEEL_SHARDS = 16, KEEL_SHARDS_MAX = 256 };
keel_status keel_strategy_reproducible(keel_strategy *s, int shards);
int keel_strategy_shards(const keel_strategy *s); /* 0: not reproducible */

/* Train in less memory: of the values that backward reads, those that need no products (batch
 * normalisation, activations, dropout, ...) are made again before it reads them, instead of being
 * kept, as long as that lowers the most that a step needs. Nothing else changes, not a bit.
 *
 * Returns  nothing
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s; holds for what is compiled later
 * Cost     what is made again is computed twice: up to 5 % of a step was measured
 * Source   keras.RematScope */
void keel_strategy_recompute(keel_strategy *s, bool recompute);

/* Train in much less memory: a core takes its rows of a step through forward and backward in
 * micro-batches of at most so many, and adds up the gradients; 0 (the default): so many that it is
 * fastest, mostly all. Values between layers then take the memory of one micro-batch. Unlike with
 * gradient_accumulation_steps the mathematics is that of the whole step: sums are divided once, by
 * what all rows have, and the learning rate and the number of steps stay. Only rounding differs,
 * since gradients are added up in another order.
 *
 * A layer or loss that must see all rows of a step before it goes on (BatchNormalization, Dice)
 * makes fit and plan fail with KEEL_EUNSUP, which names it; so do devices with memory of their own,
 * and functions (keel/function.h).
 *
 * Returns  KEEL_OK; KEEL_EARG: rows is below 0 or above INT32_MAX
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s; holds for what is compiled later
 * Cost     kernels have fewer rows at a time, and gradients of weights are added once for each
 *          micro-batch; dense layers on rows without a sequence keep their gradients in memory */
keel_status keel_strategy_micro_batch(keel_strategy *s, int64_t rows);

/* The number of rows of a step that a device gets. Devices differ by at most one row, or, if they
 * have whole shards, by a shard and one row.
 *
 * Returns  the count; 0: no such device
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_strategy_rows(const keel_strategy *s, int device, int64_t step_rows);

/* ---- fit ------------------------------------------------------------------------------------- */

/* Numbers of compiled programs. A model with open dims has a program for each shape of a batch, all
 * with the same weights. With more shapes than kept programs, programs are compiled repeatedly. */
typedef struct keel_program_counts {
    int64_t training, inference; /* compiled */
    int64_t kept, dropped;       /* kept until the end; dropped to make room */
} keel_program_counts;

typedef struct keel_fit_options {
    size_t size;           /* sizeof(keel_fit_options): KEEL_FIT_OPTIONS */
    int64_t batch_size;    /* the global batch; 0: 32 for rows; of generators and sequences, each
                              yield is a batch */
    int64_t epochs;        /* 0: 1 */
    int64_t initial_epoch; /* epochs of earlier fits: numbers of epochs, and with them the order of
                              rows, continue from here; carried rows were trained at the end of the
                              earlier fit. A generator or sequence with steps_per_epoch begins anew
                              in every fit, as in Keras */
    bool no_shuffle;       /* rows in their own order */
    uint64_t seed;         /* of shuffling and dropout */
    keel_end_of_data end;
    int64_t steps_per_epoch; /* 0: an epoch is the data */
    /* A stream (generator, sequence) must be another than that of the data. */
    const keel_dataset *validation;
    int64_t validation_batch_size; /* 0: batch_size */
    int64_t validation_steps;      /* the first of them, in each validation; 0: all rows */
    int64_t validation_freq;       /* epochs from one validation to the next; 0: 1 */
    bool validation_warns; /* rows of the validation that are wrong end only that validation: its
                              epoch has NaN as val_ values, and the history's note says why */
    const double *class_weight; /* by label; borrowed; NULL: none */
    int64_t class_weight_count;
    int threads;                           /* threads that read data; 0: chosen by Keel */
    const keel_callback *const *callbacks; /* KEEL_CALLBACKS(...), ends with NULL; borrowed; NULL:
                                              none */
    bool profile;                /* time every call: history.profile; costs less than 2 % */
    const char *trace;           /* file that receives every call, for chrome://tracing or
                                    Perfetto; NULL: none */
    bool reference_kernels;      /* plain C only: slow, for checks */
    const char *without_kernels; /* do not use kernels of this name ("dnnl"), for checks */
    keel_float32 float32;        /* for float32 models; without AMX all use multiply-adds */
    bool unfused;                /* do not fuse the ops of layers: for checks */
    /* Rows that differ in length are padded with 0 at their end: to the smallest of these lengths
     * (ascending; borrowed) that all rows of the global batch fit in, or, if there are none, to the
     * longest row of the batch, as tf.data's padded_batch does. */
    const int64_t *bucket;
    int64_t bucket_count;
    int64_t programs; /* limit, for training and inference each, if batches differ in shape: 2 to
                         30; 0: 8 */
    keel_program_counts *counts; /* filled in at the end; may be NULL */
    bool reset_states; /* keel_model_reset_states before each epoch and before each validation; else
                          states go on through all of them, as in Keras */
    const keel_checkpoint_options *checkpoint; /* see checkpoint.h; borrowed; NULL: none */
    const keel_input_watch *watch;             /* over waiting for rows; borrowed; NULL: none */
    int64_t input_memory; /* bytes that all buffers of the input may take: batches, rows that are
                             read ahead, shuffle buffers, caches; 0: half of what a control group
                             leaves free, without one no limit */
    /* Is told in one line how many threads read and how far ahead, each time that this changes, and
     * why; from the thread that called. NULL: nobody asks. */
    void (*explain_input)(void *context, const char *line);
    void *explain_context;
    const char *input_report; /* file for a picture of the input (SVG), kept up to date; or NULL */
    /* Is told before step 1 what is planned for GPUs ("runs staged through the host: resize"), or
     * that a fit on cores leaves them unused, as explain_input is told. */
    void (*explain_devices)(void *context, const char *line);
    void *explain_devices_context;
    bool no_graphs; /* GPUs get each call by itself, not as CUDA graphs: to find one at fault */
} keel_fit_options;

#define KEEL_FIT_OPTIONS .size = sizeof(keel_fit_options)

/* The effect of keel_fit_options.float32 on this processor, in a few words: "fma (no AMX on this
 * processor)".
 *
 * Returns  a text
 * Owns     the text is constant
 * Threads  any */
const char *keel_float32_in_force(keel_float32 float32);

/* The kernel of each pass of an op: "winograd4_avx512", "dnnl", "reference" for plain C; with
 * ", widened" it runs on float32 copies of bfloat16 values; "": the pass does not run. */
typedef struct keel_kernel_row {
    char layer[128], op[32];
    char forward[40], backward[40], weights[40];
} keel_kernel_row;

/* The time of one op of a layer, summed over steps and workers. */
typedef struct keel_profile_row {
    char layer[128], op[32];                  /* a fused op names its layers: "bn + relu" */
    double forward_seconds, backward_seconds; /* backward includes weight gradients */
    double forward_flops, backward_flops;     /* floating-point operations in that time */
    double forward_bytes, backward_bytes;     /* of values and weights, read and written */
    double peak_flops; /* per second, of one core, measured: for the type that it multiplies */
    char forward_kernel[40], backward_kernel[40], weights_kernel[40]; /* as in keel_kernel_row */
} keel_profile_row;

/* How the time of the steps was spent. All times are sums over steps. */
typedef struct keel_profile {
    int64_t steps;
    double step_seconds; /* wall time of the steps */
    int workers, count;
    double *call_seconds; /* [workers] inside kernels */
    double *merge_seconds, *wait_seconds, *reduce_seconds, *update_seconds; /* [workers] */
    double *read_seconds;   /* [workers] reading their rows from memory, if no thread does that */
    keel_profile_row *row;  /* [count] in the order of the model */
    double peak_flops;      /* per second, of one core, measured: float32 multiply-adds */
    double peak_bf16_flops; /* the same for bfloat16; 0: the processor has no such products */
    double peak_bytes;      /* per second, of one core, measured: reading and writing memory */
    int64_t lost_events;    /* not in the trace, which has the first million of each worker */
} keel_profile;

/* The results of a fit. The history owns all its members. */
typedef struct keel_history {
    int64_t epochs;        /* finished */
    int64_t initial_epoch; /* the number of the first, from 0 */
    int count;             /* columns */
    char *name[KEEL_LOGS_MAX];
    double *value; /* [epochs][count] */
    bool stopped;  /* a callback stopped it */
    bool complete; /* all epochs have ended, or a callback has stopped them: the model is that of
                      the end, whatever failed later */
    char *note;    /* one line for the user, about the data or a slow layer, or NULL */

    keel_profile *profile; /* NULL unless requested */

    /* the report */
    int64_t steps, rows;
    int64_t full_rows, last_rows; /* of a full and of the last step of an epoch; 0: none */
    double seconds, compile_seconds, step_seconds, wait_seconds, validation_seconds;
    double first_step_seconds; /* from the call to the begin of the first step */
    int64_t memory_planned;    /* bytes: weights, gradients, activations, slots, and copies of the
                                  model for saving and for callbacks */
    int64_t memory_used;       /* peak of the process during fit, minus before, when the model had
                                  what steps take over from it; -1: unknown */
    keel_input_stats *input;   /* what the input did; NULL: fit failed before */
    int64_t device_memory;     /* bytes planned on the device that needs most; 0: cores compute */
} keel_history;

/* Train a compiled model. The result does not depend on the number of devices.
 *
 * Returns  KEEL_OK; KEEL_EARG: not compiled, or an invalid option; KEEL_ESHAPE: data and model do
 *          not fit; KEEL_EDATA: the data does not last for the epochs; KEEL_ENUMERIC: loss or
 *          gradient is not finite; KEEL_ECALLBACK; KEEL_EUNSUP: the text names it; KEEL_ENOMEM.
 *          After a failure the model is as before the failed step (or as before fit)
 * Owns     *history (may be NULL) is freed with keel_history_free; after a failure it has the
 *          epochs that were finished
 * Threads  one at a time on a model and on a strategy
 * Cost     plans and allocates everything before step 1
 * Source   Keras: Model.fit */
keel_status keel_fit(keel_model *m, keel_strategy *s, const keel_dataset *data,
                     const keel_fit_options *options, keel_history *history);

/* Free the members of a history; NULL and a zeroed history are allowed.
 *
 * Returns  nothing
 * Owns     frees the members
 * Threads  any */
void keel_history_free(keel_history *h);

/* Write a history as CSV: a line of names, then a line for each epoch.
 *
 * Returns  KEEL_OK; KEEL_EIO
 * Owns     nothing changes hands
 * Threads  any */
keel_status keel_history_save(const keel_history *h, const char *path);

/* Weights of classes that give each class the same sum: rows / (classes * rows of the class), 1 for
 * a class without rows. The label of a row is the number, or the place of the largest of its
 * numbers, in the first target. Reads the targets of all rows.
 *
 * Returns  KEEL_OK, with weight [classes]; KEEL_EARG: no target, or classes is below 1; KEEL_EUNSUP:
 *          rows come from a stream; KEEL_EDATA: a label is not one of the classes; KEEL_EIO and
 *          KEEL_EFORMAT: a row cannot be read
 * Owns     nothing changes hands
 * Threads  any
 * Source   class_weight="balanced" of scikit-learn's compute_class_weight */
keel_status keel_dataset_balanced_weights(const keel_dataset *dataset, double *weight,
                                          int64_t classes);

/* ---- evaluate, predict ----------------------------------------------------------------------- */

/* Loss and metrics over the data, each row once. Uses batch_size, steps_per_epoch, threads,
 * callback and the options for kernels; nothing is shuffled. options NULL: defaults.
 *
 * Returns  as keel_fit; *out is written on success only
 * Owns     names in *out belong to the model
 * Threads  one at a time on a model and on a strategy
 * Source   Keras: Model.evaluate */
keel_status keel_evaluate(keel_model *m, keel_strategy *s, const keel_dataset *data,
                          const keel_fit_options *options, keel_logs *out);

/* Outputs of the model for each of the n rows, in order. y of the data is not read. A stream
 * need not say how many rows it has: memory grows as they come.
 *
 * Shapes   out [n, shape of the model's first output], float32 (float64 for a float64 model)
 * Returns  as keel_fit; KEEL_EDATA: the data has more or fewer rows than it said
 * Owns     the caller frees *out with keel_tensor_free
 * Threads  one at a time on a model and on a strategy
 * Source   Keras: Model.predict */
keel_status keel_predict(keel_model *m, keel_strategy *s, const keel_dataset *data,
                         const keel_fit_options *options, keel_tensor *out);

/* As keel_predict, for every output of the model.
 *
 * Shapes   out [keel_model_output_count(m)], each [n, shape of that output]
 * Returns  as keel_predict; on failure out is unchanged
 * Owns     the caller frees each of out with keel_tensor_free
 * Threads  one at a time on a model and on a strategy
 * Source   Keras: Model.predict */
keel_status keel_predict_outputs(keel_model *m, keel_strategy *s, const keel_dataset *data,
                                 const keel_fit_options *options, keel_tensor *out);

/* As keel_predict_outputs, into a .npy file for each output, without holding all rows in memory.
 * The processes of a group write one file together, each its own rows, if they see it in one file
 * system; the rows of those that do not go to process 0. Files appear complete, or not at all.
 *
 * path     [keel_model_output_count(m)], the same in all processes
 * Shapes   made (may be NULL) [keel_model_output_count(m)]: type and shape of each, without data
 * Returns  as keel_predict_outputs; KEEL_EARG also: no path; KEEL_EIO: a file cannot be written,
 *          and there is none
 * Owns     the paths are borrowed
 * Threads  one at a time on a model and on a strategy
 * Cost     with processes: only rows that share a page of 4 KiB with those of another are sent
 * Source   Keras: Model.predict, numpy.save */
keel_status keel_predict_npy(keel_model *m, keel_strategy *s, const keel_dataset *data,
                             const keel_fit_options *options, const char *const *path,
                             keel_tensor *made);

#ifdef __cplusplus
}
#endif

#include <keel/plan.h>

#endif
