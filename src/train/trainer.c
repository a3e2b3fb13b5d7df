/* See trainer.h. */
#include "train/trainer.h"
#include "model/parts.h"
#include "train/resident.h"
#include "base/memory.h"
#include "train/finite.h"
#include "train/live.h"
#include "train/sharded.h"
#include <math.h>
#include <stdio.h>
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

keel_status keel_trainer_lay_out(keel_trainer *t, const keel_graph *g, keel_model *const *models,
                                 int n_model)
{
    keel_status s = KEEL_ENOMEM;
    keel_schedule schedule = { 0 };
    int n = 0, v = 0;
    for (int i = 0; i < n_model; i++) n += models[i]->n_weight;
    const bool given = t->trains != NULL;
    if (!given) t->trains = keel_calloc((size_t)n, sizeof *t->trains);
    t->copied_at_once = keel_calloc((size_t)n, sizeof *t->copied_at_once);
    keel_weight_info *info = keel_calloc((size_t)n, sizeof *info);
    if (!t->trains || !t->copied_at_once || !info) goto out;
    for (int i = 0; i < n_model; i++)
        for (int k = 0; k < models[i]->n_weight; k++, v++) {
            info[v] = models[i]->weight[k].info;
            if (!given) t->trains[v] = models[i]->weight[k].trainable;
        }
    const bool on_device = keel_lanes_device(&t->strategy->lanes);
    if ((s = keel_schedule_make(&schedule, g, t->trains, n, on_device, -1)) < 0) goto out;
    s = keel_store_create(&t->store, g->real, info, n, schedule.order, schedule.n_order);
out:
    keel_schedule_free(&schedule, g);
    keel_free(info);
    return s;
}

void keel_trainer_load(keel_trainer *t)
{
    const size_t element = keel_dtype_size(t->store->real);
    for (int v = 0; v < t->model->n_weight; v++)
        memcpy(keel_store_data(t->store, v), t->model->weight[v].data,
               (size_t)t->store->weight[v].count * element);
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

/* Where outputs can be read after a step, so can their masks. */
static keel_status add_masks(keel_scored *s, int n, keel_value **outputs, int *n_output)
{
    keel_value *more = keel_grow(*outputs, 2 * (size_t)n, sizeof *more);
    if (!more) return KEEL_ENOMEM;
    *outputs = more;
    for (int k = 0; k < n && k < KEEL_OUTPUTS_MAX; k++) {
        if (s->mask[k] < 0) continue;
        s->mask_at[k] = *n_output;
        more[(*n_output)++] = s->mask[k];
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
    /* Training mostly does not return predictions: their memory is free after the metrics. */
    int n_output = pairing->scored && !t->shows ? 0 : m->n_output;
    if (n_output && (st = add_masks(s, m->n_output, &outputs, &n_output)) < 0) goto out;
    if ((st = add_states(t, s, g, &outputs, &n_output)) < 0) goto out;
    if (!t->store) {
        if ((st = keel_trainer_lay_out(t, g, &m, 1)) < 0) goto out;
        if (t->takes)
            keel_live_take_over(t);
        else
            keel_trainer_load(t);
    }
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

/* Nothing else must change a weight that its owner has moved. */
static void look_at_copies(keel_trainer *t)
{
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int i = 0; i < u->n_tile; i++) {
            const keel_variable v = u->tile[i].variable;
            t->copied_at_once[v] = !t->constrained && t->spectral.n == 0 && u->average < 0 &&
                                   t->train.program->tiled[v].node >= 0;
        }
    }
}

void keel_trainer_look(keel_trainer *t)
{
    t->all_tiled = true;
    t->constrained = false;
    t->asks = false;
    t->may_move_at_once = !t->strategy->comm;
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        if (t->mover[k].needs_norms || t->mover[k].when || u->n_pass > 1 || u->accumulator >= 0)
            t->may_move_at_once = false;
        t->asks = t->asks || t->mover[k].when;
        for (int w = 0; w < t->strategy->lanes.n_worker; w++) {
            t->mover[k].largest_tile[w] = -1;
            for (int i = u->first_tile[w]; i < u->first_tile[w + 1]; i++) {
                const keel_weight_info *info = &t->store->weight[u->tile[i].variable].info;
                const int best = t->mover[k].largest_tile[w];
                t->constrained = t->constrained || keel_projects(&info->projection);
                if (t->train.program->tiled[u->tile[i].variable].node < 0) {
                    t->all_tiled = false;
                    continue;
                }
                if (best < 0 || u->tile[i].count > u->tile[best].count)
                    t->mover[k].largest_tile[w] = i;
                if (keel_penalizes(&info->penalty)) t->may_move_at_once = false;
            }
        }
    }
    look_at_copies(t);
}

