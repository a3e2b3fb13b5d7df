/* See trainer.h. */
#include "train/trainer.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

static keel_status refuse_to_score(const keel_model *m)
{
    if (m->refused) return keel_fail(KEEL_EUNSUP, "model '%s': %s", m->name, m->refused);
    if (!m->compiled.given)
        return keel_fail(KEEL_EARG, "model '%s' is not compiled: give it an optimizer and a loss",
                         m->name);
    if (m->n_output > KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EUNSUP, "model '%s' has %d outputs; at most %d can be scored",
                         m->name, m->n_output, KEEL_OUTPUTS_MAX);
    return KEEL_OK;
}

static keel_status make_store(keel_trainer *t, const keel_graph *g)
{
    const keel_model *m = t->model;
    keel_status s = KEEL_ENOMEM;
    keel_schedule schedule = { 0 };
    const size_t n = (size_t)m->n_weight;
    t->trains = keel_calloc(n, sizeof *t->trains);
    keel_weight_info *info = keel_calloc(n, sizeof *info);
    if (!t->trains || !info) goto out;
    for (int v = 0; v < m->n_weight; v++) {
        info[v] = m->weight[v].info;
        t->trains[v] = m->weight[v].trainable;
    }
    if ((s = keel_schedule_make(&schedule, g, t->trains, m->n_weight)) < 0) goto out;
    s = keel_store_create(&t->store, m->dtype, info, m->n_weight, schedule.order, schedule.n_order);
    if (s < 0) goto out;
    for (int v = 0; v < m->n_weight; v++)
        memcpy(keel_store_data(t->store, v), m->weight[v].data,
               (size_t)t->store->weight[v].count * keel_dtype_size(m->dtype));
out:
    keel_schedule_free(&schedule, g);
    keel_free(info);
    return s;
}

/* A state has one name, so a layer that is called again would begin with what it ends with. */
static keel_status check_name(const keel_graph *g, int carried)
{
    for (int i = 0; i < carried; i++)
        if (!strcmp(g->carried[i].name, g->carried[carried].name))
            return keel_fail(KEEL_EUNSUP,
                             "the layer of '%s' is a stateful layer that is called twice, which is "
                             "not supported: use two layers",
                             g->carried[i].name);
    return KEEL_OK;
}

/* What rows end with is read after the step, so it is an output of the program. */
static keel_status add_states(keel_trainer *t, keel_scored *s, const keel_graph *g,
                              keel_value **outputs, int *n_output)
{
    keel_value *more = keel_grow(*outputs, (size_t)(*n_output + g->n_carried), sizeof *more);
    if (!more) return KEEL_ENOMEM;
    *outputs = more;
    if (!(s->state = keel_calloc((size_t)g->n_carried, sizeof *s->state))) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_carried; i++) {
        more[(*n_output)++] = g->carried[i].end;
        KEEL_TRY(check_name(g, i));
        if (!t->options.dry)
            KEEL_TRY(keel_row_states_find(&t->model->row_states, g, &g->carried[i], &s->state[i]));
    }
    return KEEL_OK;
}

static keel_status compile(keel_trainer *t, keel_scored *s, const keel_pairing *pairing,
                           int64_t rows, bool training)
{
    keel_model *m = t->model;
    keel_graph *g = NULL;
    keel_value *outputs = keel_calloc((size_t)m->n_output, sizeof *outputs);
    if (!outputs) return KEEL_ENOMEM;
    keel_status st = keel_scored_emit(s, m, pairing, rows, training, !t->unfused, &g, outputs);
    if (st < 0) goto out;
    /* Training does not return predictions, so their memory is free after the metrics. */
    int n_output = pairing->scored ? 0 : m->n_output;
    if ((st = add_states(t, s, g, &outputs, &n_output)) < 0) goto out;
    if (!t->store && (st = make_store(t, g)) < 0) goto out;
    t->options.max_rows = rows;
    t->options.trains = training ? t->trains : NULL;
    st = keel_program_create(&s->program, g, outputs, n_output, t->store, &t->strategy->lanes,
                             &t->options);
    g = NULL;
out:
    keel_free(outputs);
    keel_graph_destroy(g);
    return st;
}

