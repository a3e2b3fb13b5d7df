/* Memory that runs out at each point of building, compiling, saving and loading: one clear error,
 * nothing leaked, and a model that existed before is as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "model/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *scratch(void)
{
    static char path[512];
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(path, sizeof path, "%s/faults.%ld.keras", folder ? folder : "/tmp", (long)getpid());
    return path;
}

static keel_status build(keel_model **out)
{
    keel_status s;
    keel_symbol a, b, c;
    keel_model *m = NULL;
    const keel_arg *conv = KEEL_ARGS(KEEL_ARG_INT("filters", 2), KEEL_ARG_INT("kernel_size", 3),
                                     KEEL_ARG_STR("kernel_regularizer", "l2"),
                                     KEEL_ARG_STR("activity_regularizer", "l1"));
    const keel_arg *held = KEEL_ARGS(
        KEEL_ARG_JSON("layer", "{\"class_name\": \"BatchNormalization\", \"config\": {}}"));
    const keel_arg *made = KEEL_ARGS(KEEL_ARG_INT("num_heads", 1), KEEL_ARG_INT("key_dim", 2),
                                     KEEL_ARG_STR("bias_regularizer", "l2"));
    if ((s = keel_model_create(&m, "m", KEEL_FLOAT32, 1)) < 0) goto out;
    if ((s = keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &a)) < 0) goto out;
    if ((s = keel_model_call(m, "Conv2D", conv, &a, 1, &b)) < 0) goto out;
    if ((s = keel_model_call(m, "BatchNormalization", NULL, &b, 1, &c)) < 0) goto out;
    if ((s = keel_model_call(m, "Add", NULL, (keel_symbol[]){ c, b }, 2, &c)) < 0) goto out;
    if ((s = keel_model_call(m, "MultiHeadAttention", made, (keel_symbol[]){ c, c }, 2, &c)) < 0)
        goto out;
    if ((s = keel_model_call(m, "TimeDistributed", held, &c, 1, &c)) < 0) goto out;
    if ((s = keel_model_call(m, "Flatten", NULL, &c, 1, &c)) < 0) goto out;
    if ((s = keel_model_outputs(m, (keel_symbol[]){ c, b }, 2)) < 0) goto out;
    if ((s = keel_model_set_class_names(m, (const char *const[]){ "a", "b" }, 2)) < 0) goto out;
    s = keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                               .loss = { { "mse" } },
                                               .metrics = { { "mae" }, { "mse", NULL, 1 } } });
    if (s < 0) goto out;
    *out = m;
    return s;
out:
    keel_model_destroy(m);
    return s;
}

static keel_status only_build(void)
{
    keel_model *m = NULL;
    const keel_status s = build(&m);
    if (s >= 0) keel_model_destroy(m);
    return s;
}

static keel_status load_adam(void)
{
    keel_model *m = NULL;
    const keel_status s = keel_model_load(&m, golden_path("sequential_adam.keras"));
    assert_true(s >= 0 || !m);
    keel_model_destroy(m);
    return s;
}

static keel_status load_functional(void)
{
    keel_model *m = NULL;
    const keel_status s = keel_model_load(&m, golden_path("functional_adamw.keras"));
    keel_model_destroy(m);
    return s;
}

static keel_status load_nested(void)
{
    keel_model *m = NULL;
    const keel_status s = keel_model_load(&m, golden_path("functional_nested.keras"));
    keel_model_destroy(m);
    return s;
}

static keel_status load_legacy(void)
{
    keel_model *m = NULL;
    const keel_status s = keel_model_load(&m, golden_path("legacy_words.h5"));
    keel_model_destroy(m);
    return s;
}

/* A model that cannot be taken in stays whole. */
static keel_status build_nested(void)
{
    keel_status s;
    keel_symbol a, b;
    keel_model *m = NULL, *inner = NULL;
    if ((s = keel_model_create(&m, "outer", KEEL_FLOAT32, 1)) < 0) goto out;
    if ((s = keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &a)) < 0) goto out;
    if ((s = build(&inner)) < 0) goto out;
    if ((s = keel_model_call_model(m, inner, NULL, &a, 1, &b)) < 0) {
        assert_int_equal(inner->n_weight, 18);
        goto out;
    }
    inner = NULL;
    s = keel_model_outputs(m, &b, 1);
