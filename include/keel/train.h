/* Training: devices, fit, evaluate, predict, and the plan of all that without running it. */
#ifndef KEEL_TRAIN_H
#define KEEL_TRAIN_H
#include <keel/dataset.h>
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices --------------------------------------------------------------------------------- */

/* What `keel devices` lists: one logical device. */
typedef struct keel_device_info {
    char name[64];         /* "cpu:0" */
    char description[160]; /* processor, instructions */
    int64_t memory;        /* bytes the machine has for it; 0: unknown */
} keel_device_info;

/* The devices of this machine. A pure query: no context, no device memory, no thread; safe before
 * fork.
 *
 * Returns  KEEL_OK and at most `max` entries of info, *count of all; KEEL_EDEVICE: the machine
 *          does not say
 * Owns     nothing changes hands
 * Threads  any */
keel_status keel_devices(keel_device_info *info, int max, int *count);

/* Compute as on a processor that has no better instructions than `name`: "base" (of any x86-64),
 * "avx2", "avx512", "avx512_bf16" or "amx". For reproducing what another machine computes; numbers
 * agree to rounding. A name better than this processor changes nothing. To be called before the
 * first fit, evaluate, predict or plan of the process, since oneDNN chooses its code once.
 *
 * Returns  KEEL_OK; KEEL_EARG: not one of these names
 * Owns     nothing changes hands
 * Threads  none may be training meanwhile */
keel_status keel_instructions_limit(const char *name);

/* What computes here: instructions and oneDNN's version, "avx512_bf16, oneDNN 3.2.0".
 *
 * Returns  a text
 * Owns     the text stays the library's, until the next call in this thread
 * Threads  any */
const char *keel_computes_with(void);

/* The lanes a step is cut over, and the threads that run them. */
typedef struct keel_strategy keel_strategy;

/* Open devices: "cpu:0-3" four logical devices of one core's work each, "cpu:0+1" one device of two
 * cores, "cpu:0,cpu:1"; NULL or "cpu": one device a core. More devices than cores share them in
 * turn.
 *
 * Returns  KEEL_OK; KEEL_EARG: the text is wrong; KEEL_EDEVICE: a kind of device that is not there,
 *          by name; KEEL_ENOMEM
 * Owns     the caller destroys *out
 * Threads  any; a strategy serves one fit, evaluate or predict at a time
 * Cost     starts a thread for each core but the first
 * Source   tf.distribute.MirroredStrategy */
keel_status keel_strategy_create(keel_strategy **out, const char *devices);

/* Give the devices back. NULL is fine.
 *
 * Returns  nothing
 * Owns     frees s and ends its threads
 * Threads  any, while nothing runs on it */
void keel_strategy_destroy(keel_strategy *s);

/* How many devices (lanes), how many cores run them, and the name of a device.
 *
 * Returns  the number; a text of the strategy, NULL where there is no such device
 * Owns     the text belongs to the strategy
 * Threads  any */
int keel_strategy_devices(const keel_strategy *s);
int keel_strategy_cores(const keel_strategy *s);
const char *keel_strategy_device_name(const keel_strategy *s, int device);

/* From now on give the same bits for any devices, on any number of cores: weights, optimizer state,
 * metrics, predictions. A step is cut into `shards`, whole ones go to devices, and what is added is
 * added in the order of one tree of them. Without it results agree to rounding, and on one core and
 * two to the bit.
 *
 * Returns  KEEL_OK; KEEL_EARG: shards is below the number of devices or above KEEL_SHARDS_MAX
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s
 * Cost     a weight gradient is made once a shard: keel plan --reproducible measures it */
enum { KEEL_SHARDS = 16, KEEL_SHARDS_MAX = 256 };
keel_status keel_strategy_reproducible(keel_strategy *s, int shards);
int keel_strategy_shards(const keel_strategy *s); /* 0: not reproducible */

/* How many of the rows of a step a device gets; they differ by at most one between devices, or,
 * where devices have whole shards, by the rows of a shard and one.
 *
 * Returns  the count; 0 where there is no such device
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_strategy_rows(const keel_strategy *s, int device, int64_t step_rows);

/* ---- fit ------------------------------------------------------------------------------------- */