/* Compile for a batch of these fields; NULL: all rows have one shape. */
static keel_status compile_for(keel_trainer *t, keel_scored *s, const keel_pairing *pairing,
                               int64_t rows, bool training, const keel_data_field *batch)
{
    keel_pairing closed;
    if (!batch) return compile(t, s, pairing, rows, training);
    KEEL_TRY(keel_pairing_close(&closed, pairing, t->model, batch));
    return compile(t, s, &closed, rows, training);
}

static keel_status compile_first(keel_trainer *t, const keel_trainer_work *work, bool training,
                                 int most)
{
    const keel_data_field *batch = work->pairing->open ? work->batch : NULL;
    KEEL_TRY(compile_for(t, training ? &t->train : &t->test, work->pairing, work->rows, training,
                         batch));
    return keel_programs_begin(training ? &t->trained : &t->tested, work->pairing, work->rows,
                               most ? most : KEEL_PROGRAMS_DEFAULT, batch);
}

/* Collect facts about the tiles of the current training program, for step.c. */
static void look_at_tiles(keel_trainer *t)
{
    const keel_updater *u = &t->update;
    t->all_tiled = true;
    t->constrained = false;
    for (int i = 0; i < u->n_tile; i++) {
        const keel_projection *p = &t->store->weight[u->tile[i].variable].info.projection;
        t->constrained = t->constrained || p->non_negative || p->lengths;
    }
    t->may_move_at_once = !t->needs_norms && u->n_pass == 1 && u->accumulator < 0;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) {
        t->largest_tile[w] = -1;
        for (int i = u->first_tile[w]; i < u->first_tile[w + 1]; i++) {
            const keel_weight_info *info = &t->store->weight[u->tile[i].variable].info;
            const int best = t->largest_tile[w];
            if (t->train.program->tiled[u->tile[i].variable].node < 0) {
                t->all_tiled = false;
                continue;
            }
            if (best < 0 || u->tile[i].count > u->tile[best].count) t->largest_tile[w] = i;
            if (info->l1 != 0 || info->l2 != 0) t->may_move_at_once = false;
        }
    }
}

keel_status keel_trainer_meet(keel_trainer *t, bool training, const keel_batch *b)
{
    keel_programs *p = training ? &t->trained : &t->tested;
    keel_scored *s = training ? &t->train : &t->test, made = { 0 };
    if (!p->n_open || keel_programs_fit(p, b->spec)) return KEEL_OK;
    if (!keel_programs_take(p, s, b->spec)) {
        keel_programs_make_room(p);
        const keel_status st = compile_for(t, &made, &p->pairing, p->rows, training, b->spec);
        if (st < 0) {
            keel_scored_free(&made);
            return keel_fail_within(st, "epoch %lld, step %lld", (long long)b->epoch + 1,
                                    (long long)b->step + 1);
        }
        keel_programs_add(p, s, &made, b->spec);
    }
    if (!training) return KEEL_OK;
    t->update.program = s->program; /* the previous program may have been dropped */
    look_at_tiles(t);
    return KEEL_OK;
}

static keel_status make_tallies(keel_trainer *t)
{
    const int n_worker = t->strategy->lanes.n_worker;
    const keel_updater *u = &t->update;
    t->largest_tile = keel_calloc((size_t)n_worker, sizeof *t->largest_tile);
    t->tile_norm = keel_calloc((size_t)u->n_tile, sizeof *t->tile_norm);
    t->tile_scale = keel_calloc((size_t)u->n_tile, sizeof *t->tile_scale);
    t->tile_penalty = keel_calloc((size_t)u->n_tile, sizeof *t->tile_penalty);
    t->vote = keel_aligned_calloc((size_t)n_worker, sizeof *t->vote);
    if (!t->largest_tile || !t->tile_norm || !t->tile_scale || !t->tile_penalty || !t->vote)
        return KEEL_ENOMEM;
    look_at_tiles(t);
    return KEEL_OK;
}

/* Copy the optimizer's state from the updater to the model, or back. The model's weights may have
 * changed since its state was made, so slots that begin as the weight are the updater's. */
static void copy_state(keel_trainer *t, bool to_model)
{
    keel_model_compiled *c = &t->model->compiled;
    const size_t element = keel_dtype_size(t->store->real);
    for (int i = 0; c->state && i < keel_model_trainable_count(t->model); i++)
        for (int k = 0; k < t->update.n_slot; k++) {
            const keel_variable v = keel_model_trainable(t->model, i);
            const int64_t count = t->update.slot_count[v * t->update.n_slot + k];
            void *state = c->state[i * t->update.n_slot + k].data;
            void *slot = t->update.slot[v * t->update.n_slot + k];
            const bool begins = c->iterations == 0 && t->update.first_is_weight[k];
            if (count > 0 && (to_model || !begins))
                memcpy(to_model ? state : slot, to_model ? slot : state, (size_t)count * element);
        }
}

