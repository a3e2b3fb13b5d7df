/* What an optimizer keeps between steps and in files: iterations, the learning rate, slots for
 * every weight, and its number. Keras's file has one list of variables, in the order of
 * optimizers/optimizer.h. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include "model/state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const keel_optimizer *optimizer_of(const keel_model_compiled *c)
{
    return (const keel_optimizer *)c->optimizer.type;
}

static bool keeps_number(const keel_model *m, const keel_model_compiled *c)
{
    return optimizer_of(c)->number[m->dtype == KEEL_FLOAT64];
}

/* ---- from zero ------------------------------------------------------------------------------- */

/* The slots of one weight; n_slot is the same for all. */
static keel_status create_slots(const keel_model *m, const keel_model_compiled *c, int weight,
                                keel_tensor *state)
{
    const keel_weight_info *info = &m->weight[weight].info;
    keel_slots slots = { 0 };
    KEEL_TRY(keel_optimizer_slots(optimizer_of(c), c->optimizer.args, info, &slots));
    for (int k = 0; k < slots.count; k++) {
        keel_shape shape;
        if (!keel_slot_shape(slots.at[k].kind, &info->spec.shape, &shape)) continue;
        KEEL_TRY(keel_tensor_create(&state[k], m->dtype, &shape));
        for (int64_t i = 0; slots.at[k].first != 0 && i < keel_shape_count(&shape); i++)
            if (m->dtype == KEEL_FLOAT64)
                ((double *)state[k].data)[i] = slots.at[k].first;
            else
                ((float *)state[k].data)[i] = (float)slots.at[k].first;
    }
    return KEEL_OK;
}

