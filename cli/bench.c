/* keel bench WORK: measures how fast this machine trains common networks.
 *
 * It is an ordinary keel_fit on arrays in memory, shuffled, with SGD and momentum. The progress
 * callback reads the clock, so the time of a step includes everything between two callbacks:
 * waiting for rows, the step, the running loss. Warm-up steps are left out; the result is the
 * median. Then a second, shorter fit with the profile on shows how the time is spent, so that the
 * profile does not disturb the first. --export writes the same model and data as files, to compare
 * with the time of `keel fit`. */
#include "profile.h"
#include "progress.h"
#include "setup.h"
#include "works.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    WARM_STEPS = 10, /* at most */
    LEAST_WARM = 2,  /* at least */
    LEAST_STEPS = 5, /* measured at least, even if they are slow */
    MOST_STEPS = 1000000,
    MANY_EPOCHS = 100000 /* the callback ends the fit */
};
static const double WARM_SECONDS = 0.5;

typedef struct options {
    const char *export;
    keel_devices_options devices;
    int64_t batch_size, steps, seed;
    double seconds;
    int dtype, float32;
    bool json, no_profile, recompute;
    int64_t micro_batch; /* 0: none */
} options;

/* ---- the job --------------------------------------------------------------------------------- */

typedef struct job {
    const options *o;
    const keel_work *w;
    int64_t batch_size, rows;
    keel_model *model;
    keel_tensor x, y;
    keel_dataset *data;
    keel_strategy *strategy;
    keel_history history, profiled; /* of the measured fit, and of the short one after it */

    double *took; /* [count] seconds of the measured steps */
    int64_t count, room, warm;
    int64_t profile_steps; /* steps of the second fit that are left */
    double first, start,
        last; /* times: end of the first step, begin of measuring, end of the last step */
    double first_loss, last_loss; /* of the first step; mean of the last epoch so far */
} job;

/* ---- export ---------------------------------------------------------------------------------- */

