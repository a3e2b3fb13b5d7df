/* See quarantine.h. */
#define _GNU_SOURCE /* memchr over const, O_CLOEXEC */
#include "data/quarantine.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_BYTES_MAX = 64 << 20, DIGITS_MAX = 18 };

/* ---- sets -------------------------------------------------------------------------------------
 */

static uint64_t hash_of(const char *file, int64_t row)
{
    const uint64_t both[2] = { keel_fingerprint(file, strlen(file)), (uint64_t)row };
    const uint64_t hash = keel_fingerprint(both, sizeof both);
    return hash ? hash : 1;
}

/* The place of a hash, or the free one where it belongs. */
static uint64_t *find(uint64_t *at, int64_t room, uint64_t hash)
{
    uint64_t i = hash & (uint64_t)(room - 1);
    while (at[i] && at[i] != hash) i = (i + 1) & (uint64_t)(room - 1);
    return &at[i];
}

static bool grow(keel_row_set *s)
{
    const int64_t room = s->room ? 2 * s->room : 16;
    uint64_t *at = keel_calloc((size_t)room, sizeof *at);
    if (!at) return false;
    for (int64_t i = 0; i < s->room; i++)
        if (s->at[i]) *find(at, room, s->at[i]) = s->at[i];
    keel_free(s->at);
    s->at = at;
    s->room = room;
    return true;
}

bool keel_row_set_add(keel_row_set *s, const char *file, int64_t row)
{
    if (2 * (s->n + 1) > s->room && !grow(s)) return false;
    const uint64_t hash = hash_of(file, row);
    uint64_t *at = find(s->at, s->room, hash);
    if (*at) return false;
    *at = hash;
    s->n++;
    return true;
}

bool keel_row_set_has(const keel_row_set *s, const char *file, int64_t row)
{
    return s->n && *find(s->at, s->room, hash_of(file, row)) != 0;
}

void keel_row_set_free(keel_row_set *s)
{
    keel_free(s->at);
    *s = (keel_row_set){ 0 };
}

