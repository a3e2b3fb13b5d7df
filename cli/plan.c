/* keel plan: prints the split of each step among devices, the fate of the last rows, and the memory
 * of a fit. It runs nothing, except with --reproducible, whose cost is measured, and with
 * --share auto. */
#include "processes.h"
#include "setup.h"
#include "shapes.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    keel_data_options data;
    keel_compile_options compile;
    keel_devices_options devices;
    const char *shape, *plugin;
    int64_t rows, batch_size, processes;
    int end, dtype, compress;
    bool shard_optimizer, recompute;
    int64_t micro_batch; /* 0: none */
} options;

static int count_rows(int64_t *rows, const options *o, const keel_dataset *d)
{
    *rows = d ? keel_dataset_rows(d) : o->rows;
    if (*rows < 0)
        return keel_complain(EXIT_FAILED,
                             "%s: nobody knows how many rows it has before it is read; give "
                             "--rows N",
                             o->data.data);
    return *rows > 0 ? -1 : keel_complain(EXIT_FAILED, "%s has no rows", o->data.data);
}

/* How many rows there are, and their shapes: from --rows and --shape, or from the data. */
static int read_rows(int64_t *rows, keel_shape **shapes, const options *o, const keel_model *m)
{
    keel_dataset *d = NULL;
    int code = -1;
    if (!o->rows == !o->data.data)
        return keel_complain(EXIT_USAGE, "give either --rows N, or --data SRC to count them");
    if (!o->rows) code = keel_setup_data(&d, o->data.data, KEEL_USE_INPUTS, &o->data, m);
    if (code < 0) code = count_rows(rows, o, d);
    if (code < 0) code = keel_shapes_read(shapes, o->shape, d, m);
    keel_dataset_destroy(d);
    return code;
}

static void print_split(const keel_plan *p, const keel_strategy *s)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], share[KEEL_SHARE_TEXT_MAX];
    if (*keel_share_text(s, share)) printf("shares     %s of each step\n", share);
    printf("\n%-10s %8s %12s %12s\n", "device", "worker", "full step", "last step");
    for (int i = 0; i < p->devices; i++)
        printf("%-10s %8lld %12s %12s\n", keel_strategy_device_name(s, i),
               (long long)p->worker_of[i], keel_grouped(a, p->full[i]),
               keel_grouped(b, p->last[i]));
    int64_t full = 0;
    for (int i = 0; i < p->devices; i++) full += p->full[i];
    printf("%-10s %8s %12s %12s\n", "rows", "", keel_grouped(a, full),
           keel_grouped(b, p->last_rows));
}

static void print_tail(const keel_plan *p, int end)
{
    char a[KEEL_NUMBER_MAX];
    const int64_t tail = p->rows % p->batch_size;
    char rest[KEEL_NUMBER_MAX + 16] = "row is";
    if (tail != 1) snprintf(rest, sizeof rest, "%s rows are", keel_grouped(a, tail));
    fputs("\nend        ", stdout);
    if (tail == 0)
        puts("every step is full");
    else if (end == KEEL_KEEP)
        printf("the last %s a short step, trained with exact weights\n", rest);
    else if (end == KEEL_DROP)
        printf("the last %s left out of each epoch\n", rest);
    else if (end == KEEL_CARRY)
        printf("the last %s the first of the next epoch\n", rest);
    else
        printf("the last %s filled up to a step with rows from the start\n", rest);
}

/* What --input-memory of keel fit is by default. */
static void print_input_memory(void)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], safe[256];
    int64_t limit, left;
    const char *group;
    if (!keel_input_group_limit(&limit, &left, &group)) {
        puts("input      no limit: no control group limits the memory of this process");
        return;
    }
    printf("input      at most %s: half of what control group %s leaves free of its %s\n",
           keel_size_text(a, left / 2), keel_printable(safe, sizeof safe, group),
           keel_size_text(b, limit));
}

