/* Fits on pipelines drawn by chance: stopped after any step and gone on with from a checkpoint, on
 * other devices and with other threads, they end with the same bits. What a checkpoint keeps of the
 * place in the data is small. Devices are cores, and stand-ins for those with memory of their own,
 * which one fit after another uses.
 *
 * `test_random_fits FROM COUNT` tries that many from one number on (random_seeds.h). */
#include "random_pipelines.h"
#include "random_seeds.h"
#include "standin.h"
#include "train/strategy.h"
#include <sys/stat.h>

enum { CORES = 8, MACHINES = 4, STRATEGIES = CORES + MACHINES, DEVICES = 8 };

static const struct {
    const keel_device_type *type;
    int n;
    const char *beside; /* cores; NULL: none */
} machines[MACHINES] = { { &standin_runs, 1, NULL },
                         { &standin_stores, 2, NULL },
                         { &standin_sums, 3, NULL },
                         { &standin_runs, 2, "cpu:0" } };

static keel_device *device[DEVICES];
static int n_device;

static char folder[256], lines[2000], trouble[6000];
static keel_strategy *strategy[STRATEGIES];

static bool wrong(const drawn *p, const char *what)
{
    snprintf(trouble, sizeof trouble, "seed %llu: %s\n  %s: %s\n  %s", (unsigned long long)p->seed,
             p->text, what, keel_error(), lines);
    return false;
}

static void on_line(void *context, const char *line)
{
    (void)context;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static int64_t stop_after, steps_seen;

static keel_status on_step(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    return ++steps_seen == stop_after ? KEEL_END : KEEL_OK;
}

typedef struct outcome {
    keel_status status;
    char text[512];
    float weight[8];
    int64_t epochs;
} outcome;

/* An average of what the rows were: Dense(1) with the squared error, and dropout, which is keyed by
 * the place of a row. */
static keel_model *model(void)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", DRAWN_WIDTH))));
    must(keel_model_add(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1e-3))));
    must(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.2))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "Adam" },
                                                .loss = { { "mean_squared_error" } } }));
    return m;
}

static outcome fitted(const drawn *p, const keel_fit_options *with, int lane,
                      const keel_checkpoint_options *checkpoint, int64_t stop)
{
    const keel_callback stops = { KEEL_CALLBACK, .name = "stop", .on_train_batch_end = on_step };
    static uint64_t turn;
    if (mixed(p->seed, turn++) % 2) drawn_forget(p); /* a run finds the files of others, or not */
    drawn q = pipeline_drawn(p->seed, p->depth);
    keel_fit_options o = *with;
    outcome r = { 0 };
    keel_history h = { 0 };
    keel_model *m = model();
    o.callbacks = KEEL_CALLBACKS(&stops);
    o.checkpoint = checkpoint;
    stop_after = stop;
    steps_seen = 0;
    lines[0] = 0;
    r.status = keel_fit(m, strategy[lane], q.d, &o, &h);
    if (r.status < 0) snprintf(r.text, sizeof r.text, "%s", keel_error());
    r.epochs = h.epochs;
    for (int i = 0, at = 0; r.status >= 0 && i < 2; i++) {
        keel_tensor w;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &w));
        const int64_t n = keel_shape_count(&w.shape);
        memcpy(r.weight + at, w.data, (size_t)n * sizeof(float));
        at += (int)n;
        keel_tensor_free(&w);
    }
    keel_history_free(&h);
    keel_model_destroy(m);
    pipeline_free(&q);
    return r;
}

static void empty_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void open_machines(void)
{
    n_device = 0;
    for (int i = 0; i < MACHINES; i++) {
        for (int k = 0; k < machines[i].n; k++)
            device[n_device + k] = standin_open(machines[i].type, n_device + k);
        must(keel_strategy_create_beside(&strategy[CORES + i], device + n_device, machines[i].n,
                                         machines[i].beside));
        n_device += machines[i].n;
    }
    for (int i = CORES; i < STRATEGIES; i++) must(keel_strategy_reproducible(strategy[i], 16));
}

