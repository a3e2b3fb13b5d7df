/* keel predict: writes the model's outputs for each row to an .npy file. */
#include "processes.h"
#include "progress.h"
#include "setup.h"
#include "shapes.h"
#include "tables.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *weights, *plugin, *input_memory;
    keel_data_options data;
    const char *output, *classes;
    keel_devices_options devices;
    bool no_graphs;
    keel_processes_options processes;
    keel_pad_options pad;
    int64_t batch_size, show;
    int dtype, float32;
} options;

typedef struct job {
    keel_model *model;
    keel_padding padding;
    int64_t input_memory;
    keel_program_counts counts;
    keel_dataset *data;
    keel_strategy *strategy;
    int n_out;
    keel_tensor *outputs; /* [n_out] */
    keel_tensor out;      /* the first, borrowed */
    bool logits, likely;  /* which it has; probabilities, or they can be made of it */
} job;

/* ---- classes --------------------------------------------------------------------------------- */

static double at(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((const double *)t->data)[i]
                                    : (double)((const float *)t->data)[i];
}

typedef struct chosen {
    int64_t label;
    double output; /* the output of that class */
} chosen;

/* The part of output k in those of its row, if they are logits. */
static double probability(const job *j, int64_t row, int64_t k)
{
    const int64_t width = j->out.shape.dim[1];
    const char *loss = keel_model_loss_name(j->model, 0);
    const double x = at(&j->out, row * width + k);
    double sum = 0;
    if (width == 1 || !strncmp(loss, "Binary", 6)) return 1 / (1 + exp(-x));
    for (int64_t i = 0; i < width; i++) sum += exp(at(&j->out, row * width + i) - x);
    return 1 / sum;
}

/* The most likely class of a row. A single output is the probability of class 1; one that is
 * neither that nor a logit, as of a hinge loss, has class 1 above 0. */
static chosen choose(const job *j, int64_t row)
{
    const int64_t width = j->out.shape.dim[1];
    chosen c = { 0, at(&j->out, row * width) };
    if (width == 1) {
        if (j->logits) c.output = probability(j, row, 0);
        c.label = c.output > (j->likely ? 0.5 : 0);
        if (!c.label && j->likely) c.output = 1 - c.output;
        return c;
    }
    for (int64_t k = 1; k < width; k++)
        if (at(&j->out, row * width + k) > c.output)
            c = (chosen){ k, at(&j->out, row * width + k) };
    if (j->logits) c.output = probability(j, row, c.label);
    return c;
}

/* True if each row has probabilities: from 0 to 1, with a sum of 1. */
static bool are_probabilities(const keel_tensor *t)
{
    const int64_t width = t->shape.dim[1];
    for (int64_t i = 0; i < t->shape.dim[0]; i++) {
        double sum = 0;
        for (int64_t k = 0; k < width; k++) {
            const double p = at(t, i * width + k);
            if (!(p >= 0 && p <= 1 + 1e-6)) return false;
            sum += p;
        }
        if (width > 1 && fabs(sum - 1) > 1e-2) return false;
    }
    return true;
}

static void quoted(FILE *f, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, f);
        return;
    }
    putc('"', f);
    for (; *text; text++) {
        if (*text == '"') putc('"', f);
        putc(*text, f);
    }
    putc('"', f);
}

static bool write_classes(FILE *f, const void *context)
{
    const job *j = context;
    fprintf(f, "row,class,%s\n", j->likely ? "probability" : "output");
    for (int64_t i = 0; i < j->out.shape.dim[0]; i++) {
        const chosen c = choose(j, i);
        const char *row = keel_dataset_row_name(j->data, i);
        const char *name = keel_setup_class(j->model, j->data, c.label);
        if (row)
            quoted(f, row);
        else
            fprintf(f, "%lld", (long long)i);
        putc(',', f);
        if (name)
            quoted(f, name);
        else
            fprintf(f, "%lld", (long long)c.label);
        fprintf(f, ",%.6g\n", c.output);
    }
    return !ferror(f);
}

/* Classes of several outputs are those of the first. */
static void tell_output(const job *j, const char *path)
{
    char a[256], b[4096];
    if (j->n_out > 1)
        printf("%s: classes of '%s', the first of %d outputs\n", keel_printable(b, sizeof b, path),
               keel_printable(a, sizeof a, keel_model_output_name(j->model, 0)), j->n_out);
}

