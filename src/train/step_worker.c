/* What one worker does in a step. The order is the same for every worker:
 *
 *     read           each worker reads its rows, if the feed left them unread
 *     normalize      SpectralNormalization divides its kernels (spectral.h); workers meet
 *     compare        vectors that an OrthogonalRegularizer compares (orthogonal.h)
 *     run            forward and backward; workers meet where an op needs all rows
 *     meet           all gradients and sums are complete
 *     reduce         each owner adds the parts of its tiles, divides, regularises, checks; or each
 *                    device does, of gradients that it has whole (resident.h)
 *     meet           the commit point: all workers see all votes and decide the same. Norms that
 *                    only devices can know come behind it, and another meeting (resident.h)
 *     apply          each owner updates its tiles, or each device all (resident.h); one worker
 *                    updates the state. With a sharded optimizer a process updates its tiles, and
 *                    gets those of all others (sharded.h)
 *     meet, refresh  packed copies of the weights are made again, but for those whose owners have
 *                    made them tile by tile
 *
 * Nothing permanent is written before the commit point, so a failed step leaves no trace. The one
 * exception are kernels that are normalized, of which a copy is kept, and put back. With a loss
 * scale, a step whose loss or gradients are not finite does not fail but is skipped: all workers
 * see the same votes there.
 *
 * The gradient of a dense layer is computed by the owner of a tile, from the rows of all workers.
 * It is known to be finite before it exists if inputs and output gradients are small enough, which
 * they mostly are. The tile is then computed after the commit point and applied at once, while it
 * is in the cache. If all tiles are of this kind, the first meeting is the commit point, and there
 * is no second. */
#include "train/step_worker.h"
#include "graph/buckets.h"
#include "graph/on_device.h"
#include "train/mover.h"
#include "train/reduce.h"
#include "train/resident.h"
#include "train/sharded.h"
#include "train/together.h"
#include <math.h>
#include <string.h>

/* ---- decisions, the same in every worker --------------------------------------------------------
 */

keel_status keel_step_failure(const keel_trainer *t, const keel_program *p)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (p->failure[w].status < 0) return p->failure[w].status;
    return KEEL_OK;
}

bool keel_step_is_finite(const keel_trainer *t, const keel_score *score)
{
    bool finite = score->finite;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) finite = finite && t->vote[w].bad < 0;
    return finite;
}

static bool all_bounded(const keel_trainer *t)
{
    bool bounded = true;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) bounded = bounded && t->vote[w].bounded;
    return bounded;
}

/* ---- of all parts -------------------------------------------------------------------------------
 */

/* Begin a phase (begin 0: returns the time) or end it; without timing, returns 0. */
static int64_t timed(const keel_trainer *t, int worker, keel_phase phase, int64_t begin)
{
    keel_timing *timing = t->train.program->timing;
    if (!timing) return 0;
    return begin ? keel_timing_phase(timing, worker, phase, begin) : keel_clock_ns();
}

static char *reduced(const keel_trainer *t, int64_t offset)
{
    const int w = t->strategy->comm ? 0 : t->bound->part[0].worker;
    return t->train.program->workspace[w].host.grad +
           offset * (int64_t)keel_dtype_size(t->store->real);
}

static bool is_tiled(const keel_trainer *t, const keel_tile *tile)
{
    return t->train.program->tiled[tile->variable].node >= 0;
}

/* ---- before the run -----------------------------------------------------------------------------
 */

static void read_my_rows(const keel_trainer *t, const keel_program *p, int worker)
{
    const keel_bound *b = t->bound;
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    if (!t->batch->unread || keel_program_has_rows(p, worker)) return;
    for (int i = 0; i < b->n_busy; i++)
        if (b->piece[i].worker == worker)
            keel_feed_read(t->batch, b->piece[i].row, b->piece[i].row + b->piece[i].rows);
    if (begin) keel_timing_phase(p->timing, worker, KEEL_PHASE_READ, begin);
}

