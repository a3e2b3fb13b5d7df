/* See row_states.h. */
#include "model/row_states.h"
#include "base/memory.h"
#include "model/model.h"
#include <string.h>

static keel_status add(keel_row_states *s, const char *name, const keel_shape *shape, int64_t rows,
                       size_t element)
{
    int64_t count;
    keel_row_state *more = keel_grow(s->state, (size_t)s->n + 1, sizeof *more);
    if (!more) return KEEL_ENOMEM;
    s->state = more;
    keel_row_state *x = &more[s->n];
    *x = (keel_row_state){ .shape = *shape, .rows = rows };
    if (!keel_mul_i64(keel_shape_count(shape), rows, &count) ||
        !keel_mul_i64(count, (int64_t)element, &x->bytes))
        return keel_fail(KEEL_ESHAPE, "'%s' of %lld rows is too large", name, (long long)rows);
    x->data = keel_aligned_calloc((size_t)count, element);
    x->name = keel_strdup(name);
    s->n++; /* keel_row_states_free frees what was made */
    return x->data && x->name ? KEEL_OK : KEEL_ENOMEM;
}

keel_status keel_row_states_find(keel_row_states *s, const keel_graph *g,
                                 const keel_graph_carried *c, int *index)
{
    const keel_shape *shape = &keel_graph_spec(g, c->end)->shape;
    char now[96], before[96];
    for (*index = 0; *index < s->n; ++*index) {
        const keel_row_state *x = &s->state[*index];
        if (strcmp(x->name, c->name)) continue;
        if (keel_shape_equal(&x->shape, shape) && x->rows == g->batch) return KEEL_OK;
        keel_shape_text(now, shape);
        keel_shape_text(before, &x->shape);
        return keel_fail(KEEL_EUNSUP,
                         "the state '%s' of rows of %s cannot go on with rows of %s: give the "
                         "Input of a stateful layer fixed dims",
                         c->name, before, now);
    }
    return add(s, c->name, shape, g->batch, keel_dtype_size(g->real));
}

void keel_row_states_free(keel_row_states *s)
{
    for (int i = 0; i < s->n; i++) {
        keel_free(s->state[i].name);
        keel_free(s->state[i].data);
    }
    keel_free(s->state);
    *s = (keel_row_states){ 0 };
}

/* The Input that fixes the batch size; NULL: none does. */
static keel_model_layer *fixed_input(const keel_model *m)
{
    for (int i = 0; i < m->n_layer; i++)
        if (m->layer[i].batch > 0) return &m->layer[i];
    return NULL;
}

int64_t keel_model_batch(const keel_model *m)
{
    const keel_model_layer *l = fixed_input(m);
    return l ? l->batch : -1;
}

void keel_model_set_batch(keel_model *m, int64_t rows)
{
    keel_model_layer *l = fixed_input(m);
    if (l) l->batch = rows;
}

void keel_model_reset_states(keel_model *m)
{
    for (int i = 0; i < m->row_states.n; i++)
        memset(m->row_states.state[i].data, 0, (size_t)m->row_states.state[i].bytes);
}
