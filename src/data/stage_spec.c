/* The spec of a stage's parent: as that of what the stage makes, and beside those of others. */
#include "base/memory.h"
#include "data/stage.h"
#include "tensor/shape.h"
#include <string.h>

keel_status keel_spec_copy_classes(keel_data_spec *spec)
{
    char **from = spec->class_names;
    const int64_t n = spec->n_classes;
    spec->class_names = NULL;
    if (!from || !n) return KEEL_OK;
    if (!(spec->class_names = keel_calloc((size_t)n, sizeof *from))) return KEEL_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        if (!(spec->class_names[i] = keel_strdup(from[i]))) return KEEL_ENOMEM;
    return KEEL_OK;
}

void keel_spec_free_classes(keel_data_spec *spec)
{
    for (int64_t i = 0; spec->class_names && i < spec->n_classes; i++)
        keel_free(spec->class_names[i]);
    keel_free(spec->class_names);
}

keel_data_spec keel_stage_spec(const keel_dataset *d)
{
    keel_data_spec spec = d->origin->spec;
    if (d->rows >= 0) spec.rows = d->rows;
    if (!d->origin->source->read && !spec.by_row) {
        spec.batched = true;
        spec.rows = spec.yields;
    }
    return spec;
}

/* Numbers of labels are those of the first dataset. Classes behind those of `b` may be missing. */
static keel_status check_classes(const keel_data_spec *a, const keel_data_spec *b, const char *name)
{
    if (!a->class_names || !b->class_names) return KEEL_OK;
    for (int64_t i = 0; i < b->n_classes; i++) {
        if (i >= a->n_classes)
            return keel_fail(KEEL_ESHAPE,
                             "%s: class %lld is '%.80s', which the first dataset has not: give "
                             "both the same classes",
                             name, (long long)i, b->class_names[i]);
        if (!strcmp(a->class_names[i], b->class_names[i])) continue;
        return keel_fail(KEEL_ESHAPE,
                         "%s: class %lld is '%.80s', and in the first dataset '%.80s': give both "
                         "the same classes",
                         name, (long long)i, b->class_names[i], a->class_names[i]);
    }
    return KEEL_OK;
}

static bool same_target(const keel_data_field *p, const keel_data_field *q)
{
    return p->target && q->target ? !strcmp(p->target, q->target) : p->target == q->target;
}

keel_status keel_stage_check_same(const keel_data_spec *a, const keel_data_spec *b,
                                  const keel_dataset *d)
{
    const char *name = keel_dataset_name(d);
    if (a->n_field != b->n_field)
        return keel_fail(KEEL_ESHAPE, "%s has %d fields, and the first dataset %d", name,
                         b->n_field, a->n_field);
    if (a->batched != b->batched)
        return keel_fail(KEEL_ESHAPE, "%s has %s, and the first dataset %s", name,
                         b->batched ? "batches" : "rows", a->batched ? "batches" : "rows");
    for (int i = 0; i < a->n_field; i++) {
        const keel_data_field *p = &a->field[i], *q = &b->field[i];
        char left[96], right[96];
        if (strcmp(p->path, q->path) || p->role != q->role || p->dtype != q->dtype)
            return keel_fail(KEEL_ESHAPE,
                             "%s: field %d is '%s', and in the first dataset '%s', or "
                             "they differ in role or type",
                             name, i, q->path, p->path);
        if (!same_target(p, q))
            return keel_fail(KEEL_ESHAPE, "%s: '%s' weighs other targets than in the first dataset",
                             name, q->path);
        if (keel_shape_equal(&p->shape, &q->shape)) continue;
        keel_shape_text(left, &p->shape);
        keel_shape_text(right, &q->shape);
        return keel_fail(KEEL_ESHAPE, "%s: '%s' is %s, and in the first dataset %s", name, q->path,
                         right, left);
    }
    return check_classes(a, b, name);
}
