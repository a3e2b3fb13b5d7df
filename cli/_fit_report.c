/* What keel fit prints before its first step and after the last. */
#include "fit_job.h"
#include <string.h>

/* ---- before the first step ------------------------------------------------------------------- */

static void say_devices(const keel_fit_job *j, int n)
{
    const int processes = keel_strategy_processes(j->strategy), hosts = keel_processes_machines();
    const int started = keel_processes_started();
    if (started > 1)
        printf("; %d processes on %d %s", started, hosts, hosts == 1 ? "machine" : "machines");
    if (started > processes) printf(" act as %d", processes);
    const char *first = started > 1 ? ", with" : ";";
    char share[KEEL_SHARE_TEXT_MAX];
    printf("%s %d %s", processes > 1 ? ", the first with" : first, n,
           n == 1 ? "device" : "devices");
    if (*keel_share_text(j->strategy, share)) printf(" with shares %s", share);
}

/* What --weights has read: as in Keras the optimizer's state may be part of it. */
static void tell_weights(const keel_model *m, const char *path)
{
    char shown[256], steps[KEEL_NUMBER_MAX], rate[64] = "";
    double r;
    keel_printable(shown, sizeof shown, path);
    const int64_t n = keel_model_steps_done(m);
    if (keel_model_learning_rate(m, &r) >= 0 && !keel_model_schedule(m))
        snprintf(rate, sizeof rate, ", learning rate %.7g", r);
    switch (keel_model_state_loaded(m)) {
    case KEEL_STATE_TAKEN:
        printf("%s: weights and the optimizer's state: %s step%s done%s\n", shown,
               keel_grouped(steps, n), n == 1 ? "" : "s", rate);
        break;
    case KEEL_STATE_ABSENT:
        printf("%s: weights only; the optimizer goes on with the state of the model%s\n", shown,
               rate);
        break;
    case KEEL_STATE_OTHER:
        printf("%s: weights; its state is of another optimizer or of other weights, so the "
               "optimizer goes on with that of the model%s\n",
               shown, rate);
        break;
    default:
        printf("%s: weights; the optimizer begins anew%s\n", shown, rate);
    }
}

void keel_fit_begin(const keel_fit_job *j)
{
    const keel_fit_choices *o = j->o;
    char a[KEEL_NUMBER_MAX];
    char rows[KEEL_CARDINALITY_MAX];
    printf("%s: %s", keel_dataset_name(j->data), keel_cardinality_text(rows, sizeof rows, j->data));
    if (j->validation)
        printf(", %s for validation", keel_grouped(a, keel_dataset_rows(j->validation)));
    if (keel_dataset_class_count(j->data))
        printf(", %s class%s", keel_grouped(a, keel_dataset_class_count(j->data)),
               keel_dataset_class_count(j->data) == 1 ? "" : "es");
    say_devices(j, keel_strategy_devices(j->strategy));
    if (strcmp(keel_model_dtype_policy(j->model), "float32"))
        printf(", %s", keel_model_dtype_policy(j->model));
    keel_sharing_begin(&o->sharing, j->strategy);
    if (keel_processes_apart(j->strategy))
        puts("these processes do not act as one, which would be faster: they were started with "
             "different command lines, or cannot use each other's cores");
    if (!o->no_shuffle && !o->resume && !o->initial_epoch && keel_model_steps_done(j->model) > 0)
        printf("the model was trained before, for %s step%s; the order of the rows begins again as "
               "in its first epoch: --initial-epoch N goes on behind N epochs\n",
               keel_grouped(a, keel_model_steps_done(j->model)),
               keel_model_steps_done(j->model) == 1 ? "" : "s");
    if (o->weights && !o->resume) tell_weights(j->model, o->weights);
    if (!o->resume && keel_model_state_left_out(j->model))
        puts("the optimizer begins anew: its state in the file is of other weights than are "
             "trained now, since layers were frozen or are trained again");
    if (keel_processes_first()) keel_tell_untuned();
}

/* ---- after the last -------------------------------------------------------------------------- */

