/* The op of losses (train/score.h), for those of which a term is written with vectors: the weights,
 * masks and labels of elements around it. A row's sums are added in the order of its elements. */
#include "train/score.h"
#include "train/x86/_crossentropy.h"
#include "train/x86/_each_loss.h"

extern const keel_loss keel_loss_mean_squared_error;

typedef void (*loss_run)(some *s);

/* NULL: the loss has no term here. */
static loss_run run_of(const keel_loss_args *a)
{
    const keel_loss *l = a->loss;
    const bool logits = l->logits_of && keel_loss_has_logits(l, a->args);
    if (l == &keel_loss_sparse_categorical_crossentropy)
        return logits ? run_sparse_of_logits : run_sparse_of_probabilities;
    if (l == &keel_loss_categorical_crossentropy)
        return logits ? run_categorical_of_logits : run_categorical_of_probabilities;
    if (l == &keel_loss_binary_crossentropy)
        return logits ? run_binary_of_logits : run_binary_of_probabilities;
    return l == &keel_loss_mean_squared_error ? run_squared : NULL;
}

typedef struct frame {
    keel_loss_call c;
    keel_dense d;
    loss_run run;    /* NULL: only count elements and weights */
    bool labels;     /* the targets are labels */
    double left_out; /* the label of elements that do not count; NaN: none */
} frame;

/* Some elements with what surrounds them. */
typedef struct block {
    some of;
    double weight[SOME];
    bool counts[SOME]; /* it is neither masked nor left out */
    bool live[SOME];   /* it has a loss */
    int64_t row, place; /* of the first element */
    int64_t first;      /* the row that the sums begin with */
} block;

static void next_element(const frame *f, int64_t *row, int64_t *place)
{
    if (++*place < f->d.elements) return;
    *place = 0;
    ++*row;
}

static void take_weights(const frame *f, block *b)
{
    const keel_loss_call *c = &f->c;
    const bool apart = c->mask || c->weights > 1; /* elements of a row may differ */
    const float *of_row = c->weight;
    int64_t row = b->row, place = b->place;
    for (int64_t i = 0; i < b->of.count; i++, next_element(f, &row, &place)) {
        double w = of_row && !apart ? (double)of_row[row] : 1;
        bool in = true;
        if (apart) {
            w = keel_element_weight(c, 0, f->d.elements, row, place);
            in = keel_element_counts(c, 0, f->d.elements, row, place);
        }
        b->weight[i] = w;
        b->counts[i] = in;
        b->live[i] = w != 0;
        b->of.scale[i] = (float)(c->seed * w);
    }
}

#define LABELS(type)                                                                               \
    for (int64_t i = 0; i < b->of.count; i++) label[i] = (double)((const type *)y)[first + i]

static void read_labels(const frame *f, const block *b, double label[SOME])
{
    const void *y = f->c.y_true;
    const int64_t first = b->row * f->d.elements + b->place;
    switch (f->c.target->dtype) {
    case KEEL_INT32:
        LABELS(int32_t);
        break;
    case KEEL_UINT8:
    case KEEL_BOOL:
        LABELS(uint8_t);
        break;
    case KEEL_FLOAT32:
        LABELS(float);
        break;
    default:
        for (int64_t i = 0; i < b->of.count; i++)
            label[i] = keel_label_at(y, f->c.target->dtype, first + i);
    }
}

/* Labels, truncated toward zero as in Keras. One outside of the classes fails the step. */
static void take_labels(const frame *f, block *b)
{
    double label[SOME];
    int64_t row = b->row, place = b->place;
    bool failed = false;
    read_labels(f, b, label);
    for (int64_t i = 0; i < b->of.count; i++, next_element(f, &row, &place)) {
        const bool inside = label[i] > -1 && label[i] < (double)f->d.last;
        const bool left_out = label[i] == f->left_out;
        b->counts[i] = b->counts[i] && !left_out;
        b->of.label[i] = inside ? (int32_t)label[i] : 0;
        if (inside && !left_out) continue;
        if (b->live[i] && !left_out && !failed)
            keel_label_refuse(label[i], f->c.row + row, f->d.last);
        failed = failed || (b->live[i] && !left_out);
        b->live[i] = false;
        b->of.scale[i] = 0;
    }
}

