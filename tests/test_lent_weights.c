/* The weights of a model are in the memory of a function that has called it, and whoever else reads
 * or sets them, or uses their memory in another way, does not notice. They are large enough to
 * leave the model's own memory. */
#include "base/memory.h"
#include "keel/function.h"
#include "model/model.h"
#include "must.h"
#include <math.h>
#include <string.h>

enum { UNITS = 600, ROWS = 4 };
static float x[ROWS][UNITS];
static const keel_tensor rows = { KEEL_FLOAT32, { 2, { ROWS, UNITS } }, x };

typedef struct job {
    keel_model *m, *fresh; /* alike */
    keel_strategy *s;
    keel_dataset *data;
    keel_function *looks, *trains;
} job;

static keel_status look(void *model, keel_trace *t)
{
    keel_traced in, out;
    keel_trace_input(t, "x", &in);
    keel_trace_model(t, model, false, &in, 1, &out);
    return keel_trace_return(t, "y", out);
}

static keel_status train(void *model, keel_trace *t)
{
    keel_traced in, out;
    keel_scalar loss;
    keel_gradients g;
    keel_trace_input(t, "x", &in);
    keel_trace_model(t, model, true, &in, 1, &out);
    keel_trace_loss(t, &(keel_named){ "mse" }, in, out, KEEL_UNWEIGHTED, &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ model }, 1, &g);
    return keel_trace_apply(t, g, &(keel_apply){ { "sgd" } });
}

static keel_model *network(void)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", UNITS))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", UNITS))));
    must(keel_model_add(m, "BatchNormalization", NULL));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                                .loss = { { "mean_squared_error" } } }));
    return m;
}

static keel_function *function(keel_step step, keel_model *m)
{
    static const keel_data_field input = {
        .path = "x", .dtype = KEEL_FLOAT32, .shape = { 1, { UNITS } }, .role = KEEL_ROLE_INPUT
    };
    keel_function *f;
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step,
                                                            .context = m, .input = &input,
                                                            .n_input = 1 }));
    return f;
}

static void begin(job *j)
{
    for (int i = 0; i < ROWS * UNITS; i++) x[i / UNITS][i % UNITS] = (float)(i * 37 % 101) / 101;
    *j = (job){ .m = network(), .fresh = network() };
    must(keel_strategy_create(&j->s, "cpu:0"));
    must(keel_dataset_from_arrays(&j->data, &rows, &rows, NULL));
    j->looks = function(look, j->m);
    j->trains = function(train, j->m);
}

static void end(job *j)
{
    keel_function_destroy(j->looks);
    keel_function_destroy(j->trains);
    keel_dataset_destroy(j->data);
    keel_strategy_destroy(j->s);
    keel_model_destroy(j->m);
    keel_model_destroy(j->fresh);
    assert_int_equal(keel_memory_live(), 0);
}

/* The weights of m become those of the other model, as a program would set them. */
static void set_weights(keel_model *m, const keel_model *from)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        const char *name = keel_model_weight_name(m, i);
        keel_tensor t;
        must(keel_model_get_weight(from, name, &t));
        must(keel_model_set_weight(m, name, &t));
        keel_tensor_free(&t);
    }
}

static void are_equal(const keel_tensor *a, const keel_tensor *b, const char *what)
{
    if (memcmp(a->data, b->data, sizeof x)) fail_msg("other outputs %s", what);
}

/* The function sees the model as it is, and as another copy of it predicts. */
static void looks_right(job *j, const char *what)
{
    keel_tensor seen, predicted;
    set_weights(j->fresh, j->m);
    must(keel_strategy_run(j->s, j->looks, &rows, 1));
    must(keel_gather(j->looks, "y", &seen));
    must(keel_predict(j->fresh, j->s, j->data, NULL, &predicted));
    are_equal(&seen, &predicted, what);
    keel_tensor_free(&predicted);
    must(keel_predict(j->m, j->s, j->data, NULL, &predicted)); /* of the lent weights */
    are_equal(&seen, &predicted, what);
    keel_tensor_free(&predicted);
    keel_tensor_free(&seen);
}

