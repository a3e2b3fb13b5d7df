/* See scored.h. */
#include "train/scored.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/fuse.h"
#include "losses/along.h"
#include "losses/totals.h"
#include "ops/all.h"
#include "ops/args.h"
#include <math.h>
#include <string.h>

/* ---- names as in Keras's logs ---------------------------------------------------------------- */

static const char *named(keel_model *m, const char *output, const char *what, const char *name,
                         int count)
{
    keel_text t = { 0 };
    if (output) keel_text_add(&t, "%s_", output);
    keel_text_add(&t, "%s%s", what, name);
    if (count) keel_text_add(&t, "_%d", count);
    const char *kept = t.failed ? NULL : keel_model_keep_name(m, t.data);
    keel_text_free(&t);
    return kept;
}

static bool is_taken(const keel_scored *s, const char *name)
{
    for (int i = 0; i < s->n_metric; i++)
        if (!strcmp(s->metric[i].name, name)) return true;
    return false;
}

/* "accuracy" or "left_accuracy"; if that exists already, "weighted_accuracy" or "accuracy_1". */
static const char *metric_name(const keel_scored *s, keel_model *m, const keel_model_metric *mm)
{
    const char *output = m->n_output > 1 ? keel_model_output_name(m, mm->output) : NULL;
    const char *name = named(m, output, "", mm->name, 0), *what = "";
    if (name && is_taken(s, name) && mm->weighted)
        name = named(m, output, what = "weighted_", mm->name, 0);
    for (int i = 1; name && is_taken(s, name); i++) name = named(m, output, what, mm->name, i);
    return name;
}

/* "left_loss"; of outputs in a structure of several levels "right/left_loss". */
static const char *loss_name(keel_model *m, int output)
{
    char path[256];
    const char *name = keel_model_output_name(m, output);
    keel_model_path_text(path, sizeof path, m->output_paths, output, name);
    return named(m, *path ? path : name, "", "loss", 0);
}

void keel_scored_names(const keel_scored *s, keel_logs *logs)
{
    logs->count = 0;
    logs->name[logs->count++] = "loss";
    for (int i = 0; s->n_loss > 1 && i < s->n_loss; i++)
        logs->name[logs->count++] = s->loss[i].name;
    for (int i = 0; i < s->n_metric; i++) {
        const keel_scored_metric *m = &s->metric[i];
        for (int k = 0; k < m->values; k++)
            logs->name[logs->count++] = m->value_name ? m->value_name[k] : m->name;
    }
}

/* ---- building -------------------------------------------------------------------------------- */

typedef struct builder {
    keel_scored *s;
    keel_model *m;
    const keel_pairing *pairing;
    int64_t rows;
    keel_graph *g;
    keel_value *output, *mask;           /* [n_output] */
    keel_value target[KEEL_OUTPUTS_MAX]; /* inputs of the graph; -1: not made yet */
    keel_value weight[KEEL_OUTPUTS_MAX];
    keel_value values[KEEL_OUTPUTS_MAX]; /* of the program of a loss; -1: it has none */
} builder;

static keel_status add_input(builder *x, const keel_spec *spec, int field, keel_value *out)
{
    KEEL_TRY(keel_graph_input(x->g, spec, out));
    int *more = keel_grow(x->s->field, (size_t)x->g->n_input, sizeof *more);
    if (!more) return KEEL_ENOMEM;
    x->s->field = more;
    more[x->g->n_input - 1] = field;
    return KEEL_OK;
}

/* The inputs of a loss or metric of output k: predictions, targets, weights, and the output's mask.
 */
static keel_status score_inputs(builder *x, int k, keel_value in[4], int *n)
{
    const keel_pairing *p = x->pairing;
    if (x->target[k] < 0) KEEL_TRY(add_input(x, &p->target_spec[k], p->target[k], &x->target[k]));
    if (x->weight[k] < 0)
        KEEL_TRY(add_input(x, &p->weight_spec[k],
                           p->weight[k] >= 0 ? p->weight[k] : KEEL_ROW_WEIGHTS, &x->weight[k]));
    in[KEEL_SCORE_PREDICTION] = x->output[k];
    in[KEEL_SCORE_TARGET] = x->target[k];
    in[KEEL_SCORE_WEIGHT] = x->weight[k];
    in[KEEL_SCORE_MASK] = x->mask[k];
    *n = x->mask[k] >= 0 ? 4 : 3;
    return KEEL_OK;
}

