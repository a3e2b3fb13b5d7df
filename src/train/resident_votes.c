/* Votes of devices that have the whole gradients: see resident.h. A device divides them, looks for
 * numbers that are not finite and adds up squares, where they are, and the host reads the votes:
 * some bytes for each tile. What a device cannot have by itself comes from the host first. Where
 * the host has divided and voted, a device adds up squares only, once it has joined gradients.
 * Between steps it votes on weights in the same way. */
#include "train/mover.h"
#include "train/reduce.h"
#include "train/resident_impl.h"

bool keel_resident_can_vote(const keel_trainer *t)
{
    const keel_lanes *l = &t->strategy->lanes;
    for (int w = 0; w < l->n_worker; w++)
        if (!l->device[w]->type->check) return false;
    return true;
}

bool keel_resident_norms_joined(const keel_mover *x)
{
    return x->needs_norms && (x->penalized || x->update.accumulator >= 0);
}

bool keel_resident_joins_of(const keel_trainer *t, const keel_mover *x)
{
    return t->resident && keel_resident_norms_joined(x) && x->update.moves;
}

bool keel_resident_joins(const keel_trainer *t)
{
    bool any = false;
    for (int k = 0; k < t->n_mover; k++) any = any || keel_resident_joins_of(t, &t->mover[k]);
    return any;
}

void keel_resident_votes_plan(keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    const int64_t votes = r->n_tile * (int64_t)sizeof(keel_device_vote);
    if (!keel_resident_can_vote(t)) return;
    keel_program *p = t->train.program;
    p->checks_there = !p->across && (t->strategy->lanes.n_worker == 1 || t->sums);
    r->votes = votes;
    for (int k = 0; k < t->n_mover; k++)
        if (keel_resident_norms_joined(&t->mover[k])) r->norms = votes;
    r->tiles = r->n_tile * (int64_t)sizeof(keel_device_tile);
}

void keel_resident_votes_place(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    keel_device_tile *to =
        (keel_device_tile *)(r->on[worker].report + r->sums + r->votes + r->norms);
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int i = 0; i < u->n_tile && r->tiles > 0; i++)
            *to++ = (keel_device_tile){ u->tile[i].offset, u->tile[i].count };
    }
}

/* Adds up what several uses of a weight have left, in the order of the step's tree. One device has
 * all of it. */
static void add_parts(const keel_trainer *t, int worker, keel_variable v)
{
    const keel_program *p = t->train.program;
    const keel_workspace *s = &p->workspace[worker];
    keel_device *d = s->on_device->device;
    keel_gradient_part part[KEEL_PARTS_MAX];
    char *stack[KEEL_PARTS_MAX];
    const int n = keel_gradient_parts(p, t->bound, v, 0, part);
    for (int i = 0, depth = 0; i < n; i++) {
        stack[depth++] = (char *)s->grad + ((char *)part[i].data - s->host.grad);
        for (int c = part[i].closes; c > 0; c--, depth--)
            d->type->add(d, t->store->real, stack[depth - 2], stack[depth - 1],
                         t->store->weight[v].count);
    }
}

/* Makes a gradient whole. One that was read from a merged record has the first worker alone. */
static void complete(const keel_trainer *t, int worker, keel_variable v, const char *first)
{
    const keel_program *p = t->train.program;
    const keel_workspace *s = &p->workspace[worker];
    keel_device *d = s->on_device->device;
    const int64_t at = t->store->weight[v].offset * keel_resident_element(t);
    const int64_t bytes = t->store->weight[v].count * keel_resident_element(t);
    if (!p->schedule.reached[v]) /* only the regulariser has a gradient */
        d->type->clear(d, (char *)s->grad + at, bytes);
    else if (!p->sums_there)
        add_parts(t, worker, v);
    else if (p->gradient[v].kind == KEEL_GRADIENT_MERGED && first != s->host.grad)
        d->type->copy_in(d, KEEL_COMPUTE_STREAM, (char *)s->grad + at, first + at, bytes);
}

/* The report of a device, behind its sums: there, and on the host. */
static char *votes_there(const keel_trainer *t, int worker)
{
    return t->resident->on[worker].slots + t->resident->slots + t->resident->sums;
}

static char *votes_here(const keel_trainer *t, int worker)
{
    return t->resident->on[worker].report + t->resident->sums;
}

static void send_tiles(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    const int64_t at = r->votes + r->norms;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    if (!r->on[worker].has_tiles)
        d->type->copy_in(d, KEEL_COMPUTE_STREAM, votes_there(t, worker) + at,
                         votes_here(t, worker) + at, r->tiles);
}

/* at: bytes into the votes. g: gradients, or the weights. */
static void vote(const keel_trainer *t, int worker, int64_t at, void *g, double scale, bool squares)
{
    const struct keel_resident *r = t->resident;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    char *there = votes_there(t, worker);
    d->type->check(d,
                   &(keel_device_check){ .real = t->store->real,
                                         .n_tile = r->n_tile,
                                         .tile = (keel_device_tile *)(there + r->votes + r->norms),
                                         .g = g,
                                         .first = r->first,
                                         .end = r->end,
                                         .scale = scale,
                                         .squares = squares,
                                         .vote = (keel_device_vote *)(there + at) });
}