static void print_rows(const keel_fit_job *j, const char *what, int64_t rows)
{
    char a[KEEL_NUMBER_MAX];
    const int n = keel_strategy_devices(j->strategy);
    int64_t own = 0;
    printf("%s%s row%s:", what, keel_grouped(a, rows), rows == 1 ? "" : "s");
    for (int i = 0; i < n; i++) {
        const int64_t part = keel_strategy_rows(j->strategy, i, rows);
        if (i < 16) printf(" %s", keel_grouped(a, part));
        own += part;
    }
    if (n > 16) printf(" ... (%d devices)", n);
    if (keel_strategy_processes(j->strategy) > 1)
        printf(", other processes %s", keel_grouped(a, rows - own));
}

/* What steps waited for, where they did, and what would help. */
static void print_input(const keel_fit_job *j, const keel_input_stats *in)
{
    char text[KEEL_INPUT_TEXT_MAX], safe[KEEL_INPUT_TEXT_MAX];
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    if (*keel_input_text(in, text))
        printf("input    %s\n", keel_printable(safe, sizeof safe, text));
    if (j->o->explain_input || j->o->input_memory)
        printf("input    %d %s, %d %s ahead, at most %s of memory%s%s\n", in->threads,
               in->threads == 1 ? "thread" : "threads", in->batches,
               in->batches == 1 ? "batch" : "batches", keel_size_text(a, in->memory_peak),
               in->memory_limit ? " of " : "",
               in->memory_limit ? keel_size_text(b, in->memory_limit) : "");
}

/* Why there were fewer epochs than asked for, unless a note says it. */
static const char *early(const keel_fit_job *j, char text[100])
{
    const keel_history *h = &j->history;
    const long long done = h->initial_epoch + h->epochs, all = j->o->epochs;
    if (h->stopped && j->signal) return ", stopped by Ctrl-C";
    if (!h->stopped || done >= all || (h->note && strstr(h->note, "stopped"))) return "";
    snprintf(text, 100, ", stopped by a callback after epoch %lld of %lld", done, all);
    return text;
}

void keel_fit_report(const keel_fit_job *j)
{
    const keel_history *h = &j->history;
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], c[KEEL_NUMBER_MAX], d[KEEL_NUMBER_MAX];
    char share[KEEL_SHARE_TEXT_MAX], why[100];
    const int n = keel_strategy_devices(j->strategy);
    printf("\ntrained  %s %s, %s %s in %s%s\n", keel_grouped(a, h->steps),
           h->steps == 1 ? "step" : "steps", keel_grouped(b, h->rows),
           h->rows == 1 ? "row" : "rows", keel_seconds_text(c, h->seconds), early(j, why));
    fputs("devices ", stdout);
    for (int i = 0; i < n && i < 16; i++) printf(" %s", keel_strategy_device_name(j->strategy, i));
    if (n > 16) printf(" ... (%d)", n);
    putchar('\n');
    if (*keel_share_text(j->strategy, share)) printf("shares   %s\n", share);
    print_rows(j, "split    ", h->full_rows);
    if (h->last_rows) print_rows(j, "; last step ", h->last_rows);
    printf("\nmemory   %s planned", keel_size_text(a, h->memory_planned));
    if (h->device_memory) printf(", %s on a device", keel_size_text(b, h->device_memory));
    if (h->memory_used >= 0) printf(", %s used", keel_size_text(a, h->memory_used));
    printf("\ntime     first step after %s (compile %s), steps %s, waiting for input %s",
           keel_seconds_text(d, j->before + h->first_step_seconds),
           keel_seconds_text(a, h->compile_seconds), keel_seconds_text(b, h->step_seconds),
           keel_seconds_text(c, h->wait_seconds));
    if (j->validation) printf(", validation %s", keel_seconds_text(d, h->validation_seconds));
    putchar('\n');
    if (h->input && h->input->steps) print_input(j, h->input);
    /* print nothing if --float32 makes no difference */
    const char *products = keel_float32_in_force((keel_float32)j->o->float32);
    if (!strcmp(keel_model_dtype_policy(j->model), "float32") &&
        (j->o->float32 != KEEL_FLOAT32_EXACT || strncmp(products, "fma", 3)))
        printf("float32  %s\n", products);
    keel_sharing_report(&j->o->sharing, j->strategy, j->model);
    keel_programs_print(&j->counts, &j->o->pad);
    if (h->note) printf("note     %s\n", h->note);
}