static bool is_lent(const keel_model *m)
{
    return m->weight[0].own != NULL;
}

static void whoever_changes_the_weights_is_seen(void **unused)
{
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = ROWS };
    job j;
    (void)unused;
    begin(&j);
    looks_right(&j, "at first");
    assert_true(is_lent(j.m));
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    looks_right(&j, "after a step of another function");
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    looks_right(&j, "after more of them");
    must(keel_fit(j.m, j.s, j.data, &o, NULL));
    looks_right(&j, "after a fit");
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    must(keel_model_save(j.m, "lent.keras"));
    must(keel_fit(j.m, j.s, j.data, &o, NULL));
    must(keel_model_load_weights(j.m, "lent.keras"));
    looks_right(&j, "after its weights were loaded");
    keel_function_destroy(j.trains);
    j.trains = NULL;
    looks_right(&j, "after the other function has ended");
    keel_function_destroy(j.looks);
    assert_false(is_lent(j.m));
    j.looks = function(look, j.m);
    looks_right(&j, "by a new function");
    end(&j);
}

static void their_memory_can_be_used_in_another_way(void **unused)
{
    job j;
    keel_model *outer;
    keel_dataset *mapped;
    keel_tensor a, b;
    (void)unused;
    begin(&j);
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    looks_right(&j, "before");
    must(keel_dataset_map_model(&mapped, j.data, j.m, false));
    assert_false(is_lent(j.m));
    looks_right(&j, "while rows are mapped");
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    looks_right(&j, "after a step with that");
    assert_false(is_lent(j.m));
    must(keel_predict(j.m, j.s, mapped, NULL, &a));
    must(keel_predict(j.fresh, j.s, mapped, NULL, &b));
    are_equal(&a, &b, "of mapped rows");
    keel_dataset_destroy(mapped);
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    looks_right(&j, "after that");
    assert_true(is_lent(j.m));
    must(keel_model_set_dtype(j.m, KEEL_FLOAT64));
    assert_int_equal(keel_strategy_run(j.s, j.looks, &rows, 1), KEEL_EARG);
    must(keel_model_set_dtype(j.m, KEEL_FLOAT32));
    looks_right(&j, "in float32 again");
    keel_function_destroy(j.trains);
    j.trains = NULL;
    must(keel_predict(j.m, j.s, j.data, NULL, &a));
    keel_function_destroy(j.looks); /* before the model belongs to another */
    j.looks = NULL;
    keel_symbol in, out;
    must(keel_model_create(&outer, NULL, KEEL_FLOAT32, 0));
    must(keel_model_input(outer, KEEL_DIMS(UNITS), NULL, &in));
    must(keel_model_call_model(outer, j.m, NULL, &in, 1, &out));
    must(keel_model_outputs(outer, &out, 1));
    j.m = outer;
    must(keel_predict(outer, j.s, j.data, NULL, &b));
    are_equal(&a, &b, "inside another model");
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    end(&j);
}

static void a_failed_step_leaves_them(void **unused)
{
    job j;
    (void)unused;
    begin(&j);
    must(keel_strategy_run(j.s, j.trains, &rows, 1));
    looks_right(&j, "before");
    set_weights(j.fresh, j.m);
    keel_tensor a, b;
    must(keel_predict(j.fresh, j.s, j.data, NULL, &a));
    x[1][7] = NAN;
    assert_int_equal(keel_strategy_run(j.s, j.trains, &rows, 1), KEEL_ENUMERIC);
    x[1][7] = (float)((UNITS + 7) * 37 % 101) / 101;
    must(keel_predict(j.m, j.s, j.data, NULL, &b));
    are_equal(&a, &b, "after a failed step");
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    looks_right(&j, "after it");
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_changes_the_weights_is_seen),
        cmocka_unit_test(their_memory_can_be_used_in_another_way),
        cmocka_unit_test(a_failed_step_leaves_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
