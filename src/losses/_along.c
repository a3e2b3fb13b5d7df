/* See along.h. */
#include "losses/along.h"
#include "ops/all.h"
#include "ops/args.h"

static bool has_one_more(const keel_shape *a, const keel_shape *b)
{
    if (b->rank != a->rank + 1 || b->dim[a->rank] != 1) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

/* The dims of a row in the order that puts dim `at` last. */
static keel_permute_args order(int64_t at, int rank)
{
    keel_permute_args o = { 0 };
    for (int64_t d = 0; d < rank; d++) o.from[d] = d < at ? d : d + 1;
    if (rank > 0) o.from[rank - 1] = at;
    return o;
}

static keel_shape moved(int64_t at, const keel_shape *from)
{
    const keel_permute_args o = order(at, from->rank);
    keel_shape to = *from;
    for (int i = 0; i < to.rank; i++) to.dim[i] = from->dim[o.from[i]];
    return to;
}

keel_status keel_along_find(keel_along *out, int64_t axis, keel_target_kind kind, const char *name,
                            const keel_spec *prediction, const keel_spec *target)
{
    const bool labels = keel_target_is_labels(kind);
    const keel_shape *p = &prediction->shape, *t = &target->shape;
    /* As Keras, which squeezes the prediction, but not to one dim, that of rows. */
    const keel_shape *s = !labels && t->rank > 0 && has_one_more(t, p) ? t : p;
    keel_along a = { .prediction = *prediction, .target = *target };
    const int64_t at = axis < 0 ? axis + s->rank : axis - 1;
    if (axis == 0 || axis == -1 - s->rank)
        return keel_fail(KEEL_EUNSUP, "%s: axis %lld is the batch: rows do not see each other",
                         name, (long long)axis);
    if (at < 0 || at >= s->rank)
        return keel_fail(KEEL_EARG, "%s: axis %lld: predictions have %d dims, rows included", name,
                         (long long)axis, s->rank + 1);
    a.axis = at;
    a.moves = at != s->rank - 1;
    if (a.moves && !labels && !keel_shape_equal(p, t))
        return keel_fail(KEEL_ESHAPE,
                         "%s: with an axis that is not the last, targets must have the shape of "
                         "predictions",
                         name);
    if (a.moves) a.prediction.shape = moved(at, p);
    if (a.moves && !labels) a.target.shape = moved(at, t);
    *out = a;
    return KEEL_OK;
}

keel_status keel_along_loss(keel_along *out, const keel_loss *l, const void *args,
                            const keel_spec *prediction, const keel_spec *target)
{
    *out = (keel_along){ .axis = prediction->shape.rank - 1,
                         .prediction = *prediction,
                         .target = *target };
    if (!l->axis_offset) return KEEL_OK;
    const int64_t axis = *(const int64_t *)((const char *)args + l->axis_offset);
    if (axis == -1) return KEEL_OK;
    KEEL_TRY(keel_along_find(out, axis, l->target, l->type.name, prediction, target));
    const char *fixed = out->moves && l->along_last ? l->along_last(args) : NULL;
    if (!fixed) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "%s: %s with axis %lld: Keras 3.15 takes it along the last dim all the same",
                     l->type.name, fixed, (long long)axis);
}

keel_status keel_along_check(const keel_loss *l, const void *args, const keel_spec *prediction,
                             const keel_spec *target, int64_t *elements)
{
    keel_along a;
    KEEL_TRY(keel_along_loss(&a, l, args, prediction, target));
    return keel_loss_check(l, args, &a.prediction, &a.target, elements);
}

keel_status keel_along_emit(const keel_along *a, keel_target_kind kind, keel_graph *g,
                            keel_value *prediction, keel_value *target)
{
    const keel_permute_args last = order(a->axis, a->prediction.shape.rank);
    keel_value *of[2] = { prediction, target };
    for (int i = 0; i < (keel_target_is_labels(kind) ? 1 : 2) && a->moves; i++) {
        const keel_value in = *of[i];
        const keel_node_parts parts = {
            .op = &keel_op_permute, .args = &last, .n_in = 1, .in = &in
        };
        KEEL_TRY(keel_graph_add(g, &parts, of[i], 1));
    }
    return KEEL_OK;
}