static void normalize_kernels(const keel_trainer *t, int worker)
{
    const int n_worker = t->strategy->lanes.n_worker;
    const keel_program *p = t->train.program;
    if (t->spectral.n == 0) return;
    const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    keel_spectral_apply(&t->spectral, worker, n_worker);
    if (worker == 0) keel_store_moved(t->store);
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
    keel_program_meet(p, t->strategy->team, worker);
    if (t->store->n_derived == 0) return;
    keel_store_refresh(t->store, worker, n_worker, NULL);
    keel_program_meet(p, t->strategy->team, worker);
}

static void compare_vectors(const keel_trainer *t, int worker)
{
    const int n_worker = t->strategy->lanes.n_worker;
    if (t->orthogonal.n == 0) return;
    int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    keel_orthogonal_normalize(&t->orthogonal, worker, n_worker);
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
    keel_program_meet(t->train.program, t->strategy->team, worker);
    begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    keel_orthogonal_compare(&t->orthogonal, worker, n_worker);
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
}

/* ---- reduce, and vote ---------------------------------------------------------------------------
 */

/* The owner computes a tile, or a part of one, from the rows of all workers. checked: the kernel
 * tested for numbers that are not finite; bad: it found one. */
static void make_tile(const keel_trainer *t, int worker, const keel_tile *tile, void *grad,
                      bool *checked, bool *bad, keel_tile_move *how, keel_tile_part *narrowed)
{
    const keel_program *p = t->train.program;
    const int64_t begin = timed(t, worker, KEEL_PHASE_REDUCE, 0);
    const keel_tile_request request = {
        .variable = tile->variable,
        .first = tile->offset - t->store->weight[tile->variable].offset,
        .count = tile->count,
        .grad = grad,
        .checked = checked,
        .bad = bad,
        .move = how,
        .part = narrowed,
    };
    keel_program_tile(p, t->bound, worker, &request);
    if (p->timing)
        keel_timing_call(p->timing, worker, p->tiled[tile->variable].node, KEEL_WEIGHTS, begin);
}

/* moves_at_once: apply_my_tiles will compute the tiles of tiled weights. */
static void reduce_my_tiles(const keel_trainer *t, keel_mover *x, int worker, double scale,
                            bool moves_at_once)
{
    const keel_program *p = t->train.program;
    const keel_updater *u = &x->update;
    const size_t element = keel_dtype_size(t->store->real);
    const bool summed = p->across; /* over all processes; of a sharded optimizer, tiles of this one
                                      alone */
    keel_gradient_part part[KEEL_PARTS_MAX];
    keel_vote *vote = &t->vote[worker];
    for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++) {
        const keel_tile *tile = &u->tile[i];
        const keel_weight_info *info = &t->store->weight[tile->variable].info;
        const int64_t at = tile->offset * (int64_t)element;
        const int64_t first = tile->offset - t->store->weight[tile->variable].offset;
        x->tile_penalty[i] = 0;
        if (!keel_mover_has_gradient(t, tile->variable) || !keel_updater_has(u, i)) continue;
        if (moves_at_once && is_tiled(t, tile)) {
            x->tile_scale[i] = scale;
            continue;
        }
        keel_reduction_of r = { .part = part,
                                .n_part = 1,
                                .w = t->store->master + at,
                                .count = tile->count,
                                .scale = scale,
                                .penalty = t->resident ? (keel_penalty){ 0 } : info->penalty,
                                .orthogonal =
                                    keel_orthogonal_gradient(&t->orthogonal, tile->variable, first),
                                .wants_norm = x->needs_norms && !keel_resident_joins_of(t, x) };
        part[0] = (keel_gradient_part){ .data = reduced(t, tile->offset) };
        if (is_tiled(t, tile) && !summed) {
            bool checked = false, bad = false;
            make_tile(t, worker, tile, part[0].data, &checked, &bad, NULL, NULL);
            /* The update divides, which saves a pass. A finite number that shrinks stays finite. */
            if (checked && !x->needs_norms && u->n_pass == 1 && u->accumulator < 0 &&
                !keel_penalizes(&info->penalty) && scale <= 1) {
                if (bad && vote->bad < 0) vote->bad = tile->variable;
                x->tile_scale[i] = scale;
                continue;
            }
        } else if (!summed)
            r.n_part = keel_gradient_parts(p, t->bound, tile->variable, first, part);
        if (!p->schedule.reached[tile->variable]) /* only the regulariser has a gradient */
            memset(part[0].data, 0, (size_t)tile->count * element);
        const int64_t begin = timed(t, worker, KEEL_PHASE_REDUCE, 0);
        if (summed && p->schedule.reached[tile->variable]) keel_buckets_take(p, tile);
        if (!keel_reduce_tile(t->store->real, &r) && vote->bad < 0) vote->bad = tile->variable;
        if (u->accumulator >= 0 && u->moves && !t->resident) /* else devices have the sums */
            keel_updater_join(u, tile, part[0].data, x->needs_norms ? &r.norm : NULL);
        timed(t, worker, KEEL_PHASE_REDUCE, begin);
        x->tile_norm[i] = r.norm;
        x->tile_scale[i] = 1;
        x->tile_penalty[i] = t->resident ? keel_resident_penalty(t, x, i) : r.regulariser;
    }
}

