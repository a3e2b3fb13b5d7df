/* See update.h. */
#include "train/update.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/buckets.h"
#include "train/mean.h"
#include <math.h>
#include <string.h>

static int64_t own_count(const keel_updater *u, int i)
{
    return keel_updater_has(u, i) ? u->tile[i].count : 0;
}

/* Divide the flat range among owners, in order, with as equal numbers of elements as tiles allow.
 */
static keel_status share_tiles(keel_updater *u, int n_worker)
{
    int64_t all = 0, done = 0;
    u->first_tile = keel_calloc((size_t)n_worker + 1, sizeof *u->first_tile);
    if (!u->first_tile) return KEEL_ENOMEM;
    for (int i = 0; i < u->n_tile; i++) all += own_count(u, i);
    for (int i = 0, w = 1; i < u->n_tile; i++) {
        /* a tile at a border belongs to the owner of its larger part */
        while (w < n_worker && done + own_count(u, i) / 2 >= all * w / n_worker)
            u->first_tile[w++] = i;
        done += own_count(u, i);
        if (i == u->n_tile - 1)
            while (w < n_worker) u->first_tile[w++] = u->n_tile;
    }
    u->first_tile[n_worker] = u->n_tile;
    return KEEL_OK;
}

/* Place the slots and the scratch of a weight in their memory; `end` advances. */
static keel_status place_slots(keel_updater *u, keel_variable v, const keel_slots *slots,
                               int64_t end[KEEL_SLOTS_MAX + 1])
{
    const keel_store *store = u->program->store;
    const int64_t line = 64 / (int64_t)keel_dtype_size(store->real);
    keel_shape shape;
    for (int k = 0; k <= u->n_slot; k++) {
        int64_t count = slots->scratch;
        if (k < u->n_slot) {
            count = keel_slot_shape(slots->at[k].kind, &store->weight[v].info.spec.shape, &shape)
                        ? keel_shape_count(&shape)
                        : 0;
            u->slot_count[v * u->n_slot + k] = count;
        }
        const int at = k < u->n_slot ? k : KEEL_SLOTS_MAX;
        if (count > INT64_MAX / 16 - end[at])
            return keel_fail(KEEL_EUNSUP, "%s: the state for weight '%s' is too large",
                             u->optimizer->type.name, store->weight[v].info.name);
        end[at] = keel_round_up(end[at] + count, line);
    }
    return KEEL_OK;
}

/* Each process keeps the slots of the tiles that it adds. */
static keel_status make_parts(keel_updater *u)
{
    keel_updater_parts *x = &u->parts;
    if (!u->program->options.shard_optimizer) return KEEL_OK;
    x->owner = keel_calloc((size_t)u->n_tile, sizeof *x->owner);
    x->at = keel_calloc((size_t)u->n_tile, sizeof *x->at);
    x->count = keel_calloc((size_t)u->program->lanes->n_process, sizeof *x->count);
    if (!x->owner || !x->at || !x->count) return KEEL_ENOMEM;
    for (int i = 0; i < u->n_tile; i++) {
        x->owner[i] = keel_buckets_owner(u->program, &u->tile[i]);
        x->at[i] = x->count[x->owner[i]];
        x->count[x->owner[i]] += u->tile[i].count;
    }
    return KEEL_OK;
}

/* A slot as before the first step. */
static void begin_slot(keel_updater *u, char *to, int64_t count, const keel_slot *slot,
                       const void *weight)
{
    const keel_dtype real = u->program->store->real;
    const int64_t bytes = count * (int64_t)keel_dtype_size(real);
    if (slot->first_is_weight)
        memcpy(to, weight, (size_t)bytes);
    else if (slot->first == 0)
        u->untouched += bytes;
    else
        for (int64_t i = 0; i < count; i++)
            if (real == KEEL_FLOAT64)
                ((double *)to)[i] = slot->first;
            else
                ((float *)to)[i] = (float)slot->first;
}

