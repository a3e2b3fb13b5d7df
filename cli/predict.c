/* keel predict: the model's outputs for every row, as an .npy file. */
#include "progress.h"
#include "setup.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    keel_data_options data;
    const char *devices, *output;
    int64_t batch_size, show;
    int dtype, float32;
} options;

typedef struct job {
    keel_model *model;
    keel_dataset *data;
    keel_strategy *strategy;
    keel_tensor out;
} job;

/* ---- the first rows, for the eye ------------------------------------------------------------- */

static double at(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((const double *)t->data)[i]
                                    : (double)((const float *)t->data)[i];
}

static void show(const job *j, int64_t most)
{
    const int64_t width = j->out.shape.rank == 2 ? j->out.shape.dim[1] : 0;
    if (width < 1) return;
    for (int64_t i = 0; i < j->out.shape.dim[0] && i < most; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < width; k++)
            if (at(&j->out, i * width + k) > at(&j->out, i * width + best)) best = k;
        const char *row = keel_dataset_row_name(j->data, i);
        const char *name = width > 1 ? keel_dataset_class_name(j->data, best) : NULL;
        if (row)
            printf("%s: ", row);
        else
            printf("row %lld: ", (long long)i);
        if (name)
            printf("%s ", name);
        else if (width > 1)
            printf("class %lld ", (long long)best);
        printf("%.4g\n", at(&j->out, i * width + best));
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int prepare(job *j, const options *o, const char *path)
{
    int code;
    const keel_setup_file outputs[] = { { "-o", o->output }, { 0 } };
    const keel_setup_file inputs[] = { { "--data", o->data.data }, { 0 } };
    if ((code = keel_setup_output("-o", o->output, ".npy")) >= 0) return code;
    if ((code = keel_setup_apart(outputs, inputs)) >= 0) return code;
    if ((code = keel_setup_model(&j->model, path, o->dtype)) >= 0) return code;
    if ((code = keel_setup_data(&j->data, o->data.data, KEEL_USE_INPUTS, &o->data, j->model)) >= 0)
        return code;
    return keel_setup_devices(&j->strategy, o->devices);
}

static int predict(job *j, const options *o)
{
    char a[KEEL_NUMBER_MAX];
    keel_meter meter;
    keel_meter_begin(&meter, false);
    const keel_fit_options f = {
        KEEL_FIT_OPTIONS,
        .batch_size = o->batch_size,
        .float32 = (keel_float32)o->float32,
        .on_progress = keel_meter_tell,
        .context = &meter,
    };
    const double start = keel_now();
    const keel_status s = keel_predict(j->model, j->strategy, j->data, &f, &j->out);
    keel_meter_clear(&meter);
    if (s < 0) return keel_complain_status(s);
    const int code = keel_save_npy(&j->out, o->output);
    if (code != EXIT_OK) return code;
    show(j, o->show);
    printf("%s: %s", o->output, keel_grouped(a, j->out.shape.dim[0]));
    for (int i = 1; i < j->out.shape.rank; i++)
        printf(" x %s", keel_grouped(a, j->out.shape.dim[i]));
    printf(" %s in %s\n", j->out.dtype == KEEL_FLOAT64 ? "float64" : "float32",
           keel_seconds_text(a, keel_now() - start));
    return EXIT_OK;
}

static int run(const void *given, int n_arg, char **arg)
{
    job j = { 0 };
    (void)n_arg;
    int code = prepare(&j, given, arg[0]);
    if (code < 0) code = predict(&j, given);
    keel_tensor_free(&j.out);
    keel_strategy_destroy(j.strategy);
    keel_dataset_destroy(j.data);
    keel_model_destroy(j.model);
    return code;
}

static const keel_option table[] = {
    KEEL_DATA_ROWS(options, data, true),
    KEEL_OPTION_ROW(options, output, "output", 'o', true, KEEL_OPTION_TEXT, "OUT.npy", NULL,
                    "the outputs, a row of them for each row of the data"),
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", "32",
                    "rows of a step"),
    KEEL_DEVICES_ROW(options, devices),
    KEEL_DTYPE_ROW(options, dtype),
    KEEL_FLOAT32_ROW(options, float32),
    KEEL_OPTION_ROW(options, show, "show", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "print the most likely class of the first N rows"),
    { 0 },
};

const keel_command keel_command_predict = {
    .name = "predict",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Write the model's outputs for every row",
    .help = "Row i of the file is the output for row i of the data; images are in the order of "
            "their class, then of their path. Labels are not looked at.",
    .example = "keel predict trained.keras --data held-out/ -o out.npy",
    .options = table,
    .size = sizeof(options),
    .run = run,
};