/* Gradients stay on the devices, which divide them and vote; the owner of a tile reads the votes.
 */
static void read_my_votes(const keel_trainer *t, keel_mover *x, int worker)
{
    const keel_updater *u = &x->update;
    keel_vote *vote = &t->vote[worker];
    for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++) {
        const keel_device_vote *there = keel_resident_vote(t, worker, x, i);
        x->tile_penalty[i] = 0;
        if (!keel_mover_has_gradient(t, u->tile[i].variable)) continue;
        if (there->bad && vote->bad < 0) vote->bad = u->tile[i].variable;
        x->tile_norm[i] = keel_resident_squares(t, worker, x, i);
        x->tile_scale[i] = 1;
        x->tile_penalty[i] = keel_resident_penalty(t, x, i);
    }
}

/* What fails there is a vote, too: others may not yet have looked for failures of the run. */
static void check_there(const keel_trainer *t, int worker, double scale)
{
    const int64_t begin = timed(t, worker, KEEL_PHASE_REDUCE, 0);
    t->vote[worker].checked = keel_resident_check(t, worker, reduced(t, 0), scale);
    timed(t, worker, KEEL_PHASE_REDUCE, begin);
    for (int k = 0; k < t->n_mover && t->vote[worker].checked >= 0; k++)
        read_my_votes(t, &t->mover[k], worker);
}

/* What the host has reduced is not what norms are of: the devices join it, and know these. */
static void join_there(const keel_trainer *t, int worker)
{
    const int64_t begin = timed(t, worker, KEEL_PHASE_REDUCE, 0);
    const keel_status s = t->vote[worker].joined = keel_resident_join(t, worker, reduced(t, 0));
    timed(t, worker, KEEL_PHASE_REDUCE, begin);
    for (int k = 0; k < t->n_mover && s >= 0; k++) {
        const keel_mover *x = &t->mover[k];
        const keel_updater *u = &x->update;
        if (!keel_resident_joins_of(t, x)) continue;
        for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++)
            if (keel_mover_has_gradient(t, u->tile[i].variable))
                x->tile_norm[i] = keel_resident_squares(t, worker, x, i);
    }
}

/* Behind votes. True: a device has not voted, and the step fails. */
static bool check_failed(const keel_trainer *t, int worker, bool joins)
{
    bool failed = false;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        failed = failed || (joins ? t->vote[w].joined : t->vote[w].checked) < 0;
    const keel_status mine = joins ? t->vote[worker].joined : t->vote[worker].checked;
    if (mine < 0) keel_failure_take(&t->train.program->failure[worker], mine);
    return failed;
}