/* Visits weights in flat order, first to measure the memory, then to set pointers into it. */
static keel_status walk(keel_updater *u, bool points)
{
    const keel_store *store = u->program->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    int64_t end[KEEL_SLOTS_MAX + 1] = { 0 };
    for (int i = 0; i < u->n_tile; i += u->weight[u->tile[i].variable].n_tile) {
        const keel_variable v = u->tile[i].variable;
        int64_t begin[KEEL_SLOTS_MAX + 1];
        keel_slots slots = { 0 };
        memcpy(begin, end, sizeof begin);
        KEEL_TRY(keel_optimizer_slots(u->optimizer, u->args, &store->weight[v].info, &slots));
        KEEL_TRY(place_slots(u, v, &slots, end));
        for (int k = 0; points && k < u->n_slot; k++) {
            const int64_t count = u->slot_count[v * u->n_slot + k];
            char *at = u->memory[k] + begin[k] * element;
            if (count > 0) u->slot[v * u->n_slot + k] = at;
            u->first_is_weight[k] = slots.at[k].first_is_weight;
            begin_slot(u, at, count, &slots.at[k], keel_store_data(store, v));
        }
        if (points && slots.scratch > 0)
            u->weight[v].scratch = u->memory[KEEL_SLOTS_MAX] + begin[KEEL_SLOTS_MAX] * element;
    }
    for (int k = 0; !points && k <= KEEL_SLOTS_MAX; k++) {
        if (end[k] == 0) continue;
        if (!(u->memory[k] = keel_aligned_calloc((size_t)end[k], (size_t)element)))
            return KEEL_ENOMEM;
        u->held[k] = end[k] * element;
        u->bytes += u->held[k];
    }
    return KEEL_OK;
}

/* Tiles have no weight around them: an optimizer that looks at one is refused. */
static keel_status check_parts(const keel_updater *u, keel_variable v, const keel_slots *slots)
{
    bool whole = slots->scratch > 0 || (u->optimizer->passes && u->optimizer->passes(u->args) > 1);
    for (int k = 0; k < slots->count; k++)
        whole =
            whole || slots->at[k].kind == KEEL_SLOT_ROWS || slots->at[k].kind == KEEL_SLOT_COLUMNS;
    if (!whole) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "%s moves the weight '%s' as a whole, so its state cannot be in parts: leave "
                     "out the sharding of the optimizer, or choose one that moves each element "
                     "by itself (SGD, Adam, AdamW, Lion)",
                     u->optimizer->type.name, u->program->store->weight[v].info.name);
}

/* Places the slots of the tiles that this process has, as before the first step. */
static keel_status walk_parts(keel_updater *u)
{
    const keel_store *store = u->program->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    const int64_t own = u->parts.count[u->program->lanes->process];
    for (int k = 0; k < u->n_slot; k++) {
        u->memory[k] = keel_aligned_calloc((size_t)own + 1, (size_t)element);
        if (!u->memory[k]) return KEEL_ENOMEM;
        u->held[k] = own * element;
        u->bytes += u->held[k];
    }
    for (int i = 0; i < u->n_tile; i++) {
        const keel_tile *t = &u->tile[i];
        keel_slots slots = { 0 };
        KEEL_TRY(
            keel_optimizer_slots(u->optimizer, u->args, &store->weight[t->variable].info, &slots));
        KEEL_TRY(check_parts(u, t->variable, &slots));
        for (int k = 0; k < u->n_slot; k++) {
            const bool alike = slots.at[k].kind == KEEL_SLOT_ALIKE;
            u->first_is_weight[k] = slots.at[k].first_is_weight;
            u->slot_count[t->variable * u->n_slot + k] =
                alike ? store->weight[t->variable].count : 0;
            if (!alike || !keel_updater_has(u, i)) continue;
            char *at = keel_updater_tile_slot(u, i, k);
            begin_slot(u, at, t->count, &slots.at[k], store->master + t->offset * element);
        }
    }
    return KEEL_OK;
}

