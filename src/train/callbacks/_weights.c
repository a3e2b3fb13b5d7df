/* See _weights.h. */
#include "train/callbacks/_weights.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

typedef struct kept {
    int n;
    keel_callback_tensor *tensor; /* [n] */
} kept;

static bool fits(const kept *k, const keel_model *m)
{
    if (!k || k->n != m->n_weight) return false;
    for (int i = 0; i < k->n; i++) {
        const keel_spec *spec = &m->weight[i].info.spec;
        const keel_tensor *t = &k->tensor[i].tensor;
        if (t->dtype != spec->dtype || !keel_shape_equal(&t->shape, &spec->shape) ||
            strcmp(k->tensor[i].name, m->weight[i].info.name))
            return false;
    }
    return true;
}

int64_t keel_kept_weights_bytes(const keel_model *m)
{
    int64_t sum = 0;
    for (int i = 0; i < m->n_weight; i++) {
        const keel_spec *spec = &m->weight[i].info.spec;
        sum += keel_shape_count(&spec->shape) * (int64_t)keel_dtype_size(spec->dtype);
    }
    return sum;
}

keel_status keel_kept_weights_create(void **out, const keel_model *m)
{
    if (fits(*out, m)) return KEEL_OK;
    keel_kept_weights_destroy(*out);
    *out = NULL;
    kept *k = keel_calloc(1, sizeof *k);
    keel_status s = k ? KEEL_OK : KEEL_ENOMEM;
    if (k && !(k->tensor = keel_calloc((size_t)m->n_weight, sizeof *k->tensor))) s = KEEL_ENOMEM;
    for (int i = 0; s >= 0 && i < m->n_weight; i++) {
        const keel_spec *spec = &m->weight[i].info.spec;
        keel_callback_tensor *t = &k->tensor[k->n];
        snprintf(t->name, sizeof t->name, "%s", m->weight[i].info.name);
        if ((s = keel_tensor_create(&t->tensor, spec->dtype, &spec->shape)) >= 0) k->n++;
    }
    if (s < 0)
        keel_kept_weights_destroy(k);
    else
        *out = k;
    return s;
}

void keel_kept_weights_destroy(void *kept_)
{
    kept *k = kept_;
    if (!k) return;
    for (int i = 0; i < k->n; i++) keel_tensor_free(&k->tensor[i].tensor);
    keel_free(k->tensor);
    keel_free(k);
}

static size_t bytes_of(const keel_tensor *t)
{
    return (size_t)keel_shape_count(&t->shape) * keel_dtype_size(t->dtype);
}

void keel_kept_weights_take(void *kept_, const keel_model *m)
{
    kept *k = kept_;
    keel_model_pull(m, KEEL_LIVE_WEIGHTS);
    for (int i = 0; i < k->n; i++)
        memcpy(k->tensor[i].tensor.data, m->weight[i].data, bytes_of(&k->tensor[i].tensor));
}

void keel_kept_weights_give(const void *kept_, keel_model *m)
{
    const kept *k = kept_;
    keel_model_change(m, KEEL_LIVE_WEIGHTS);
    for (int i = 0; i < k->n; i++)
        memcpy(m->weight[i].data, k->tensor[i].tensor.data, bytes_of(&k->tensor[i].tensor));
}

keel_status keel_kept_weights_tensor(void *kept_, int i, keel_callback_tensor *out)
{
    const kept *k = kept_;
    if (i < 0 || !k || i >= k->n) return KEEL_END;
    *out = k->tensor[i];
    return KEEL_OK;
}
