/* What an optimizer keeps between steps and in files: iterations, the learning rate, slots for
 * every weight, and its number. Keras's file has one list of variables, in the order of
 * optimizers/optimizer.h. */
#include "base/memory.h"
#include "model/parts.h"
#include "model/state.h"
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
    c->number = optimizer_of(c)->first_number;
    return KEEL_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The variable of a slot in the file. */
typedef struct place {
    int state;   /* index into compiled.state */
    bool mark;   /* an int32, 0 */
    bool begins; /* as the weight itself */
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
                    list[made++] = (place){ t * c->n_slot + k, slot->kind == KEEL_SLOT_MARK,
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

/* 0 and 1 are iterations and learning rate; a schedule is not a variable. */
static int first_slot(const keel_model_compiled *c)
{
    return c->schedule ? 1 : 2;
}

static const char *variable(char path[64], int64_t i)
{
    snprintf(path, 64, "optimizer/vars/%lld", (long long)i);
    return path;
}

static keel_status read_slots(const keel_model *m, const keel_weights *file, const place *list,
                              int n)
{
    const keel_model_compiled *c = &m->compiled;
    char path[64];
    for (int i = 0; i < n; i++) {
        keel_tensor *to = &c->state[list[i].state];
        const keel_weight *found = keel_weights_find(file, variable(path, first_slot(c) + i));
        if (list[i].mark && found->shape.rank > 0)
            return keel_fail(KEEL_EFORMAT, "model.weights.h5: %s has dims, but is a mere mark",
                             path);
        if (list[i].mark) continue;
        KEEL_TRY(keel_weights_read(file, path, m->dtype, &to->shape, to->data));
    }
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
    while (keel_weights_find(file, variable(path, count))) count++;
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
    s = keel_weights_read(file, variable(path, 0), KEEL_INT64, &scalar, &iterations);
    if (s >= 0 && !c->schedule)
        s = keel_weights_read(file, variable(path, 1), KEEL_FLOAT64, &scalar, &rate);
    if (s >= 0 && count == all && all > first + n)
        s = keel_weights_read(file, variable(path, first + n), KEEL_FLOAT64, &scalar, &number);
    if (s >= 0 && (iterations < 0 || !(rate >= 0 && rate < 1e30)))
        s = keel_fail(KEEL_EFORMAT, "model.weights.h5: optimizer: %lld steps at rate %g",
                      (long long)iterations, rate);
    if (s >= 0 && count > first) s = read_slots(m, file, list, n);
    if (s < 0) goto out;
    c->iterations = iterations;
    c->number = number;
    if ((float)rate != (float)c->learning_rate) c->learning_rate = rate;
out:
    keel_free(list);
    return s;
}

keel_status keel_compiled_state_add(const keel_model *m, keel_weights *file, keel_state_scalars *of,
                                    keel_state_adder add, void *context)
{
    static const int32_t zero = 0;
    const keel_model_compiled *c = &m->compiled;
    const keel_tensor iterations = { .dtype = KEEL_INT64, .data = (void *)&c->iterations };
    const keel_tensor rate = { .dtype = KEEL_FLOAT32, .data = &of->learning_rate };
    const keel_tensor number = { .dtype = KEEL_FLOAT32, .data = &of->number };
    const keel_tensor mark = { .dtype = KEEL_INT32, .data = (void *)&zero };
    keel_status s = KEEL_OK;
    place *list = NULL;
    char path[64];
    int n = 0, at = first_slot(c);
    of->learning_rate = (float)c->learning_rate;
    of->number = (float)c->number;
    KEEL_TRY(keel_weights_add(file, variable(path, 0), &iterations));
    if (!c->schedule) KEEL_TRY(keel_weights_add(file, variable(path, 1), &rate));
    KEEL_TRY(list_places(m, c, &list, &n));
    for (int i = 0; i < n && s >= 0; i++, at++) {
        const place *p = &list[i];
        const keel_tensor w = { .dtype = m->dtype,
                                .shape = m->weight[p->weight].info.spec.shape,
                                .data = m->weight[p->weight].data };
        const keel_tensor *slot = p->begins && c->iterations == 0 ? &w : &c->state[p->state];
        s = p->mark ? keel_weights_add(file, variable(path, at), &mark)
                    : add(context, variable(path, at), slot);
    }
    if (s >= 0 && keeps_number(m, c)) s = keel_weights_add(file, variable(path, at), &number);
    keel_free(list);
    return s;
}