keel_status keel_trainer_meet(keel_trainer *t, bool training, const keel_batch *b)
{
    keel_programs *p = training ? &t->trained : &t->tested;
    keel_scored *s = training ? &t->train : &t->test, made = { 0 };
    if (!p->n_open || keel_programs_fit(p, b->spec)) return KEEL_OK;
    if (!keel_programs_take(p, s, b->spec)) {
        char place[KEEL_BATCH_PLACE_MAX];
        keel_programs_make_room(p);
        const keel_status st = compile_for(t, &made, &p->pairing, p->rows, training, b->spec);
        if (st < 0) {
            keel_scored_free(&made);
            return keel_fail_within(st, "%s", keel_batch_place(b, place));
        }
        keel_programs_add(p, s, &made, b->spec);
    }
    if (!training) return KEEL_OK;
    for (int k = 0; k < t->n_mover; k++)
        t->mover[k].update.program = s->program; /* the previous program may have been dropped */
    keel_trainer_look(t);
    return KEEL_OK;
}

static keel_status make_tallies(const keel_trainer *t, keel_mover *x)
{
    const keel_updater *u = &x->update;
    x->largest_tile = keel_calloc((size_t)t->strategy->lanes.n_worker, sizeof *x->largest_tile);
    x->tile_norm = keel_calloc((size_t)u->n_tile, sizeof *x->tile_norm);
    x->tile_scale = keel_calloc((size_t)u->n_tile, sizeof *x->tile_scale);
    x->tile_penalty = keel_calloc((size_t)u->n_tile, sizeof *x->tile_penalty);
    if (!x->largest_tile || !x->tile_norm || !x->tile_scale || !x->tile_penalty) return KEEL_ENOMEM;
    for (int i = 0; i < u->n_tile; i++) {
        const keel_weight_info *info = &t->store->weight[u->tile[i].variable].info;
        x->tile_scale[i] = 1;
        x->penalized = x->penalized || keel_penalizes(&info->penalty);
    }
    return KEEL_OK;
}

int64_t keel_trainer_moment_bytes(const keel_trainer *t)
{
    int64_t sum = t->spectral.bytes + t->orthogonal.bytes + keel_sharded_bytes(t);
    for (int k = 0; k < t->n_mover; k++) sum += t->mover[k].update.bytes;
    return sum;
}

int64_t keel_trainer_untouched(const keel_trainer *t)
{
    int64_t sum = 0;
    for (int k = 0; k < t->n_mover; k++) sum += t->mover[k].update.untouched;
    return sum;
}

int64_t keel_trainer_state_bytes(const keel_trainer *t)
{
    if (t->options.shard_optimizer && t->strategy->lanes.process > 0) return 0;
    return keel_compiled_state_bytes(t->model, &t->model->compiled);
}

keel_status keel_trainer_take(keel_trainer *t, keel_mover *x, const keel_model_optimizer *o,
                              const bool *moves)
{
    const keel_status s = keel_updater_create(&x->update, t->train.program, &o->optimizer, moves);
    if (s < 0) return s;
    x->update.schedule = o->rate;
    x->update.learning_rate = o->learning_rate;
    const keel_optimizer_common *common = x->update.args;
    x->needs_norms = keel_clips(common->clipnorm) || keel_clips(common->global_clipnorm);
    return make_tallies(t, x);
}

/* The k-th optimizer of the model, with the weights that it moves. */
static keel_status take_one(keel_trainer *t, int k)
{
    const keel_model_compiled *c = &t->model->compiled;
    const keel_model_optimizer *o = &c->optimizer[k];
    if (o->schedule && !o->rate.type)
        return keel_fail(KEEL_EUNSUP,
                         "model '%s': the learning rate is the schedule '%s', which is not "
                         "supported; set a number (--learning-rate) to train",
                         t->model->name, o->schedule);
    bool *moves = keel_calloc((size_t)t->store->n_weight, sizeof *moves);
    if (!moves) return KEEL_ENOMEM;
    for (int v = 0; v < t->store->n_weight; v++) moves[v] = t->trains[v] && c->moved_by[v] == k;
    const keel_status s = keel_trainer_take(t, &t->mover[k], o, moves);
    keel_free(moves);
    if (s < 0) return s;
    t->mover[k].update.iterations = c->iterations;
    t->mover[k].update.number = o->number;
    return KEEL_OK;
}

static keel_status take_optimizer(keel_trainer *t)
{
    const keel_model_compiled *c = &t->model->compiled;
    const size_t n_worker = (size_t)t->strategy->lanes.n_worker;
    if (!(t->vote = keel_aligned_calloc(n_worker, sizeof *t->vote))) return KEEL_ENOMEM;
    if (!(t->mover = keel_calloc((size_t)c->n_optimizer, sizeof *t->mover))) return KEEL_ENOMEM;
    for (t->n_mover = 0; t->n_mover < c->n_optimizer;) KEEL_TRY(take_one(t, t->n_mover++));
    if (t->n_mover > 1) t->train.program->n_moment = 0; /* kernels prefetch those of one */
    t->loss_scale = (keel_loss_scale){ .on = keel_model_scales_loss(t->model), .now = 1 };
    if (t->loss_scale.on) {
        t->loss_scale.now = c->loss_scale;
        t->loss_scale.good = c->good_steps;
        t->loss_scale.growth = c->loss_scale_args.dynamic_growth_steps;
    }
    KEEL_TRY(keel_sharded_create(t));
    KEEL_TRY(keel_spectral_create(&t->spectral, t->train.program->graph, t->store));
    keel_trainer_look(t);
    return KEEL_OK;
}

