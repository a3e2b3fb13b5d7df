/* See snapshot.h. */
#include "model/snapshot.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

static keel_status copy_weights(keel_model *to, const keel_model *from)
{
    to->weight = keel_calloc((size_t)from->n_weight, sizeof *to->weight);
    if (!to->weight) return KEEL_ENOMEM;
    memcpy(to->weight, from->weight, (size_t)from->n_weight * sizeof *to->weight);
    for (int i = 0; i < from->n_weight; i++) to->weight[i].data = to->weight[i].own = NULL;
    for (int i = 0; i < from->n_weight; i++) {
        const size_t n = (size_t)keel_shape_count(&to->weight[i].info.spec.shape);
        to->weight[i].data = keel_aligned_calloc(n, keel_dtype_size(from->dtype));
        if (!to->weight[i].data) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

static keel_status copy_optimizers(keel_model_compiled *to, const keel_model_compiled *from)
{
    if (!from->given) return KEEL_OK;
    to->optimizer = keel_calloc((size_t)from->n_optimizer, sizeof *to->optimizer);
    to->state = keel_calloc((size_t)from->n_state, sizeof *to->state);
    if (!to->optimizer || !to->state) return KEEL_ENOMEM;
    memcpy(to->optimizer, from->optimizer, (size_t)from->n_optimizer * sizeof *to->optimizer);
    for (int i = 0; i < from->n_state; i++) {
        const keel_tensor *t = &from->state[i];
        if (t->data) KEEL_TRY(keel_tensor_create(&to->state[i], t->dtype, &t->shape));
    }
    return KEEL_OK;
}

void keel_snapshot_destroy(keel_snapshot *s)
{
    if (!s) return;
    keel_model *m = &s->model;
    for (int i = 0; m->weight && i < m->n_weight; i++) keel_free(m->weight[i].data);
    for (int i = 0; m->compiled.state && i < m->compiled.n_state; i++)
        keel_tensor_free(&m->compiled.state[i]);
    keel_free(m->weight);
    keel_free(m->compiled.optimizer);
    keel_free(m->compiled.state);
    keel_model_texts_free(&s->texts);
    keel_free(s);
}

keel_status keel_snapshot_create(keel_snapshot **out, const keel_model *m)
{
    keel_snapshot *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->model = *m;
    s->model.weight = NULL;
    s->model.compiled.optimizer = NULL;
    s->model.compiled.state = NULL;
    keel_status st = copy_weights(&s->model, m);
    if (st >= 0) st = copy_optimizers(&s->model.compiled, &m->compiled);
    if (st >= 0) st = keel_model_texts_make(&s->texts, m);
    if (st < 0) {
        keel_snapshot_destroy(s);
        return st;
    }
    *out = s;
    return KEEL_OK;
}

keel_status keel_snapshot_write(const keel_snapshot *s, const keel_zip_member *more,
                                const char *path)
{
    return keel_model_write(&s->model, &s->texts, more, path);
}
