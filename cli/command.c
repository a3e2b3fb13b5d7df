/* Shared by all commands: parsing of options by their table, error messages, readable numbers. */
#include "command.h"
#include "fnv.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *running; /* name of the command, for error messages */
static char speaker[160];   /* "rank 3 (node7): ", in another process than the first */
static char kept[8192];     /* lines */
static uint64_t kind;

/* ---- errors ---------------------------------------------------------------------------------- */

/* In one piece: other processes, and their launcher, may write there at the same time. */
static void print(const char *text)
{
    char line[4096 + 256];
    const char *space = running ? " " : "", *name = running ? running : "";
    const int n = snprintf(line, sizeof line, "%skeel%s%s: %s\n", speaker, space, name, text);
    if (n > 0 && (size_t)n < sizeof line)
        fwrite(line, 1, (size_t)n, stderr);
    else
        fprintf(stderr, "%skeel%s%s: %s\n", speaker, space, name, text);
}

int keel_complain(int code, const char *format, ...)
{
    va_list ap;
    char text[4096]; /* may quote bytes of a file */
    fflush(stdout);
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    keel_printable(text, sizeof text, text);
    if (code) keel_complain_about(text);
    const size_t used = strlen(kept);
    if (code && *speaker)
        snprintf(kept + used, sizeof kept - used, "%s\n", text);
    else
        print(text);
    return code;
}

void keel_complain_as(const char *who)
{
    snprintf(speaker, sizeof speaker, "%s: ", who);
}

bool keel_complaints_kept(void)
{
    return *kept;
}

