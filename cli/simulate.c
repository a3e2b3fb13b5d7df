/* keel simulate: predicts the steps of a fit on many machines like this one. What it prints is in
 * the struct keel_simulation of keel/simulate.h. */
#include "curve.h"
#include "processes.h"
#include "progress.h"
#include "setup.h"
#include "shapes.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
    keel_compile_options compile;
    keel_devices_options devices;
    const char *machines, *network, *shape, *plugin, *output;
    int64_t batch_size, process_batch_size, processes_per_machine;
    double seconds;
    int dtype, float32, compress;
    bool json, shard_optimizer;
} options;

/* ---- numbers of machines --------------------------------------------------------------------- */

enum { MACHINES_MAX = 64, MACHINES_MOST = 1024 };

typedef struct machines {
    int n, number[MACHINES_MAX];
} machines;

static int complain_machines(const char *text, const char *why)
{
    return keel_complain(EXIT_USAGE,
                         "--machines '%s': %s; give numbers from 1 to %d, and ranges that double: "
                         "64, or 1,2,4-1024",
                         text, why, MACHINES_MOST);
}

static bool read_number(const char **at, int *out)
{
    int v = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < 5; ++*at, digits++) v = 10 * v + (**at - '0');
    *out = v;
    return digits > 0 && v >= 1 && v <= MACHINES_MOST;
}

static bool add_number(machines *m, int n)
{
    for (int i = 0; i < m->n; i++)
        if (m->number[i] == n) return true;
    if (m->n == MACHINES_MAX) return false;
    m->number[m->n++] = n;
    return true;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* "1,2,4-1024": 4-1024 is 4, 8, 16 ... 1024; the end of a range is one of its numbers. */
static int read_machines(machines *m, const char *text)
{
    m->n = 0;
    for (const char *p = text;; p++) {
        int first, last;
        if (!read_number(&p, &first))
            return complain_machines(text, "a number is missing or wrong");
        last = first;
        if (*p == '-') {
            p++;
            if (!read_number(&p, &last))
                return complain_machines(text, "a number is missing or wrong after '-'");
            if (last < first) return complain_machines(text, "a range must go up");
        }
        for (int n = first; n < last; n *= 2)
            if (!add_number(m, n)) return complain_machines(text, "more than 64 numbers");
        if (!add_number(m, last)) return complain_machines(text, "more than 64 numbers");
        if (!*p) break;
        if (*p != ',') return complain_machines(text, "',' or '-' is missing");
    }
    qsort(m->number, (size_t)m->n, sizeof *m->number, ascending);
    return -1;
}

/* ---- results --------------------------------------------------------------------------------- */

static void print_network(const keel_network *n)
{
    printf("network    %.4g Gbit/s and %.4g us between machines, %.4g us for each message; inside "
           "a machine %.3g GB/s copied, %.4g us\n",
           8e-9 * n->bytes_per_second, 1e6 * n->latency, 1e6 * n->message,
           1e-9 * n->local_bytes_per_second, 1e6 * n->local_latency);
    if (n->own_bytes_per_second > 0)
        printf("           bytes between machines take a process's own time, %.3g GB/s\n",
               1e-9 * n->own_bytes_per_second);
}

static void print_row(const keel_simulated *p)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], c[KEEL_NUMBER_MAX], d[KEEL_NUMBER_MAX];
    printf("%8d %7s %10.3f %9d %11s %10.3f %10.3f %12s %9.1f%% %11s\n", p->machines,
           keel_grouped(a, p->rows), 1e3 * p->compute_seconds, p->exchanges,
           keel_size_text(b, p->sent_bytes), 1e3 * p->exchange_seconds, 1e3 * p->step_seconds,
           keel_grouped(c, llround(p->rows_per_second)), 100 * p->efficiency,
           keel_size_text(d, p->memory_bytes));
}

static void print_table(const keel_simulation *s)
{
    printf("\n%8s %7s %10s %9s %11s %10s %10s %12s %10s %11s\n", "machines", "rows", "compute",
           "exchanges", "sent", "exchanges", "step", "rows/s", "efficiency", "memory");
    printf("%8s %7s %10s %9s %11s %10s %10s %12s %10s %11s\n", "", "process", "ms", "a step",
           "process", "ms", "ms", "all", "", "process");
    if (s->point[0].machines > 1) print_row(&s->one);
    for (int i = 0; i < s->count; i++) print_row(&s->point[i]);
}

