/* keel fit: trains a model. Everything is checked before the first step. */
#include "fit_job.h"
#include "profile.h"
#include "progress.h"
#include "signals.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef keel_fit_choices options;
typedef keel_fit_job job;

/* ---- before ---------------------------------------------------------------------------------- */

static int check(const options *o)
{
    int code;
    if (o->validation && !isnan(o->validation_split))
        return keel_complain(EXIT_USAGE,
                             "--validation and --validation-split are both given; choose one");
    if (!isnan(o->validation_split) && !(o->validation_split > 0 && o->validation_split < 1))
        return keel_complain(EXIT_USAGE, "--validation-split %g: must be above 0 and below 1",
                             o->validation_split);
    const char *otherwise =
        keel_processes_started() > 1 ? NULL : "which mpirun starts; leave it out";
    code = keel_processes_check_compress(o->sharing.compress, o->devices.reproducible, otherwise);
    if (code < 0) code = keel_processes_check_shards(o->sharing.shard_optimizer, otherwise);
    if (code >= 0) return code;
    if (!keel_processes_first()) return -1; /* the first process writes all files */
    if ((code = keel_setup_output("-o", o->output, ".keras")) >= 0) return code;
    if (o->history && (code = keel_setup_output("--history", o->history, ".csv")) >= 0) return code;
    if (o->trace && (code = keel_setup_output("--trace", o->trace, ".json")) >= 0) return code;
    return o->input_report ? keel_setup_output("--input-report", o->input_report, ".svg") : -1;
}

/* Of all outputs, once the callbacks are made. */
static int check_apart(const job *j)
{
    const options *o = j->o;
    const keel_callback_list *l = &j->callbacks;
    const keel_setup_file inputs[] = { { "--data", o->data.data },
                                       { "--validation", o->validation },
                                       { "--labels", o->data.labels },
                                       { 0 } };
    keel_setup_file outputs[6 + KEEL_CALLBACKS_MAX + 1] = {
        { "-o", o->output },
        { "--history", o->history },
        { "--trace", o->trace },
        { "--input-report", o->input_report },
        { "--checkpoint", o->checkpoint, true },
        { "--save-best", l->best[0] ? l->best : NULL },
    };
    int n = 6, code;
    if (!keel_processes_first()) return -1; /* the first process writes all files */
    if (l->best[0] && (code = keel_setup_output("--save-best", l->best, ".keras")) >= 0)
        return code;
    for (int i = 0; i < l->own - (l->best[0] != 0); i++, n++) {
        outputs[n].option = l->made[i]->name;
        outputs[n].path = keel_callback_output(l->made[i], &outputs[n].is_folder);
    }
    code = keel_setup_apart(outputs, inputs);
    return code < 0 ? keel_setup_own_table("--history", o->history, "epoch,") : code;
}

static void print_line(void *context, const char *line)
{
    keel_meter_clear(context);
    keel_complain(0, "%s", line);
}

static void explain(void *context, const char *line)
{
    keel_meter_clear(context);
    printf("input    %s\n", line);
    fflush(stdout);
}

static bool interrupted(void *context)
{
    (void)context;
    return keel_interrupted();
}

/* "200" steps, "90s", "5m", "2h", or "epoch". */
static int read_every(keel_checkpoint_options *c, const char *text)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "s", 1 }, { "m", 60 }, { "h", 3600 } };
    const char *end;
    if (!text || !strcmp(text, "epoch")) return -1;
    const double n = keel_decimal(text, &end);
    if (end != text && n > 0 && n < 1e9) {
        c->every_steps = !*end && n == floor(n) ? (int64_t)n : 0;
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (!strcmp(end, units[i].unit)) c->every_seconds = n * units[i].seconds;
    }
    if (c->every_steps || c->every_seconds > 0) return -1;
    return keel_complain(EXIT_USAGE,
                         "--checkpoint-every '%s': a number of steps (200), a time (90s, 5m, 2h), "
                         "or epoch",
                         text);
}

static int read_checkpoint(job *j)
{
    const options *o = j->o;
    if (!o->checkpoint && (o->every || o->keep || o->resume))
        return keel_complain(EXIT_USAGE, "--%s needs --checkpoint DIR",
                             o->resume  ? "resume"
                             : o->every ? "checkpoint-every"
                                        : "keep");
    if (o->keep == 1)
        return keel_complain(EXIT_USAGE, "--keep 1: must be 2 or more, so that one is left if the "
                                         "newest is damaged");
    j->checkpoint =
        (keel_checkpoint_options){ KEEL_CHECKPOINT_OPTIONS, .folder = o->checkpoint,
                                   .keep = o->keep,         .resume = o->resume,
                                   .on_line = print_line,   .interrupted = interrupted };
    return read_every(&j->checkpoint, o->every);
}