/* ---- apply --------------------------------------------------------------------------------------
 */

static void move(const keel_trainer *t, const keel_mover *x, int worker, const keel_tile *part,
                 const void *grad, double scale)
{
    const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    keel_updater_move(&x->update, part, grad, scale);
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
}

/* True if the kernel that computes a gradient may also apply it (SGD with momentum). With many rows
 * this saves little, and tiles in parts are faster. */
static bool is_plain_momentum(const keel_trainer *t, const keel_updater *u, keel_variable v,
                              keel_tile_move *how)
{
    enum { ROWS_MOST = 1024 };
    const keel_optimizer_common *o = keel_updater_args(u, v);
    if (!u->optimizer->plain_momentum || t->bound->rows > ROWS_MOST ||
        t->store->real != KEEL_FLOAT32 || keel_clips(o->clipvalue))
        return false;
    how->keep = (float)u->optimizer->plain_momentum(o);
    how->rate = (float)u->rate_now;
    return how->keep != 0;
}

/* Compute a tile of a tiled weight and apply it, in parts that stay in the cache. */
static void make_and_move(const keel_trainer *t, const keel_mover *x, int worker,
                          const keel_tile *tile, double scale)
{
    const keel_updater *u = &x->update;
    void *grad = reduced(t, u->tile[x->largest_tile[worker]].offset); /* reused by all tiles */
    const int64_t most = t->train.program->tiled[tile->variable].most;
    keel_tile part = *tile;
    keel_tile_move how = { 0 };
    const bool plain_momentum = is_plain_momentum(t, u, tile->variable, &how);
    const keel_optimizer *o = u->optimizer;
    const bool rests = o->rests && o->rests(keel_updater_args(u, tile->variable));
    for (int64_t i = 0, next; i < tile->count; i = next) {
        part.offset = tile->offset + i;
        part.count = tile->count - i < most || plain_momentum ? tile->count - i : most;
        if (plain_momentum) {
            how.w = (float *)t->store->master + part.offset;
            how.m = (float *)keel_updater_slot(
                u, part.variable, 0, part.offset - t->store->weight[part.variable].offset);
            how.scale = (float)scale;
            how.moved = false;
        }
        keel_tile_part narrowed = { 0, part.count };
        next = i + part.count;
        make_tile(t, worker, &part, grad, NULL, NULL, plain_momentum ? &how : NULL,
                  rests ? &narrowed : NULL);
        if (rests) {
            part.offset += narrowed.skip;
            part.count = narrowed.count;
            if (narrowed.count > 0) next = i + narrowed.skip + narrowed.count;
        }
        if (!how.moved && part.count > 0) move(t, x, worker, &part, grad, scale);
    }
    if (!t->copied_at_once[tile->variable] || !keel_store_copies_by_tile(t->store, tile->variable))
        return;
    const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    keel_store_copy_tile(t->store, tile);
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
}

static void apply_my_tiles(const keel_trainer *t, const keel_mover *x, int worker,
                           bool moves_at_once)
{
    const keel_updater *u = &x->update;
    const double of_all = keel_mover_scale_of_all(x);
    keel_variable v = -1;
    double scale = of_all;
    for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++) {
        const keel_tile *tile = &u->tile[i];
        if (!keel_mover_has_gradient(t, tile->variable)) continue;
        if (tile->variable != v) scale = keel_mover_scale(x, v = tile->variable, of_all);
        if (moves_at_once && is_tiled(t, tile))
            make_and_move(t, x, worker, tile, scale * x->tile_scale[i]);
        else
            move(t, x, worker, tile, reduced(t, tile->offset), scale * x->tile_scale[i]);
    }
}

