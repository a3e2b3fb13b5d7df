/* See row_files.h. A page has one writer: clients of a network file system may write whole pages,
 * so two that write parts of one could undo each other. A process writes the pages that lie within
 * its rows of a step; what it has of other pages goes to process 0, which writes it.
 *
 * Whether processes share a file system is tried: process 0 writes a number that nobody can guess
 * into the new file, and the others look for it under the same name. */
#include "train/row_files.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/npy_write.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/together.h"
#include <string.h>
#include <sys/random.h>

enum { PAGE = 4096, NAME = 48 };

/* What process 0 says of a file. */
typedef struct hint {
    char ending[NAME]; /* the temporary name is the path with this */
    uint64_t token[2];
} hint;

typedef struct row_file {
    keel_new_file *file; /* NULL: this process does not write */
    const char *path;
    keel_dtype dtype;
    keel_shape shape;
    int64_t row_bytes, begin; /* begin: where rows begin in the file */
} row_file;

struct keel_row_files {
    const keel_strategy *s;
    int n;
    row_file *file;
    hint *hint;
    int64_t sees[KEEL_PROCESSES_MAX]; /* 1: the process writes into the files of process 0 */
};

/* ---- made ------------------------------------------------------------------------------------ */

/* What the others find the file by. */
static keel_status show_first(const row_file *f, hint *h)
{
    const char *name;
    KEEL_TRY(keel_new_file_temporary(f->file, &name));
    snprintf(h->ending, sizeof h->ending, "%s", name + strlen(f->path));
    if (getrandom(h->token, sizeof h->token, 0) != (ssize_t)sizeof h->token)
        h->token[0] = (uint64_t)keel_clock_ns(); /* then the name alone must do */
    KEEL_TRY(keel_new_file_write_at(f->file, 0, h->token, sizeof h->token));
    return keel_new_file_sync(f->file);
}

/* True if the file of process 0 is here, too. */
static bool join_first(row_file *f, hint *h)
{
    char name[4096];
    uint64_t token[2];
    h->ending[sizeof h->ending - 1] = 0;
    const int n = snprintf(name, sizeof name, "%s%s", f->path, h->ending);
    if (n >= (int)sizeof name || strchr(h->ending, '/') || keel_new_file_join(&f->file, name) < 0)
        return false;
    return keel_new_file_read_at(f->file, 0, token, sizeof token) >= 0 &&
           !memcmp(token, h->token, sizeof token);
}

static void close_files(keel_row_files *f)
{
    for (int k = 0; k < f->n; k++) {
        keel_new_file_abort(f->file[k].file);
        f->file[k].file = NULL;
    }
}

static keel_status open_files(keel_row_files *f)
{
    keel_comm *c = f->s->comm;
    const bool first = f->s->lanes.process == 0;
    keel_status s = KEEL_OK;
    int64_t sees = 1;
    for (int k = 0; first && k < f->n && s >= 0; k++) {
        s = keel_new_file_create(&f->file[k].file, f->file[k].path);
        if (c && s >= 0) s = show_first(&f->file[k], &f->hint[k]);
    }
    if (!c) return s;
    KEEL_TRY(keel_comm_agree(c, s, NULL, 0, NULL));
    KEEL_TRY(keel_comm_broadcast(c, f->hint, (size_t)f->n * sizeof *f->hint));
    for (int k = 0; !first && k < f->n; k++) sees = join_first(&f->file[k], &f->hint[k]) && sees;
    if (!sees) close_files(f);
    return keel_comm_agree(c, KEEL_OK, &sees, 1, f->sees);
}

static keel_status describe(row_file *f, const char *path, const keel_tensor *t, int64_t rows)
{
    char header[KEEL_NPY_HEADER_MOST];
    int64_t all;
    f->path = path;
    f->dtype = t->dtype;
    f->shape = t->shape;
    f->row_bytes = (int64_t)keel_dtype_size(t->dtype);
    for (int d = 1; d < t->shape.rank; d++) f->row_bytes *= t->shape.dim[d];
    f->shape.dim[0] = rows;
    f->begin = (int64_t)keel_npy_header_write(header, f->dtype, &f->shape);
    if (!keel_mul_i64(rows, f->row_bytes, &all) || all > INT64_MAX - f->begin)
        return keel_fail(KEEL_ESHAPE, "%s: %lld rows are more than a file can have", path,
                         (long long)rows);
    return KEEL_OK;
}

keel_status keel_row_files_create(keel_row_files **out, const keel_strategy *s,
                                  const char *const *path, const keel_tensor *t, int n,
                                  int64_t rows)
{
    keel_status st = KEEL_ENOMEM;
    keel_row_files *f = keel_calloc(1, sizeof *f);
    if (!f) return st;
    f->s = s;
    f->sees[0] = 1;
    f->file = keel_calloc((size_t)n, sizeof *f->file);
    f->hint = keel_calloc((size_t)n, sizeof *f->hint);
    if (!f->file || !f->hint) goto out;
    f->n = n;
    st = KEEL_OK;
    for (int k = 0; k < n && st >= 0; k++) st = describe(&f->file[k], path[k], &t[k], rows);
    if (st >= 0) st = open_files(f);
    if (st < 0) goto out;
    *out = f;
    f = NULL;
out:
    keel_row_files_destroy(f);
    return st;
}