/* Adds the program of a loss or metric of output k. */
static keel_status add_values(builder *x, int k, const keel_model *program, keel_value *out)
{
    keel_value in[4];
    int n_in;
    KEEL_TRY(score_inputs(x, k, in, &n_in));
    return keel_model_emit_values(program, x->g, in[KEEL_SCORE_TARGET], in[KEEL_SCORE_PREDICTION],
                                  out);
}

/* Such a loss or metric sees values as predictions, and as targets, which it does not use. */
static keel_status put_values(builder *x, keel_value values, keel_value in[4])
{
    const keel_node_parts parts = { .op = &keel_op_stop_gradient, .n_in = 1, .in = &values };
    in[KEEL_SCORE_PREDICTION] = values;
    return keel_graph_add(x->g, &parts, &in[KEEL_SCORE_TARGET], 1);
}

/* Compute a cross-entropy of a softmax (or a binary one of a sigmoid) from the logits, as Keras
 * does on TensorFlow; of a softmax if it runs along the same dim. Other activations give
 * probabilities, as on PyTorch and JAX: TensorFlow takes the logits of a sigmoid for those of a
 * softmax. */
static keel_status take_logits(keel_graph *g, keel_scored_loss *l, int64_t along,
                               keel_value *prediction)
{
    const keel_loss *loss = l->args.loss;
    int made_by = g->value[*prediction].node;
    if (made_by >= 0 &&
        g->node[made_by].node.op->casts) /* look through the cast of mixed_bfloat16 */
        made_by = g->value[g->node[made_by].in[0]].node;
    if (made_by < 0 || !loss->logits_of || keel_loss_has_logits(loss, l->args.args)) return KEEL_OK;
    const keel_graph_node *n = &g->node[made_by];
    const int last = g->value[*prediction].spec.shape.rank - 1;
    if (n->node.op != loss->logits_of) return KEEL_OK;
    if (n->node.op == &keel_op_softmax) {
        const int64_t axis = ((const keel_axis_args *)n->node.args)->axis;
        if ((axis == -1 ? last : axis) != along) return KEEL_OK;
    }
    keel_object copy = { 0 }, original = { .type = &loss->type, .args = (void *)l->args.args };
    KEEL_TRY(keel_object_copy(&copy, &original));
    keel_loss_use_logits(loss, copy.args);
    l->own = copy.args;
    l->args.args = copy.args;
    g->layer = n->node.layer;
    return keel_graph_cast(g, n->in[0], g->real, prediction);
}

