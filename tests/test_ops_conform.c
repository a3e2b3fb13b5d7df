/* Every op keeps the promises of ops/op.h, over all its cases: the shapes it infers, gradients
 * equal to central differences in float64, results that do not depend on how rows are cut, float32
 * near float64, gradients that overwrite or add, memory that may be shared. */
#include "ops_harness.h"
#include "ops/args.h"

static const int64_t whole[] = { 7 };

static const struct cut {
    int64_t pieces[LAB_PIECES_MAX];
    int count;
} cuts[] = {
    { { 7 }, 1 },          { { 3, 4 }, 2 },          { { 0, 7, 0 }, 3 },
    { { 2, 2, 2, 1 }, 4 }, { { 1, 2, 0, 3, 1 }, 5 },
};

typedef void (*check)(const keel_op *op, const keel_case *c, const char *name);

/* Losses have tests of their own: their backward has no out_grad. */
static void over_every_case(check f)
{
    for (int i = 0; keel_ops[i]; i++) {
        const keel_op *op = keel_ops[i];
        int n = 0;
        if (op->loss || !op->backward[0]) continue;
        for (const keel_case *c = op->cases; c && c->in; c++, n++) {
            char name[200];
            snprintf(name, sizeof name, "%s of %s weights %s (%s)", op->name, c->in,
                     c->weights ? c->weights : "none", c->args ? c->args : "");
            const int64_t live = keel_memory_live();
            f(op, c, name);
            if (keel_memory_live() != live) fail_msg("%s: leaks", name);
        }
        if (n < 2) fail_msg("%s: has %d cases, needs 2", op->name, n);
    }
}

static void open_lab(lab *l, const keel_op *op, const keel_case *c, bool f64, int64_t rows,
                     const char *name)
{
    if (lab_open(l, op, c, f64, true, rows) < 0) fail_msg("%s: %s", name, keel_error());
}

static void near(const lab *l, const void *a, const lab *m, const void *b, int64_t count,
                 double limit, const char *name, const char *what)
{
    const double off = lab_distance(l, a, m, b, count);
    if (!(off <= limit)) fail_msg("%s: %s is off by %.3g, at most %.3g", name, what, off, limit);
}

/* Everything that two labs of one case computed; limits for the rows' results and for sums. */
static void all_near(const lab *l, const lab *m, double rows, double sums, const char *name)
{
    const keel_node *n = &l->node;
    near(l, l->out, m, m->out, lab_out_count(l), rows, name, "y");
    for (int i = 1; i < n->n_out; i++)
        near(l, l->more_out[i], m, m->more_out[i], lab_more_count(l, i), rows, name, "y");
    for (int i = 0; i < n->n_in; i++)
        near(l, l->in_grad[i], m, m->in_grad[i], lab_in_count(l, i), rows, name, "dx");
    for (int i = 0; i < n->n_weight; i++)
        if (!l->frozen[i])
            near(l, l->weight_grad[i], m, m->weight_grad[i], keel_row_count(&n->weight[i]), sums,
                 name, "dw");
}

static void infers(const keel_op *op, const keel_case *c, const char *name)
{
    for (int training = 0; training < 2; training++) {
        lab l;
        if (lab_open(&l, op, c, true, training, 1) < 0) fail_msg("%s: %s", name, keel_error());
        const keel_node *n = &l.node;
        if (n->out[0].dtype != n->real || keel_shape_check(&n->out[0].shape, 8) < 0)
            fail_msg("%s: infers no real output", name);
        if (!training && (n->n_saved || n->partial))
            fail_msg("%s: saves or meets for nobody", name);
        if ((n->partial > 0) != (n->merged > 0)) fail_msg("%s: partial without merged", name);
        if (op->view && keel_row_count(&n->out[0]) != keel_row_count(&n->in[0]))
            fail_msg("%s: a view of another size", name);
        lab_forward(&l, (int64_t[]){ 1 }, 1);
        for (int64_t i = 0; i < lab_out_count(&l); i++)
            if (!isfinite(lab_get(&l, l.out, i))) fail_msg("%s: y[%lld]", name, (long long)i);
        lab_close(&l);
    }
}

