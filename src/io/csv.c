/* Cuts text into values; see csv.h. 64 bytes are compared at once with the four characters that end
 * a value or may; a loop over the bits that are set does the rest, so that its work is counted in
 * values and not in bytes. */
#include "io/csv.h"
#include "base/memory.h"
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

/* Find the separator of the first line. False: its end is not there yet. */
static bool find_separator(keel_csv *c)
{
    int64_t commas = 0, semicolons = 0, tabs = 0, bars = 0;
    bool quoted = false;
    const char *p = c->at;
    for (; p < c->end && (quoted || *p != '\n') && !commas; p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        commas += *p == ',';
        semicolons += *p == ';';
        tabs += *p == '\t';
        bars += *p == '|';
    }
    if (p == c->end && !c->last && !commas) return false;
    c->separator = commas                             ? ','
                   : bars > semicolons && bars > tabs ? '|'
                   : semicolons > tabs                ? ';'
                   : tabs                             ? '\t'
                                                      : ',';
    return true;
}

void keel_csv_begin(keel_csv *c, const char *path, char separator)
{
    c->path = path;
    c->separator = separator;
    c->line = c->next_line = 1;
    c->n_values = 0;
    c->at = c->end = c->until = NULL;
}

void keel_csv_give(keel_csv *c, char *text, size_t n_bytes, bool last)
{
    c->at = text;
    c->end = c->until = text + n_bytes;
    c->last = last;
    if (c->separator || find_separator(c)) look_from(c, text);
}

static keel_status more_values(keel_csv *c)
{
    if (c->n_values == KEEL_CSV_COLUMNS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: more than %d fields", c->path, (long long)c->line,
                         KEEL_CSV_COLUMNS_MAX);
    const int64_t room = c->room ? 2 * c->room : 64;
    char **value = keel_grow(c->value, (size_t)room, sizeof *value);
    if (value) c->value = value;
    char **stop = value ? keel_grow(c->stop, (size_t)room, sizeof *stop) : NULL;
    if (!stop) return KEEL_ENOMEM;
    c->stop = stop;
    c->room = room;
    return KEEL_OK;
}

/* Find the quote that closes the value at `begin`. KEEL_END: it is not there yet. */
static keel_status find_quote(keel_csv *c, char *begin, char **quote)
{
    char *p = begin + 1;
    for (;; p += 2) {
        p = memchr(p, '"', (size_t)(c->end - p));
        if (p && p + 1 < c->end && p[1] == '"') continue;
        break;
    }
    if (!c->last && (!p || p + 1 == c->end)) return KEEL_END;
    if (!p)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: a quote is never closed", c->path,
                         (long long)c->line);
    *quote = p;
    look_from(c, p + 1);
    return KEEL_OK;
}

/* Find the end of the value at `begin`: *stop, and the special character behind it. KEEL_END: it is
 * not there yet. */
static keel_status find_stop(keel_csv *c, char *begin, char **stop, char **behind)
{
    char *p;
    if (*begin == '"' && begin < c->end) {
        const keel_status s = find_quote(c, begin, stop);
        if (s != KEEL_OK) return s;
        p = next_special(c);
        if (p != *stop + 1 || *p == '"')
            return keel_fail(KEEL_EFORMAT, "%s:%lld: something follows a closed quote", c->path,
                             (long long)c->line);
    } else {
        do p = next_special(c);
        while (*p == '"' && p < c->end); /* inside a value it is a character */
        *stop = p;
    }
    *behind = p;
    return p == c->end && !c->last ? KEEL_END : KEEL_OK;
}

/* Pass the end of a line at p; *next is the begin of the next. KEEL_END: it is not there yet. */
static keel_status pass_line_end(keel_csv *c, char *p, char **next)
{
    *next = p < c->end ? p + 1 : p;
    if (p == c->end || *p == '\n') return KEEL_OK;
    if (p + 1 == c->end) return c->last ? KEEL_OK : KEEL_END;
    if (p[1] != '\n')
        return keel_fail(KEEL_EFORMAT, "%s:%lld: a carriage return inside a line", c->path,
                         (long long)c->line);
    *next = next_special(c) + 1;
    return KEEL_OK;
}

/* Take the quotes off a value, whose second quotes of pairs go too. */
static void unquote(keel_csv *c, char **value, char *stop)
{
    char *from = ++*value, *to = from;
    for (const char *p = from; (p = memchr(p, '\n', (size_t)(stop - p))); p++) c->next_line++;
    char *pair = memchr(from, '"', (size_t)(stop - from));
    for (; pair; pair = memchr(from, '"', (size_t)(stop - from))) {
        const size_t n = (size_t)(pair - from) + 1;
        memmove(to, from, n);
        to += n;
        from = pair + 2;
    }
    memmove(to, from, (size_t)(stop - from));
    to[stop - from] = 0;
}

/* Nothing is written before the whole record is there: of a part of it the text must stay. */
static keel_status cut_record(keel_csv *c)
{
    char *begin = c->at, *next = NULL;
    c->n_values = 0;
    c->line = c->next_line;
    for (;;) {
        char *stop = NULL, *behind = NULL;
        if (c->n_values == c->room) KEEL_TRY(more_values(c));
        keel_status s = find_stop(c, begin, &stop, &behind);
        if (s != KEEL_OK) return s;
        c->value[c->n_values] = begin;
        c->stop[c->n_values++] = stop;
        begin = behind + 1;
        if (behind < c->end && *behind == c->separator) continue;
        if ((s = pass_line_end(c, behind, &next)) != KEEL_OK) return s;
        break;
    }
    /* An empty line is none at the end of the text, which may be here. */
    if (!c->last && next == c->end && c->n_values == 1 && c->stop[0] - c->value[0] <= 1)
        return KEEL_END;
    for (int64_t i = 0; i < c->n_values; i++)
        if (*c->value[i] == '"')
            unquote(c, &c->value[i], c->stop[i]);
        else
            *c->stop[i] = 0;
    c->next_line++;
    c->at = next;
    return KEEL_OK;
}

keel_status keel_csv_next(keel_csv *c)
{
    do {
        if (c->at >= c->until || !c->separator) return KEEL_END;
        const keel_status s = cut_record(c);
        if (s != KEEL_OK) return s;
    } while (c->n_values == 1 && !*c->value[0] &&
             (c->n_columns != 1 || (c->last && c->at == c->end)));
    return KEEL_OK;
}

void keel_csv_free(keel_csv *c)
{
    keel_free(c->value);
    keel_free(c->stop);
    *c = (keel_csv){ 0 };
}
