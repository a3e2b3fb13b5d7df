/* One network trained with every set of instructions that this processor has: kept to a set, Keel
 * runs no kernel and oneDNN no generated code of a better one, and all come to the same weights
 * within rounding. oneDNN chooses its code once a process, so each set is a process of its own, and
 * DNNL_VERBOSE makes it name what it runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/cpu/cpu.h"
#include "keel/keel.h"
#include "train/trainer.h"
#include "training_rows.h"

enum { WEIGHTS_MAX = 12000, EPOCHS = 2, OWN_MAX = 64 };

static const struct work {
    const char *name, *policy;
    int is_image;
    double tolerance; /* of the largest change that training makes to a weight */
} works[] = {
    { "dense", "float32", 0, 2e-5 },
    { "cnn", "float32", 1, 2e-5 },
    { "dense in bfloat16", "mixed_bfloat16", 0, 0.02 },
    { "cnn in bfloat16", "mixed_bfloat16", 1, 0.02 },
};
enum { WORKS = sizeof works / sizeof *works };

typedef struct outcome { /* of one level; shared with the process that made it */
    char error[300];
    int n[WORKS], n_own[WORKS];
    char own[WORKS][OWN_MAX][40]; /* kernels of Keel that were bound */
    float before[WORKS][WEIGHTS_MAX], after[WORKS][WEIGHTS_MAX];
} outcome;

static outcome *outcomes; /* [KEEL_CPU_ISAS] */
static int n_level;

/* ---- in the process of a level ------------------------------------------------------------------
 */

