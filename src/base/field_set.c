/* Reads a field from the command line: its text becomes the JSON that a file would have, which the
 * same reader takes. So both accept the same values and give the same errors. */
#include "base/c_locale.h"
#include "base/field_impl.h"
#include "base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return !strcmp(text, a) || !strcmp(text, b);
}

/* "3,3" and Python's "((1, 2), (3, 4))" and "(3,)" as a JSON list. */
static json_t *list_from(const char *text)
{
    enum { LONGEST = 400 };
    char list[LONGEST + 3];
    size_t n = 0;
    if (strlen(text) > LONGEST) return NULL;
    const bool bare = text[0] != '(' && text[0] != '[' && strchr(text, ',');
    if (bare) list[n++] = '[';
    for (const char *c = text; *c; c++) {
        if (*c == ' ' || *c == '\t') continue;
        const bool closes = *c == ')' || *c == ']';
        if (closes && n && list[n - 1] == ',') n--;
        list[n++] = *c == '(' ? '[' : closes ? ']' : *c;
    }
    if (bare) list[n++] = ']';
    list[n] = 0;
    return json_loads(list, JSON_DECODE_ANY, NULL);
}

/* "out,head" and Python's "['out', 'head']" as a JSON list. */
static json_t *texts_from(const char *text)
{
    json_t *list = json_array();
    while (list && *text) {
        const size_t skip = strspn(text, " \t,[]()'\""), n = strcspn(text += skip, ",[]()'\"");
        if (n > 0 && json_array_append_new(list, json_stringn(text, n)) < 0) {
            json_decref(list);
            return NULL;
        }
        text += n;
    }
    return list;
}

/* A text that does not have the kind of the field stays a JSON string, so that the reader reports
 * the error. */
static json_t *value_from(const keel_field *f, const char *text)
{
    char *end;
    json_t *v = NULL;
    errno = 0;
    if (is_one_of(text, "null", "None") && (keel_field_null_allowed(f) || !f->dflt))
        return json_null();
    switch (f->kind) {
    case KEEL_FIELD_INT: {
        const long long n = strtoll(text, &end, 10);
        if (end != text && !*end && !errno) return json_integer(n);
        break;
    }
    case KEEL_FIELD_FLOAT: {
        v = json_loads(text, JSON_DECODE_ANY, NULL);
        if (json_is_number(v)) break;
        json_decref(v);
        const double x = keel_strtod(text, &end); /* forms that JSON lacks: ".5", "1." */
        v = end != text && !*end && !errno ? json_real(x) : NULL; /* NULL if it is not finite */
        break;
    }
    case KEEL_FIELD_BOOL:
        if (is_one_of(text, "true", "True")) return json_true();
        if (is_one_of(text, "false", "False")) return json_false();
        break;
    case KEEL_FIELD_INTS:
    case KEEL_FIELD_REALS:
        v = list_from(text);
        break;
    case KEEL_FIELD_TEXTS:
        v = texts_from(text);
        break;
    case KEEL_FIELD_LIST:
        v = json_loads(text, f->count == 1 ? JSON_DECODE_ANY : 0, NULL);
        break;
    case KEEL_FIELD_OBJECT:
        if (text[0] == '{') v = json_loads(text, 0, NULL);
        break;
    case KEEL_FIELD_REFUSE:
    case KEEL_FIELD_IGNORE:
        if (is_one_of(text, "true", "True")) return json_true();
        if (is_one_of(text, "false", "False")) return json_false();
        v = json_loads(text, JSON_DECODE_ANY, NULL);
        break;
    default:
        break;
    }
    return v ? v : json_string(text);
}

keel_status keel_fields_set(const keel_type *type, json_t *config, const char *key,
                            const char *text)
{
    const keel_field *f = keel_field_find(type, key);
    if (!f) return KEEL_EARG;
    keel_status s = KEEL_OK;
    json_t *v = NULL;
    void *scratch = keel_calloc(1, type->args_size); /* args only for the check */
    if (!scratch) return KEEL_ENOMEM;
    if (!(v = value_from(f, text))) {
        v = json_string_nocheck(text); /* tells lack of memory from invalid UTF-8 */
        s = v ? keel_fail(KEEL_EARG, "%s: %s is not text in UTF-8", type->name, key)
              : keel_fail(KEEL_ENOMEM, "out of memory: %s: %s", type->name, key);
        goto out;
    }
    if ((s = keel_field_read_at(type, f, v, scratch, 0)) < 0) goto out;
    if (json_object_set(config, key, v) < 0)
        s = keel_fail(KEEL_ENOMEM, "out of memory: %s: %s", type->name, key);
out:
    json_decref(v);
    keel_fields_free(type, scratch);
    keel_free(scratch);
    return s;
}
