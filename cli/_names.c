/* Names with arguments, as they are written in Python: "SGD(momentum=0.9)". See setup.h. */
#include "setup.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

size_t keel_setup_part(const char *text)
{
    int depth = 0;
    char quote = 0;
    size_t n = 0;
    for (; text[n]; n++) {
        const char c = text[n];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == ',' && depth == 0)
            break;
        else
            depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
    return n;
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct writer {
    char *at, *end;
    bool full;
} writer;

static void put(writer *o, const char *text, size_t n)
{
    if ((size_t)(o->end - o->at) <= n) {
        o->full = true;
        return;
    }
    memcpy(o->at, text, n);
    o->at += n;
    *o->at = 0;
}

/* Python has numbers that JSON does not: .9, 1., +1 */
static bool put_number(writer *o, const char *text, size_t n)
{
    char copy[64], *end, number[40];
    if (!n || n >= sizeof copy || strspn(text, "+-.0123456789eE") < n) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    const double x = strtod(copy, &end);
    if (*end) return false;
    const bool whole = strspn(copy + (*copy == '-'), "0123456789") == n - (*copy == '-');
    if (!whole) snprintf(number, sizeof number, "%.17g", x);
    put(o, whole ? copy : number, strlen(whole ? copy : number));
    return true;
}

static bool put_text(writer *o, const char *text, size_t n)
{
    const bool quoted = n >= 2 && (*text == '"' || *text == '\'') && text[n - 1] == *text;
    if (quoted) {
        text++;
        n -= 2;
    }
    if (memchr(text, '"', n) || memchr(text, '\\', n)) return false;
    put(o, "\"", 1);
    put(o, text, n);
    put(o, "\"", 1);
    return true;
}

/* Write a value as JSON: numbers stay, Python's True, False and None become JSON's, and other words
 * texts; a list has such values, and no lists. */
static bool put_value(writer *o, const char *text, size_t n, bool in_list)
{
    static const char *const words[][2] = {
        { "True", "true" }, { "False", "false" }, { "None", "null" },
        { "true", "true" }, { "false", "false" }, { "null", "null" },
    };
    for (; n && *text == ' '; text++) n--;
    for (; n && text[n - 1] == ' ';) n--;
    if (!n) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i][0]) == n && !strncmp(words[i][0], text, n)) {
            put(o, words[i][1], strlen(words[i][1]));
            return true;
        }
    if (*text != '[' || text[n - 1] != ']') return put_number(o, text, n) || put_text(o, text, n);
    if (in_list) return false;
    const char *const end = text + n - 1;
    put(o, "[", 1);
    for (const char *at = text + 1; at < end;) {
        size_t part = keel_setup_part(at);
        if (part > (size_t)(end - at)) part = (size_t)(end - at);
        if (at > text + 1) put(o, ",", 1);
        if (!put_value(o, at, part, true)) return false;
        at += part + (at[part] == ',');
    }
    put(o, "]", 1);
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The name and the text of the arguments, in out->text; NULL: none. */
static int split(keel_parsed_name *out, const char *option, const char *text, char **args)
{
    const size_t n = strlen(text);
    *args = NULL;
    if (n >= sizeof out->text)
        return keel_complain(EXIT_USAGE, "--%s: %zu characters are too long", option, n);
    if (!n) return keel_complain(EXIT_USAGE, "--%s: a name is empty", option);
    memcpy(out->text, text, n + 1);
    out->named.name = out->text;
    char *at = strchr(out->text, '(');
    if (!at) return -1;
    int depth = 0;
    for (const char *p = at; *p; p++) {
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (depth == 0 && p[1])
            return keel_complain(EXIT_USAGE, "--%s '%s' goes on behind its ')'", option, text);
    }
    if (out->text[n - 1] != ')' || depth)
        return keel_complain(EXIT_USAGE, "--%s '%s': the ')' at the end is missing", option, text);
    out->text[n - 1] = 0;
    *at = 0;
    *args = at + 1;
    return -1;
}

/* The '=' behind the name that an argument of `n` letters begins with; NULL: it has no name. */
static char *find_equals(char *argument, size_t n)
{
    size_t name = 0;
    while (name < n && (isalnum((unsigned char)argument[name]) || argument[name] == '_')) name++;
    char *behind = argument + name + strspn(argument + name, " ");
    return name > 0 && behind < argument + n && *behind == '=' ? behind : NULL;
}

/* The next argument: "key=value". The first one of an optimizer is its learning rate, in Keras too;
 * others without a name would need Keras's order of arguments. NULL: it has no name. */
static const char *next_argument(char **at, bool is_rate, char **value)
{
    char *argument = *at;
    const size_t length = keel_setup_part(argument);
    char *equals = find_equals(argument, length);
    *at += length + (argument[length] == ',');
    argument[length] = 0;
    *value = argument;
    if (!equals) return is_rate ? "learning_rate" : NULL;
    *equals = 0;
    argument[strcspn(argument, " ")] = 0;
    *value = equals + 1 + strspn(equals + 1, " ");
    return argument;
}

static const char *example(const char *option)
{
    return !strcmp(option, "optimizer") ? "SGD(0.1, momentum=0.9)"
           : !strcmp(option, "loss")    ? "Huber(delta=2)"
                                        : "TopKCategoricalAccuracy(k=3)";
}

int keel_setup_named(keel_parsed_name *out, const char *option, const char *text)
{
    const bool has_rate = !strcmp(option, "optimizer");
    char *at, *value;
    int k = 0, rated = 0;
    *out = (keel_parsed_name){ 0 };
    const int code = split(out, option, text, &at);
    if (code >= 0 || !at) return code;
    for (bool first = true; *(at += strspn(at, " ,")); first = false) {
        const char *key = next_argument(&at, has_rate && first, &value);
        if (!key || k == 16)
            return keel_complain(EXIT_USAGE, "--%s '%s': arguments are written key=value, as '%s'",
                                 option, text, example(option));
        if (has_rate && !strcmp(key, "learning_rate")) {
            if (rated++)
                return keel_complain(EXIT_USAGE, "--%s '%s': learning_rate is given twice", option,
                                     text);
            out->schedule = strchr(value, '(') ? value : NULL;
            if (out->schedule) continue;
        }
        writer o = { out->value[k], out->value[k] + sizeof out->value[k], false };
        if (!put_value(&o, value, strlen(value), false) || o.full)
            return keel_complain(EXIT_USAGE, "--%s '%s': %s has %s", option, text, key,
                                 !*value  ? "no value"
                                 : o.full ? "too long a value"
                                          : "a value that cannot be read");
        out->arg[k] = (keel_arg)KEEL_ARG_JSON(key, out->value[k]);
        k++;
    }
    if (k) out->named.args = out->arg;
    return -1;
}

int keel_setup_named_list(keel_parsed_name *list, int most, keel_named *named, const char *option,
                          const char *text)
{
    char one[512];
    int n = 0, code;
    for (const char *p = text; *p; n++) {
        p += strspn(p, " ");
        size_t length = keel_setup_part(p);
        const size_t all = length;
        while (length && p[length - 1] == ' ') length--;
        if (n == most || length >= sizeof one)
            return keel_complain(EXIT_USAGE, "--%s '%s': too many or too long", option, text);
        snprintf(one, sizeof one, "%.*s", (int)length, p);
        if ((code = keel_setup_named(&list[n], option, one)) >= 0) return code;
        named[n] = list[n].named;
        p += all + (p[all] == ',');
    }
    return -1;
}