static int check_validation(const options *o)
{
    const char *of = o->validation_steps         ? "steps"
                     : o->validation_freq != 1   ? "freq"
                     : o->validation_errors == 1 ? "errors"
                                                 : NULL;
    if (!of || o->validation || !isnan(o->validation_split)) return -1;
    return keel_complain(EXIT_USAGE,
                         "--validation-%s needs --validation SRC or --validation-split F", of);
}

/* Who opens validation data would wait for a process that does not. */
static int agree_to_validate(const options *o)
{
    const int64_t own = o->validation ? 1 : isnan(o->validation_split) ? 0 : 2;
    int64_t first = own;
    const int code = keel_processes_agree(&first);
    if (code >= 0 || first == own) return code;
    return keel_complain(EXIT_USAGE, "--validation or --validation-split is not that of the first "
                                     "process; start all with the same options");
}

static int open_data(job *j)
{
    const options *o = j->o;
    int code = agree_to_validate(o);
    if (code < 0) code = check_validation(o);
    if (code >= 0) return code;
    if (isnan(o->validation_split)) {
        if ((code = keel_setup_data(&j->data, o->data.data, KEEL_USE_TRAINING, &o->data,
                                    j->model)) >= 0)
            return code;
        if ((code = keel_setup_class_names(j->model, j->data)) >= 0) return code;
        return o->validation ? keel_setup_data(&j->validation, o->validation, KEEL_USE_VALIDATION,
                                               &o->data, j->model)
                             : -1;
    }
    if ((code = keel_setup_data(&j->whole, o->data.data, KEEL_USE_TRAINING, &o->data, j->model)) >=
        0)
        return code;
    const keel_status s = keel_dataset_split(j->whole, o->validation_split, (uint64_t)o->seed,
                                             &j->data, &j->validation);
    return s < 0 ? keel_complain_status(s) : keel_setup_class_names(j->model, j->data);
}

/* Each batch that the data comes in is a step, whatever its rows. */
static int check_end(const job *j)
{
    if (j->o->end == KEEL_KEEP || !keel_dataset_is_batched(j->data)) return -1;
    return keel_complain(EXIT_USAGE,
                         "--end is for rows that fit puts into batches, and this data comes in "
                         "batches: leave it out; the stage batch has an argument `end`");
}

/* A batch of the data, and no more rows than there are. */
static int share_by_speed(job *j)
{
    const int64_t n = keel_dataset_rows(j->data);
    const int64_t batch = j->o->batch_size ? j->o->batch_size : 32;
    const int64_t rows = n > 0 && n < batch ? n : batch;
    return keel_setup_share_by_speed(j->strategy, &j->o->devices, j->model, rows, NULL);
}

static int prepare(job *j, const char *path)
{
    int code;
    keel_processes_train(j->o->checkpoint);
    if ((code = keel_processes_begin(&j->o->processes, j->o->devices.list)) >= 0) return code;
    if ((code = check(j->o)) >= 0) return code;
    if ((code = keel_padding_read(&j->padding, &j->o->pad)) >= 0) return code;
    if ((code = keel_class_weights_read(&j->weights, j->o->class_weight)) >= 0) return code;
    if ((code = keel_setup_input_memory(&j->input_memory, j->o->input_memory)) >= 0) return code;
    if ((code = keel_setup_threads(&j->threads, j->o->threads, 64)) >= 0) return code;
    if ((code = read_checkpoint(j)) >= 0) return code;
    const bool validates = j->o->validation || !isnan(j->o->validation_split);
    code = keel_callbacks_make(&j->callbacks, &j->o->callbacks, j->o->output, validates);
    if (code < 0) code = check_apart(j);
    if (code >= 0) return code;
    if ((code = keel_setup_plugin(j->o->plugin)) >= 0) return code;
    if ((code = keel_setup_model(&j->model, path, j->o->weights, j->o->dtype, true)) >= 0)
        return code;
    if ((code = keel_class_weights_check(&j->weights, j->model)) >= 0) return code;
    if ((code = keel_keeper_begin(&j->keeper, j->o->output, j->o->history, j->model)) >= 0)
        return code;
    if ((code = keel_setup_compile(j->model, &j->o->compile, path)) >= 0) return code;
    if ((code = keel_keeper_try_room(&j->keeper)) >= 0) return code;
    if ((code = open_data(j)) >= 0) return code;
    if ((code = check_end(j)) >= 0) return code;
    if ((code = keel_class_weights_balance(&j->weights, j->model, j->data)) >= 0) return code;
    if ((code = keel_setup_outputs(j->model, j->data, true)) >= 0) return code;
    if (j->validation && (code = keel_setup_outputs(j->model, j->validation, false)) >= 0)
        return code;
    if ((code = keel_setup_devices(&j->strategy, &j->o->devices)) >= 0) return code;
    keel_strategy_recompute(j->strategy, j->o->recompute);
    if (keel_strategy_micro_batch(j->strategy, j->o->micro_batch) < 0)
        return keel_complain_status(KEEL_EARG);
    if ((code = share_by_speed(j)) >= 0) return code;
    return keel_sharing_set(&j->o->sharing, j->strategy);
}

