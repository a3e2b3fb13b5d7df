/* Values that are made again for backward instead of being kept: which they are, that a step needs
 * less memory, and that no bit of the training changes, on cores and on devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "keel/keel.h"
#include "must.h"
#include "standin.h"
#include "train/pairing.h"
#include "train/strategy.h"
#include "train/trainer.h"

enum { ROWS = 37, BATCH = 15, EDGE = 12, CLASSES = 4, EPOCHS = 2 };

/* ---- networks --------------------------------------------------------------------------------
 */

static keel_symbol conv(keel_model *m, keel_symbol x, int64_t filters, int64_t size)
{
    return must_call(m, "Conv2D",
                     KEEL_ARGS(KEEL_ARG_INT("filters", filters), KEEL_ARG_INT("kernel_size", size),
                               KEEL_ARG_STR("padding", "same"), KEEL_ARG_BOOL("use_bias", false)),
                     x);
}

static keel_symbol norm(keel_model *m, keel_symbol x)
{
    return must_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.9)), x);
}

static keel_symbol act(keel_model *m, const char *name, keel_symbol x)
{
    return must_call(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", name)), x);
}

static keel_symbol dense(keel_model *m, keel_symbol x, int64_t units)
{
    return must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", units)), x);
}

static keel_symbol relu_chain(keel_model *m, keel_symbol x)
{
    for (int i = 0; i < 6; i++) x = act(m, "relu", norm(m, conv(m, x, 8, 3)));
    return x;
}

static keel_symbol silu_chain(keel_model *m, keel_symbol x)
{
    for (int i = 0; i < 6; i++) x = act(m, "silu", norm(m, conv(m, x, 8, 3)));
    return x;
}

/* As in ResNet: sums that go on to the next block. */
static keel_symbol residual(keel_model *m, keel_symbol x)
{
    x = act(m, "relu", norm(m, conv(m, x, 8, 3)));
    for (int i = 0; i < 4; i++) {
        keel_symbol pair[2] = { x,
                                norm(m, conv(m, act(m, "relu", norm(m, conv(m, x, 8, 3))), 8, 1)) };
        must(keel_model_call(m, "Add", NULL, pair, 2, &x));
        x = act(m, "relu", x);
    }
    return x;
}

/* As where ResNet gets more channels: the sum's other input is normalised, too, so that both run
 * again. A convolution behind the sum reads that other input as well if `both`. */
static keel_symbol projected(keel_model *m, keel_symbol x, bool both)
{
    for (int i = 0; i < 4; i++) {
        keel_symbol pair[2] = { norm(m, conv(m, x, 8, 1)), norm(m, conv(m, x, 8, 3)) }, other;
        must(keel_model_call(m, "Add", NULL, pair, 2, &x));
        x = conv(m, act(m, "relu", x), 8, 3);
        if (!both) continue;
        other = conv(m, pair[0], 8, 1);
        must(keel_model_call(m, "Add", NULL, (keel_symbol[]){ x, other }, 2, &x));
    }
    return x;
}

static keel_symbol two_normed(keel_model *m, keel_symbol x)
{
    return projected(m, x, false);
}

static keel_symbol read_twice(keel_model *m, keel_symbol x)
{
    return projected(m, x, true);
}

/* As in DenseNet: what is normalised is all that came before. */
static keel_symbol dense_net(keel_model *m, keel_symbol x)
{
    x = conv(m, x, 8, 3);
    for (int i = 0; i < 6; i++) {
        keel_symbol pair[2] = { x, conv(m, act(m, "relu", norm(m, x)), 4, 3) };
        must(keel_model_call(m, "Concatenate", NULL, pair, 2, &x));
    }
    return x;
}

/* Chance is drawn twice, and must be the same; places are dense layers' rows. */
static keel_symbol gelu_dropout(keel_model *m, keel_symbol x)
{
    for (int i = 0; i < 3; i++) {
        x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)),
                      act(m, "gelu", dense(m, x, 16)));
        x = must_call(m, "LayerNormalization", NULL, dense(m, x, 8));
    }
    return x;
}