/* Devices of this process that can add up gradients among themselves, where their order is free. */
static keel_status join_devices(keel_trainer *t)
{
    const keel_lanes *l = &t->strategy->lanes;
    const keel_device *d = l->device[0];
    if (!d || !d->type->join || l->n_worker < 2 || l->shards) return KEEL_OK;
    for (int w = 1; w < l->n_worker; w++)
        if (!l->device[w] || l->device[w]->type != d->type) return KEEL_OK;
    const keel_status s = d->type->join(l->device, l->n_worker, &t->sums);
    if (s != KEEL_EUNSUP) return s;
    snprintf(t->no_sums, sizeof t->no_sums, "%s", keel_error());
    return KEEL_OK;
}

keel_status keel_trainer_create(keel_trainer **out, keel_model *m, keel_strategy *strategy,
                                const keel_trainer_work *train, const keel_trainer_work *test,
                                const keel_trainer_options *options)
{
    const bool scored = train->pairing || (test->pairing && test->pairing->scored);
    if (!m->finished)
        return keel_fail(KEEL_EARG, "model '%s' is not finished: it has no outputs yet", m->name);
    KEEL_TRY(keel_model_idle(m, "training or running the model"));
    if (scored) KEEL_TRY(refuse_to_score(m));
    keel_status s = KEEL_ENOMEM;
    keel_trainer *t = keel_calloc(1, sizeof *t);
    if (!t) return s;
    t->model = m;
    t->strategy = strategy;
    t->unfused = options->unfused;
    t->takes = options->takes;
    t->shows = options->shows;
    if (t->shows && train->pairing && strategy->micro_batch) {
        s = keel_fail(KEEL_EUNSUP, "a callback sees the rows of whole steps, so micro_batch cannot "
                                   "take a few at a time");
        goto out;
    }
    t->options =
        (keel_program_options){ .real = m->dtype,
                                .reference_only = options->reference_kernels,
                                .no_graphs = options->no_graphs,
                                .without = options->without_kernels,
                                .float32 = options->float32,
                                .comm = strategy->comm,
                                .compress = strategy->compress,
                                .shard_optimizer = strategy->shard_optimizer && train->pairing,
                                .recompute = strategy->recompute,
                                .micro_batch = t->shows ? -1 : strategy->micro_batch,
                                .dry = options->dry };
    if ((s = keel_arenas_create(&t->arenas, strategy->lanes.device, strategy->lanes.n_worker)) < 0)
        goto out;
    t->options.arenas = t->arenas;
    if (train->pairing) {
        if ((s = join_devices(t)) < 0) goto out;
        t->options.sums = t->sums;
        if ((s = compile_first(t, train, true, options->programs)) < 0) goto out;
        if ((s = take_optimizer(t)) < 0) goto out;
        if ((s = keel_finite_begin(t)) < 0) goto out;
    }
    if (test->pairing && (s = compile_first(t, test, false, options->programs)) < 0) goto out;
    if (scored)
        s = keel_orthogonal_create(&t->orthogonal, t->store, t->trains, strategy->lanes.n_worker);
    if (s < 0 || (s = keel_resident_create(t)) < 0) goto out;
    *out = t;
    return KEEL_OK;
out:
    keel_trainer_destroy(t);
    return s;
}

static void free_mover(keel_mover *x)
{
    keel_updater_free(&x->update);
    keel_free(x->largest_tile);
    keel_free(x->tile_norm);
    keel_free(x->tile_scale);
    keel_free(x->tile_penalty);
}

void keel_trainer_destroy(keel_trainer *t)
{
    if (!t) return;
    keel_live_give_back(t);
    keel_scored_free(&t->train);
    keel_scored_free(&t->test);
    keel_programs_free(&t->trained);
    keel_programs_free(&t->tested);
    for (int k = 0; k < t->n_mover; k++) free_mover(&t->mover[k]);
    keel_free(t->mover);
    keel_resident_free(t);
    keel_sharded_free(t);
    keel_spectral_free(&t->spectral);
    keel_orthogonal_free(&t->orthogonal);
    keel_store_destroy(t->store);
    keel_arenas_destroy(t->arenas);
    if (t->sums) t->sums->type->leave(t->sums);
    keel_free(t->trains);
    keel_free(t->copied_at_once);
    keel_free(t->given_bad);
    keel_free(t->vote);
    keel_free(t);
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
    return keel_program_ready(s->program);
}