static void print_text(const options *o, const keel_simulation *s, const char *head)
{
    printf("%s\n", head);
    printf("measured   here, %d process%s at once, %s; %lld steps on one machine\n", s->at_once,
           s->at_once == 1 ? "" : "es", keel_computes_with(), (long long)s->one.measured_steps);
    print_network(&s->network);
    print_table(s);
    puts("\nA prediction: compute is measured here, with the rows and the work of a process among "
         "all others; exchanges follow from the network's numbers.");
    if (*s->note) printf("note: %s\n", s->note);
    if (o->output) printf("picture  %s\n", o->output);
}

static void print_point_json(const keel_simulated *p)
{
    printf("{\"machines\": %d, \"processes\": %d, \"batch\": %lld, \"rows\": %lld, "
           "\"compute_ms\": %.6f, \"forward_ms\": %.6f, \"backward_ms\": %.6f, \"update_ms\": "
           "%.6f, \"exchanges\": %d, \"messages\": %lld, \"sent_bytes\": %lld, \"link_bytes\": "
           "%lld, \"exchange_ms\": %.6f, \"step_ms\": %.6f, \"rows_per_s\": %.3f, \"efficiency\": "
           "%.6f, \"memory_bytes\": %lld, \"measured_steps\": %lld}",
           p->machines, p->processes, (long long)p->batch_size, (long long)p->rows,
           1e3 * p->compute_seconds, 1e3 * p->forward_seconds, 1e3 * p->backward_seconds,
           1e3 * p->update_seconds, p->exchanges, (long long)p->messages, (long long)p->sent_bytes,
           (long long)p->link_bytes, 1e3 * p->exchange_seconds, 1e3 * p->step_seconds,
           p->rows_per_second, p->efficiency, (long long)p->memory_bytes,
           (long long)p->measured_steps);
}

static void print_json(const options *o, const keel_simulation *s)
{
    const keel_network *n = &s->network;
    printf("{\"version\": \"%s\", \"network\": {\"bytes_per_s\": %.0f, \"latency_us\": %.3f, "
           "\"message_us\": %.3f, \"eager_bytes\": %.0f, \"local_bytes_per_s\": %.0f, "
           "\"local_latency_us\": %.3f, \"own_bytes_per_s\": %.0f}, \"processes_per_machine\": %d, "
           "\"at_once\": %d, \"compress\": \"%s\", \"shard_optimizer\": %s, \"one\": ",
           KEEL_VERSION, n->bytes_per_second, 1e6 * n->latency, 1e6 * n->message, n->eager,
           n->local_bytes_per_second, 1e6 * n->local_latency, n->own_bytes_per_second,
           s->processes_per_machine, s->at_once, o->compress ? "bf16" : "none",
           o->shard_optimizer ? "true" : "false");
    print_point_json(&s->one);
    fputs(", \"points\": [", stdout);
    for (int i = 0; i < s->count; i++) {
        if (i) fputs(", ", stdout);
        print_point_json(&s->point[i]);
    }
    puts("]}");
}

static int write_picture(const options *o, const keel_simulation *s, const char *head)
{
    char subtitle[256];
    const keel_network *n = &s->network;
    const size_t length = strlen(o->output);
    const bool html = length > 5 && !strcmp(o->output + length - 5, ".html");
    snprintf(subtitle, sizeof subtitle,
             "simulated: compute measured on one machine (%s), exchanges over %.4g Gbit/s and %.4g "
             "us between machines",
             keel_computes_with(), 8e-9 * n->bytes_per_second, 1e6 * n->latency);
    const keel_curve c = { head, subtitle, s };
    return keel_save_whole(o->output, html ? keel_curve_html : keel_curve_svg, &c);
}

/* ---- the command ----------------------------------------------------------------------------- */

static keel_status progress(void *context, int n)
{
    const options *o = context;
    if (keel_interrupted()) return KEEL_END;
    if (!o->json && isatty(STDERR_FILENO))
        fprintf(stderr, "measuring  for %d machine%s\n", n, n == 1 ? "" : "s");
    return KEEL_OK;
}