out:
    keel_model_destroy(inner);
    keel_model_destroy(m);
    return s;
}

static keel_model *standing; /* made before the failures begin */

static keel_status save(void)
{
    const keel_status s = keel_model_save(standing, scratch());
    if (s < 0) assert_int_not_equal(access(scratch(), F_OK), 0);
    unlink(scratch());
    return s;
}

static keel_status emit(void)
{
    keel_value in[1], out[2], mask[2];
    keel_model_emission e = { .real = KEEL_FLOAT32,
                              .training = true,
                              .scored = true,
                              .input = in,
                              .output = out,
                              .mask = mask };
    const keel_status s = keel_model_emit(standing, &e);
    if (s >= 0) keel_graph_destroy(e.graph);
    return s;
}

static keel_status look_and_change(void)
{
    keel_status s;
    char *text = NULL;
    keel_tensor t = { 0 };
    if ((s = keel_model_summary(standing, &text)) < 0) return s;
    keel_model_summary_free(text);
    if ((s = keel_model_get_weight(standing, "conv2d/kernel", &t)) < 0) return s;
    keel_tensor_free(&t);
    if ((s = keel_model_set_dtype(standing, KEEL_FLOAT64)) < 0) return s;
    while (keel_model_set_dtype(standing, KEEL_FLOAT32) < 0) continue;
    if ((s = keel_model_set_trainable(standing, "conv2d", false)) < 0) {
        assert_true(standing->weight[0].trainable);
        assert_int_equal(standing->compiled.n_state,
                         standing->compiled.n_slot * keel_model_trainable_count(standing));
        return s;
    }
    while (keel_model_set_trainable(standing, "conv2d", true) < 0) continue;
    return s;
}

static keel_status compile_anew(void)
{
    double before, after;
    assert_true(keel_model_learning_rate(standing, &before) >= 0);
    const keel_compile other = {
        KEEL_COMPILE,
        .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", before / 2)) },
        .loss = { { "mse" } }, .metrics = { { "mae" }, { "mse", NULL, 1 } }
    };
    const keel_status s = keel_model_compile(standing, &other);
    assert_true(keel_model_learning_rate(standing, &after) >= 0);
    assert_true(after == (s < 0 ? before : before / 2));
    return s;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    const struct {
        const char *what;
        keel_status (*run)(void);
    } doings[] = {
        { "build", only_build },
        { "load", load_adam },
        { "load functional", load_functional },
        { "load nested", load_nested },
        { "load legacy", load_legacy },
        { "build nested", build_nested },
        { "save", save },
        { "emit", emit },
        { "change", look_and_change },
        { "compile anew", compile_anew },
    };
    assert_int_equal(build(&standing), KEEL_OK);
    for (size_t i = 0; i < sizeof doings / sizeof *doings; i++) {
        const int64_t live = keel_memory_live();
        int64_t n = 0;
        for (keel_status s = KEEL_ENOMEM; s < 0; n++) {
            keel_memory_fail_at(n);
            s = doings[i].run();
            keel_memory_fail_at(-1);
            if (s < 0 && s != KEEL_ENOMEM)
                fail_msg("%s, allocation %d: %s", doings[i].what, (int)n, keel_error());
            if (s < 0 && !strstr(keel_error(), "memory"))
                fail_msg("%s, allocation %d says '%s'", doings[i].what, (int)n, keel_error());
            if (keel_memory_live() != live)
                fail_msg("%s, allocation %d: %d blocks leaked", doings[i].what, (int)n,
                         (int)(keel_memory_live() - live));
        }
        assert_true(n > 3);
    }
    keel_model_destroy(standing);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_fails_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
