/* Reads batches from the output of a program: one .npy after the other. What comes is not trusted:
 * memory grows with what has come, not with what a header says, and is taken from the account. */
#include "base/memory.h"
#include "data/element.h"
#include "data/sources/exec.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { HEADER_BEGIN = 12, ARRAY_BYTES_MAX = 1 << 30 };

void keel_exec_give_bytes(const keel_exec *p, keel_exec_buffer *b)
{
    if (b->charged) keel_account_give(p->account, (int64_t)b->room);
    b->charged = false;
}

void keel_exec_free_buffer(const keel_exec *p, keel_exec_buffer *b)
{
    keel_free(b->data);
    keel_exec_give_bytes(p, b);
    *b = (keel_exec_buffer){ 0 };
}

/* Room for n_bytes, of which the first `keep` are there. */
static keel_status reserve(const keel_exec *p, keel_exec_buffer *b, size_t keep, size_t n_bytes)
{
    if (n_bytes <= b->room) return KEEL_OK;
    if (!keep) keel_exec_free_buffer(p, b);
    if (!keel_account_take(p->account, (int64_t)n_bytes)) return KEEL_ENOMEM;
    keel_exec_buffer fresh = { keel_aligned_calloc(n_bytes, 1), n_bytes, p->account != NULL };
    if (!fresh.data) {
        keel_account_give(p->account, (int64_t)n_bytes);
        return KEEL_ENOMEM;
    }
    if (keep) memcpy(fresh.data, b->data, keep);
    keel_exec_free_buffer(p, b);
    *b = fresh;
    return KEEL_OK;
}

static keel_status within(const keel_exec *p, const keel_exec_column *c, keel_status s)
{
    return keel_fail_within(s, "%s: '%s' of batch %lld", p->name, c->name,
                            (long long)p->number + 1);
}

/* The output has ended where it must not. If the program has failed, that is the cause. */
static keel_status cut_short(const keel_exec *p, const keel_exec_column *c)
{
    KEEL_TRY(keel_program_finish(p->program));
    return within(p, c, keel_fail(KEEL_EFORMAT, "the program ended before it was complete"));
}

static keel_status read_all(const keel_exec *p, const keel_exec_column *c, void *to, size_t n)
{
    size_t got = 0;
    KEEL_TRY(keel_program_read(p->program, to, n, &got));
    return got < n ? cut_short(p, c) : KEEL_OK;
}

/* What stands there instead of an array is often what the program prints. */
static keel_status not_an_array(const keel_exec *p, const keel_exec_column *c, const char *begin)
{
    char shown[HEADER_BEGIN + 1];
    snprintf(shown, sizeof shown, "%.*s", HEADER_BEGIN, begin);
    return within(p, c,
                  keel_fail(KEEL_EFORMAT,
                            "not a .npy: it begins with '%s'; what the program prints must go to "
                            "its error output",
                            keel_printable(shown, sizeof shown, shown)));
}

/* KEEL_END: the output ends before the array. */
static keel_status read_header(const keel_exec *p, const keel_exec_column *c, keel_npy_header *h)
{
    char begin[HEADER_BEGIN];
    size_t got = 0, size = 0;
    KEEL_TRY(keel_program_read(p->program, begin, sizeof begin, &got));
    if (got == 0) return KEEL_END;
    if (memcmp(begin, "\x93NUMPY", got < 6 ? got : 6) != 0) {
        memset(begin + got, 0, sizeof begin - got);
        return not_an_array(p, c, begin);
    }
    if (got < sizeof begin) return cut_short(p, c);
    keel_status s = keel_npy_header_size(&size, begin, sizeof begin);
    if (s >= 0 && size < sizeof begin)
        s = keel_fail(KEEL_EFORMAT, "a .npy with a header of %zu bytes", size);
    if (s < 0) return within(p, c, s);
    char *bytes = keel_calloc(size, 1);
    if (!bytes) return KEEL_ENOMEM;
    memcpy(bytes, begin, sizeof begin);
    s = read_all(p, c, bytes + sizeof begin, size - sizeof begin);
    if (s >= 0) {
        s = keel_npy_header_parse(h, bytes, size, "its header");
        if (s >= 0 && h->shape.rank == 0)
            s = keel_fail(KEEL_ESHAPE, "one number, not an array of rows");
        if (s >= 0 && h->n_bytes > ARRAY_BYTES_MAX)
            s = keel_fail(KEEL_EFORMAT, "%zu bytes, more than the %d of a batch; write fewer rows",
                          h->n_bytes, ARRAY_BYTES_MAX);
        if (s < 0) s = within(p, c, s);
    }
    keel_free(bytes);
    return s;
}