static void what_is_inferred_is_computed(void **state)
{
    (void)state;
    over_every_case(infers);
}

/* sum of y r, the r of out_grad: its gradient is what backward gives */
static double objective(lab *l, const int64_t *pieces, int count)
{
    double sum = 0;
    lab_forward(l, pieces, count);
    for (int64_t i = 0; i < lab_out_count(l); i++)
        sum += lab_get(l, l->out, i) * lab_get(l, l->out_grad, i);
    for (int k = 1; k < l->node.n_out; k++)
        for (int64_t i = 0; i < lab_more_count(l, k); i++)
            sum += lab_get(l, l->more_out[k], i) * lab_get(l, l->more_grad[k], i);
    return sum;
}

/* Central differences at up to 40 elements of x against the gradient g. */
static void differences(lab *l, double *x, const double *g, int64_t count, const int64_t *pieces,
                        int n_piece, int *checked, int *skipped, const char *name)
{
    const double h = 1e-5;
    const double here = objective(l, pieces, n_piece);
    const int64_t stride = count / 40 + 1;
    for (int64_t i = 0; i < count; i += stride) {
        const double was = x[i];
        x[i] = was + h;
        const double up = objective(l, pieces, n_piece);
        x[i] = was - h;
        const double down = objective(l, pieces, n_piece);
        x[i] = was;
        const double right = (up - here) / h, left = (here - down) / h;
        const double slope = (up - down) / (2 * h), size = fmax(1, fabs(slope));
        ++*checked;
        if (fabs(right - left) > 1e-2 * size)
            ++*skipped; /* a kink */
        else if (!(fabs(slope - g[i]) <= 1e-6 * size))
            fail_msg("%s: gradient [%lld] is %.9g, differences give %.9g", name, (long long)i, g[i],
                     slope);
    }
}

static void gradients(const keel_op *op, const keel_case *c, const char *name)
{
    static const int64_t pieces[] = { 2, 0, 1 };
    int checked = 0, skipped = 0;
    lab l;
    open_lab(&l, op, c, true, 3, name);
    lab_forward(&l, pieces, 3);
    lab_backward(&l, pieces, 3);
    for (int i = 0; i < l.node.n_in; i++)
        differences(&l, l.in[i], l.in_grad[i], lab_in_count(&l, i), pieces, 3, &checked, &skipped,
                    name);
    for (int i = 0; i < l.node.n_weight; i++)
        if (!l.frozen[i])
            differences(&l, l.weight[i], l.weight_grad[i], keel_row_count(&l.node.weight[i]),
                        pieces, 3, &checked, &skipped, name);
    if (skipped * 10 > checked) fail_msg("%s: %d of %d at kinks", name, skipped, checked);
    lab_close(&l);
}

static void gradients_equal_central_differences(void **state)
{
    (void)state;
    over_every_case(gradients);
}

static void cut_rows(const keel_op *op, const keel_case *c, const char *name)
{
    for (int f64 = 0; f64 < 2; f64++)
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            lab one, cut;
            open_lab(&one, op, c, f64, 7, name);
            open_lab(&cut, op, c, f64, 7, name);
            lab_forward(&one, whole, 1);
            lab_backward(&one, whole, 1);
            lab_forward(&cut, cuts[k].pieces, cuts[k].count);
            lab_backward(&cut, cuts[k].pieces, cuts[k].count);
            const double sums = f64 ? 1e-13 : 5e-7; /* a piece's sums are rounded to their type */
            all_near(&cut, &one, one.node.partial ? sums : 0, sums, name);
            lab_close(&one);
            lab_close(&cut);
        }
}

static void how_rows_are_cut_changes_nothing(void **state)
{
    (void)state;
    over_every_case(cut_rows);
}

