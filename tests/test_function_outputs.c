/* Steps that call a part of a model: what leads to outputs that are not wanted is not computed. */
#include "must.h"
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { ROWS = 7, NUMBERS = 3 };

/* Two ways: "a" through a BatchNormalization, "b" through a Dense; and their sum. */
static keel_model *two_ways(void)
{
    keel_model *m;
    keel_symbol a, b, sum[2], out[3];
    must(keel_model_create(&m, "ways", KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(NUMBERS), NULL, &a));
    must(keel_model_input(m, KEEL_DIMS(NUMBERS), NULL, &b));
    sum[0] = out[0] =
        must_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_STR("name", "norm")), a);
    sum[1] = out[1] = must_call(
        m, "Dense", KEEL_ARGS(KEEL_ARG_STR("name", "line"), KEEL_ARG_INT("units", NUMBERS)), b);
    must(keel_model_call(m, "Add", NULL, sum, 2, &out[2]));
    must(keel_model_outputs(m, out, 3));
    return m;
}

typedef struct part {
    keel_model *model;
    bool wanted[3], given[2];
} part;

static keel_status step(void *context, keel_trace *t)
{
    const part *p = context;
    keel_traced in[2] = { KEEL_UNUSED, KEEL_UNUSED }, out = -1;
    keel_scalar loss = -1;
    keel_gradients g = -1;
    if (p->given[0]) keel_trace_input(t, "a", &in[0]);
    if (p->given[1]) keel_trace_input(t, "b", &in[1]);
    keel_trace_outputs(t, p->model, true, in, 2, p->wanted, &out);
    for (int i = 0; i < 3; i++)
        if (p->wanted[i]) keel_trace_mean(t, out + i, KEEL_UNWEIGHTED, &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ p->model }, 1, &g);
    return keel_trace_apply(t, g, &(keel_apply){ { "sgd" } });
}

static keel_status run(part *p)
{
    static float rows[2][ROWS * NUMBERS];
    const keel_data_field inputs[] = { { "a", KEEL_FLOAT32, { 1, { NUMBERS } } },
                                       { "b", KEEL_FLOAT32, { 1, { NUMBERS } } } };
    const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { ROWS, NUMBERS } }, rows[0] },
                               { KEEL_FLOAT32, { 2, { ROWS, NUMBERS } }, rows[1] } };
    for (int i = 0; i < ROWS * NUMBERS; i++) rows[0][i] = rows[1][i] = (float)(i * 37 % 16) / 8 - 1;
    keel_function *f;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step,
                                                            .context = p, .input = inputs,
                                                            .n_input = 2 }));
    const keel_status status = keel_strategy_run(s, f, in, 2);
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    return status;
}

static bool is_moved(const keel_model *before, const keel_model *after, const char *weight)
{
    keel_tensor a, b;
    must(keel_model_get_weight(before, weight, &a));
    must(keel_model_get_weight(after, weight, &b));
    int64_t n = 1;
    for (int k = 0; k < a.shape.rank; k++) n *= a.shape.dim[k];
    const bool is = memcmp(a.data, b.data, (size_t)n * sizeof(float)) != 0;
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    return is;
}

static const struct {
    const char *name;
    bool wanted[3], given[2];
    bool norm, line;  /* what moves: statistics and beta of the one, bias of the other */
    const char *text; /* of the refusal; NULL: none */
} cases[] = {
    { "one way, without the other's input", { true }, { true }, true, false, NULL },
    { "the other way", { false, true }, { false, true }, false, true, NULL },
    { "one way, with all inputs", { false, true }, { true, true }, false, true, NULL },
    { "what both lead to", { false, false, true }, { true, true }, true, true, NULL },
    { "no output",
      { false },
      { true, true },
      false,
      false,
      "no output of the model 'ways' is wanted" },
    { "an input that is needed",
      { false, false, true },
      { true },
      false,
      false,
      "input 1 is needed for an output that is wanted" },
};

static void what_leads_to_no_wanted_output_is_not_computed(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *const before = two_ways();
        part p = { .model = two_ways() };
        memcpy(p.wanted, cases[i].wanted, sizeof p.wanted);
        memcpy(p.given, cases[i].given, sizeof p.given);
        const keel_status s = run(&p);
        if (cases[i].text ? s != KEEL_EARG || !strstr(keel_error(), cases[i].text) : s < 0)
            fail_msg("%s: %s '%s'", cases[i].name, keel_status_name(s), keel_error());
        const bool norm = is_moved(before, p.model, "norm/moving_mean");
        if (norm != cases[i].norm || is_moved(before, p.model, "norm/beta") != cases[i].norm)
            fail_msg("%s: BatchNormalization %s", cases[i].name, norm ? "moves" : "does not move");
        if (is_moved(before, p.model, "line/bias") != cases[i].line)
            fail_msg("%s: Dense", cases[i].name);
        keel_model_destroy(before);
        keel_model_destroy(p.model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leads_to_no_wanted_output_is_not_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