void keel_row_files_destroy(keel_row_files *f)
{
    if (!f) return;
    close_files(f);
    keel_free(f->file);
    keel_free(f->hint);
    keel_free(f);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Bytes of the file: [from, own) and [rest, to) are for process 0, [own, rest) lies between. */
typedef struct range {
    int64_t from, own, rest, to;
} range;

static range range_of(const keel_row_files *f, const row_file *file, int process, int64_t row,
                      int64_t rows)
{
    int64_t first, end;
    keel_lanes_rows(&f->s->lanes, rows, process, &first, &end);
    range r = { .from = file->begin + (row + first) * file->row_bytes };
    r.to = r.from + (end - first) * file->row_bytes;
    r.own = (r.from + PAGE - 1) / PAGE * PAGE;
    r.rest = r.to / PAGE * PAGE;
    if (process == 0)
        r.own = r.from, r.rest = r.to;
    else if (!f->sees[process] || r.own >= r.rest)
        r.own = r.rest = r.to;
    return r;
}

/* What each process has for process 0: before its pages, or behind them. */
static keel_status gather(const keel_row_files *f, const row_file *file, int64_t row, int64_t rows,
                          char *data, bool behind)
{
    keel_comm *c = f->s->comm;
    const int rank = c->group.rank;
    const int64_t base = file->begin + row * file->row_bytes;
    size_t all = 0;
    for (int q = 0; q < c->group.count; q++) {
        const range r = range_of(f, file, q, row, rows);
        const int64_t at = behind ? r.rest : r.from, end = behind ? r.to : r.own;
        const size_t n_bytes = q > 0 ? (size_t)(end - at) : 0;
        all += n_bytes;
        c->receive[q] = data + (at - base);
        c->receive_bytes[q] = rank == 0 ? n_bytes : 0;
        c->send[q] = NULL;
        c->send_bytes[q] = 0;
        if (q != rank || rank == 0) continue;
        c->send[0] = data + (at - base);
        c->send_bytes[0] = n_bytes;
    }
    if (all == 0) return KEEL_OK; /* in every process */
    return keel_comm_exchange_noted(c);
}

static keel_status put(keel_new_file *f, const char *data, int64_t base, int64_t from, int64_t to)
{
    if (!f || from >= to) return KEEL_OK;
    return keel_new_file_write_at(f, from, data + (from - base), (size_t)(to - from));
}

static keel_status put_rows(const keel_row_files *f, const row_file *file, int64_t row,
                            int64_t rows, char *data)
{
    const keel_lanes *l = &f->s->lanes;
    const int64_t base = file->begin + row * file->row_bytes;
    const range own = range_of(f, file, l->process, row, rows);
    if (l->n_process > 1) {
        KEEL_TRY(gather(f, file, row, rows, data, false));
        KEEL_TRY(gather(f, file, row, rows, data, true));
    }
    KEEL_TRY(put(file->file, data, base, own.own, own.rest));
    for (int q = 1; q < l->n_process && l->process == 0; q++) {
        const range r = range_of(f, file, q, row, rows);
        KEEL_TRY(put(file->file, data, base, r.from, r.own));
        KEEL_TRY(put(file->file, data, base, r.rest, r.to));
    }
    return KEEL_OK;
}

keel_status keel_row_files_put(keel_row_files *f, int64_t row, int64_t rows, char *const *data)
{
    keel_status s = KEEL_OK;
    keel_failure first = { 0 };
    for (int k = 0; k < f->n; k++) { /* all exchanges are made, whatever cannot be written */
        s = put_rows(f, &f->file[k], row, rows, data[k]);
        if (s < 0 && first.status >= 0) keel_failure_take(&first, s);
    }
    return first.status < 0 ? keel_failure_raise(&first) : KEEL_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static keel_status finish(row_file *f, int64_t rows)
{
    char header[KEEL_NPY_HEADER_MOST];
    f->shape.dim[0] = rows;
    const size_t n = keel_npy_header_write(header, f->dtype, &f->shape);
    KEEL_TRY(keel_new_file_write_at(f->file, 0, header, n));
    KEEL_TRY(keel_new_file_resize(f->file, f->begin + rows * f->row_bytes));
    keel_new_file *file = f->file;
    f->file = NULL;
    return keel_new_file_commit(file);
}

keel_status keel_row_files_commit(keel_row_files *f, int64_t rows)
{
    keel_status s = KEEL_OK;
    for (int k = 0; k < f->n && s >= 0; k++)
        if (f->file[k].file) s = keel_new_file_sync(f->file[k].file);
    if (f->s->comm) KEEL_TRY(keel_comm_agree(f->s->comm, s, NULL, 0, NULL));
    for (int k = 0; k < f->n && s >= 0 && f->s->lanes.process == 0; k++)
        s = finish(&f->file[k], rows);
    return f->s->comm ? keel_comm_agree(f->s->comm, s, NULL, 0, NULL) : s;
}
