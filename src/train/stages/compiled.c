/* A model compiled for rows of several shapes; see change.h. Those used last are kept. */
#include "base/memory.h"
#include "model/parts.h"
#include "train/stages/change.h"
#include <pthread.h>

enum { KEPT_MAX = 32 };

struct keel_compiled_rows {
    const keel_model *model;
    bool training, reads;
    const void **weight; /* [n_weight] */
    pthread_mutex_t lock;
    int n;
    uint64_t clock;
    keel_change_rows *first;
};

keel_status keel_compiled_rows_create(keel_compiled_rows **out, const keel_model *m, bool training)
{
    keel_compiled_rows *c = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    c->model = m;
    c->training = training;
    pthread_mutex_init(&c->lock, NULL);
    if (!(c->weight = keel_calloc((size_t)m->n_weight + 1, sizeof *c->weight))) {
        keel_compiled_rows_destroy(c);
        return KEEL_ENOMEM;
    }
    for (int i = 0; i < m->n_weight; i++) c->weight[i] = m->weight[i].data;
    ((keel_model *)m)->readers++;
    c->reads = true;
    *out = c;
    return KEEL_OK;
}

static void destroy(keel_change_rows *r)
{
    keel_rows_destroy(r->rows);
    keel_free(r);
}

void keel_compiled_rows_destroy(keel_compiled_rows *c)
{
    if (!c) return;
    while (c->first) {
        keel_change_rows *r = c->first;
        c->first = r->next;
        destroy(r);
    }
    pthread_mutex_destroy(&c->lock);
    if (c->reads) ((keel_model *)c->model)->readers--;
    keel_free(c->weight);
    keel_free(c);
}

/* ---- compiling ------------------------------------------------------------------------------- */

static keel_status emit_into(const keel_compiled_rows *c, keel_graph *g, const keel_spec *in,
                             keel_value *value)
{
    const keel_model *m = c->model;
    keel_value *mask = value + m->n_input, *out = mask + m->n_input, *out_mask = out + m->n_output;
    keel_model_chances chances = { .next = KEEL_MODEL_LAYERS_MAX };
    g->training = c->training; /* no gradient will flow, so g->backward stays false */
    for (int i = 0; i < m->n_input; i++) {
        mask[i] = KEEL_MASK_NONE;
        KEEL_TRY(keel_graph_input(g, &in[i], &value[i]));
    }
    if (!(chances.drew = keel_calloc(KEEL_MODEL_LAYERS_MAX, sizeof *chances.drew)))
        return KEEL_ENOMEM;
    const keel_status s = keel_model_emit_into(m, g, value, mask, NULL, &chances, out, out_mask);
    keel_free(chances.drew);
    return s;
}

static keel_status compile(const keel_compiled_rows *c, const keel_spec *in, keel_rows **out)
{
    const keel_model *m = c->model;
    keel_graph *g = NULL;
    keel_value *value = keel_calloc(2 * (size_t)(m->n_input + m->n_output), sizeof *value);
    keel_status s = value ? keel_graph_create(&g, m->dtype, false) : KEEL_ENOMEM;
    if (s >= 0) s = emit_into(c, g, in, value);
    if (s < 0)
        keel_graph_destroy(g);
    else
        s = keel_rows_create(out, g, value + 2 * m->n_input, m->n_output, c->weight);
    keel_free(value);
    return s;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool fits(const keel_change_rows *r, const keel_spec *in, int n)
{
    for (int i = 0; i < n; i++)
        if (r->in[i].dtype != in[i].dtype || !keel_shape_equal(&r->in[i].shape, &in[i].shape))
            return false;
    return true;
}

/* Drop the one that nobody has used for longest. */
static void make_room(keel_compiled_rows *c)
{
    keel_change_rows **oldest = NULL;
    if (c->n < KEPT_MAX) return;
    for (keel_change_rows **r = &c->first; *r; r = &(*r)->next)
        if (!(*r)->users && (!oldest || (*r)->used < (*oldest)->used)) oldest = r;
    if (!oldest) return;
    keel_change_rows *r = *oldest;
    *oldest = r->next;
    destroy(r);
    c->n--;
}

static keel_status add(keel_compiled_rows *c, const keel_spec *in, keel_change_rows **out)
{
    make_room(c);
    keel_change_rows *r = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    const keel_status s = compile(c, in, &r->rows);
    if (s < 0) {
        keel_free(r);
        return s;
    }
    for (int i = 0; i < c->model->n_input; i++) r->in[i] = in[i];
    r->next = c->first;
    c->first = r;
    c->n++;
    *out = r;
    return KEEL_OK;
}

keel_status keel_compiled_rows_take(keel_compiled_rows *c, const keel_spec *in,
                                    keel_change_rows **out)
{
    keel_status s = KEEL_OK;
    pthread_mutex_lock(&c->lock);
    keel_change_rows *r = c->first;
    while (r && !fits(r, in, c->model->n_input)) r = r->next;
    if (!r) s = add(c, in, &r);
    if (s >= 0) {
        r->users++;
        r->used = ++c->clock;
        *out = r;
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

void keel_compiled_rows_give(keel_compiled_rows *c, keel_change_rows *r)
{
    pthread_mutex_lock(&c->lock);
    r->users--;
    pthread_mutex_unlock(&c->lock);
}
