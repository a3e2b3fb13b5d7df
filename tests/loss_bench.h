/* Losses over many shapes, weights, masks and types of labels, for the tests of their kernels: on
 * the processor (test_loss_kernels.c) and for CUDA (test_cuda_scores.c). */
#ifndef TESTS_LOSS_BENCH_H
#define TESTS_LOSS_BENCH_H
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "keel/keel.h"
#include "train/score.h"
#include "base/memory.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <cmocka.h>

enum { LOGITS, PROBABILITIES, REALS, SIDES };

static const struct loss {
    const char *name, *config;
    int numbers; /* what predictions are; targets of cross-entropies lie between 0 and 1, those of
                    SIDES are -1, 0 or 1 */
} losses[] = {
    { "sparse_categorical_crossentropy", "{\"from_logits\": true}", LOGITS },
    { "sparse_categorical_crossentropy", "{\"from_logits\": true, \"ignore_class\": 1}", LOGITS },
    { "sparse_categorical_crossentropy", "{}", PROBABILITIES },
    { "categorical_crossentropy", "{\"from_logits\": true, \"label_smoothing\": 0.2}", LOGITS },
    { "categorical_crossentropy", "{\"label_smoothing\": 0.2}", PROBABILITIES },
    { "binary_crossentropy", "{\"from_logits\": true, \"label_smoothing\": 0.2}", LOGITS },
    { "binary_crossentropy", "{}", PROBABILITIES },
    { "mean_squared_error", "{}", REALS },
    { "mean_absolute_error", "{}", REALS },
    { "mean_absolute_percentage_error", "{}", REALS },
    { "mean_squared_logarithmic_error", "{}", PROBABILITIES },
    { "huber", "{\"delta\": 0.75}", REALS },
    { "log_cosh", "{}", REALS },
    { "poisson", "{}", PROBABILITIES },
    { "hinge", "{}", SIDES },
    { "squared_hinge", "{}", SIDES },
    { "categorical_hinge", "{}", LOGITS },
    { "kl_divergence", "{}", PROBABILITIES },
    { "cosine_similarity", "{}", REALS },
    { "binary_focal_crossentropy", "{\"label_smoothing\": 0.1, \"gamma\": 1.5}", PROBABILITIES },
    { "binary_focal_crossentropy",
      "{\"from_logits\": true, \"apply_class_balancing\": true, \"alpha\": 0.3}", LOGITS },
    { "categorical_focal_crossentropy", "{\"label_smoothing\": 0.1}", PROBABILITIES },
    { "categorical_focal_crossentropy", "{\"from_logits\": true, \"gamma\": 1.5}", LOGITS },
    { "categorical_generalized_cross_entropy", "{\"q\": 0.3}", PROBABILITIES },
    { "KeelValues", "{\"program\": {}}", REALS },
};
enum { LOSSES = sizeof losses / sizeof *losses };

