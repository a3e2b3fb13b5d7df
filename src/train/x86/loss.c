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
    bool apart;      /* elements of a row may differ in weight */
    double left_out; /* the label of elements that do not count; NaN: none */
} frame;

/* Whole rows, or a part of one row, so that the sums of a row are added up in an order of its own.
 */
typedef struct block {
    some of;
    int64_t row, rows, each; /* the first row, how many, and elements of each of them */
    int64_t place;           /* of the first element in its row */
    double weight[SOME];
    bool counts[SOME]; /* it is neither masked nor left out */
    bool live[SOME];   /* it has a loss */
} block;

static void take_weights(const frame *f, block *b)
{
    const keel_loss_call *c = &f->c;
    const float *of_row = c->weight;
    for (int64_t i = 0, k = 0; k < b->rows; k++) {
        const int64_t row = b->row + k;
        const double w = of_row && !f->apart ? (double)of_row[row] : 1;
        const float scale = (float)(c->seed * w);
        for (int64_t e = 0; e < b->each; e++, i++) {
            b->weight[i] = w;
            b->counts[i] = true;
            b->live[i] = w != 0;
            b->of.scale[i] = scale;
            if (!f->apart) continue;
            b->weight[i] = keel_element_weight(c, 0, f->d.elements, row, b->place + e);
            b->counts[i] = keel_element_counts(c, 0, f->d.elements, row, b->place + e);
            b->live[i] = b->weight[i] != 0;
            b->of.scale[i] = (float)(c->seed * b->weight[i]);
        }
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
    const double classes = (double)f->d.last;
    double label[SOME];
    int64_t bad = -1;
    read_labels(f, b, label);
    for (int64_t i = 0; i < b->of.count; i++) {
        const bool inside = label[i] > -1 && label[i] < classes, left_out = label[i] == f->left_out;
        const bool known = inside && !left_out;
        bad = b->live[i] && !inside && !left_out ? i : bad;
        b->counts[i] = b->counts[i] && !left_out;
        b->live[i] = b->live[i] && known;
        b->of.scale[i] = known ? b->of.scale[i] : 0;
        b->of.label[i] = (int32_t)(inside ? label[i] : 0);
    }
    if (bad >= 0) keel_label_refuse(label[bad], f->c.row + b->row + bad / b->each, f->d.last);
}

/* sum [b->rows][KEEL_LOSS_SUMS] */
static void add_sums(const frame *f, const block *b, double *sum)
{
    enum { LINES = 8 };
    const int64_t n = b->each;
    for (int64_t k = 0; k < b->rows; k++, sum += KEEL_LOSS_SUMS) {
        const double *loss = b->of.loss + k * n, *weight = b->weight + k * n;
        const bool *live = b->live + k * n, *counts = b->counts + k * n;
        double loss_of[LINES] = { 0 }, weight_of[LINES] = { 0 };
        int64_t count = 0;
        for (int64_t e = 0; f->run && e < n; e++)
            loss_of[e % LINES] += live[e] ? weight[e] * loss[e] : 0;
        for (int64_t e = 0; e < n; e++) {
            weight_of[e % LINES] += counts[e] ? weight[e] : 0;
            count += counts[e];
        }
        for (int i = 0; i < LINES; i++) {
            sum[0] += loss_of[i];
            sum[2] += weight_of[i];
        }
        sum[1] += (double)count;
    }
}

/* Rows [first, end) of the call; sum [end - first][KEEL_LOSS_SUMS] is added to. */
static void run_rows(const frame *f, int64_t first, int64_t end, double *sum)
{
    const int64_t n = f->d.last, elements = f->d.elements;
    block b = { .row = first, .of = { .args = f->c.args, .n = n } };
    while (b.row < end) {
        const int64_t fit = SOME / elements, left = elements - b.place;
        b.rows = fit < 1 ? 1 : fit < end - b.row ? fit : end - b.row;
        b.each = left < SOME ? left : SOME;
        b.of.count = b.rows * b.each;
        const int64_t at = (b.row * elements + b.place) * n;
        b.of.p = (const float *)f->c.y_pred + at;
        b.of.t = f->labels ? NULL : (const float *)f->c.y_true + at;
        b.of.grad = f->c.grad ? (float *)f->c.grad + at : NULL;
        for (int64_t i = b.of.count; i < SOME; i++) b.of.scale[i] = 0, b.of.label[i] = 0;
        take_weights(f, &b);
        if (f->labels) take_labels(f, &b);
        if (f->run) f->run(&b.of);
        add_sums(f, &b, sum + (b.row - first) * KEEL_LOSS_SUMS);
        b.place += b.each;
        if (b.place < elements) continue;
        b.place = 0;
        b.row += b.rows;
    }
}

static frame frame_of(const keel_call *c, bool counts)
{
    const keel_loss_args *a = c->node->args;
    frame f = { .labels = keel_target_is_labels(a->loss->target), .left_out = NAN };
    f.c = keel_loss_call_of(c, 0, !counts);
    f.run = counts ? NULL : run_of(a);
    f.apart = f.c.mask || f.c.weights > 1;
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
    for (int64_t row = 0; row < c->rows; row += SOME) {
        const int64_t rows = c->rows - row < SOME ? c->rows - row : SOME;
        double sum[SOME][KEEL_LOSS_SUMS] = { { 0 } };
        run_rows(&f, row, row + rows, *sum);
        for (int64_t i = 0; i < rows; i++)
            memcpy(c->partial + (row + i) * KEEL_LOSS_TERMS, sum[i] + 1,
                   KEEL_LOSS_TERMS * sizeof *c->partial);
    }
}

static keel_status prepare(keel_prepare *p)
{
    const keel_loss_args *a = p->node->args;
    keel_dense d;
    KEEL_TRY(vector_prepare(p));
    if (a->loss->whole || !run_of(a)) return KEEL_EUNSUP;
    if (p->in_adds) return KEEL_EUNSUP; /* the prediction has another loss: terms overwrite */
    KEEL_TRY(keel_target_check(a->loss->target, a->loss->type.name,
                               &p->node->in[KEEL_SCORE_PREDICTION], &p->node->in[KEEL_SCORE_TARGET],
                               &d));
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
