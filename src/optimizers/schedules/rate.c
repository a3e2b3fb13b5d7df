/* Finding a schedule by Keras's class name, and reading one that is written as in Python. */
#include "optimizers/schedules/rate.h"
#include "base/memory.h"
#include "base/text.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

const keel_type *keel_rate_find(const char *name)
{
    for (int i = 0; keel_rates[i]; i++)
        if (keel_type_is(&keel_rates[i]->type, name)) return &keel_rates[i]->type;
    return NULL;
}

enum { ARGUMENT_MAX = 400 };

/* The text from `from` to before `to`, without the spaces around it. */
static keel_status cut(char out[ARGUMENT_MAX + 1], const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from)) from++;
    while (to > from && isspace((unsigned char)to[-1])) to--;
    if (to - from > ARGUMENT_MAX)
        return keel_fail(KEEL_EARG, "a schedule: an argument of more than %d characters",
                         ARGUMENT_MAX);
    memcpy(out, from, (size_t)(to - from));
    out[to - from] = 0;
    return KEEL_OK;
}

static keel_status unknown(const char *name)
{
    char known[400] = "";
    size_t n = 0;
    for (int i = 0; keel_rates[i] && n < sizeof known - 64; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%.40s", i ? ", " : "",
                              keel_rates[i]->type.name);
    return keel_fail(KEEL_EARG, "there is no schedule '%.60s'; there are %s", name, known);
}

/* The end of the argument that begins at `at`: a comma or a parenthesis outside of any other. */
static const char *end_of(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        if (*at == '(' || *at == '[') depth++;
        if ((*at == ')' || *at == ']') && depth-- == 0) break;
        if (*at == ',' && depth == 0) break;
    }
    return at;
}

/* One argument: "alpha=0.01", or the position-th of the table. */
static keel_status add_argument(const keel_type *type, json_t *config, int position,
                                const char *from, const char *to)
{
    char key[ARGUMENT_MAX + 1], value[ARGUMENT_MAX + 1];
    const char *equals = memchr(from, '=', (size_t)(to - from));
    KEEL_TRY(cut(value, equals ? equals + 1 : from, to));
    if (!equals) {
        const keel_field *f = type->fields;
        for (int i = 0; i < position && f->key; i++) f++;
        if (!f->key)
            return keel_fail(KEEL_EARG, "%s: %d arguments, but it has %d", type->name, position + 1,
                             position);
        snprintf(key, sizeof key, "%s", f->key);
    } else {
        KEEL_TRY(cut(key, from, equals));
    }
    if (!*value) return keel_fail(KEEL_EARG, "%s: %s has no value", type->name, key);
    if (json_object_get(config, key))
        return keel_fail(KEEL_EARG, "%s: %s is given twice", type->name, key);
    return keel_fields_set(type, config, key, value);
}

static keel_status add_arguments(const keel_type *type, json_t *config, const char *at,
                                 const char *text)
{
    bool named = false;
    for (int i = 0;; i++) {
        const char *end = end_of(at);
        const bool blank = at + strspn(at, " \t") == end;
        const bool by_name = memchr(at, '=', (size_t)(end - at)) != NULL;
        if (*end != ',' && *end != ')')
            return keel_fail(KEEL_EARG, "%s: no ) at the end of '%.100s'", type->name, text);
        if (named && !by_name && !blank)
            return keel_fail(KEEL_EARG, "%s: arguments without a name come first in '%.100s'",
                             type->name, text);
        if (!blank || *end == ',') KEEL_TRY(add_argument(type, config, i, at, end));
        named = named || by_name;
        at = end + 1;
        if (*end == ')') break;
    }
    if (at[strspn(at, " \t")])
        return keel_fail(KEEL_EARG, "%s: '%.100s' goes on behind its )", type->name, text);
    return KEEL_OK;
}

keel_status keel_rate_parse(keel_object *out, const char *text)
{
    char name[ARGUMENT_MAX + 1];
    keel_status s = KEEL_OK;
    keel_object o = { 0 };
    const char *open = strchr(text, '(');
    KEEL_TRY(cut(name, text, open ? open : text + strlen(text)));
    const keel_type *type = keel_rate_find(name);
    if (!type) return unknown(name);
    json_t *config = json_object(), *whole = NULL;
    if (!config) return keel_fail(KEEL_ENOMEM, "out of memory reading a schedule");
    if (open && (s = add_arguments(type, config, open + 1, text)) < 0) goto out;
    if (!(whole = json_pack("{s:s, s:O}", "class_name", type->name, "config", config))) {
        s = keel_fail(KEEL_ENOMEM, "out of memory reading a schedule");
        goto out;
    }
    if ((s = keel_object_read(&o, whole, keel_rate_find, "learning_rate")) < 0) goto out;
    const keel_rate *rate = (const keel_rate *)type;
    if (rate->check && (s = rate->check(o.args)) < 0) goto out;
    *out = o;
    o = (keel_object){ 0 };
out:
    keel_object_free(&o);
    json_decref(whole);
    json_decref(config);
    return s;
}
