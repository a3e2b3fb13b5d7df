/* keel evaluate: loss and metrics of a model over data, each row once. */
#include "processes.h"
#include "progress.h"
#include "setup.h"
#include "shapes.h"
#include <math.h>
#include <string.h>

typedef struct options {
    const char *weights, *plugin, *input_memory;
    keel_data_options data;
    keel_pad_options pad;
    keel_compile_options compile;
    keel_devices_options devices;
    bool no_graphs;
    keel_processes_options processes;
    double validation_split;
    int64_t batch_size, seed;
    int dtype, float32;
} options;

typedef struct job {
    keel_model *model;
    keel_padding padding;
    int64_t input_memory;
    keel_program_counts counts;
    keel_dataset *whole, *training, *part; /* part: the validation part, if a split is given */
    keel_strategy *strategy;
} job;

static int prepare(job *j, const options *o, const char *path)
{
    int code;
    keel_status s = KEEL_OK;
    if ((code = keel_setup_no_auto_share(&o->devices)) >= 0) return code;
    if ((code = keel_processes_begin(&o->processes, o->devices.list)) >= 0) return code;
    if ((code = keel_padding_read(&j->padding, &o->pad)) >= 0) return code;
    if ((code = keel_setup_input_memory(&j->input_memory, o->input_memory)) >= 0) return code;
    if ((code = keel_setup_plugin(o->plugin)) >= 0) return code;
    if ((code = keel_setup_model(&j->model, path, o->weights, o->dtype, false)) >= 0) return code;
    keel_compile_options compile = o->compile;
    if (keel_model_refused(j->model))
        compile.optimizer = "sgd"; /* required by compile, but not used here */
    if ((code = keel_setup_compile(j->model, &compile, path)) >= 0) return code;
    if ((code = keel_setup_data(&j->whole, o->data.data, KEEL_USE_LABELED, &o->data, j->model)) >=
        0)
        return code;
    if ((code = keel_setup_outputs(j->model, j->whole, false)) >= 0) return code;
    if (!isnan(o->validation_split))
        s = keel_dataset_split(j->whole, o->validation_split, (uint64_t)o->seed, &j->training,
                               &j->part);
    return s < 0 ? keel_complain_status(s) : keel_setup_devices(&j->strategy, &o->devices);
}

/* A weight that has an element that is not finite; NULL: none. */
static const char *broken_weight(const keel_model *m)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        const char *name = keel_model_weight_name(m, i);
        keel_tensor t;
        bool finite = true;
        if (keel_model_get_weight(m, name, &t) < 0) continue;
        int64_t n = t.data ? 1 : 0;
        for (int d = 0; d < t.shape.rank; d++) n *= t.shape.dim[d];
        for (int64_t k = 0; finite && k < n; k++)
            finite = t.dtype == KEEL_FLOAT32   ? isfinite(((const float *)t.data)[k])
                     : t.dtype == KEEL_FLOAT64 ? isfinite(((const double *)t.data)[k])
                                               : true;
        keel_tensor_free(&t);
        if (!finite) return name;
    }
    return NULL;
}

/* keel fit stops at such a loss; an evaluation has its numbers, as in Keras, and says why. */
static void tell_broken_loss(const keel_model *m, const keel_logs *logs)
{
    char shown[256];
    bool broken = false;
    for (int i = 0; i < logs->count; i++)
        broken = broken || (!strcmp(logs->name[i], "loss") && !isfinite(logs->value[i]));
    if (!broken) return;
    const char *weight = broken_weight(m);
    if (weight)
        printf("the loss is not finite, since weight '%s' of the model is not\n",
               keel_printable(shown, sizeof shown, weight));
    else
        puts("the loss is not finite, and all weights are: a row has NaN or infinity, or its "
             "values became too large");
}

static int evaluate(job *j, const options *o)
{
    keel_meter meter;
    keel_logs logs = { 0 };
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    keel_meter_begin(&meter, false);
    const keel_fit_options f = {
        KEEL_FIT_OPTIONS,
        .watch = keel_setup_watch(o->data.input_timeout),
        .seed = (uint64_t)o->seed, /* of a pipeline's shuffle, too */
        .bucket = j->padding.bucket,
        .bucket_count = j->padding.n,
        .programs = o->pad.programs,
        .counts = &j->counts,
        .batch_size = o->batch_size,
        .input_memory = j->input_memory,
        .float32 = (keel_float32)o->float32,
        .no_graphs = o->no_graphs,
        .explain_devices = keel_meter_devices,
        .explain_devices_context = &meter,
        .callbacks = KEEL_CALLBACKS(&meter.callback),
    };
    const double start = keel_now();
    const keel_status s =
        keel_evaluate(j->model, j->strategy, j->part ? j->part : j->whole, &f, &logs);
    keel_meter_clear(&meter);
    if (s < 0) return keel_complain_status(s);
    for (int i = 0; i < logs.count; i++) {
        char name[256];
        printf("%-24s %.6g\n", keel_printable(name, sizeof name, logs.name[i]), logs.value[i]);
    }
    printf("%-24s %s in %s\n", "rows", keel_grouped(a, meter.rows),
           keel_seconds_text(b, keel_now() - start));
    tell_broken_loss(j->model, &logs);
    keel_programs_print(&j->counts, &o->pad);
    keel_setup_warnings(j->whole);
    return EXIT_OK;
}

static int run(const void *given, int n_arg, char **arg)
{
    job j = { 0 };
    (void)n_arg;
    int code = prepare(&j, given, arg[0]);
    if (code < 0) code = evaluate(&j, given);
    code = keel_processes_end(j.strategy, code);
    keel_dataset_destroy(j.part);
    keel_dataset_destroy(j.training);
    keel_dataset_destroy(j.whole);
    keel_model_destroy(j.model);
    return code;
}

static const keel_option table[] = {
    KEEL_DATA_ROWS(options, data, true),
    KEEL_PAD_ROWS(options, pad),
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "rows per step (default: 32; of data that comes in batches, those)"),
    KEEL_INPUT_MEMORY_ROW(options, input_memory),
    KEEL_DEVICES_ROWS(options, devices),
    KEEL_PROCESSES_ROWS(options, processes),
    KEEL_PLUGIN_ROW(options, plugin),
    KEEL_WEIGHTS_ROW(options, weights),
    KEEL_DTYPE_ROW(options, dtype),
    KEEL_FLOAT32_ROW(options, float32),
    KEEL_GRAPHS_ROW(options, no_graphs),
    KEEL_OPTION_ROW(
        options, validation_split, "validation-split", 0, false, KEEL_OPTION_REAL, "F", NULL,
        "evaluate only the part that keel fit used for validation with this F and --seed"),
    KEEL_OPTION_ROW(options, seed, "seed", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "seed of the split"),
    KEEL_LOSS_ROWS(options, compile),
    { 0 },
};

const keel_command keel_command_evaluate = {
    .name = "evaluate",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Print loss and metrics over data",
    .help = "Each row counts once, for any batch size and number of devices.",
    .example = "keel evaluate trained.keras --data held-out/",
    .options = table,
    .size = sizeof(options),
    .processes = KEEL_TOGETHER,
    .run = run,
};
