/* See trainer.h. */
#include "train/trainer.h"
#include "base/memory.h"
#include "graph/fuse.h"
#include "ops/all.h"
#include "ops/args.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static keel_status refuse_what_is_thin(const keel_model *m)
{
    if (!m->finished)
        return keel_fail(KEEL_EARG, "model '%s' is not finished: it has no outputs yet", m->name);
    if (m->n_input != 1)
        return keel_fail(KEEL_EUNSUP, "model '%s' has %d inputs; this version of Keel feeds one",
                         m->name, m->n_input);
    return KEEL_OK;
}

static keel_status refuse_to_score(const keel_model *m)
{
    if (m->refused) return keel_fail(KEEL_EUNSUP, "model '%s': %s", m->name, m->refused);
    if (!m->compiled.given)
        return keel_fail(KEEL_EARG, "model '%s' is not compiled: give it an optimizer and a loss",
                         m->name);
    if (m->n_output != 1)
        return keel_fail(KEEL_EUNSUP,
                         "model '%s' has %d outputs; this version of Keel trains and scores models "
                         "of one",
                         m->name, m->n_output);
    if (!m->compiled.loss[0].type) return keel_fail(KEEL_EARG, "model '%s' has no loss", m->name);
    if (m->compiled.loss_weight[0] != 0 && m->compiled.loss_weight[0] != 1)
        return keel_fail(KEEL_EUNSUP, "loss_weights are not supported; scale the learning rate");
    return KEEL_OK;
}

/* A cross-entropy of a softmax (or sigmoid) is computed from the logits, as Keras does. */
static keel_status take_logits(keel_scored *s, keel_graph *g, keel_value *prediction)
{
    const keel_loss *loss = s->loss.loss;
    int maker = g->value[*prediction].node;
    if (maker >= 0 && g->node[maker].node.op->casts) /* the softmax is held in another type */
        maker = g->value[g->node[maker].in[0]].node;
    if (maker < 0 || !loss->logits_of || loss->has_logits(s->loss.args)) return KEEL_OK;
    const keel_graph_node *n = &g->node[maker];
    const int last = g->value[*prediction].spec.shape.rank - 1;
    if (n->node.op != loss->logits_of) return KEEL_OK;
    if (n->node.op == &keel_op_softmax) {
        const int64_t axis = ((const keel_axis_args *)n->node.args)->axis;
        if (axis != -1 && axis != last) return KEEL_OK;
    }
    keel_object copy = { 0 }, original = { .type = &loss->type, .args = (void *)s->loss.args };
    KEEL_TRY(keel_object_copy(&copy, &original));
    loss->use_logits(copy.args);
    s->logits_args = copy.args;
    s->loss.args = copy.args;
    g->layer = n->node.layer;
    return keel_graph_cast(g, n->in[0], g->real, prediction);
}

static keel_status add_metrics(keel_scored *s, const keel_model *m, keel_graph *g,
                               const keel_value in[3])
{
    const keel_spec *prediction = keel_graph_spec(g, in[0]), *target = keel_graph_spec(g, in[1]);
    keel_value ignored;
    for (int i = 0; i < m->compiled.n_metric; i++) {
        const keel_model_metric *mm = &m->compiled.metric[i];
        keel_metric_args *a = &s->metric[i];
        const keel_object *o = &mm->metric;
        if (i == KEEL_LOGS_MAX - 1)
            return keel_fail(KEEL_EUNSUP, "more than %d metrics", KEEL_LOGS_MAX - 1);
        if (!o->type) {
            const char *name =
                keel_metric_resolve(mm->name, m->compiled.loss[0].type->name, prediction, target);
            const keel_type *type = name ? keel_metric_find(name) : NULL;
            if (!type)
                return keel_fail(KEEL_EARG, "metric '%s' does not fit the model's output",
                                 mm->name);
            KEEL_TRY(keel_object_default(&s->resolved[i], type));
            o = &s->resolved[i];
        }
        *a = (keel_metric_args){ .metric = (const keel_metric *)o->type,
                                 .args = o->args,
                                 .weighted = mm->weighted };
        if (a->metric->check) {
            const keel_status st = a->metric->check(a->args, prediction, target);
            if (st < 0) return keel_fail_within(st, "metric '%s'", mm->name);
        }
        g->layer = mm->name;
        const keel_node_parts parts = { .op = &keel_metric_op, .args = a, .n_in = 3, .in = in };
        KEEL_TRY(keel_graph_add(g, &parts, &ignored, 1));
        s->metric_node[s->n_metric++] = g->n_node - 1;
    }
    return KEEL_OK;
}

