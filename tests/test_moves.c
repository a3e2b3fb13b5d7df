/* Where a dense weight is moved while its gradient is made: the bits are those of making all
 * gradients first, which a clip by norm that never clips asks for; and gradients that may overflow
 * are still looked at before anything moves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "keel/keel.h"
#include "must.h"

enum { ROWS = 45, FEATURES = 70, HIDDEN = 117, CLASSES = 3 };
static float x[ROWS * FEATURES], y[ROWS];

static keel_model *network(const char *policy, const char *optimizer, const keel_arg *args)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(
        m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", HIDDEN), KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_set_dtype_policy(m, policy));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { optimizer, args },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    return m;
}

static keel_status fit(keel_model *m, int lanes)
{
    static const char *const devices[] = { NULL, "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, FEATURES } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    keel_strategy *s;
    keel_dataset *d;
    must(keel_strategy_create(&s, devices[lanes]));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 16, .seed = 2 };
    const keel_status status = keel_fit(m, s, d, &o, NULL);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    return status;
}

static void fill(float largest)
{
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = sinf((float)i * 1.3f);
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i * 7 % CLASSES);
    x[5] = largest;
}

static void same_weights(const keel_model *a, const keel_model *b, const char *what)
{
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        keel_tensor u, v;
        must(keel_model_get_weight(a, keel_model_weight_name(a, i), &u));
        must(keel_model_get_weight(b, keel_model_weight_name(b, i), &v));
        int64_t count = 1;
        for (int k = 0; k < u.shape.rank; k++) count *= u.shape.dim[k];
        if (memcmp(u.data, v.data, (size_t)count * sizeof(float)))
            fail_msg("%s: weight %d differs", what, i);
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
}

#define CLIP KEEL_ARG_FLOAT("global_clipnorm", 1e30)
#define RATE KEEL_ARG_FLOAT("learning_rate", 0.0625)
#define SLOW KEEL_ARG_FLOAT("learning_rate", 1e-14)
#define MU   KEEL_ARG_FLOAT("momentum", 0.875)

static void moving_while_gradients_are_made_gives_the_same_bits(void **unused)
{
    (void)unused;
    static const struct {
        const char *what, *optimizer;
        float largest; /* of the inputs */
        keel_arg plain[4], clipped[4];
    } cases[] = {
        { "momentum", "SGD", 1, { RATE, MU }, { RATE, MU, CLIP } },
        { "no momentum", "SGD", 1, { RATE }, { RATE, CLIP } },
        { "Adam", "Adam", 1, { RATE }, { RATE, CLIP } },
        { "an input of 2^39", "SGD", 0x1p39f, { SLOW, MU }, { SLOW, MU, CLIP } },
        { "an input of 2^41: gradients first", "SGD", 0x1p41f, { SLOW, MU }, { SLOW, MU, CLIP } },
    };
    static const char *const policies[] = { "float32", "mixed_bfloat16" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 2; k++)
            for (int lanes = 1; lanes <= 4; lanes++) {
                fill(cases[i].largest);
                keel_model *a = network(policies[k], cases[i].optimizer, cases[i].plain);
                keel_model *b = network(policies[k], cases[i].optimizer, cases[i].clipped);
                must(fit(a, lanes));
                must(fit(b, lanes));
                same_weights(a, b, cases[i].what);
                keel_model_destroy(a);
                keel_model_destroy(b);
            }
}

static void a_clip_of_0_clips_nothing(void **unused)
{
    (void)unused;
    static const keel_arg plain[] = { RATE, MU, { 0 } };
    static const char *const clips[] = { "clipnorm", "global_clipnorm", "clipvalue" };
    for (size_t i = 0; i < sizeof clips / sizeof *clips; i++)
        for (int lanes = 1; lanes <= 2; lanes++) {
            const keel_arg zero[] = { RATE, MU, KEEL_ARG_FLOAT(clips[i], 0), { 0 } };
            fill(1);
            keel_model *a = network("float32", "SGD", plain), *b = network("float32", "SGD", zero);
            must(fit(a, lanes));
            must(fit(b, lanes));
            same_weights(a, b, clips[i]);
            keel_model_destroy(a);
            keel_model_destroy(b);
        }
}

/* With weights of 0 the loss is finite whatever the input is. */
static void a_gradient_that_overflows_moves_nothing(void **unused)
{
    (void)unused;
    static const keel_arg rate[] = { RATE, { 0 } };
    for (int lanes = 1; lanes <= 4; lanes++) {
        fill(1);
        for (int i = 0; i < ROWS; i++) {
            x[i * FEATURES] = 3e38f;
            y[i] = 1;
        }
        keel_model *m, *before;
        for (int k = 0; k < 2; k++) {
            must(keel_model_create(k ? &before : &m, NULL, KEEL_FLOAT32, 5));
            keel_model *n = k ? before : m;
            must(keel_model_add(n, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
            must(keel_model_add(n, "Dense",
                                KEEL_ARGS(KEEL_ARG_INT("units", CLASSES),
                                          KEEL_ARG_STR("kernel_initializer", "zeros"),
                                          KEEL_ARG_STR("activation", "softmax"))));
            must(keel_model_compile(
                n, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD", rate },
                                    .loss = { { "sparse_categorical_crossentropy" } } }));
        }
        assert_int_equal(fit(m, lanes), KEEL_ENUMERIC);
        assert_non_null(strstr(keel_error(), "the gradient of"));
        same_weights(m, before, "a gradient that overflows");
        keel_model_destroy(m);
        keel_model_destroy(before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moving_while_gradients_are_made_gives_the_same_bits),
        cmocka_unit_test(a_clip_of_0_clips_nothing),
        cmocka_unit_test(a_gradient_that_overflows_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