static void add_sums(const frame *f, const block *b, double *sum)
{
    int64_t row = b->row, place = b->place;
    for (int64_t i = 0; i < b->of.count; i++, next_element(f, &row, &place)) {
        double *of_row = sum + (row - b->first) * KEEL_LOSS_SUMS;
        if (f->run && b->live[i]) of_row[0] += b->weight[i] * b->of.loss[i];
        if (!b->counts[i]) continue;
        of_row[1] += 1;
        of_row[2] += b->weight[i];
    }
}

/* Rows [first, end) of the call; sum is [end - first][KEEL_LOSS_SUMS]. */
static void run_rows(const frame *f, int64_t first, int64_t end, double *sum)
{
    const int64_t n = f->d.last, last = end * f->d.elements;
    block b;
    b.first = first;
    for (int64_t at = first * f->d.elements; at < last; at += b.of.count) {
        b.of.args = f->c.args;
        b.of.n = n;
        b.of.count = last - at < SOME ? last - at : SOME;
        b.of.p = (const float *)f->c.y_pred + at * n;
        b.of.t = f->labels ? NULL : (const float *)f->c.y_true + at * n;
        b.of.grad = f->c.grad ? (float *)f->c.grad + at * n : NULL;
        b.row = at / f->d.elements;
        b.place = at % f->d.elements;
        for (int64_t i = b.of.count; i < SOME; i++) b.of.scale[i] = 0, b.of.label[i] = 0;
        take_weights(f, &b);
        if (f->labels) take_labels(f, &b);
        if (f->run) f->run(&b.of);
        add_sums(f, &b, sum);
    }
}

static frame frame_of(const keel_call *c, bool counts)
{
    const keel_loss_args *a = c->node->args;
    frame f = { .labels = keel_target_is_labels(a->loss->target), .left_out = NAN };
    f.c = keel_loss_call_of(c, 0, !counts);
    f.run = counts ? NULL : run_of(a);
    if (a->loss == &keel_loss_sparse_categorical_crossentropy)
        f.left_out = (double)((const keel_sparse_crossentropy *)a->args)->ignore_class;
    (void)keel_target_check(a->loss->target, "", f.c.prediction, f.c.target, &f.d);
    return f;
}

static void forward(const keel_call *c)
{
    const frame f = frame_of(c, false);
    memset(c->partial, 0, (size_t)c->rows * KEEL_LOSS_SUMS * sizeof *c->partial);
    run_rows(&f, 0, c->rows, c->partial);
}

/* What rows leave before backward: how many elements count, and their weights. */
static void partial(const keel_call *c)
{
    const frame f = frame_of(c, true);
    for (int64_t row = 0; row < c->rows; row++) {
        double sum[KEEL_LOSS_SUMS] = { 0 };
        run_rows(&f, row, row + 1, sum);
        memcpy(c->partial + row * KEEL_LOSS_TERMS, sum + 1, KEEL_LOSS_TERMS * sizeof *sum);
    }
}

static keel_status prepare(keel_prepare *p)
{
    const keel_loss_args *a = p->node->args;
    keel_dense d;
    KEEL_TRY(vector_prepare(p));
    if (a->loss->whole || !run_of(a)) return KEEL_EUNSUP;
    KEEL_TRY(keel_target_check(a->loss->target, a->loss->type.name,
                               &p->node->in[KEEL_SCORE_PREDICTION],
                               &p->node->in[KEEL_SCORE_TARGET], &d));
    return d.last > INT32_MAX ? KEEL_EUNSUP : KEEL_OK;
}

const keel_kernel VECTOR_KERNEL(loss) = {
    .op = &keel_loss_op,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward,
             [KEEL_BACKWARD] = forward,
             [KEEL_PARTIAL_BACKWARD] = partial },
};
