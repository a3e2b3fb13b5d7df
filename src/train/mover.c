/* See mover.h. */
#include "train/mover.h"
#include "train/penalty.h"
#include <math.h>

static double norm_of(const keel_mover *x, int first_tile, int n_tile)
{
    double sum = 0;
    for (int i = first_tile; i < first_tile + n_tile; i++) sum += x->tile_norm[i];
    return sqrt(sum);
}

double keel_mover_scale_of_all(const keel_mover *x)
{
    const keel_optimizer_common *o = x->update.args;
    if (!keel_clips(o->global_clipnorm)) return 1;
    return keel_clip_scale(norm_of(x, 0, x->update.n_tile), o->global_clipnorm);
}

double keel_mover_scale(const keel_mover *x, keel_variable v, double of_all)
{
    const keel_optimizer_common *o = x->update.args;
    const struct keel_updated *w = &x->update.weight[v];
    if (!keel_clips(o->clipnorm)) return of_all;
    return keel_clip_scale(norm_of(x, w->first_tile, w->n_tile), o->clipnorm);
}

bool keel_mover_has_gradient(const keel_trainer *t, keel_variable v)
{
    const keel_weight_info *info = &t->store->weight[v].info;
    return t->train.program->schedule.reached[v] || keel_penalizes(&info->penalty);
}

bool keel_mover_is_idle(const keel_mover *x, const keel_score *score)
{
    bool idle = x->n_loss > 0;
    for (int i = 0; i < x->n_loss; i++) idle = idle && score->weighed[x->first_loss + i] == 0;
    return idle;
}

static double loss_of(const keel_trainer *t, const keel_mover *x, const keel_score *score)
{
    double sum = 0;
    for (int i = x->first_loss; i < x->first_loss + x->n_loss; i++)
        sum += t->train.loss[i].args.weight * score->each[i];
    return sum;
}

void keel_movers_ask(const keel_trainer *t, const keel_score *score)
{
    for (int k = 0; k < t->n_mover; k++) {
        keel_mover *x = &t->mover[k];
        const keel_applying now = { .gradient_norm = norm_of(x, 0, x->update.n_tile),
                                    .loss = loss_of(t, x, score),
                                    .rows = t->bound->rows,
                                    .applied = x->update.iterations };
        x->rests = x->when && !keel_mover_is_idle(x, score) && !x->when(x->when_context, &now);
    }
}