static keel_status network(keel_model **out, const struct work *w)
{
    keel_model *m;
    KEEL_TRY(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    *out = m;
#define ADD(...) KEEL_TRY(keel_model_add(m, __VA_ARGS__))
    if (w->is_image) {
        ADD("InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 12, 12, 3)));
        ADD("Conv2D", KEEL_ARGS(KEEL_ARG_INT("filters", 32), KEEL_ARG_INTS("kernel_size", 3, 3),
                                KEEL_ARG_STR("padding", "same")));
        ADD("BatchNormalization", NULL);
        ADD("Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "relu")));
        ADD("DepthwiseConv2D",
            KEEL_ARGS(KEEL_ARG_INTS("kernel_size", 3, 3), KEEL_ARG_STR("padding", "same")));
        ADD("MaxPooling2D", NULL);
        ADD("Conv2D", KEEL_ARGS(KEEL_ARG_INT("filters", 32), KEEL_ARG_INTS("kernel_size", 1, 1),
                                KEEL_ARG_STR("activation", "relu")));
        ADD("Conv2D", KEEL_ARGS(KEEL_ARG_INT("filters", 16), KEEL_ARG_INTS("kernel_size", 3, 3),
                                KEEL_ARG_INTS("strides", 2, 2)));
        ADD("Flatten", NULL);
    } else {
        ADD("InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 20)));
        ADD("Dense", KEEL_ARGS(KEEL_ARG_INT("units", 64), KEEL_ARG_STR("activation", "tanh")));
        ADD("Dense", KEEL_ARGS(KEEL_ARG_INT("units", 96), KEEL_ARG_STR("activation", "silu")));
    }
    ADD("Dense", KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax")));
#undef ADD
    KEEL_TRY(keel_model_set_dtype_policy(m, w->policy));
    return keel_model_compile(m,
                              &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                               .loss = { { "sparse_categorical_crossentropy" } } });
}

static keel_status weights_of(const keel_model *m, float *out, int *n)
{
    *n = 0;
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        int count = 1;
        KEEL_TRY(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        for (int k = 0; k < t.shape.rank; k++) count *= (int)t.shape.dim[k];
        if (*n + count > WEIGHTS_MAX) abort();
        memcpy(out + *n, t.data, (size_t)count * sizeof *out);
        *n += count;
        keel_tensor_free(&t);
    }
    return KEEL_OK;
}

static bool is_of(const keel_kernel *k, keel_run run)
{
    for (int pass = 0; pass < KEEL_PASS_COUNT; pass++)
        if (k->run[pass] == run || k->narrow[pass] == run) return true;
    return false;
}

/* The kernels of Keel's own that a training step of `m` is bound to. */
static keel_status own_kernels(keel_model *m, keel_strategy *s, outcome *o, int work)
{
    const keel_trainer_options options = { 0 };
    keel_pairing pairing;
    keel_trainer *t = NULL;
    assert_int_equal(keel_pairing_guess(&pairing, m, NULL), KEEL_OK);
    const keel_trainer_work train = { &pairing, BATCH }, none = { 0 };
    keel_team_enter(s->team);
    keel_status status = keel_trainer_create(&t, m, s, &train, &none, &options);
    const keel_bound *b = NULL;
    if (status >= 0) status = keel_program_bind(t->train.program, BATCH, &b);
    for (int w = 0; status >= 0 && w < s->lanes.n_worker; w++)
        for (int i = 0; i < b->workspace[w].n_call; i++)
            for (int k = 0; keel_kernels[k]; k++) {
                const keel_bound_call *c = &b->workspace[w].call[i];
                const keel_op *op = t->train.program->graph->node[c->node].node.op;
                if (keel_kernels[k]->op != op || !is_of(keel_kernels[k], c->run) ||
                    strstr(keel_kernels[k]->name, "dnnl") || o->n_own[work] == OWN_MAX)
                    continue;
                snprintf(o->own[work][o->n_own[work]++], sizeof **o->own, "%s_%s", op->name,
                         keel_kernels[k]->name);
            }
    keel_trainer_destroy(t);
    keel_team_leave(s->team);
    return status;
}

static keel_status train(const struct work *w, outcome *o)
{
    static rows data;
    const int at = (int)(w - works);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS };
    keel_model *m = NULL;
    keel_dataset *d = NULL;
    keel_strategy *s = NULL;
    make_rows(&data, w->is_image, ROWS, 3);
    const keel_shape shape =
        w->is_image ? (keel_shape){ 4, { ROWS, 12, 12, 3 } } : (keel_shape){ 2, { ROWS, 20 } };
    const keel_tensor x = { KEEL_FLOAT32, shape, data.x },
                      y = { KEEL_FLOAT32, { 1, { ROWS } }, data.y };
    keel_status status = network(&m, w);
    if (status >= 0) status = keel_strategy_create(&s, "cpu:0-1");
    if (status >= 0) status = keel_dataset_from_arrays(&d, &x, &y, NULL);
    if (status >= 0) status = own_kernels(m, s, o, at);
    if (status >= 0) status = weights_of(m, o->before[at], &o->n[at]);
    if (status >= 0) status = keel_fit(m, s, d, &options, NULL);
    if (status >= 0) status = weights_of(m, o->after[at], &o->n[at]);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return status;
}

/* ---- in this process ----------------------------------------------------------------------------
 */

static void path_of(char *out, size_t size, int level)
{
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(out, size, "%s/levels_%d_%s.txt", folder ? folder : "/tmp", (int)getpid(),
             keel_cpu_isa_name((keel_cpu_isa)level));
}

static int train_on_every_level(void **unused)
{
    (void)unused;
    n_level = (int)keel_cpu_level() + 1;
    outcomes = mmap(NULL, sizeof *outcomes * KEEL_CPU_ISAS, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcomes == MAP_FAILED) return -1;
    for (int level = 0; level < n_level; level++) {
        outcome *o = &outcomes[level];
        char path[300];
        int status = 0;
        path_of(path, sizeof path, level);
        fflush(NULL);
        const pid_t child = fork();
        if (child < 0) return -1;
        if (child == 0) {
            setenv("DNNL_VERBOSE", "1", 1);
            if (!freopen(path, "w", stdout)) _exit(1);
            keel_status s = keel_instructions_limit(keel_cpu_isa_name((keel_cpu_isa)level));
            for (const struct work *w = works; s >= 0 && w < works + WORKS; w++) s = train(w, o);
            if (s < 0) snprintf(o->error, sizeof o->error, "%s", keel_error());
            fflush(NULL);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status)
            snprintf(o->error, sizeof o->error, "ended with status %#x", (unsigned)status);
    }
    return 0;
}

static int tidy(void **unused)
{
    (void)unused;
    char path[300];
    for (int level = 0; level < n_level; level++) {
        path_of(path, sizeof path, level);
        unlink(path);
    }
    return munmap(outcomes, sizeof *outcomes * KEEL_CPU_ISAS);
}

static void all_levels_come_to_the_same_weights(void **unused)
{
    (void)unused;
    for (int level = 0; level < n_level; level++)
        if (*outcomes[level].error)
            fail_msg("%s: %s", keel_cpu_isa_name((keel_cpu_isa)level), outcomes[level].error);
    for (const struct work *w = works; w < works + WORKS; w++)
        for (int level = 1; level < n_level; level++) {
            const int at = (int)(w - works);
            const outcome *a = &outcomes[0], *b = &outcomes[level];
            double moved = 0, apart = 0;
            assert_true(a->n[at] > 0 && a->n[at] == b->n[at]);
            assert_memory_equal(a->before[at], b->before[at], sizeof(float) * (size_t)a->n[at]);
            for (int i = 0; i < a->n[at]; i++) {
                moved = fmax(moved, fabs((double)a->after[at][i] - a->before[at][i]));
                apart = fmax(apart, fabs((double)a->after[at][i] - b->after[at][i]));
            }
            print_message("%s: %s differs from base by %.1e of the largest change, %.3g\n", w->name,
                          keel_cpu_isa_name((keel_cpu_isa)level), apart / moved, moved);
            assert_true(moved > 1e-3);
            if (!(apart <= w->tolerance * moved))
                fail_msg("%s: %s is %g from base, of %g moved", w->name,
                         keel_cpu_isa_name((keel_cpu_isa)level), apart, moved);
        }
}

/* The level that a kernel's name ends in. */
static int level_named(const char *name)
{
    for (int level = KEEL_CPU_ISAS - 1; level > 0; level--) {
        const char *suffix = keel_cpu_isa_name((keel_cpu_isa)level);
        const size_t n = strlen(name), k = strlen(suffix);
        if (n > k && name[n - k - 1] == '_' && !strcmp(name + n - k, suffix)) return level;
    }
    return 0;
}

static void a_level_runs_only_its_own_kernels(void **unused)
{
    (void)unused;
    for (int level = 0; level < n_level; level++) {
        int best = 0, count = 0;
        for (int at = 0; at < WORKS; at++)
            for (int i = 0; i < outcomes[level].n_own[at]; i++) {
                const char *name = outcomes[level].own[at][i];
                const int needs = level_named(name);
                if (needs > level)
                    fail_msg("%s was bound on %s", name, keel_cpu_isa_name((keel_cpu_isa)level));
                if (needs > best) best = needs;
                count += needs > 0;
            }
        print_message("%s: %d calls of own kernels\n", keel_cpu_isa_name((keel_cpu_isa)level),
                      count);
        /* and it does use what it has; AMX of our own is chosen by measurement */
        assert_int_equal(best, level < KEEL_CPU_AMX ? level : best);
    }
}

static void onednn_keeps_to_the_level(void **unused)
{
    static const char *const beyond[KEEL_CPU_ISAS] = { [KEEL_CPU_BASE] = "avx",
                                                       [KEEL_CPU_AVX2] = "avx512",
                                                       [KEEL_CPU_AVX512] = "bf16",
                                                       [KEEL_CPU_AVX512_BF16] = "amx",
                                                       [KEEL_CPU_AMX] = "none" };
    (void)unused;
#ifndef KEEL_HAVE_DNNL
    skip();
#endif
    for (int level = 0; level < n_level; level++) {
        char path[300], line[1000];
        int executed = 0;
        path_of(path, sizeof path, level);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            /* ..._verbose,exec,cpu,convolution,jit:avx2,forward_training,... */
            char *at = strstr(line, ",exec,cpu,"), *name = at ? strchr(at + 10, ',') : NULL;
            if (!name) continue;
            name[1 + strcspn(name + 1, ",")] = 0;
            executed++;
            if (strstr(name, beyond[level]))
                fail_msg("oneDNN ran %s on %s", name + 1, keel_cpu_isa_name((keel_cpu_isa)level));
        }
        fclose(f);
        print_message("%s: %d calls of oneDNN\n", keel_cpu_isa_name((keel_cpu_isa)level), executed);
        assert_true(executed > 0);
    }
}

static void a_level_that_is_not_is_refused_by_name(void **unused)
{
    (void)unused;
    assert_int_equal(keel_instructions_limit("sse9"), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "sse9"));
    assert_int_equal(keel_instructions_limit(NULL), KEEL_EARG);
    assert_int_equal(keel_instructions_limit("amx"), KEEL_OK); /* no limit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_levels_come_to_the_same_weights),
        cmocka_unit_test(a_level_runs_only_its_own_kernels),
        cmocka_unit_test(onednn_keeps_to_the_level),
        cmocka_unit_test(a_level_that_is_not_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, train_on_every_level, tidy);
}