/* Print the first rows. */
static void show(const job *j, int64_t most)
{
    char a[256], of[300] = "";
    const int64_t width = j->out.shape.rank == 2 ? j->out.shape.dim[1] : 0;
    if (j->n_out > 1)
        snprintf(of, sizeof of, " of '%s'",
                 keel_printable(a, sizeof a, keel_model_output_name(j->model, 0)));
    if (width < 1 && most > 0) printf("no row%s is shown: it is not one number per class\n", of);
    if (width < 1) return;
    if (*of) printf("rows%s, the first of %d outputs:\n", of, j->n_out);
    for (int64_t i = 0; i < j->out.shape.dim[0] && i < most; i++) {
        const bool named = keel_setup_class(j->model, j->data, 0) != NULL;
        const chosen c = width > 1 || named ? choose(j, i) : (chosen){ 0, at(&j->out, i) };
        const char *row = keel_dataset_row_name(j->data, i);
        const char *name = keel_setup_class(j->model, j->data, c.label);
        if (row)
            printf("%s: ", keel_printable(a, sizeof a, row));
        else
            printf("row %lld: ", (long long)i);
        if (name)
            printf("%s ", keel_printable(a, sizeof a, name));
        else if (width > 1)
            printf("class %lld ", (long long)c.label);
        printf("%.4g\n", c.output);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_classes(const keel_model *m, const char *path)
{
    keel_shape y;
    const keel_status s = keel_model_output_shape(m, 0, &y);
    if (s < 0) return keel_complain_status(s);
    if (y.rank == 1) return -1;
    return keel_complain(EXIT_USAGE, "--classes: the output of %s is not one number per class",
                         path);
}

static int prepare(job *j, const options *o, const char *path)
{
    int code;
    const keel_setup_file outputs[] = { { "-o", o->output }, { "--classes", o->classes }, { 0 } };
    const keel_setup_file inputs[] = { { "--data", o->data.data }, { 0 } };
    if ((code = keel_setup_no_auto_share(&o->devices)) >= 0) return code;
    if ((code = keel_processes_begin(&o->processes, o->devices.list)) >= 0) return code;
    if ((code = keel_padding_read(&j->padding, &o->pad)) >= 0) return code;
    if ((code = keel_setup_input_memory(&j->input_memory, o->input_memory)) >= 0) return code;
    if (keel_processes_first()) {
        if ((code = keel_setup_output("-o", o->output, ".npy")) >= 0) return code;
        if (o->classes && (code = keel_setup_output("--classes", o->classes, ".csv")) >= 0)
            return code;
        if ((code = keel_setup_apart(outputs, inputs)) >= 0) return code;
        code = keel_setup_own_table("--classes", o->classes, "row,class,");
        if (code >= 0) return code;
    }
    if ((code = keel_setup_plugin(o->plugin)) >= 0) return code;
    if ((code = keel_setup_model(&j->model, path, o->weights, o->dtype, false)) >= 0) return code;
    if (o->classes && (code = check_classes(j->model, path)) >= 0) return code;
    if ((code = keel_setup_data(&j->data, o->data.data, KEEL_USE_INPUTS, &o->data, j->model)) >= 0)
        return code;
    return keel_setup_devices(&j->strategy, &o->devices);
}

/* The file of output k: OUT.npy, or with several outputs OUT_name.npy. */
static void output_path(const job *j, const char *path, int k, char *out, size_t size)
{
    const int stem = (int)(strlen(path) - strlen(".npy"));
    if (j->n_out == 1) {
        snprintf(out, size, "%s", path);
        return;
    }
    snprintf(out, size, "%.*s_%s.npy", stem, path, keel_model_output_name(j->model, k));
    for (char *c = out + stem + 1; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *c))
            *c = '_';
}

static void print_file(const char *path, const keel_tensor *t, double seconds)
{
    char a[KEEL_NUMBER_MAX], shown[4096];
    printf("%s: %s", keel_printable(shown, sizeof shown, path), keel_grouped(a, t->shape.dim[0]));
    for (int i = 1; i < t->shape.rank; i++) printf(" x %s", keel_grouped(a, t->shape.dim[i]));
    printf(" %s in %s\n", t->dtype == KEEL_FLOAT64 ? "float64" : "float32",
           keel_seconds_text(a, seconds));
}

static int save(const job *j, const options *o, double seconds)
{
    char path[4096];
    for (int k = 0; k < j->n_out; k++) {
        const keel_tensor *t = &j->outputs[k];
        output_path(j, o->output, k, path, sizeof path);
        const int code = keel_save_npy(t, path);
        if (code != EXIT_OK) return code;
        print_file(path, t, seconds);
    }
    return EXIT_OK;
}

/* A table without --label and --inputs gives all its columns, and so the labels, to the model. */
static int complain(const options *o, keel_status s)
{
    if (s != KEEL_ESHAPE || o->data.label || o->data.inputs || !keel_tables_is(o->data.data))
        return keel_complain_status(s);
    return keel_complain(keel_exit_code(s),
                         "%s; --label names a column that is no input, --inputs those that are",
                         keel_error());
}

/* Straight into the files, so that no more than a step's rows are in memory; by several processes
 * each its own. */
static int predict_files(job *j, const options *o, const keel_fit_options *f, keel_meter *meter)
{
    enum { NAME = 4096 };
    const double start = keel_now();
    const int n = j->n_out;
    char *text = calloc((size_t)n, NAME);
    const char **path = calloc((size_t)n, sizeof *path);
    keel_tensor *made = calloc((size_t)n, sizeof *made);
    int code = text && path && made ? EXIT_OK : keel_complain(EXIT_FAILED, "out of memory");
    if (code == EXIT_OK) {
        for (int k = 0; k < n; k++) {
            output_path(j, o->output, k, text + (size_t)k * NAME, NAME);
            path[k] = text + (size_t)k * NAME;
        }
        const keel_status s = keel_predict_npy(j->model, j->strategy, j->data, f, path, made);
        keel_meter_clear(meter);
        if (s < 0) code = complain(o, s);
    }
    for (int k = 0; k < n && code == EXIT_OK; k++)
        print_file(path[k], &made[k], keel_now() - start);
    free(text);
    free(path);
    free(made);
    return code;
}

static int predict(job *j, const options *o)
{
    keel_meter meter;
    keel_meter_begin(&meter, false);
    const keel_fit_options f = {
        KEEL_FIT_OPTIONS,
        .watch = keel_setup_watch(o->data.input_timeout),
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
    if (!o->classes && !o->show) {
        j->n_out = keel_model_output_count(j->model);
        const int code = predict_files(j, o, &f, &meter);
        if (code != EXIT_OK || !keel_processes_first()) return code;
        keel_programs_print(&j->counts, &o->pad);
        keel_setup_warnings(j->data);
        return code;
    }
    j->outputs = calloc((size_t)keel_model_output_count(j->model), sizeof *j->outputs);
    if (!j->outputs) return keel_complain(EXIT_FAILED, "out of memory");
    const keel_status s = keel_predict_outputs(j->model, j->strategy, j->data, &f, j->outputs);
    keel_meter_clear(&meter);
    if (s < 0) return complain(o, s);
    j->n_out = keel_model_output_count(j->model);
    j->out = j->outputs[0];
    if (!keel_processes_first()) return EXIT_OK;
    j->logits = keel_model_loss_takes_logits(j->model, 0);
    j->likely = j->logits || (j->out.shape.rank == 2 && are_probabilities(&j->out));
    int code = EXIT_OK;
    if (o->classes) code = keel_save_whole(o->classes, write_classes, j);
    if (code != EXIT_OK) return code;
    if (o->classes) tell_output(j, o->classes);
    show(j, o->show);
    code = save(j, o, keel_now() - start);
    keel_programs_print(&j->counts, &o->pad);
    keel_setup_warnings(j->data);
    return code;
}

static int run(const void *given, int n_arg, char **arg)
{
    job j = { 0 };
    (void)n_arg;
    int code = prepare(&j, given, arg[0]);
    if (code < 0) code = predict(&j, given);
    for (int k = 0; j.outputs && k < j.n_out; k++) keel_tensor_free(&j.outputs[k]);
    free(j.outputs);
    code = keel_processes_end(j.strategy, code);
    keel_dataset_destroy(j.data);
    keel_model_destroy(j.model);
    return code;
}

static const keel_option table[] = {
    KEEL_DATA_ROWS(options, data, true),
    KEEL_PAD_ROWS(options, pad),
    KEEL_OPTION_ROW(options, output, "output", 'o', true, KEEL_OPTION_TEXT, "OUT.npy", NULL,
                    "the outputs, one row for each row of the data; with several outputs, one "
                    "file OUT_name.npy each"),
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
    KEEL_OPTION_ROW(options, classes, "classes", 0, false, KEEL_OPTION_TEXT, "C.csv", NULL,
                    "also write the most likely class of each row: its name, the class, the "
                    "probability"),
    KEEL_OPTION_ROW(options, show, "show", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "print the most likely class of the first N rows"),
    { 0 },
};

const keel_command keel_command_predict = {
    .name = "predict",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Write the model's outputs for each row",
    .help = "Row i of the file is the output for row i of the data. Images are ordered by class, "
            "then by path. Labels are not read. In a table, --label still names their column, so "
            "that it is not taken as an input.",
    .example = "keel predict trained.keras --data held-out/ -o out.npy",
    .options = table,
    .size = sizeof(options),
    .processes = KEEL_TOGETHER,
    .run = run,
};