static int simulate(const options *o, keel_model *m, const char *path, keel_simulate_options *s)
{
    char head[512], name[256], a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    keel_simulation found = { 0 };
    const char *slash = strrchr(path, '/');
    keel_interrupt_catch();
    const keel_status status = keel_simulate(&found, m, s);
    if (status == KEEL_END) return EXIT_STOPPED;
    if (status < 0) return keel_complain_status(status);
    snprintf(head, sizeof head, "%s, %s parameters, %s rows a %s, %s%s%s",
             keel_printable(name, sizeof name, slash ? slash + 1 : path),
             keel_grouped(a, keel_model_count_params(m, NULL)),
             keel_grouped(b, s->batch_size ? s->batch_size : s->process_batch_size),
             s->batch_size ? "step" : "step of each process", keel_model_dtype_policy(m),
             o->compress ? ", gradients travel as bf16" : "",
             o->shard_optimizer ? ", the optimizer's state in parts" : "");
    int code = o->output ? write_picture(o, &found, head) : EXIT_OK;
    if (code == EXIT_OK && o->json)
        print_json(o, &found);
    else if (code == EXIT_OK)
        print_text(o, &found, head);
    keel_simulation_free(&found);
    return code;
}

/* What can be refused before the model is read. */
static int check(const options *o, keel_simulate_options *s, machines *m)
{
    const int64_t per = o->processes_per_machine;
    int code = read_machines(m, o->machines);
    if (code >= 0) return code;
    if (keel_network_parse(&s->network, o->network) < 0)
        return keel_complain(EXIT_USAGE, "--%s", keel_error()); /* it begins with "network: " */
    if (!o->batch_size == !o->process_batch_size)
        return keel_complain(EXIT_USAGE, "give either --batch-size N, the rows of a step over all "
                                         "machines, or --batch-size-per-process N");
    if (per > MACHINES_MOST / m->number[m->n - 1])
        return keel_complain(EXIT_USAGE,
                             "%lld processes on each of %d machines: at most %d processes are "
                             "possible",
                             (long long)per, m->number[m->n - 1], MACHINES_MOST);
    const char *otherwise =
        per * m->number[m->n - 1] > 1 ? NULL : "of which --machines gives the number";
    code = keel_processes_check_compress(o->compress, o->devices.reproducible, otherwise);
    if (code < 0) code = keel_processes_check_shards(o->shard_optimizer, otherwise);
    if (code >= 0) return code;
    if (!(o->seconds > 0 && o->seconds <= 3600))
        return keel_complain(EXIT_USAGE, "--seconds %g: must be above 0, and at most 3600",
                             o->seconds);
    if (o->output) {
        const size_t n = strlen(o->output);
        const bool html = n > 5 && !strcmp(o->output + n - 5, ".html");
        if (!html && !(n > 4 && !strcmp(o->output + n - 4, ".svg")))
            return keel_complain(EXIT_USAGE, "-o '%s': the name must end in .svg or .html",
                                 o->output);
        if ((code = keel_setup_output("-o", o->output, html ? ".html" : ".svg")) >= 0) return code;
    }
    s->machines = m->number;
    s->machine_count = m->n;
    s->processes_per_machine = (int)per;
    s->batch_size = o->batch_size;
    s->process_batch_size = o->process_batch_size;
    s->devices = o->devices.list;
    s->float32 = (keel_float32)o->float32;
    s->compress = (keel_compress)o->compress;
    s->shard_optimizer = o->shard_optimizer;
    s->seconds = o->seconds;
    s->progress = progress;
    s->context = (void *)o;
    return -1;
}

/* The same words and limits as for a fit. */
static int check_devices(const options *o, keel_simulate_options *s)
{
    keel_strategy *strategy = NULL;
    if (o->devices.share)
        return keel_complain(EXIT_USAGE, "--share is for the devices of one process; leave it out");
    const int code = keel_setup_strategy(&strategy, &o->devices);
    if (code < 0) s->shards = keel_strategy_shards(strategy);
    keel_strategy_destroy(strategy);
    return code;
}

