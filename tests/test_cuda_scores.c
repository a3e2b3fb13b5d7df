/* The kernels for CUDA of losses and metrics, on the emulator, give what the references give: sums
 * of rows, gradients, and the terms of divisors, over the shapes, weights, masks and types of
 * labels of loss_bench.h; with the same bits whatever rows are beside a row, and in any order of
 * threads. What is wrong with labels and ids is told with the words of the host. */
#include "cuda_facts.h"
#include "emulator.h"
#include "layers/layer.h"
#include "loss_bench.h"
#include "ops/all.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"

extern const keel_kernel *const keel_cuda_kernels[];

static const keel_kernel *kernel_of(const keel_op *op)
{
    int i = 0;
    while (keel_cuda_kernels[i]->op != op) i++;
    return keel_cuda_kernels[i];
}

static void *there(const void *host, int64_t bytes, const char *name)
{
    void *at = emu_allocate(bytes, name);
    if (host) emu_copy_in(at, host, bytes);
    return at;
}

static bool adds[4];       /* to the gradient of the prediction, which has another loss */
static keel_status status; /* of the last call on the emulator */
static char error[1024];

/* The rows [first, end) of a node with the arrays of w; sums of `length` doubles. */
static void call_some(const work *w, const keel_node *n, const keel_kernel *k, keel_pass pass,
                      int64_t first, int64_t end, int64_t length, answer *a)
{
    static const double merged[3] = { 100, 40, 25 }; /* rows, elements, weights */
    const keel_step_facts meeting = { .rows = w->shape->rows,
                                      .loss_seed = (double[]){ 8 },
                                      .loss_seeds = 1 };
    const keel_step_facts alone = { .rows = w->shape->rows };
    const int64_t rows = end - first;
    const void *from[4] = { w->p, w->t, w->weight, w->mask };
    const void *in[4] = { NULL };
    void *in_grad[4] = { NULL };
    for (int i = 0; i < n->n_in; i++) {
        const int64_t bytes = keel_row_count(&n->in[i]) * (int64_t)keel_dtype_size(n->in[i].dtype);
        if (from[i]) in[i] = there((const char *)from[i] + first * bytes, rows * bytes, "in");
    }
    const int64_t numbers = rows * w->shape->elements * w->shape->last;
    float *grad = a->grad + first * w->shape->elements * w->shape->last;
    if (pass == KEEL_BACKWARD)
        in_grad[0] = there(adds[0] ? grad : NULL, numbers * (int64_t)sizeof *grad, "gradient");
    double *sums = there(NULL, rows * length * (int64_t)sizeof *sums, "sums");
    keel_prepare p = {
        .node = n, .pass = pass, .rows = rows, .in_adds = adds[0], .device = emu_device()
    };
    assert_int_equal(k->prepare(&p), KEEL_OK);
    const keel_call c = { .node = n,
                          .device = emu_device(),
                          .facts = cuda_facts(w->args.meets ? &meeting : &alone),
                          .rows = rows,
                          .row = first,
                          .in = in,
                          .in_grad = pass == KEEL_BACKWARD ? in_grad : NULL,
                          .in_adds = adds,
                          .partial = sums,
                          .merged = there(merged, sizeof merged, "merged"),
                          .scratch = there(NULL, p.scratch, "scratch") };
    k->run[pass](&c);
    const char *report = emu_report();
    if (report) fail_msg("%s, %s: %s", w->loss->name, w->shape->what, report);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    status = emu_data_fault();
    if (status < 0) snprintf(error, sizeof error, "%s", keel_error());
    emu_copy_out(a->sums + first * length, sums, rows * length * (int64_t)sizeof *sums);
    if (in_grad[0]) emu_copy_out(grad, in_grad[0], numbers * (int64_t)sizeof *grad);
    emu_release_all();
}

static void run(const work *w, const keel_node *n, const keel_kernel *k, keel_pass pass,
                int64_t parts, int64_t length, answer *a)
{
    emu_seed((uint32_t)parts);
    for (int64_t i = 0; i < parts; i++) {
        const int64_t first = i * w->shape->rows / parts, end = (i + 1) * w->shape->rows / parts;
        if (end > first) call_some(w, n, k, pass, first, end, length, a);
    }
}

