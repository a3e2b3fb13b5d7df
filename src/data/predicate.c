/* See predicate.h. */
#include "data/predicate.h"
#include "data/sources/called.h"
#include <string.h>

static const keel_filter *filter_of(const keel_applied *s)
{
    return s->args;
}

bool keel_predicate_is_random(const keel_applied *s)
{
    return filter_of(s)->random || filter_of(s)->sequential;
}

bool keel_predicate_is_sequential(const keel_applied *s)
{
    return filter_of(s)->sequential;
}

keel_status keel_predicate_make(keel_iter *it, keel_position at, keel_element *e,
                                keel_element **out, keel_scratch *scratch)
{
    (void)scratch;
    const keel_filter *f = filter_of(it->applied);
    const keel_data_spec *spec = &it->applied->parent[0]->origin->spec;
    const keel_chance c = keel_stage_chance(it->applied, &at);
    const keel_element_place place = { at.seed, at.pass, at.index, c.stream };
    const unsigned texts = keel_error_count();
    keel_tensor in[KEEL_FIELDS_MAX];
    bool keep = false;
    for (int i = 0; i < spec->n_field; i++)
        in[i] = (keel_tensor){ spec->field[i].dtype, e->field[i].shape, e->field[i].data };
    const keel_status s = f->call(f->context, in, &keep, &place);
    if (s != KEEL_OK) return keel_callback_failed(texts, s, "%s:", f->name);
    *out = keep ? keel_element_share(e) : NULL;
    return KEEL_OK;
}

void keel_predicate_release(void *args)
{
    const keel_filter *f = args;
    if (f->release) f->release(f->context);
}

keel_status keel_predicate_apply(keel_dataset **out, const keel_stage *stage, keel_dataset *d,
                                 const keel_filter *filter)
{
    const char *name = stage->type.name;
    keel_filter f = { 0 };
    if (!out || !d || !filter)
        return keel_fail(KEEL_EARG, "%s: out, d and filter must not be NULL", name);
    if (filter->size < offsetof(keel_filter, random))
        return keel_fail(KEEL_EARG, "%s: size must be sizeof(keel_filter)", name);
    memcpy(&f, filter, filter->size < sizeof f ? filter->size : sizeof f);
    if (!f.name) f.name = name;
    if (!f.call) return keel_fail(KEEL_EARG, "%s: call is NULL", f.name);
    f.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_stage_apply_args(out, stage, &f, &d, 1));
    ((keel_filter *)(*out)->origin->applied->args)->release = filter->release;
    return KEEL_OK;
}
