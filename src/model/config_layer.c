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
    class_name_of(name, v);
    return keel_module_is_keras(json_object_get(v, "module")) ? keel_layer_find(name) : NULL;
}

keel_status keel_model_read_layer(keel_model *m, const json_t *v, int *layer)
{
    char name[128];
    const char *class_name = text_at(v, "class_name");
    const char *registered = text_at(v, "registered_name");
    const json_t *config = json_object_get(v, "config");
    if (!json_is_object(v) || !class_name || !json_is_object(config))
        return keel_fail(KEEL_EFORMAT, "layers[%d]: expected class_name and config", m->n_layer);
    if (!text_at(config, "name") && !m->held)
        return keel_fail(KEEL_EFORMAT, "layers[%d]: a %.100s without a name", m->n_layer,
                         class_name);
    if (!strcmp(class_name, "Sequential") || !strcmp(class_name, "Functional"))
        return keel_model_read_inner(m, v, layer);
    if (registered && strchr(registered, '>'))
        return keel_fail(KEEL_EUNSUP, "layer class '%.100s' is not one of Keras's", registered);
    if (!keel_module_is_keras(json_object_get(v, "module")))
        return keel_fail(KEEL_EUNSUP, "layer class '%.100s' of the module %.100s is not Keras's",
                         class_name, text_at(v, "module"));
    class_name_of(name, v);
    return keel_model_new_layer(m, name, config, layer);
}