/* By the op's reference, on the host. */
static void refer(const work *w, const keel_node *n, keel_pass pass, answer *a)
{
    static const double merged[3] = { 100, 40, 25 };
    const keel_step_facts meeting = { .rows = w->shape->rows,
                                      .loss_seed = (double[]){ 8 },
                                      .loss_seeds = 1 };
    const keel_step_facts alone = { .rows = w->shape->rows };
    const void *in[4] = { w->p, w->t, w->weight, w->mask };
    void *in_grad[4] = { a->grad }, *scratch = keel_calloc((size_t)n->scratch + 1, 1);
    const keel_call c = { .node = n,
                          .device = emu_device(),
                          .step = w->args.meets ? &meeting : &alone,
                          .rows = w->shape->rows,
                          .in = in,
                          .in_grad = pass == KEEL_BACKWARD ? in_grad : NULL,
                          .in_adds = adds,
                          .partial = a->sums,
                          .merged = merged,
                          .scratch = scratch };
    (pass == KEEL_FORWARD    ? n->op->forward
     : pass == KEEL_BACKWARD ? n->op->backward
                             : n->op->partial_backward)[0](&c);
    (void)keel_call_status_take();
    keel_free(scratch);
}

static void near(const char *what, const char *of, double want, double got, double most)
{
    if (!(fabs(want - got) <= 4e-6 * most + 1e-30))
        fail_msg("%s: %s is %.9g, the reference has %.9g", what, of, got, want);
}

static void compare(const work *w, const keel_node *n, keel_pass pass, int64_t length,
                    const char *what)
{
    const keel_kernel *k = kernel_of(n->op);
    const int64_t count = w->shape->rows * w->shape->elements * w->shape->last;
    answer want = answer_open(w), got = answer_open(w), cut = answer_open(w);
    double most = 0, largest = 0;
    answer *all[3] = { &want, &got, &cut };
    for (int i = 0; i < 3 && length > KEEL_LOSS_SUMS; i++) {
        keel_free(all[i]->sums);
        all[i]->sums = keel_calloc((size_t)(w->shape->rows * length), sizeof(double));
    }
    for (int64_t i = 0; adds[0] && i < count; i++)
        want.grad[i] = got.grad[i] = cut.grad[i] = (float)(i % 7 - 3);
    refer(w, n, pass, &want);
    run(w, n, k, pass, 1, length, &got);
    assert_int_equal(status, KEEL_OK);
    run(w, n, k, pass, 3, length, &cut);
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)want.grad[i]));
    for (int64_t i = 0; pass == KEEL_BACKWARD && i < count; i++)
        near(what, "a gradient", want.grad[i], got.grad[i], most);
    for (int64_t i = 0; i < w->shape->rows * length; i++)
        largest = fmax(largest, fabs(want.sums[i]));
    for (int64_t i = 0; i < w->shape->rows * length; i++)
        near(what, "a sum", want.sums[i], got.sums[i], largest);
    if (pass == KEEL_BACKWARD)
        assert_memory_equal(got.grad, cut.grad, (size_t)count * sizeof *got.grad);
    assert_memory_equal(got.sums, cut.sums, (size_t)(w->shape->rows * length) * sizeof *got.sums);
    answer_close(&want);
    answer_close(&got);
    answer_close(&cut);
}

static void losses_are_those_of_the_reference(void **unused)
{
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (int s = 0; s < SHAPES; s++)
            for (int meets = 0; meets < 2; meets++) {
                work w;
                char what[200];
                work_open(&w, &losses[l], &shapes[s], 0.5, meets);
                snprintf(what, sizeof what, "%s %s, %s", losses[l].name, losses[l].config,
                         shapes[s].what);
                if (!meets) compare(&w, &w.node, KEEL_FORWARD, KEEL_LOSS_SUMS, what);
                compare(&w, &w.node, KEEL_BACKWARD, KEEL_LOSS_SUMS, what);
                adds[0] = true;
                compare(&w, &w.node, KEEL_BACKWARD, KEEL_LOSS_SUMS, what);
                adds[0] = false;
                if (meets) compare(&w, &w.node, KEEL_PARTIAL_BACKWARD, KEEL_LOSS_TERMS, what);
                work_close(&w);
            }
}

