/* See toml.h. One pass over the text; every value goes into the table that the last header opened.
 * A table is defined once, in one way, and TOML says which ways may add to which: so each table
 * that is not a value has its origin. */
#include "io/toml.h"
#include "base/text.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 16, NUMBER_MAX = 64, KEY_MAX = 128 };

typedef struct parser {
    const char *at, *end, *name;
    int line;
    json_t *root;
    json_t *origins; /* by the address of a table or a list of tables; a value has none */
} parser;

/* What a table was made by. */
typedef enum origin {
    VALUE,  /* { ... }, or a list in brackets: nothing can be added */
    WITHIN, /* the header of a table inside: its own may follow, or dotted keys */
    HEADER, /* its own */
    DOTTED, /* a key: more such keys may follow */
    LIST,   /* of tables: its headers */
} origin;

static keel_status wrong(const parser *p, const char *what)
{
    return keel_fail(KEEL_EFORMAT, "%s, line %d: %s", p->name, p->line, what);
}

static int peek(const parser *p)
{
    return p->at < p->end ? (unsigned char)*p->at : -1;
}

static bool starts(const parser *p, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(p->end - p->at) >= n && !memcmp(p->at, word, n);
}

static void blanks(parser *p)
{
    while (peek(p) == ' ' || peek(p) == '\t') p->at++;
}

/* Blanks, a comment, and the line end; or the end of the file. */
static keel_status end_of_line(parser *p)
{
    blanks(p);
    if (peek(p) == '#')
        while (p->at < p->end && *p->at != '\n') p->at++;
    if (peek(p) == '\r') p->at++;
    if (p->at == p->end) return KEEL_OK;
    if (*p->at != '\n') return wrong(p, "something follows the value");
    p->at++;
    p->line++;
    return KEEL_OK;
}

/* Inside an array: also comments and line ends. */
static keel_status between(parser *p)
{
    for (;;) {
        blanks(p);
        const int c = peek(p);
        if (c != '#' && c != '\n' && c != '\r') return KEEL_OK;
        KEEL_TRY(end_of_line(p));
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static keel_status unicode(parser *p, int digits, keel_text *t)
{
    uint32_t code = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        const int c = peek(p);
        const int v = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (v < 0) return wrong(p, "\\u needs hexadecimal digits");
        code = code << 4 | (uint32_t)v;
    }
    if (!code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return wrong(p, "\\u is no character");
    if (code < 0x80)
        keel_text_add(t, "%c", (int)code);
    else if (code < 0x800)
        keel_text_add(t, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 63)));
    else if (code < 0x10000)
        keel_text_add(t, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 63)),
                      (int)(0x80 | (code & 63)));
    else
        keel_text_add(t, "%c%c%c%c", (int)(0xf0 | code >> 18), (int)(0x80 | (code >> 12 & 63)),
                      (int)(0x80 | (code >> 6 & 63)), (int)(0x80 | (code & 63)));
    return KEEL_OK;
}

static keel_status escape(parser *p, keel_text *t)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    const int c = peek(p);
    const char *known = c > 0 ? strchr(from, c) : NULL;
    p->at++;
    if (c == 'u' || c == 'U') return unicode(p, c == 'u' ? 4 : 8, t);
    if (!known) return wrong(p, "unknown escape in a text");
    keel_text_add(t, "%c", to[known - from]);
    return KEEL_OK;
}