/* The model's graph with its targets, weights, loss and metrics. */
static keel_status emit(keel_scored *s, const keel_model *m, const keel_shape *y_shape,
                        bool training, bool fuse, keel_graph **out, keel_value *outputs)
{
    keel_value inputs[KEEL_INPUTS_MAX], in[3], loss_in[3], ignored;
    keel_graph *g = NULL;
    s->loss_node = -1;
    keel_model_emission e = {
        .real = m->dtype, .training = training, .input = inputs, .output = outputs
    };
    KEEL_TRY(keel_model_emit(m, &e));
    g = e.graph;
    keel_status st = fuse ? keel_graph_fuse(g, outputs, m->n_output) : KEEL_OK;
    if (st < 0) goto out;
    if (y_shape) {
        const keel_spec y = { .dtype = m->dtype, .shape = *y_shape };
        const keel_spec w = { .dtype = m->dtype };
        const keel_object *loss = &m->compiled.loss[0];
        int64_t elements;
        in[0] = outputs[0];
        if ((st = keel_graph_input(g, &y, &in[1])) < 0) goto out;
        if ((st = keel_graph_input(g, &w, &in[2])) < 0) goto out;
        s->loss = (keel_loss_args){ .loss = (const keel_loss *)loss->type, .args = loss->args };
        memcpy(loss_in, in, sizeof in);
        if ((st = s->loss.loss->check(loss->args, keel_graph_spec(g, in[0]), &y, &elements)) < 0) {
            st = keel_fail_within(st, "loss '%s'", loss->type->name);
            goto out;
        }
        if ((st = take_logits(s, g, &loss_in[0])) < 0) goto out;
        if ((st = add_metrics(s, m, g, in)) < 0) goto out;
        g->layer = "loss";
        const keel_node_parts parts = {
            .op = &keel_loss_op, .args = &s->loss, .n_in = 3, .in = loss_in
        };
        st = keel_graph_add(g, &parts, &ignored, 1);
        if (st < 0) goto out;
        s->loss_node = g->n_node - 1;
    }
    *out = g;
    return KEEL_OK;
out:
    keel_graph_destroy(g);
    return st;
}

static keel_status make_store(keel_trainer *t, const keel_graph *g)
{
    const keel_model *m = t->model;
    keel_status s = KEEL_ENOMEM;
    keel_schedule schedule = { 0 };
    const size_t n = (size_t)m->n_weight;
    bool *trainable = keel_calloc(n, sizeof *trainable);
    keel_weight_info *info = keel_calloc(n, sizeof *info);
    if (!trainable || !info) goto out;
    for (int v = 0; v < m->n_weight; v++) {
        info[v] = m->weight[v].info;
        trainable[v] = info[v].trainable;
    }
    if ((s = keel_schedule_make(&schedule, g, trainable, m->n_weight)) < 0) goto out;
    s = keel_store_create(&t->store, m->dtype, info, m->n_weight, schedule.order, schedule.n_order);
    if (s < 0) goto out;
    for (int v = 0; v < m->n_weight; v++)
        memcpy(keel_store_data(t->store, v), m->weight[v].data,
               (size_t)t->store->weight[v].count * keel_dtype_size(m->dtype));
out:
    keel_schedule_free(&schedule, g);
    keel_free(trainable);
    keel_free(info);
    return s;
}

