/* Every kernel of the op of losses gives what its reference gives: sums of rows, gradients, and the
 * terms of divisors, over many shapes, weights, masks and types of labels; with the same bits
 * whatever rows are beside a row. Elements without weight may hold anything. */
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "loss_bench.h"

/* A pass over the rows in `parts` calls; k NULL: the reference. */
static void run(const work *w, const keel_kernel *k, keel_pass pass, int64_t parts, answer *a)
{
    static const double merged[3] = { 100, 40, 25 }; /* rows, elements, weights */
    const keel_step_facts step = { .rows = w->shape->rows, .loss_seed = (double[]){ 8 } };
    const keel_step_facts alone = { .rows = w->shape->rows };
    const keel_run reference =
        pass == KEEL_PARTIAL_BACKWARD ? keel_loss_op.partial_backward[0] : keel_loss_op.backward[0];
    const int64_t length = pass == KEEL_PARTIAL_BACKWARD ? KEEL_LOSS_TERMS : KEEL_LOSS_SUMS;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t first = i * w->shape->rows / parts, end = (i + 1) * w->shape->rows / parts;
        const int64_t numbers = w->shape->elements * w->shape->last;
        const void *in[4] = {
            w->p + first * numbers,
            (char *)w->t + (size_t)(first * keel_row_count(&w->in[KEEL_SCORE_TARGET])) *
                               keel_dtype_size(w->in[KEEL_SCORE_TARGET].dtype),
            w->weight + first * keel_row_count(&w->in[KEEL_SCORE_WEIGHT]),
            w->mask + first * w->shape->elements,
        };
        void *in_grad[4] = { a->grad + first * numbers };
        const bool adds[4] = { false };
        const keel_call c = { .node = &w->node,
                              .step = w->args.meets ? &step : &alone,
                              .rows = end - first,
                              .row = first,
                              .in = in,
                              .in_grad = pass == KEEL_BACKWARD ? in_grad : NULL,
                              .in_adds = adds,
                              .partial = a->sums + first * length,
                              .merged = merged };
        if (end > first) (k ? k->run[pass] : reference)(&c);
    }
}

static void near(const char *what, const char *of, double want, double got, double most)
{
    if (!(fabs(want - got) <= 2e-6 * most + 1e-30))
        fail_msg("%s: %s is %.9g, the reference has %.9g", what, of, got, want);
}

static void compare(const work *w, const keel_kernel *k, keel_pass pass, const char *what)
{
    const int64_t n = w->shape->rows * w->shape->elements * w->shape->last;
    answer want = answer_open(w), got = answer_open(w), cut = answer_open(w);
    double most = 0, largest = 0;
    run(w, NULL, pass, 1, &want);
    run(w, k, pass, 1, &got);
    run(w, k, pass, 3, &cut);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)want.grad[i]));
    for (int64_t i = 0; pass == KEEL_BACKWARD && i < n; i++)
        near(what, "a gradient", want.grad[i], got.grad[i], most);
    for (int64_t i = 0; i < w->shape->rows * KEEL_LOSS_SUMS; i++)
        largest = fmax(largest, fabs(want.sums[i]));
    for (int64_t i = 0; i < w->shape->rows * KEEL_LOSS_SUMS; i++)
        near(what, "a sum", want.sums[i], got.sums[i], largest);
    if (pass == KEEL_BACKWARD)
        assert_memory_equal(got.grad, cut.grad, (size_t)n * sizeof *got.grad);
    assert_memory_equal(got.sums, cut.sums,
                        (size_t)w->shape->rows * KEEL_LOSS_SUMS * sizeof *got.sums);
    answer_close(&want);
    answer_close(&got);
    answer_close(&cut);
}

static const keel_kernel *kernel_at(int i, const work *w)
{
    const keel_kernel *k = keel_kernels[i];
    keel_prepare p = { .node = &w->node, .pass = KEEL_BACKWARD, .rows = w->shape->rows };
    return k->op == &keel_loss_op && keel_kernel_prepare(k, &p) == KEEL_OK ? k : NULL;
}

static void every_kernel_gives_what_the_reference_gives(void **unused)
{
    int ran = 0;
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (int s = 0; s < SHAPES; s++)
            for (int meets = 0; meets < 2; meets++) {
                work w;
                char what[200];
                work_open(&w, &losses[l], &shapes[s], 0.5, meets);
                for (int i = 0; keel_kernels[i]; i++) {
                    const keel_kernel *k = kernel_at(i, &w);
                    if (!k) continue;
                    snprintf(what, sizeof what, "%s of %s %s, %s", k->name, losses[l].name,
                             losses[l].config, shapes[s].what);
                    compare(&w, k, KEEL_FORWARD, what);
                    compare(&w, k, KEEL_BACKWARD, what);
                    if (meets) compare(&w, k, KEEL_PARTIAL_BACKWARD, what);
                    ran++;
                }
                work_close(&w);
            }
    if (keel_cpu_level() >= KEEL_CPU_AVX2) assert_true(ran > 0);
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
            for (int i = 0; keel_kernels[i]; i++)
                if (kernel_at(i, &w)) compare(&w, kernel_at(i, &w), KEEL_BACKWARD, shape->what);
            work_close(&w);
        }
}

