/* A pipeline file: a source and the stages that follow it, in TOML.
 *
 *     source = "photos"          # as --data takes it, relative to the current folder
 *
 *     [[stage]]
 *     name = "shuffle"
 *     buffer_size = 500
 *
 *     [[stage]]
 *     name = "concatenate"
 *     with = ["more.toml"]       # further datasets, sources or pipeline files
 *
 * The keys of a stage are those of its field table. */
#include "base/memory.h"
#include "data/spec.h"
#include "data/stage.h"
#include "io/file.h"
#include "io/toml.h"
#include "keel/pipeline.h"
#include <string.h>

enum { BYTES_MAX = 1 << 20, NESTED_MAX = 8 };

static _Thread_local int nested; /* pipelines that are being opened, one for another */

static bool claims(const char *spec)
{
    return keel_spec_ends(spec, strlen(spec), ".toml");
}

/* The datasets of `with`, opened behind the first. */
static keel_status open_with(keel_dataset **parent, int *n, const json_t *with,
                             const keel_dataset_options *o, const char *path, size_t stage)
{
    size_t i;
    json_t *v;
    if (!with) return KEEL_OK;
    if (!json_is_array(with) || json_array_size(with) >= KEEL_PARENTS_MAX)
        return keel_fail(KEEL_EARG, "%s: stage %zu: `with` must be a list of at most %d texts",
                         path, stage + 1, KEEL_PARENTS_MAX - 1);
    json_array_foreach((json_t *)with, i, v)
    {
        if (!json_is_string(v))
            return keel_fail(KEEL_EARG, "%s: stage %zu: `with` must be a list of texts", path,
                             stage + 1);
        KEEL_TRY(keel_dataset_open(&parent[*n], json_string_value(v), o));
        ++*n;
    }
    return KEEL_OK;
}

/* Replace *d by what the stage makes of it. */
static keel_status apply(keel_dataset **d, const json_t *table, const keel_dataset_options *o,
                         const char *path, size_t i)
{
    keel_dataset *parent[KEEL_PARENTS_MAX] = { *d }, *out = NULL;
    int n = 1;
    const keel_stage *stage = keel_stage_find(json_string_value(json_object_get(table, "name")));
    keel_status s = open_with(parent, &n, json_object_get(table, "with"), o, path, i);
    json_t *config = s < 0 ? NULL : json_copy((json_t *)table);
    if (s >= 0 && !config) s = keel_fail(KEEL_ENOMEM, "out of memory reading %s", path);
    if (s >= 0) {
        json_object_del(config, "name");
        json_object_del(config, "with");
        s = keel_stage_apply_with(&out, stage, config, parent, n, o);
        if (s < 0) keel_fail_within(s, "%s: stage %zu", path, i + 1);
    }
    json_decref(config);
    while (n > 1) keel_dataset_destroy(parent[--n]);
    if (s < 0) return s;
    keel_dataset_destroy(*d);
    *d = out;
    return KEEL_OK;
}

/* All stages have a name that exists, which is said before the source is opened. */
static keel_status check_stages(const json_t *stages, const char *path)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)stages, i, v)
    {
        keel_dataset *none = NULL;
        const char *name = json_string_value(json_object_get(v, "name"));
        if (!name) return keel_fail(KEEL_EARG, "%s: stage %zu has no name", path, i + 1);
        if (keel_stage_find(name)) continue;
        const keel_status s = keel_dataset_apply(&none, name, NULL, &none, 1); /* lists the names */
        return keel_fail_within(s, "%s: stage %zu", path, i + 1);
    }
    return KEEL_OK;
}

static keel_status check_keys(const json_t *root, const char *path)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)root, key, v)
    {
        if (strcmp(key, "source") && strcmp(key, "stage"))
            return keel_fail(KEEL_EARG, "%s: unknown key '%.60s': source and [[stage]] are known",
                             path, key);
    }
    if (!json_is_string(v = json_object_get(root, "source")))
        return keel_fail(KEEL_EARG, "%s: `source` %s a text, as --data takes it", path,
                         v ? "must be" : "is missing:");
    v = json_object_get(root, "stage");
    if (v && !json_is_array(v))
        return keel_fail(KEEL_EARG, "%s: write [[stage]] before each stage", path);
    return check_stages(v, path);
}

/* True if a stage goes on where a row cannot be read. */
static bool may_pass(const json_t *stages)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)stages, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (name && (!strcmp(name, "ignore_errors") || !strcmp(name, "substitute"))) return true;
    }
    return false;
}

static keel_status build(keel_dataset **out, const json_t *root, const keel_dataset_options *o,
                         const char *path)
{
    size_t i;
    json_t *v;
    keel_dataset *d;
    keel_dataset_options with = *o;
    KEEL_TRY(check_keys(root, path));
    with.unchecked |= may_pass(json_object_get(root, "stage"));
    KEEL_TRY(keel_dataset_open(&d, json_string_value(json_object_get(root, "source")), &with));
    keel_status s = KEEL_OK;
    json_array_foreach(json_object_get(root, "stage"), i, v)
    {
        if (s >= 0) s = apply(&d, v, &with, path, i);
    }
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

static keel_status open_file(keel_dataset **out, const char *path, const keel_dataset_options *o)
{
    void *text;
    size_t n;
    json_t *root;
    if (nested == NESTED_MAX)
        return keel_fail(KEEL_EARG, "%s: pipelines are nested deeper than %d, or in a circle", path,
                         NESTED_MAX);
    KEEL_TRY(keel_file_read(path, BYTES_MAX, &text, &n));
    keel_status s = keel_toml_parse(&root, text, n, path);
    keel_free(text);
    if (s < 0) return s;
    nested++;
    s = build(out, root, o, path);
    nested--;
    json_decref(root);
    return s;
}

const keel_source keel_source_pipeline = {
    .name = "pipeline",
    .help = "a pipeline file (.toml) with a source and stages",
    .claims = claims,
    .open = open_file,
};