/* A row of `l` by parts of its first dim, each a node of its own; one then the rest. */
static void run_parts(lab *l, const keel_op *op, const char *name)
{
    const keel_node *n = &l->node;
    const int64_t all = n->out[0].shape.dim[0];
    for (int backward = 0; backward < 2; backward++)
        for (int64_t first = 0, end = 1; first < all; first = end, end = all) {
            lab part = *l;
            part.node.in = part.in_spec;
            part.node.out = part.node.saved = NULL;
            part.node.n_out = part.node.n_saved = 0;
            for (int i = 0; i < n->n_in; i++) {
                const int64_t bytes = (int64_t)lab_size(l) * keel_row_count(&n->in[i]);
                if (op->goes(n, i) == KEEL_GOES_WHOLE)
                    part.in_grad[i] = NULL;
                else {
                    const int64_t skip = bytes / all * first;
                    part.in_spec[i].shape.dim[0] = end - first;
                    part.in[i] = (char *)l->in[i] + skip;
                    part.in_grad[i] = (char *)l->in_grad[i] + skip;
                }
            }
            if (keel_node_infer(&part.node) < 0) fail_msg("%s: %s", name, keel_error());
            if (part.node.out[0].shape.dim[0] != end - first || part.node.n_saved != n->n_saved)
                fail_msg("%s: a part has other places", name);
            const int64_t skip = (int64_t)lab_size(l) * lab_out_count(l) / all * first;
            part.out = (char *)l->out + skip;
            part.out_grad = (char *)l->out_grad + skip;
            for (int i = 0; i < n->n_saved; i++)
                part.saved[i] = (char *)l->saved[i] + (int64_t)keel_dtype_size(n->saved[i].dtype) *
                                                          keel_row_count(&n->saved[i]) / all *
                                                          first;
            (backward ? lab_backward : lab_forward)(&part, (int64_t[]){ 1 }, 1);
            keel_node_clear(&part.node);
        }
}

/* Where an op goes along the first dim, parts of a row are that row, to the bit. */
static void goes_along(const keel_op *op, const keel_case *c, const char *name)
{
    for (int f64 = 0; f64 < 2; f64++) {
        lab one, cut;
        bool goes = op->goes != NULL, along = false;
        open_lab(&one, op, c, f64, 1, name);
        open_lab(&cut, op, c, f64, 1, name);
        const keel_node *n = &one.node;
        const keel_shape *out = &n->out[0].shape;
        for (int i = 0; goes && i < n->n_in; i++) {
            goes = op->goes(n, i) != KEEL_GOES_NOT;
            along = along || op->goes(n, i) == KEEL_GOES_ALONG;
        }
        goes = goes && along && out->rank > 0 && out->dim[0] > 1;
        if (goes) {
            if (n->n_out != 1 || n->n_weight || n->partial || n->partial_backward || n->sums)
                fail_msg("%s: such an op goes along nothing", name);
            lab_forward(&one, (int64_t[]){ 1 }, 1);
            lab_backward(&one, (int64_t[]){ 1 }, 1);
            run_parts(&cut, op, name);
            near(&cut, cut.out, &one, one.out, lab_out_count(&one), 0, name, "y");
            for (int i = 0; i < n->n_in; i++)
                if (op->goes(n, i) == KEEL_GOES_ALONG)
                    near(&cut, cut.in_grad[i], &one, one.in_grad[i], lab_in_count(&one, i), 0, name,
                         "dx");
        }
        lab_close(&one);
        lab_close(&cut);
    }
}

static void parts_of_a_row_are_the_row(void **state)
{
    (void)state;
    over_every_case(goes_along);
}

/* The columns that calls of a node may make alone, see keel_op.columns; 0: there are none. */
static int64_t columns_of(const keel_node *n, bool *turns)
{
    *turns = n->n_in == 1;
    if (!n->op->columns) return 0;
    if (!*turns) return n->in[1].shape.dim[n->in[1].shape.rank - 1];
    return n->op->goes(n, 0) == KEEL_GOES_WHOLE ? n->out[0].shape.dim[0] : 0;
}