/* A pass of which each worker has a share of every weight. */
static void apply_by_rows(const keel_trainer *t, const keel_mover *x, int worker, int pass)
{
    const keel_updater *u = &x->update;
    for (int v = 0; v < t->store->n_weight; v++) {
        keel_update_whole whole;
        if (u->weight[v].n_tile == 0 || !keel_mover_has_gradient(t, v)) continue;
        keel_updater_whole(u, v, pass, reduced(t, t->store->weight[v].offset), &whole);
        keel_updater_rows(u, v, pass, &whole, worker, t->strategy->lanes.n_worker);
    }
}

/* Optimizers that need more than a tile: all workers meet between their passes. */
static void apply_in_passes(const keel_trainer *t, const keel_mover *x, int worker)
{
    const keel_updater *u = &x->update;
    const double of_all = keel_mover_scale_of_all(x);
    for (int pass = 0; pass < u->n_pass; pass++) {
        keel_update_whole whole;
        keel_variable v = -1;
        double scale = 1;
        if (pass > 0) keel_program_meet(t->train.program, t->strategy->team, worker);
        const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
        const bool by_rows = keel_updater_by_rows(u, pass);
        if (by_rows) apply_by_rows(t, x, worker, pass);
        for (int i = u->first_tile[worker]; !by_rows && i < u->first_tile[worker + 1]; i++) {
            const keel_variable of = u->tile[i].variable;
            if (!keel_mover_has_gradient(t, of)) continue;
            if (of != v) {
                v = of;
                scale = keel_mover_scale(x, v, of_all);
                keel_updater_whole(u, v, pass, reduced(t, t->store->weight[v].offset), &whole);
            }
            keel_updater_pass(u, i, pass, &whole, scale);
        }
        timed(t, worker, KEEL_PHASE_UPDATE, begin);
    }
}

/* What else a step changes of an owner's tiles: sums of gradients, averages of weights. */
static void keep_my_tiles(const keel_trainer *t, const keel_updater *u, int worker)
{
    const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++) {
        if (u->accumulator >= 0 && keel_mover_has_gradient(t, u->tile[i].variable))
            keel_updater_keep(u, &u->tile[i], reduced(t, u->tile[i].offset));
        if (u->average >= 0) keel_updater_average(u, &u->tile[i]);
    }
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
}

/* All that an optimizer does to a worker's tiles. */
static void apply(const keel_trainer *t, const keel_mover *x, int worker, bool moves_at_once)
{
    const keel_updater *u = &x->update;
    if (u->moves && u->n_pass > 1)
        apply_in_passes(t, x, worker);
    else if (u->moves)
        apply_my_tiles(t, x, worker, moves_at_once);
    if (u->average < 0 && u->accumulator < 0) return;
    if (u->n_pass > 1) /* others may still read whole weights */
        keel_program_meet(t->train.program, t->strategy->team, worker);
    keep_my_tiles(t, u, worker);
}

/* A constraint looks at whole vectors, which lie across tiles, so a worker takes whole weights. */
static void constrain_my_weights(const keel_trainer *t, int worker)
{
    const keel_store *s = t->store;
    const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    for (int v = worker; v < s->n_weight; v += t->strategy->lanes.n_worker) {
        const keel_weight_info *info = &s->weight[v].info;
        if (t->trains[v] && keel_mover_has_gradient(t, v))
            keel_project(&info->projection, &info->spec.shape, s->real, keel_store_data(s, v));
    }
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
}

/* A worker's device moves its own weights. */
static void move_there(keel_trainer *t, int worker)
{
    const int64_t begin = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    keel_resident_move(t, worker, reduced(t, 0));
    if (worker == 0) t->moved_there = true;
    timed(t, worker, KEEL_PHASE_UPDATE, begin);
}

/* ---- the whole ----------------------------------------------------------------------------------
 */