/* What layers add to the loss: a term of each row, and its gradient. */
static void terms_of_layers_are_those_of_the_reference(void **unused)
{
    static const keel_activity terms[] = {
        { .l1 = 0.25 }, { .l2 = 0.125 }, { .l1 = 0.5, .l2 = 0.25, .mean = 3 }, { .mean = 1 }
    };
    (void)unused;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        for (int s = 0; s < SHAPES; s++)
            for (int meets = 0; meets < 2; meets++) {
                static const struct loss reals = { "mean_squared_error", "{}", REALS };
                work w;
                work_open(&w, &reals, &shapes[s], 1, meets);
                keel_node n = { .op = &keel_activity_op,
                                .args = &terms[i],
                                .layer = "layer",
                                .training = true,
                                .backward = true,
                                .real = KEEL_FLOAT32,
                                .held = KEEL_FLOAT32,
                                .n_in = 1,
                                .in = w.in };
                assert_int_equal(keel_node_infer(&n), KEEL_OK);
                w.p[0] = 0; /* whose sign is 0 */
                compare(&w, &n, KEEL_FORWARD, 1, shapes[s].what);
                for (int k = 0; k < 2; k++) {
                    adds[0] = k;
                    compare(&w, &n, KEEL_BACKWARD, 1, shapes[s].what);
                }
                adds[0] = false;
                keel_node_clear(&n);
                work_close(&w);
            }
}

/* The args of a metric of that name; keel_fields_free and keel_free them. */
static const keel_metric *metric_of(const struct loss *of, void **args)
{
    const keel_type *type = keel_metric_find(of->name);
    assert_non_null(type);
    *args = keel_calloc(1, type->args_size + 1);
    json_t *config = json_loads(of->config, 0, NULL);
    assert_int_equal(keel_fields_read(type, config, *args), KEEL_OK);
    json_decref(config);
    return (const keel_metric *)type;
}

/* The node of a loss as that of a metric; keel_node_clear it. */
static keel_node metric_node(const work *w, const keel_metric_args *args)
{
    keel_node n = w->node;
    n.op = &keel_metric_op;
    n.args = args;
    n.out = NULL;
    n.n_out = 0;
    n.training = n.backward = false;
    assert_int_equal(keel_node_infer(&n), KEEL_OK);
    return n;
}

static const struct loss metrics[] = {
    { "sparse_categorical_accuracy", "{}", LOGITS },
    { "categorical_accuracy", "{}", LOGITS },
    { "binary_accuracy", "{\"threshold\": 0.25}", REALS },
    { "accuracy", "{}", REALS },
    { "mean_squared_error", "{}", REALS },
    { "mean_absolute_error", "{}", REALS },
    { "root_mean_squared_error", "{}", REALS },
    { "top_k_categorical_accuracy", "{\"k\": 2}", LOGITS },
    { "sparse_top_k_categorical_accuracy", "{\"k\": 3}", LOGITS },
    { "hinge", "{}", SIDES },
    { "Precision", "{}", SIDES },
    { "Recall", "{\"thresholds\": [0.75, 0.25], \"class_id\": 0}", SIDES },
    { "FalseNegatives", "{\"thresholds\": [0.5]}", PROBABILITIES },
    { "AUC", "{\"from_logits\": true, \"num_thresholds\": 7}", SIDES },
    { "AUC", "{\"thresholds\": [0.7, 0.1, 0.2]}", PROBABILITIES },
    { "AUC", "{\"multi_label\": true, \"num_thresholds\": 5}", SIDES },
    { "MeanIoU", "{\"num_classes\": 1000, \"sparse_y_pred\": false}", LOGITS },
    { "MeanIoU", "{\"num_classes\": 3}", REALS },
    { "MeanIoU", "{\"num_classes\": 4, \"dtype\": \"float32\", \"ignore_class\": 0}", REALS },
    { "BinaryIoU", "{\"threshold\": 0.3, \"dtype\": \"float32\"}", PROBABILITIES },
    { "OneHotMeanIoU",
      "{\"num_classes\": 1000, \"dtype\": \"float32\", "
      "\"sparse_y_pred\": false}",
      LOGITS },
    { "F1Score", "{}", REALS },
    { "FBetaScore", "{\"beta\": 2.0, \"threshold\": 0.4}", PROBABILITIES },
    { "PrecisionAtRecall", "{\"recall\": 0.5, \"num_thresholds\": 20}", PROBABILITIES },
    { "sparse_categorical_crossentropy", "{\"from_logits\": true}", LOGITS },
    { "binary_crossentropy", "{}", PROBABILITIES },
    { "KeelValues", "{\"program\": {}}", REALS },
};