/* What a device needs of its own memory, and for what. */
static void print_device(const keel_plan *p, int worker, bool recompute)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    const int64_t needs = p->device_bytes[worker], has = p->device_memory[worker];
    if (!has) return; /* a core */
    printf("device %-3d %s of the %s that it has", worker, keel_size_text(a, needs),
           keel_size_text(b, has));
    if (needs > has)
        printf(": too little; use %ssmaller batches or more devices",
               recompute ? "" : "--recompute, ");
    putchar('\n');
    int n = 0;
    for (int i = 0; i < p->n_part; i++)
        if (p->part[i].worker == worker)
            printf("%s%s %s", n++ ? ", " : "           ", p->part[i].what,
                   keel_size_text(a, p->part[i].bytes));
    if (n) putchar('\n');
}

static void print_memory(const keel_plan *p, bool recompute)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], c[KEEL_NUMBER_MAX];
    printf("\n%-10s %8s %12s %12s %12s\n", "memory", "devices", "activations", "gradients",
           "scratch");
    for (int w = 0; w < p->workers; w++) {
        int lanes = 0;
        for (int i = 0; i < p->devices; i++) lanes += p->worker_of[i] == w;
        printf("worker %-3d %8d %12s %12s %12s\n", w, lanes,
               keel_size_text(a, p->activation_bytes[w]), keel_size_text(b, p->gradient_bytes[w]),
               keel_size_text(c, p->scratch_bytes[w]));
    }
    printf("shared     weights %s, optimizer state %s, packed copies %s\n",
           keel_size_text(a, p->weight_bytes), keel_size_text(b, p->moment_bytes),
           keel_size_text(c, p->packed_bytes));
    printf("model      %s more for checkpoints, and for callbacks that save or read the model\n",
           keel_size_text(a, p->model_bytes));
    printf("bound      any plan needs at least %s for a worker's activations\n",
           keel_size_text(a, p->activation_bound));
    for (int w = 0; p->device_bytes && w < p->workers; w++) print_device(p, w, recompute);
    if (p->staged) printf("staged     runs staged through the host: %s\n", p->staged);
    printf("total      %s, without the batches that are read ahead\n",
           keel_size_text(a, p->total_bytes));
}

/* On the host and on devices. */
static int64_t bytes_of(const keel_plan *p)
{
    int64_t sum = p->total_bytes;
    for (int w = 0; p->device_bytes && w < p->workers; w++) sum += p->device_bytes[w];
    return sum;
}

static void print_shares(const char *what, const int64_t *rows, int n)
{
    enum { SHOWN = 16 };
    char a[KEEL_NUMBER_MAX];
    printf("%s", what);
    for (int i = 0; i < n && i < SHOWN; i++) printf(" %s", keel_grouped(a, rows[i]));
    puts(n > SHOWN ? " ..." : "");
}

/* How processes share the steps, and what travels. */
static void print_processes(const keel_plan *p, const options *o)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], c[KEEL_NUMBER_MAX];
    if (p->processes == 1) return;
    printf("\nprocesses  %d, each with these devices; memory and devices are those of one\n",
           p->processes);
    if (p->process_full[0])
        print_shares("rows       of a full step:", p->process_full, p->processes);
    if (p->last_rows) print_shares("rows       of the last step:", p->process_last, p->processes);
    printf("sends      in a full step, to all others together: gradients%s %s%s, statistics %s, "
           "other %s\n",
           o->shard_optimizer ? " and weights" : "", keel_size_text(a, p->sent_gradients),
           o->compress ? o->shard_optimizer ? " (gradients as bf16)" : " (as bf16)" : "",
           keel_size_text(b, p->sent_statistics), keel_size_text(c, p->sent_others));
    printf(
        "exchanges  %d a step at most, gradients while backward runs; buffers for what comes %s\n",
        p->exchanges, keel_size_text(a, p->exchange_bytes));
    if (o->shard_optimizer)
        printf(
            "sharded    the optimizer's state is in %d parts, one in each process, and process 0 "
            "has all of it while it is saved; weights travel when backward has ended\n",
            p->processes);
}