const char *keel_quarantine_file(const keel_data_origin *o, int64_t row)
{
    /* in a directory each row is a file; keys of archives may come twice */
    const bool own = o->source->shuffled_split && row >= 0 && row < o->spec.rows;
    return own ? o->source->row_name(o->state, row) : o->name;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

/* One line: the file, a tab, the row, and what follows behind another tab. */
static bool read_line(char *line, size_t n, char **file, int64_t *row)
{
    char *tab = memchr(line, '\t', n), *end;
    if (!tab || memchr(line, 0, n)) return false;
    const size_t digits = strspn(tab + 1, "0123456789");
    *tab = 0;
    *file = line;
    *row = -1;
    end = tab + 1 + digits;
    if (!digits && tab[1] == '-') end++; /* not known */
    if (digits > DIGITS_MAX || end == tab + 1 || (*end && *end != '\t')) return false;
    if (digits) *row = strtoll(tab + 1, NULL, 10);
    return true;
}

keel_status keel_quarantine_parse(const char *text, size_t n_bytes, const char *path,
                                  keel_status (*each)(void *context, const char *file, int64_t row),
                                  void *context)
{
    char *line = NULL;
    size_t room = 0;
    keel_status s = KEEL_OK;
    int64_t number = 0;
    for (const char *at = text, *end = text + n_bytes; s >= 0 && at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((stop ? stop : end) - at);
        char *file;
        int64_t row;
        if (n + 1 > room) {
            keel_free(line);
            room = 2 * n + 256;
            if (!(line = keel_calloc(room, 1))) return KEEL_ENOMEM;
        }
        memcpy(line, at, n);
        line[n] = 0;
        at += n + (stop ? 1 : 0);
        if (!n) continue;
        if (!read_line(line, n, &file, &row))
            s = keel_fail(KEEL_EFORMAT,
                          "%s:%lld: not a line of such a list: a file, a tab and the number of a "
                          "row are expected",
                          path, (long long)number + 1);
        else
            s = each(context, file, row);
    }
    keel_free(line);
    return s;
}

static keel_status into_set(void *set, const char *file, int64_t row)
{
    /* a row that was forgotten would be trained, or listed twice */
    return keel_row_set_add(set, file, row) || keel_row_set_has(set, file, row) ? KEEL_OK
                                                                                : KEEL_ENOMEM;
}

static keel_status load(keel_row_set *out, const char *path)
{
    void *text;
    size_t n;
    KEEL_TRY(keel_file_read(path, LIST_BYTES_MAX, &text, &n));
    const keel_status s = keel_quarantine_parse(text, n, path, into_set, out);
    keel_free(text);
    return s;
}

static keel_status into_list(void *list, const char *file, int64_t row)
{
    keel_skip_list *l = list;
    KEEL_TRY(into_set(&l->rows, file, row));
    return into_set(&l->files, file, -1);
}

/* ---- writing ----------------------------------------------------------------------------------
 */

/* A line that a crash has cut short must not run into the next one. */
static keel_status end_last_line(int fd, const char *path)
{
    char last = '\n';
    const off_t n = lseek(fd, 0, SEEK_END);
    if (n > 0 && pread(fd, &last, 1, n - 1) == 1 && last != '\n' && write(fd, "\n", 1) != 1)
        return keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    return KEEL_OK;
}

keel_status keel_quarantine_open(keel_quarantine *out, const char *path)
{
    keel_quarantine q = { .fd = -1 };
    struct stat st;
    keel_status s = KEEL_OK;
    if (stat(path, &st) == 0) s = load(&q.listed, path);
    if (s >= 0 && !(q.path = keel_strdup(path))) s = KEEL_ENOMEM;
    if (s >= 0 && (q.fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) < 0)
        s = keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    if (s >= 0) s = end_last_line(q.fd, path);
    if (s < 0) {
        keel_quarantine_close(&q);
        return keel_fail_within(s, "quarantine");
    }
    *out = q;
    return KEEL_OK;
}

/* Names and reasons without tabs and line ends. */
static void add_printable(keel_text *t, const char *name, const char *end)
{
    const size_t n = strlen(name) + 1;
    char *copy = keel_calloc(n, 1);
    if (!copy) t->failed = true;
    if (copy) keel_text_add(t, "%s%s", keel_printable(copy, n, name), end);
    keel_free(copy);
}

void keel_quarantine_add(keel_quarantine *q, const keel_quarantined *row)
{
    keel_text t = { 0 };
    if (q->fd < 0) return;
    add_printable(&t, row->file, "");
    if (t.failed || !keel_row_set_add(&q->listed, t.data, row->row)) goto out;
    if (row->row >= 0)
        keel_text_add(&t, "\t%lld\t", (long long)row->row);
    else
        keel_text_add(&t, "\t-\t");
    add_printable(&t, row->stage, "\t");
    add_printable(&t, row->reason, "\n");
    errno = ENOMEM;
    if ((t.failed || write(q->fd, t.data, t.length) != (ssize_t)t.length) &&
        q->failed.status >= 0) {
        keel_fail(KEEL_EIO, "%s: a line could not be added: %s", q->path, strerror(errno));
        keel_failure_take(&q->failed, KEEL_EIO);
    }
out:
    keel_text_free(&t);
}

void keel_quarantine_close(keel_quarantine *q)
{
    if (q->fd >= 0) close(q->fd);
    keel_free(q->path);
    keel_row_set_free(&q->listed);
    *q = (keel_quarantine){ .fd = -1 };
}

/* ---- leaving out ------------------------------------------------------------------------------
 */

keel_status keel_skip_list_load(keel_skip_list *out, const char *path)
{
    keel_skip_list l = { 0 };
    void *text;
    size_t n;
    KEEL_TRY(keel_file_read(path, LIST_BYTES_MAX, &text, &n));
    const keel_status s = keel_quarantine_parse(text, n, path, into_list, &l);
    keel_free(text);
    if (s < 0)
        keel_skip_list_free(&l);
    else
        *out = l;
    return s < 0 ? keel_fail_within(s, "skip list") : s;
}

bool keel_skip_list_has(const keel_skip_list *l, const char *file, int64_t row)
{
    char name[4096];
    keel_printable(name, sizeof name, file);
    return keel_row_set_has(row < 0 ? &l->files : &l->rows, name, row);
}

void keel_skip_list_free(keel_skip_list *l)
{
    keel_row_set_free(&l->rows);
    keel_row_set_free(&l->files);
}

void keel_skip_list_note(const keel_skip_list *l, const char *path, const char *name, int64_t out,
                         int64_t of, char *text, size_t size)
{
    snprintf(text, size, "%.80s: %lld of %lld row%s %s left out, of the %lld that %.80s lists",
             name, (long long)out, (long long)of, keel_s(of), out == 1 ? "is" : "are",
             (long long)l->rows.n, path);
}

keel_status keel_skip_list_apply(keel_dataset *d, const char *path)
{
    enum { NOTE = 320 };
    keel_data_origin *o = d->origin;
    keel_skip_list l;
    int64_t *gone = NULL, n = 0;
    if (!o->source->read || o->spec.endless)
        return keel_fail(KEEL_EUNSUP,
                         "%s: the rows of a stream have no numbers by which a skip list could "
                         "leave them out; the stage ignore_errors does",
                         o->name);
    if (d->order || d->first || d->rows != o->spec.rows)
        return keel_fail(KEEL_EUNSUP, "%s: a skip list is for whole data, not for a part of it",
                         o->name);
    KEEL_TRY(keel_skip_list_load(&l, path));
    keel_status s = KEEL_ENOMEM;
    if (!(gone = keel_calloc((size_t)l.rows.n + 1, sizeof *gone)) ||
        !(o->note = keel_calloc(NOTE, 1)))
        goto out;
    for (int64_t i = 0; i < d->rows && n < l.rows.n; i++)
        if (keel_skip_list_has(&l, o->name, i)) gone[n++] = i;
    s = KEEL_OK;
    if (n == d->rows)
        s = keel_fail(KEEL_EDATA, "%s: the skip list %s leaves no row", o->name, path);
    if (s < 0) goto out;
    keel_skip_list_note(&l, path, o->name, n, d->rows, o->note, NOTE);
    o->gone = gone;
    o->n_gone = n;
    d->rows -= n;
    gone = NULL;
out:
    keel_free(gone);
    keel_skip_list_free(&l);
    return s;
}