/* Numbers with few different values, of which some are equal. */
static void make_coarse(work *w, bool labels)
{
    const int64_t n = w->shape->rows * w->shape->elements * w->shape->last;
    for (int64_t i = 0; i < n; i++) {
        w->p[i] = roundf(2 * w->p[i]) / 2;
        if (!labels) ((float *)w->t)[i] = roundf(2 * ((float *)w->t)[i]) / 2;
    }
}

static void metrics_are_those_of_the_reference(void **unused)
{
    static const struct loss squares = { "mean_squared_error", "{}", REALS };
    (void)unused;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        for (int s = 0; s < SHAPES; s++)
            for (int weighted = 0; weighted < 2; weighted++) {
                void *own;
                const keel_metric *metric = metric_of(&metrics[i], &own);
                const keel_metric_args args = { metric, own, weighted };
                if (metric->one_dim && shapes[s].elements > 1) {
                    keel_fields_free(&metric->type, own);
                    keel_free(own);
                    continue;
                }
                const bool labels =
                    keel_target_is_labels(keel_metric_target(args.metric, args.args));
                struct loss as = labels ? losses[0] : squares;
                work w;
                char what[200];
                as.numbers = metrics[i].numbers;
                work_open(&w, &as, &shapes[s], 1, false);
                if (metrics[i].numbers != PROBABILITIES) make_coarse(&w, labels);
                if (labels && !metric->loss && shapes[s].label == KEEL_FLOAT32) {
                    float *t = w.t; /* of no class, between classes; and a row beside a NaN */
                    t[0] = -1, t[1] = 0.5f, t[2] = NAN, t[4] = 1e30f;
                    w.p[3 * shapes[s].last] = NAN;
                }
                keel_node n = metric_node(&w, &args);
                snprintf(what, sizeof what, "%s, %s", metrics[i].name, shapes[s].what);
                compare(&w, &n, KEEL_FORWARD, n.sums, what);
                keel_node_clear(&n);
                work_close(&w);
                keel_fields_free(&metric->type, own);
                keel_free(own);
            }
}

/* Predictions and targets of weight 0, or masked, are NaN, infinite, or the number of no class. */
static void elements_without_weight_may_hold_anything(void **unused)
{
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (int s = 0; s < SHAPES; s++) {
            work w;
            const struct shape *shape = &shapes[s];
            work_open(&w, &losses[l], shape, 1, false);
            const bool labels = w.args.loss->target == KEEL_TARGET_LABEL;
            const int64_t parts = keel_row_count(&w.in[KEEL_SCORE_WEIGHT]);
            for (int64_t e = 0; e < shape->rows * shape->elements; e++) {
                const bool off = w.weight[e / (shape->elements / parts)] == 0 ||
                                 (shape->masked && w.mask[e] == 0);
                for (int64_t j = 0; off && j < shape->last; j++) {
                    w.p[e * shape->last + j] = j % 2 ? INFINITY : NAN;
                    if (!labels) ((float *)w.t)[e * shape->last + j] = NAN;
                }
                if (off && labels && shape->label == KEEL_INT32) ((int32_t *)w.t)[e] = 1 << 30;
                if (off && labels && shape->label == KEEL_FLOAT32) ((float *)w.t)[e] = NAN;
            }
            compare(&w, &w.node, KEEL_BACKWARD, KEEL_LOSS_SUMS, shape->what);
            work_close(&w);
        }
}