static int export_work(const job *j)
{
    char path[4096];
    const char *folder = j->o->export;
    if (strlen(folder) > sizeof path - 32)
        return keel_complain(EXIT_USAGE, "--export: the path is too long");
    if (mkdir(folder, 0777) && errno != EEXIST)
        return keel_complain(EXIT_FAILED, "--export '%s': %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/model.keras", folder);
    const keel_status s = keel_model_save(j->model, path);
    if (s < 0) return keel_complain_status(s);
    snprintf(path, sizeof path, "%s/x.npy", folder);
    int code = keel_save_npy(&j->x, path);
    snprintf(path, sizeof path, "%s/y.npy", folder);
    if (code == EXIT_OK) code = keel_save_npy(&j->y, path);
    if (code != EXIT_OK) return code;
    printf("%s: model.keras, x.npy, y.npy of %lld rows\n", folder, (long long)j->rows);
    return EXIT_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static keel_status on_step(void *context, const keel_moment *p)
{
    job *j = context;
    const double now = keel_now(), took = now - j->last;
    if (keel_interrupted()) return KEEL_END;
    j->last = now;
    j->last_loss = keel_logs_get(p->logs, "loss");
    if (j->first == 0) j->first = now, j->first_loss = j->last_loss;
    if (j->start == 0) {
        j->warm++;
        if (j->warm >= WARM_STEPS || (j->warm >= LEAST_WARM && now - j->first >= WARM_SECONDS))
            j->start = now;
        return KEEL_OK;
    }
    j->took[j->count++] = took;
    if (j->count == j->room) return KEEL_END;
    if (j->o->steps) return KEEL_OK;
    return j->count >= LEAST_STEPS && now - j->start >= j->o->seconds ? KEEL_END : KEEL_OK;
}

static keel_status on_profiled_step(void *context, const keel_moment *p)
{
    job *j = context;
    (void)p;
    if (keel_interrupted()) return KEEL_END;
    return --j->profile_steps > 0 ? KEEL_OK : KEEL_END;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct result {
    double median, mean, least, rows_per_second; /* times in ms */
    double in_steps, waiting, else_;             /* shares of the fit after its compilation */
} result;

static result summarize(job *j)
{
    const keel_history *h = &j->history;
    const double all = h->seconds - h->compile_seconds;
    const int64_t n = j->count, middle = n / 2;
    result r = { .mean = 1e3 * (j->last - j->start) / (double)n };
    qsort(j->took, (size_t)n, sizeof *j->took, compare);
    r.median = 1e3 * (n % 2 ? j->took[middle] : (j->took[middle - 1] + j->took[middle]) / 2);
    r.least = 1e3 * j->took[0];
    r.rows_per_second = 1e3 * (double)j->batch_size / r.median;
    r.in_steps = h->step_seconds / all;
    r.waiting = h->wait_seconds / all;
    r.else_ = 1 - r.in_steps - r.waiting;
    return r;
}

/* ---- the profile ----------------------------------------------------------------------------- */

enum { OPS = 32 };

typedef struct op_class {
    const char *name;
    double forward, backward, flops, bytes; /* sums over steps and workers */
    double plain;                           /* of their time, that in the reference */
    double most_flops;                      /* operations at peak rate in the same time */
} op_class;

typedef struct profile {
    int n;
    op_class op[OPS]; /* slowest first */
    double steps;
    double kernels, waiting, updates; /* shares of the steps' time of all workers */
    double host_ms, flops, bytes;     /* per step */
} profile;

static int slower(const void *a, const void *b)
{
    const op_class *x = a, *y = b;
    const double s = x->forward + x->backward, t = y->forward + y->backward;
    return (s < t) - (s > t);
}

static bool is_reference(const char *kernel)
{
    return !strncmp(kernel, "reference", strlen("reference"));
}

static void add_row(profile *out, const keel_profile_row *r)
{
    int k = 0;
    while (k < out->n && strcmp(out->op[k].name, r->op)) k++;
    if (k == OPS) return;
    if (k == out->n) out->op[out->n++].name = r->op;
    op_class *c = &out->op[k];
    c->forward += r->forward_seconds;
    c->backward += r->backward_seconds;
    if (is_reference(r->forward_kernel)) c->plain += r->forward_seconds;
    if (is_reference(*r->backward_kernel ? r->backward_kernel : r->weights_kernel))
        c->plain += r->backward_seconds;
    if (r->forward_seconds > 0) c->bytes += r->forward_bytes;
    if (r->backward_seconds > 0) c->bytes += r->backward_bytes;
    c->flops += r->forward_flops + r->backward_flops;
    c->most_flops += (r->forward_seconds + r->backward_seconds) * r->peak_flops;
}

static profile look(const keel_profile *p)
{
    profile out = { .steps = p->steps > 0 ? (double)p->steps : 1 };
    const double all = p->step_seconds * p->workers;
    for (int i = 0; i < p->count; i++) add_row(&out, &p->row[i]);
    for (int w = 0; w < p->workers; w++) {
        out.kernels += p->call_seconds[w] / all;
        out.waiting += p->wait_seconds[w] / all;
        out.updates += (p->merge_seconds[w] + p->reduce_seconds[w] + p->update_seconds[w]) / all;
    }
    for (int k = 0; k < out.n; k++) {
        out.flops += out.op[k].flops / out.steps;
        out.bytes += out.op[k].bytes / out.steps;
    }
    const double rest = 1 - out.kernels - out.waiting - out.updates;
    out.host_ms = rest > 0 ? 1e3 * rest * p->step_seconds / out.steps : 0;
    qsort(out.op, (size_t)out.n, sizeof *out.op, slower);
    return out;
}

static void print_profile(const keel_profile *p)
{
    const profile l = look(p);
    char a[KEEL_NUMBER_MAX], peaks[KEEL_PEAKS_MAX];
    double sum = 0, most = 0;
    printf("inside   kernels %.1f%%, reduce and update %.1f%%, waiting for each other %.1f%%; host "
           "%.3f ms per step\n",
           100 * l.kernels, 100 * l.updates, 100 * l.waiting, l.host_ms);
    printf("moved    %s per step by the kernels\n", keel_size_text(a, (int64_t)l.bytes));
    printf("peak     of one core, measured: %s\n\n", keel_profile_peaks(peaks, p));
    printf("%-26s %9s %9s %6s  %s\n", "op, ms per step, all cores", "forward", "backward", "share",
           "GFLOP/s per core, of its peak");
    for (int k = 0; k < l.n; k++) sum += l.op[k].forward + l.op[k].backward;
    for (int k = 0; k < l.n; k++) {
        const op_class *c = &l.op[k];
        const double seconds = c->forward + c->backward;
        if (seconds <= 0) continue;
        printf("%-26s %9.3f %9.3f %5.1f%%", c->name, 1e3 * c->forward / l.steps,
               1e3 * c->backward / l.steps, 100 * seconds / sum);
        const double of_peak = c->most_flops > 0 ? c->flops / c->most_flops : 0;
        if (c->flops > 0) printf("  %.1f, %.0f%%", 1e-9 * c->flops / seconds, 100 * of_peak);
        if (of_peak > most) most = of_peak;
        if (c->plain > 0.5 * seconds) fputs("  reference: no fast kernel", stdout);
        putchar('\n');
    }
    if (most > 1) fputs(keel_profile_above, stdout);
}

static void print_profile_json(const keel_profile *p)
{
    const profile l = look(p);
    printf(", \"kernel_share\": %.4f, \"update_share\": %.4f, \"meeting_share\": %.4f, "
           "\"host_ms\": %.4f, \"flops_per_step\": %.0f, \"bytes_per_step\": %.0f, "
           "\"gflops\": %.2f, \"core_peak_gflops\": %.1f, \"core_peak_bf16_gflops\": %.1f, "
           "\"core_peak_gbytes\": %.1f, "
           "\"workers\": %d, \"ops\": [",
           l.kernels, l.updates, l.waiting, l.host_ms, l.flops, l.bytes,
           1e-9 * l.flops * l.steps / p->step_seconds, 1e-9 * p->peak_flops,
           1e-9 * p->peak_bf16_flops, 1e-9 * p->peak_bytes, p->workers);
    for (int k = 0; k < l.n; k++) {
        const op_class *c = &l.op[k];
        const double seconds = c->forward + c->backward;
        printf("%s{\"op\": \"%s\", \"forward_ms\": %.4f, \"backward_ms\": %.4f, "
               "\"core_gflops\": %.2f, \"of_peak\": %.4f}",
               k ? ", " : "", c->name, 1e3 * c->forward / l.steps, 1e3 * c->backward / l.steps,
               seconds > 0 ? 1e-9 * c->flops / seconds : 0,
               c->most_flops > 0 ? c->flops / c->most_flops : 0);
    }
    putchar(']');
}

/* ---- the report ------------------------------------------------------------------------------ */

static void print_json(job *j)
{
    const keel_history *h = &j->history;
    const result r = summarize(j);
    printf("{\"peer\": \"keel\", \"version\": \"%s\", \"work\": \"%s\", \"batch\": %lld, "
           "\"dtype\": \"%s\", \"devices\": \"",
           KEEL_VERSION, j->w->name, (long long)j->batch_size, keel_model_dtype_policy(j->model));
    for (int i = 0; i < keel_strategy_devices(j->strategy); i++)
        printf("%s%s", i ? "," : "", keel_strategy_device_name(j->strategy, i));
    printf("\", \"steps\": %lld, \"warm_up\": %lld, \"ms\": %.4f, \"mean_ms\": %.4f, \"least_ms\": "
           "%.4f, \"rows_per_s\": %.1f, \"float32\": \"%s\", ",
           (long long)j->count, (long long)j->warm, r.median, r.mean, r.least, r.rows_per_second,
           keel_float32_in_force((keel_float32)j->o->float32));
    printf("\"step_share\": %.4f, \"wait_share\": %.4f, \"compile_ms\": %.1f, "
           "\"memory_planned\": %lld, \"memory_used\": %lld, \"first_loss\": %.6g, "
           "\"last_loss\": %.6g",
           r.in_steps, r.waiting, 1e3 * h->compile_seconds, (long long)h->memory_planned,
           (long long)h->memory_used, j->first_loss, j->last_loss);
    if (j->profiled.profile) print_profile_json(j->profiled.profile);
    puts("}");
}

static void print_text(job *j)
{
    const keel_history *h = &j->history;
    const result r = summarize(j);
    const int n = keel_strategy_devices(j->strategy);
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    printf("%s (%s), batch %s, %s, SGD with momentum\n", j->w->name, j->w->what,
           keel_grouped(a, j->batch_size), keel_model_dtype_policy(j->model));
    fputs("devices ", stdout);
    for (int i = 0; i < n && i < 16; i++) printf(" %s", keel_strategy_device_name(j->strategy, i));
    if (n > 16) printf(" ... (%d)", n);
    if (!strcmp(keel_model_dtype_policy(j->model), "float32"))
        printf("\nfloat32  %s", keel_float32_in_force((keel_float32)j->o->float32));
    printf("\nstep     %.3f ms: the median of %s steps after %s of warm-up (least %.3f, mean "
           "%.3f)\n",
           r.median, keel_grouped(a, j->count), keel_grouped(b, j->warm), r.least, r.mean);
    printf("loss     %.4f in the first step, %.4f in the last epoch\n", j->first_loss,
           j->last_loss);
    printf("speed    %s rows/s\n", keel_grouped(a, (int64_t)(r.rows_per_second + 0.5)));
    printf("share    steps %.1f%%, waiting for input %.1f%%, between steps %.1f%%\n",
           100 * r.in_steps, 100 * r.waiting, 100 * r.else_);
    printf("memory   %s planned", keel_size_text(a, h->memory_planned));
    if (h->memory_used >= 0) printf(", %s used", keel_size_text(a, h->memory_used));
    printf("\ncompile  %s\n", keel_seconds_text(a, h->compile_seconds));
    if (j->profiled.profile) print_profile(j->profiled.profile);
}

static int measure(job *j)
{
    const keel_fit_options f = { KEEL_FIT_OPTIONS,
                                 .batch_size = j->batch_size,
                                 .epochs = MANY_EPOCHS,
                                 .seed = (uint64_t)j->o->seed,
                                 .callbacks = KEEL_CALLBACKS(
                                     &(keel_callback){ KEEL_CALLBACK, .name = "clock", .context = j,
                                                       .on_train_batch_end = on_step }),
                                 .float32 = (keel_float32)j->o->float32 };
    j->room = j->o->steps ? j->o->steps : MOST_STEPS;
    j->took = calloc((size_t)j->room, sizeof *j->took);
    if (!j->took) return keel_complain(EXIT_FAILED, "out of memory");
    keel_interrupt_catch();
    keel_status s = keel_fit(j->model, j->strategy, j->data, &f, &j->history);
    if (s < 0) return keel_complain_status(s);
    if (keel_interrupted() && j->count < 1) return EXIT_STOPPED;
    if (!j->o->no_profile && !keel_interrupted()) {
        const keel_fit_options with = { KEEL_FIT_OPTIONS,
                                        .batch_size = j->batch_size,
                                        .epochs = MANY_EPOCHS,
                                        .seed = (uint64_t)j->o->seed,
                                        .profile = true,
                                        .float32 = (keel_float32)j->o->float32,
                                        .callbacks = KEEL_CALLBACKS(&(keel_callback){
                                            KEEL_CALLBACK, .name = "clock", .context = j,
                                            .on_train_batch_end = on_profiled_step }) };
        j->profile_steps = 2 + j->count / 4;
        s = keel_fit(j->model, j->strategy, j->data, &with, &j->profiled);
        if (s < 0) return keel_complain_status(s);
    }
    if (j->o->json)
        print_json(j);
    else
        print_text(j);
    return keel_interrupted() ? EXIT_STOPPED : EXIT_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check(job *j, const char *name)
{
    const options *o = j->o;
    int code;
    if ((code = keel_work_find(&j->w, name)) >= 0) return code;
    if (o->steps > MOST_STEPS) return keel_complain(EXIT_USAGE, "--steps: at most %d", MOST_STEPS);
    if (!(o->seconds > 0)) return keel_complain(EXIT_USAGE, "--seconds: must be above 0");
    j->batch_size = o->batch_size ? o->batch_size : j->w->batch_size;
    if (j->batch_size > 1 << 20) return keel_complain(EXIT_USAGE, "--batch-size: at most 1048576");
    /* whole batches, so that all steps are equal, and four, so that most steps end no epoch */
    j->rows = j->w->rows / j->batch_size * j->batch_size;
    if (j->rows < 4 * j->batch_size) j->rows = 4 * j->batch_size;
    return -1;
}

static int run(const void *given, int n_arg, char **arg)
{
    job j = { .o = given };
    int code;
    (void)n_arg;
    if ((code = check(&j, arg[0])) >= 0) return code;
    if ((code = keel_setup_strategy(&j.strategy, &j.o->devices)) >= 0) goto out;
    keel_strategy_recompute(j.strategy, j.o->recompute);
    if (keel_strategy_micro_batch(j.strategy, j.o->micro_batch) < 0) {
        code = keel_complain_status(KEEL_EARG);
        goto out;
    }
    const uint64_t seed = (uint64_t)j.o->seed;
    keel_status s =
        keel_work_build(j.w, j.o->dtype ? keel_setup_policy(j.o->dtype) : NULL, seed, &j.model);
    if (s >= 0) s = keel_work_data(j.w, j.rows, seed, &j.x, &j.y);
    if (s >= 0) s = keel_dataset_from_arrays(&j.data, &j.x, &j.y, NULL);
    if (s < 0)
        code = keel_complain_status(s);
    else if ((code = keel_setup_share_by_speed(j.strategy, &j.o->devices, j.model, j.batch_size,
                                               NULL)) < 0)
        code = j.o->export ? export_work(&j) : measure(&j);
out:
    free(j.took);
    keel_history_free(&j.history);
    keel_history_free(&j.profiled);
    keel_strategy_destroy(j.strategy);
    keel_dataset_destroy(j.data);
    keel_tensor_free(&j.x);
    keel_tensor_free(&j.y);
    keel_model_destroy(j.model);
    return code;
}

static const keel_option table[] = {
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "rows per step, over all devices (default: 64; texts and sound 32; large "
                    "images 16; gpt 12)"),
    KEEL_DEVICES_ROWS(options, devices),
    KEEL_OPTION_ROW(options, dtype, "dtype", 0, false, KEEL_OPTION_CHOICE,
                    "float32|mixed_bfloat16|mixed_float16", "float32",
                    "dtype policy of all layers, as in keel fit"),
    KEEL_FLOAT32_ROW(options, float32),
    KEEL_RECOMPUTE_ROW(options, recompute),
    KEEL_MICRO_BATCH_ROW(options, micro_batch),
    KEEL_OPTION_ROW(options, steps, "steps", 0, false, KEEL_OPTION_POSITIVE, "K", NULL,
                    "measure this many steps (default: by --seconds)"),
    KEEL_OPTION_ROW(options, seconds, "seconds", 0, false, KEEL_OPTION_REAL, "S", "3",
                    "measure for this long, and at least 5 steps"),
    KEEL_OPTION_ROW(options, json, "json", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "one line of JSON"),
    KEEL_OPTION_ROW(options, no_profile, "no-profile", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "skip the short second fit that shows how the time is spent"),
    KEEL_OPTION_ROW(options, seed, "seed", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "seed of weights, data, shuffling and dropout"),
    KEEL_OPTION_ROW(options, export, "export", 0, false, KEEL_OPTION_TEXT, "DIR", NULL,
                    "do not train; write model.keras, x.npy and y.npy for keel fit"),
    { 0 },
};

const keel_command keel_command_bench = {
    .name = "bench",
    .args = "NETWORK",
    .least = 1,
    .most = 1,
    .summary = "Measure how fast this machine trains",
    .help =
        "Runs an ordinary fit on data in memory, shuffled, with SGD and momentum. The time of a "
        "step includes everything between two steps, and the result is the median after a "
        "warm-up. A second, short fit shows how the time is spent. mlp is the network "
        "784-512-512-10, mnist-cnn that of Keras's MNIST example; resnet18, resnet50, "
        "mobilenetv2, densenet121, efficientnetb0 and convnexttiny take images of 224x224x3 with "
        "1000 classes. unet, conv1d, lstm and transformer are those of Keras's examples: 128x128 "
        "images with a class for each pixel, sound of 8000 numbers, texts of 200 tokens. gpt has 6 "
        "blocks of causal attention, width 384 and 6 heads, and learns the next of 65 characters "
        "at each of 256 places.",
    .example = "keel bench mnist-cnn --batch-size 256 --devices cpu:0-1",
    .options = table,
    .size = sizeof(options),
    .processes = KEEL_ALONE,
    .run = run,
};