void keel_resident_join_weight(const keel_trainer *t, int worker, const keel_mover *x,
                               keel_variable v)
{
    const keel_updater *u = &x->update;
    const keel_optimizer_common *c = u->args;
    const keel_workspace *s = &t->train.program->workspace[worker];
    const int64_t at = t->store->weight[v].offset * keel_resident_element(t);
    const keel_penalty *p = &t->store->weight[v].info.penalty;
    char *g = (char *)s->grad + at;
    if (keel_penalizes(p))
        keel_resident_change(t, worker, v, KEEL_RULE_PENALTY, g, s->on_device->weights + at,
                             (keel_rule_numbers){ .l1 = p->l1, .twice_l2 = 2 * p->l2 });
    if (u->accumulator >= 0 && u->moves)
        keel_resident_change(
            t, worker, v, KEEL_RULE_MEAN, g, keel_resident_slot(t, worker, x, v, u->accumulator),
            (keel_rule_numbers){ .steps = (double)c->gradient_accumulation_steps });
}

/* Joins all, and adds up squares, by a check whose scale is 1. Only its squares are read: whether
 * the step is good was decided by the gradients before they were joined. */
static void join(const keel_trainer *t, int worker)
{
    keel_resident_enter(t, worker);
    for (int v = 0; v < t->store->n_weight; v++) {
        const keel_mover *x = keel_resident_mover(t, v);
        if (x && keel_resident_joins_of(t, x) && keel_mover_has_gradient(t, v))
            keel_resident_join_weight(t, worker, x, v);
    }
    vote(t, worker, t->resident->votes, t->train.program->workspace[worker].grad, 1, true);
}

static keel_status read_votes(const keel_trainer *t, int worker, int64_t bytes)
{
    const struct keel_resident *r = t->resident;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    d->type->copy_out(d, KEEL_COMPUTE_STREAM, votes_here(t, worker), votes_there(t, worker), bytes);
    KEEL_TRY(keel_device_reach(d, KEEL_COMPUTE_STREAM));
    r->on[worker].has_tiles = true;
    keel_device_touches(d, votes_here(t, worker), bytes, false);
    return KEEL_OK;
}

keel_status keel_resident_check(const keel_trainer *t, int worker, const char *first, double scale)
{
    bool squares = false;
    send_tiles(t, worker);
    for (int v = 0; v < t->store->n_weight; v++)
        if (keel_resident_mover(t, v) && keel_mover_has_gradient(t, v))
            complete(t, worker, v, first);
    for (int k = 0; k < t->n_mover; k++)
        squares = squares || (t->mover[k].needs_norms && !keel_resident_joins_of(t, &t->mover[k]));
    vote(t, worker, 0, t->train.program->workspace[worker].grad, scale, squares);
    if (keel_resident_joins(t)) join(t, worker);
    return read_votes(t, worker, t->resident->votes + t->resident->norms);
}

keel_status keel_resident_join(const keel_trainer *t, int worker, const char *reduced)
{
    send_tiles(t, worker);
    keel_resident_bring(t, worker, reduced);
    join(t, worker);
    KEEL_TRY(read_votes(t, worker, t->resident->votes + t->resident->norms));
    keel_resident_brought(t, worker, reduced);
    return KEEL_OK;
}

const keel_device_vote *keel_resident_vote(const keel_trainer *t, int worker, const keel_mover *x,
                                           int tile)
{
    return (const keel_device_vote *)votes_here(t, worker) + keel_resident_tile(t, x, tile);
}

double keel_resident_squares(const keel_trainer *t, int worker, const keel_mover *x, int tile)
{
    const int64_t at = keel_resident_joins_of(t, x) ? t->resident->votes : 0;
    const keel_device_vote *vote = (const keel_device_vote *)(votes_here(t, worker) + at);
    return vote[keel_resident_tile(t, x, tile)].squares;
}

/* ---- between steps --------------------------------------------------------------------------- */

static keel_status look_on(const keel_trainer *t, int worker)
{
    send_tiles(t, worker);
    vote(t, worker, 0, t->train.program->workspace[worker].on_device->weights, 1, false);
    return read_votes(t, worker, t->resident->votes);
}

keel_status keel_resident_look(const keel_trainer *t, bool *looked)
{
    const struct keel_resident *r = t->resident;
    *looked = false;
    if (!r || !r->ahead || r->votes == 0 || keel_resident_living(t) < 0)
        return keel_resident_fetch(t);
    for (int w; !*looked && (w = keel_resident_living(t)) >= 0;) {
        const keel_status s = look_on(t, w);
        *looked = s >= 0;
        if (s < 0) keel_resident_lose(&r->on[w], s);
    }
    return *looked ? KEEL_OK : keel_resident_go_back(t);
}

bool keel_resident_has(const keel_trainer *t, keel_variable v)
{
    return t->resident && keel_resident_mover(t, v);
}

bool keel_resident_is_finite(const keel_trainer *t, keel_variable v)
{
    const keel_mover *x = keel_resident_mover(t, v);
    const int living = keel_resident_living(t);
    bool finite = true;
    for (int i = 0; i < x->update.weight[v].n_tile; i++)
        finite =
            finite && !keel_resident_vote(t, living, x, x->update.weight[v].first_tile + i)->bad;
    return finite;
}
