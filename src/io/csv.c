/* Cuts text into values; see csv.h. 64 bytes are compared at once with the four characters that end
 * a value or may; a loop over the bits that are set does the rest, so that its work is counted in
 * values and not in bytes. */
#include "io/csv.h"
#include "base/memory.h"
#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCK = 64 };

/* A bit for each of 64 bytes that is the separator, a line end or a quote. */
static uint64_t find_special(const char *block, char separator)
{
    uint64_t bits = 0;
#ifdef __SSE2__
    const __m128i a = _mm_set1_epi8(separator), b = _mm_set1_epi8('\n'), c = _mm_set1_epi8('\r'),
                  d = _mm_set1_epi8('"');
    for (int i = 0; i < BLOCK; i += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(block + i));
        const __m128i is = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, a), _mm_cmpeq_epi8(v, b)),
                                        _mm_or_si128(_mm_cmpeq_epi8(v, c), _mm_cmpeq_epi8(v, d)));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(is) << i;
    }
#else
    for (int i = 0; i < BLOCK; i++) {
        const char v = block[i];
        if (v == separator || v == '\n' || v == '\r' || v == '"') bits |= UINT64_C(1) << i;
    }
#endif
    return bits;
}

static void look_from(keel_csv *c, char *at)
{
    c->block = at;
    c->special = at < c->end ? find_special(at, c->separator) : 0;
}

/* Pass the next special character; the end of the text if there is none. */
static inline char *next_special(keel_csv *c)
{
    while (!c->special) {
        if (c->end - c->block <= BLOCK) return c->end;
        c->block += BLOCK;
        c->special = find_special(c->block, c->separator);
    }
    char *p = c->block + __builtin_ctzll(c->special);
    c->special &= c->special - 1;
    return p;
}

/* The separator of the first line. */
static char find_separator(const keel_csv *c)
{
    int64_t semicolons = 0, tabs = 0, bars = 0;
    bool quoted = false;
    for (const char *p = c->at; p < c->end && (quoted || *p != '\n'); p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (*p == ',') return ',';
        semicolons += *p == ';';
        tabs += *p == '\t';
        bars += *p == '|';
    }
    if (bars > semicolons && bars > tabs) return '|';
    return semicolons > tabs ? ';' : tabs ? '\t' : ',';
}

void keel_csv_begin(keel_csv *c, const char *path, char *text, size_t n_bytes, char separator)
{
    c->path = path;
    c->at = text;
    c->end = text + n_bytes;
    c->line = c->next_line = 1;
    c->n_values = 0;
    c->separator = separator ? separator : find_separator(c);
    look_from(c, text);
}

static keel_status more_values(keel_csv *c)
{
    if (c->n_values == KEEL_CSV_COLUMNS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: more than %d fields", c->path, (long long)c->line,
                         KEEL_CSV_COLUMNS_MAX);
    const int64_t room = c->room ? 2 * c->room : 64;
    char **more = keel_grow(c->value, (size_t)room, sizeof *more);
    if (!more) return KEEL_ENOMEM;
    c->value = more;
    c->room = room;
    return KEEL_OK;
}

/* Unquote the value that begins at c->at; *to is the end of what is left of it, *last the special
 * character behind it. */
static keel_status cut_quoted(keel_csv *c, char **to, char **last)
{
    char *from = c->at, *out = c->at;
    for (from++;; from++) {
        if (from == c->end)
            return keel_fail(KEEL_EFORMAT, "%s:%lld: a quote is never closed", c->path,
                             (long long)c->line);
        if (*from == '"' && (from + 1 == c->end || from[1] != '"')) break;
        if (*from == '"') from++;
        if (*from == '\n') c->next_line++;
        *out++ = *from;
    }
    from++;
    look_from(c, from);
    *to = out;
    *last = next_special(c);
    if (*last == from && (from == c->end || *from != '"')) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s:%lld: something follows a closed quote", c->path,
                     (long long)c->line);
}

/* Pass the end of a line at p; returns the begin of the next. NULL: a carriage return alone. */
static char *pass_line_end(keel_csv *c, char *p)
{
    c->next_line++;
    if (p == c->end) return p;
    if (*p == '\r' && p + 1 < c->end) {
        if (p[1] != '\n') return NULL;
        p = next_special(c);
    }
    return p + 1;
}

static keel_status cut_record(keel_csv *c)
{
    c->n_values = 0;
    c->line = c->next_line;
    for (bool more = true; more;) {
        char *const begin = c->at, *to = NULL, *p = NULL;
        if (c->n_values == c->room) KEEL_TRY(more_values(c));
        if (*begin == '"' && begin < c->end) {
            KEEL_TRY(cut_quoted(c, &to, &p));
        } else {
            do p = next_special(c);
            while (*p == '"' && p < c->end); /* inside a value it is a character */
            to = p;
        }
        c->value[c->n_values++] = begin;
        more = p < c->end && *p == c->separator;
        char *const next = more ? p + 1 : pass_line_end(c, p);
        if (!next)
            return keel_fail(KEEL_EFORMAT, "%s:%lld: a carriage return inside a line", c->path,
                             (long long)c->line);
        *to = 0;
        c->at = next;
    }
    return KEEL_OK;
}

keel_status keel_csv_next(keel_csv *c)
{
    do {
        if (c->at == c->end) return KEEL_END;
        KEEL_TRY(cut_record(c));
    } while (c->n_values == 1 && !*c->value[0] && (c->n_columns != 1 || c->at == c->end));
    return KEEL_OK;
}

void keel_csv_free(keel_csv *c)
{
    keel_free(c->value);
    *c = (keel_csv){ 0 };
}
