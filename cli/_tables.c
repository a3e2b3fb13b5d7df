/* See tables.h. */
#include "tables.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS_MAX = 1 << 20, BYTES_MAX = 64 << 20 };

bool keel_tables_is(const char *spec)
{
    static const char *const endings[] = { ".csv",   ".csv.gz", ".tsv",      ".tsv.gz",
                                           ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz" };
    const size_t n = strlen(spec);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t e = strlen(endings[i]);
        if (n > e && !strcasecmp(spec + n - e, endings[i])) return true;
    }
    return false;
}

static int read_missing(keel_dataset_options *d, const char *text)
{
    static const char *const words[] = { "error", "drop", "mean", NULL };
    static const keel_missing kinds[] = { KEEL_MISSING_REFUSE, KEEL_MISSING_DROP,
                                          KEEL_MISSING_MEAN };
    const char *end;
    if (!text) return -1;
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i])) {
            d->missing = kinds[i];
            return -1;
        }
    d->missing = KEEL_MISSING_FILL;
    d->missing_value = keel_decimal(text, &end);
    if (end == text || *end || !isfinite((float)d->missing_value))
        return keel_complain(EXIT_USAGE, "--missing '%s': choose error, drop, mean or a number",
                             text);
    return -1;
}

size_t keel_tables_until(const char *text, char mark)
{
    bool quoted = false;
    size_t n = 0;
    for (; text[n] && (quoted || text[n] != mark); n++)
        if (text[n] == '"' && (quoted || n == 0 || strchr(",= ", text[n - 1]))) quoted = !quoted;
    return n;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* The words of a file, one per line, without a mark of UTF-8 before them; NULL after an error was
 * printed. */
static char *words_of_file(const char *path)
{
    static const char mark[] = "\xef\xbb\xbf";
    enum { MARK = sizeof mark - 1 };
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0;
    if (f && !fseek(f, 0, SEEK_END)) {
        const long size = ftell(f);
        rewind(f);
        if (size >= 0 && size <= BYTES_MAX && (text = malloc((size_t)size + 1)))
            n = fread(text, 1, (size_t)size, f);
    }
    if (f) fclose(f);
    if (!text) {
        keel_complain(EXIT_FAILED, "--vocabulary: %s cannot be read, or is longer than 64 MiB",
                      path);
        return NULL;
    }
    text[n] = 0;
    if (n >= MARK && !memcmp(text, mark, MARK)) memmove(text, text + MARK, n - MARK + 1);
    return text;
}

/* Cut words at `mark` in place; a carriage return before a line end is no part of a word. */
static int cut_words(keel_vocabulary *v, char *text, char mark, const char *option)
{
    int64_t n = 1;
    for (const char *p = text; *p; p++) n += *p == mark;
    const char **words = n <= WORDS_MAX ? calloc((size_t)n, sizeof *words) : NULL;
    if (!words)
        return keel_complain(EXIT_FAILED, "--vocabulary '%s': %s", option,
                             n > WORDS_MAX ? "more than 1048576 words" : "out of memory");
    v->words = words;
    for (char *p = text; p;) {
        char *end = strchr(p, mark);
        if (end) *end = 0;
        if (mark == '\n') p[strcspn(p, "\r")] = 0;
        if (end || *p) words[v->n_words++] = p; /* a last line end begins no word */
        p = end ? end + 1 : NULL;
    }
    if (v->n_words) return -1;
    return keel_complain(EXIT_USAGE, "--vocabulary '%s': no words", option);
}

/* "color", "color=red,green" or "color=@FILE" */
static int read_vocabulary(keel_vocabulary *v, char **kept, char *one, keel_setup_use use)
{
    char *equals = one + keel_tables_until(one, '='), *words = *equals ? equals + 1 : NULL;
    *equals = 0;
    if (*one == '"') { /* "home town" */
        one++;
        one[strcspn(one, "\"")] = 0;
    }
    v->column = one;
    if (!*one) return keel_complain(EXIT_USAGE, "--vocabulary: '=%s' has no column", words);
    if (!words && use != KEEL_USE_TRAINING && use != KEEL_USE_VERIFY)
        return keel_complain(EXIT_USAGE,
                             "--vocabulary %s: give the words that the model is trained with, in "
                             "their order (fit prints it): --vocabulary '%s=red,green' or "
                             "'%s=@FILE', with a word a line",
                             one, one, one);
    if (!words) return -1;
    if (*words == '@' && !(words = *kept = words_of_file(words + 1))) return EXIT_FAILED;
    return cut_words(v, words, *kept ? '\n' : ',', one);
}

static void tell(void *context, const char *line)
{
    char shown[1024];
    (void)context;
    puts(keel_printable(shown, sizeof shown, line));
}

int keel_tables_read(keel_table_options *out, keel_dataset_options *d, const keel_data_options *o,
                     keel_setup_use use)
{
    int code = read_missing(d, o->missing), n = 1;
    *out = (keel_table_options){ 0 };
    d->note = tell;
    if (code >= 0 || !o->vocabulary) return code;
    for (const char *p = o->vocabulary; *p; p++) n += *p == ' ';
    out->vocabulary = calloc((size_t)n, sizeof *out->vocabulary);
    out->text = calloc((size_t)n + 1, sizeof *out->text); /* the last is the list itself */
    if (!out->vocabulary || !out->text || !(out->text[n] = strdup(o->vocabulary)))
        code = keel_complain(EXIT_FAILED, "out of memory");
    for (char *p = code < 0 ? out->text[n] : NULL; p && code < 0;) {
        p += strspn(p, " ");
        if (!*p) break;
        char *end = p + keel_tables_until(p, ' '), *one = p;
        p = *end ? end + 1 : NULL;
        *end = 0;
        const int i = out->n++;
        code = read_vocabulary(&out->vocabulary[i], &out->text[i], one, use);
    }
    d->vocabularies = out->vocabulary;
    d->n_vocabulary = out->n;
    if (out->text && out->text[n] && n != out->n) { /* free finds the list behind the last */
        char *list = out->text[n];
        out->text[n] = NULL;
        out->text[out->n] = list;
    }
    return code;
}

void keel_tables_free(keel_table_options *t)
{
    for (int i = 0; t->text && i <= t->n; i++) free(t->text[i]);
    for (int i = 0; t->vocabulary && i < t->n; i++) free((void *)t->vocabulary[i].words);
    free(t->text);
    free(t->vocabulary);
    *t = (keel_table_options){ 0 };
}