/* Batches may differ in their rows alone. */
static keel_status check_like_first(const keel_exec *p, const keel_exec_column *c,
                                    const keel_npy_header *h)
{
    char has[96], had[96];
    const keel_npy_header *f = &c->header;
    const keel_shape now = keel_row_shape(&h->shape), then = keel_row_shape(&f->shape);
    if (h->stored != f->stored || h->swapped != f->swapped)
        return within(p, c,
                      keel_fail(KEEL_EDATA, "%s%s, but the first batch had %s%s",
                                h->swapped ? "big-endian " : "", keel_npy_type_name(h->stored),
                                f->swapped ? "big-endian " : "", keel_npy_type_name(f->stored)));
    if (keel_shape_equal(&now, &then)) return KEEL_OK;
    keel_shape_text(has, &now);
    keel_shape_text(had, &then);
    return within(p, c,
                  keel_fail(KEEL_ESHAPE, "rows of shape %s, but the first batch had %s", has, had));
}

/* Turn Fortran order, whose first dim is that of the rows: elements keep their stored form. */
static void turn(void *to, const void *from, const keel_npy_header *h)
{
    char *out = to;
    const size_t rows = (size_t)h->shape.dim[0], size = h->element_bytes;
    const size_t count = rows ? h->n_bytes / size / rows : 0;
    size_t dim[KEEL_RANK_MAX], strides[KEEL_RANK_MAX] = { 1 };
    for (int d = 0; d < h->shape.rank; d++) dim[d] = (size_t)h->shape.dim[d];
    for (int d = 1; d < h->shape.rank; d++) strides[d] = strides[d - 1] * dim[d - 1];
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < count; i++) { /* i counts the row's elements, the last dim fastest */
            size_t rest = i, at = row;
            for (int d = h->shape.rank - 1; d > 0; d--) {
                at += rest % dim[d] * strides[d];
                rest /= dim[d];
            }
            memcpy(out, (const char *)from + at * size, size);
            out += size;
        }
}

/* A header may claim what never comes: so memory grows with what has come. */
static keel_status read_growing(const keel_exec *p, const keel_exec_column *c, keel_exec_buffer *to,
                                size_t n_bytes)
{
    enum { FIRST = 16 << 20 };
    for (size_t got = 0; got < n_bytes;) {
        const size_t more = got ? 2 * got : FIRST;
        const keel_status s = reserve(p, to, got, more < n_bytes ? more : n_bytes);
        if (s < 0) return within(p, c, s);
        const size_t end = to->room < n_bytes ? to->room : n_bytes;
        KEEL_TRY(read_all(p, c, (char *)to->data + got, end - got));
        got = end;
    }
    return KEEL_OK;
}

static keel_status read_column(keel_exec *p, keel_exec_column *c, const keel_npy_header *h)
{
    if (!h->fortran) return read_growing(p, c, &c->rows, h->n_bytes);
    KEEL_TRY(read_growing(p, c, &p->turned, h->n_bytes));
    const keel_status s = reserve(p, &c->rows, 0, h->n_bytes);
    if (s < 0) return within(p, c, s);
    turn(c->rows.data, p->turned.data, h);
    return KEEL_OK;
}

keel_status keel_exec_read(keel_exec *p)
{
    int64_t rows = 0;
    for (int i = 0; i < p->n; i++) {
        keel_exec_column *c = &p->column[i];
        keel_npy_header h = { 0 };
        keel_status s = read_header(p, c, &h);
        if (s < 0) return s;
        if (s == KEEL_END) {
            if (i > 0) return cut_short(p, c);
            KEEL_TRY(keel_program_finish(p->program));
            return KEEL_END;
        }
        if (c->header.shape.rank) KEEL_TRY(check_like_first(p, c, &h));
        if (i > 0 && h.shape.dim[0] != rows)
            return within(p, c,
                          keel_fail(KEEL_ESHAPE, "%lld rows, but '%s' has %lld",
                                    (long long)h.shape.dim[0], p->column[0].name, (long long)rows));
        rows = h.shape.dim[0];
        KEEL_TRY(read_column(p, c, &h));
        if (!c->header.shape.rank) c->header = h;
    }
    p->number++;
    p->at = 0;
    p->rows = rows;
    return KEEL_OK;
}