enum { KEEL_LOGS_MAX = 32 };

/* Named numbers: "loss", "accuracy", ... in the order of Keras's logs. */
typedef struct keel_logs {
    int count;
    const char *name[KEEL_LOGS_MAX];
    double value[KEEL_LOGS_MAX];
} keel_logs;

typedef struct keel_progress {
    bool training;          /* false: validation or evaluation */
    bool epoch_end;         /* the epoch is over, validation included; logs have val_ too */
    int64_t epoch, epochs;  /* epoch counts from 0 */
    int64_t step, steps;    /* steps done in this epoch, of how many (-1: not known) */
    int64_t rows, all_rows; /* rows done in this epoch, of how many (-1: not known) */
    double seconds;         /* of this epoch so far */
    double waited;          /* of them, waiting for input */
    keel_logs logs;         /* running means of the epoch */
} keel_progress;

/* Called after every step, also of a validation, from the thread that called fit.
 * KEEL_OK: go on; KEEL_END: stop after this step, the model keeps what it learned (the epoch of a
 * validation cut short has NaN for val_ numbers); < 0: fit fails
 * with KEEL_ECALLBACK. */
typedef keel_status (*keel_on_progress)(void *context, const keel_progress *p);

/* What was compiled. A model whose dims are open has a program for each shape that batches have,
 * all over one set of weights; more shapes than programs means compiling again and again. */
typedef struct keel_program_counts {
    int64_t training, inference; /* made */
    int64_t kept, dropped;       /* at the end; to make room for others */
} keel_program_counts;

typedef struct keel_fit_options {
    size_t size;           /* sizeof(keel_fit_options): KEEL_FIT_OPTIONS */
    int64_t batch_size;    /* the global batch; 0: 32 for rows, as it yields for generators and
                              sequences */
    int64_t epochs;        /* 0: 1 */
    int64_t initial_epoch; /* go on after a fit of so many epochs: they keep their numbers, and so
                              their order of rows; what a fit carries it has trained at its end. A
                              generator or sequence with steps_per_epoch begins anew in every fit,
                              as in Keras */
    bool no_shuffle;       /* rows in their own order */
    uint64_t seed;         /* of shuffling and dropout */
    keel_end_of_data end;
    int64_t steps_per_epoch; /* 0: an epoch is the data */
    const keel_dataset *validation;
    int64_t validation_batch_size; /* 0: batch_size */
    int64_t validation_steps;      /* 0: all of it */
    const double *class_weight;    /* by label; borrowed; NULL: none */
    int64_t class_weight_count;
    int threads; /* that read data; 0: as many as help */
    keel_on_progress on_progress;
    void *context;
    bool profile;                /* time every call: history.profile; costs under 2 % */
    const char *trace;           /* also write every call to this file, for chrome://tracing or
                                    Perfetto; NULL: no */
    bool reference_kernels;      /* plain C only: slow, for checks */
    const char *without_kernels; /* leave out kernels of this name ("dnnl"), for checks */
    keel_float32 float32;        /* of float32 models; without AMX all are multiply-adds */
    bool unfused;                /* every op by itself, as layers emit them: for checks */
    /* Rows that differ in length are padded with 0 at their end: to the smallest of these lengths
     * that all rows of their global batch fit in (ascending; borrowed), or, where there are none,
     * to the longest row of the batch, as tf.data's padded_batch does. */
    const int64_t *bucket;
    int64_t bucket_count;
    int64_t programs; /* most that are kept where batches differ in shape, of training and of
                         inference each, 2 to 30; 0: 8 */
    keel_program_counts *counts; /* filled in at the end; NULL: nobody asks */
} keel_fit_options;

#define KEEL_FIT_OPTIONS .size = sizeof(keel_fit_options)

/* What a choice of keel_fit_options.float32 means on this processor, in a few words: "fma (no AMX
 * on this processor)".
 *
 * Returns  a text
 * Owns     the text is constant
 * Threads  any */
