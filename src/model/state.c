/* What optimizers keep between steps and in files: iterations, the learning rate, slots for every
 * weight, and a number. Keras's file has one list of variables, in the order of
 * optimizers/optimizer.h. A MultiOptimizer has two of its own before those of its optimizers, one
 * optimizer after another. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include "model/state.h"
#include "optimizers/multi.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const keel_optimizer *type_of(const keel_model_optimizer *o)
{
    return (const keel_optimizer *)o->optimizer.type;
}

static keel_status slots_of(const keel_model *m, const keel_model_optimizer *o, int weight,
                            keel_slots *out)
{
    return keel_optimizer_slots(type_of(o), o->optimizer.args, &m->weight[weight].info, out);
}

static bool keeps_number(const keel_model *m, const keel_model_optimizer *o)
{
    return type_of(o)->number[m->dtype == KEEL_FLOAT64];
}

/* ---- from zero ------------------------------------------------------------------------------- */

/* Which optimizer moves each weight: *out [m->n_weight], to free by keel_free. */
static keel_status share_weights(const keel_model *m, const keel_model_compiled *c, int **out)
{
    int *by = keel_calloc((size_t)m->n_weight, sizeof *by);
    const char **patterns = keel_calloc((size_t)c->n_optimizer, sizeof *patterns);
    keel_status s = by && patterns ? KEEL_OK : KEEL_ENOMEM;
    const int n = c->n_optimizer - 1;
    for (int i = 0; i < n && s >= 0; i++) patterns[i] = c->optimizer[i].pattern;
    for (int w = 0; w < m->n_weight && s >= 0; w++) {
        keel_text path = { 0 };
        keel_model_variable_path(m, w, &path);
        s = path.failed ? KEEL_ENOMEM : keel_multi_choose(patterns, n, path.data, &by[w]);
        keel_text_free(&path);
    }
    keel_free(patterns);
    if (s < 0)
        keel_free(by);
    else
        *out = by;
    return s;
}

/* memory false: only their shapes. */
static keel_status create_slots(const keel_model *m, const keel_model_optimizer *o, int weight,
                                bool memory, keel_tensor *state)
{
    const keel_weight_info *info = &m->weight[weight].info;
    keel_slots slots = { 0 };
    KEEL_TRY(slots_of(m, o, weight, &slots));
    for (int k = 0; k < slots.count; k++) {
        keel_shape shape;
        if (!keel_slot_shape(slots.at[k].kind, &info->spec.shape, &shape)) continue;
        state[k] = (keel_tensor){ .dtype = m->dtype, .shape = shape };
        if (!memory) continue;
        KEEL_TRY(keel_tensor_create(&state[k], m->dtype, &shape));
        for (int64_t i = 0; slots.at[k].first != 0 && i < keel_shape_count(&shape); i++)
            if (m->dtype == KEEL_FLOAT64)
                ((double *)state[k].data)[i] = slots.at[k].first;
            else
                ((float *)state[k].data)[i] = (float)slots.at[k].first;
    }
    return KEEL_OK;
}

void keel_compiled_state_leave(keel_model_compiled *c)
{
    for (int i = 0; i < c->n_state; i++) {
        keel_free(c->state[i].data);
        c->state[i].data = NULL;
    }
    c->stateless = c->n_state > 0;
}

keel_status keel_compiled_state_return(const keel_model *m, keel_model_compiled *c)
{
    keel_status s = KEEL_OK;
    for (int w = 0, at = 0; c->stateless && w < m->n_weight && s >= 0; w++)
        if (m->weight[w].trainable) {
            s = create_slots(m, &c->optimizer[c->moved_by[w]], w, true, c->state + at);
            at += c->n_slot;
        }
    if (s < 0) /* what there is has no values */
        keel_compiled_state_leave(c);
    else
        c->stateless = false;
    return s;
}

int64_t keel_compiled_state_bytes(const keel_model *m, const keel_model_compiled *c)
{
    int64_t sum = 0;
    for (int w = 0; c->n_state > 0 && w < m->n_weight; w++) {
        keel_slots slots = { 0 };
        keel_shape shape;
        if (!m->weight[w].trainable) continue;
        if (slots_of(m, &c->optimizer[c->moved_by[w]], w, &slots) < 0) continue;
        for (int k = 0; k < slots.count; k++)
            if (keel_slot_shape(slots.at[k].kind, &m->weight[w].info.spec.shape, &shape))
                sum += keel_shape_count(&shape) * (int64_t)keel_dtype_size(m->dtype);
    }
    return sum;
}

