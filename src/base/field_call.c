/* Objects that are written as calls in Python: "CosineDecay(0.1, 1000, alpha=0.01)",
 * "EarlyStopping(monitor='val_loss', patience=5)". */
#include "base/field.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENT_MAX = 400 };

/* The text from `from` to before `to`, without the spaces around it. */
static keel_status cut(char out[ARGUMENT_MAX + 1], const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from)) from++;
    while (to > from && isspace((unsigned char)to[-1])) to--;
    if (to - from > ARGUMENT_MAX)
        return keel_fail(KEEL_EARG, "an argument of more than %d characters", ARGUMENT_MAX);
    memcpy(out, from, (size_t)(to - from));
    out[to - from] = 0;
    return KEEL_OK;
}

static keel_status unknown(const keel_call_kind *kind, const char *name)
{
    char known[600] = "";
    const keel_type *t;
    size_t n = 0;
    for (int i = 0; (t = kind->at(i)) && n < sizeof known - 64; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%.40s", i ? ", " : "", t->name);
    return keel_fail(KEEL_EARG, "there is no %s '%.60s'; there are %s", kind->what, name, known);
}

/* The end of the argument that begins at `at`: a comma or a parenthesis outside of any other and of
 * quotes. */
static const char *end_of(const char *at)
{
    int depth = 0;
    char quote = 0;
    for (; *at; at++) {
        if (*at == quote)
            quote = 0;
        else if (!quote && (*at == '"' || *at == '\''))
            quote = *at;
        if (quote) continue;
        if (*at == '(' || *at == '[') depth++;
        if ((*at == ')' || *at == ']') && depth-- == 0) break;
        if (*at == ',' && depth == 0) break;
    }
    return at;
}

static void unquote(char *text)
{
    const size_t n = strlen(text);
    if (n < 2 || (*text != '"' && *text != '\'') || text[n - 1] != *text) return;
    memmove(text, text + 1, n - 2);
    text[n - 2] = 0;
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
    unquote(value);
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

keel_status keel_object_parse(keel_object *out, const char *text, const keel_call_kind *kind)
{
    char name[ARGUMENT_MAX + 1];
    keel_status s = KEEL_OK;
    keel_object o = { 0 };
    const char *open = strchr(text, '(');
    KEEL_TRY(cut(name, text, open ? open : text + strlen(text)));
    const keel_type *type = kind->find(name);
    if (!type) return unknown(kind, name);
    json_t *config = json_object(), *whole = NULL;
    if (!config) return keel_fail(KEEL_ENOMEM, "out of memory reading a %s", kind->what);
    if (open && (s = add_arguments(type, config, open + 1, text)) < 0) goto out;
    if (!(whole = json_pack("{s:s, s:O}", "class_name", type->name, "config", config))) {
        s = keel_fail(KEEL_ENOMEM, "out of memory reading a %s", kind->what);
        goto out;
    }
    if ((s = keel_object_read(&o, whole, kind->find, kind->what)) < 0) goto out;
    *out = o;
    o = (keel_object){ 0 };
out:
    keel_object_free(&o);
    json_decref(whole);
    json_decref(config);
    return s;
}