/* A layer that is called twice moves its statistics twice. */
static keel_symbol shared_norm(keel_model *m, keel_symbol x)
{
    x = norm(m, conv(m, x, 8, 3));
    x = conv(m, act(m, "relu", x), 8, 3);
    must(keel_model_call_again(m, "batch_normalization", &x, 1, &x));
    x = conv(m, act(m, "relu", x), 8, 3);
    return x;
}

typedef struct network {
    const char *name;
    keel_symbol (*body)(keel_model *m, keel_symbol x);
    double most; /* of the activations' memory */
} network;

static const network networks[] = {
    { "relu behind each normalisation", relu_chain, 0.73 },
    { "silu behind each normalisation", silu_chain, 0.73 },
    { "sums that go on", residual, 0.78 },
    { "sums of two that are normalised", two_normed, 0.85 },
    { "such sums, and one of the two read again", read_twice, 0.89 },
    { "all that came before", dense_net, 0.84 },
    { "gelu and dropout", gelu_dropout, 0.82 },
    { "a normalisation that is called twice", shared_norm, 1 },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static keel_model *model_of(const network *n, keel_dtype dtype, const char *policy)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, NULL, dtype, 7));
    must(keel_model_input(m, KEEL_DIMS(EDGE, EDGE, 3), NULL, &x));
    x = must_call(m, "GlobalAveragePooling2D", NULL, n->body(m, x));
    x = act(m, "softmax", dense(m, x, CLASSES));
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    if (policy) must(keel_model_set_dtype_policy(m, policy));
    return m;
}

static keel_dataset *rows_made(void)
{
    static float x[ROWS * EDGE * EDGE * 3], y[ROWS];
    uint32_t state = 5;
    keel_dataset *d;
    for (int i = 0; i < ROWS * EDGE * EDGE * 3; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i * 7 % CLASSES);
    const keel_tensor images = { KEEL_FLOAT32, { 4, { ROWS, EDGE, EDGE, 3 } }, x };
    const keel_tensor labels = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    must(keel_dataset_from_arrays(&d, &images, &labels, NULL));
    return d;
}

/* ---- the same bits, in less memory -----------------------------------------------------------
 */

static void same_weights(const keel_model *a, const keel_model *b, const char *what)
{
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        const char *name = keel_model_weight_name(a, i);
        keel_tensor u, v;
        must(keel_model_get_weight(a, name, &u));
        must(keel_model_get_weight(b, name, &v));
        const size_t bytes = (size_t)keel_shape_count(&u.shape) * keel_dtype_size(u.dtype);
        if (memcmp(u.data, v.data, bytes) != 0) fail_msg("%s: '%s' is another", what, name);
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
}

/* Trains on s, and gives the loss of the last epoch. */
static keel_model *train(const network *n, keel_dtype dtype, const char *policy, keel_strategy *s,
                         bool recompute, double *loss)
{
    keel_history h = { 0 };
    keel_model *m = model_of(n, dtype, policy);
    keel_dataset *d = rows_made();
    keel_strategy_recompute(s, recompute);
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS },
                  &h));
    *loss = h.value[(h.epochs - 1) * h.count];
    keel_history_free(&h);
    keel_dataset_destroy(d);
    return m;
}

static void compare(const network *n, keel_dtype dtype, const char *policy, keel_strategy *s,
                    const char *how)
{
    char what[128];
    double kept, again;
    snprintf(what, sizeof what, "%s, %s", n->name, how);
    keel_model *a = train(n, dtype, policy, s, false, &kept);
    keel_model *b = train(n, dtype, policy, s, true, &again);
    same_weights(a, b, what);
    assert_true(kept == again);
    keel_model_destroy(a);
    keel_model_destroy(b);
}

