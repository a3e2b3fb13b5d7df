/* One layer of config.json: which class it is, and the layer itself, without calls. */
#include "model/parts.h"
#include <stdio.h>
#include <string.h>

static const char *text_at(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

/* The name of a layer's class; operations are found by their module, too. */
static void class_name_of(char name[128], const json_t *v)
{
    const char *class_name = text_at(v, "class_name"), *module = text_at(v, "module");
    const bool operation = module && !strncmp(module, "keras.src.ops", 13);
    snprintf(name, 128, "%s%.100s", operation ? "ops." : "", class_name ? class_name : "");
}

const keel_layer *keel_model_class_of(const json_t *v)
{
    char name[128];
    const char *custom = keel_custom_name(v);
    if (custom) return keel_layer_registered(custom);
    class_name_of(name, v);
    return keel_layer_find(name);
}

/* Some operations leave their name out of their config (ExtractPatches): it is beside it. */
static keel_status read_unnamed(keel_model *m, const char *kind, const json_t *v, int *layer)
{
    json_t *config = json_deep_copy(json_object_get(v, "config"));
    keel_status s = KEEL_ENOMEM;
    if (config && json_object_set(config, "name", json_object_get(v, "name")) == 0)
        s = keel_model_new_layer(m, kind, config, layer);
    json_decref(config);
    return s == KEEL_ENOMEM ? keel_fail(s, "out of memory reading the model") : s;
}

keel_status keel_model_read_layer(keel_model *m, const json_t *v, int *layer)
{
    char name[128];
    const char *class_name = text_at(v, "class_name");
    const char *custom = keel_custom_name(v);
    const json_t *config = json_object_get(v, "config");
    if (!json_is_object(v) || !class_name || !json_is_object(config))
        return keel_fail(KEEL_EFORMAT, "layers[%d]: expected class_name and config", m->n_layer);
    class_name_of(name, v);
    const bool unnamed = !text_at(config, "name") && !m->held;
    if (unnamed && (strncmp(name, "ops.", 4) || !text_at(v, "name")))
        return keel_fail(KEEL_EFORMAT, "layers[%d]: a %.100s without a name", m->n_layer,
                         class_name);
    if (!strcmp(class_name, "Sequential") || !strcmp(class_name, "Functional"))
        return keel_model_read_inner(m, v, layer);
    if (custom && !keel_layer_registered(custom)) {
        const char *module = strchr(custom, '>') ? NULL : text_at(v, "module");
        return keel_fail(
            KEEL_EUNSUP,
            "layer class '%.100s'%s%.60s is not one of Keras's; write it as a function of Keras's "
            "layers and keras.ops, or register it in a C program (keel_register_layer of "
            "keel/custom.h)",
            custom, module ? " of the module " : "", module ? module : "");
    }
    if (custom) return keel_model_new_layer(m, custom, config, layer);
    return unnamed ? read_unnamed(m, name, v, layer) : keel_model_new_layer(m, name, config, layer);
}