/* ---- after ----------------------------------------------------------------------------------- */

static int keep(job *j)
{
    if (!keel_processes_first()) return EXIT_OK;
    const int code = keel_keeper_save(&j->keeper);
    if (code == EXIT_OK) printf("saved    %s\n", j->o->output);
    if (j->callbacks.best[0] && !access(j->callbacks.best, F_OK))
        printf("best     %s\n", j->callbacks.best);
    if (!j->o->history) return code;
    const keel_status s = keel_history_save(&j->history, j->o->history);
    if (s < 0) return keel_complain_status(s);
    printf("history  %s\n", j->o->history);
    return code;
}

/* The run ended before its time: keep what was learned beside the output, and say why it ended.
 * Returns the exit code. */
static int keep_part(job *j, keel_status s)
{
    const bool given_up = s == KEEL_EREMOTE; /* a signal may be why, or what followed */
    if (s >= 0 && j->signal)
        keel_keeper_rescue(&j->keeper, keel_signal_text(j->signal));
    else
        keel_keeper_rescue(&j->keeper, keel_error());
    return j->signal && (s >= 0 || given_up) ? 128 + j->signal : keel_exit_code(s);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int train(job *j)
{
    const options *o = j->o;
    keel_meter meter;
    keel_meter_begin(&meter, j->validation != NULL);
    j->checkpoint.context = &meter;
    keel_callbacks_add(&j->callbacks, &meter.callback);
    keel_callbacks_add(&j->callbacks, &j->keeper.callback);
    const keel_fit_options f = {
        KEEL_FIT_OPTIONS,
        .watch = keel_setup_watch(o->data.input_timeout),
        .bucket = j->padding.bucket,
        .bucket_count = j->padding.n,
        .programs = o->pad.programs,
        .counts = &j->counts,
        .batch_size = o->batch_size,
        .epochs = o->epochs,
        .initial_epoch = o->initial_epoch,
        .validation_freq = o->validation_freq,
        .validation_steps = o->validation_steps,
        .validation_warns = o->validation_errors == 1,
        .no_shuffle = o->no_shuffle,
        .reset_states = o->reset_states,
        .seed = (uint64_t)o->seed,
        .end = (keel_end_of_data)o->end,
        .steps_per_epoch = o->steps_per_epoch,
        .validation = j->validation,
        .class_weight = j->weights.n ? j->weights.weight : NULL,
        .class_weight_count = j->weights.n,
        .threads = j->threads,
        .profile = o->profile,
        .trace = keel_processes_first() ? o->trace : NULL,
        .float32 = (keel_float32)o->float32,
        .no_graphs = o->no_graphs,
        .callbacks = j->callbacks.at,
        .checkpoint = &j->checkpoint,
        .input_memory = j->input_memory,
        .explain_input = o->explain_input ? explain : NULL,
        .explain_context = &meter,
        .explain_devices = o->quiet ? NULL : keel_meter_devices,
        .explain_devices_context = &meter,
        .input_report = keel_processes_first() ? o->input_report : NULL,
    };
    keel_fit_begin(j);
    fflush(stdout);
    if (!keel_signals_catch(keel_keeper_quit, &j->keeper))
        return keel_complain(EXIT_FAILED, "no thread could be started for signals");
    keel_setup_watch_rescue(keel_keeper_leave, &j->keeper);
    j->before = keel_since_start();
    const keel_status s = keel_fit(j->model, j->strategy, j->data, &f, &j->history);
    keel_meter_clear(&meter);
    j->signal = keel_signal_got();
    if (s >= 0 && j->history.stopped) j->signal = keel_processes_signal(j->signal);
    /* save the model as the output even if the trace could not be written */
    if (!j->history.complete || (j->signal && j->signal != SIGINT && j->history.stopped))
        return keep_part(j, s);
    const int failed = s < 0 ? keel_keeper_complain(&j->keeper, s) : EXIT_OK;
    keel_fit_report(j);
    if (j->history.profile) keel_profile_print(stdout, j->history.profile);
    const int code = keep(j);
    if (failed != EXIT_OK) return failed;
    return code == EXIT_OK && j->signal && j->history.stopped ? EXIT_STOPPED : code;
}

static int run(const void *given, int n_arg, char **arg)
{
    static job j; /* larger than some stacks */
    j.o = given;
    (void)n_arg;
    int code = prepare(&j, arg[0]);
    if (code < 0) code = train(&j);
    keel_keeper_end(&j.keeper);
    keel_callbacks_free(&j.callbacks);
    keel_class_weights_free(&j.weights);
    keel_history_free(&j.history);
    code = keel_processes_end(j.strategy, code);
    keel_keeper_stand_in(&j.keeper);
    keel_dataset_destroy(j.data);
    keel_dataset_destroy(j.validation);
    keel_dataset_destroy(j.whole);
    keel_model_destroy(j.model);
    return code;
}

static const keel_option table[] = {
    KEEL_DATA_ROWS(options, data, true),
    KEEL_PAD_ROWS(options, pad),
    KEEL_OPTION_ROW(options, output, "output", 'o', true, KEEL_OPTION_TEXT, "OUT.keras", NULL,
                    "the trained model"),
    KEEL_OPTION_ROW(
        options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
        "rows per step, over all devices (default: 32; of data that comes in batches, those)"),
    KEEL_OPTION_ROW(options, epochs, "epochs", 0, false, KEEL_OPTION_POSITIVE, "N", "1",
                    "how many"),
    KEEL_OPTION_ROW(options, initial_epoch, "initial-epoch", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "epochs of earlier runs: go on with the number, and the order of rows, of the "
                    "next, up to --epochs"),
    KEEL_DEVICES_ROWS(options, devices),
    KEEL_PROCESSES_ROWS(options, processes),
    KEEL_COMPRESS_ROW(options, sharing.compress),
    KEEL_SHARD_ROW(options, sharing.shard_optimizer),
    KEEL_PLUGIN_ROW(options, plugin),
    KEEL_WEIGHTS_ROW(options, weights),
    KEEL_DTYPE_ROW(options, dtype),
    KEEL_FLOAT32_ROW(options, float32),
    KEEL_RECOMPUTE_ROW(options, recompute),
    KEEL_MICRO_BATCH_ROW(options, micro_batch),
    KEEL_GRAPHS_ROW(options, no_graphs),
    KEEL_OPTION_ROW(options, validation, "validation", 0, false, KEEL_OPTION_ONCE, "SRC", NULL,
                    "evaluate this data after each epoch (of a directory with MNIST's files: those "
                    "named t10k)"),
    KEEL_OPTION_ROW(options, validation_split, "validation-split", 0, false, KEEL_OPTION_REAL, "F",
                    NULL,
                    "use this part of the data for validation (of a folder, the files that Keras's "
                    "image_dataset_from_directory takes for this seed; of files, the last rows)"),
    KEEL_OPTION_ROW(options, validation_freq, "validation-freq", 0, false, KEEL_OPTION_POSITIVE,
                    "N", "1", "epochs from one validation to the next"),
    KEEL_OPTION_ROW(options, validation_steps, "validation-steps", 0, false, KEEL_OPTION_POSITIVE,
                    "N", NULL, "steps of each validation (default: all its data)"),
    KEEL_OPTION_ROW(options, validation_errors, "validation-errors", 0, false, KEEL_OPTION_CHOICE,
                    "fail|warn", "fail",
                    "rows of the validation that turn out wrong while the model trains end the "
                    "run (fail), or only that validation (warn)"),
    KEEL_CALLBACKS_ROWS(options, callbacks),
    KEEL_OPTION_ROW(options, seed, "seed", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "seed of shuffling, dropout and the split"),
    KEEL_OPTION_ROW(options, no_shuffle, "no-shuffle", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "keep the order of the rows"),
    KEEL_OPTION_ROW(options, reset_states, "reset-states", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "set the states of stateful layers to 0 before each epoch and validation"),
    KEEL_END_ROW(options, end,
                 "rows that do not fill a step: trained as a short step (keep), left out (drop), "
                 "first in the next epoch (carry), filled up from the start (wrap), or refused "
                 "(error)"),
    KEEL_OPTION_ROW(options, steps_per_epoch, "steps-per-epoch", 0, false, KEEL_OPTION_POSITIVE,
                    "N", NULL, "steps per epoch (default: all the data)"),
    KEEL_OPTIMIZER_ROWS(options, compile),
    KEEL_OPTION_ROW(
        options, compile.undecayed, "exclude-from-weight-decay", 0, false, KEEL_OPTION_ONCE,
        "NAMES", NULL,
        "weights without weight decay, separated by commas: bias,gamma for all with such a last "
        "name, dense/kernel for one; a model's file does not have them"),
    KEEL_LOSS_ROWS(options, compile),
    KEEL_OPTION_ROW(
        options, class_weight, "class-weight", 0, false, KEEL_OPTION_TEXT, "W,W,...", NULL,
        "weight of each class, in the order of labels; auto: so that all classes weigh the "
        "same"),
    KEEL_OPTION_ROW(options, history, "history", 0, false, KEEL_OPTION_TEXT, "H.csv", NULL,
                    "write loss and metrics of each epoch as CSV"),
    KEEL_OPTION_ROW(options, checkpoint, "checkpoint", 0, false, KEEL_OPTION_TEXT, "DIR", NULL,
                    "write checkpoints to this folder while training, from which --resume goes on "
                    "to the same bits; each is also a model"),
    KEEL_OPTION_ROW(options, every, "checkpoint-every", 0, false, KEEL_OPTION_TEXT, "N", NULL,
                    "how often: a number of steps (200), a time (90s, 5m, 2h), or epoch (default: "
                    "epoch)"),
    KEEL_OPTION_ROW(options, keep, "keep", 0, false, KEEL_OPTION_POSITIVE, "K", NULL,
                    "how many checkpoints are kept, 2 at least (default: 2)"),
    KEEL_OPTION_ROW(options, resume, "resume", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "go on from the newest checkpoint of the same run; without one, begin anew"),
    KEEL_OPTION_ROW(options, threads, "threads", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "threads that read data (default: chosen by Keel)"),
    KEEL_INPUT_MEMORY_ROW(options, input_memory),
    KEEL_OPTION_ROW(options, explain_input, "explain-input", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "tell each change of the number of threads that read, and of how far they read "
                    "ahead, and why"),
    KEEL_OPTION_ROW(options, input_report, "input-report", 0, false, KEEL_OPTION_TEXT, "I.svg",
                    NULL,
                    "draw the pipeline with its speeds and what steps wait for, every two seconds "
                    "and at the end"),
    KEEL_OPTION_ROW(options, profile, "profile", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "print the time of each layer, forward and backward, and of each core"),
    KEEL_OPTION_ROW(options, trace, "trace", 0, false, KEEL_OPTION_TEXT, "T.json", NULL,
                    "write the time of each kernel call, for chrome://tracing or Perfetto"),
    { 0 },
};

const keel_command keel_command_fit = {
    .name = "fit",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Train a model",
    .help = "The model is a file saved by Keras or made by keel new. Optimizer, loss and metrics "
            "are those of the file, unless options replace them. The result is the same for any "
            "number of devices, also if the rows do not divide evenly. Ctrl-C stops after the "
            "current step and saves the model. A second Ctrl-C, SIGTERM, SIGHUP, a closed pipe or "
            "a failure of any kind end the run too; what was learned until the last step is then "
            "saved beside the output, as OUT.interrupted.keras, and the error names that file.\n"
            "Started by mpirun, mpiexec or srun, on one machine or on several, the processes share "
            "each step: --devices are those of each process, --batch-size is of all, and the "
            "result is that of one process with all devices. The model and the data must have the "
            "same names everywhere; the first process prints, and writes all files. Processes of "
            "one machine act as one, unless --apart is given.",
    .example =
        "keel fit m.keras --data photos/ --validation-split 0.2 --batch-size 64 --epochs 5 \\\n"
        "    --devices cpu:0-3 -o trained.keras\n"
        "mpirun -n 4 keel fit m.keras --data photos/ --batch-size 64 -o trained.keras",
    .options = table,
    .size = sizeof(options),
    .processes = KEEL_TOGETHER,
    .run = run,
};