static keel_status take_optimizer(keel_trainer *t)
{
    const keel_model_compiled *c = &t->model->compiled;
    if (c->schedule && !c->rate.type)
        return keel_fail(KEEL_EUNSUP,
                         "model '%s': the learning rate is the schedule '%s', which is not "
                         "supported; set a number (--learning-rate) to train",
                         t->model->name, c->schedule);
    KEEL_TRY(keel_updater_create(&t->update, t->train.program, &c->optimizer));
    t->update.schedule = c->rate;
    t->update.iterations = c->iterations;
    t->update.number = c->number;
    t->update.learning_rate = c->learning_rate;
    const keel_optimizer_common *o = t->update.args;
    t->needs_norms = keel_clips(o->clipnorm) || keel_clips(o->global_clipnorm);
    t->loss_scale = (keel_loss_scale){ .on = keel_model_scales_loss(t->model), .now = 1 };
    if (t->loss_scale.on) {
        t->loss_scale.now = c->loss_scale;
        t->loss_scale.good = c->good_steps;
        t->loss_scale.growth = c->loss_scale_args.dynamic_growth_steps;
    }
    copy_state(t, false);
    KEEL_TRY(keel_spectral_create(&t->spectral, t->train.program->graph, t->store));
    return make_tallies(t);
}

keel_status keel_trainer_create(keel_trainer **out, keel_model *m, keel_strategy *strategy,
                                const keel_trainer_work *train, const keel_trainer_work *test,
                                const keel_trainer_options *options)
{
    const bool scored = train->pairing || (test->pairing && test->pairing->scored);
    if (!m->finished)
        return keel_fail(KEEL_EARG, "model '%s' is not finished: it has no outputs yet", m->name);
    if (scored) KEEL_TRY(refuse_to_score(m));
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
    if ((s = keel_arenas_create(&t->arenas, strategy->lanes.n_worker)) < 0) goto out;
    t->options.arenas = t->arenas;
    if (train->pairing) {
        if ((s = compile_first(t, train, true, options->programs)) < 0) goto out;
        if ((s = take_optimizer(t)) < 0) goto out;
    }
    if (test->pairing && (s = compile_first(t, test, false, options->programs)) < 0) goto out;
    *out = t;
    return KEEL_OK;
out:
    keel_trainer_destroy(t);
    return s;
}

void keel_trainer_destroy(keel_trainer *t)
{
    if (!t) return;
    keel_scored_free(&t->train);
    keel_scored_free(&t->test);
    keel_programs_free(&t->trained);
    keel_programs_free(&t->tested);
    keel_updater_free(&t->update);
    keel_spectral_free(&t->spectral);
    keel_store_destroy(t->store);
    keel_arenas_destroy(t->arenas);
    keel_free(t->trains);
    keel_free(t->largest_tile);
    keel_free(t->tile_norm);
    keel_free(t->tile_scale);
    keel_free(t->tile_penalty);
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
    c->iterations = t->update.iterations;
    c->number = t->update.number;
    if (t->loss_scale.on) {
        c->loss_scale = t->loss_scale.now;
        c->good_steps = t->loss_scale.good;
    }
    copy_state(t, true);
}

keel_status keel_scored_takes(const keel_scored *s, int64_t rows)
{
    const keel_graph *g = s->program->graph;
    if (!g->n_carried || g->batch == rows) return KEEL_OK;
    return keel_fail(KEEL_EDATA,
                     "a step has %lld rows, but stateful layers keep the states of %lld "
                     "(batch_shape): set the batch size to %lld, and where the data does not "
                     "divide by it, leave out or carry its last rows",
                     (long long)rows, (long long)g->batch, (long long)g->batch);
}

keel_status keel_trainer_prepare(keel_scored *s, const int64_t *rows, int n)
{
    const keel_bound *ignored;
    for (int i = 0; i < n; i++) KEEL_TRY(keel_scored_takes(s, rows[i]));
    for (int i = 0; i < n; i++) KEEL_TRY(keel_program_bind(s->program, rows[i], &ignored));
    return KEEL_OK;
}