static bool close_machines(const drawn *p)
{
    bool fine = true;
    for (int i = CORES; i < STRATEGIES; i++) keel_strategy_destroy(strategy[i]);
    for (int i = 0; i < n_device; i++) {
        const standin *s = standin_of(device[i]);
        if (s->clocks.reports > 0) fine = wrong(p, s->clocks.first);
        if (s->allocations) fine = wrong(p, "memory of a device stays");
        device[i]->type->close(device[i]);
    }
    return fine;
}

static bool try(uint64_t seed)
{
    draws r = { mixed(seed, 9) };
    drawn p = pipeline_drawn(seed, (int)draw(&r, 0, DRAWN_DEPTH));
    const int64_t n = keel_dataset_cardinality(p.d);
    bool fine = true, opened = false;
    keel_fit_options o = { KEEL_FIT_OPTIONS, .seed = 4, .reference_kernels = true,
                           .epochs = draw(&r, 1, 3) };
    o.batch_size = keel_stage_spec(p.d).batched ? 0 : draw(&r, 1, 9);
    o.end = (keel_end_of_data)draw(&r, 0, 4);
    if (n < 0 || n > 60 || chance(&r, 2)) o.steps_per_epoch = draw(&r, 1, 6);
    if (!p.fits) goto out;
    open_machines();
    opened = true;
    const outcome whole = fitted(&p, &o, (int)draw(&r, 0, STRATEGIES - 1), NULL, -1);
    const int64_t all = steps_seen, stop = all > 1 ? draw(&r, 1, all - 1) : 0;
    if (whole.status < 0 || !stop) goto out;
    const keel_checkpoint_options first = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                            .every_steps = 1000, .interrupted = always };
    keel_checkpoint_options again = first;
    again.resume = true;
    again.on_line = on_line;
    empty_folder();
    const outcome part = fitted(&p, &o, (int)draw(&r, 0, STRATEGIES - 1), &first, stop);
    if (part.status < 0) fine = wrong(&p, "the run that was stopped");
    if (!fine) goto out;
    const outcome rest = fitted(&p, &o, (int)draw(&r, 0, STRATEGIES - 1), &again, -1);
    if (rest.status < 0)
        fine = wrong(&p, "the run that goes on");
    else if (steps_seen != all - stop)
        fine = wrong(&p, "other steps were left");
    else if (memcmp(rest.weight, whole.weight, sizeof rest.weight))
        fine = wrong(&p, "other weights");
    else if (rest.epochs != whole.epochs)
        fine = wrong(&p, "other epochs");
out:
    if (opened && !close_machines(&p)) fine = false;
    drawn_forget(&p);
    pipeline_free(&p);
    return fine;
}

static int prepare(void **unused)
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    (void)unused;
    snprintf(folder, sizeof folder, "%s/ckpt", tmp ? tmp : "/tmp");
    snprintf(drawn_folder, sizeof drawn_folder, "%s", tmp ? tmp : "/tmp");
    drawn_fill();
    drawn_files_begin();
    for (int i = 0; i < CORES; i++) {
        char text[32];
        snprintf(text, sizeof text, i ? "cpu:0-%d" : "cpu:0", i);
        must(keel_strategy_create(&strategy[i], text));
    }
    for (int i = 0; i < CORES; i++) must(keel_strategy_reproducible(strategy[i], 16));
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    empty_folder();
    files_end();
    for (int i = 0; i < CORES; i++) keel_strategy_destroy(strategy[i]);
    return 0;
}

static void a_fit_on_a_pipeline_goes_on_from_any_step_on_other_devices(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 80; seed++)
        if (!try(seed)) fail_msg("%s", trouble);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_fit_on_a_pipeline_goes_on_from_any_step_on_other_devices),
    };
    if (argc < 3) return cmocka_run_group_tests(test, prepare, finish);
    prepare(NULL);
    const int bad = try_seeds(argv, try, trouble);
    finish(NULL);
    return bad > 0;
}