/* A metric that gives several numbers has a place in the logs for each. */
static keel_status name_values(builder *x, keel_scored_metric *a)
{
    int places = x->s->n_loss + 1;
    for (int i = 0; i < x->s->n_metric; i++) places += x->s->metric[i].values;
    const int64_t n = keel_metric_values(a->args.metric, a->args.args, a->sums);
    if (n > KEEL_SCORES_MAX - places)
        return keel_fail(KEEL_EUNSUP,
                         "logs hold at most %d values; metric '%s' needs %lld, where %d are left",
                         KEEL_SCORES_MAX, a->name, (long long)n, KEEL_SCORES_MAX - places);
    a->values = (int)n;
    if (n == 1) return KEEL_OK;
    if (!(a->value_name = keel_calloc((size_t)n, sizeof *a->value_name))) return KEEL_ENOMEM;
    for (int k = 0; k < n; k++) {
        keel_text t = { 0 };
        keel_text_add(&t, "%s[%d]", a->name, k);
        a->value_name[k] = t.failed ? NULL : keel_model_keep_name(x->m, t.data);
        keel_text_free(&t);
        if (!a->value_name[k]) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

static keel_status add_metric(builder *x, const keel_model_metric *mm)
{
    keel_scored *s = x->s;
    keel_scored_metric *a = &s->metric[s->n_metric];
    keel_value in[4], ignored, values = -1;
    if (mm->values) KEEL_TRY(add_values(x, mm->output, mm->values, &values));
    const keel_value seen = values >= 0 ? values : x->output[mm->output];
    const keel_spec *prediction = keel_graph_spec(x->g, seen);
    const keel_spec *target = values >= 0 ? prediction : &x->pairing->target_spec[mm->output];
    const keel_object *o = &mm->metric;
    int n_in;
    if (s->n_metric + s->n_loss >= KEEL_SCORES_MAX - 1)
        return keel_fail(KEEL_EUNSUP, "more than %d losses and metrics", KEEL_SCORES_MAX - 1);
    const keel_type *type = keel_pairing_metric(x->m, mm, prediction, target);
    if (!type) return keel_fail(KEEL_EARG, "metric '%s' does not fit the model's output", mm->name);
    if (!o->type) {
        KEEL_TRY(keel_object_default(&a->resolved, type));
        o = &a->resolved;
    }
    a->output = mm->output;
    a->args = (keel_metric_args){ .metric = (const keel_metric *)o->type,
                                  .args = o->args,
                                  .weighted = mm->weighted };
    keel_along along;
    keel_status st = keel_metric_along(&along, a->args.metric, o->args, prediction, target);
    if (st >= 0) st = keel_metric_check(a->args.metric, o->args, &along.prediction, &along.target);
    if (st < 0) return keel_fail_within(st, "metric '%s'", mm->name);
    if (!(a->name = metric_name(s, x->m, mm))) return KEEL_ENOMEM;
    KEEL_TRY(score_inputs(x, mm->output, in, &n_in));
    if (values >= 0) KEEL_TRY(put_values(x, values, in));
    if (a->args.metric->unmasked) n_in = KEEL_SCORE_MASK;
    x->g->layer = a->name;
    KEEL_TRY(keel_along_emit(&along, keel_metric_target(a->args.metric, o->args), x->g,
                             &in[KEEL_SCORE_PREDICTION], &in[KEEL_SCORE_TARGET]));
    const keel_op *op = a->args.metric->merge ? &keel_metric_merged_op : &keel_metric_op;
    const keel_node_parts parts = { .op = op, .args = &a->args, .n_in = n_in, .in = in };
    KEEL_TRY(keel_graph_add(x->g, &parts, &ignored, 1));
    a->node = x->g->n_node - 1;
    a->first = s->n_metric ? a[-1].first + a[-1].sums : 0;
    a->sums = x->g->node[a->node].node.sums;
    KEEL_TRY(name_values(x, a));
    s->n_metric++;
    return KEEL_OK;
}

/* Losses are checked and counted first, since with several each has its own divisor. */
static keel_status count_losses(builder *x)
{
    keel_scored *s = x->s;
    for (int k = 0; k < x->m->n_output && k < KEEL_OUTPUTS_MAX; k++) {
        const keel_object *o = &x->m->compiled.loss[k];
        keel_scored_loss *l = &s->loss[s->n_loss];
        if (!o->type || x->pairing->target[k] < 0) continue;
        *l = (keel_scored_loss){ .output = k,
                                 .args = { .loss = (const keel_loss *)o->type,
                                           .args = o->args,
                                           .index = s->n_loss + 1,
                                           .weight = x->m->compiled.loss_weight[k],
                                           .rows = x->rows } };
        const keel_model *program = x->m->compiled.values[k];
        const keel_spec *prediction = keel_graph_spec(x->g, x->output[k]);
        const keel_spec *target = &x->pairing->target_spec[k];
        if (program) {
            KEEL_TRY(add_values(x, k, program, &x->values[k]));
            target = prediction = keel_graph_spec(x->g, x->values[k]);
        }
        const keel_status st =
            keel_along_check(l->args.loss, o->args, prediction, target, &l->elements);
        if (st < 0) return keel_fail_within(st, "loss");
        l->name = loss_name(x->m, k);
        s->n_loss++;
        if (!l->name) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

keel_status keel_scored_emit_loss(const keel_scored *s, keel_scored_loss *l, keel_graph *g,
                                  keel_value *in, int n_in)
{
    keel_value ignored;
    keel_along along;
    KEEL_TRY(keel_along_loss(&along, l->args.loss, l->args.args,
                             keel_graph_spec(g, in[KEEL_SCORE_PREDICTION]),
                             keel_graph_spec(g, in[KEEL_SCORE_TARGET])));
    KEEL_TRY(take_logits(g, l, along.axis, &in[KEEL_SCORE_PREDICTION]));
    l->args.meets =
        s->apart && (n_in > KEEL_SCORE_MASK || !keel_loss_counts_rows(l->args.loss, l->args.args));
    g->layer = s->n_loss > 1 ? l->name : "loss";
    KEEL_TRY(keel_along_emit(&along, l->args.loss->target, g, &in[KEEL_SCORE_PREDICTION],
                             &in[KEEL_SCORE_TARGET]));
    const keel_node_parts parts = { .op = &keel_loss_op, .args = &l->args, .n_in = n_in, .in = in };
    KEEL_TRY(keel_graph_add(g, &parts, &ignored, 1));
    l->node = g->n_node - 1;
    return KEEL_OK;
}

static keel_status add_loss(builder *x, keel_scored_loss *l)
{
    keel_value in[4];
    int n_in;
    KEEL_TRY(score_inputs(x, l->output, in, &n_in));
    if (x->values[l->output] >= 0) KEEL_TRY(put_values(x, x->values[l->output], in));
    /* Keras spreads a number over the mask, and takes the mean of what counts: the same number. */
    if (l->args.loss == &keel_loss_totals && n_in > KEEL_SCORE_MASK) n_in = KEEL_SCORE_MASK;
    return keel_scored_emit_loss(x->s, l, x->g, in, n_in);
}

keel_status keel_scored_find_activities(keel_scored *s, const keel_graph *g)
{
    if (!(s->activity = keel_calloc((size_t)g->n_node, sizeof *s->activity))) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_node; i++)
        if (g->node[i].node.op == &keel_activity_op) s->activity[s->n_activity++] = i;
    return KEEL_OK;
}

/* A loss without a reduction is a list of numbers, to which Keras can add nothing: it fails, or
 * adds the rest of the loss to each of them. */
static keel_status check_reductions(const builder *x)
{
    const keel_scored *s = x->s;
    const char *other = s->n_loss > 1 ? "another loss" : s->n_activity ? "a loss of a layer" : NULL;
    for (int k = 0; k < x->m->n_weight && !other; k++)
        if (x->m->weight[k].trainable && keel_penalizes(&x->m->weight[k].info.penalty))
            other = "a regularizer";
    for (int i = 0; i < s->n_loss && other; i++) {
        const keel_loss *l = s->loss[i].args.loss;
        if (!keel_loss_is_reduced(l, s->loss[i].args.args))
            return keel_fail(KEEL_EUNSUP,
                             "%s: without a reduction it is no single number, to which Keras 3.15 "
                             "cannot add that of %s: use reduction \"sum\"",
                             l->type.name, other);
    }
    return KEEL_OK;
}

static keel_status add_scores(builder *x)
{
    const keel_model_compiled *c = &x->m->compiled;
    for (int k = 0; k < KEEL_OUTPUTS_MAX; k++) x->target[k] = x->weight[k] = x->values[k] = -1;
    KEEL_TRY(count_losses(x));
    KEEL_TRY(keel_scored_find_activities(x->s, x->g));
    if (!x->s->n_loss && !x->s->n_activity)
        return keel_fail(KEEL_EARG, "model '%s' has no loss", keel_model_name(x->m));
    KEEL_TRY(check_reductions(x));
    x->s->apart = x->s->n_loss + x->s->n_activity > 1 || keel_model_scales_loss(x->m);
    for (int i = 0; i < c->n_metric; i++) KEEL_TRY(add_metric(x, &c->metric[i]));
    for (int i = 0; i < x->s->n_loss; i++) KEEL_TRY(add_loss(x, &x->s->loss[i]));
    return KEEL_OK;
}

/* Fuse ops, but keep the values that are read later: outputs and masks, and states. */
static keel_status fuse_ops(builder *x, keel_value *keep)
{
    const int ends = 2 * x->m->n_output;
    keel_value *kept = keel_calloc((size_t)(ends + x->g->n_carried), sizeof *kept);
    int n = 0;
    if (!kept) return KEEL_ENOMEM;
    for (int i = 0; i < ends; i++)
        if (keep[i] >= 0) kept[n++] = keep[i];
    for (int i = 0; i < x->g->n_carried; i++) kept[n++] = x->g->carried[i].end;
    const keel_status s = keel_graph_fuse(x->g, kept, n);
    n = 0;
    for (int i = 0; i < ends && s >= 0; i++)
        if (keep[i] >= 0) keep[i] = kept[n++];
    for (int i = 0; i < x->g->n_carried && s >= 0; i++) x->g->carried[i].end = kept[n++];
    keel_free(kept);
    return s;
}

/* Emit the model without losses. While ops are fused, outputs and their masks are kept. */
static keel_status emit_model(builder *x, bool training, bool fuse, keel_value *keep)
{
    const keel_model *m = x->m;
    keel_value inputs[KEEL_FIELDS_MAX];
    if (m->n_input > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EUNSUP, "model '%s' has more than %d inputs", m->name,
                         KEEL_FIELDS_MAX);
    keel_model_emission e = { .real = m->dtype,
                              .training = training,
                              .scored = x->pairing->scored,
                              .specs = x->pairing->input_spec,
                              .input = inputs,
                              .output = keep,
                              .mask = x->pairing->scored ? keep + m->n_output : NULL };
    for (int i = 0; i < m->n_output; i++) keep[m->n_output + i] = -1;
    KEEL_TRY(keel_model_emit(m, &e));
    x->g = e.graph;
    x->s->field = keel_calloc((size_t)x->g->n_input, sizeof *x->s->field);
    if (!x->s->field) return KEEL_ENOMEM;
    for (int i = 0; i < m->n_input; i++)
        x->s->field[x->g->value[inputs[i]].index] = x->pairing->input[i];
    for (int i = 0; i < x->g->n_host; i++) /* in the order of the pairing, which emitted it too */
        x->s->field[x->g->host[i].input] = x->pairing->n_field + i;
    for (int i = 0; i < x->g->n_carried; i++) x->s->field[x->g->carried[i].input] = KEEL_ROW_STATE;
    return fuse && m->n_output <= KEEL_OUTPUTS_MAX ? fuse_ops(x, keep) : KEEL_OK;
}

keel_status keel_scored_emit(keel_scored *s, keel_model *m, const keel_pairing *pairing,
                             int64_t rows, bool training, bool fuse, keel_graph **graph,
                             keel_value *outputs)
{
    builder x = { .s = s, .m = m, .pairing = pairing, .rows = rows };
    keel_value *keep = keel_calloc(2 * (size_t)m->n_output, sizeof *keep);
    if (!keep) return KEEL_ENOMEM;
    x.output = keep;
    x.mask = keep + m->n_output;
    keel_status st = emit_model(&x, training, fuse, keep);
    if (st >= 0 && pairing->scored) st = add_scores(&x);
    for (int k = 0; k < KEEL_OUTPUTS_MAX; k++) {
        s->mask[k] = st >= 0 && pairing->scored && k < m->n_output ? x.mask[k] : -1;
        s->mask_at[k] = -1;
    }
    if (st >= 0) {
        memcpy(outputs, keep, (size_t)m->n_output * sizeof *outputs);
        *graph = x.g;
        x.g = NULL;
    }
    keel_free(keep);
    keel_graph_destroy(x.g);
    return st;
}

void keel_scored_free(keel_scored *s)
{
    keel_program_destroy(s->program);
    for (int i = 0; i < s->n_loss; i++) {
        keel_scored_loss *l = &s->loss[i];
        if (l->own) keel_object_free(&(keel_object){ .type = &l->args.loss->type, .args = l->own });
    }
    for (int i = 0; i < KEEL_SCORES_MAX; i++) {
        keel_object_free(&s->metric[i].resolved);
        keel_free(s->metric[i].value_name);
    }
    keel_free(s->field);
    keel_free(s->state);
    keel_free(s->activity);
    *s = (keel_scored){ 0 };
}

/* ---- running --------------------------------------------------------------------------------- */

void keel_scored_begin(keel_scored *s, int64_t rows, double loss_scale)
{
    s->seed[0] = loss_scale;
    for (int i = 0; i < s->n_loss; i++) {
        const keel_scored_loss *l = &s->loss[i];
        const double count = (double)rows * (double)l->elements;
        const double divisor =
            keel_loss_divisor(l->args.loss, l->args.args, (double[]){ 0, count, count });
        s->seed[i + 1] = loss_scale * l->args.weight / divisor;
    }
    s->program->facts.loss_seed = s->apart ? s->seed : NULL;
    s->program->facts.loss_seeds = s->apart ? 1 + s->n_loss : 0;
}

void keel_scored_read(const keel_scored *s, const keel_bound *b, keel_score *out)
{
    *out = (keel_score){ .divisor = 1, .finite = true };
    for (int i = 0; i < s->n_loss; i++) {
        const keel_scored_loss *l = &s->loss[i];
        double sums[KEEL_LOSS_SUMS];
        keel_program_sums(s->program, b, l->node, sums);
        const double divisor = keel_loss_divisor(l->args.loss, l->args.args, sums);
        const double logged = keel_loss_logged_divisor(l->args.loss, l->args.args, sums);
        out->each[i] = logged != 0 ? sums[0] / logged : 0;
        out->loss +=
            s->n_loss == 1 && l->args.weight == 1 ? out->each[i] : l->args.weight * out->each[i];
        out->weights += out->weighed[i] = sums[2];
        out->finite = out->finite && isfinite(sums[0]) && isfinite(divisor);
        if (!s->apart) {
            out->divisor = divisor;
            out->finite = out->finite && divisor != 0;
        }
    }
    if (!s->n_loss) out->weights = (double)s->program->facts.rows; /* terms of layers alone */
    for (int i = 0; i < s->n_activity; i++) {
        double sum;
        keel_program_sums(s->program, b, s->activity[i], &sum);
        out->loss += sum / (double)s->program->facts.rows;
        out->finite = out->finite && isfinite(sum);
    }
}
