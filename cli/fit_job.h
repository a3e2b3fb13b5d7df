/* One keel fit: what was asked for, and what it has. Shared by fit.c, which does it, and
 * _fit_report.c, which tells of it. */
#ifndef KEEL_CLI_FIT_JOB_H
#define KEEL_CLI_FIT_JOB_H
#include "callbacks.h"
#include "class_weights.h"
#include "keep.h"
#include "processes.h"
#include "setup.h"
#include "shapes.h"

typedef struct keel_fit_choices {
    const char *weights, *plugin;
    keel_data_options data;
    keel_pad_options pad;
    keel_compile_options compile;
    keel_devices_options devices;
    bool no_graphs, recompute;
    int64_t micro_batch; /* 0: none */
    keel_processes_options processes;
    const char *validation, *history, *output, *class_weight, *trace;
    const char *checkpoint, *every;
    const char *input_memory, *input_report;
    keel_callbacks_options callbacks;
    int64_t initial_epoch, validation_freq, validation_steps;
    int validation_errors;
    int64_t keep;
    double validation_split;
    int64_t batch_size, epochs, seed, steps_per_epoch, threads;
    int end, dtype, float32;
    keel_sharing sharing;
    bool no_shuffle, reset_states, quiet, profile, resume, explain_input;
} keel_fit_choices;

typedef struct keel_fit_job {
    const keel_fit_choices *o;
    keel_model *model;
    keel_padding padding;
    keel_program_counts counts;
    keel_dataset *data, *validation, *whole;
    keel_strategy *strategy;
    keel_history history;
    keel_keeper keeper;
    keel_checkpoint_options checkpoint;
    keel_callback_list callbacks;
    double before; /* seconds from the start of the process to keel_fit */
    keel_class_weights weights;
    int64_t input_memory;
    int threads;
    int signal; /* that ended the run, here or in another process; 0: none */
} keel_fit_job;

/* Prints what will be trained, on what, and what is unusual about it. */
void keel_fit_begin(const keel_fit_job *j);
/* Prints the rows of each device, memory and time, and what there is to note. */
void keel_fit_report(const keel_fit_job *j);

#endif