static void what_is_not_finite_shows_in_the_loss(void **unused)
{
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (int s = 0; s < SHAPES; s++) {
            work w;
            work_open(&w, &losses[l], &shapes[s], 1, false);
            answer a = answer_open(&w);
            const bool ignores = strstr(losses[l].config, "ignore") != NULL;
            const int64_t elements = shapes[s].elements;
            if (ignores || w.weight[0] == 0 || (shapes[s].masked && w.mask[0] == 0) ||
                elements > 1) {
                answer_close(&a);
                work_close(&w);
                continue;
            }
            /* one loss reads the prediction for the label only */
            const int64_t many = strstr(losses[l].name, "generalized") ? shapes[s].last : 1;
            for (int64_t j = 0; j < many; j++) w.p[j] = NAN;
            run(&w, &w.node, kernel_of(&keel_loss_op), KEEL_BACKWARD, 1, KEEL_LOSS_SUMS, &a);
            if (isfinite(a.sums[0])) fail_msg("%s, %s", losses[l].name, shapes[s].what);
            answer_close(&a);
            work_close(&w);
        }
}

static void labels_outside_the_classes_fail_the_step(void **unused)
{
    static const struct {
        double label;
        const char *says; /* NULL: it is one */
    } t[] = { { 2.9, NULL },
              { -0.5, NULL },
              { 3, "label 3 at row 2 of the step is not in 0..2" },
              { -1, "label -1 at row 2" },
              { NAN, "row 2" },
              { 1e30, "row 2" } };
    static const keel_dtype types[] = { KEEL_FLOAT32, KEEL_INT32, KEEL_INT64 };
    (void)unused;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (int i = 0; i < 3; i++) {
            const struct shape shape = { "", 1, 3, 5, false, false, types[i] };
            work w;
            if (i > 0 && t[k].label != 3 && t[k].label != -1) continue;
            work_open(&w, &losses[0], &shape, 1, false);
            answer a = answer_open(&w);
            if (i == 0) ((float *)w.t)[2] = (float)t[k].label;
            if (i == 1) ((int32_t *)w.t)[2] = (int32_t)t[k].label;
            if (i == 2) ((int64_t *)w.t)[2] = (int64_t)t[k].label;
            if (t[k].says && i < 2) /* of several the first is told */
                i == 0 ? (((float *)w.t)[4] = 77) : (float)(((int32_t *)w.t)[4] = 77);
            run(&w, &w.node, kernel_of(&keel_loss_op), KEEL_BACKWARD, 1, KEEL_LOSS_SUMS, &a);
            assert_int_equal(status, t[k].says ? KEEL_EDATA : KEEL_OK);
            if (t[k].says && !strstr(error, t[k].says)) fail_msg("%s", error);
            assert_int_equal(emu_data_fault(), KEEL_OK); /* it is told once */
            answer_close(&a);
            work_close(&w);
        }
}

/* A loss and a metric of one row may have the same words. */
static void labels_outside_the_classes_fail_the_step_of_a_metric(void **unused)
{
    static const struct loss of = { "sparse_categorical_crossentropy", "{}", PROBABILITIES };
    static const struct shape shape = { "", 1, 3, 5, false, false, KEEL_INT32 };
    (void)unused;
    void *own;
    const keel_metric_args args = { metric_of(&of, &own), own, false };
    work w;
    work_open(&w, &of, &shape, 1, false);
    keel_node n = metric_node(&w, &args);
    answer a = answer_open(&w);
    ((int32_t *)w.t)[2] = 3;
    run(&w, &n, kernel_of(&keel_metric_op), KEEL_FORWARD, 1, 2, &a);
    assert_int_equal(status, KEEL_EDATA);
    assert_non_null(strstr(error, "label 3 at row 2 of the step is not in 0..2"));
    answer_close(&a);
    keel_node_clear(&n);
    work_close(&w);
    keel_fields_free(&args.metric->type, own);
    keel_free(own);
}