/* A text in quotes of its kind; the first is the next character. */
static keel_status quoted(parser *p, keel_text *t)
{
    const char quote = *p->at;
    if (starts(p, quote == '"' ? "\"\"\"" : "'''"))
        return keel_fail(KEEL_EUNSUP, "%s, line %d: a text of several lines is not supported",
                         p->name, p->line);
    for (p->at++; p->at < p->end && *p->at != quote;) {
        const unsigned char c = (unsigned char)*p->at;
        if ((c < ' ' && c != '\t') || c == 127) return wrong(p, "a text has no end on its line");
        p->at++;
        if (c == '\\' && quote == '"')
            KEEL_TRY(escape(p, t));
        else
            keel_text_add(t, "%c", c);
    }
    if (p->at == p->end) return wrong(p, "a text has no end");
    p->at++;
    return t->failed ? KEEL_ENOMEM : KEEL_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_word(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == ':';
}

/* The word without its underscores, which must stand between digits. */
static keel_status word(parser *p, char out[NUMBER_MAX])
{
    size_t n = 0;
    const char *begin = p->at;
    while (is_word(peek(p))) p->at++;
    for (const char *c = begin; c < p->at; c++) {
        const bool between_digits = c > begin && c + 1 < p->at && isxdigit((unsigned char)c[-1]) &&
                                    isxdigit((unsigned char)c[1]);
        if (*c == '_' && between_digits) continue;
        if (n == NUMBER_MAX - 1) return wrong(p, "a number is too long");
        out[n++] = *c;
    }
    out[n] = 0;
    return n ? KEEL_OK : wrong(p, "a value is missing");
}

static keel_status whole(const parser *p, const char *digits, int base, json_t **out)
{
    char *end;
    if (base != 10 && digits[strspn(digits, "0123456789abcdefABCDEF")]) /* strtoll takes more */
        return wrong(p, "not a whole number of 64 bits");
    errno = 0;
    const long long v = strtoll(digits, &end, base);
    if (errno || *end || end == digits) return wrong(p, "not a whole number of 64 bits");
    *out = json_integer(v);
    return KEEL_OK;
}

/* Digits, a fraction and an exponent, as JSON has them; then strtod cannot read anything else. */
static bool is_decimal(const char *s)
{
    if (*s == '+' || *s == '-') s++;
    const char *first = s;
    while (*s >= '0' && *s <= '9') s++;
    if (s == first || (*first == '0' && s > first + 1)) return false;
    if (*s == '.') {
        const char *part = ++s;
        while (*s >= '0' && *s <= '9') s++;
        if (s == part) return false;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-') s++;
        const char *part = s;
        while (*s >= '0' && *s <= '9') s++;
        if (s == part) return false;
    }
    return !*s;
}

static keel_status number(const parser *p, const char *text, json_t **out)
{
    const size_t n = strlen(text);
    if (n > 4 && text[4] == '-' && strspn(text, "0123456789") == 4)
        return keel_fail(KEEL_EUNSUP, "%s, line %d: dates are not supported; write a text", p->name,
                         p->line);
    if (!strncmp(text, "0x", 2)) return whole(p, text + 2, 16, out);
    if (!strncmp(text, "0o", 2)) return whole(p, text + 2, 8, out);
    if (!strncmp(text, "0b", 2)) return whole(p, text + 2, 2, out);
    if (!is_decimal(text)) return wrong(p, "a text needs quotes, or this is not a value");
    if (!strpbrk(text, ".eE")) return whole(p, text, 10, out);
    json_error_t error;
    *out = json_loads(*text == '+' ? text + 1 : text, JSON_DECODE_ANY, &error);
    return *out && json_is_real(*out) ? KEEL_OK : wrong(p, "a number is out of range");
}

/* ---- values ---------------------------------------------------------------------------------- */

static keel_status value(parser *p, int depth, json_t **out);
static keel_status pair(parser *p, json_t *table, int depth);

static keel_status array(parser *p, int depth, json_t **out)
{
    json_t *list = json_array();
    keel_status s = list ? KEEL_OK : KEEL_ENOMEM;
    p->at++;
    for (bool first = true; s >= 0; first = false) {
        json_t *v = NULL;
        if ((s = between(p)) < 0) break;
        if (peek(p) == ']') break;
        if (!first && peek(p) != ',') s = wrong(p, "a comma is missing in a list");
        if (s >= 0 && !first) {
            p->at++;
            s = between(p);
            if (s >= 0 && peek(p) == ']') break;
        }
        if (s >= 0) s = value(p, depth + 1, &v);
        if (s >= 0 && json_array_append_new(list, v)) s = KEEL_ENOMEM;
    }
    if (s < 0) {
        json_decref(list);
        return s;
    }
    p->at++;
    *out = list;
    return KEEL_OK;
}

static keel_status inline_table(parser *p, int depth, json_t **out)
{
    json_t *table = json_object();
    keel_status s = table ? KEEL_OK : KEEL_ENOMEM;
    p->at++;
    for (bool first = true; s >= 0; first = false) {
        blanks(p);
        if (first && peek(p) == '}') break;
        if (!first && peek(p) == '}') break;
        if (!first && peek(p) != ',') s = wrong(p, "a comma or } is missing in a table");
        if (s >= 0 && !first) p->at++;
        if (s >= 0) s = pair(p, table, depth + 1);
    }
    if (s < 0) {
        json_decref(table);
        return s;
    }
    p->at++;
    *out = table;
    return KEEL_OK;
}

static keel_status text_value(parser *p, json_t **out)
{
    keel_text t = { 0 };
    keel_status s = quoted(p, &t);
    if (s >= 0) *out = json_stringn(t.data ? t.data : "", t.length);
    if (s >= 0 && !*out) s = wrong(p, "a text is not UTF-8");
    keel_text_free(&t);
    return s;
}

static keel_status value(parser *p, int depth, json_t **out)
{
    char text[NUMBER_MAX];
    const int c = peek(p);
    if (depth > DEEP) return wrong(p, "values are nested too deep");
    *out = NULL;
    if (c == '"' || c == '\'') return text_value(p, out);
    if (c == '[') return array(p, depth, out);
    if (c == '{') return inline_table(p, depth, out);
    KEEL_TRY(word(p, text));
    if (!strcmp(text, "true") || !strcmp(text, "false"))
        *out = json_boolean(*text == 't');
    else
        KEEL_TRY(number(p, text, out));
    return *out ? KEEL_OK : keel_fail(KEEL_ENOMEM, "out of memory reading %s", p->name);
}

/* ---- keys and tables ------------------------------------------------------------------------- */

static keel_status key(parser *p, char out[KEY_MAX])
{
    keel_text t = { 0 };
    keel_status s = KEEL_OK;
    blanks(p);
    if (peek(p) == '"' || peek(p) == '\'') {
        s = quoted(p, &t);
    } else {
        const char *begin = p->at;
        while (is_word(peek(p)) && *p->at != '.' && *p->at != '+' && *p->at != ':') p->at++;
        keel_text_add(&t, "%.*s", (int)(p->at - begin), begin);
        if (p->at == begin) s = wrong(p, "a key is missing");
        if (t.failed) s = KEEL_ENOMEM;
    }
    if (s >= 0 && (t.length >= KEY_MAX || strlen(t.data ? t.data : "") != t.length))
        s = wrong(p, "a key is too long");
    if (s >= 0) memcpy(out, t.data ? t.data : "", t.length + 1);
    keel_text_free(&t);
    blanks(p);
    return s;
}

static origin origin_of(const parser *p, const json_t *v)
{
    char address[32];
    snprintf(address, sizeof address, "%p", (const void *)v);
    return (origin)json_integer_value(json_object_get(p->origins, address));
}

static keel_status set_origin(const parser *p, const json_t *v, origin by)
{
    char address[32];
    snprintf(address, sizeof address, "%p", (const void *)v);
    if (!json_object_set_new(p->origins, address, json_integer(by))) return KEEL_OK;
    return keel_fail(KEEL_ENOMEM, "out of memory reading %s", p->name);
}

/* A new table or list of tables under a key. */
static keel_status make(const parser *p, json_t *table, const char *name, origin by, json_t **out)
{
    json_t *v = by == LIST ? json_array() : json_object();
    if (!v || json_object_set_new(table, name, v)) return wrong(p, "a key is not UTF-8");
    *out = v;
    return set_origin(p, v, by);
}

/* The table under a key that others follow, made by `by` if it is not there; of a list of tables
 * the last, which dotted keys do not reach. */
static keel_status child(const parser *p, json_t **table, const char *name, origin by)
{
    json_t *v = json_object_get(*table, name);
    if (!v) return make(p, *table, name, by, table);
    const origin made = origin_of(p, v);
    if (made == VALUE) return wrong(p, "a key is given twice, once as a table");
    if (by == DOTTED && (made == HEADER || made == LIST))
        return wrong(p, "a table is given twice, once by dotted keys");
    if (by == DOTTED) KEEL_TRY(set_origin(p, v, DOTTED));
    *table = made == LIST ? json_array_get(v, json_array_size(v) - 1) : v;
    return KEEL_OK;
}

static keel_status pair(parser *p, json_t *table, int depth)
{
    char name[KEY_MAX];
    json_t *v;
    KEEL_TRY(key(p, name));
    for (int i = 0; peek(p) == '.'; i++) {
        if (i > DEEP) return wrong(p, "keys are nested too deep");
        p->at++;
        KEEL_TRY(child(p, &table, name, DOTTED));
        KEEL_TRY(key(p, name));
    }
    if (peek(p) != '=') return wrong(p, "= is missing behind a key");
    p->at++;
    blanks(p);
    if (json_object_get(table, name)) return wrong(p, "a key is given twice");
    KEEL_TRY(value(p, depth, &v));
    return json_object_set_new(table, name, v) ? wrong(p, "a key is not UTF-8") : KEEL_OK;
}

/* [a.b] or [[a.b]] */
static keel_status header(parser *p, json_t **table)
{
    char name[KEY_MAX];
    const bool list = starts(p, "[[");
    p->at += list ? 2 : 1;
    *table = p->root;
    KEEL_TRY(key(p, name));
    for (int i = 0; peek(p) == '.'; i++) {
        if (i > DEEP) return wrong(p, "tables are nested too deep");
        p->at++;
        KEEL_TRY(child(p, table, name, WITHIN));
        KEEL_TRY(key(p, name));
    }
    if (!starts(p, list ? "]]" : "]")) return wrong(p, "] is missing behind the name of a table");
    p->at += list ? 2 : 1;
    json_t *v = json_object_get(*table, name);
    const origin made = v ? origin_of(p, v) : VALUE;
    if (v && made != (list ? LIST : WITHIN)) return wrong(p, "a table is given twice");
    if (!v) KEEL_TRY(make(p, *table, name, list ? LIST : HEADER, &v));
    if (list) {
        json_t *next = json_object();
        if (json_array_append_new(v, next)) return KEEL_ENOMEM;
        v = next;
    }
    *table = v;
    return set_origin(p, v, HEADER);
}

static keel_status lines(parser *p)
{
    json_t *table = p->root;
    while (p->at < p->end) {
        KEEL_TRY(between(p));
        if (p->at == p->end) break;
        KEEL_TRY(peek(p) == '[' ? header(p, &table) : pair(p, table, 0));
        KEEL_TRY(end_of_line(p));
    }
    return KEEL_OK;
}

keel_status keel_toml_parse(json_t **out, const char *text, size_t n_bytes, const char *name)
{
    parser p = { .at = text,
                 .end = text + n_bytes,
                 .name = name,
                 .line = 1,
                 .root = json_object(),
                 .origins = json_object() };
    keel_status s = KEEL_ENOMEM;
    if (starts(&p, "\xef\xbb\xbf")) p.at += 3;
    if (p.root && p.origins)
        s = lines(&p);
    else
        keel_fail(KEEL_ENOMEM, "out of memory reading %s", name);
    json_decref(p.origins);
    if (s < 0)
        json_decref(p.root);
    else
        *out = p.root;
    return s;
}
