/* Objects as arguments: the initializer of a layer, an activation, a loss. Keras writes them as a
 * name or as {"module", "class_name", "config", "registered_name"}. */
#include "base/field_impl.h"
#include "base/memory.h"
#include "base/registered.h"
#include "base/text.h"
#include <stdio.h>
#include <assert.h>
#include <string.h>

bool keel_name_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    while (list && *list) {
        const size_t n = strcspn(list, "|");
        if (n == length && !strncmp(list, name, n)) return true;
        list += n + (list[n] == '|');
    }
    return false;
}

bool keel_type_is(const keel_type *type, const char *name)
{
    char snake[128];
    if (!strcmp(type->name, name) || keel_name_listed(type->alias, name)) return true;
    keel_snake_case(snake, sizeof snake, type->name);
    return !strcmp(snake, name);
}

/* Keras writes "builtins" for functions. */
bool keel_module_is_keras(const json_t *module)
{
    const char *name = json_string_value(module);
    return !name || !strcmp(name, "builtins") || !strcmp(name, "keras") ||
           !strncmp(name, "keras.", 6);
}

/* Read the config into args of a fresh object. */
static keel_status make(keel_object *out, const keel_type *type, const json_t *config, int depth)
{
    keel_object o = { .type = type };
    if (type->args_size && !(o.args = keel_calloc(1, type->args_size))) return KEEL_ENOMEM;
    const keel_status s = keel_fields_read_at(type, config, o.args, depth);
    if (s < 0) {
        keel_free(o.args); /* what they owned is freed already */
        return s;
    }
    *out = o;
    return s;
}

/* The text of a JSON string, or NULL. A zero byte inside is refused, since it would hide the rest
 * of the name. */
static const char *name_of(const json_t *v)
{
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v)) return NULL;
    return json_string_value(v);
}

/* A custom class may have the name of a Keras class, but its package differs. One that was written
 * by the program that defines it has no module. */
const char *keel_custom_name(const json_t *object)
{
    const char *registered = name_of(json_object_get(object, "registered_name"));
    const char *name = name_of(json_object_get(object, "class_name"));
    if (registered && strchr(registered, '>')) return registered;
    if (registered && json_is_null(json_object_get(object, "module"))) return registered;
    if (keel_module_is_keras(json_object_get(object, "module"))) return NULL;
    return name && !strcmp(name, "function") ? name_of(json_object_get(object, "config")) : name;
}

keel_status keel_object_read_at(keel_object *o, const json_t *json,
                                const keel_type *(*find)(const char *name), const char *what,
                                int depth)
{
    if (json_is_null(json)) {
        *o = (keel_object){ 0 };
        return KEEL_OK;
    }
    const json_t *config = NULL;
    const char *name = name_of(json), *custom = NULL;
    if (json_is_object(json)) {
        name = name_of(json_object_get(json, "class_name"));
        config = json_object_get(json, "config");
        if (name && !strcmp(name, "function")) { /* how Keras writes a plain function */
            name = name_of(config);
            config = NULL;
        }
        custom = keel_custom_name(json);
    }
    if (!name)
        return keel_fail(KEEL_EARG, "%s must be a name or an object with class_name and config",
                         what);
    const keel_type *type = find ? find(custom ? custom : name) : NULL;
    if (custom && !(type && type->registered)) {
        const char *module = name_of(json_object_get(json, "module"));
        if (module && !strchr(custom, '>'))
            return keel_fail(KEEL_EUNSUP,
                             "%s: '%.60s' is of the module %.60s; only Keras's own are supported",
                             what, custom, module);
        return keel_fail(KEEL_EUNSUP,
                         "%s: '%.60s' is a custom object; only Keras's own are supported", what,
                         custom);
    }
    if (!type) return keel_fail(KEEL_EUNSUP, "%s: '%.60s' is not supported", what, name);
    if (config && json_is_null(config)) config = NULL;
    const keel_status s = make(o, type, config, depth);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "%s", what) : s;
}

keel_status keel_object_read(keel_object *o, const json_t *json,
                             const keel_type *(*find)(const char *name), const char *what)
{
    return keel_object_read_at(o, json, find, what, 0);
}

keel_status keel_object_default(keel_object *o, const keel_type *type)
{
    return make(o, type, NULL, 0);
}

/* The owned fields of the copy are emptied first, so that a partial copy can be freed. */
keel_status keel_object_copy(keel_object *out, const keel_object *o)
{
    keel_object copy = { .type = o->type };
    keel_status s = KEEL_OK;
    if (!o->type || !o->type->args_size) {
        *out = copy;
        return KEEL_OK;
    }
    assert(!o->type->release); /* only layers have it, and they are not copied */
    if (!(copy.args = keel_calloc(1, o->type->args_size))) return KEEL_ENOMEM;
    memcpy(copy.args, o->args, o->type->args_size);
    for (const keel_field *f = o->type->fields; f && f->key; f++) {
        void *place = keel_field_place(f, copy.args);
        if (f->kind == KEEL_FIELD_STRING) *(char **)place = NULL;
        if (f->kind == KEEL_FIELD_LIST) json_incref(*(json_t **)place);
        if (f->kind == KEEL_FIELD_OBJECT) *(keel_object *)place = (keel_object){ 0 };
        if (f->kind == KEEL_FIELD_TEXTS) *(keel_texts *)place = (keel_texts){ 0 };
        if (f->kind == KEEL_FIELD_REALS) *(keel_reals *)place = (keel_reals){ 0 };
    }
    for (const keel_field *f = o->type->fields; f && f->key; f++) {
        void *place = keel_field_place(f, copy.args);
        const void *from = keel_field_place_const(f, o->args);
        if (f->kind == KEEL_FIELD_STRING && *(char *const *)from) {
            if (!(*(char **)place = keel_strdup(*(char *const *)from))) s = KEEL_ENOMEM;
        } else if (f->kind == KEEL_FIELD_OBJECT) {
            s = keel_object_copy(place, from);
        } else if (f->kind == KEEL_FIELD_TEXTS) {
            s = keel_texts_copy(place, from);
        } else if (f->kind == KEEL_FIELD_REALS) {
            s = keel_reals_copy(place, from);
        }
        if (s < 0) goto out;
    }
    *out = copy;
    copy = (keel_object){ 0 };
out:
    keel_object_free(&copy);
    return s;
}

void keel_object_free(keel_object *o)
{
    if (!o) return;
    if (o->type && o->args) keel_fields_free(o->type, o->args);
    keel_free(o->args);
    *o = (keel_object){ 0 };
}