static void no_bit_depends_on_what_is_kept(void **unused)
{
    static const struct {
        const char *devices;
        int shards;
        keel_dtype dtype;
        const char *policy;
    } cases[] = {
        { "cpu:0", 0, KEEL_FLOAT32, NULL },
        { "cpu:0-2", 0, KEEL_FLOAT32, NULL },
        { "cpu:0+1", 0, KEEL_FLOAT64, NULL },
        { "cpu:0-4", 16, KEEL_FLOAT32, NULL },
        { "cpu:0-1", 0, KEEL_FLOAT32, "mixed_bfloat16" },
        { "cpu:0-1", 0, KEEL_FLOAT32, "mixed_float16" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_strategy *s;
        must(keel_strategy_create(&s, cases[i].devices));
        if (cases[i].shards) must(keel_strategy_reproducible(s, cases[i].shards));
        for (int k = 0; k < NETWORKS; k++)
            compare(&networks[k], cases[i].dtype, cases[i].policy, s, cases[i].devices);
        keel_strategy_destroy(s);
    }
}

static void devices_make_values_again_too(void **unused)
{
    (void)unused;
    for (int k = 0; k < NETWORKS; k++) {
        keel_device *device[2] = { standin_open(&standin_runs, 0), standin_open(&standin_runs, 1) };
        keel_strategy *s;
        must(keel_strategy_create_devices(&s, device, 2));
        compare(&networks[k], KEEL_FLOAT32, k % 2 ? "mixed_bfloat16" : NULL, s, "two devices");
        keel_strategy_destroy(s);
        for (int i = 0; i < 2; i++) {
            const standin *at = standin_of(device[i]);
            if (at->clocks.reports > 0) fail_msg("%s: %s", at->base.name, at->clocks.first);
            device[i]->type->close(device[i]);
        }
    }
}

static void a_step_needs_less_memory(void **unused)
{
    (void)unused;
    for (int k = 0; k < NETWORKS; k++)
        for (int narrow = 0; narrow < 2; narrow++) {
            keel_model *m = model_of(&networks[k], KEEL_FLOAT32, narrow ? "mixed_bfloat16" : NULL);
            keel_strategy *s;
            keel_plan p[2] = { 0 };
            must(keel_strategy_create(&s, "cpu:0"));
            for (int again = 0; again < 2; again++) {
                keel_strategy_recompute(s, again);
                must(keel_plan_make(&p[again], m, s, 64, 64, KEEL_KEEP, NULL));
            }
            if (!((double)p[1].activation_bytes[0] <=
                  networks[k].most * (double)p[0].activation_bytes[0]))
                fail_msg("%s: %lld bytes instead of %lld", networks[k].name,
                         (long long)p[1].activation_bytes[0], (long long)p[0].activation_bytes[0]);
            for (int again = 0; again < 2; again++) keel_plan_free(&p[again]);
            keel_strategy_destroy(s);
            keel_model_destroy(m);
        }
}

/* ---- which values ----------------------------------------------------------------------------
 */

/* "bn + relu before conv_1 (weights)", for each node that is run again. */
static void say_again(const keel_program *p, char *out, size_t size)
{
    static const char *const pass[] = { [KEEL_RUN_BACKWARD] = "backward",
                                        [KEEL_RUN_PARTIAL_BACKWARD] = "sums",
                                        [KEEL_RUN_WEIGHTS] = "weights" };
    const keel_schedule *s = &p->schedule;
    size_t n = 0;
    *out = 0;
    for (int at = 0; at < s->n_instruction; at++) {
        int next = at + 1;
        if (s->instruction[at].kind != KEEL_RUN_AGAIN) continue;
        while (s->instruction[next].kind == KEEL_RUN_AGAIN) next++;
        const keel_instruction *reader = &s->instruction[next];
        n += (size_t)snprintf(out + n, size - n, "%s%s before %s (%s)", n ? "; " : "",
                              p->graph->node[s->instruction[at].node].node.layer,
                              p->graph->node[reader->node].node.layer, pass[reader->kind]);
    }
}

/* The layer of a word, called "bn4" if it is the fifth. */
static keel_symbol put(keel_model *m, const char *word, int number, keel_symbol x)
{
    char name[16];
    snprintf(name, sizeof name, "%s%d", word, number);
    if (!strcmp(word, "conv"))
        return must_call(m, "Conv2D",
                         KEEL_ARGS(KEEL_ARG_INT("filters", 8), KEEL_ARG_INT("kernel_size", 3),
                                   KEEL_ARG_STR("padding", "same"), KEEL_ARG_STR("name", name)),
                         x);
    if (!strcmp(word, "bn"))
        return must_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_STR("name", name)), x);
    if (!strcmp(word, "dense"))
        return must_call(m, "Dense",
                         KEEL_ARGS(KEEL_ARG_INT("units", 8), KEEL_ARG_STR("name", name)), x);
    return must_call(m, "Activation",
                     KEEL_ARGS(KEEL_ARG_STR("activation", word), KEEL_ARG_STR("name", name)), x);
}

