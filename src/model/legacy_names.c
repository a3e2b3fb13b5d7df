/* Names of layers in whole models of Keras 2. They may have a '/' in them ("conv1/conv", as in
 * DenseNet and MobileNetV3 of its applications), which today separates a layer from its weights:
 * Keras 3 calls the same layers conv1_conv. */
#include "base/memory.h"
#include "model/parts.h"
#include <string.h>

enum { DEEP_MAX = 64 };

static keel_status no_memory(void)
{
    return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
}

static keel_status too_deep(void)
{
    return keel_fail(KEEL_EFORMAT, "model_config: nested too deeply");
}

/* The name with '_' for each '/': a new reference. */
static json_t *name_of_today(const char *name)
{
    char *text = keel_strdup(name);
    for (char *c = text; c && *c; c++)
        if (*c == '/') *c = '_';
    json_t *today = text ? json_string(text) : NULL;
    keel_free(text);
    return today;
}

/* Puts the names of layers with a '/' into `names`, with today's. */
static keel_status collect(json_t *v, json_t *names, int depth)
{
    const json_t *config = json_object_get(v, "config");
    const char *key, *name = json_string_value(json_object_get(config, "name"));
    json_t *entry;
    size_t i;
    if (depth > DEEP_MAX) return too_deep();
    if (name && strchr(name, '/') && json_object_get(v, "class_name") &&
        json_object_set_new(names, name, name_of_today(name)))
        return no_memory();
    json_object_foreach(v, key, entry) KEEL_TRY(collect(entry, names, depth + 1));
    json_array_foreach(v, i, entry) KEEL_TRY(collect(entry, names, depth + 1));
    return KEEL_OK;
}

/* Today's name for a text that is one of the names; NULL: it is not. */
static json_t *renamed(const json_t *names, const json_t *v)
{
    return json_is_string(v) ? json_object_get(names, json_string_value(v)) : NULL;
}

static keel_status rename_all(json_t *v, const json_t *names, int depth)
{
    const char *key;
    json_t *entry, *today;
    size_t i;
    if (depth > DEEP_MAX) return too_deep();
    json_object_foreach(v, key, entry)
    {
        if (!(today = renamed(names, entry)))
            KEEL_TRY(rename_all(entry, names, depth + 1));
        else if (json_object_set(v, key, today))
            return no_memory();
    }
    json_array_foreach(v, i, entry)
    {
        if (!(today = renamed(names, entry)))
            KEEL_TRY(rename_all(entry, names, depth + 1));
        else if (json_array_set(v, i, today))
            return no_memory();
    }
    return KEEL_OK;
}

keel_status keel_legacy_names(json_t *root)
{
    json_t *names = json_object();
    keel_status s = names ? collect(root, names, 0) : no_memory();
    if (s >= 0 && json_object_size(names) > 0) s = rename_all(root, names, 0);
    json_decref(names);
    return s;
}
