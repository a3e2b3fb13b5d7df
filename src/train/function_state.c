/* What a function's optimizers keep between steps: learning rates, iterations, and the states that
 * Keras's optimizer.variables holds behind those two, in its order. The last state of an optimizer
 * that keeps a number (Nadam) is that number. */
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/function.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ITERATIONS_MAX 1000000000000000 /* as of the fields that count steps */

static keel_status find_optimizer(const keel_function *f, int optimizer, keel_updater **out)
{
    const int n = f->trainer ? f->trainer->n_mover : 0;
    if (optimizer < 0 || optimizer >= n)
        return keel_fail(KEEL_EARG, "%s: optimizer %d of %d%s", f->name, optimizer, n,
                         n ? ""
                           : "; there are none before the first run, or keel_strategy_prepare");
    *out = &f->trainer->mover[optimizer].update;
    return KEEL_OK;
}

/* From now on slots that begin as the weight are no longer what the weight becomes. */
static keel_status settle(keel_function *f, keel_updater *u)
{
    if (!u->given && u->iterations == 0) {
        const keel_status s = keel_function_load_weights(f);
        if (s < 0) return keel_fail_within(s, "%s", f->name);
    }
    u->given = true;
    return KEEL_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

keel_status keel_function_learning_rate(const keel_function *f, int optimizer, double *out)
{
    keel_updater *u = NULL;
    KEEL_TRY(find_optimizer(f, optimizer, &u));
    const keel_rate *rate = (const keel_rate *)u->schedule.type;
    *out = rate ? rate->at(u->schedule.args, u->iterations) : u->learning_rate;
    return KEEL_OK;
}

keel_status keel_function_set_learning_rate(keel_function *f, int optimizer, double rate)
{
    keel_updater *u = NULL;
    KEEL_TRY(find_optimizer(f, optimizer, &u));
    if (!(rate >= 0) || !isfinite(rate))
        return keel_fail(KEEL_EARG, "%s: a learning rate of %g", f->name, rate);
    u->schedule = (keel_object){ 0 };
    u->learning_rate = rate;
    return KEEL_OK;
}

int64_t keel_function_iterations(const keel_function *f, int optimizer)
{
    keel_updater *u = NULL;
    return find_optimizer(f, optimizer, &u) < 0 ? -1 : u->iterations;
}

keel_status keel_function_set_iterations(keel_function *f, int optimizer, int64_t n)
{
    keel_updater *u = NULL;
    KEEL_TRY(find_optimizer(f, optimizer, &u));
    if (n < 0 || n > ITERATIONS_MAX)
        return keel_fail(KEEL_EARG, "%s: %" PRId64 " iterations of optimizer %d", f->name, n,
                         optimizer);
    if (n != u->iterations) KEEL_TRY(settle(f, u));
    u->iterations = n;
    return KEEL_OK;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* A state: a slot of a weight, or the number. */
typedef struct keel_state_place {
    keel_updater *of;
    bool number;
    keel_variable weight;
    int slot;
    keel_slot what;
    keel_dtype dtype;
    keel_shape shape;
} keel_state_place;

static keel_status list_slots(const keel_updater *u, keel_slot_place **out, int *n)
{
    const keel_store *store = u->program->store;
    const keel_weight_info **info = keel_calloc((size_t)store->n_weight, sizeof *info);
    if (!info) return KEEL_ENOMEM;
    for (int v = 0; v < store->n_weight; v++)
        if (u->weight[v].n_tile > 0) info[v] = &store->weight[v].info;
    const keel_status s =
        keel_optimizer_places(u->optimizer, u->args, info, store->n_weight, out, n);
    keel_free(info);
    return s;
}

static bool keeps_number(const keel_updater *u)
{
    return u->optimizer->number[u->program->store->real == KEEL_FLOAT64];
}

static keel_status count_states(const keel_updater *u, int64_t *out)
{
    keel_slot_place *slots = NULL;
    int n;
    KEEL_TRY(list_slots(u, &slots, &n));
    keel_free(slots);
    *out = n + keeps_number(u);
    return KEEL_OK;
}

int64_t keel_function_state_count(const keel_function *f, int optimizer)
{
    keel_updater *u = NULL;
    int64_t n;
    return find_optimizer(f, optimizer, &u) < 0 || count_states(u, &n) < 0 ? -1 : n;
}

static void describe(keel_updater *u, const keel_slot_place *p, keel_state_place *out)
{
    const keel_store *store = u->program->store;
    *out = (keel_state_place){ .of = u, .number = !p, .dtype = store->real };
    if (!p) return;
    out->weight = p->weight;
    out->slot = p->slot;
    out->what = p->what;
    if (!keel_slot_shape(p->what.kind, &store->weight[p->weight].info.spec.shape, &out->shape))
        out->dtype = KEEL_INT32; /* a mark */
}

static keel_status find_state(const keel_function *f, int optimizer, int64_t i,
                              keel_state_place *out)
{
    keel_updater *u = NULL;
    keel_slot_place *slots = NULL;
    int n;
    KEEL_TRY(find_optimizer(f, optimizer, &u));
    KEEL_TRY(list_slots(u, &slots, &n));
    const int64_t all = (int64_t)n + keeps_number(u);
    const bool is = i >= 0 && i < all;
    if (is) describe(u, i < n ? &slots[i] : NULL, out);
    keel_free(slots);
    if (is) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s: state %" PRId64 " of %" PRId64 " of optimizer %d", f->name, i,
                     all, optimizer);
}

/* Before the first step a slot may be the weight itself, which the caller may have changed. */
static const void *slot_data(const keel_function *f, const keel_state_place *p)
{
    const bool begins = p->what.first_is_weight && p->of->iterations == 0 && !p->of->given;
    for (int i = 0; begins && i < f->models.n; i++) {
        const keel_called *c = &f->models.model[i];
        const int w = p->weight - c->first;
        if (w < 0 || w >= c->model->n_weight) continue;
        const bool away = c->model->dtype != f->o.dtype || keel_model_outermost(c->model)->live;
        if (!away) return c->model->weight[w].data;
    }
    return keel_updater_slot(p->of, p->weight, p->slot, 0);
}

keel_status keel_function_state(const keel_function *f, int optimizer, int64_t i, keel_tensor *out)
{
    keel_state_place p;
    keel_tensor t;
    KEEL_TRY(find_state(f, optimizer, i, &p));
    KEEL_TRY(keel_tensor_create(&t, p.dtype, &p.shape));
    if (p.number && p.dtype == KEEL_FLOAT64)
        *(double *)t.data = p.of->number;
    else if (p.number)
        *(float *)t.data = (float)p.of->number;
    else if (p.what.kind != KEEL_SLOT_MARK) /* which is 0 */
        memcpy(t.data, slot_data(f, &p),
               (size_t)keel_shape_count(&p.shape) * keel_dtype_size(p.dtype));
    *out = t;
    return KEEL_OK;
}

static keel_status check_value(const keel_function *f, const keel_state_place *p, int64_t i,
                               const keel_tensor *value)
{
    char name[160], has[96], wants[96];
    if (p->number)
        snprintf(name, sizeof name, "the number");
    else
        snprintf(name, sizeof name, "'%.40s' of '%.80s'", p->what.name,
                 p->of->program->store->weight[p->weight].info.name);
    if (value->dtype != p->dtype)
        return keel_fail(KEEL_EARG, "%s: state %" PRId64 ", %s, is of %s, and is given %s", f->name,
                         i, name, keel_dtype_name(p->dtype), keel_dtype_name(value->dtype));
    if (!keel_shape_equal(&value->shape, &p->shape)) {
        keel_shape_text(has, &value->shape);
        keel_shape_text(wants, &p->shape);
        return keel_fail(KEEL_ESHAPE,
                         "%s: state %" PRId64 ", %s, has the shape %s, and is given %s", f->name, i,
                         name, wants, has);
    }
    if (value->data) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s: state %" PRId64 ", %s, is given no data", f->name, i, name);
}

keel_status keel_function_set_state(keel_function *f, int optimizer, int64_t i,
                                    const keel_tensor *value)
{
    keel_state_place p;
    KEEL_TRY(find_state(f, optimizer, i, &p));
    KEEL_TRY(check_value(f, &p, i, value));
    KEEL_TRY(settle(f, p.of));
    if (p.number)
        p.of->number = p.dtype == KEEL_FLOAT64 ? *(const double *)value->data
                                               : (double)*(const float *)value->data;
    else if (p.what.kind != KEEL_SLOT_MARK)
        memcpy(keel_updater_slot(p.of, p.weight, p.slot, 0), value->data,
               (size_t)keel_shape_count(&p.shape) * keel_dtype_size(p.dtype));
    f->anew = true;
    return KEEL_OK;
}
