/* What the stages of a dataset tell of it: whether passes differ, how it is made, notes. */
#include "data/sources/described.h"
#include "data/stage.h"
#include <stdlib.h>

const char *keel_stage_random(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s || s->stage->one_pass) return NULL;
    if (s->stage->is_random && s->stage->is_random(s)) return s->stage->type.name;
    for (int i = 0; i < s->n_parent; i++) {
        const char *name = keel_stage_random(s->parent[i]);
        if (name) return name;
    }
    return NULL;
}

const char *keel_stage_reorders(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s || s->stage->one_pass) return NULL;
    if (s->stage->where && s->stage->is_random && s->stage->is_random(s))
        return s->stage->type.name;
    for (int i = 0; i < s->n_parent; i++) {
        const char *name = keel_stage_reorders(s->parent[i]);
        if (name) return name;
    }
    return NULL;
}

const char *keel_stage_repeats(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    const char *name = NULL;
    if (s && s->n_parent == 1 && s->stage->where) {
        const keel_data_spec *own = &d->origin->spec, *from = &s->parent[0]->origin->spec;
        if (own->endless ? !from->endless : own->rows > s->parent[0]->rows)
            name = s->stage->type.name;
    }
    for (int i = 0; s && i < s->n_parent && !name; i++) name = keel_stage_repeats(s->parent[i]);
    return name;
}

bool keel_stage_by_folder(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    bool any = !s && d->origin->source->shuffled_split && !d->order;
    if (s && s->stage->where && s->stage->draws) return false;
    for (int i = 0; s && i < s->n_parent; i++) any |= keel_stage_by_folder(s->parent[i]);
    return any;
}

static bool is_made_of(const keel_dataset *d, const keel_data_origin *o)
{
    const keel_applied *s = d->origin->applied;
    bool any = d->origin == o;
    for (int i = 0; s && i < s->n_parent; i++) any |= is_made_of(s->parent[i], o);
    return any;
}

const keel_data_origin *keel_stage_shared(const keel_dataset *a, const keel_dataset *b)
{
    const keel_applied *s = a->origin->applied;
    const keel_data_origin *found = NULL;
    const bool one_reader =
        !s && a->origin->source->begin && a->origin->source != &keel_source_described;
    if (one_reader && is_made_of(b, a->origin)) return a->origin;
    /* by index, the elements of a stream are those of a file that keeps them */
    for (int i = 0; s && !s->by_index && i < s->n_parent && !found; i++)
        found = keel_stage_shared(s->parent[i], b);
    return found;
}

bool keel_stage_draws(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    bool any = s && (s->stage->draws || (s->stage->is_random && s->stage->is_random(s)));
    for (int i = 0; s && i < s->n_parent; i++) any |= keel_stage_draws(s->parent[i]);
    return any;
}

bool keel_stage_may_pass(keel_status s)
{
    return s == KEEL_EIO || s == KEEL_EFORMAT || s == KEEL_EDATA || s == KEEL_ESHAPE ||
           s == KEEL_ECALLBACK || s == KEEL_ENUMERIC;
}

void keel_stage_describe(const keel_dataset *d, keel_text *t)
{
    const keel_applied *s = d->origin->applied;
    if (d->origin->source == &keel_source_described)
        keel_text_add(t, "%s", (const char *)d->origin->state);
    if (!s) return;
    if (s->stage->ahead) { /* its elements are those of its parent */
        keel_stage_describe(s->parent[0], t);
        return;
    }
    json_t *args = s->stage->type.fields ? keel_fields_json(&s->stage->type, s->args) : NULL;
    char *text = args ? json_dumps(args, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    keel_text_add(t, "%s(%s", s->stage->type.name, text ? text : "");
    free(text);
    json_decref(args);
    for (int i = 0; i < s->n_parent; i++) {
        keel_text_add(t, ",");
        keel_stage_describe(s->parent[i], t);
    }
    keel_text_add(t, ")");
}

static void find_note(const keel_dataset *d, char *text, size_t size)
{
    const keel_applied *s = d->origin->applied;
    for (int i = 0; s && i < s->n_parent && !*text; i++) find_note(s->parent[i], text, size);
    if (s && !*text && s->stage->note) s->stage->note(s, text, size);
}

void keel_stage_note(const keel_dataset *d, char *text, size_t size)
{
    *text = 0;
    find_note(d, text, size);
}