/* A failure to measure is printed, but does not fail the plan. */
static void print_cost(keel_plan *p, keel_model *m, keel_strategy *s, const keel_shape *shapes)
{
    const int shards = keel_strategy_shards(s);
    char a[KEEL_NUMBER_MAX];
    if (!shards) return;
    const int64_t rows = p->batch_size < p->rows ? p->batch_size : p->rows;
    const int64_t most = (rows + shards - 1) / shards;
    printf("\nreproducible  %d shard%s, of at most %s row%s each\n", shards, shards == 1 ? "" : "s",
           keel_grouped(a, most), most == 1 ? "" : "s");
    if (keel_plan_measure(p, m, s, shapes) < 0)
        printf("cost          not measured: %s\n", keel_error());
    else
        printf(
            "cost          a step takes %.2f times as long as an ordinary one (%.2f and %.2f ms, "
            "medians)\n",
            p->reproducible_seconds / p->plain_seconds, 1e3 * p->reproducible_seconds,
            1e3 * p->plain_seconds);
}

/* What a plan is made for. */
typedef struct planned {
    const keel_model *m;
    keel_strategy *s;
    int64_t rows;
    const keel_shape *shapes; /* of one row */
} planned;

static keel_status make(keel_plan *p, const options *o, const planned *of, bool recompute,
                        int64_t micro_batch)
{
    const int processes = (int)(o->processes > INT_MAX ? INT_MAX : o->processes);
    keel_strategy_recompute(of->s, recompute);
    keel_status s = keel_strategy_micro_batch(of->s, micro_batch);
    if (s >= 0)
        s = keel_plan_processes(p, of->m, of->s, processes, of->rows, o->batch_size,
                                (keel_end_of_data)o->end, of->shapes);
    keel_strategy_recompute(of->s, o->recompute);
    (void)keel_strategy_micro_batch(of->s, o->micro_batch); /* the first plan was made with it */
    return s;
}

/* What an option saves, or would save: `with` is the plan with it. */
static void print_saved(const char *name, const char *option, bool given, const keel_plan *with,
                        const keel_plan *without)
{
    char a[KEEL_NUMBER_MAX];
    const int64_t less = bytes_of(without) - bytes_of(with);
    printf("%-10s %s %s %s\n", name, option, given && less > 0 ? "saves" : "would save",
           less > 0 ? keel_size_text(a, less) : "nothing");
}

static void print_recompute(const options *o, const planned *of, const keel_plan *p)
{
    keel_plan other = { 0 };
    if (make(&other, o, of, !o->recompute, o->micro_batch) < 0) return;
    print_saved("recompute", "--recompute", o->recompute, o->recompute ? p : &other,
                o->recompute ? &other : p);
    keel_plan_free(&other);
}

static void print_micro_batch(const options *o, const planned *of, const keel_plan *p)
{
    const int64_t rows = o->micro_batch ? o->micro_batch : 1;
    char option[48];
    keel_plan other = { 0 };
    snprintf(option, sizeof option, "--micro-batch %lld", (long long)rows);
    if (make(&other, o, of, o->recompute, o->micro_batch ? 0 : rows) < 0) {
        printf("%-10s %s\n", "micro", keel_error());
        return;
    }
    print_saved("micro", option, o->micro_batch > 0, o->micro_batch ? p : &other,
                o->micro_batch ? &other : p);
    keel_plan_free(&other);
}