void keel_complaints_print(void)
{
    char *rest = NULL;
    for (char *line = strtok_r(kept, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        print(line);
    keel_complaints_drop();
}

void keel_complaints_drop(void)
{
    *kept = 0;
}

uint64_t keel_complaints_kind(void)
{
    return kind;
}

void keel_complain_about(const char *text)
{
    if (kind) return;
    kind = fnv_add(FNV_BEGIN, text, strlen(text));
    if (!kind) kind = 1;
}

int keel_complain_status(keel_status status)
{
    return keel_complain_within(status, NULL);
}

int keel_exit_code(keel_status status)
{
    switch (status) {
    case KEEL_EARG:
        return EXIT_USAGE;
    case KEEL_EUNSUP:
        return EXIT_UNSUPPORTED;
    default:
        return EXIT_FAILED;
    }
}

int keel_complain_within(keel_status status, const char *what)
{
    const char *text = keel_error();
    return keel_complain(keel_exit_code(status), "%s%s%s", what ? what : "", what ? ": " : "",
                         *text ? text : keel_status_name(status));
}

/* ---- names ----------------------------------------------------------------------------------- */

const keel_command *keel_command_find(const char *name)
{
    for (int i = 0; keel_commands[i]; i++)
        if (!strcmp(keel_commands[i]->name, name)) return keel_commands[i];
    return NULL;
}

/* The number of edits (insert, delete, replace, swap neighbours) from a to b; 99 for long words. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 48 };
    int d[MOST + 1][MOST + 1];
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > MOST || m > MOST) return 99;
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            const int same = tolower(a[i - 1]) == tolower(b[j - 1]);
            int best = d[i - 1][j - 1] + !same;
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

/* Whether each word of a name begins like the next of the parts of `word`, down to one letter: "lr"
 * and "learning-rat" of "learning-rate", "valsplit" of "validation-split". */
static bool abbreviates(const char *word, const char *name)
{
    const size_t whole = strcspn(name, "-");
    for (size_t n = 1; n <= whole && word[n - 1] == name[n - 1]; n++) {
        const char *rest = word + n + (word[n] == '-' || word[n] == '_');
        if (name[whole] ? abbreviates(rest, name + whole + 1) : !word[n]) return true;
    }
    return false;
}

/* The shortest name that it abbreviates; NULL: none. One letter may be anything. */
static const char *in_full(const char *word, const char *const *names)
{
    const char *best = NULL;
    for (int i = 0; names[i]; i++)
        if (word[0] && word[1] && abbreviates(word, names[i]) &&
            (!best || strlen(names[i]) < strlen(best)))
            best = names[i];
    return best;
}

/* The name whose words it begins with, as "validation-data" does with "validation"; NULL: none. */
static const char *begun_with(const char *word, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        const size_t n = strlen(names[i]);
        if (!strncmp(word, names[i], n) && (word[n] == '-' || word[n] == '_')) return names[i];
    }
    return NULL;
}

const char *keel_nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    const int length = (int)strlen(word);
    int least = length < 4 ? 2 : 4; /* with so many edits it is another word */
    for (int i = 0; names[i]; i++) {
        int d = distance(word, names[i]);
        if (length >= 3 && !strncmp(word, names[i], (size_t)length)) d = 1; /* a prefix */
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

/* ---- options --------------------------------------------------------------------------------- */

static int complain_unknown(const keel_command *c, const char *given, const char *name)
{
    int n = 0;
    while (c->options && c->options[n].name) n++;
    const char **names = calloc((size_t)n + 2, sizeof *names);
    if (!names) return keel_complain(EXIT_FAILED, "no memory for the names of %d options", n);
    names[0] = "help";
    for (int i = 0; i < n; i++) names[i + 1] = c->options[i].name;
    const char *near = in_full(name, names);
    if (!near) near = keel_nearest(name, names);
    if (!near) near = begun_with(name, names);
    free(names);
    if (near)
        return keel_complain(EXIT_USAGE, "there is no option %s; did you mean --%s?", given, near);
    return keel_complain(EXIT_USAGE, "there is no option %s; see keel %s --help", given, c->name);
}

/* Parse a value into its member. Returns NULL, or the text of the error. */
static const char *store(const keel_option *o, const char *text, char *to)
{
    char *end = NULL;
    errno = 0;
    switch (o->kind) {
    case KEEL_OPTION_FLAG:
        *(bool *)to = true;
        return NULL;
    case KEEL_OPTION_TEXT:
    case KEEL_OPTION_ONCE:
        *(const char **)to = text;
        return *text ? NULL : "it is empty";
    case KEEL_OPTION_COUNT:
    case KEEL_OPTION_POSITIVE: {
        const bool zero = o->kind == KEEL_OPTION_COUNT;
        const long long n = strtoll(text, &end, 10);
        if (end == text || *end || errno || n < !zero)
            return zero ? "must be a whole number, 0 or more" : "must be a whole number, 1 or more";
        *(int64_t *)to = n;
        return NULL;
    }
    case KEEL_OPTION_REAL: {
        const char *behind;
        const double x = keel_decimal(text, &behind);
        if (behind == text || *behind || !isfinite(x)) return "must be a number";
        *(double *)to = x;
        return NULL;
    }
    case KEEL_OPTION_CHOICE: {
        const size_t length = strlen(text);
        const char *word = o->value;
        for (int i = 0; *word; i++) {
            const size_t n = strcspn(word, "|");
            if (n == length && !strncmp(word, text, n)) {
                *(int *)to = i;
                return NULL;
            }
            word += n + (word[n] == '|');
        }
        return "must be one of these";
    }
    }
    return "unknown kind of option";
}

static void set_defaults(const keel_command *c, char *options)
{
    memset(options, 0, c->size);
    for (const keel_option *o = c->options; o && o->name; o++) {
        if (o->kind == KEEL_OPTION_REAL) *(double *)(options + o->offset) = NAN;
        if (o->fallback) store(o, o->fallback, options + o->offset);
    }
}

/* argv[*i] is an option: find it, take its value (after '=' or the next word), store it.
 * Of an option that is given twice the last value counts, so that a script can have defaults. */
static int read_option(const keel_command *c, int argc, char **argv, int *i, char *options)
{
    const char *word = argv[*i], *value = NULL, *wrong;
    const bool is_long = word[1] == '-';
    char name[64];
    const size_t length = is_long ? strcspn(word + 2, "=") : 1;
    if (length >= sizeof name)
        return keel_complain(EXIT_USAGE, "there is no option %.40s...; see keel %s --help", word,
                             c->name);
    memcpy(name, is_long ? word + 2 : word + 1, length);
    name[length] = 0;
    if (is_long && word[2 + length] == '=') value = word + 2 + length + 1;
    if (!is_long && word[2]) value = word + 2;

    const keel_option *o = c->options;
    while (o && o->name && (is_long ? strcmp(o->name, name) : !o->letter || o->letter != name[0]))
        o++;
    if (!o || !o->name) return complain_unknown(c, word, name);
    if (o->kind == KEEL_OPTION_FLAG && value)
        return keel_complain(EXIT_USAGE, "--%s takes no value; remove '%s'", o->name, value);
    if (o->kind != KEEL_OPTION_FLAG && !value) {
        if (*i + 1 >= argc)
            return keel_complain(EXIT_USAGE, "--%s has no value: --%s %s", o->name, o->name,
                                 o->value);
        value = argv[++*i];
    }
    const char *before = o->kind == KEEL_OPTION_ONCE ? *(char **)(options + o->offset) : NULL;
    if (before && strcmp(before, value))
        return keel_complain(EXIT_USAGE, "--%s is given twice, as '%s' and as '%s': leave one out",
                             o->name, before, value);
    if ((wrong = store(o, value ? value : "", options + o->offset)))
        return keel_complain(EXIT_USAGE, "--%s '%s': %s: --%s %s", o->name, value, wrong, o->name,
                             o->value);
    return -1;
}

/* Whether a required option was not given: its member still holds what no value of its kind is. */
static bool is_missing(const keel_option *o, const char *options)
{
    const char *from = options + o->offset;
    return o->kind == KEEL_OPTION_POSITIVE ? !*(const int64_t *)from : !*(const char *const *)from;
}

int keel_command_parse(const keel_command *c, int argc, char **argv, void *options, int *n_arg,
                       char **arg)
{
    bool only_args = false;
    int code;
    running = c->name;
    *n_arg = 0;
    set_defaults(c, options);
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!only_args && !strcmp(word, "--")) {
            only_args = true;
        } else if (!only_args && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
            keel_help_command(stdout, c);
            return EXIT_OK;
        } else if (!only_args && word[0] == '-' && word[1]) {
            if ((code = read_option(c, argc, argv, &i, options)) >= 0) return code;
        } else if (*n_arg == c->most) {
            return keel_complain(EXIT_USAGE, "'%s' is one argument too many; usage: keel %s%s%s",
                                 word, c->name, *c->args ? " " : "", c->args);
        } else {
            arg[(*n_arg)++] = argv[i];
        }
    }
    if (*n_arg < c->least)
        return keel_complain(EXIT_USAGE,
                             "an argument is missing; usage: keel %s %s (see keel %s --help)",
                             c->name, c->args, c->name);
    for (const keel_option *o = c->options; o && o->name; o++)
        if (o->required && is_missing(o, options))
            return keel_complain(EXIT_USAGE, "--%s is missing: --%s %s, %.*s; see keel %s --help",
                                 o->name, o->name, o->value, (int)strcspn(o->help, ":;"), o->help,
                                 c->name);
    return -1;
}