static int run(const void *given, int n_arg, char **arg)
{
    const options *o = given;
    keel_simulate_options s = { KEEL_SIMULATE_OPTIONS };
    keel_model *m = NULL;
    keel_shape *shapes = NULL;
    machines numbers;
    (void)n_arg;
    int code = check(o, &s, &numbers);
    if (code < 0) code = check_devices(o, &s);
    if (code < 0) code = keel_setup_plugin(o->plugin);
    if (code < 0) code = keel_setup_model(&m, arg[0], NULL, o->dtype, false);
    if (code >= 0) return code;
    if ((code = keel_setup_compile(m, &o->compile, arg[0])) < 0)
        code = keel_shapes_read(&shapes, o->shape, NULL, m);
    s.inputs = shapes;
    if (code < 0) code = simulate(o, m, arg[0], &s);
    free(shapes);
    keel_model_destroy(m);
    return code;
}

static const keel_option table[] = {
    KEEL_OPTION_ROW(options, machines, "machines", 0, false, KEEL_OPTION_TEXT, "LIST", "1-64",
                    "numbers of machines: 64, or 1,2,4-1024, where 4-1024 is 4, 8, 16 up to 1024"),
    KEEL_OPTION_ROW(options, processes_per_machine, "processes-per-machine", 0, false,
                    KEEL_OPTION_POSITIVE, "N", "1",
                    "processes of each machine, which share its cores and its link, as with "
                    "keel fit --apart; without that a machine is one process"),
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "rows per step, over all machines: more machines have fewer rows each"),
    KEEL_OPTION_ROW(options, process_batch_size, "batch-size-per-process", 0, false,
                    KEEL_OPTION_POSITIVE, "N", NULL,
                    "rows per step of each process: more machines have larger steps"),
    KEEL_OPTION_ROW(
        options, network, "network", 0, false, KEEL_OPTION_TEXT, "RATE,LATENCY", "25Gbit,50us",
        "the link of a machine, each way, and how long a message is on its way; then, if "
        "known: message=1us (a process is busy with each), eager=64K (longer messages "
        "ask first, and take three latencies), local=8GB (copied in a second between "
        "processes of a machine; default: measured), local-latency=2us, own=5GB (to and from "
        "other machines in a second of a process's own time; default: they take none)"),
    KEEL_DEVICES_ROWS(options, devices),
    KEEL_OPTION_ROW(options, seconds, "seconds", 0, false, KEEL_OPTION_REAL, "S", "1",
                    "measure for this long for each number of machines, and at least 3 steps"),
    KEEL_OPTION_ROW(
        options, shape, "shape", 0, false, KEEL_OPTION_TEXT, "DIMS", NULL,
        "shape of a row, if the model has open dimensions: 80, or by the names of inputs "
        "'tokens=80 image=40,48,3'"),
    KEEL_PLUGIN_ROW(options, plugin),
    KEEL_DTYPE_ROW(options, dtype),
    KEEL_FLOAT32_ROW(options, float32),
    KEEL_COMPRESS_ROW(options, compress),
    KEEL_SHARD_ROW(options, shard_optimizer),
    KEEL_OPTIMIZER_ROWS(options, compile),
    KEEL_LOSS_ROWS(options, compile),
    KEEL_OPTION_ROW(options, json, "json", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "one line of JSON"),
    KEEL_OPTION_ROW(options, output, "output", 'o', false, KEEL_OPTION_TEXT, "FILE", NULL,
                    "draw the curve: FILE.svg, or FILE.html with the table"),
    { 0 },
};

const keel_command keel_command_simulate = {
    .name = "simulate",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Predict how fast a model trains on many machines",
    .help =
        "Predicts time, efficiency and memory of the steps of keel fit on many machines like this "
        "one, before you rent them. For each number of machines it runs real steps of one process "
        "with the rows that it would have, its part of the gradients to add up and the sums of all "
        "others to merge; what the others would send is made up. So compute is measured. "
        "Exchanges are not: how many there are and what they carry is recorded, and their time "
        "follows from the rate and the latency of --network. Processes of one machine run at the "
        "same time, as far as there are cores for them.\n"
        "With --batch-size, a step has the same rows on any number of machines, and compute "
        "shrinks while exchanges do not: the efficiency tells how many machines are worth it. With "
        "--batch-size-per-process, machines keep their rows, and steps grow. Efficiency is rows a "
        "second over machines times those of one machine. Reading data, noise between machines and "
        "congestion between their links are not predicted.",
    .example = "keel simulate resnet50.keras --batch-size-per-process 32 --machines 1-1024 "
               "--network 25Gbit,50us -o curve.svg",
    .options = table,
    .size = sizeof(options),
    .processes = KEEL_ALONE,
    .run = run,
};
