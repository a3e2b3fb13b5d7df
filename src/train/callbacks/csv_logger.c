/* A line of the logs for each epoch, as Keras writes it: columns sorted by name, \r\n, Python's
 * numbers, NA for a value that an epoch does not have. Lines are flushed as they are written. A run
 * that is resumed goes on behind the lines that its checkpoint knows of, whatever `append` is, so
 * that the file is that of a run which never ended. A pipe or a terminal has no place to go back
 * to: it begins with the header. */
#include "base/memory.h"
#include "train/callbacks/_texts.h"
#include "train/callbacks/watcher.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct args_t {
    char *filename, *separator;
    bool append;
} args_t;

typedef struct own_t {
    FILE *file;
    bool stays;  /* what is written: it is no pipe */
    bool placed; /* what is not to stay in the file was cut off */
} own_t;

typedef struct state_t {
    int64_t n_bytes;
    keel_texts columns;
} state_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, filename, NULL, "the file"),
    KEEL_STRING(args_t, separator, "\",\"", "what stands between two values: one letter"),
    KEEL_BOOL(args_t, append, "false", "go on with a file that exists"),
    { 0 },
};

static const keel_field state_fields[] = {
    KEEL_INT(state_t, n_bytes, "0", 0, 0, "of the file that stay in it"),
    KEEL_TEXTS(state_t, columns, "null", "behind that of the epoch; none: not known yet"),
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

static int64_t end_of(FILE *f)
{
    return fseek(f, 0, SEEK_END) ? -1 : ftell(f);
}

static bool is_a_file(FILE *f)
{
    struct stat st;
    return !fstat(fileno(f), &st) && S_ISREG(st.st_mode);
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
    KEEL_TRY(keel_watching_reset(w));
    errno = 0;
    if (!(o->file = fopen(a->filename, "a"))) return bad_file(a);
    o->stays = is_a_file(o->file);
    if (!a->append || !o->stays) return KEEL_OK;
    return (((state_t *)w->state)->n_bytes = end_of(o->file)) < 0 ? bad_file(a) : KEEL_OK;
}

/* Whether a line ends behind so many bytes of the file: else it is not the one that was written. */
static bool line_ends_at(const char *path, int64_t n_bytes)
{
    FILE *f = n_bytes > 0 ? fopen(path, "r") : NULL;
    const bool ends =
        n_bytes == 0 || (f && !fseek(f, (long)n_bytes - 1, SEEK_SET) && fgetc(f) == '\n');
    if (f) fclose(f);
    return ends;
}

/* Before the first line is written, when it is known whether the run goes on from a checkpoint: the
 * file begins anew, or loses the lines of epochs that are trained again. */
static keel_status place(keel_watching *w)
{
    const args_t *a = w->args.args;
    own_t *o = w->own;
    state_t *s = w->state;
    if (o->placed) return KEEL_OK;
    if (!o->stays) s->n_bytes = 0;
    o->placed = !o->stays;
    if (o->placed) return KEEL_OK;
    errno = 0;
    const int64_t n_bytes = end_of(o->file);
    if (n_bytes < 0) return bad_file(a);
    if (!line_ends_at(a->filename, s->n_bytes)) s->n_bytes = a->append ? n_bytes : 0;
    if (s->n_bytes < n_bytes && ftruncate(fileno(o->file), (off_t)s->n_bytes)) return bad_file(a);
    o->placed = true;
    return KEEL_OK;
}

static keel_status on_epoch_begin(void *context, const keel_moment *at)
{
    (void)at;
    return place(context);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The columns: names of the first logs, sorted; without any val_, each of them with val_ too. */
static keel_status choose_columns(keel_texts *c, const keel_logs *logs)
{
    char name[200];
    bool validated = false;
    keel_free(c->at); /* of an empty list */
    if (!(c->at = keel_calloc(2 * KEEL_LOGS_MAX, sizeof *c->at))) return KEEL_ENOMEM;
    for (int i = 0; i < logs->count; i++) {
        validated = validated || !strncmp(logs->name[i], "val_", 4);
        if (!(c->at[c->count] = keel_strdup(logs->name[i]))) return KEEL_ENOMEM;
        c->count++;
    }
    qsort(c->at, (size_t)c->count, sizeof *c->at, by_name);
    for (int i = 0, n = c->count; !validated && i < n; i++) {
        snprintf(name, sizeof name, "val_%s", c->at[i]);
        if (!(c->at[c->count] = keel_strdup(name))) return KEEL_ENOMEM;
        c->count++;
    }
    return KEEL_OK;
}

static void put(FILE *f, char separator, const char *text)
{
    const char special[] = { separator, '"', '\r', '\n', 0 };
    fputc(separator, f);
    const bool quoted = strpbrk(text, special) != NULL;
    if (quoted) fputc('"', f);
    for (; *text; text++) {
        if (*text == '"') fputc('"', f);
        fputc(*text, f);
    }
    if (quoted) fputc('"', f);
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
    const own_t *o = w->own;
    FILE *f = o->file;
    state_t *s = w->state;
    char number[40];
    const char separator = a->separator[0];
    KEEL_TRY(place(w));
    if (s->columns.count == 0) KEEL_TRY(choose_columns(&s->columns, at->logs));
    errno = 0;
    if (s->n_bytes == 0) {
        fputs("epoch", f);
        for (int i = 0; i < s->columns.count; i++) put(f, separator, s->columns.at[i]);
        fputs("\r\n", f);
    }
    fprintf(f, "%lld", (long long)at->epoch);
    for (int i = 0; i < s->columns.count; i++)
        put(f, separator, value_of(number, at->logs, s->columns.at[i]));
    fputs("\r\n", f);
    if (fflush(f) || ferror(f)) return bad_file(a);
    s->n_bytes = o->stays ? end_of(f) : 1;
    return s->n_bytes < 0 ? bad_file(a) : KEEL_OK;
}

static keel_status on_train_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    own_t *o = w->own;
    (void)at;
    KEEL_TRY(place(w));
    errno = 0;
    const bool bad = fclose(o->file) != 0;
    o->file = NULL;
    return bad ? bad_file(w->args.args) : KEEL_OK;
}

static const char *output(const void *args)
{
    return ((const args_t *)args)->filename;
}

const keel_watcher keel_watcher_csv_logger = {
    .type = {
        .name = "CSVLogger",
        .module = "keras.callbacks",
        .help = "write the logs of each epoch to a CSV file",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .state = { .name = "CSVLogger", .args_size = sizeof(state_t), .fields = state_fields },
    .on = {
        .on_train_begin = on_train_begin,
        .on_epoch_begin = on_epoch_begin,
        .on_epoch_end = on_epoch_end,
        .on_train_end = on_train_end,
    },
    .check = check,
    .output = output,
    .release = release,
    .only_writes = true,
};
