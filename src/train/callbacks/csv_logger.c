/* A line of the logs for each epoch, as Keras writes it: columns sorted by name, \r\n, Python's
 * numbers, NA for a value that an epoch does not have. Lines are flushed as they are written. */
#include "base/memory.h"
#include "train/callbacks/_texts.h"
#include "train/callbacks/watcher.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct args_t {
    char *filename, *separator;
    bool append;
} args_t;

typedef struct own_t {
    FILE *file;
    bool headed; /* the file has its first line */
    int n;       /* columns; 0: not known yet */
    char *name[2 * KEEL_LOGS_MAX];
} own_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, filename, NULL, "the file"),
    KEEL_STRING(args_t, separator, "\",\"", "what stands between two values: one letter"),
    KEEL_BOOL(args_t, append, "false", "go on with a file that exists"),
    { 0 },
};

static keel_status check(const void *args)
{
    const args_t *a = args;
    if (a->separator && strlen(a->separator) == 1 && !strchr("\"\r\n", a->separator[0]))
        return KEEL_OK;
    return keel_fail(KEEL_EARG, "CSVLogger: separator must be one letter");
}

static void release(keel_watching *w)
{
    own_t *o = w->own;
    if (!o) return;
    if (o->file) fclose(o->file);
    for (int i = 0; i < o->n; i++) keel_free(o->name[i]);
    keel_free(o);
    w->own = NULL;
}

static keel_status bad_file(const args_t *a)
{
    return keel_fail(KEEL_EIO, "%s: %s", a->filename, strerror(errno ? errno : EIO));
}

/* Every header begins with this column, also those of Keras. */
static bool is_a_log(FILE *f)
{
    char first[16] = "";
    const size_t n = strlen("epoch");
    if (!fgets(first, sizeof first, f)) return true; /* an empty file */
    return !strncmp(first, "epoch", n) && !isalnum((unsigned char)first[n]) && first[n] != '_';
}

/* A table of data whose name was typed by mistake must not be lost. */
static keel_status check_own(const args_t *a)
{
    struct stat st; /* to read from a pipe would be to wait */
    FILE *f = !stat(a->filename, &st) && S_ISREG(st.st_mode) ? fopen(a->filename, "r") : NULL;
    const bool own = !f || is_a_log(f);
    if (f) fclose(f);
    if (own) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "CSVLogger: %s is a file that no CSVLogger has written: its first line does "
                     "not begin with 'epoch'; name another file, or remove this one",
                     a->filename);
}

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    (void)at;
    release(w);
    own_t *o = w->own = keel_calloc(1, sizeof *o);
    if (!o) return KEEL_ENOMEM;
    KEEL_TRY(check_own(a));
    errno = 0;
    if (!(o->file = fopen(a->filename, a->append ? "a" : "w"))) return bad_file(a);
    if (fseek(o->file, 0, SEEK_END)) return bad_file(a);
    o->headed = ftell(o->file) > 0;
    return KEEL_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The columns: names of the first logs, sorted; without any val_, each of them with val_ too. */
static keel_status choose_columns(own_t *o, const keel_logs *logs)
{
    char name[200];
    bool validated = false;
    for (int i = 0; i < logs->count; i++) {
        validated = validated || !strncmp(logs->name[i], "val_", 4);
        if (!(o->name[o->n] = keel_strdup(logs->name[i]))) return KEEL_ENOMEM;
        o->n++;
    }
    qsort(o->name, (size_t)o->n, sizeof *o->name, by_name);
    for (int i = 0, n = o->n; !validated && i < n; i++) {
        snprintf(name, sizeof name, "val_%s", o->name[i]);
        if (!(o->name[o->n] = keel_strdup(name))) return KEEL_ENOMEM;
        o->n++;
    }
    return KEEL_OK;
}

static void put(const own_t *o, char separator, const char *text)
{
    const char special[] = { separator, '"', '\r', '\n', 0 };
    fputc(separator, o->file);
    const bool quoted = strpbrk(text, special) != NULL;
    if (quoted) fputc('"', o->file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', o->file);
        fputc(*text, o->file);
    }
    if (quoted) fputc('"', o->file);
}

static const char *value_of(char out[40], const keel_logs *logs, const char *name)
{
    for (int i = 0; i < logs->count; i++)
        if (!strcmp(logs->name[i], name)) return keel_python_number(out, logs->value[i]);
    return "NA";
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    own_t *o = w->own;
    char number[40];
    const char separator = a->separator[0];
    if (o->n == 0) KEEL_TRY(choose_columns(o, at->logs));
    errno = 0;
    if (!o->headed) {
        fputs("epoch", o->file);
        for (int i = 0; i < o->n; i++) put(o, separator, o->name[i]);
        fputs("\r\n", o->file);
        o->headed = true;
    }
    fprintf(o->file, "%lld", (long long)at->epoch);
    for (int i = 0; i < o->n; i++) put(o, separator, value_of(number, at->logs, o->name[i]));
    fputs("\r\n", o->file);
    return fflush(o->file) || ferror(o->file) ? bad_file(a) : KEEL_OK;
}

static keel_status on_train_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    own_t *o = w->own;
    (void)at;
    errno = 0;
    const bool bad = fclose(o->file) != 0;
    o->file = NULL;
    return bad ? bad_file(w->args.args) : KEEL_OK;
}

const keel_watcher keel_watcher_csv_logger = {
    .type = {
        .name = "CSVLogger",
        .module = "keras.callbacks",
        .help = "write the logs of each epoch to a CSV file",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .on = {
        .on_train_begin = on_train_begin,
        .on_epoch_end = on_epoch_end,
        .on_train_end = on_train_end,
    },
    .check = check,
    .release = release,
    .only_writes = true,
};
