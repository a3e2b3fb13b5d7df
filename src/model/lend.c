/* See lend.h. */
#include "model/lend.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

static size_t bytes_of(const keel_model *m, const keel_model_weight *w)
{
    return (size_t)keel_shape_count(&w->info.spec.shape) * keel_dtype_size(m->dtype);
}

bool keel_model_lend(keel_model *m, int weight, void *place, bool copies)
{
    keel_model_weight *w = &m->weight[weight];
    if (w->data == place) return true;
    const bool reads = m->readers > 0, owns = !w->own;
    const size_t n = bytes_of(m, w);
    const bool leaves = owns && !reads;
    if (copies)
        keel_copy(place, w->data, n, leaves);
    else if (leaves)
        keel_leave(w->data, n);
    if (reads) return false;
    if (owns) w->own = w->data;
    w->data = place;
    return true;
}

void keel_model_take_back(keel_model *m, const void *begin, size_t n_bytes, bool leaves)
{
    for (int i = 0; i < m->n_weight; i++) {
        keel_model_weight *w = &m->weight[i];
        if (!w->own || (uintptr_t)w->data - (uintptr_t)begin >= n_bytes) continue;
        keel_copy(w->own, w->data, bytes_of(m, w), leaves);
        w->data = w->own;
        w->own = NULL;
    }
}

void keel_model_take_all_back(keel_model *m)
{
    keel_model_take_back(m, NULL, SIZE_MAX, false);
}
