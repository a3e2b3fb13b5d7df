/* Reads JSON by field tables. The JSON may come from a file, so every type, range and count is
 * checked here and nowhere else. Defaults, which are JSON texts, are read in the same way. */
#include "base/c_locale.h"
#include "base/field_impl.h"
#include "base/memory.h"
#include "base/python_json.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LIST_MAX = 4096 }; /* texts or numbers in a list */

/* ---- error texts ---------------------------------------------------------------------------- */

static const char *value_text(char out[96], const json_t *v)
{
    double x;
    switch (json_typeof(v)) {
    case JSON_STRING:
        if (keel_json_number(v, &x))
            snprintf(out, 96, "%g", x);
        else
            snprintf(out, 96, "'%.60s'", json_string_value(v));
        break;
    case JSON_INTEGER:
        snprintf(out, 96, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        keel_snprintf(out, 96, "%g", json_real_value(v));
        break;
    case JSON_ARRAY:
        snprintf(out, 96, "a list of %zu", json_array_size(v));
        break;
    case JSON_OBJECT:
        snprintf(out, 96, "an object");
        break;
    default:
        snprintf(out, 96, "%s", json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null");
    }
    return out;
}

static keel_status wrong(const keel_type *type, const keel_field *f, const json_t *v,
                         const char *must)
{
    char text[96];
    return keel_fail(KEEL_EARG, "%s: %s must be %s, not %s", type->name, f->key, must,
                     value_text(text, v));
}

static keel_status check_range(const keel_type *type, const keel_field *f, double v,
                               const json_t *json)
{
    if (f->min == 0 && f->max == 0) return KEEL_OK;
    char must[64];
    if (v < f->min)
        keel_snprintf(must, sizeof must, "at least %.10g", f->min);
    else if (f->max >= f->min && v > f->max)
        keel_snprintf(must, sizeof must, "at most %.10g", f->max);
    else
        return KEEL_OK;
    return wrong(type, f, json, must);
}

/* Levenshtein distance, with one row of the matrix; keys longer than the row are not compared. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 48 };
    const size_t n = strlen(a), m = strlen(b);
    int row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int corner = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const int above = row[j];
            int best = corner + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            corner = above;
            row[j] = best;
        }
    }
    return row[m];
}

static const keel_field *find(const keel_type *type, const char *key)
{
    for (const keel_field *f = type->fields; f && f->key; f++)
        if (!strcmp(f->key, key)) return f;
    return NULL;
}

/* The error for an unknown key: of a layer it refers to 'keel layers', of other types it lists the
 * keys. */
const keel_field *keel_field_find(const keel_type *type, const char *key)
{
    const keel_field *found = find(type, key);
    if (found) return found;
    const keel_field *nearest = NULL;
    int least = 3;
    char hint[96] = "", list[400];
    size_t n = (size_t)snprintf(list, sizeof list, "its arguments are");
    const char *separator = " ";
    for (const keel_field *f = type->fields; f && f->key; f++) {
        const int d = distance(key, f->key);
        if (d < least) {
            least = d;
            nearest = f;
        }
        if (f->kind == KEEL_FIELD_IGNORE || n + strlen(f->key) + 6 > sizeof list) continue;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", separator, f->key);
        separator = ", ";
    }
    if (nearest) snprintf(hint, sizeof hint, " (did you mean '%.60s'?)", nearest->key);
    if (type->module && !strcmp(type->module, "keras.layers"))
        snprintf(list, sizeof list, "see 'keel layers %.60s'", type->name);
    else if (separator[0] == ' ')
        snprintf(list, sizeof list, "it has no arguments");
    keel_fail(KEEL_EARG, "%s: there is no argument '%.60s'%s; %s", type->name, key, hint, list);
    return NULL;
}

bool keel_field_null_allowed(const keel_field *f)
{
    return f->nullable || (f->dflt && !strcmp(f->dflt, "null"));
}

/* ---- one reader per kind; each writes its result last -----------------------------------------
 */

static keel_status read_int(const keel_type *type, const keel_field *f, const json_t *v,
                            int64_t *out)
{
    if (json_is_array(v) && json_array_size(v) == 1) v = json_array_get(v, 0);
    const int64_t n = json_is_integer(v) ? json_integer_value(v) : KEEL_INT_NULL;
    if (n == KEEL_INT_NULL) return wrong(type, f, v, "a whole number");
    KEEL_TRY(check_range(type, f, (double)n, v));
    *out = n;
    return KEEL_OK;
}

static keel_status read_float(const keel_type *type, const keel_field *f, const json_t *v,
                              double *out)
{
    double x = NAN; /* which says null */
    const bool any = f->min == 0 && f->max == 0;
    const bool read = keel_json_number(v, &x);
    const bool endless = any || isinf(x > 0 ? f->max : f->min); /* infinity is in the range */
    if (!read || isnan(x) || (isinf(x) && !endless)) return wrong(type, f, v, "a number");
    KEEL_TRY(check_range(type, f, x, v));
    *out = x;
    return KEEL_OK;
}

/* null (Python's None) is the choice "none", where there is one. */
static keel_status read_choice(const keel_type *type, const keel_field *f, const json_t *v,
                               int *out)
{
    int index = 0;
    const char *word = f->choices;
    const bool none =
        json_is_null(v) || (json_is_string(v) && !strcmp(json_string_value(v), "None"));
    const char *given = none ? "none" : json_is_string(v) ? json_string_value(v) : "";
    const size_t n = none ? strlen(given) : json_is_string(v) ? json_string_length(v) : 0;
    for (; word; index++) {
        const size_t length = strcspn(word, "|");
        if (n && n == length && !memcmp(word, given, n)) {
            *out = index;
            return KEEL_OK;
        }
        word = word[length] ? word + length + 1 : NULL;
    }
    char must[256];
    size_t at = (size_t)snprintf(must, sizeof must, "one of ");
    for (const char *c = f->choices; *c && at + 3 < sizeof must; c++) {
        must[at++] = *c == '|' ? ',' : *c;
        if (*c == '|') must[at++] = ' ';
    }
    must[at] = 0;
    return wrong(type, f, v, must);
}

static keel_status read_string(const keel_type *type, const keel_field *f, const json_t *v,
                               char **out)
{
    if (!json_is_string(v)) return wrong(type, f, v, "a text");
    if (strlen(json_string_value(v)) != json_string_length(v))
        return keel_fail(KEEL_EARG, "%s: %s has a zero byte in it", type->name, f->key);
    char *copy = keel_strdup(json_string_value(v));
    if (!copy) return KEEL_ENOMEM;
    *out = copy;
    return KEEL_OK;
}

static void free_texts(keel_texts *t)
{
    for (int i = 0; i < t->count; i++) keel_free(t->at[i]);
    keel_free(t->at);
    *t = (keel_texts){ 0 };
}

keel_status keel_texts_copy(keel_texts *out, const keel_texts *t)
{
    keel_texts copy = { .at = keel_calloc((size_t)t->count, sizeof(*copy.at)) };
    if (!copy.at) return KEEL_ENOMEM;
    for (; copy.count < t->count; copy.count++)
        if (!(copy.at[copy.count] = keel_strdup(t->at[copy.count]))) {
            free_texts(&copy);
            return KEEL_ENOMEM;
        }
    *out = copy;
    return KEEL_OK;
}

keel_status keel_reals_copy(keel_reals *out, const keel_reals *r)
{
    double *at = keel_calloc((size_t)r->count, sizeof *at);
    if (!at) return KEEL_ENOMEM;
    for (int i = 0; i < r->count; i++) at[i] = r->at[i];
    *out = (keel_reals){ r->count, at };
    return KEEL_OK;
}

static keel_status read_texts(const keel_type *type, const keel_field *f, const json_t *v,
                              keel_texts *out)
{
    keel_texts texts = { 0 };
    if (!json_is_array(v)) return wrong(type, f, v, "a list of texts");
    if (json_array_size(v) > LIST_MAX)
        return keel_fail(KEEL_EARG, "%s: %s has more than %d texts", type->name, f->key, LIST_MAX);
    texts.at = keel_calloc(json_array_size(v), sizeof(*texts.at));
    if (!texts.at) return KEEL_ENOMEM;
    for (size_t i = 0; i < json_array_size(v); i++, texts.count++) {
        const keel_status s = read_string(type, f, json_array_get(v, i), &texts.at[i]);
        if (s < 0) {
            free_texts(&texts);
            return s;
        }
    }
    *out = texts;
    return KEEL_OK;
}

static keel_status read_reals(const keel_type *type, const keel_field *f, const json_t *v,
                              keel_reals *out)
{
    const bool one = f->count && json_is_number(v);
    const size_t n = one ? 1 : json_array_size(v); /* 0 if v is not an array */
    if (n == 0) return wrong(type, f, v, "a list of numbers");
    if (n > LIST_MAX)
        return keel_fail(KEEL_EARG, "%s: %s has more than %d numbers", type->name, f->key,
                         LIST_MAX);
    keel_reals reals = { .at = keel_calloc(n, sizeof *reals.at) };
    if (!reals.at) return KEEL_ENOMEM;
    for (size_t i = 0; i < n; i++, reals.count++) {
        const keel_status s = read_float(type, f, one ? v : json_array_get(v, i), &reals.at[i]);
        if (s < 0) {
            keel_free(reals.at);
            return s;
        }
    }
    *out = reals;
    return KEEL_OK;
}

static keel_status add_int(const keel_type *type, const keel_field *f, const json_t *v,
                           keel_ints *ints)
{
    const bool dims = f->count == -3 || (f->count == 0 && f->min == -1);
    const bool any = json_is_null(v) && dims; /* an open dim */
    if (!any && !json_is_integer(v)) return wrong(type, f, v, "whole numbers");
    if (!any) KEEL_TRY(check_range(type, f, (double)json_integer_value(v), v));
    if (ints->count == KEEL_INTS_MAX)
        return keel_fail(KEEL_EARG, "%s: %s has more than %d numbers", type->name, f->key,
                         KEEL_INTS_MAX);
    ints->at[ints->count++] = any ? -1 : json_integer_value(v);
    return KEEL_OK;
}

static keel_status read_ints(const keel_type *type, const keel_field *f, const json_t *v,
                             keel_ints *out)
{
    keel_ints ints = { 0 };
    const size_t n = json_array_size(v); /* 0 if v is not a list */
    if (!json_is_array(v)) {
        for (int i = 0; i < (f->count > 0 ? f->count : 1); i++)
            KEEL_TRY(add_int(type, f, v, &ints));
    } else {
        /* One number per pair: ZeroPadding2D((1, 2)) is ((1, 1), (2, 2)). */
        const bool halves = f->count >= 4 && n * 2 == (size_t)f->count;
        for (size_t i = 0; i < n; i++) {
            const json_t *e = json_array_get(v, i);
            if (!json_is_array(e)) {
                KEEL_TRY(add_int(type, f, e, &ints));
                if (halves) KEEL_TRY(add_int(type, f, e, &ints));
                continue;
            }
            if (json_array_size(e) != 2) return wrong(type, f, e, "pairs");
            for (size_t k = 0; k < 2; k++) KEEL_TRY(add_int(type, f, json_array_get(e, k), &ints));
        }
    }
    if (f->count > 0 && ints.count != f->count) {
        char must[64];
        snprintf(must, sizeof must, "%d whole number%s", f->count, f->count == 1 ? "" : "s");
        return wrong(type, f, v, must);
    }
    *out = ints;
    return KEEL_OK;
}

static keel_status refuse_others(const keel_type *type, const keel_field *f, const json_t *v)
{
    json_t *only = f->dflt ? json_loads(f->dflt, JSON_DECODE_ANY, NULL) : json_null();
    if (!only) return keel_fail(KEEL_ENOMEM, "out of memory: %s: %s", type->name, f->key);
    const bool same = json_is_number(v) && json_is_number(only)
                          ? json_number_value(v) == json_number_value(only)
                          : json_equal(v, only);
    json_decref(only);
    if (same) return KEEL_OK;
    char text[96];
    return keel_fail(KEEL_EUNSUP, "%s: %s (%s) must be %s, not %s: nothing else is supported",
                     type->name, f->key, f->help ? f->help : "of Keras", f->dflt ? f->dflt : "null",
                     value_text(text, v));
}

static keel_status read_null(const keel_field *f, void *place)
{
    switch (f->kind) {
    case KEEL_FIELD_INT:
        *(int64_t *)place = KEEL_INT_NULL;
        break;
    case KEEL_FIELD_FLOAT:
        *(double *)place = NAN;
        break;
    case KEEL_FIELD_CHOICE:
        *(int *)place = -1;
        break;
    case KEEL_FIELD_STRING:
        *(char **)place = NULL;
        break;
    case KEEL_FIELD_INTS:
        *(keel_ints *)place = (keel_ints){ .count = -1 };
        break;
    case KEEL_FIELD_TEXTS:
        *(keel_texts *)place = (keel_texts){ 0 };
        break;
    case KEEL_FIELD_REALS:
        *(keel_reals *)place = (keel_reals){ 0 };
        break;
    case KEEL_FIELD_LIST:
        *(json_t **)place = NULL;
        break;
    case KEEL_FIELD_OBJECT:
        *(keel_object *)place = (keel_object){ 0 };
        break;
    default:
        break;
    }
    return KEEL_OK;
}

/* NumPy's arrays and tensors in a config are {"class_name", "config": {"value", "dtype"}}. A
 * SeedGenerator is the seed that it has. */
static const json_t *numbers_of(const json_t *v)
{
    const char *name = json_string_value(json_object_get(v, "class_name"));
    const json_t *config = json_object_get(v, "config"), *of = json_object_get(config, "value");
    const json_t *seed = json_object_get(config, "seed");
    if (name && seed && !strcmp(name, "SeedGenerator")) return seed;
    return name && of && (!strcmp(name, "__numpy__") || !strcmp(name, "__tensor__")) ? of : v;
}

keel_status keel_field_read_at(const keel_type *type, const keel_field *f, const json_t *v,
                               void *args, int depth)
{
    char what[192];
    void *place = keel_field_place(f, args);
    v = numbers_of(v);
    if (f->kind == KEEL_FIELD_IGNORE) return KEEL_OK;
    if (f->kind == KEEL_FIELD_REFUSE) return refuse_others(type, f, v);
    if (json_is_null(v) && f->kind != KEEL_FIELD_BOOL && keel_field_null_allowed(f))
        return read_null(f, place);
    switch (f->kind) {
    case KEEL_FIELD_INT:
        return read_int(type, f, v, place);
    case KEEL_FIELD_FLOAT:
        return read_float(type, f, v, place);
    case KEEL_FIELD_BOOL:
        if (!json_is_boolean(v)) return wrong(type, f, v, "true or false");
        *(bool *)place = json_is_true(v);
        return KEEL_OK;
    case KEEL_FIELD_CHOICE:
        return read_choice(type, f, v, place);
    case KEEL_FIELD_STRING:
        return read_string(type, f, v, place);
    case KEEL_FIELD_INTS:
        return read_ints(type, f, v, place);
    case KEEL_FIELD_TEXTS:
        return read_texts(type, f, v, place);
    case KEEL_FIELD_REALS:
        return read_reals(type, f, v, place);
    case KEEL_FIELD_OBJECT:
        /* Layers rely on an initializer. A missing activation is linear. */
        if (json_is_null(v) && !(f->dflt && !strcmp(f->dflt, "\"linear\"")))
            return wrong(type, f, v, "a name or an object");
        snprintf(what, sizeof what, "%.80s: %.80s", type->name, f->key);
        return keel_object_read_at(place, v, f->find, what, depth + 1);
    case KEEL_FIELD_LIST:
        if (f->count == KEEL_A_DICTIONARY) {
            if (!json_is_object(v)) return wrong(type, f, v, "a dictionary");
        } else if (!json_is_array(v) &&
                   !(f->count == 1 && (json_is_number(v) || json_is_string(v))))
            return wrong(type, f, v, f->count == 1 ? "a number, a text or a list" : "a list");
        *(json_t **)place = json_incref((json_t *)v);
        return KEEL_OK;
    default:
        return keel_fail(KEEL_EARG, "%s: %s has an unknown kind", type->name, f->key);
    }
}

/* ---- whole tables -----------------------------------------------------------------------------
 */

static keel_status read_default(const keel_type *type, const keel_field *f, void *args, int depth)
{
    if (f->kind == KEEL_FIELD_IGNORE || f->kind == KEEL_FIELD_REFUSE) return KEEL_OK;
    if (!f->dflt) return keel_fail(KEEL_EARG, "%s: %s must be given", type->name, f->key);
    json_t *v = json_loads(f->dflt, JSON_DECODE_ANY, NULL);
    if (!v) /* jansson reports lack of memory as a fault of the text; our texts are tested */
        return keel_fail(KEEL_ENOMEM,
                         "%s: the default of %s: out of memory, or '%.80s' is not JSON", type->name,
                         f->key, f->dflt);
    const keel_status s = keel_field_read_at(type, f, v, args, depth);
    json_decref(v);
    return s;
}

keel_status keel_fields_read_at(const keel_type *type, const json_t *config, void *args, int depth)
{
    keel_status s = KEEL_OK;
    const char *key;
    json_t *value;
    if (depth > KEEL_NESTING_MAX)
        return keel_fail(KEEL_EARG, "%s: objects are nested deeper than %d", type->name,
                         KEEL_NESTING_MAX);
    if (config && !json_is_object(config)) {
        char text[96];
        return keel_fail(KEEL_EARG, "%s: its config must be an object, not %s", type->name,
                         value_text(text, config));
    }
    if (type->registered) *(const keel_type **)args = type;
    json_object_foreach((json_t *)config, key, value)
    {
        if (!keel_field_find(type, key)) return KEEL_EARG;
    }
    for (const keel_field *f = type->fields; f && f->key && s >= 0; f++) {
        value = json_object_get(config, f->key);
        s = value ? keel_field_read_at(type, f, value, args, depth)
                  : read_default(type, f, args, depth);
    }
    if (s >= 0 && type->ready) s = type->ready(args);
    if (s < 0) keel_fields_free(type, args);
    return s;
}

keel_status keel_fields_read(const keel_type *type, const json_t *config, void *args)
{
    return keel_fields_read_at(type, config, args, 0);
}

void keel_fields_free(const keel_type *type, void *args)
{
    if (!args) return;
    if (type->release) type->release(args);
    for (const keel_field *f = type->fields; f && f->key; f++) {
        if (f->kind == KEEL_FIELD_STRING) {
            char **text = keel_field_place(f, args);
            keel_free(*text);
            *text = NULL;
        } else if (f->kind == KEEL_FIELD_TEXTS) {
            free_texts(keel_field_place(f, args));
        } else if (f->kind == KEEL_FIELD_REALS) {
            keel_reals *reals = keel_field_place(f, args);
            keel_free(reals->at);
            *reals = (keel_reals){ 0 };
        } else if (f->kind == KEEL_FIELD_OBJECT) {
            keel_object_free(keel_field_place(f, args));
        } else if (f->kind == KEEL_FIELD_LIST) {
            json_t **list = keel_field_place(f, args);
            json_decref(*list);
            *list = NULL;
        }
    }
}
