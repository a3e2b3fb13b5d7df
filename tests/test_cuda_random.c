/* Fits drawn by chance (random_fit.h) on one to four GPUs by the plug-in's own source, on the
 * emulator and doubles of CUDA's runtime and libraries: weights and predictions are those of the
 * host, however streams lag. No kernel touches memory that is not its own, that nobody has written,
 * or that another thread writes, no call is wrong, and nothing stays.
 *
 * `test_cuda_random FROM COUNT` tries that many from one number on (random_seeds.h). */
#include <math.h>
#include "random_fit.h"
#include "random_seeds.h"
#include "cuda_double.h"
#include "device/cuda_plugin.h"
#include "emulator.h"
#include "sweep.h"
#include "train/strategy.h"

extern const keel_cuda_plugin keel_cuda;

enum { GPUS = CUDA_DOUBLE_GPUS };

static char trouble[4 * TEXT];

static bool wrong(const fitting *f, const char *what)
{
    char fits[TEXT];
    describe(f, fits);
    snprintf(trouble, sizeof trouble, "seed %llu: %s\n  %s", (unsigned long long)f->g.seed, what,
             fits);
    return false;
}

typedef struct outcome {
    keel_model *model;
    keel_tensor predicted;
    keel_status status;
    char text[TEXT];
} outcome;

/* On n GPUs; 0: on the host. */
static void run(fitting *f, int n, outcome *o)
{
    keel_device *gpu[GPUS];
    keel_strategy *s;
    *o = (outcome){ 0 };
    must(make_model(f, &o->model));
    for (int i = 0; i < n; i++) must(keel_cuda.open(&gpu[i], i));
    if (n)
        must(keel_strategy_create_devices(&s, gpu, n));
    else
        must(keel_strategy_create(&s, "cpu:0"));
    if (n && f->shards) must(keel_strategy_reproducible(s, f->shards));
    keel_strategy_recompute(s, f->recompute);
    o->status = keel_fit(o->model, s, f->rows.data, &f->o, NULL);
    if (o->status >= 0)
        o->status = keel_predict(o->model, s, f->held_out.data, &f->o, &o->predicted);
    if (o->status < 0) snprintf(o->text, sizeof o->text, "%s", keel_error());
    keel_strategy_destroy(s);
    for (int i = 0; i < n; i++) gpu[i]->type->close(gpu[i]);
    cuda_double_unloads();
    const char *fault = emu_report();
    if (fault && o->status >= 0) {
        o->status = KEEL_EDEVICE;
        snprintf(o->text, sizeof o->text, "%s", fault);
    }
    emu_release_all();
    if (cuda_double_live() || cuda_runtime_live())
        fail_msg("seed %d: something stays", (int)f->g.seed);
}

static void forget(outcome *o)
{
    keel_tensor_free(&o->predicted);
    keel_model_destroy(o->model);
}

/* To a thousandth of the largest, since sums are in other orders; narrow values are rounded to
 * three digits, and may be on either side of a step. */
static bool close_to(const fitting *f, const char *what, const keel_tensor *a, const keel_tensor *b)
{
    const int64_t n = keel_shape_count(&a->shape);
    double size = 1, most = 0;
    for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(at(b->data, b->dtype, i)));
    for (int64_t i = 0; i < n; i++) {
        const double u = at(a->data, a->dtype, i), v = at(b->data, b->dtype, i);
        if (!(isnan(u) && isnan(v)))
            most = fmax(most, isnan(u) || isnan(v) ? INFINITY : fabs(u - v));
    }
    if (most <= (f->policy ? 0.2 : 1e-3) * size) return true;
    char text[TEXT];
    snprintf(text, sizeof text, "%s is off by %g, of %g", what, most, size);
    return wrong(f, text);
}

static bool same(const fitting *f, const outcome *a, const outcome *b)
{
    if (a->status != b->status) return wrong(f, a->status < 0 ? a->text : b->text);
    if (a->status < 0) return true;
    bool fine = close_to(f, "a prediction", &a->predicted, &b->predicted);
    for (int i = 0; fine && i < keel_model_weight_count(a->model); i++) {
        keel_tensor u, v;
        const char *name = keel_model_weight_name(a->model, i);
        must(keel_model_get_weight(a->model, name, &u));
        must(keel_model_get_weight(b->model, name, &v));
        fine = close_to(f, name, &u, &v);
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
    return fine;
}

/* A few steps by an optimizer for which a small difference stays one. */
static void make_small(fitting *f)
{
    f->optimizer = (drawn_optimizer){ .name = "SGD" };
    with(&f->optimizer, (keel_arg)KEEL_ARG_FLOAT("learning_rate", 0.002));
    f->schedule = f->multi = f->callback = f->second = NULL;
    f->scale = 0;
    f->o.callbacks = NULL;
    f->o.reference_kernels = false;
    f->o.epochs = 1;
    f->o.steps_per_epoch = 2;
    f->o.end = KEEL_WRAP;
    f->o.validation = NULL;
    if (f->o.batch_size > 5 && f->open != STATEFUL) f->o.batch_size = 5;
}

static bool try(uint64_t seed, bool prints)
{
    fitting f;
    outcome a, b;
    bool fine = true;
    if (draw_fitting(&f, seed) < 0) fail_msg("%s", keel_error());
    make_small(&f);
    keel_model *m = NULL;
    if (f.dtype == KEEL_FLOAT32 && make_model(&f, &m) >= 0) { /* else kernels have little to do */
        keel_model_destroy(m);
        if (percent(40)) f.shards = 0;
        cuda_runtime_late(percent(50) ? (uint32_t)seed : 0);
        run(&f, 1 + chance(GPUS), &a);
        run(&f, 0, &b);
        fine = same(&f, &a, &b);
        if (!fine && prints) print_graph(&f.g);
        forget(&a);
        forget(&b);
    }
    free_fitting(&f);
    return fine;
}

static void a_fit_on_any_gpus_is_that_of_the_host(void **unused)
{
    const int64_t before = emu_launches();
    (void)unused;
    for (uint64_t seed = 1; seed <= (uint64_t)thin(100, 20, 5); seed++)
        if (!try(seed, false)) fail_msg("%s", trouble);
    assert_true(emu_launches() > before + 100);
}

static bool try_and_print(uint64_t seed)
{
    return try(seed, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_fit_on_any_gpus_is_that_of_the_host),
    };
    if (argc < 3) return cmocka_run_group_tests(test, NULL, NULL);
    return try_seeds(argv, try_and_print, trouble) > 0;
}