static void labels_outside_the_classes_fail_the_step(void **unused)
{
    static const struct {
        double label;
        const char *says; /* NULL: it is one */
    } t[] = {
        { 2.9, NULL },    { -0.5, NULL },   { 3, "label 3 at row 2" }, { -1, "label -1 at row 2" },
        { NAN, "row 2" }, { 1e30, "row 2" }
    };
    const struct shape shape = { "", 1, 3, 5, false, false, KEEL_FLOAT32 };
    (void)unused;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (int i = 0; keel_kernels[i]; i++) {
            work w;
            work_open(&w, &losses[0], &shape, 1, false);
            answer a = answer_open(&w);
            ((float *)w.t)[2] = (float)t[k].label;
            if (kernel_at(i, &w)) {
                run(&w, kernel_at(i, &w), KEEL_BACKWARD, 1, &a);
                assert_int_equal(keel_call_status_take(), t[k].says ? KEEL_EDATA : KEEL_OK);
                if (t[k].says && !strstr(keel_error(), t[k].says)) fail_msg("%s", keel_error());
                for (int e = 0; e < 15; e++) assert_true(isfinite(a.grad[e]));
            }
            answer_close(&a);
            work_close(&w);
        }
}

static void what_is_not_finite_shows_in_the_loss(void **unused)
{
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (int s = 0; s < SHAPES; s++)
            for (int i = 0; keel_kernels[i]; i++) {
                work w;
                work_open(&w, &losses[l], &shapes[s], 1, false);
                const keel_kernel *k = kernel_at(i, &w);
                answer a = answer_open(&w);
                const bool ignores = strstr(losses[l].config, "ignore") != NULL;
                w.p[0] = NAN; /* of an element that has weight */
                if (k && !ignores) {
                    run(&w, k, KEEL_BACKWARD, 1, &a);
                    if (!isnan(a.sums[0]))
                        fail_msg("%s of %s, %s: a prediction is NaN, the sum %g", k->name,
                                 losses[l].name, shapes[s].what, a.sums[0]);
                }
                answer_close(&a);
                work_close(&w);
            }
}

static void huge_logits_stay_finite(void **unused)
{
    static const struct shape some[] = { { "few", 1, 3, 2, false, false, KEEL_INT32 },
                                         { "many", 1, 40, 2, false, false, KEEL_INT32 } };
    (void)unused;
    for (int l = 0; l < LOSSES; l++)
        for (int s = 0; s < 2; s++)
            for (int i = 0; keel_kernels[i]; i++) {
                work w;
                work_open(&w, &losses[l], &some[s], 1, false);
                const keel_kernel *k = kernel_at(i, &w);
                const int64_t n = some[s].rows * some[s].last;
                answer a = answer_open(&w);
                for (int64_t e = 0; e < n; e++) w.p[e] = e % 3 ? -3e37f : 3e37f;
                if (k && losses[l].numbers == LOGITS) {
                    run(&w, k, KEEL_BACKWARD, 1, &a);
                    assert_true(isfinite(a.sums[0]));
                    for (int64_t e = 0; e < n; e++) assert_true(isfinite(a.grad[e]));
                }
                answer_close(&a);
                work_close(&w);
            }
}

/* An output whose loss has weight 0 is not trained by it, but its loss is known. */
static void a_loss_of_weight_0_is_still_summed(void **unused)
{
    (void)unused;
    for (int l = 0; l < LOSSES; l++) {
        work w;
        work_open(&w, &losses[l], &shapes[7], 0, false);
        answer none = answer_open(&w), whole = answer_open(&w);
        run(&w, NULL, KEEL_BACKWARD, 1, &none);
        w.args.weight = 1;
        run(&w, NULL, KEEL_BACKWARD, 1, &whole);
        assert_memory_equal(none.sums, whole.sums, 7 * KEEL_LOSS_SUMS * sizeof(double));
        for (int e = 0; e < 63; e++) assert_true(none.grad[e] == 0);
        answer_close(&none);
        answer_close(&whole);
        work_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_gives_what_the_reference_gives),
        cmocka_unit_test(elements_without_weight_may_hold_anything),
        cmocka_unit_test(labels_outside_the_classes_fail_the_step),
        cmocka_unit_test(what_is_not_finite_shows_in_the_loss),
        cmocka_unit_test(huge_logits_stay_finite),
        cmocka_unit_test(a_loss_of_weight_0_is_still_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
