/* See python_json.h. */
#include "base/python_json.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *word, *text; /* as Python writes it, and as it is kept */
    double value;
} special[] = {
    { "-Infinity", "\"keel:-Infinity\"", -INFINITY },
    { "Infinity", "\"keel:Infinity\"", INFINITY },
    { "NaN", "\"keel:NaN\"", NAN },
};
enum { SPECIAL = sizeof special / sizeof *special };

/* The end of the string that begins at i, which may be missing. */
static size_t end_of_string(const char *text, size_t n_bytes, size_t i)
{
    for (i++; i < n_bytes && text[i] != '"'; i++) i += text[i] == '\\';
    return i < n_bytes ? i + 1 : n_bytes;
}

static int special_at(const char *text, size_t n_bytes)
{
    for (int k = 0; k < SPECIAL; k++) {
        const size_t n = strlen(special[k].word);
        if (n <= n_bytes && !memcmp(text, special[k].word, n)) return k;
    }
    return -1;
}

/* Copies the text, or counts its bytes if `to` is NULL. */
static size_t copy(const char *text, size_t n_bytes, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes;) {
        const int k = special_at(text + i, n_bytes - i);
        const char *from = k < 0 ? text + i : special[k].text;
        const size_t end = text[i] == '"' ? end_of_string(text, n_bytes, i) : i + 1;
        const size_t count = k < 0 ? end - i : strlen(from);
        if (to) memcpy(to + n, from, count);
        n += count;
        i = k < 0 ? end : i + strlen(special[k].word);
    }
    return n;
}

char *keel_python_json_read(const char *text, size_t n_bytes, size_t *n_out)
{
    const size_t n = copy(text, n_bytes, NULL);
    char *to = keel_calloc(n + 1, 1);
    if (to) *n_out = copy(text, n_bytes, to);
    return to;
}

void keel_python_json_write(char *text)
{
    const size_t n_bytes = strlen(text);
    size_t n = 0;
    for (size_t i = 0; i < n_bytes;) {
        const size_t end = text[i] == '"' ? end_of_string(text, n_bytes, i) : i + 1;
        const char *from = text + i;
        size_t count = end - i;
        for (int k = 0; k < SPECIAL; k++)
            if (count == strlen(special[k].text) && !memcmp(from, special[k].text, count)) {
                from = special[k].word;
                count = strlen(from);
            }
        memmove(text + n, from, count);
        n += count;
        i = end;
    }
    text[n] = 0;
}

bool keel_json_number(const json_t *v, double *out)
{
    const char *text = json_string_value(v);
    if (json_is_number(v)) *out = json_number_value(v);
    for (int k = 0; k < SPECIAL && text; k++) {
        const size_t n = strlen(special[k].text) - 2; /* without the quotes */
        if (strlen(text) != n || memcmp(text, special[k].text + 1, n)) continue;
        *out = special[k].value;
        return true;
    }
    return json_is_number(v);
}

json_t *keel_json_of_number(double x)
{
    if (isfinite(x)) return json_real(x);
    return json_string(isnan(x) ? "keel:NaN" : x > 0 ? "keel:Infinity" : "keel:-Infinity");
}