static keel_status compile(keel_trainer *t, keel_scored *s, const keel_shape *y_shape,
                           bool training, int64_t rows)
{
    keel_graph *g = NULL;
    keel_value outputs[KEEL_OUTPUTS_MAX];
    KEEL_TRY(emit(s, t->model, y_shape, training, !t->unfused, &g, outputs));
    if (!t->store) {
        const keel_status st = make_store(t, g);
        if (st < 0) {
            keel_graph_destroy(g);
            return st;
        }
    }
    t->options.max_rows = rows;
    /* nobody reads predictions while training: their memory is free once metrics are updated */
    const int n_output = y_shape ? 0 : t->model->n_output;
    return keel_program_create(&s->program, g, outputs, n_output, t->store, &t->strategy->lanes,
                               &t->options);
}

/* Owners: neighbours in the flat range, the same number of elements each as nearly as tiles allow.
 */
static keel_status share_tiles(keel_trainer *t)
{
    const int n_worker = t->strategy->lanes.n_worker;
    const keel_store *s = t->store;
    int64_t all = 0, done = 0;
    t->first_tile = keel_calloc((size_t)n_worker + 1, sizeof *t->first_tile);
    t->late_tile = keel_calloc((size_t)n_worker, sizeof *t->late_tile);
    t->tile_norm = keel_calloc((size_t)s->n_tile, sizeof *t->tile_norm);
    t->tile_scale = keel_calloc((size_t)s->n_tile, sizeof *t->tile_scale);
    t->vote = keel_aligned_calloc((size_t)n_worker, sizeof *t->vote);
    if (!t->first_tile || !t->late_tile || !t->tile_norm || !t->tile_scale || !t->vote)
        return KEEL_ENOMEM;
    for (int i = 0; i < s->n_tile; i++) all += s->tile[i].count;
    for (int i = 0, w = 1; i < s->n_tile; i++) {
        /* the tile that a cut goes through is with whom it has more of */
        while (w < n_worker && done + s->tile[i].count / 2 >= all * w / n_worker)
            t->first_tile[w++] = i;
        done += s->tile[i].count;
        if (i == s->n_tile - 1)
            while (w < n_worker) t->first_tile[w++] = s->n_tile;
    }
    t->first_tile[n_worker] = s->n_tile;
    t->all_late = true;
    t->may_move_late = !t->needs_norms;
    for (int w = 0; w < n_worker; w++) {
        t->late_tile[w] = -1;
        for (int i = t->first_tile[w]; i < t->first_tile[w + 1]; i++) {
            const keel_weight_info *info = &s->weight[s->tile[i].variable].info;
            const int best = t->late_tile[w];
            if (t->train.program->late[s->tile[i].variable].node < 0) {
                t->all_late = false;
                continue;
            }
            if (best < 0 || s->tile[i].count > s->tile[best].count) t->late_tile[w] = i;
            if (info->l1 != 0 || info->l2 != 0) t->may_move_late = false;
        }
    }
    return KEEL_OK;
}

static keel_status take_optimizer(keel_trainer *t)
{
    const keel_model_compiled *c = &t->model->compiled;
    const char *names[KEEL_SLOTS_MAX];
    if (c->schedule)
        return keel_fail(KEEL_EUNSUP,
                         "model '%s': the learning rate is the schedule '%s', which is not "
                         "supported; set a number (--learning-rate) to train",
                         t->model->name, c->schedule);
    t->optimizer = (const keel_optimizer *)c->optimizer.type;
    t->optimizer_args = c->optimizer.args;
    KEEL_TRY(keel_optimizer_check(&t->optimizer->type, t->optimizer_args));
    t->n_moment = t->optimizer->slots(t->optimizer_args, names);
    t->iterations = c->iterations;
    t->learning_rate = c->learning_rate;
    const keel_optimizer_common *o = t->optimizer_args;
    t->needs_norms = keel_clips(o->clipnorm) || keel_clips(o->global_clipnorm);
    KEEL_TRY(keel_store_add_moments(t->store, t->n_moment));
    for (int i = 0; c->state && i < keel_model_trainable_count(t->model); i++)
        for (int k = 0; k < t->n_moment; k++) {
            const keel_variable v = keel_model_trainable(t->model, i);
            const keel_store_weight *w = &t->store->weight[v];
            const size_t element = keel_dtype_size(t->store->real);
            memcpy(t->store->moment[k] + w->offset * (int64_t)element,
                   c->state[i * t->n_moment + k].data, (size_t)w->count * element);
        }
    return share_tiles(t);
}