static keel_status make_slots(keel_updater *u)
{
    const keel_store *store = u->program->store;
    const size_t n = (size_t)store->n_weight;
    keel_slots slots = { 0 };
    u->weight = keel_calloc(n, sizeof *u->weight);
    if (!u->weight) return KEEL_ENOMEM;
    for (int i = u->n_tile - 1; i >= 0; i--) {
        u->weight[u->tile[i].variable].first_tile = i;
        u->weight[u->tile[i].variable].n_tile++;
    }
    if (u->n_tile > 0) {
        const keel_weight_info *info = &store->weight[u->tile[0].variable].info;
        KEEL_TRY(keel_optimizer_slots(u->optimizer, u->args, info, &slots));
    }
    u->n_slot = slots.count;
    const size_t n_slot = n * (size_t)u->n_slot;
    u->slot = keel_calloc(n_slot, sizeof(*u->slot));
    u->slot_count = keel_calloc(n_slot, sizeof *u->slot_count);
    u->sum = keel_calloc((size_t)u->n_tile, sizeof(double[KEEL_SUM_PASSES][KEEL_UPDATE_SUMS]));
    if (!u->slot || !u->slot_count || !u->sum) return KEEL_ENOMEM;
    if (u->parts.owner) return walk_parts(u);
    KEEL_TRY(walk(u, false));
    return walk(u, true);
}

/* Arguments without any weight decay, if a weight wants them; those that they own stay the args'.
 */
static keel_status make_undecayed(keel_updater *u)
{
    const keel_type *type = &u->optimizer->type;
    bool any = false;
    for (int i = 0; i < u->n_tile; i++)
        any = any || u->program->store->weight[u->tile[i].variable].info.undecayed;
    if (!any) return KEEL_OK;
    if (!(u->undecayed = keel_calloc(1, type->args_size))) return KEEL_ENOMEM;
    memcpy(u->undecayed, u->args, type->args_size);
    for (const keel_field *f = type->fields; f->key; f++) {
        const double none = NAN;
        const char *last = strstr(f->key, "weight_decay"); /* Muon also has adam_weight_decay */
        if (last && f->kind == KEEL_FIELD_FLOAT)
            memcpy((char *)u->undecayed + f->offset, &none, sizeof none);
    }
    return KEEL_OK;
}

keel_status keel_updater_create(keel_updater *u, keel_program *p, const keel_object *optimizer,
                                const bool *moves)
{
    keel_updater made = { .program = p,
                          .optimizer = (const keel_optimizer *)optimizer->type,
                          .args = optimizer->args };
    keel_status s = keel_optimizer_check(optimizer->type, optimizer->args);
    if (s >= 0) s = keel_store_tiles(p->store, moves, &made.tile, &made.n_tile);
    if (s >= 0) s = make_parts(&made);
    if (s >= 0) s = share_tiles(&made, p->lanes->n_worker);
    if (s >= 0) s = make_slots(&made);
    if (s >= 0) s = make_undecayed(&made);
    if (s < 0) {
        keel_updater_free(&made);
        return s;
    }
    made.n_pass = made.optimizer->passes ? made.optimizer->passes(made.args) : 1;
    made.learning_rate = ((const keel_optimizer_common *)made.args)->learning_rate;
    made.number = made.optimizer->first_number;
    const keel_optimizer_common *c = made.args;
    const bool adds_up = c->gradient_accumulation_steps != KEEL_INT_NULL;
    const int own = made.n_slot - adds_up - c->use_ema;
    made.average = c->use_ema && made.n_slot > 0 ? own : -1;
    made.accumulator = adds_up && made.n_slot > 0 ? own + c->use_ema : -1;
    *u = made;
    if (made.parts.owner)
        p->n_moment = 0; /* each weight has them elsewhere */
    else if (made.n_pass ==
             1) { /* with several passes, prefetched lines would be evicted before use */
        p->n_moment = own > 0 ? own : 0;
        p->moment = u->slot;
    }
    return KEEL_OK;
}

