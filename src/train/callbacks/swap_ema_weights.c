/* Validate with the moving averages of the weights, which an optimizer with use_ema keeps: they
 * change places with the weights before a test and back after it; with swap_on_epoch they stay
 * until the next epoch begins, so that callbacks behind this one save them. After predict they
 * change back too (Keras 3.15 forgets that), and when a run fails. Before the first step that moves
 * weights there are no averages, and the weights stay; those of Keras are zeros then. */
#include "base/memory.h"
#include "train/callbacks/watcher.h"
#include "model/model.h"
#include <string.h>

typedef struct args_t {
    bool swap_on_epoch;
} args_t;

typedef struct state_t {
    bool swapped;
} state_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, swap_on_epoch, "false",
              "also from the end of an epoch to the begin of the next"),
    { 0 },
};

static const keel_field state_fields[] = {
    KEEL_BOOL(state_t, swapped, "false", "the averages are in the model"),
    { 0 },
};

/* The slot of the averages of optimizer o for weight v; -1: none. */
static int average_of(const keel_model *m, const keel_model_optimizer *o, int v)
{
    const keel_optimizer_common *c = o->optimizer.args;
    keel_slots slots = { 0 };
    if (!c->use_ema || keel_optimizer_slots((const keel_optimizer *)o->optimizer.type, c,
                                            &m->weight[v].info, &slots) < 0)
        return -1;
    return slots.count - 1 - (c->gradient_accumulation_steps != KEEL_INT_NULL);
}

/* Swap, and count the weights that have averages. */
static int swap(keel_model *m)
{
    keel_model_compiled *c = &m->compiled;
    int n = 0;
    keel_model_change(m, KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE);
    for (int i = 0; c->state && i < keel_model_trainable_count(m); i++) {
        const int v = keel_model_trainable(m, i);
        const int slot = average_of(m, &c->optimizer[c->moved_by[v]], v);
        char *average = slot < 0 ? NULL : c->state[i * c->n_slot + slot].data;
        char *weight = m->weight[v].data, part[4096];
        size_t left =
            (size_t)keel_shape_count(&m->weight[v].info.spec.shape) * keel_dtype_size(m->dtype);
        if (!average) continue;
        n++;
        for (size_t k; left > 0; left -= k, average += k, weight += k) {
            k = left < sizeof part ? left : sizeof part;
            memcpy(part, average, k);
            memcpy(average, weight, k);
            memcpy(weight, part, k);
        }
    }
    return n;
}

static keel_status set(keel_watching *w, const keel_moment *at, bool averages)
{
    state_t *s = w->state;
    if (s->swapped == averages) return KEEL_OK;
    keel_model_pull(at->model, KEEL_LIVE_NUMBERS);
    /* In a fit the steps so far were skipped, since the scale of the loss is still too large. */
    if (at->model->compiled.iterations == 0)
        return at->fits ? KEEL_OK
                        : keel_fail(KEEL_EARG, "there are no averages before the first step");
    if (at->model->compiled.stateless)
        return keel_fail(KEEL_EARG,
                         "the averages are in the optimizer's state, which the model '%s' "
                         "does not have here",
                         at->model->name);
    if (swap(at->model) == 0)
        return keel_fail(KEEL_EARG, "the optimizer keeps no averages: give it use_ema=True");
    s->swapped = averages;
    return KEEL_OK;
}

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    const keel_model_compiled *c = &at->model->compiled;
    bool any = false;
    for (int i = 0; i < c->n_optimizer; i++)
        any = any || ((const keel_optimizer_common *)c->optimizer[i].optimizer.args)->use_ema;
    if (!any) return keel_fail(KEEL_EARG, "the optimizer keeps no averages: give it use_ema=True");
    keel_watching *w = context;
    at->watch->averaged = &((const state_t *)w->state)->swapped;
    return keel_watching_reset(w);
}

/* By now the averages have become the weights, if they were not there before. */
static keel_status on_train_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    (void)at;
    ((state_t *)w->state)->swapped = false;
    return KEEL_OK;
}

static keel_status on_epoch_begin(void *context, const keel_moment *at)
{
    return set(context, at, false);
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    return set(w, at, ((const args_t *)w->args.args)->swap_on_epoch);
}

static keel_status on_begin(void *context, const keel_moment *at)
{
    return set(context, at, true);
}

static keel_status on_end(void *context, const keel_moment *at)
{
    return set(context, at, false);
}

/* The weights that were trained, and not what a test had for a time. */
static void failed(keel_watching *w, const keel_moment *at)
{
    state_t *s = w->state;
    if (s->swapped) (void)swap(at->model);
    s->swapped = false;
}

static int reads(const void *args)
{
    (void)args;
    return KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE;
}

const keel_watcher keel_watcher_swap_ema_weights = {
    .type = {
        .name = "SwapEMAWeights",
        .module = "keras.callbacks",
        .help = "test with the moving averages of the weights",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .state = { .name = "SwapEMAWeights", .args_size = sizeof(state_t), .fields = state_fields },
    .on = {
        .on_train_begin = on_train_begin,
        .on_train_end = on_train_end,
        .on_epoch_begin = on_epoch_begin,
        .on_epoch_end = on_epoch_end,
        .on_test_begin = on_begin,
        .on_test_end = on_end,
        .on_predict_begin = on_begin,
        .on_predict_end = on_end,
    },
    .reads = reads,
    .failed = failed,
    .steers = true,
};