const char *keel_float32_in_force(keel_float32 float32);

/* Which kernel runs each pass of an op: "winograd4_avx512", "dnnl", "reference" for the plain one;
 * ", widened" behind it: on copies of bfloat16 values in float32; "": the pass does not run. */
typedef struct keel_kernel_row {
    char layer[128], op[32];
    char forward[40], backward[40], weights[40];
} keel_kernel_row;

/* The time of one op of a layer, summed over steps and workers. */
typedef struct keel_profile_row {
    char layer[128], op[32];                  /* a fused op names its layers: "bn + relu" */
    double forward_seconds, backward_seconds; /* backward includes weight gradients */
    double forward_flops, backward_flops;     /* floating-point operations done in that time */
    double forward_bytes, backward_bytes;     /* of values and weights read and written */
    double peak_flops; /* per second, of one core, measured: at best, in the type it multiplies */
    char forward_kernel[40], backward_kernel[40], weights_kernel[40]; /* as in keel_kernel_row */
} keel_profile_row;

/* Where the time of the steps went. All times are sums over steps. */
typedef struct keel_profile {
    int64_t steps;
    double step_seconds; /* wall time of the steps */
    int workers, count;
    double *call_seconds; /* [workers] inside kernels */
    double *merge_seconds, *wait_seconds, *reduce_seconds, *update_seconds; /* [workers] */
    double *read_seconds;   /* [workers] taking their rows from memory, where no thread does that */
    keel_profile_row *row;  /* [count] in the order of the model */
    double peak_flops;      /* per second, of one core, measured: float32 multiply-adds */
    double peak_bf16_flops; /* the same of bfloat16 pairs; 0: the processor has no such products */
    double peak_bytes;      /* per second, of one core, measured: reading and writing memory */
    int64_t lost_events;    /* of the trace, which holds the first million of each worker */
} keel_profile;

/* What a fit did. Everything in it belongs to the history. */
typedef struct keel_history {
    int64_t epochs; /* finished ones */
    int count;      /* columns */
    char *name[2 * KEEL_LOGS_MAX];
    double *value; /* [epochs][count] */
    bool stopped;  /* by the callback */
    char *note;    /* a line about the data or a slow layer that the user should see, or NULL */

    keel_profile *profile; /* NULL unless asked for */

    /* the report */
    int64_t steps, rows;
    int64_t full_rows, last_rows; /* of a full and of the last step of an epoch; 0: none */
    double seconds, compile_seconds, step_seconds, wait_seconds, validation_seconds;
    double first_step_seconds; /* until the first step began */
    int64_t memory_planned;    /* bytes: weights, moments, gradients, activations, slots */
    int64_t memory_used;       /* peak of the process while fit ran, less before; -1: unknown */
} keel_history;

/* Train a compiled model. The answer does not depend on the number of devices.
 *
 * Returns  KEEL_OK; KEEL_EARG: not compiled, an option is wrong; KEEL_ESHAPE: data and model do
 *          not fit; KEEL_EDATA: the data cannot serve the epochs; KEEL_ENUMERIC: loss or
 *          gradient is not finite; KEEL_ECALLBACK; KEEL_EUNSUP: by name; KEEL_ENOMEM. After a
 *          failure the model is as it was before the failed step (before fit, where no step was
 *          done)
 * Owns     *history (may be NULL) is freed with keel_history_free; it is filled on failure as
 *          well, as far as fit came
 * Threads  one at a time on a model and on a strategy
 * Cost     plans and allocates everything before step 1
 * Source   Keras: Model.fit */
keel_status keel_fit(keel_model *m, keel_strategy *s, const keel_dataset *data,
                     const keel_fit_options *options, keel_history *history);

/* Free what a history holds; NULL and a zeroed one are fine.
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

/* ---- evaluate, predict ----------------------------------------------------------------------- */

/* Loss and metrics over the data, every row counted once. Uses batch_size, steps_per_epoch (of rows
 * to look at), threads, callback and the kernels' options; nothing is shuffled. options NULL:
 * defaults.
 *
 * Returns  as keel_fit; *out is written on success only
 * Owns     names in *out belong to the model
 * Threads  one at a time on a model and on a strategy
 * Source   Keras: Model.evaluate */