/* By one column, then the rest. */
static void by_columns(const keel_op *op, const keel_case *c, const char *name)
{
    for (int f64 = 0; f64 < 2; f64++) {
        lab one, cut;
        bool turns;
        open_lab(&one, op, c, f64, 1, name);
        open_lab(&cut, op, c, f64, 1, name);
        const int64_t all = columns_of(&one.node, &turns);
        lab_forward(&one, (int64_t[]){ 1 }, 1);
        lab_backward(&one, (int64_t[]){ 1 }, 1);
        if (!turns) lab_forward(&cut, (int64_t[]){ 1 }, 1);
        for (int64_t first = 0, end = 1; first < all; first = end, end = all) {
            cut.columns = (keel_columns){ first, end - first };
            if (turns) lab_forward(&cut, (int64_t[]){ 1 }, 1);
            lab_backward(&cut, (int64_t[]){ 1 }, 1);
        }
        if (all > 0) all_near(&cut, &one, 0, 0, name);
        lab_close(&one);
        lab_close(&cut);
    }
}

static void columns_alone_are_those_of_all(void **state)
{
    (void)state;
    over_every_case(by_columns);
}

static void precision(const keel_op *op, const keel_case *c, const char *name)
{
    lab l, m;
    open_lab(&l, op, c, false, 7, name);
    open_lab(&m, op, c, true, 7, name);
    lab_forward(&l, whole, 1);
    lab_backward(&l, whole, 1);
    lab_forward(&m, whole, 1);
    lab_backward(&m, whole, 1);
    all_near(&l, &m, 2e-6, 2e-6, name);
    lab_close(&l);
    lab_close(&m);
}

static void float32_is_near_float64(void **state)
{
    (void)state;
    over_every_case(precision);
}

static void adding(const keel_op *op, const keel_case *c, const char *name)
{
    lab l, m; /* l overwrites the NaN that it begins with, m adds to 0.5 */
    open_lab(&l, op, c, true, 7, name);
    open_lab(&m, op, c, true, 7, name);
    m.in_adds = m.weight_adds = true;
    for (int i = 0; i < m.node.n_in; i++) lab_fill(&m, m.in_grad[i], lab_in_count(&m, i), 0.5);
    for (int i = 0; i < m.node.n_weight; i++)
        lab_fill(&m, m.weight_grad[i], keel_row_count(&m.node.weight[i]), 0.5);
    lab_forward(&l, whole, 1);
    lab_backward(&l, whole, 1);
    lab_forward(&m, whole, 1);
    lab_backward(&m, whole, 1);
    for (int i = 0; i < m.node.n_in; i++)
        for (int64_t k = 0; k < lab_in_count(&m, i); k++) ((double *)m.in_grad[i])[k] -= 0.5;
    for (int i = 0; i < m.node.n_weight; i++)
        for (int64_t k = 0; k < keel_row_count(&m.node.weight[i]); k++)
            ((double *)m.weight_grad[i])[k] -= 0.5;
    for (int i = 0; i < m.node.n_in; i++) /* absolute: where all gradients are small */
        for (int64_t k = 0; k < lab_in_count(&m, i); k++)
            if (!(fabs(((double *)m.in_grad[i])[k] - ((double *)l.in_grad[i])[k]) <= 1e-12))
                fail_msg("%s: dx does not add", name);
    for (int i = 0; i < m.node.n_weight; i++)
        for (int64_t k = 0; !m.frozen[i] && k < keel_row_count(&m.node.weight[i]); k++)
            if (!(fabs(((double *)m.weight_grad[i])[k] - ((double *)l.weight_grad[i])[k]) <= 1e-11))
                fail_msg("%s: dw does not add", name);
    lab_close(&l);
    lab_close(&m);
}

static void gradients_overwrite_or_add(void **state)
{
    (void)state;
    over_every_case(adding);
}

static void unasked(const keel_op *op, const keel_case *c, const char *name)
{
    lab l;
    open_lab(&l, op, c, false, 7, name);
    lab_forward(&l, whole, 1);
    for (int i = 0; i < l.node.n_in; i++) keel_free(l.in_grad[i]), l.in_grad[i] = NULL;
    for (int i = 0; i < l.node.n_weight; i++) l.frozen[i] = true;
    lab_backward(&l, whole, 1); /* the sanitizers look on */
    for (int i = 0; i < l.node.n_weight; i++)
        for (int64_t k = 0; k < keel_row_count(&l.node.weight[i]); k++)
            if (!isnan(lab_get(&l, l.weight_grad[i], k))) fail_msg("%s: dw of a frozen one", name);
    lab_close(&l);
}