static void targets_of_no_side_fail_the_step_of_a_hinge(void **unused)
{
    static const double t[] = { 2, -0.5, NAN };
    static const struct shape shape = { "", 1, 3, 5, false, false, KEEL_INT32 };
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
            work w;
            if (losses[l].numbers != SIDES) continue;
            work_open(&w, &losses[l], &shape, 1, false);
            answer a = answer_open(&w);
            ((float *)w.t)[3 * 3 + 1] = 7; /* a row without weight */
            run(&w, &w.node, kernel_of(&keel_loss_op), KEEL_BACKWARD, 1, KEEL_LOSS_SUMS, &a);
            assert_int_equal(status, KEEL_OK);
            ((float *)w.t)[2 * 3 + 1] = (float)t[k];
            run(&w, &w.node, kernel_of(&keel_loss_op), KEEL_BACKWARD, 1, KEEL_LOSS_SUMS, &a);
            assert_int_equal(status, KEEL_EDATA);
            if (!strstr(error, "at row 2 of the step: a hinge loss takes -1 or 1, or 0 or 1"))
                fail_msg("%s", error);
            answer_close(&a);
            work_close(&w);
        }
}

/* ---- types of ids, and casts ----------------------------------------------------------------- */

static int64_t write_as(keel_dtype type, void *to, int64_t i, double x)
{
    const float real = (float)x;
    switch ((int)type) {
    case KEEL_FLOAT32:
        ((float *)to)[i] = real;
        break;
    case KEEL_INT32:
        ((int32_t *)to)[i] = (int32_t)x;
        break;
    case KEEL_INT64:
        ((int64_t *)to)[i] = (int64_t)x;
        break;
    case KEEL_UINT8:
    case KEEL_BOOL:
        ((uint8_t *)to)[i] = (uint8_t)x;
        break;
    case (int)KEEL_FLOAT16:
        ((keel_f16 *)to)[i] = keel_f16_round(real);
        break;
    default:
        keel_bf16_narrow((keel_bf16 *)to + i, &real, 1);
    }
    return (int64_t)keel_dtype_size(type);
}

static double read_as(keel_dtype type, const void *from, int64_t i)
{
    return type == KEEL_FLOAT32   ? (double)((const float *)from)[i]
           : type == KEEL_FLOAT16 ? (double)keel_f16_wide(((const keel_f16 *)from)[i])
                                  : (double)keel_bf16_wide(((const keel_bf16 *)from)[i]);
}

/* One call of a kernel with one input and one output; NULL: no weight. */
static void call_one(const keel_node *n, keel_pass pass, bool narrow, int64_t rows, const void *x,
                     const float *table, void *y, int64_t y_bytes)
{
    const keel_kernel *k = kernel_of(n->op);
    const int64_t x_bytes =
        rows * keel_row_count(&n->in[0]) * (int64_t)keel_dtype_size(n->in[0].dtype);
    const void *in[1] = { there(x, x_bytes, "in") }, *weight[1] = { NULL };
    void *out[1] = { there(NULL, y_bytes, "out") };
    const keel_step_facts step = { .rows = rows };
    keel_prepare p = { .node = n, .pass = pass, .rows = rows, .device = emu_device() };
    if (table)
        weight[0] = there(table, keel_row_count(&n->weight[0]) * (int64_t)sizeof(float), "table");
    assert_int_equal(k->prepare(&p), KEEL_OK);
    const keel_call c = { .node = n,
                          .device = emu_device(),
                          .facts = cuda_facts(&step),
                          .rows = rows,
                          .row = 6,
                          .in = in,
                          .out = out,
                          .weight = weight,
                          .scratch = there(NULL, p.scratch, "scratch") };
    (narrow ? k->narrow : k->run)[pass](&c);
    const char *report = emu_report();
    if (report) fail_msg("%s: %s", n->op->name, report);
    status = emu_data_fault();
    if (status < 0) snprintf(error, sizeof error, "%s", keel_error());
    emu_copy_out(y, out[0], y_bytes);
    emu_release_all();
}

