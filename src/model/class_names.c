/* The names of a classifier's classes, and how a .keras file keeps them: in a member keel.json
 * beside config.json, which Keras ignores.
 *
 * {"class_names": ["cat", "dog"]}
 *
 * The order is that of the labels 0, 1, ... with which the model was trained. Without it, a later
 * run on data with other classes would number them differently and compare the wrong ones. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <stdlib.h>
#include <string.h>

/* ALL_BYTES_MAX: JSON may use 6 bytes for one, and the member must fit in KEEL_EXTRA_BYTES_MAX. */
enum {
    NAMES_MAX = 1 << 20,
    NAME_BYTES_MAX = 4096,
    ALL_BYTES_MAX = 4 << 20,
    VALUES_MAX = NAMES_MAX + 16,
};
_Static_assert(6 * ALL_BYTES_MAX + 64 <= KEEL_EXTRA_BYTES_MAX, "what is saved can be loaded");

static bool is_utf8(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        const int n = keel_utf8_next(text, left, NULL);
        if (n == 0) return false;
        text += n;
        left -= (size_t)n;
    }
    return true;
}

static keel_status check_name(const char *name, int64_t i)
{
    if (!name || !*name)
        return keel_fail(KEEL_EARG, "the name of class %lld is empty", (long long)i);
    if (strlen(name) > NAME_BYTES_MAX)
        return keel_fail(KEEL_EARG, "the name of class %lld has %zu bytes, more than %d",
                         (long long)i, strlen(name), NAME_BYTES_MAX);
    if (!is_utf8(name))
        return keel_fail(KEEL_EARG, "the name of class %lld is not UTF-8: '%s'", (long long)i,
                         name);
    return KEEL_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static keel_status check_distinct(char *const *names, int64_t n)
{
    char **sorted = keel_calloc((size_t)n, sizeof *sorted);
    keel_status s = KEEL_OK;
    if (!sorted) return KEEL_ENOMEM;
    if (n) memcpy(sorted, names, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_text);
    for (int64_t i = 1; i < n && s >= 0; i++)
        if (!strcmp(sorted[i - 1], sorted[i]))
            s = keel_fail(KEEL_EARG, "two classes are called '%s'", sorted[i]);
    keel_free(sorted);
    return s;
}

static void free_names(char **names, int64_t n)
{
    for (int64_t i = 0; names && i < n; i++) keel_free(names[i]);
    keel_free(names);
}

keel_status keel_model_set_class_names(keel_model *m, const char *const *names, int64_t n)
{
    keel_status s = KEEL_OK;
    if (n < 0 || n > NAMES_MAX || (n > 0 && !names))
        return keel_fail(KEEL_EARG, "names of %lld classes; possible are 0 to %d", (long long)n,
                         NAMES_MAX);
    size_t n_bytes = 0;
    char **own = keel_calloc((size_t)n, sizeof *own);
    if (!own) return KEEL_ENOMEM;
    for (int64_t i = 0; i < n && s >= 0; i++) {
        s = check_name(names[i], i);
        if (s >= 0 && (n_bytes += strlen(names[i]) + 1) > ALL_BYTES_MAX)
            s = keel_fail(KEEL_EARG, "the names of %lld classes have more than %d bytes together",
                          (long long)n, ALL_BYTES_MAX);
        if (s >= 0 && !(own[i] = keel_strdup(names[i]))) s = KEEL_ENOMEM;
    }
    if (s >= 0) s = check_distinct(own, n);
    if (s < 0) goto out;
    free_names(m->class_names, m->n_class);
    m->class_names = n ? own : NULL;
    m->n_class = n;
    if (n) own = NULL;
out:
    free_names(own, n);
    return s;
}

int64_t keel_model_class_count(const keel_model *m)
{
    return m->n_class;
}

const char *keel_model_class_name(const keel_model *m, int64_t i)
{
    return i >= 0 && i < m->n_class ? m->class_names[i] : NULL;
}

/* ---- keel.json ------------------------------------------------------------------------------- */

/* A parsed value takes about 100 bytes and may have two in the text, so values are counted first.
 */
static bool has_few_values(const char *text, size_t n)
{
    bool quoted = false;
    int64_t values = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (c == '"') quoted = !quoted;
        if (quoted && c == '\\') i++;
        if (!quoted && (c == ',' || c == '[' || c == '{') && ++values > VALUES_MAX) return false;
    }
    return true;
}

static keel_status take_names(keel_model *m, const json_t *list)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > NAMES_MAX)
        return keel_fail(KEEL_EFORMAT, "class_names: expected a list of at most %d texts",
                         NAMES_MAX);
    const char **names = keel_calloc(n, sizeof *names);
    keel_status s = KEEL_OK;
    if (!names) return KEEL_ENOMEM;
    for (size_t i = 0; i < n && s >= 0; i++)
        if (!(names[i] = json_string_value(json_array_get(list, i))))
            s = keel_fail(KEEL_EFORMAT, "class_names: %zu is no text", i);
    if (s >= 0) s = keel_model_set_class_names(m, names, (int64_t)n);
    keel_free(names);
    return s;
}

keel_status keel_model_read_extra(keel_model *m, const char *text, size_t n_bytes)
{
    keel_status s = KEEL_OK;
    json_error_t error;
    const char *key;
    json_t *value, *root = NULL;
    if (!has_few_values(text, n_bytes))
        return keel_fail(KEEL_EFORMAT, "keel.json: more than %d values", VALUES_MAX);
    root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return keel_fail(KEEL_ENOMEM, "out of memory reading keel.json");
    if (!root) return keel_fail(KEEL_EFORMAT, "keel.json: line %d: %s", error.line, error.text);
    if (!json_is_object(root)) s = keel_fail(KEEL_EFORMAT, "expected an object");
    json_object_foreach(root, key, value)
    {
        if (s < 0) break;
        /* If it were ignored, it would be lost when the model is saved again. */
        s = strcmp(key, "class_names") != 0
                ? keel_fail(KEEL_EUNSUP, "'%.100s' is not known to this Keel; a newer one wrote it",
                            key)
                : take_names(m, value);
    }
    json_decref(root);
    return s < 0 ? keel_fail_within(s, "keel.json") : s;
}

keel_status keel_model_extra_text(const keel_model *m, char **out)
{
    json_t *list = json_array(), *root = NULL;
    bool whole = list != NULL;
    *out = NULL;
    for (int64_t i = 0; whole && i < m->n_class; i++)
        whole = json_array_append_new(list, json_string(m->class_names[i])) == 0;
    if (whole) root = json_pack("{s:O}", "class_names", list);
    if (root) *out = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    json_decref(list);
    return *out ? KEEL_OK : keel_fail(KEEL_ENOMEM, "out of memory writing keel.json");
}