static void gradients_nobody_asks_for_are_not_computed(void **state)
{
    (void)state;
    over_every_case(unasked);
}

static void shared(const keel_op *op, const keel_case *c, const char *name)
{
    lab l, m;
    if (!op->inplace && !op->view) return;
    open_lab(&l, op, c, false, 7, name);
    open_lab(&m, op, c, false, 7, name);
    lab_forward(&l, whole, 1);
    lab_backward(&l, whole, 1);
    keel_free(m.out);
    m.out = m.in[0];
    lab_forward(&m, whole, 1);
    if (op->view || !(op->backward_reads & KEEL_READS_IN)) {
        keel_free(m.in_grad[0]);
        m.in_grad[0] = m.out_grad;
        lab_backward(&m, whole, 1);
        m.out_grad = NULL;
    }
    near(&m, m.out, &l, l.out, lab_out_count(&l), 0, name, "y in x's memory");
    for (int i = 0; i < l.node.n_in && !m.out_grad; i++)
        near(&m, m.in_grad[i], &l, l.in_grad[i], lab_in_count(&l, i), 0, name, "dx in dy's memory");
    m.in[0] = NULL;
    lab_close(&l);
    lab_close(&m);
}

static void views_and_inplace_ops_may_share_memory(void **state)
{
    (void)state;
    over_every_case(shared);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void what_does_not_fit_is_refused_with_its_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        keel_case c;
        keel_status want;
        const char *says;
    } bad[] = {
        { "dense", { "5", "4,3", NULL }, KEEL_ESHAPE, "last axis is 5" },
        { "dense", { "5", "5,3|4", NULL }, KEEL_ESHAPE, "bias is (4,)" },
        { "dense", { "5", NULL, NULL }, KEEL_EARG, "0 weights" },
        { "dense", { "5|5", "5,3", NULL }, KEEL_EARG, "2 inputs" },
        { "dense", { "0", "0,3", NULL }, KEEL_ESHAPE, "at least 1" },
        { "dense", { "-3", "5,3", NULL }, KEEL_ESHAPE, "at least 1" },
        { "dense", { "4000000000,4000000000,5", "5,3", NULL }, KEEL_ESHAPE, "more than memory" },
        { "conv2d", { "4,4,3", "5,5,3,2", NULL }, KEEL_ESHAPE, "5x5 with padding valid leaves no" },
        { "conv2d", { "4,4,3", "3,3,2,2", NULL }, KEEL_ESHAPE, "3 channels" },
        { "conv2d", { "4,4,3", "3,3,3,2", "groups 2" }, KEEL_ESHAPE, "2 groups" },
        { "conv2d", { "4,4,3", "3,3,3,2", "groups 0" }, KEEL_ESHAPE, "0 groups" },
        { "conv2d", { "4,4,3", "3,3,3,2", "strides 0,1" }, KEEL_EARG, "strides 0,1" },
        { "conv2d", { "4,4,3", "3,3,3,2", "pad -1,0,0,0" }, KEEL_EARG, "padding" },
        { "conv2d", { "4,4,3", "3,3,3,2", "dilation 2,2" }, KEEL_ESHAPE, "dilated" },
        { "conv2d", { "4,4,3", "3,3,3,2", "dilation 9000000000000000000,1" }, KEEL_EARG, "" },
        { "conv2d", { "16,3", "3,3,3,2", NULL }, KEEL_ESHAPE, "needs an image" },
        { "conv2d", { "4,4,3", "3,3,3", NULL }, KEEL_ESHAPE, "kernel is (3, 3, 3)" },
        { "depthwise_conv2d", { "4,4,3", "3,3,2,1", NULL }, KEEL_ESHAPE, "3 channels" },
        { "max_pool2d", { "4,4,3", NULL, "pool 5,5" }, KEEL_ESHAPE, "leaves no output" },
        { "max_pool2d", { "4,4,3", NULL, "pad 2,0,0,0" }, KEEL_EARG, "not less than the pool" },
        { "average_pool2d", { "4,4,3", NULL, "pad 0,0,0,2" }, KEEL_EARG, "not less than the pool" },
        { "global_average_pool2d", { "4,4", NULL, NULL }, KEEL_ESHAPE, "needs an image" },
        { "reshape", { "12", NULL, "shape 5,-1" }, KEEL_ESHAPE, "12 elements" },
        { "reshape", { "12", NULL, "shape -1,-1" }, KEEL_ESHAPE, "at most one" },
        { "reshape", { "12", NULL, "shape 0,12" }, KEEL_ESHAPE, "12 elements" },
        { "reshape", { "12", NULL, "shape 4000000000,4000000000" }, KEEL_ESHAPE, "12 elements" },
        { "zero_pad2d", { "4,4,3", NULL, "pad -1,0,0,0" }, KEEL_EARG, "padding -1" },
        { "add", { "4|5", NULL, NULL }, KEEL_ESHAPE, "must be equal" },
        { "concatenate", { "4,3|5,2", NULL, NULL }, KEEL_ESHAPE, "only axis 1" },
        { "concatenate", { "4,3|4", NULL, NULL }, KEEL_ESHAPE, "only axis 1" },
        { "concatenate", { "4|4", NULL, "axis 1" }, KEEL_EARG, "no axis 1" },
        { "softmax", { "4", NULL, "axis -2" }, KEEL_EARG, "no axis -2" },
        { "glu", { "5", NULL, NULL }, KEEL_ESHAPE, "must be even" },
        { "dropout", { "5", NULL, "rate 1.5" }, KEEL_EARG, "rate 1.5" },
        { "dropout", { "4,5", NULL, "noise 4,2" }, KEEL_ESHAPE, "noise_shape (4, 2)" },
        { "batch_norm", { "5", "5|5|5", NULL }, KEEL_EARG, "3 weights" },
        { "batch_norm", { "5", "5|5|5|4", NULL }, KEEL_ESHAPE, "moving_variance is (4,)" },
        { "batch_norm", { "5", "5|5|5|5", "epsilon -1" }, KEEL_EARG, "epsilon -1" },
        { "relu", { "5", NULL, "negative_slope -1" }, KEEL_EARG, "negative" },
        { "celu", { "5", NULL, "alpha 0" }, KEEL_EARG, "alpha" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lab l;
        const keel_status s = lab_open(&l, keel_op_find(bad[i].op), &bad[i].c, false, true, 1);
        if (s != bad[i].want || !strstr(keel_error(), bad[i].says) ||
            !strstr(keel_error(), bad[i].op))
            fail_msg("%s of %s: status %d, \"%s\"; wanted %d, \"%s\"", bad[i].op, bad[i].c.in, s,
                     keel_error(), bad[i].want, bad[i].says);
        lab_close(&l);
    }
}