static void every_type_is_cast(void **unused)
{
    static const keel_dtype from[] = { KEEL_FLOAT32, KEEL_BFLOAT16, KEEL_FLOAT16, KEEL_UINT8,
                                       KEEL_BOOL,    KEEL_INT32,    KEEL_INT64 };
    static const keel_dtype to[] = { KEEL_FLOAT32, KEEL_BFLOAT16, KEEL_FLOAT16 };
    enum { COUNT = 13 };
    (void)unused;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        for (size_t k = 0; k < sizeof to / sizeof *to; k++) {
            int64_t x[COUNT] = { 0 }, y[COUNT] = { 0 };
            const keel_spec in = { from[i], KEEL_SHAPE(COUNT) };
            keel_node n = { .op = &keel_op_cast,
                            .layer = "a layer",
                            .real = KEEL_FLOAT32,
                            .held = to[k],
                            .n_in = 1,
                            .in = &in };
            assert_int_equal(keel_node_infer(&n), KEEL_OK);
            for (int64_t e = 0; e < COUNT; e++)
                write_as(from[i], x, e, from[i] == KEEL_BOOL ? (double)(e % 2) : (double)(3 * e));
            call_one(&n, KEEL_FORWARD, false, 1, x, NULL, y,
                     COUNT * (int64_t)keel_dtype_size(to[k]));
            for (int64_t e = 0; e < COUNT; e++)
                assert_true(read_as(to[k], y, e) == (double)(from[i] == KEEL_BOOL ? e % 2 : 3 * e));
            keel_node_clear(&n);
        }
}

static void ids_may_have_any_type(void **unused)
{
    static const keel_dtype types[] = { KEEL_FLOAT32, KEEL_BFLOAT16, KEEL_FLOAT16,
                                        KEEL_UINT8,   KEEL_INT32,    KEEL_INT64 };
    enum { IDS = 5, ROWS = 7, D = 6 };
    static const struct {
        double id;
        const char *says; /* NULL: it is a row */
        bool real;        /* only a real number can be it */
        int64_t row;
    } t[] = { { 3, NULL, false, 3 },
              { 6, NULL, false, 6 },
              { -1, NULL, false, 6 },
              { 2.75, NULL, true, 2 },
              { 7, "layer 'tokens': there is no row 7 in a table of 7", false, 0 },
              { -8, "there is no row -8", false, 0 },
              { 1e30, "there is no row", true, 0 } };
    float table[ROWS * D];
    (void)unused;
    for (int i = 0; i < ROWS * D; i++) table[i] = (float)i;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
            const keel_spec in = { types[i], KEEL_SHAPE(IDS) };
            const keel_spec weight = { KEEL_FLOAT32, KEEL_SHAPE(ROWS, D) };
            keel_node n = { .op = &keel_op_gather,
                            .layer = "tokens",
                            .real = KEEL_FLOAT32,
                            .held = KEEL_FLOAT32,
                            .n_in = 1,
                            .in = &in,
                            .n_weight = 1,
                            .weight = &weight };
            const bool real = types[i] == KEEL_FLOAT32 || keel_dtype_is_narrow(types[i]);
            int64_t ids[2 * IDS] = { 0 };
            float y[2 * IDS * D];
            if ((t[k].real && !real) || (t[k].id < 0 && types[i] == KEEL_UINT8)) continue;
            assert_int_equal(keel_node_infer(&n), KEEL_OK);
            for (int64_t e = 0; e < 2 * IDS; e++) write_as(types[i], ids, e, 1);
            write_as(types[i], ids, 4, t[k].id);
            call_one(&n, KEEL_FORWARD, false, 2, ids, table, y, sizeof y);
            assert_int_equal(status, t[k].says ? KEEL_EARG : KEEL_OK);
            if (t[k].says && !strstr(error, t[k].says)) fail_msg("%s", error);
            for (int e = 0; !t[k].says && e < D; e++) {
                assert_true(y[3 * D + e] == (float)(D + e));
                assert_true(y[4 * D + e] == (float)(t[k].row * D + e));
            }
            keel_node_clear(&n);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_the_reference),
        cmocka_unit_test(terms_of_layers_are_those_of_the_reference),
        cmocka_unit_test(metrics_are_those_of_the_reference),
        cmocka_unit_test(elements_without_weight_may_hold_anything),
        cmocka_unit_test(what_is_not_finite_shows_in_the_loss),
        cmocka_unit_test(labels_outside_the_classes_fail_the_step),
        cmocka_unit_test(labels_outside_the_classes_fail_the_step_of_a_metric),
        cmocka_unit_test(targets_of_no_side_fail_the_step_of_a_hinge),
        cmocka_unit_test(every_type_is_cast),
        cmocka_unit_test(ids_may_have_any_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
