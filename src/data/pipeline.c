/* The functions of keel/pipeline.h that only apply a stage. */
#include "keel/pipeline.h"
#include "base/args.h"
#include "base/type_help.h"
#include "data/stage.h"
#include <string.h>

int64_t keel_dataset_cardinality(const keel_dataset *d)
{
    if (d->origin->spec.endless) return KEEL_CARDINALITY_INFINITE;
    const keel_data_spec spec = keel_stage_spec(d);
    return spec.rows < 0 ? KEEL_CARDINALITY_UNKNOWN : spec.rows;
}

bool keel_dataset_is_batched(const keel_dataset *d)
{
    return keel_stage_spec(d).batched;
}

static keel_status unknown(const char *name)
{
    keel_text known = { 0 };
    for (int i = 0; keel_stages[i]; i++)
        keel_text_add(&known, "%s%s", i ? ", " : "", keel_stages[i]->type.name);
    const keel_status s =
        keel_fail(KEEL_EARG,
                  "there is no stage '%.60s': %s, and Keras's layers of preprocessing, such as "
                  "RandomFlip",
                  name, known.data ? known.data : "");
    keel_text_free(&known);
    return s;
}

const char *keel_dataset_stage(const keel_dataset *d)
{
    return d->origin->applied ? d->origin->applied->stage->type.name : NULL;
}

const keel_dataset *keel_dataset_parent(const keel_dataset *d, int i)
{
    const keel_applied *s = d->origin->applied;
    return s && i >= 0 && i < s->n_parent ? s->parent[i] : NULL;
}

const char *keel_stage_class(int i)
{
    const keel_stage *stage = i < 0 ? NULL : keel_stage_at(i);
    return stage ? stage->type.name : NULL;
}

keel_status keel_stage_help(const char *name, char **out)
{
    if (!name || !out) return keel_fail(KEEL_EARG, "stage: name and out must not be NULL");
    const keel_stage *stage = keel_stage_find(name);
    return stage ? keel_type_help(&stage->type, out) : unknown(name);
}

keel_status keel_dataset_apply(keel_dataset **out, const char *stage, const keel_arg *args,
                               keel_dataset *const *parent, int n_parent)
{
    json_t *config;
    if (!out || !stage || !parent || n_parent < 1)
        return keel_fail(KEEL_EARG, "apply: out, stage and parent must not be NULL");
    const keel_stage *found = keel_stage_find(stage);
    if (!found) return unknown(stage);
    KEEL_TRY(keel_args_json(args, &config));
    const keel_status s = keel_stage_apply(out, found, config, parent, n_parent);
    json_decref(config);
    return s;
}

keel_status keel_dataset_take(keel_dataset **out, keel_dataset *d, int64_t count)
{
    return keel_dataset_apply(out, "take", KEEL_ARGS(KEEL_ARG_INT("count", count)), &d, 1);
}

keel_status keel_dataset_skip(keel_dataset **out, keel_dataset *d, int64_t count)
{
    return keel_dataset_apply(out, "skip", KEEL_ARGS(KEEL_ARG_INT("count", count)), &d, 1);
}

keel_status keel_dataset_repeat(keel_dataset **out, keel_dataset *d, int64_t count)
{
    return keel_dataset_apply(out, "repeat", KEEL_ARGS(KEEL_ARG_INT("count", count)), &d, 1);
}

keel_status keel_dataset_shuffle(keel_dataset **out, keel_dataset *d, int64_t buffer_size)
{
    if (!buffer_size) return keel_dataset_apply(out, "shuffle", NULL, &d, 1);
    return keel_dataset_apply(out, "shuffle", KEEL_ARGS(KEEL_ARG_INT("buffer_size", buffer_size)),
                              &d, 1);
}

keel_status keel_dataset_shard(keel_dataset **out, keel_dataset *d, int64_t num_shards,
                               int64_t index)
{
    return keel_dataset_apply(
        out, "shard",
        KEEL_ARGS(KEEL_ARG_INT("num_shards", num_shards), KEEL_ARG_INT("index", index)), &d, 1);
}

keel_status keel_dataset_batch(keel_dataset **out, keel_dataset *d, int64_t batch_size,
                               bool drop_remainder)
{
    return keel_dataset_apply(out, "batch",
                              KEEL_ARGS(KEEL_ARG_INT("batch_size", batch_size),
                                        KEEL_ARG_STR("end", drop_remainder ? "drop" : "keep")),
                              &d, 1);
}

keel_status keel_dataset_unbatch(keel_dataset **out, keel_dataset *d)
{
    return keel_dataset_apply(out, "unbatch", NULL, &d, 1);
}

keel_status keel_dataset_concatenate(keel_dataset **out, keel_dataset *first, keel_dataset *second)
{
    return keel_dataset_apply(out, "concatenate", NULL, (keel_dataset *[]){ first, second }, 2);
}
