/* A sum of two values and the normalisation of the rows of one number that it gives. Such a row is
 * 0 once it is normalised, so gamma has no gradient: what is normalised must be the sum as it is
 * stored, which backward reads. */
#ifndef KEEL_TESTS_NORM_OF_ONE_H
#define KEEL_TESTS_NORM_OF_ONE_H
#include "must.h"

/* gamma after an epoch of one step; at first it is 1. */
static inline float norm_of_one_gamma(const char *policy, keel_strategy *s)
{
    float x[4] = { 0.3f, 1.7f, -0.9f, 2.6f }, target[4] = { 1, -1, 2, 0.5f };
    const keel_tensor rows = { KEEL_FLOAT32, { 2, { 4, 1 } }, x },
                      targets = { KEEL_FLOAT32, { 2, { 4, 1 } }, target };
    keel_model *m;
    keel_symbol both[2], y;
    keel_tensor gamma;
    keel_dataset *d;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(1), NULL, &both[0]));
    both[1] = must_call(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "tanh")), both[0]);
    must(keel_model_call(m, "Add", NULL, both, 2, &y));
    y = must_call(m, "LayerNormalization", KEEL_ARGS(KEEL_ARG_STR("name", "norm")), y);
    y = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), y);
    must(keel_model_outputs(m, &y, 1));
    must(keel_model_set_dtype_policy(m, policy));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    must(keel_dataset_from_arrays(&d, &rows, &targets, NULL));
    must(keel_fit(m, s, d, NULL, NULL));
    must(keel_model_get_weight(m, "norm/gamma", &gamma));
    const float after = *(const float *)gamma.data;
    keel_tensor_free(&gamma);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    return after;
}

/* Of each policy. */
static inline void norm_of_one_check(keel_strategy *s, const char *where)
{
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16" };
    for (int k = 0; k < 3; k++) {
        const float gamma = norm_of_one_gamma(policies[k], s);
        if (gamma != 1) fail_msg("%s, %s: gamma is %.9g", where, policies[k], (double)gamma);
    }
}

#endif
