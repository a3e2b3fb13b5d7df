/* See flow.h. */
#include "data/flow.h"
#include "base/memory.h"
#include "data/iter.h"
#include "data/stage.h"
#include <string.h>

struct keel_flow {
    keel_run run;
    keel_iter *it;
    keel_element *given; /* by next_shaped, until the next call */
    /* Texts of a batch are in elements, so those of the last n_kept are kept; 0: no field of texts.
     */
    keel_element **kept;
    int64_t n_kept, next_kept;
};

static bool has_texts(const keel_data_spec *spec)
{
    for (int i = 0; i < spec->n_field; i++)
        if (spec->field[i].dtype == KEEL_STRING) return true;
    return false;
}

keel_status keel_flow_create(keel_flow **out, const keel_dataset *d, const keel_flow_options *o)
{
    keel_flow *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->run.seed = o->seed;
    f->run.leaves_early = o->leaves_early;
    f->run.work = o->work;
    f->run.account = o->account;
    keel_status s = keel_run_begin(&f->run, d, o->threads);
    if (s >= 0) s = keel_iter_create(&f->it, d, &f->run, 0);
    if (s >= 0 && has_texts(&d->origin->spec)) {
        f->n_kept = o->keep < 1 ? 1 : o->keep;
        f->kept = keel_calloc((size_t)f->n_kept, sizeof(keel_element *));
        if (!f->kept) s = KEEL_ENOMEM;
    }
    if (s < 0) {
        keel_flow_destroy(f);
        return s;
    }
    *out = f;
    return KEEL_OK;
}

void keel_flow_destroy(keel_flow *f)
{
    if (!f) return;
    for (int64_t i = 0; f->kept && i < f->n_kept; i++) keel_element_release(f->kept[i]);
    keel_free(f->kept);
    keel_element_release(f->given);
    keel_iter_destroy(f->it);
    keel_run_end(&f->run);
    keel_free(f);
}

keel_run *keel_flow_run(keel_flow *f)
{
    return &f->run;
}

static void keep(keel_flow *f, keel_element *e)
{
    if (!f->kept) return;
    keel_element **at = &f->kept[f->next_kept++ % f->n_kept];
    keel_element_release(*at);
    *at = keel_element_share(e);
}

keel_status keel_flow_begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)order; /* a pipeline shuffles by a stage of its own */
    return keel_iter_begin(((keel_flow *)state)->it, pass);
}

keel_status keel_flow_next(void *state, void *const *field, int64_t *rows)
{
    keel_flow *f = state;
    keel_element *e;
    const keel_status s = keel_run_next(f->it, &e);
    if (s != KEEL_OK) return s;
    const keel_data_spec *spec = f->it->spec;
    for (int i = 0; i < spec->n_field; i++)
        memcpy(field[i], e->field[i].data, keel_element_bytes(e, spec, i));
    *rows = keel_element_rows(e, spec);
    keep(f, e);
    keel_element_release(e);
    return KEEL_OK;
}

keel_status keel_flow_next_shaped(void *state, const void **data, keel_shape *shape, int64_t *rows)
{
    keel_flow *f = state;
    const keel_data_spec *spec = f->it->spec;
    keel_element_release(f->given);
    f->given = NULL;
    const keel_status s = keel_run_next(f->it, &f->given);
    if (s != KEEL_OK) return s;
    keep(f, f->given);
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape *all = &f->given->field[i].shape;
        data[i] = f->given->field[i].data;
        shape[i] = spec->batched ? keel_row_shape(all) : *all;
    }
    *rows = keel_element_rows(f->given, spec);
    return KEEL_OK;
}
