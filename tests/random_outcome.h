/* What a fit drawn by chance leaves, and how two of them differ. */
#ifndef TESTS_RANDOM_OUTCOME_H
#define TESTS_RANDOM_OUTCOME_H
#include "random_machine.h"

typedef struct outcome {
    bool there;
    keel_status status, scored;
    char text[TEXT];
    keel_model *model;
    keel_history history;
    keel_logs logs;
    keel_tensor predicted;
    int calls[DEVICES], given[DEVICES], steps;
    int64_t requests; /* for memory */
} outcome;

static inline void forget(outcome *o)
{
    if (!o->there) return;
    keel_tensor_free(&o->predicted);
    keel_history_free(&o->history);
    keel_model_destroy(o->model);
    o->there = false;
}

/* ---- compared -------------------------------------------------------------------------------- */

static const char *why; /* what differs */
static char why_text[TEXT];

/* Bits, or numbers to 1e-7 of the largest. */
static bool alike(const char *what, const void *a, const void *b, keel_dtype dtype, int64_t n,
                  bool bits)
{
    double size = 1;
    if (!memcmp(a, b, (size_t)n * keel_dtype_size(dtype))) return true;
    for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(at(a, dtype, i)));
    for (int64_t i = 0; i < n; i++) {
        const double u = at(a, dtype, i), v = at(b, dtype, i);
        if (u == v ? !bits : isnan(u) && isnan(v)) continue;
        if (bits ? !memcmp(&u, &v, sizeof u) : fabs(u - v) <= 1e-7 * size) continue;
        snprintf(why_text, sizeof why_text, "%s[%d of %d] is %.17g, and %.17g", what, (int)i,
                 (int)n, u, v);
        why = why_text;
        return false;
    }
    return true;
}

static inline bool same_weights(const outcome *a, const outcome *b, bool bits)
{
    for (int i = 0; i < keel_model_weight_count(a->model); i++) {
        keel_tensor u, v;
        const char *name = keel_model_weight_name(a->model, i);
        must(keel_model_get_weight(a->model, name, &u));
        must(keel_model_get_weight(b->model, name, &v));
        const bool same = alike(name, u.data, v.data, u.dtype, keel_shape_count(&u.shape), bits);
        keel_tensor_free(&u);
        keel_tensor_free(&v);
        if (!same) return false;
    }
    return true;
}

static bool differs(const char *what)
{
    why = what;
    return false;
}

/* What the optimizer keeps, too, which a fit begins before its first step. */
static inline bool same_state(const outcome *a, const outcome *b, bool bits)
{
    if (!same_weights(a, b, bits)) return false;
    const keel_model_compiled *c = &a->model->compiled, *d = &b->model->compiled;
    for (int i = 0; i < c->n_state; i++)
        if (c->state[i].data && d->state[i].data &&
            !alike("a state of the optimizer", c->state[i].data, d->state[i].data,
                   c->state[i].dtype, keel_shape_count(&c->state[i].shape), bits))
            return false;
    return c->iterations == d->iterations || differs("the steps of the optimizer");
}

/* What other things than steps that count move, too: states of stateful layers, by validation, and
 * the scale of the loss, by steps that are left out. */
static inline bool same_besides(const outcome *a, const outcome *b, bool bits)
{
    const keel_model_compiled *c = &a->model->compiled, *d = &b->model->compiled;
    if (c->loss_scale != d->loss_scale || c->good_steps != d->good_steps)
        return differs("the scale of the loss");
    const keel_row_states *r = &a->model->row_states, *q = &b->model->row_states;
    for (int i = 0; i < r->n && r->n == q->n; i++)
        if (!alike("what rows go on from", r->state[i].data, q->state[i].data, a->model->dtype,
                   r->state[i].rows * keel_shape_count(&r->state[i].shape), bits))
            return false;
    return true;
}

/* history: its steps and epochs, too, which a fit that goes on has not. */
static inline bool same(const outcome *a, const outcome *b, bool bits)
{
    why = "";
    if (a->status != b->status) return differs(a->status < 0 ? a->text : b->text);
    if (!same_state(a, b, bits) || !same_besides(a, b, bits)) return false;
    if (a->status < 0) return true;
    if (a->history.epochs != b->history.epochs || a->history.count != b->history.count)
        return differs("other epochs");
    if (!alike("a log of fit", a->history.value, b->history.value, KEEL_FLOAT64,
               a->history.epochs * a->history.count, bits))
        return false;
    if (a->scored != b->scored) return differs(a->scored < 0 ? a->text : b->text);
    if (a->scored < 0) return true;
    return alike("a log of evaluate", a->logs.value, b->logs.value, KEEL_FLOAT64, a->logs.count,
                 bits) &&
           alike("a prediction", a->predicted.data, b->predicted.data, a->predicted.dtype,
                 keel_shape_count(&a->predicted.shape), bits);
}

#endif