keel_status keel_trainer_create(keel_trainer **out, keel_model *m, keel_strategy *strategy,
                                const keel_shape *y_shape, int64_t train_rows, int64_t test_rows,
                                const keel_trainer_options *options)
{
    KEEL_TRY(refuse_what_is_thin(m));
    if (y_shape) KEEL_TRY(refuse_to_score(m));
    keel_status s = KEEL_ENOMEM;
    keel_trainer *t = keel_calloc(1, sizeof *t);
    if (!t) return s;
    t->model = m;
    t->strategy = strategy;
    t->unfused = options->unfused;
    t->options = (keel_program_options){ .real = m->dtype,
                                         .reference_only = options->reference_kernels,
                                         .without = options->without_kernels,
                                         .float32 = options->float32,
                                         .dry = options->dry };
    if (train_rows > 0) {
        if ((s = compile(t, &t->train, y_shape, true, train_rows)) < 0) goto out;
        if ((s = take_optimizer(t)) < 0) goto out;
    }
    if (test_rows > 0 && (s = compile(t, &t->test, y_shape, false, test_rows)) < 0) goto out;
    *out = t;
    return KEEL_OK;
out:
    keel_trainer_destroy(t);
    return s;
}

static void free_scored(keel_scored *s)
{
    keel_program_destroy(s->program);
    if (s->logits_args)
        keel_object_free(&(keel_object){ .type = &s->loss.loss->type, .args = s->logits_args });
    for (int i = 0; i < KEEL_LOGS_MAX; i++) keel_object_free(&s->resolved[i]);
}

void keel_trainer_destroy(keel_trainer *t)
{
    if (!t) return;
    free_scored(&t->train);
    free_scored(&t->test);
    keel_store_destroy(t->store);
    keel_free(t->first_tile);
    keel_free(t->late_tile);
    keel_free(t->tile_norm);
    keel_free(t->tile_scale);
    keel_free(t->vote);
    keel_free(t);
}

void keel_trainer_store(keel_trainer *t)
{
    keel_model *m = t->model;
    keel_model_compiled *c = &m->compiled;
    const size_t element = keel_dtype_size(t->store->real);
    for (int v = 0; v < m->n_weight; v++)
        memcpy(m->weight[v].data, keel_store_data(t->store, v),
               (size_t)t->store->weight[v].count * element);
    if (!t->train.program) return;
    c->iterations = t->iterations;
    for (int i = 0; c->state && i < keel_model_trainable_count(m); i++)
        for (int k = 0; k < t->n_moment; k++) {
            const keel_store_weight *w = &t->store->weight[keel_model_trainable(m, i)];
            memcpy(c->state[i * t->n_moment + k].data,
                   t->store->moment[k] + w->offset * (int64_t)element, (size_t)w->count * element);
        }
}

keel_status keel_trainer_prepare(keel_scored *s, const int64_t *rows, int n)
{
    const keel_bound *ignored;
    for (int i = 0; i < n; i++) KEEL_TRY(keel_program_bind(s->program, rows[i], &ignored));
    return KEEL_OK;
}

void keel_trainer_names(const keel_trainer *t, const keel_scored *s, keel_logs *logs)
{
    logs->count = 0;
    logs->name[logs->count++] = "loss";
    for (int i = 0; i < s->n_metric; i++)
        logs->name[logs->count++] = t->model->compiled.metric[i].name;
}