static void train_part(keel_trainer *t, int worker)
{
    keel_program *p = t->train.program;
    keel_team *team = t->strategy->team;
    keel_score score;
    read_my_rows(t, p, worker);
    normalize_kernels(t, worker);
    compare_vectors(t, worker);
    keel_program_run(p, t->bound, team, worker);
    t->vote[worker].bounded = t->may_move_at_once && keel_program_bounded(p, t->bound, worker);
    if (p->across) {
        keel_buckets_fold(p, t->bound, team, worker);
        keel_together_sum(t, false, worker);
    } else
        keel_program_meet(p, team, worker);
    if (keel_step_failure(t, p) < 0) return;
    keel_scored_read(&t->train, t->bound, &score);
    if (score.weights == 0) {
        if (worker == 0) t->no_op = true;
        return; /* no weight at all: nothing moves */
    }
    const double scale = score.finite ? 1 / (score.divisor * (double)t->loss_scale.now) : 0;
    const bool moves_at_once = !p->across && score.finite && fabs(scale) <= 1 && all_bounded(t);
    t->vote[worker].bad = -1;
    t->vote[worker].checked = t->vote[worker].joined = KEEL_OK;
    const bool stays = keel_on_device_stays(p);
    if (stays) check_there(t, worker, scale);
    for (int k = 0; k < t->n_mover && !stays; k++)
        reduce_my_tiles(t, &t->mover[k], worker, scale, moves_at_once);
    if (!moves_at_once || !t->all_tiled) {
        if (t->sharded)
            keel_sharded_vote(t, worker);
        else
            keel_program_meet(p, team, worker);
        if (check_failed(t, worker, false) || keel_step_failure(t, p) < 0) return;
        if (!keel_step_is_finite(t, &score)) return;
    }
    if (keel_resident_joins(t) && !stays) {
        join_there(t, worker);
        keel_program_meet(p, team, worker);
        if (check_failed(t, worker, true)) return;
    }
    if (t->asks && p->across) {
        keel_together_ask(t, &score, worker);
        if (keel_step_failure(t, p) < 0) return;
    } else if (t->asks) {
        if (worker == 0) keel_movers_ask(t, &score);
        keel_program_meet(p, team, worker);
    }
    if (t->sharded) keel_sharded_apply(t, worker);
    if (keel_step_failure(t, p) < 0) return;
    if (t->resident) move_there(t, worker); /* of a model alone, whose movers never rest */
    for (int k = 0; k < t->n_mover && !t->sharded && !t->resident; k++)
        if (!t->mover[k].rests && !keel_mover_is_idle(&t->mover[k], &score))
            apply(t, &t->mover[k], worker, moves_at_once);
    if (t->constrained && !t->resident) { /* after the averages, as in Keras */
        keel_program_meet(p, team, worker);
        constrain_my_weights(t, worker);
    }
    int64_t at = timed(t, worker, KEEL_PHASE_UPDATE, 0);
    if (worker == 0) {
        keel_program_commit(p, t->bound, worker);
        keel_store_moved(t->store);
    }
    timed(t, worker, KEEL_PHASE_UPDATE, at);
    const bool *made = moves_at_once ? t->copied_at_once : NULL;
    if (keel_store_has_to_refresh(t->store, made)) {
        keel_program_meet(p, team, worker);
        at = timed(t, worker, KEEL_PHASE_UPDATE, 0);
        keel_store_refresh(t->store, worker, t->strategy->lanes.n_worker, made);
        timed(t, worker, KEEL_PHASE_UPDATE, at);
    }
}

void keel_step_train_worker(void *trainer, int worker)
{
    keel_trainer *t = trainer;
    train_part(t, worker);
    if (t->train.program->timing) t->vote[worker].ended = keel_clock_ns();
}

void keel_step_test_worker(void *trainer, int worker)
{
    keel_trainer *t = trainer;
    read_my_rows(t, t->test.program, worker);
    keel_program_run(t->test.program, t->bound, t->strategy->team, worker);
    if (t->test.program->across) keel_together_sum(t, true, worker);
}