/* ---- batch normalisation ----------------------------------------------------------------------
 */

static void statistics_far_from_zero_keep_their_digits(void **state)
{
    (void)state;
    const keel_case c = { "5", "5|5|5|5", NULL };
    lab l;
    assert_int_equal(lab_open(&l, keel_op_find("batch_norm"), &c, true, true, 7), KEEL_OK);
    double want[5] = { 0 };
    lab_forward(&l, whole, 1);
    for (int k = 0; k < 5; k++) want[k] = l.merged[6 + k];
    for (int64_t i = 0; i < 35; i++) ((double *)l.in[0])[i] += 1e6;
    lab_forward(&l, cuts[4].pieces, cuts[4].count);
    for (int k = 0; k < 5; k++) assert_true(fabs(l.merged[6 + k] - want[k]) <= 1e-8 * want[k]);
    lab_close(&l);
}

static void one_row_is_finite_and_no_row_moves_nothing(void **state)
{
    (void)state;
    const keel_op *op = keel_op_find("batch_norm");
    const keel_case c = { "5", "5|5|5|5", NULL };
    lab l;
    assert_int_equal(lab_open(&l, op, &c, false, true, 1), KEEL_OK);
    lab_forward(&l, (int64_t[]){ 0, 1, 0 }, 3);
    lab_backward(&l, (int64_t[]){ 0, 1, 0 }, 3);
    for (int k = 0; k < 5; k++) {
        assert_true(lab_get(&l, l.out, k) == lab_get(&l, l.weight[1], k)); /* beta */
        assert_true(isfinite(lab_get(&l, l.in_grad[0], k)));
    }
    keel_node_merge(&l.node, false, NULL, 0, l.merged);
    const float was = ((float *)l.weight[2])[0];
    op->commit(&l.node, l.merged, l.weight);
    assert_true(((float *)l.weight[2])[0] == was);
    lab_close(&l);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void a_mask_is_the_function_of_chance_that_is_promised(void **state)
{
    (void)state;
    const keel_case c = { "1000", NULL, "rate 0.3" };
    const keel_chance chance = { 7, 3, 5 };
    int kept = 0;
    lab l;
    assert_int_equal(lab_open(&l, keel_op_find("dropout"), &c, true, true, 7), KEEL_OK);
    lab_forward(&l, cuts[4].pieces, cuts[4].count);
    for (int64_t row = 0; row < 7; row++)
        for (int64_t i = 0; i < 1000; i++) {
            uint32_t word[4];
            keel_philox(word, &chance, (uint64_t)(1000 + 10 + row), (uint32_t)i / 4);
            const bool keep = keel_uniform(word[i % 4]) >= 0.3;
            const double x = lab_get(&l, l.in[0], row * 1000 + i);
            const double y = lab_get(&l, l.out, row * 1000 + i);
            assert_true(fabs(y - (keep ? x / 0.7 : 0)) < 1e-12);
            kept += keep;
        }
    assert_in_range(kept, 4900 - 150, 4900 + 150); /* four standard deviations */
    lab_close(&l);
}

static void a_noise_shape_shares_draws(void **state)
{
    (void)state;
    const keel_case c = { "4,6", NULL, "rate 0.5 noise 4,1" };
    int kept = 0;
    lab l;
    assert_int_equal(lab_open(&l, keel_op_find("dropout"), &c, true, true, 7), KEEL_OK);
    lab_forward(&l, whole, 1);
    const uint8_t *mask = l.saved[0];
    for (int i = 0; i < 7 * 4; i++) {
        for (int k = 1; k < 6; k++) assert_int_equal(mask[i * 6 + k], mask[i * 6]);
        kept += mask[i * 6];
    }
    assert_in_range(kept, 4, 24);
    lab_close(&l);
}

static void a_failed_call_waits_for_the_engine(void **state)
{
    (void)state;
    keel_call_failed(NULL, KEEL_EDEVICE);
    keel_call_failed(NULL, KEEL_ENOMEM);
    assert_int_equal(keel_call_status_take(), KEEL_EDEVICE);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_inferred_is_computed),
        cmocka_unit_test(gradients_equal_central_differences),
        cmocka_unit_test(how_rows_are_cut_changes_nothing),
        cmocka_unit_test(parts_of_a_row_are_the_row),
        cmocka_unit_test(columns_alone_are_those_of_all),
        cmocka_unit_test(float32_is_near_float64),
        cmocka_unit_test(gradients_overwrite_or_add),
        cmocka_unit_test(gradients_nobody_asks_for_are_not_computed),
        cmocka_unit_test(views_and_inplace_ops_may_share_memory),
        cmocka_unit_test(what_does_not_fit_is_refused_with_its_numbers),
        cmocka_unit_test(statistics_far_from_zero_keep_their_digits),
        cmocka_unit_test(one_row_is_finite_and_no_row_moves_nothing),
        cmocka_unit_test(a_mask_is_the_function_of_chance_that_is_promised),
        cmocka_unit_test(a_noise_shape_shares_draws),
        cmocka_unit_test(a_failed_call_waits_for_the_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
