/* Making a dataset by a stage: its arguments, its parents, and what is known of the result. */
#include "base/memory.h"
#include "data/stage_impl.h"
#include <string.h>

const keel_stage *keel_stage_find(const char *name)
{
    const keel_stage *stage;
    for (int i = 0; (stage = keel_stage_at(i)); i++)
        if (!strcmp(stage->type.name, name) || keel_name_listed(stage->type.alias, name))
            return stage;
    return NULL;
}

const keel_stage *keel_stage_at(int i)
{
    int n = 0;
    while (keel_stages[n]) n++;
    return i < n ? keel_stages[i] : keel_layer_stage(i - n);
}

/* A name that tells the chain: "photos.shuffle.take". */
static char *name_of(const keel_applied *s)
{
    const char *from = keel_dataset_name(s->parent[0]), *stage = s->stage->type.name;
    const size_t n = strlen(from), m = strlen(stage);
    char *name = keel_calloc(1, n + m + 2);
    if (!name) return NULL;
    memcpy(name, from, n);
    name[n] = '.';
    memcpy(name + n + 1, stage, m);
    return name;
}

static keel_status take_parents(keel_applied *s, keel_dataset *const *parent, int n)
{
    s->by_index = !s->stage->no_index;
    if (!(s->parent = keel_calloc((size_t)n, sizeof(keel_dataset *)))) return KEEL_ENOMEM;
    for (s->n_parent = 0; s->n_parent < n; s->n_parent++) {
        const keel_dataset *d = parent[s->n_parent];
        s->by_index &=
            d->origin->applied ? d->origin->applied->by_index : d->origin->source->read != NULL;
        if (d->origin->applied && d->origin->applied->stage->ahead)
            return keel_fail(KEEL_EARG,
                             "behind %s: it must be the last stage; leave it out, since every "
                             "pipeline reads ahead by itself",
                             d->origin->applied->stage->type.name);
        if (!(s->parent[s->n_parent] = keel_dataset_share(d))) return KEEL_ENOMEM;
        s->number += d->origin->applied ? d->origin->applied->number : 0;
        s->revived |= d->origin->applied && d->origin->applied->revived;
        s->drawn_once |= d->origin->applied && d->origin->applied->drawn_once;
    }
    if (++s->number > KEEL_STAGES_MAX)
        return keel_fail(KEEL_EARG, "a pipeline has at most %d stages", KEEL_STAGES_MAX);
    return KEEL_OK;
}

/* What a stream tells the feed of its yields. */
static void shape_stream(const keel_applied *s, keel_data_spec *spec)
{
    spec->shaped = keel_spec_is_open(spec);
    spec->by_row = !spec->batched;
    spec->by_pass = !s->stage->is_sequential || !s->stage->is_sequential(s);
    for (int i = 0; i < s->n_parent; i++) {
        const keel_data_origin *o = s->parent[i]->origin;
        spec->by_pass &= o->spec.by_pass || o->source->read;
    }
    if (!spec->batched) spec->max_rows = 1;
    if (spec->endless) spec->rows = -1;
    if (spec->batched) {
        spec->yields = spec->rows;
        spec->rows = -1;
    }
}

static keel_status check_parents(const keel_stage *stage, keel_dataset *const *parent, int n)
{
    const char *name = stage->type.name;
    if (stage->n_parent == -1 ? n < 2 : stage->n_parent >= 0 && n != stage->n_parent)
        return keel_fail(KEEL_EARG, "%s: takes %s, not %d", name,
                         stage->n_parent < 0 ? "two datasets or more" : "one dataset", n);
    if (n > KEEL_PARENTS_MAX)
        return keel_fail(KEEL_EARG, "%s: takes at most %d datasets", name, KEEL_PARENTS_MAX);
    for (int i = 0; i < n; i++)
        if (!parent[i]) return keel_fail(KEEL_EARG, "%s: dataset %d is NULL", name, i);
    return KEEL_OK;
}

/* Takes s, with its args. */
static keel_status finish(keel_dataset **out, keel_applied *s, keel_dataset *const *parent, int n)
{
    keel_data_spec spec = { 0 };
    char *name = NULL;
    keel_status r = take_parents(s, parent, n);
    if (r < 0) goto fail;
    spec = keel_stage_spec(parent[0]);
    if ((r = keel_spec_copy_classes(&spec)) < 0) goto fail;
    if (s->stage->infer && (r = s->stage->infer(s, &spec)) < 0) {
        keel_fail_within(r, "%s: %s", keel_dataset_name(parent[0]), s->stage->type.name);
        goto fail;
    }
    if (!s->by_index) shape_stream(s, &spec);
    r = KEEL_ENOMEM;
    if (!(name = name_of(s))) goto fail;
    r = keel_dataset_create(out, keel_stage_source(s, &spec), s, &spec, name);
    keel_free(name);
    if (r < 0) return r;
    s->spec = &(*out)->origin->spec;
    s->options = NULL;
    (*out)->origin->applied = s;
    return KEEL_OK;
fail:
    keel_spec_free_classes(&spec);
    keel_stage_close(s);
    return r;
}

keel_status keel_stage_apply(keel_dataset **out, const keel_stage *stage, const json_t *config,
                             keel_dataset *const *parent, int n_parent)
{
    return keel_stage_apply_with(out, stage, config, parent, n_parent, NULL);
}

keel_status keel_stage_apply_with(keel_dataset **out, const keel_stage *stage, const json_t *config,
                                  keel_dataset *const *parent, int n_parent,
                                  const keel_dataset_options *options)
{
    KEEL_TRY(check_parents(stage, parent, n_parent));
    if (!stage->type.fields && stage->type.args_size)
        return keel_fail(KEEL_EARG, "%s needs a function in C: see keel_dataset_%s",
                         stage->type.name, stage->type.name);
    keel_applied *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->stage = stage;
    keel_status r = KEEL_ENOMEM;
    void *args = keel_calloc(1, stage->type.args_size + 1);
    if (args) r = keel_fields_read(&stage->type, config, args);
    if (r < 0) {
        keel_free(args);
        keel_free(s);
        return r;
    }
    s->args = args;
    s->options = options;
    return finish(out, s, parent, n_parent);
}

keel_status keel_stage_apply_args(keel_dataset **out, const keel_stage *stage, const void *args,
                                  keel_dataset *const *parent, int n_parent)
{
    keel_applied *s = NULL;
    keel_status r = check_parents(stage, parent, n_parent);
    if (r >= 0 && !(s = keel_calloc(1, sizeof *s))) r = KEEL_ENOMEM;
    if (r >= 0 && !(s->args = keel_calloc(1, stage->type.args_size + 1))) r = KEEL_ENOMEM;
    if (r < 0) {
        keel_free(s);
        return r;
    }
    s->stage = stage;
    memcpy(s->args, args, stage->type.args_size);
    return finish(out, s, parent, n_parent);
}