void keel_updater_begin_slots(const keel_updater *u)
{
    const keel_store *store = u->program->store;
    const size_t element = keel_dtype_size(store->real);
    if (u->given || u->iterations > 0) return;
    for (int v = 0; v < store->n_weight; v++)
        for (int i = 0; i < u->n_slot; i++)
            if (u->first_is_weight[i] && u->slot_count[v * u->n_slot + i] > 0)
                memcpy(u->slot[v * u->n_slot + i], keel_store_data(store, v),
                       (size_t)u->slot_count[v * u->n_slot + i] * element);
}

void keel_updater_free(keel_updater *u)
{
    for (int k = 0; k <= KEEL_SLOTS_MAX; k++) keel_free(u->memory[k]);
    keel_free(u->undecayed);
    keel_free(u->tile);
    keel_free(u->first_tile);
    keel_free(u->parts.owner);
    keel_free(u->parts.at);
    keel_free(u->parts.count);
    keel_free(u->weight);
    keel_free(u->slot);
    keel_free(u->slot_count);
    keel_free(u->sum);
    *u = (keel_updater){ 0 };
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Steps that move weights, before this one. */
static int64_t moved_before(const keel_updater *u)
{
    const int64_t steps = ((const keel_optimizer_common *)u->args)->gradient_accumulation_steps;
    return steps == KEEL_INT_NULL ? u->iterations : u->iterations / steps;
}

keel_status keel_updater_begin(keel_updater *u)
{
    const int64_t steps = ((const keel_optimizer_common *)u->args)->gradient_accumulation_steps;
    u->moves = steps == KEEL_INT_NULL || (u->iterations + 1) % steps == 0;
    const keel_optimizer *o = u->optimizer;
    const bool f64 = u->program->store->real == KEEL_FLOAT64;
    const keel_rate *rate = (const keel_rate *)u->schedule.type;
    u->rate_now = rate ? rate->at(u->schedule.args, u->iterations) : u->learning_rate;
    u->number_now = o->number[f64] ? o->number[f64](u->args, moved_before(u) + 1, u->number) : 0;
    if (isfinite(u->rate_now)) return KEEL_OK;
    return keel_fail(KEEL_ENUMERIC,
                     "the learning rate of step %lld is %g: its schedule must give "
                     "numbers",
                     (long long)u->iterations + 1, u->rate_now);
}

void keel_updater_end(keel_updater *u)
{
    u->iterations++;
    if (u->moves) u->number = u->number_now;
}

static keel_update update_of(const keel_updater *u, const keel_tile *part, const void *grad,
                             double scale)
{
    const keel_optimizer_common *o = u->args;
    const keel_store *store = u->program->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    const int64_t first = part->offset - store->weight[part->variable].offset;
    keel_update a = { .args = keel_updater_args(u, part->variable),
                      .iteration = moved_before(u) + 1,
                      .learning_rate = u->rate_now,
                      .number = u->number_now,
                      .count = part->count,
                      .w = store->master + part->offset * element,
                      .g = grad,
                      .scale = scale,
                      .clip = keel_clip_bound(o->clipvalue),
                      .first = first };
    for (int k = 0; k < u->n_slot && !u->parts.owner; k++)
        if (u->slot_count[part->variable * u->n_slot + k] == store->weight[part->variable].count)
            a.slot[k] = keel_updater_slot(u, part->variable, k, first);
    return a;
}

void keel_updater_move(const keel_updater *u, const keel_tile *part, const void *grad, double scale)
{
    const keel_update a = update_of(u, part, grad, scale);
    u->optimizer->apply[u->program->store->real == KEEL_FLOAT64](&a);
}

/* Of a whole weight, without its gradient. */
static keel_update update_of_whole(const keel_updater *u, keel_variable v, double scale,
                                   keel_update_whole *whole)
{
    const keel_store_weight *w = &u->program->store->weight[v];
    const keel_tile all = { v, w->offset, w->count };
    keel_update a = update_of(u, &all, NULL, scale);
    *whole = (keel_update_whole){ .shape = &w->info.spec.shape,
                                  .count = w->count,
                                  .scratch = u->weight[v].scratch };
    a.whole = whole;
    return a;
}

void keel_updater_describe(const keel_updater *u, keel_variable v, int pass, const double *sum,
                           double scale, keel_device_move *out)
{
    keel_update_whole whole;
    keel_update a = update_of_whole(u, v, scale, &whole);
    for (int k = 0; sum && k < KEEL_UPDATE_SUMS; k++) whole.sum[0][k] = sum[k];
    a.pass = pass;
    u->optimizer->move[u->program->store->real == KEEL_FLOAT64](&a, out);
}

void keel_updater_factor(const keel_updater *u, keel_variable v, double scale,
                         keel_device_factored *out)
{
    keel_update_whole whole;
    const keel_update a = update_of_whole(u, v, scale, &whole);
    u->optimizer->factored[u->program->store->real == KEEL_FLOAT64](&a, out);
    out->tile = keel_updater_tile_count(u, v);
}

static double *sums_of(const keel_updater *u, int pass, int tile)
{
    return u->sum + ((int64_t)pass * u->n_tile + tile) * KEEL_UPDATE_SUMS;
}

void keel_updater_whole(const keel_updater *u, keel_variable v, int pass, const void *grad,
                        keel_update_whole *out)
{
    const keel_store_weight *w = &u->program->store->weight[v];
    const struct keel_updated *x = &u->weight[v];
    *out = (keel_update_whole){ .shape = &w->info.spec.shape,
                                .count = w->count,
                                .g = grad,
                                .w = keel_store_data(u->program->store, v),
                                .scratch = x->scratch,
                                .n_tile = x->n_tile };
    for (int k = 0; k < u->n_slot; k++) out->slot[k] = u->slot[v * u->n_slot + k];
    for (int q = 0; q < pass && q < KEEL_SUM_PASSES; q++)
        for (int i = 0; i < x->n_tile; i++) {
            const double *sum = sums_of(u, q, x->first_tile + i);
            for (int k = 0; k < KEEL_UPDATE_SUMS; k++) out->sum[q][k] += sum[k];
        }
}

bool keel_updater_by_rows(const keel_updater *u, int pass)
{
    return u->optimizer->by_rows && u->optimizer->by_rows(u->args, pass);
}

void keel_updater_rows(const keel_updater *u, keel_variable v, int pass, keel_update_whole *whole,
                       int share, int n_share)
{
    const keel_store_weight *w = &u->program->store->weight[v];
    const keel_tile all = { v, w->offset, w->count };
    keel_update a = update_of(u, &all, whole->g, 1);
    a.pass = pass;
    whole->tile = share;
    whole->n_tile = n_share;
    a.whole = whole;
    u->optimizer->apply[u->program->store->real == KEEL_FLOAT64](&a);
}

void keel_updater_pass(const keel_updater *u, int tile, int pass, keel_update_whole *whole,
                       double scale)
{
    const keel_tile *t = &u->tile[tile];
    const int64_t element = (int64_t)keel_dtype_size(u->program->store->real);
    keel_update a = update_of(u, t, NULL, scale);
    a.g = (const char *)whole->g + a.first * element;
    a.pass = pass;
    a.sum = pass < KEEL_SUM_PASSES ? sums_of(u, pass, tile) : NULL;
    whole->tile = tile - u->weight[t->variable].first_tile;
    a.whole = whole;
    u->optimizer->apply[u->program->store->real == KEEL_FLOAT64](&a);
}

/* ---- gradients of several steps, and averages of weights --------------------------------------
 */

char *keel_updater_tile_slot(const keel_updater *u, int i, int k)
{
    const keel_store *store = u->program->store;
    const keel_tile *t = &u->tile[i];
    if (u->parts.owner)
        return u->memory[k] + u->parts.at[i] * (int64_t)keel_dtype_size(store->real);
    return keel_updater_slot(u, t->variable, k, t->offset - store->weight[t->variable].offset);
}

/* t: one of u->tile. */
static char *tile_slot(const keel_updater *u, const keel_tile *t, int slot)
{
    return keel_updater_tile_slot(u, (int)(t - u->tile), slot);
}

void keel_updater_join(const keel_updater *u, const keel_tile *tile, void *grad, double *norm)
{
    const keel_optimizer_common *c = u->args;
    keel_mean_join(u->program->store->real, grad, tile_slot(u, tile, u->accumulator), tile->count,
                   (double)c->gradient_accumulation_steps, norm);
}

void keel_updater_keep(const keel_updater *u, const keel_tile *tile, const void *grad)
{
    const keel_dtype real = u->program->store->real;
    void *sum = tile_slot(u, tile, u->accumulator);
    if (u->moves)
        memset(sum, 0, (size_t)tile->count * keel_dtype_size(real));
    else
        keel_mean_add(real, sum, grad, tile->count);
}

double keel_updater_kept(const keel_updater *u)
{
    return moved_before(u) == 0 ? 0 : ((const keel_optimizer_common *)u->args)->ema_momentum;
}

bool keel_updater_overwrites(const keel_updater *u)
{
    const int64_t every = ((const keel_optimizer_common *)u->args)->ema_overwrite_frequency;
    return u->average >= 0 && every != KEEL_INT_NULL && (moved_before(u) + 1) % every == 0;
}

/* w: the weights of the tile, moved. */
static void average(const keel_updater *u, const keel_tile *tile, void *w)
{
    const keel_dtype real = u->program->store->real;
    void *average = tile_slot(u, tile, u->average);
    keel_mean_move(real, average, w, tile->count, keel_updater_kept(u));
    if (keel_updater_overwrites(u)) memcpy(w, average, (size_t)tile->count * keel_dtype_size(real));
}

void keel_updater_average(const keel_updater *u, const keel_tile *tile)
{
    const keel_store *store = u->program->store;
    average(u, tile, store->master + tile->offset * (int64_t)keel_dtype_size(store->real));
}

void keel_updater_move_apart(const keel_updater *u, int i, void *grad, double scale,
                             bool has_gradient, void *room)
{
    const keel_tile *tile = &u->tile[i];
    const keel_store *store = u->program->store;
    const size_t bytes = (size_t)tile->count * keel_dtype_size(store->real);
    keel_update a = update_of(u, tile, grad, scale);
    for (int k = 0; k < u->n_slot; k++)
        if (u->slot_count[tile->variable * u->n_slot + k] > 0) a.slot[k] = tile_slot(u, tile, k);
    memcpy(room, a.w, bytes);
    a.w = room;
    if (u->moves && has_gradient) u->optimizer->apply[store->real == KEEL_FLOAT64](&a);
    if (u->accumulator >= 0 && has_gradient) keel_updater_keep(u, tile, grad);
    if (u->average >= 0) average(u, tile, room);
    if (keel_updater_changes(u)) memcpy(grad, room, bytes);
}

void keel_updater_finish(const keel_updater *u, bool averaged)
{
    const keel_store *store = u->program->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    if (u->average < 0 || u->iterations == 0) return;
    for (int i = 0; i < u->n_tile; i++) {
        char *w = store->master + u->tile[i].offset * element;
        char *average = tile_slot(u, &u->tile[i], u->average);
        memcpy(averaged ? average : w, averaged ? w : average,
               (size_t)(u->tile[i].count * element));
    }
}