keel_status keel_compiled_state_create(const keel_model *m, keel_model_compiled *c)
{
    keel_status s = KEEL_OK;
    const int n_weight = keel_model_trainable_count(m);
    keel_slots slots = { 0 };
    if (n_weight > 0) {
        const keel_weight_info *info = &m->weight[keel_model_trainable(m, 0)].info;
        KEEL_TRY(keel_optimizer_slots(optimizer_of(c), c->optimizer.args, info, &slots));
    }
    const int n = slots.count * n_weight;
    keel_tensor *state = keel_calloc((size_t)n, sizeof *state);
    if (!state) return KEEL_ENOMEM;
    for (int w = 0, at = 0; w < m->n_weight && s >= 0; w++)
        if (m->weight[w].trainable) {
            s = create_slots(m, c, w, state + at);
            at += slots.count;
        }
    if (s < 0) {
        for (int i = 0; i < n; i++) keel_tensor_free(&state[i]);
        keel_free(state);
        return s;
    }
    for (int i = 0; i < c->n_state; i++) keel_tensor_free(&c->state[i]);
    keel_free(c->state);
    c->state = state;
    c->n_state = n;
    c->n_slot = slots.count;
    c->iterations = 0;
    c->good_steps = 0;
    c->loss_scale = (float)c->loss_scale_args.initial_scale;
    c->number = optimizer_of(c)->first_number;
    return KEEL_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The variable of a slot in the file. */
typedef struct place {
    int state;        /* index into compiled.state */
    const char *name; /* of the slot */
    bool mark;        /* an int32, 0 */
    bool begins;      /* as the weight itself */
    int weight;
} place;

/* The places of all slots in the order of the file: *out [*n], to free by keel_free. */
static keel_status list_places(const keel_model *m, const keel_model_compiled *c, place **out,
                               int *n)
{
    keel_status s = KEEL_OK;
    int made = 0;
    place *list = keel_calloc((size_t)c->n_state, sizeof *list);
    if (!list) return KEEL_ENOMEM;
    for (int group = 0; group < c->n_slot && s >= 0; group++)
        for (int w = 0, t = 0; w < m->n_weight && s >= 0; w++) {
            keel_slots slots = { 0 };
            if (!m->weight[w].trainable) continue;
            s = keel_optimizer_slots(optimizer_of(c), c->optimizer.args, &m->weight[w].info,
                                     &slots);
            for (int k = 0; k < slots.count && s >= 0; k++) {
                const keel_slot *slot = &slots.at[k];
                if (slot->group == group && slot->kind != KEEL_SLOT_NONE)
                    list[made++] =
                        (place){ t * c->n_slot + k, slot->name, slot->kind == KEEL_SLOT_MARK,
                                 slot->first_is_weight, w };
            }
            t++;
        }
    if (s < 0) {
        keel_free(list);
        return s;
    }
    *out = list;
    *n = made;
    return KEEL_OK;
}

keel_status keel_compiled_state_names(const keel_model *m, const char ***out, int *n)
{
    place *list = NULL;
    KEEL_TRY(list_places(m, &m->compiled, &list, n));
    const char **names = keel_calloc((size_t)*n, sizeof *names);
    for (int i = 0; names && i < *n; i++) names[i] = list[i].name;
    keel_free(list);
    *out = names;
    return names ? KEEL_OK : KEEL_ENOMEM;
}

/* 0 and 1 are iterations and learning rate; a schedule is not a variable. */
static int first_slot(const keel_model_compiled *c)
{
    return c->schedule ? 1 : 2;
}

/* A LossScaleOptimizer has four variables: 0 and 1 of no use, 2 good steps, 3 the scale. All of the
 * optimizer inside follow, and are written a second time in a place of their own. */
enum { OUTER = 4, GOOD_STEPS = 2, SCALE = 3 };
static const char outer[] = "optimizer/vars", inside[] = "optimizer/inner_optimizer/vars";

static const char *variable(char path[64], const char *of, int64_t i)
{
    snprintf(path, 64, "%s/%lld", of, (long long)i);
    return path;
}

static keel_status read_slots(const keel_model *m, const keel_weights *file, const char *of,
                              const place *list, int n)
{
    const keel_model_compiled *c = &m->compiled;
    char path[64];
    for (int i = 0; i < n; i++) {
        keel_tensor *to = &c->state[list[i].state];
        const keel_weight *found = keel_weights_find(file, variable(path, of, first_slot(c) + i));
        if (list[i].mark && found->shape.rank > 0)
            return keel_fail(KEEL_EFORMAT, "model.weights.h5: %s has dims, but is a mere mark",
                             path);
        if (list[i].mark) continue;
        KEEL_TRY(keel_weights_read(file, path, m->dtype, &to->shape, to->data));
    }
    return KEEL_OK;
}

/* Keras has them from the first step on; before it, only 0 and 1. */
static keel_status read_scale(keel_model *m, const keel_weights *file, int64_t n_inside)
{
    const keel_shape scalar = { 0 };
    char path[64];
    int64_t good;
    float scale;
    if (!keel_weights_find(file, variable(path, outer, OUTER + n_inside - 1))) return KEEL_OK;
    KEEL_TRY(
        keel_weights_read(file, variable(path, outer, GOOD_STEPS), KEEL_INT64, &scalar, &good));
    KEEL_TRY(keel_weights_read(file, variable(path, outer, SCALE), KEEL_FLOAT32, &scalar, &scale));
    if (good < 0 || !(scale > 0) || isinf(scale))
        return keel_fail(KEEL_EFORMAT,
                         "model.weights.h5: LossScaleOptimizer: a scale of %g after %lld steps",
                         (double)scale, (long long)good);
    m->compiled.good_steps = good;
    m->compiled.loss_scale = scale;
    return KEEL_OK;
}

keel_status keel_compiled_state_read(keel_model *m, const keel_weights *file)
{
    keel_model_compiled *c = &m->compiled;
    const keel_shape scalar = { 0 };
    keel_status s = KEEL_OK;
    place *list = NULL;
    char path[64];
    int64_t count = 0, iterations;
    double rate = c->learning_rate, number = c->number;
    int n = 0;
    /* The file may have been trained with a scale, and this model not, or the other way round. */
    const char *of = keel_weights_find(file, variable(path, inside, 0)) ? inside : outer;
    while (keel_weights_find(file, variable(path, of, count))) count++;
    if (count == 0) return KEEL_OK; /* saved by an older Keras before the first step */
    KEEL_TRY(list_places(m, c, &list, &n));
    const int first = first_slot(c), all = first + n + keeps_number(m, c);
    if (count != first && count != all) {
        s = keel_fail(KEEL_EFORMAT,
                      "model.weights.h5: the optimizer has %lld variables, not %d: its "
                      "configuration tells of another one",
                      (long long)count, all);
        goto out;
    }
    s = keel_weights_read(file, variable(path, of, 0), KEEL_INT64, &scalar, &iterations);
    if (s >= 0 && !c->schedule)
        s = keel_weights_read(file, variable(path, of, 1), KEEL_FLOAT64, &scalar, &rate);
    if (s >= 0 && count == all && all > first + n)
        s = keel_weights_read(file, variable(path, of, first + n), KEEL_FLOAT64, &scalar, &number);
    if (s >= 0 && (iterations < 0 || !(rate >= 0 && rate < 1e30)))
        s = keel_fail(KEEL_EFORMAT, "model.weights.h5: optimizer: %lld steps at rate %g",
                      (long long)iterations, rate);
    if (s >= 0 && count > first) s = read_slots(m, file, of, list, n);
    if (s >= 0 && of == inside) s = read_scale(m, file, count);
    if (s < 0) goto out;
    c->iterations = iterations;
    c->number = number;
    if ((float)rate != (float)c->learning_rate) c->learning_rate = rate;
out:
    keel_free(list);
    return s;
}

/* Writes the variables of the optimizer that moves the weights, from `at` on. */
static keel_status add_from(const keel_model *m, keel_weights *file, const char *of, int at,
                            keel_state_scalars *scalars, keel_state_adder add, void *context)
{
    static const int32_t zero = 0;
    const keel_model_compiled *c = &m->compiled;
    const keel_tensor iterations = { .dtype = KEEL_INT64, .data = (void *)&c->iterations };
    const keel_tensor rate = { .dtype = KEEL_FLOAT32, .data = &scalars->learning_rate };
    const keel_tensor number = { .dtype = KEEL_FLOAT32, .data = &scalars->number };
    const keel_tensor mark = { .dtype = KEEL_INT32, .data = (void *)&zero };
    keel_status s = KEEL_OK;
    place *list = NULL;
    char path[64];
    int n = 0;
    KEEL_TRY(keel_weights_add(file, variable(path, of, at), &iterations));
    if (!c->schedule) KEEL_TRY(keel_weights_add(file, variable(path, of, at + 1), &rate));
    at += first_slot(c);
    KEEL_TRY(list_places(m, c, &list, &n));
    for (int i = 0; i < n && s >= 0; i++, at++) {
        const place *p = &list[i];
        const keel_tensor w = { .dtype = m->dtype,
                                .shape = m->weight[p->weight].info.spec.shape,
                                .data = m->weight[p->weight].data };
        const keel_tensor *slot = p->begins && c->iterations == 0 ? &w : &c->state[p->state];
        s = p->mark ? keel_weights_add(file, variable(path, of, at), &mark)
                    : add(context, variable(path, of, at), slot);
    }
    if (s >= 0 && keeps_number(m, c)) s = keel_weights_add(file, variable(path, of, at), &number);
    keel_free(list);
    return s;
}

keel_status keel_compiled_state_add(const keel_model *m, keel_weights *file, keel_state_scalars *of,
                                    keel_state_adder add, void *context)
{
    static const int64_t no_steps = 0;
    static const float no_rate = 0;
    const keel_model_compiled *c = &m->compiled;
    const keel_tensor own[OUTER] = {
        { .dtype = KEEL_INT64, .data = (void *)&no_steps },
        { .dtype = KEEL_FLOAT32, .data = (void *)&no_rate },
        [GOOD_STEPS] = { .dtype = KEEL_INT64, .data = (void *)&c->good_steps },
        [SCALE] = { .dtype = KEEL_FLOAT32, .data = (void *)&c->loss_scale },
    };
    char name[64], path[64];
    of->learning_rate = (float)c->learning_rate;
    of->number = (float)c->number;
    keel_snake_case(name, sizeof name, c->optimizer.type->name);
    if (!keel_model_scales_loss(m)) {
        KEEL_TRY(keel_weights_add_group(file, outer, name));
        return add_from(m, file, outer, 0, of, add, context);
    }
    KEEL_TRY(keel_weights_add_group(file, outer, "loss_scale_optimizer"));
    for (int i = 0; i < OUTER; i++)
        KEEL_TRY(keel_weights_add(file, variable(path, outer, i), &own[i]));
    KEEL_TRY(add_from(m, file, outer, OUTER, of, add, context));
    KEEL_TRY(keel_weights_add_group(file, inside, name));
    return add_from(m, file, inside, 0, of, add, context);
}