/* Words in a line, each reading the one before, and what is run again. A convolution's gradient of
 * its input reads no values, that of its weights does. */
static void values_are_made_again_where_most_is_kept(void **unused)
{
    static const struct {
        const char *words[9], *again;
        bool flat;
    } cases[] = {
        { { "conv", "bn", "relu", "conv", "bn", "relu", "conv" },
          "bn4 + relu5 before conv6 (weights); bn1 + relu2 before bn4 + relu5 (weights)" },
        { { "conv", "gelu", "conv", "gelu", "conv" },
          "gelu3 before conv4 (weights); gelu1 before conv2 (weights)" },
        { { "conv", "relu", "conv", "relu", "conv" }, "" }, /* written over what it reads */
        { { "conv", "conv", "conv" }, "" },
        { { "dense", "gelu", "dense", "gelu", "dense" }, "", true }, /* tiles read it in the end */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m;
        keel_symbol x;
        keel_strategy *s;
        keel_trainer *t;
        keel_pairing pairing;
        char again[400];
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
        must(
            keel_model_input(m, cases[i].flat ? KEEL_DIMS(8) : KEEL_DIMS(EDGE, EDGE, 8), NULL, &x));
        for (int k = 0; cases[i].words[k]; k++) x = put(m, cases[i].words[k], k, x);
        must(keel_model_outputs(m, &x, 1));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
        must(keel_strategy_create(&s, "cpu:0"));
        keel_strategy_recompute(s, true);
        must(keel_pairing_guess(&pairing, m, NULL));
        must(keel_trainer_create(&t, m, s, &(keel_trainer_work){ &pairing, 64 },
                                 &(keel_trainer_work){ 0 },
                                 &(keel_trainer_options){ .dry = true }));
        say_again(t->train.program, again, sizeof again);
        assert_string_equal(again, cases[i].again);
        keel_trainer_destroy(t);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

static void a_failing_allocation_leaves_nothing(void **unused)
{
    keel_model *m = model_of(&networks[2], KEEL_FLOAT32, NULL);
    keel_strategy *s;
    keel_status status = KEEL_ENOMEM;
    (void)unused;
    must(keel_strategy_create(&s, "cpu:0"));
    keel_strategy_recompute(s, true);
    keel_plan p = { 0 };
    must(keel_plan_make(&p, m, s, 64, 64, KEEL_KEEP, NULL)); /* what is made once is made */
    keel_plan_free(&p);
    const int64_t live = keel_memory_live();
    for (int64_t at = 0; status == KEEL_ENOMEM; at++) {
        keel_memory_fail_at(at);
        status = keel_plan_make(&p, m, s, 64, 64, KEEL_KEEP, NULL);
        keel_memory_fail_at(-1);
        if (status >= 0) keel_plan_free(&p);
        assert_int_equal(keel_memory_live(), live);
    }
    must(status);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bit_depends_on_what_is_kept),
        cmocka_unit_test(devices_make_values_again_too),
        cmocka_unit_test(a_step_needs_less_memory),
        cmocka_unit_test(values_are_made_again_where_most_is_kept),
        cmocka_unit_test(a_failing_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
