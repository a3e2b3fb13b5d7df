/* Writes args as the JSON that Keras writes, in the order of the field table. */
#include "base/field_impl.h"
#include "base/python_json.h"
#include "base/registered.h"
#include <math.h>
#include <string.h>

static json_t *choice_json(const keel_field *f, int index)
{
    const char *word = f->choices;
    for (int i = 0; i < index && word; i++) {
        word = strchr(word, '|');
        if (word) word++;
    }
    return word && index >= 0 ? json_stringn(word, strcspn(word, "|")) : json_null();
}

/* json_array_append_new frees its value on failure, so one test is enough. */
static bool append(json_t *list, json_t *value)
{
    return json_array_append_new(list, value) == 0;
}

static json_t *ints_json(const keel_field *f, const keel_ints *v)
{
    if (v->count < 0) return json_null();
    if (f->count == -1 && v->count == 1) return json_integer(v->at[0]);
    const bool pairs = f->count == -2 || (f->dflt && !strncmp(f->dflt, "[[", 2));
    const bool nested = pairs && v->count % 2 == 0;
    json_t *list = json_array();
    for (int i = 0; list && i < v->count; i += nested ? 2 : 1) {
        const bool open = f->count == -3 && v->at[i] == -1;
        json_t *e = nested ? json_pack("[I, I]", (json_int_t)v->at[i], (json_int_t)v->at[i + 1])
                    : open ? json_null()
                           : json_integer(v->at[i]);
        if (append(list, e)) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *texts_json(const keel_texts *v)
{
    json_t *list = json_array();
    for (int i = 0; list && i < v->count; i++)
        if (!append(list, json_string(v->at[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *reals_json(const keel_field *f, const keel_reals *v)
{
    if (v->count == 0) return json_null();
    if (f->count == -1 && v->count == 1) return json_real(*v->at);
    json_t *list = json_array();
    for (int i = 0; list && i < v->count; i++)
        if (!append(list, json_real(v->at[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *field_json(const keel_field *f, const void *place)
{
    switch (f->kind) {
    case KEEL_FIELD_INT: {
        const int64_t n = *(const int64_t *)place;
        return n == KEEL_INT_NULL ? json_null() : json_integer(n);
    }
    case KEEL_FIELD_FLOAT: {
        const double x = *(const double *)place;
        return isnan(x) ? json_null() : keel_json_of_number(x);
    }
    case KEEL_FIELD_BOOL:
        return json_boolean(*(const bool *)place);
    case KEEL_FIELD_CHOICE:
        return choice_json(f, *(const int *)place);
    case KEEL_FIELD_STRING: {
        const char *text = *(char *const *)place;
        return text ? json_string(text) : json_null();
    }
    case KEEL_FIELD_INTS:
        return ints_json(f, place);
    case KEEL_FIELD_TEXTS:
        return texts_json(place);
    case KEEL_FIELD_REALS:
        return reals_json(f, place);
    case KEEL_FIELD_LIST: {
        json_t *list = *(json_t *const *)place;
        return list ? json_incref(list) : json_null();
    }
    default:
        return keel_object_json(place);
    }
}

static bool is_default(const keel_field *f, const json_t *v)
{
    json_t *dflt = json_loads(f->dflt, JSON_DECODE_ANY, NULL);
    const bool same = dflt && json_equal(dflt, v);
    json_decref(dflt);
    return same;
}

json_t *keel_fields_json(const keel_type *type, const void *args)
{
    json_t *all = json_object();
    for (const keel_field *f = type->fields; all && f && f->key; f++) {
        if (f->kind == KEEL_FIELD_REFUSE || f->kind == KEEL_FIELD_IGNORE) continue;
        json_t *v = field_json(f, keel_field_place_const(f, args));
        if (v && f->newer && is_default(f, v)) {
            json_decref(v);
            continue;
        }
        if (json_object_set_new(all, f->key, v) == 0) continue; /* fails also if v is NULL */
        json_decref(all);
        all = NULL;
    }
    if (!all) keel_fail(KEEL_ENOMEM, "out of memory: the config of %s", type->name);
    return all;
}

json_t *keel_object_json(const keel_object *o)
{
    if (!o->type) return json_null();
    if (o->type->module && !strcmp(o->type->module, "keras.activations"))
        return json_string(o->type->name);
    json_t *config = keel_fields_json(o->type, o->args);
    if (!config) return NULL;
    const keel_registered *registered = o->type->registered;
    return json_pack("{s:s?, s:s, s:o, s:s?}", "module", o->type->module, "class_name",
                     o->type->name, "config", config, "registered_name",
                     registered ? registered->name : NULL);
}