keel_status keel_evaluate(keel_model *m, keel_strategy *s, const keel_dataset *data,
                          const keel_fit_options *options, keel_logs *out);

/* Outputs for every row, in the order of the rows: exactly n of them. y of the data is not read.
 *
 * Shapes   out [n, shape of the model's first output], float32 (float64 for a float64 model)
 * Returns  as keel_fit; KEEL_EDATA: the data do not say how many rows they have
 * Owns     the caller frees *out with keel_tensor_free
 * Threads  one at a time on a model and on a strategy
 * Source   Keras: Model.predict */
keel_status keel_predict(keel_model *m, keel_strategy *s, const keel_dataset *data,
                         const keel_fit_options *options, keel_tensor *out);

/* As keel_predict, for every output of the model.
 *
 * Shapes   out [keel_model_output_count(m)], each [n, shape of that output]
 * Returns  as keel_predict; on failure out is untouched
 * Owns     the caller frees each of out with keel_tensor_free
 * Threads  one at a time on a model and on a strategy
 * Source   Keras: Model.predict */
keel_status keel_predict_outputs(keel_model *m, keel_strategy *s, const keel_dataset *data,
                                 const keel_fit_options *options, keel_tensor *out);

/* ---- plan ------------------------------------------------------------------------------------ */

/* How an epoch would be cut, and what memory it would take. Runs nothing. */
typedef struct keel_plan {
    int64_t rows, batch_size, steps; /* steps of an epoch */
    int64_t last_rows;               /* of the short last step; 0: there is none */
    int64_t unused_rows;             /* left out or carried */
    int devices, workers;
    int64_t *full, *last; /* [devices] rows of each device in a full and in the last step */
    int64_t weight_bytes, moment_bytes, packed_bytes;           /* once a process */
    int64_t *activation_bytes, *gradient_bytes, *scratch_bytes; /* [workers] */
    int64_t *worker_of;                                         /* [devices] its (first) worker */
    int64_t activation_bound; /* the least any plan could take, per worker */
    int64_t total_bytes;
    double reproducible_seconds, plain_seconds; /* of a step; 0: not measured */
    int n_kernel;
    keel_kernel_row *kernel; /* [n_kernel] of every op of a layer, in the order of the model */
} keel_plan;

/* Plan a fit of `rows` rows on s; NULL: on one device a core. inputs [keel_model_input_count]: the
 * shapes of the rows, where dims of the model are open; only those are looked at; NULL: none are.
 *
 * Returns  KEEL_OK; KEEL_EARG, KEEL_EUNSUP, KEEL_ESHAPE, KEEL_ENOMEM as fit would
 * Owns     *out is freed with keel_plan_free
 * Threads  any, one at a time on a model
 * Cost     compiles the model; allocates weights but no activations */
keel_status keel_plan_make(keel_plan *out, const keel_model *m, const keel_strategy *s,
                           int64_t rows, int64_t batch_size, keel_end_of_data end,
                           const keel_shape *inputs);

/* Measure what reproducible steps cost: full steps of made-up rows on s, which is reproducible, and
 * the same without, in turn; medians. inputs: as for keel_plan_make.
 *
 * Returns  KEEL_OK; KEEL_EARG: s is not reproducible; as fit, KEEL_ENUMERIC also where made-up rows
 *          are nothing for this model
 * Owns     fills members of *p; the model's weights stay as they are
 * Threads  one at a time on a model and on a strategy
 * Cost     two seconds, or ten steps where those take longer; the memory of two fits */
keel_status keel_plan_measure(keel_plan *p, keel_model *m, keel_strategy *s,
                              const keel_shape *inputs);

/* Free what a plan holds; NULL and a zeroed one are fine.
 *
 * Returns  nothing
 * Owns     frees the members
 * Threads  any */
void keel_plan_free(keel_plan *p);

#ifdef __cplusplus
}
#endif
#endif
