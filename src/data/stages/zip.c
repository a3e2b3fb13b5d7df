/* tf.data's zip: element i has the fields of element i of every dataset; it ends with the shortest.
 * Fields of one role that have the same name get the number of their dataset, or the next that is
 * free: x, x_1. */
#include "base/memory.h"
#include "data/iter.h"
#include "data/stage.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256 };

static bool is_taken(const keel_data_spec *spec, keel_data_role role, const char *name)
{
    bool taken = false;
    for (int i = 0; i < spec->n_field; i++)
        taken = taken || (spec->field[i].role == role && !strcmp(spec->field[i].path, name));
    return taken;
}

/* Add a field of dataset k by a name that is free in the fields so far. */
static keel_status put_field(keel_data_spec *spec, const keel_data_field *f, int k, char *name)
{
    keel_data_field copy = *f;
    snprintf(name, NAME_MAX_BYTES, "%s", f->path);
    for (int n = k; is_taken(spec, f->role, name); n++)
        snprintf(name, NAME_MAX_BYTES, "%.200s_%d", f->path, n);
    copy.path = name;
    return keel_spec_add_all(spec, 1, &copy, "zip");
}

/* A weight of a dataset, whose fields begin at `first`, is of the targets of that dataset, which
 * may have got other names. */
static keel_status find_target(keel_data_spec *spec, keel_data_field *weight, const keel_dataset *d,
                               int first)
{
    const keel_data_spec *own = &d->origin->spec;
    int all = 0, n = 0, last = -1;
    for (int i = 0; i < spec->n_field; i++) all += spec->field[i].role == KEEL_ROLE_TARGET;
    for (int i = 0; i < own->n_field; i++) {
        const keel_data_field *f = &own->field[i];
        if (f->role != KEEL_ROLE_TARGET || (weight->target && strcmp(f->path, weight->target) != 0))
            continue;
        n++;
        last = first + i;
    }
    if (!weight->target && (n == all || n == 0)) return KEEL_OK; /* of all that there are */
    if (n > 1)
        return keel_fail(KEEL_EUNSUP,
                         "'%s' is the weight of all %d targets of %s, and not of those beside it: "
                         "give each target a weight",
                         weight->path, n, keel_dataset_name(d));
    weight->target = spec->field[last].path;
    return KEEL_OK;
}

/* The names of classes: those of all datasets that have some. */
static keel_status join_classes(keel_data_spec *spec, const keel_data_spec *p, const char *name)
{
    if (!p->class_names) return KEEL_OK;
    if (!spec->class_names) {
        spec->class_names = p->class_names;
        spec->n_classes = p->n_classes;
        return keel_spec_copy_classes(spec);
    }
    bool same = spec->n_classes == p->n_classes;
    for (int64_t i = 0; same && i < p->n_classes; i++)
        same = !strcmp(spec->class_names[i], p->class_names[i]);
    if (same) return KEEL_OK;
    return keel_fail(KEEL_ESHAPE,
                     "%s has other classes than the first dataset: labels of several targets must "
                     "be numbers, or words for the same classes",
                     name);
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    int n = 0;
    for (int k = 0; k < s->n_parent; k++) n += s->parent[k]->origin->spec.n_field;
    if (n > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%d fields; a row has at most %d", n, KEEL_FIELDS_MAX);
    char(*name)[NAME_MAX_BYTES] = s->made = keel_calloc((size_t)n, NAME_MAX_BYTES);
    if (!name) return KEEL_ENOMEM;
    spec->n_field = 0;
    for (int k = 0; k < s->n_parent; k++) {
        const keel_dataset *d = s->parent[k];
        const keel_data_spec own = keel_stage_spec(d), *p = &own;
        if (p->batched != spec->batched)
            return keel_fail(KEEL_ESHAPE, "%s has %s, and the first dataset %s",
                             keel_dataset_name(d), p->batched ? "batches" : "rows",
                             spec->batched ? "batches" : "rows");
        for (int i = 0; i < p->n_field; i++)
            KEEL_TRY(put_field(spec, &p->field[i], k, name[spec->n_field]));
        if (!k) continue;
        KEEL_TRY(join_classes(spec, p, keel_dataset_name(d)));
        spec->one_shot |= p->one_shot;
        if (p->max_rows < spec->max_rows) spec->max_rows = p->max_rows;
        if (p->endless) continue;
        if (spec->endless)
            spec->rows = p->rows;
        else if (spec->rows < 0 || p->rows < 0)
            spec->rows = -1;
        else if (p->rows < spec->rows)
            spec->rows = p->rows;
        spec->endless = false;
    }
    for (int k = 0, first = 0; k < s->n_parent; k++) {
        const int end = first + s->parent[k]->origin->spec.n_field;
        for (int i = first; i < end; i++)
            if (spec->field[i].role == KEEL_ROLE_WEIGHT)
                KEEL_TRY(find_target(spec, &spec->field[i], s->parent[k], first));
        first = end;
    }
    if (spec->batched) s->by_index = false; /* batches must have equal sizes, which is seen there */
    return KEEL_OK;
}

static bool leaves_early(const keel_applied *s)
{
    return !s->spec->endless; /* all but the shortest */
}

static void release(keel_applied *s)
{
    keel_free(s->made);
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!inner) return KEEL_ENOMEM;
    int first = 0;
    for (int k = 0; k < s->n_parent; k++) {
        const int n = s->parent[k]->origin->spec.n_field;
        keel_row part = { .want = row->want + first, .count = row->count + first };
        memcpy(part.at, row->at + first, (size_t)n * sizeof *part.at);
        KEEL_TRY(keel_dataset_read(s->parent[k], keel_stage_into(s, k, &at), &part, inner));
        first += n;
    }
    return KEEL_OK;
}