/* The most slots that a weight has. */
static keel_status count_slots(const keel_model *m, const keel_model_compiled *c, const int *by,
                               int *out)
{
    *out = 0;
    for (int w = 0; w < m->n_weight; w++) {
        keel_slots slots = { 0 };
        if (!m->weight[w].trainable) continue;
        KEEL_TRY(slots_of(m, &c->optimizer[by[w]], w, &slots));
        if (slots.count > *out) *out = slots.count;
    }
    return KEEL_OK;
}

keel_status keel_compiled_state_create(const keel_model *m, keel_model_compiled *c)
{
    int *by = NULL, n_slot = 0, n = 0;
    keel_tensor *state = NULL;
    keel_status s = share_weights(m, c, &by);
    if (s >= 0) s = count_slots(m, c, by, &n_slot);
    if (s < 0) goto out;
    n = n_slot * keel_model_trainable_count(m);
    if (!(state = keel_calloc((size_t)n, sizeof *state))) s = KEEL_ENOMEM;
    for (int w = 0, at = 0; w < m->n_weight && s >= 0; w++)
        if (m->weight[w].trainable) {
            s = create_slots(m, &c->optimizer[by[w]], w, !c->unread, state + at);
            at += n_slot;
        }
    if (s < 0) goto out;
    for (int i = 0; i < c->n_state; i++) keel_tensor_free(&c->state[i]);
    keel_free(c->state);
    keel_free(c->moved_by);
    c->state = state;
    c->moved_by = by;
    c->n_state = n;
    c->n_slot = n_slot;
    c->stateless = c->unread && n > 0;
    c->state_left_out = 0;
    c->iterations = 0;
    c->good_steps = 0;
    c->loss_scale = (float)c->loss_scale_args.initial_scale;
    for (int k = 0; k < c->n_optimizer; k++)
        c->optimizer[k].number = type_of(&c->optimizer[k])->first_number;
    return KEEL_OK;
out:
    for (int i = 0; state && i < n; i++) keel_tensor_free(&state[i]);
    keel_free(state);
    keel_free(by);
    return s;
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

/* A model that is read from its configuration alone has no states yet, so nothing is moved. */
static bool is_moved_by(const keel_model_compiled *c, int weight, int optimizer)
{
    return c->moved_by && c->moved_by[weight] == optimizer;
}

/* The places of all slots of an optimizer in the order of the file: *out [*n], to free by
 * keel_free. scaled: it is inside a LossScaleOptimizer, where Keras leaves out what an optimizer
 * has not made by add_variable: marks, and a number that it keeps. */
static keel_status list_places(const keel_model *m, const keel_model_compiled *c, int optimizer,
                               bool scaled, place **out, int *n)
{
    const keel_model_optimizer *o = &c->optimizer[optimizer];
    const size_t n_weight = (size_t)m->n_weight;
    const keel_weight_info **info = keel_calloc(n_weight, sizeof *info);
    int *first = keel_calloc(n_weight, sizeof *first), all = 0, made = 0; /* in compiled.state */
    keel_slot_place *slots = NULL;
    place *list = NULL;
    keel_status s = info && first ? KEEL_OK : KEEL_ENOMEM;
    for (int w = 0, at = 0; w < m->n_weight && s >= 0; w++) {
        if (!m->weight[w].trainable) continue;
        first[w] = at;
        at += c->n_slot;
        const bool made_yet =
            c->moved_by; /* not where a model is read from its configuration alone */
        if (made_yet && c->moved_by[w] == optimizer) info[w] = &m->weight[w].info;
    }
    if (s >= 0)
        s = keel_optimizer_places(type_of(o), o->optimizer.args, info, m->n_weight, &slots, &all);
    if (s >= 0 && !(list = keel_calloc((size_t)all, sizeof *list))) s = KEEL_ENOMEM;
    for (int i = 0; i < all && s >= 0; i++) {
        const keel_slot_place *p = &slots[i];
        const bool mark = p->what.kind == KEEL_SLOT_MARK;
        if (scaled && mark) continue;
        list[made++] = (place){ first[p->weight] + p->slot, p->what.name, mark,
                                p->what.first_is_weight, p->weight };
    }
    keel_free(slots);
    keel_free(first);
    keel_free(info);
    if (s < 0) return s;
    *out = list;
    *n = made;
    return KEEL_OK;
}

keel_status keel_compiled_state_names(const keel_model *m, const char ***out, int *n)
{
    place *list = NULL;
    KEEL_TRY(list_places(m, &m->compiled, m->compiled.n_optimizer - 1, false, &list, n));
    const char **names = keel_calloc((size_t)*n, sizeof *names);
    for (int i = 0; names && i < *n; i++) names[i] = list[i].name;
    keel_free(list);
    *out = names;
    return names ? KEEL_OK : KEEL_ENOMEM;
}

/* 0 and 1 are iterations and learning rate; a schedule is not a variable. */
static int first_slot(const keel_model_optimizer *o)
{
    return o->schedule ? 1 : 2;
}

/* A MultiOptimizer has two variables, iterations and a learning rate of no use, and a
 * LossScaleOptimizer four: 0 and 1 of no use, 2 good steps, 3 the scale. All of what is inside
 * follow, and are written a second time in places of their own. */
enum { MULTI = 2, OUTER = 4, GOOD_STEPS = 2, SCALE = 3, PATH = 96 };
static const char outer[] = "optimizer/vars", inside[] = "optimizer/inner_optimizer/vars";

static const char *variable(char path[PATH], const char *of, int64_t i)
{
    snprintf(path, PATH, "%s/%lld", of, (long long)i);
    return path;
}

/* Keras builds an optimizer of a MultiOptimizer only if it has a weight to move. */
static bool is_built(const keel_model *m, const keel_model_compiled *c, int optimizer)
{
    if (!c->multi) return true;
    for (int w = 0; w < m->n_weight; w++)
        if (m->weight[w].trainable && is_moved_by(c, w, optimizer)) return true;
    return false;
}

/* How many variables an optimizer has once it has made its slots. */
static keel_status count_variables(const keel_model *m, const keel_model_compiled *c, int optimizer,
                                   bool scaled, int *out)
{
    const keel_model_optimizer *o = &c->optimizer[optimizer];
    place *list = NULL;
    int n = 0;
    KEEL_TRY(list_places(m, c, optimizer, scaled, &list, &n));
    keel_free(list);
    *out = first_slot(o) + n + (!scaled && keeps_number(m, o) && is_built(m, c, optimizer));
    return KEEL_OK;
}

static keel_status read_slots(const keel_model *m, const keel_weights *file, const char *of,
                              int64_t at, const place *list, int n)
{
    char path[PATH];
    for (int i = 0; i < n; i++) {
        keel_tensor *to = &m->compiled.state[list[i].state];
        const keel_weight *found = keel_weights_find(file, variable(path, of, at + i));
        if (list[i].mark && found->shape.rank > 0)
            return keel_fail(KEEL_EFORMAT, "model.weights.h5: %s has dims, but is a mere mark",
                             path);
        if (list[i].mark || m->compiled.unread) continue;
        KEEL_TRY(keel_weights_read(file, path, m->dtype, &to->shape, to->data));
    }
    return KEEL_OK;
}

/* Keras has them from the first step on; before it, only 0 and 1. */
static keel_status read_scale(keel_model *m, const keel_weights *file, int64_t n_inside)
{
    const keel_shape scalar = { 0 };
    char path[PATH];
    int64_t good;
    float scale;
    if (!keel_weights_find(file, variable(path, outer, OUTER + n_inside - 1))) return KEEL_OK;
    KEEL_TRY(
        keel_weights_read(file, variable(path, outer, GOOD_STEPS), KEEL_INT64, &scalar, &good));
    KEEL_TRY(keel_weights_read(file, variable(path, outer, SCALE), KEEL_FLOAT32, &scalar, &scale));
    if (scale == INFINITY) scale = 0x1p127F; /* Keras's scales can leave the range of floats, and */
    if (scale == 0) scale = FLT_MIN;         /* then never come back: no step is good any more */
    if (good < 0 || !(scale > 0))
        return keel_fail(KEEL_EFORMAT,
                         "model.weights.h5: LossScaleOptimizer: a scale of %g after %lld steps",
                         (double)scale, (long long)good);
    m->compiled.good_steps = good;
    m->compiled.loss_scale = scale;
    return KEEL_OK;
}

/* The number of an optimizer after so many steps. It tends to a limit, mostly 0. */
static double number_after(const keel_model *m, const keel_model_optimizer *o, int64_t iterations)
{
    const keel_optimizer *type = type_of(o);
    const int64_t each =
        ((const keel_optimizer_common *)o->optimizer.args)->gradient_accumulation_steps;
    const int64_t moves = each > 1 ? iterations / each : iterations;
    double number = type->first_number, before = -1;
    for (int64_t i = 1; i <= moves && number != before; i++) {
        before = number;
        number = type->number[m->dtype == KEEL_FLOAT64](o->optimizer.args, i, before);
    }
    return number;
}

/* The variables of an optimizer from *at on. built: it has its slots. */
static keel_status read_one(keel_model *m, const keel_weights *file, const char *of, int optimizer,
                            bool built, int64_t *at, int64_t *iterations)
{
    keel_model_optimizer *o = &m->compiled.optimizer[optimizer];
    const keel_shape scalar = { 0 };
    place *list = NULL;
    char path[PATH];
    int n = 0;
    double rate = o->learning_rate, number = o->number;
    const int64_t first = *at + first_slot(o);
    const bool scaled = of == inside, keeps = built && keeps_number(m, o);
    const bool numbered = keeps && !scaled && is_built(m, &m->compiled, optimizer);
    KEEL_TRY(list_places(m, &m->compiled, optimizer, scaled, &list, &n));
    if (!built) n = 0;
    keel_status s =
        keel_weights_read(file, variable(path, of, *at), KEEL_INT64, &scalar, iterations);
    if (s >= 0 && !o->schedule)
        s = keel_weights_read(file, variable(path, of, *at + 1), KEEL_FLOAT64, &scalar, &rate);
    if (s >= 0 && numbered && !m->compiled.unread)
        s = keel_weights_read(file, variable(path, of, first + n), KEEL_FLOAT64, &scalar, &number);
    if (s >= 0 && (*iterations < 0 || !(rate >= 0 && rate < 1e30)))
        s = keel_fail(KEEL_EFORMAT, "model.weights.h5: optimizer: %lld steps at rate %g",
                      (long long)*iterations, rate);
    if (s >= 0) s = read_slots(m, file, of, first, list, n);
    keel_free(list);
    if (s == KEEL_ESHAPE) /* as many variables as are needed, but in another order */
        return keel_fail(KEEL_EUNSUP,
                         "%s. A Keras older than 3.10 kept the state of Nadam, and of use_ema with "
                         "gradient_accumulation_steps, in another order, which Keras 3.15 does not "
                         "load either: load the file in Python with compile=False and save it, "
                         "then it has no optimizer",
                         keel_error());
    if (s < 0) return s;
    o->number = keeps && scaled ? number_after(m, o, *iterations) : number;
    if ((float)rate != (float)o->learning_rate) o->learning_rate = rate;
    *at = first + n + numbered;
    return KEEL_OK;
}

keel_status keel_compiled_state_read(keel_model *m, const keel_weights *file)
{
    keel_model_compiled *c = &m->compiled;
    const int64_t before = c->multi ? MULTI : 0;
    char path[PATH];
    int64_t count = 0, first = before, all = before, at = before, iterations = 0;
    /* The file may have been trained with a scale, and this model not, or the other way round. */
    const char *of = keel_weights_find(file, variable(path, inside, 0)) ? inside : outer;
    while (keel_weights_find(file, variable(path, of, count))) count++;
    if (count == 0) return KEEL_OK; /* saved by an older Keras before the first step */
    for (int k = 0; k < c->n_optimizer; k++) {
        int n;
        KEEL_TRY(count_variables(m, c, k, of == inside, &n));
        first += first_slot(&c->optimizer[k]);
        all += n;
    }
    if (count != first && count != all) { /* of other weights; Keras begins anew, too */
        c->state_left_out = count;
        return KEEL_OK;
    }
    for (int k = 0; k < c->n_optimizer; k++) {
        int64_t steps;
        KEEL_TRY(read_one(m, file, of, k, count == all, &at, &steps));
        if (!is_built(m, c, k)) continue;
        if (iterations > 0 && steps != iterations)
            return keel_fail(KEEL_EUNSUP,
                             "model.weights.h5: optimizers of %lld and of %lld steps in one model",
                             (long long)iterations, (long long)steps);
        iterations = steps;
    }
    if (of == inside) KEEL_TRY(read_scale(m, file, count));
    c->iterations = iterations;
    return KEEL_OK;
}

static const keel_weight *scalar_at(const keel_weights *file, const char *of, int64_t i)
{
    char path[PATH];
    const keel_weight *w = keel_weights_find(file, variable(path, of, i));
    return w && w->shape.rank == 0 ? w : NULL;
}

/* Whether the variables from *at on have the shapes of those of an optimizer with its slots. */
static keel_status compare_one(const keel_model *m, const keel_weights *file, const char *of,
                               int optimizer, int64_t *at, bool *same)
{
    const keel_model_optimizer *o = &m->compiled.optimizer[optimizer];
    const bool scaled = of == inside;
    const bool numbered = !scaled && keeps_number(m, o) && is_built(m, &m->compiled, optimizer);
    place *list = NULL;
    char path[PATH];
    int n = 0;
    KEEL_TRY(list_places(m, &m->compiled, optimizer, scaled, &list, &n));
    for (int i = 0; i < first_slot(o); i++) *same = *same && scalar_at(file, of, (*at)++);
    for (int i = 0; i < n; i++, (*at)++) {
        const keel_weight *w = keel_weights_find(file, variable(path, of, *at));
        const keel_shape none = { 0 };
        const keel_shape *want = list[i].mark ? &none : &m->compiled.state[list[i].state].shape;
        *same = *same && w && keel_shape_equal(&w->shape, want);
    }
    if (numbered) *same = *same && scalar_at(file, of, (*at)++);
    keel_free(list);
    return KEEL_OK;
}

keel_status keel_compiled_state_replace(keel_model *m, const keel_weights *file)
{
    keel_model_compiled *c = &m->compiled;
    char path[PATH];
    bool same = true;
    int64_t at = c->multi ? MULTI : 0, count = 0;
    const char *of = keel_weights_find(file, variable(path, inside, 0)) ? inside : outer;
    if (!c->given || keel_model_outermost(m)->live) return KEEL_OK;
    c->state_loaded = KEEL_STATE_ABSENT;
    while (keel_weights_find(file, variable(path, of, count))) count++;
    if (count == 0) return KEEL_OK;
    c->state_loaded = KEEL_STATE_OTHER;
    if (!c->built && c->iterations == 0) return KEEL_OK;
    for (int k = 0; k < c->n_optimizer; k++) KEEL_TRY(compare_one(m, file, of, k, &at, &same));
    if (!same || at != count) return KEEL_OK;
    const bool returns = c->stateless && !c->unread;
    if (returns) KEEL_TRY(keel_compiled_state_return(m, c));
    const keel_status s = keel_compiled_state_read(m, file);
    if (s < 0 && returns) keel_compiled_state_leave(c);
    if (s < 0) return s;
    c->state_loaded = KEEL_STATE_TAKEN;
    c->state_left_out = 0;
    return KEEL_OK;
}

typedef struct writing {
    const keel_model *m;
    keel_weights *file;
    keel_state_adder add;
    void *context;
} writing;

/* Scalars of Keras's files are float32. */
static keel_status add_real(const writing *w, const char *of, int64_t at, const double *value)
{
    const keel_tensor t = { .dtype = KEEL_FLOAT64, .data = (void *)value };
    char path[PATH];
    return w->add(w->context, variable(path, of, at), &t);
}

/* The variables of an optimizer, from *at on. */
static keel_status add_one(const writing *to, const char *of, int optimizer, int64_t *at)
{
    const bool scaled = keel_model_scales_loss(to->m);
    static const int32_t zero = 0;
    static const int64_t no_steps = 0;
    const keel_model *m = to->m;
    const keel_model_compiled *c = &m->compiled;
    const keel_model_optimizer *o = &c->optimizer[optimizer];
    const bool built = is_built(m, c, optimizer);
    const keel_tensor iterations = { .dtype = KEEL_INT64,
                                     .data = (void *)(built ? &c->iterations : &no_steps) };
    const keel_tensor mark = { .dtype = KEEL_INT32, .data = (void *)&zero };
    keel_status s = KEEL_OK;
    place *list = NULL;
    char path[PATH];
    int n = 0;
    KEEL_TRY(keel_weights_add(to->file, variable(path, of, *at), &iterations));
    if (!o->schedule) KEEL_TRY(add_real(to, of, *at + 1, &o->learning_rate));
    *at += first_slot(o);
    KEEL_TRY(list_places(m, c, optimizer, scaled, &list, &n));
    for (int i = 0; i < n && s >= 0; i++, ++*at) {
        const place *p = &list[i];
        const keel_tensor w = { .dtype = m->dtype,
                                .shape = m->weight[p->weight].info.spec.shape,
                                .data = m->weight[p->weight].data };
        const keel_tensor *slot = p->begins && c->iterations == 0 ? &w : &c->state[p->state];
        s = p->mark ? keel_weights_add(to->file, variable(path, of, *at), &mark)
                    : to->add(to->context, variable(path, of, *at), slot);
    }
    if (s >= 0 && keeps_number(m, o) && built && !scaled) s = add_real(to, of, (*at)++, &o->number);
    keel_free(list);
    return s;
}

static keel_status add_group_of(const writing *to, const char *of, const keel_type *type)
{
    char name[64];
    keel_snake_case(name, sizeof name, type->name);
    return keel_weights_add_group(to->file, of, name);
}

/* "optimizer/optimizers/adam_1/vars": the second Adam of the MultiOptimizer in the group `of`. */
static keel_status add_alone(const writing *to, const char *of, int optimizer)
{
    const keel_model_optimizer *all = to->m->compiled.optimizer;
    char name[40], group[PATH], number[16] = "";
    int64_t at = 0;
    int before = 0;
    for (int k = 0; k < optimizer; k++)
        before += all[k].optimizer.type == all[optimizer].optimizer.type;
    keel_snake_case(name, sizeof name, all[optimizer].optimizer.type->name);
    if (before) snprintf(number, sizeof number, "_%d", before);
    snprintf(group, sizeof group, "%.27s/optimizers/%.24s%s/vars", of, name, number);
    KEEL_TRY(add_group_of(to, group, all[optimizer].optimizer.type));
    return add_one(to, group, optimizer, &at);
}

/* What is inside a LossScaleOptimizer, or there is without: the variables of the one optimizer, or
 * a MultiOptimizer's own and those of its optimizers. */
static keel_status add_all(const writing *to, const char *of, int64_t at)
{
    static const double no_rate = 0;
    const keel_model_compiled *c = &to->m->compiled;
    const keel_tensor iterations = { .dtype = KEEL_INT64, .data = (void *)&c->iterations };
    char path[PATH];
    if (c->multi) {
        KEEL_TRY(keel_weights_add(to->file, variable(path, of, at), &iterations));
        KEEL_TRY(add_real(to, of, at + 1, &no_rate));
        at += MULTI;
    }
    for (int k = 0; k < c->n_optimizer; k++) KEEL_TRY(add_one(to, of, k, &at));
    return KEEL_OK;
}

/* The same as a group: Keras writes the optimizers of a MultiOptimizer again by themselves. */
static keel_status add_group_with_all(const writing *to, const char *group, const char *of)
{
    const keel_model_compiled *c = &to->m->compiled;
    const keel_type *type = c->multi ? &keel_multi_type : c->optimizer[0].optimizer.type;
    KEEL_TRY(add_group_of(to, of, type));
    KEEL_TRY(add_all(to, of, 0));
    for (int k = 0; c->multi && k < c->n_optimizer; k++) KEEL_TRY(add_alone(to, group, k));
    return KEEL_OK;
}

keel_status keel_compiled_state_add(const keel_model *m, keel_weights *file, keel_state_adder add,
                                    void *context)
{
    static const int64_t no_steps = 0;
    static const float no_rate = 0;
    const keel_model_compiled *c = &m->compiled;
    const writing to = { m, file, add, context };
    const keel_tensor own[OUTER] = {
        { .dtype = KEEL_INT64, .data = (void *)&no_steps },
        { .dtype = KEEL_FLOAT32, .data = (void *)&no_rate },
        [GOOD_STEPS] = { .dtype = KEEL_INT64, .data = (void *)&c->good_steps },
        [SCALE] = { .dtype = KEEL_FLOAT32, .data = (void *)&c->loss_scale },
    };
    char path[PATH];
    if (c->stateless) return KEEL_OK;
    if (!keel_model_scales_loss(m)) return add_group_with_all(&to, "optimizer", outer);
    KEEL_TRY(keel_weights_add_group(file, outer, "loss_scale_optimizer"));
    for (int64_t at = 0; at < OUTER; at++)
        KEEL_TRY(keel_weights_add(file, variable(path, outer, at), &own[at]));
    KEEL_TRY(add_all(&to, outer, OUTER));
    return add_group_with_all(&to, "optimizer/inner_optimizer", inside);
}

int64_t keel_model_state_bytes(const keel_model *m)
{
    const bool lost = m && m->compiled.stateless && !m->compiled.unread;
    return m && !lost ? keel_compiled_state_bytes(m, &m->compiled) : 0;
}
