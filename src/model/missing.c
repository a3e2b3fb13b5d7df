/* Lists everything that a model has and Keel has not, so that a user does not find out one layer,
 * loss or metric at a time. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 700 }; /* an error is one line of KEEL_ERROR_MAX bytes */

typedef struct survey {
    keel_text text;
    int found, shown;
    bool compile; /* include what compile chooses, besides layers */
} survey;

static void add(survey *s, const char *what)
{
    s->found++;
    if (s->text.length + strlen(what) > SHOWN_BYTES) return;
    keel_text_add(&s->text, "%s%s", s->shown++ ? "; " : "", what);
}

/* Why a layer cannot be read; "" if it can. */
static void reason(const json_t *v, char *out, size_t size)
{
    const json_t *config = json_object_get(v, "config");
    const char *name = json_string_value(json_object_get(config, "name"));
    const char *class_name = json_string_value(json_object_get(v, "class_name"));
    const keel_layer *kind = keel_model_class_of(v);
    keel_layer_common common;
    *out = 0;
    if (!kind) {
        const char *custom = keel_custom_name(v);
        snprintf(out, size, "layer '%.60s': no class '%.80s'%s", name ? name : "?",
                 custom       ? custom
                 : class_name ? class_name
                              : "?",
                 custom ? " (see keel_register_layer)" : "");
        return;
    }
    void *args = keel_calloc(1, kind->type.args_size);
    const keel_status s = args ? keel_layer_read(kind, config, args, &common) : KEEL_ENOMEM;
    if (s == KEEL_EUNSUP) snprintf(out, size, "%.160s", keel_error());
    if (s >= 0) {
        keel_fields_free(&kind->type, args);
        keel_object_free(&common.activity);
    }
    keel_free(args);
}

/* Looks at a layer, the layers it holds, and those of a model. */
static void look(survey *s, const json_t *v, int depth)
{
    char why[192];
    const json_t *config = json_object_get(v, "config"), *layer;
    const char *class_name = json_string_value(json_object_get(v, "class_name"));
    size_t i;
    if (depth > KEEL_MODELS_DEEP) return;
    if (class_name && (!strcmp(class_name, "Sequential") || !strcmp(class_name, "Functional"))) {
        json_array_foreach(json_object_get(config, "layers"), i, layer) look(s, layer, depth + 1);
        return;
    }
    reason(v, why, sizeof why);
    if (*why) add(s, why);
    const keel_layer *kind = keel_model_class_of(v);
    for (int k = 0; kind && kind->held && kind->held[k]; k++)
        if ((layer = json_object_get(config, kind->held[k]))) look(s, layer, depth + 1);
    if (kind && kind->held_list)
        json_array_foreach(json_object_get(config, kind->held_list), i, layer)
            look(s, layer, depth + 1);
}

static void add_of_compile(void *context, const char *what)
{
    survey *s = context;
    s->compile = true;
    add(s, what);
}

/* The error of a survey; if it found at most one thing, the original error. */
static keel_status tell(survey *s, const char *first)
{
    if (s->found > s->shown) keel_text_add(&s->text, "; and %d more", s->found - s->shown);
    const keel_status status = s->found > 1 && !s->text.failed
                                   ? keel_fail(KEEL_EUNSUP, "%d %s are not supported: %s", s->found,
                                               s->compile ? "parts" : "layers", s->text.data)
                                   : keel_fail(KEEL_EUNSUP, "%s", first);
    keel_text_free(&s->text);
    return status;
}

keel_status keel_model_list_missing(const json_t *root)
{
    char first[KEEL_ERROR_MAX];
    survey s = { 0 };
    snprintf(first, sizeof first, "%s", keel_error());
    look(&s, root, 0);
    keel_compile_missing(json_object_get(root, "compile_config"), add_of_compile, &s);
    return tell(&s, first);
}

keel_status keel_compile_list_missing(const json_t *compile_config)
{
    char first[KEEL_ERROR_MAX];
    survey s = { 0 };
    snprintf(first, sizeof first, "%s", keel_error());
    keel_compile_missing(compile_config, add_of_compile, &s);
    return tell(&s, first);
}