static int length_from(const keel_applied *s, int *i)
{
    int k = 0;
    while (*i >= s->parent[k]->origin->spec.n_field) *i -= s->parent[k++]->origin->spec.n_field;
    return k;
}

static int64_t length(const keel_applied *s, int i, keel_position at)
{
    const int k = length_from(s, &i);
    return keel_dataset_length(s->parent[k], i, keel_stage_into(s, k, &at));
}

typedef struct zip_iter {
    keel_element *at[KEEL_PARENTS_MAX]; /* read already: kept after a failure of another */
} zip_iter;

static void end(keel_iter *it)
{
    zip_iter *w = it->own;
    for (int k = 0; k < it->n_parent; k++) {
        keel_element_release(w->at[k]);
        w->at[k] = NULL;
    }
}

/* The first dataset whose element is not there yet; n_parent: all are. */
static int missing(const keel_iter *it)
{
    const zip_iter *w = it->own;
    int k = 0;
    while (k < it->n_parent && w->at[k]) k++;
    return k;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    zip_iter *w = it->own;
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    int n = 0;
    for (int k = missing(it); k < it->n_parent; k = missing(it)) {
        const keel_status s = keel_iter_next(it->parent[k], &w->at[k]);
        if (s != KEEL_OK) return s;
    }
    for (int k = 0; k < it->n_parent; k++)
        for (int i = 0; i < w->at[k]->n_field; i++) {
            data[n] = w->at[k]->field[i].data;
            shape[n++] = w->at[k]->field[i].shape;
        }
    for (int i = 1; i < n && it->spec->batched; i++)
        if (shape[i].dim[0] != shape[0].dim[0])
            return keel_fail(KEEL_ESHAPE, "zip: batches of %lld and of %lld rows",
                             (long long)shape[0].dim[0], (long long)shape[i].dim[0]);
    KEEL_TRY(keel_element_copy(out, it->run->account, it->spec, data, shape));
    (*out)->place = w->at[0]->place;
    end(it);
    return KEEL_OK;
}

/* Elements that do not go together are left out together. */
static void pass(keel_iter *it)
{
    const int k = missing(it);
    if (k < it->n_parent)
        keel_iter_pass(it->parent[k]);
    else
        end(it);
}

const keel_stage keel_stage_zip = {
    .type = { .name = "zip",
              .module = "keel.data",
              .help =
                  "The fields of several datasets side by side, up to the end of the shortest." },
    .n_parent = -1,
    .leaves_early = leaves_early,
    .infer = infer,
    .read = read,
    .length = length,
    .length_from = length_from,
    .iter_size = sizeof(zip_iter),
    .next = next,
    .end = end,
    .pass = pass,
    .release = release,
};
