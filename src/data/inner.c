/* See inner.h. */
#include "data/inner.h"
#include <string.h>

keel_status keel_inner_spec(keel_data_spec *spec, const keel_dataset *like)
{
    keel_spec_free_classes(spec);
    *spec = keel_stage_spec(like);
    spec->rows = spec->yields = -1;
    spec->one_shot = false;
    return keel_spec_copy_classes(spec);
}

/* Its budget is an entry of the run's ledger, which is made before the first element. */
static bool substitutes(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    bool any = s && !strcmp(s->stage->type.name, "substitute");
    for (int i = 0; s && i < s->n_parent; i++) any |= substitutes(s->parent[i]);
    return any;
}

static keel_status check(const keel_iter *outer, const keel_dataset *d)
{
    const keel_data_spec made = keel_stage_spec(d), *want = outer->spec;
    const char *name = keel_dataset_name(d);
    KEEL_TRY(keel_stage_check_same(want, &made, d));
    if (substitutes(d))
        return keel_fail(KEEL_EUNSUP,
                         "%s: substitute counts the rows of a run, and this dataset is made on the "
                         "way: put ignore_errors behind the stage that makes it",
                         name);
    if (want->batched && made.max_rows > want->max_rows)
        return keel_fail(KEEL_ESHAPE,
                         "%s has batches of up to %lld rows, and the first dataset %lld", name,
                         (long long)made.max_rows, (long long)want->max_rows);
    for (int64_t i = 0; i < want->n_classes && want->class_names; i++)
        if (made.n_classes != want->n_classes || !made.class_names ||
            strcmp(made.class_names[i], want->class_names[i]) != 0)
            return keel_fail(KEEL_ESHAPE,
                             "%s has other classes than the first dataset, so that numbers of "
                             "labels would differ: give the class names",
                             name);
    return KEEL_OK;
}

static uint64_t seed_at(const keel_iter *outer, const keel_position *at)
{
    uint32_t word[4];
    const keel_chance c = keel_stage_chance(outer->applied, at);
    keel_philox(word, &c, (uint64_t)at->index, 0);
    return (uint64_t)word[0] << 32 | word[1];
}

keel_status keel_inner_open(keel_inner *in, keel_iter *outer, keel_dataset *d,
                            const keel_position *at)
{
    *in = (keel_inner){ .dataset = d };
    if (!d) return keel_fail(KEEL_ECALLBACK, "it gave no dataset");
    const uint16_t before = (uint16_t)(at->stages + outer->applied->number);
    keel_status s = check(outer, d);
    if (s >= 0) s = keel_iter_create_within(&in->it, d, outer, before);
    if (s >= 0) {
        keel_iter_reseed(in->it, seed_at(outer, at));
        s = keel_iter_begin(in->it, at->pass);
    }
    if (s < 0) keel_inner_close(in);
    return s;
}

/* Its texts and its place are those of a dataset that will be gone. One that a stage of that
 * dataset keeps, too, must not change. */
static keel_status set_free(keel_element **e, keel_iter *outer)
{
    keel_element *from = *e;
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    if (atomic_load(&from->references) > 1) {
        for (int i = 0; i < from->n_field; i++) {
            data[i] = from->field[i].data;
            shape[i] = from->field[i].shape;
        }
        *e = NULL;
        const keel_status s = keel_element_copy(e, outer->run->account, outer->spec, data, shape);
        keel_element_release(from);
        if (s < 0) return s;
    } else {
        KEEL_TRY(keel_element_own_texts(e, outer->spec));
    }
    (*e)->place = (keel_spot){ .from = outer->dataset, .at = outer->at };
    return KEEL_OK;
}

keel_status keel_inner_next(keel_inner *in, keel_iter *outer, keel_element **out)
{
    const keel_status s = keel_iter_next(in->it, out);
    return s == KEEL_OK ? set_free(out, outer) : s;
}

void keel_inner_close(keel_inner *in)
{
    keel_iter_destroy(in->it);
    keel_dataset_destroy(in->dataset);
    *in = (keel_inner){ 0 };
}