/* ---- readable numbers ------------------------------------------------------------------------ */

const char *keel_grouped(char *out, int64_t n)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    char *to = out;
    for (int i = 0; i < length; i++) {
        if (i && digits[i - 1] != '-' && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return out;
}

const char *keel_size_text(char *out, int64_t bytes)
{
    static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double x = (double)bytes;
    int i = 0;
    for (; fabs(x) >= 1024 && i < 6; i++) x /= 1024;
    snprintf(out, KEEL_NUMBER_MAX, i && fabs(x) < 99.95 ? "%.1f %s" : "%.0f %s", x, unit[i]);
    return out;
}

const char *keel_seconds_text(char *out, double seconds)
{
    const int64_t whole = (int64_t)(seconds + 0.5);
    if (seconds < 0.9995)
        snprintf(out, KEEL_NUMBER_MAX, "%.0f ms", seconds * 1e3);
    else if (seconds < 59.95)
        snprintf(out, KEEL_NUMBER_MAX, "%.1f s", seconds);
    else if (whole < 3600)
        snprintf(out, KEEL_NUMBER_MAX, "%d:%02d min", (int)(whole / 60), (int)(whole % 60));
    else
        snprintf(out, KEEL_NUMBER_MAX, "%lld:%02d h", (long long)(whole / 3600),
                 (int)(whole / 60 % 60));
    return out;
}

double keel_decimal(const char *text, const char **end)
{
    const char *digits = text + (*text == '-' || *text == '+');
    const bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    char *behind = NULL;
    *end = text;
    if (hex || !isdigit((unsigned char)digits[*digits == '.'])) return NAN;
    const double x = strtod(text, &behind);
    *end = behind;
    return x;
}

bool keel_size_parse(int64_t *out, const char *text)
{
    static const char units[] = "KMGT";
    const char *end;
    const double n = keel_decimal(text, &end);
    double scale = 1;
    if (end == text || !(n > 0)) return false;
    const char *unit = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++) scale *= 1024;
        end++;
        if (*end == 'i') end++;
        if (*end == 'B' || *end == 'b') end++;
    }
    if (*end || n * scale < 1 || n * scale >= 0x1p62) return false;
    *out = (int64_t)(n * scale);
    return true;
}

bool keel_shape_parse(keel_shape *out, const char *text, int least, int most)
{
    keel_shape s = { 0 };
    while (s.rank < most && s.rank < KEEL_RANK_MAX) {
        char *end;
        errno = 0;
        const long long n = strtoll(text, &end, 10);
        if (end == text || errno || n < 1 || n > INT32_MAX) return false;
        s.dim[s.rank++] = n;
        if (!*end && s.rank >= least) {
            *out = s;
            return true;
        }
        if (*end != ',' && *end != 'x') return false;
        text = end + 1;
    }
    return false;
}