static int plan(const options *o, keel_model *m, const char *path)
{
    keel_plan p = { 0 };
    keel_strategy *s = NULL;
    keel_shape *shapes = NULL;
    int64_t rows = 0;
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX], c[KEEL_NUMBER_MAX];
    int code = read_rows(&rows, &shapes, o, m);
    if (code >= 0) return code;
    if ((code = keel_setup_strategy(&s, &o->devices)) >= 0) goto out;
    keel_strategy_recompute(s, o->recompute);
    code = keel_setup_share_by_speed(s, &o->devices, m, rows < o->batch_size ? rows : o->batch_size,
                                     shapes);
    if (code >= 0) goto out;
    keel_status status = keel_strategy_compress(s, (keel_compress)o->compress);
    if (status >= 0) status = keel_strategy_shard_optimizer(s, o->shard_optimizer);
    const planned of = { m, s, rows, shapes };
    if (status >= 0) status = make(&p, o, &of, o->recompute, o->micro_batch);
    if (status < 0) {
        code = keel_complain_status(status);
        goto out;
    }
    printf("model      %s, %s parameters\n", path,
           keel_grouped(a, keel_model_count_params(m, NULL)));
    printf("epoch      %s %s in %s %s of %s\n", keel_grouped(a, p.rows),
           p.rows == 1 ? "row" : "rows", keel_grouped(b, p.steps), p.steps == 1 ? "step" : "steps",
           keel_grouped(c, p.batch_size));
    printf("devices    %d, run by %d %s\n", p.devices, p.workers,
           p.workers == 1 ? "worker" : "workers");
    print_split(&p, s);
    print_tail(&p, o->end);
    print_processes(&p, o);
    print_memory(&p, o->recompute);
    print_recompute(o, &of, &p);
    print_micro_batch(o, &of, &p);
    print_input_memory();
    print_cost(&p, m, s, shapes);
    code = EXIT_OK;
out:
    free(shapes);
    keel_plan_free(&p);
    keel_strategy_destroy(s);
    return code;
}

static int run(const void *given, int n_arg, char **arg)
{
    const options *o = given;
    keel_model *m = NULL;
    (void)n_arg;
    const char *otherwise = o->processes > 1 ? NULL : "of which --processes N gives the number";
    int code = keel_processes_check_compress(o->compress, o->devices.reproducible, otherwise);
    if (code < 0) code = keel_processes_check_shards(o->shard_optimizer, otherwise);
    if (code < 0) code = keel_setup_plugin(o->plugin);
    if (code < 0) code = keel_setup_model(&m, arg[0], NULL, o->dtype, false);
    if (code >= 0) return code;
    if ((code = keel_setup_compile(m, &o->compile, arg[0])) < 0) code = plan(o, m, arg[0]);
    keel_model_destroy(m);
    return code;
}

static const keel_option table[] = {
    KEEL_OPTION_ROW(options, rows, "rows", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "rows per epoch"),
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", "32",
                    "rows per step, over all devices"),
    KEEL_OPTION_ROW(
        options, shape, "shape", 0, false, KEEL_OPTION_TEXT, "DIMS", NULL,
        "shape of a row, if the model has open dimensions that --data does not fill: 80, or by "
        "the names of inputs 'tokens=80 image=40,48,3'"),
    KEEL_DEVICES_ROWS(options, devices),
    KEEL_OPTION_ROW(options, processes, "processes", 0, false, KEEL_OPTION_POSITIVE, "N", "1",
                    "so many processes share the steps, each with these devices, as under mpirun: "
                    "show their rows and what travels"),
    KEEL_COMPRESS_ROW(options, compress),
    KEEL_SHARD_ROW(options, shard_optimizer),
    KEEL_RECOMPUTE_ROW(options, recompute),
    KEEL_MICRO_BATCH_ROW(options, micro_batch),
    KEEL_PLUGIN_ROW(options, plugin),
    KEEL_DTYPE_ROW(options, dtype),
    KEEL_END_ROW(options, end, "rows that do not fill a step; see keel fit"),
    KEEL_DATA_ROWS(options, data, false),
    KEEL_OPTIMIZER_ROWS(options, compile),
    KEEL_LOSS_ROWS(options, compile),
    { 0 },
};

const keel_command keel_command_plan = {
    .name = "plan",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Show the split and the memory of a fit without running it",
    .help =
        "Devices that share a core are run by one worker. A worker has memory for its largest "
        "step. With --reproducible it runs a few steps on made-up rows, with and without shards, "
        "to measure the cost of reproducible steps, and with --share auto to measure the devices.",
    .example = "keel plan m.keras --rows 1031 --batch-size 64 --devices cpu:0-3",
    .options = table,
    .size = sizeof(options),
    .run = run,
};
