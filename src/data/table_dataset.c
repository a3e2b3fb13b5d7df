/* The dataset of a table that was read. */
#include "base/memory.h"
#include "base/plural.h"
#include "data/labels.h"
#include "data/table.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

static bool is_named(const keel_dataset_options *o, const char *label)
{
    for (int64_t i = 0; i < o->class_name_count; i++)
        if (!strcmp(o->class_names[i], label)) return true;
    return false;
}

/* One NA among numbers would make class names of all of them, so it is refused. Among class names
 * it is one. */
static keel_status check_missing(const keel_table *t, const keel_table_field *f,
                                 const keel_dataset_options *o)
{
    double v;
    const char *const *label = f->data, *first = NULL;
    for (int64_t i = 0; f->missing && i < t->n_rows; i++) {
        if (keel_read_number(label[i], &v)) continue;
        if (!keel_table_is_missing(label[i]) || is_named(o, label[i])) return KEEL_OK;
        if (!first) first = label[i];
    }
    if (!first) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT,
                     "%s: %s '%s' has '%.40s', a missing value, which is not a number; targets are "
                     "not filled; such rows are left out with --missing drop",
                     f->missing, t->noun, f->column, first);
}

static keel_status own_labels(const keel_table *t, const keel_table_field *f, int target,
                              keel_tensor *y, keel_classes *classes)
{
    char what[512];
    keel_classes these = { 0 };
    snprintf(what, sizeof what, "%.380s: %s '%.60s'", t->name, t->noun, f->column);
    const keel_dataset_options o = keel_labels_options(t->o, t->o->n_target ? target : -1);
    KEEL_TRY(check_missing(t, f, &o));
    KEEL_TRY(keel_labels_from_texts(y, &these, f->data, t->n_rows, &o, o.label_mode, what));
    if (!these.n) return KEEL_OK;
    if (classes->n) {
        keel_classes_free(&these);
        keel_tensor_free(y);
        return keel_fail(KEEL_EUNSUP,
                         "%s: class names as labels in more than one target; use numbers", what);
    }
    *classes = these;
    return KEEL_OK;
}

static keel_shape with_rows(const keel_table *t, const keel_table_field *f)
{
    keel_shape s = { f->shape.rank + 1, { t->n_rows } };
    for (int i = 0; i < f->shape.rank; i++) s.dim[i + 1] = f->shape.dim[i];
    return s;
}

static keel_status take_field(keel_table *t, int i, int target, keel_tensor *out,
                              keel_classes *classes)
{
    keel_table_field *f = &t->field[i];
    if (f->cells == KEEL_CELLS_LABELS) return own_labels(t, f, target, out, classes);
    const keel_shape shape = with_rows(t, f);
    if (f->cells == KEEL_CELLS_TEXTS) return keel_strings_create(out, &shape, f->data);
    *out = (keel_tensor){ f->dtype, shape, f->data };
    f->data = NULL;
    return KEEL_OK;
}

/* By its column: the dataset would name the field, which nobody has given. */
static keel_status check_weights(const keel_table *t)
{
    for (int i = 0; i < t->n_field; i++) {
        const char *target = t->field[i].target;
        bool found = !target || t->o->label_mode == KEEL_LABEL_NONE;
        for (int k = 0; k < t->n_field && !found; k++)
            found = t->field[k].role == KEEL_ROLE_TARGET && !strcmp(t->field[k].path, target);
        if (!found)
            return keel_fail(KEEL_EARG,
                             "%s: '%s' has weights for '%s', but there is no such target", t->name,
                             t->field[i].column, target);
    }
    return KEEL_OK;
}

/* Inputs first, then targets and weights. */
static keel_status make(keel_dataset **out, keel_table *t)
{
    keel_array_field f[KEEL_FIELDS_MAX] = { 0 };
    keel_classes classes = { 0 };
    keel_status s = KEEL_OK;
    int n = 0;
    for (int role = KEEL_ROLE_INPUT; role <= KEEL_ROLE_WEIGHT; role++)
        for (int i = 0, target = 0; s >= 0 && i < t->n_field; i++) {
            if ((int)t->field[i].role != role) continue;
            if (role != KEEL_ROLE_INPUT && t->o->label_mode == KEEL_LABEL_NONE) continue;
            f[n] = (keel_array_field){ .path = t->field[i].path,
                                       .role = t->field[i].role,
                                       .target = t->field[i].target };
            s = take_field(t, i, target++, &f[n].array, &classes);
            n += s >= 0;
        }
    if (s >= 0) return keel_dataset_adopt_fields(out, f, n, classes.n, classes.name, t->name);
    for (int i = 0; i < n; i++) keel_tensor_free(&f[i].array);
    keel_classes_free(&classes);
    return s;
}

keel_status keel_table_dataset(keel_dataset **out, keel_table *t)
{
    if (!t->n_rows && t->dropped)
        return keel_fail(KEEL_EDATA, "%s: each of its %lld row%s has a missing value (first: %s)",
                         t->name, (long long)t->dropped, keel_s(t->dropped), t->first);
    if (!t->n_rows) return keel_fail(KEEL_EDATA, "%s: no rows", t->name);
    KEEL_TRY(check_weights(t));
    KEEL_TRY(keel_table_fill(t));
    KEEL_TRY(keel_table_sort_words(t));
    KEEL_TRY(make(out, t));
    keel_table_tell(t);
    return KEEL_OK;
}