/* A row is `elements` elements of `last` numbers; apart: each element has its own weight. */
static const struct shape {
    const char *what;
    int64_t elements, last, rows;
    bool apart, masked;
    keel_dtype label;
} shapes[] = {
    { "one number", 1, 1, 1, false, false, KEEL_INT32 },
    { "one number of many rows", 1, 1, 67, false, false, KEEL_FLOAT32 },
    { "two classes", 1, 2, 33, false, false, KEEL_UINT8 },
    { "three classes of places, more than a block", 129, 3, 3, false, false, KEEL_INT32 },
    { "places with weights of their own", 70, 5, 3, true, false, KEEL_INT32 },
    { "masked places", 7, 8, 5, false, true, KEEL_INT64 },
    { "masked and weighted places", 21, 3, 4, true, true, KEEL_FLOAT32 },
    { "nine classes, of which lanes stay empty", 1, 9, 7, false, false, KEEL_INT32 },
    { "ten classes", 1, 10, 65, false, false, KEEL_INT32 },
    { "as many as lanes", 3, 16, 2, false, false, KEEL_INT32 },
    { "one more than lanes", 2, 17, 3, true, false, KEEL_BOOL },
    { "characters", 31, 65, 2, false, true, KEEL_INT32 },
    { "a thousand classes", 1, 1000, 3, false, false, KEEL_INT32 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct work {
    const struct loss *loss;
    const struct shape *shape;
    keel_loss_args args;
    void *own;
    keel_spec in[4];
    keel_node node;
    float *p, *weight, *mask;
    void *t;
} work;

static uint32_t state_of_draw = 1;
static inline double draw(void) /* in [0, 1) */
{
    state_of_draw = state_of_draw * 1664525u + 1013904223u;
    return (state_of_draw >> 8) * 0x1p-24;
}

static inline void draw_labels(work *w, int64_t count)
{
    w->t = keel_calloc((size_t)count, keel_dtype_size(w->in[KEEL_SCORE_TARGET].dtype));
    for (int64_t i = 0; i < count; i++) {
        const int64_t label = (int64_t)(draw() * (double)w->shape->last);
        switch (w->shape->label) {
        case KEEL_FLOAT32:
            ((float *)w->t)[i] = (float)label;
            break;
        case KEEL_UINT8:
        case KEEL_BOOL:
            ((uint8_t *)w->t)[i] = (uint8_t)label;
            break;
        case KEEL_INT32:
            ((int32_t *)w->t)[i] = (int32_t)label;
            break;
        default:
            ((int64_t *)w->t)[i] = label;
        }
    }
}

static inline void draw_numbers(work *w, bool labels)
{
    const int64_t n = w->shape->rows * w->shape->elements * w->shape->last;
    const int what = w->loss->numbers;
    w->p = keel_calloc((size_t)n, sizeof *w->p);
    for (int64_t i = 0; i < n; i++) {
        const double u = draw();
        w->p[i] = (float)(what == PROBABILITIES ? u : 12 * u - 6);
        if (what == PROBABILITIES && i % 11 == 3) w->p[i] = i % 2 ? 1e-9f : 1; /* clipped */
    }
    if (labels) {
        draw_labels(w, w->shape->rows * w->shape->elements);
        return;
    }
    float *t = w->t = keel_calloc((size_t)n, sizeof *t);
    for (int64_t i = 0; i < n; i++)
        t[i] = (float)(what == REALS   ? 6 * draw() - 3
                       : what == SIDES ? floor(3 * draw()) - 1
                                       : draw());
}

static inline void work_open(work *w, const struct loss *loss, const struct shape *shape,
                             double seed, bool meets)
{
    const keel_type *type = keel_loss_find(loss->name);
    *w = (work){ .loss = loss, .shape = shape };
    assert_non_null(type);
    w->own = keel_calloc(1, type->args_size);
    json_t *config = json_loads(loss->config, 0, NULL);
    assert_int_equal(keel_fields_read(type, config, w->own), KEEL_OK);
    json_decref(config);
    w->args = (keel_loss_args){ .loss = (const keel_loss *)type,
                                .args = w->own,
                                .weight = seed,
                                .meets = meets,
                                .rows = shape->rows };
    const bool labels = w->args.loss->target == KEEL_TARGET_LABEL;
    const int64_t parts = shape->apart ? shape->elements : 1;
    w->in[KEEL_SCORE_PREDICTION] =
        (keel_spec){ KEEL_FLOAT32, KEEL_SHAPE(shape->elements, shape->last) };
    w->in[KEEL_SCORE_TARGET] = w->in[KEEL_SCORE_PREDICTION];
    if (labels) w->in[KEEL_SCORE_TARGET] = (keel_spec){ shape->label, KEEL_SHAPE(shape->elements) };
    w->in[KEEL_SCORE_WEIGHT] = (keel_spec){ KEEL_FLOAT32, KEEL_SHAPE(parts) };
    w->in[KEEL_SCORE_MASK] = (keel_spec){ KEEL_FLOAT32, KEEL_SHAPE(shape->elements) };
    w->node = (keel_node){ .op = &keel_loss_op,
                           .args = &w->args,
                           .layer = "loss",
                           .training = true,
                           .backward = true,
                           .real = KEEL_FLOAT32,
                           .held = KEEL_FLOAT32,
                           .n_in = shape->masked ? 4 : 3,
                           .in = w->in };
    assert_int_equal(keel_node_infer(&w->node), KEEL_OK);
    draw_numbers(w, labels);
    w->weight = keel_calloc((size_t)(shape->rows * parts), sizeof(float));
    for (int64_t i = 0; i < shape->rows * parts; i++)
        w->weight[i] = i % 5 == 3 ? 0 : (float)(0.25 + draw());
    w->mask = keel_calloc((size_t)(shape->rows * shape->elements), sizeof(float));
    for (int64_t i = 0; i < shape->rows * shape->elements; i++) w->mask[i] = i % 7 != 2;
}

static inline void work_close(work *w)
{
    keel_fields_free(&w->args.loss->type, w->own);
    keel_free(w->own);
    keel_free(w->p);
    keel_free(w->t);
    keel_free(w->weight);
    keel_free(w->mask);
    keel_node_clear(&w->node);
}

typedef struct answer {
    float *grad;
    double *sums;
} answer;

static inline answer answer_open(const work *w)
{
    const int64_t n = w->shape->rows * w->shape->elements * w->shape->last;
    answer a = { keel_calloc((size_t)n, sizeof(float)),
                 keel_calloc((size_t)w->shape->rows * KEEL_LOSS_SUMS, sizeof(double)) };
    for (int64_t i = 0; i < n; i++) a.grad[i] = NAN; /* it is overwritten */
    return a;
}

static inline void answer_close(answer *a)
{
    keel_free(a->grad);
    keel_free(a->sums);
}

#endif
