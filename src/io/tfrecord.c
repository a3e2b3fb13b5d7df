/* TFRecord files; see tfrecord.h. */
#include "io/tfrecord.h"
#include "base/memory.h"
#include "io/crc32c.h"
#include <string.h>

enum { HEAD = 12, TAIL = 4, AHEAD = 1 << 16 };
#define RECORD_MAX (UINT64_C(1) << 30)

static uint32_t get32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static bool length_of(const unsigned char *head, uint64_t *length)
{
    memcpy(length, head, sizeof *length);
    return keel_crc32c_masked(keel_crc32c(head, 8)) == get32(head + 8);
}

static keel_status add_record(keel_tfrecord *t, uint64_t at)
{
    if (t->count + 1 >= t->room) {
        const int64_t room = t->room ? 2 * t->room : 256;
        uint64_t *offset = keel_grow(t->offset, (size_t)room, sizeof *offset);
        if (!offset) return KEEL_ENOMEM;
        t->offset = offset;
        t->room = room;
    }
    t->offset[t->count++] = at;
    return KEEL_OK;
}

static keel_status cut_short(const keel_tfrecord *t, uint64_t at, const char *where)
{
    return keel_fail(KEEL_EFORMAT, "%s: is cut short in record %lld, which begins at byte %llu: %s",
                     t->in.path, (long long)t->count, (unsigned long long)at, where);
}

/* Check the head of the record at `at`; *next gets the place of the record behind it. */
static keel_status next_record(const keel_tfrecord *t, uint64_t at, const unsigned char *head,
                               uint64_t *next)
{
    uint64_t length;
    if (!length_of(head, &length))
        return keel_fail(KEEL_EFORMAT,
                         "%s: record %lld at byte %llu is damaged: its length does not have its "
                         "checksum%s",
                         t->in.path, (long long)t->count, (unsigned long long)at,
                         at ? "" : "; or it is no TFRecord file");
    if (length > RECORD_MAX)
        return keel_fail(KEEL_EFORMAT,
                         "%s: record %lld at byte %llu has %llu bytes, more than the 1 GiB that is "
                         "read",
                         t->in.path, (long long)t->count, (unsigned long long)at,
                         (unsigned long long)length);
    *next = at + HEAD + length + TAIL;
    return KEEL_OK;
}

/* Read the lengths. Small records are read ahead, large ones are jumped over. */
static keel_status index_file(keel_tfrecord *t)
{
    const uint64_t n = t->in.n_bytes;
    uint64_t from = 0, have = 0; /* the file's bytes in `piece` */
    unsigned char *piece = keel_calloc(1, AHEAD);
    keel_status s = piece ? KEEL_OK : KEEL_ENOMEM;
    for (uint64_t at = 0, next, last = 0; s >= 0 && at < n; at = next) {
        if (n - at < HEAD) {
            s = cut_short(t, at, "its length is not there");
            break;
        }
        if (at + HEAD > from + have) {
            from = at;
            have = last < AHEAD / 4 ? AHEAD : HEAD;
            if (have > n - at) have = n - at;
            if ((s = keel_file_read_at(&t->in.file, from, piece, (size_t)have)) < 0) break;
        }
        if ((s = next_record(t, at, piece + (at - from), &next)) < 0) break;
        if (next > n)
            s = cut_short(t, at, "the file ends before it does");
        else
            s = add_record(t, at);
        last = next - at;
    }
    keel_free(piece);
    return s;
}

/* The same while a file is inflated. */
typedef struct look_state {
    keel_tfrecord *t;
    uint64_t at; /* of the next record */
} look_state;

static keel_status look(void *arg, const unsigned char *data, uint64_t n, bool whole)
{
    look_state *l = arg;
    while (l->at < n) {
        uint64_t next;
        if (n - l->at < HEAD) return whole ? cut_short(l->t, l->at, "its length is not there") : 0;
        KEEL_TRY(next_record(l->t, l->at, data + l->at, &next));
        if (next > n) return whole ? cut_short(l->t, l->at, "the data end before it does") : 0;
        KEEL_TRY(add_record(l->t, l->at));
        l->at = next;
    }
    return KEEL_OK;
}

/* A length may begin as a gzip file does, but then it has its checksum. */
static keel_status is_gzipped(const keel_tfrecord *t, bool *out)
{
    unsigned char head[HEAD];
    uint64_t length;
    *out = false;
    if (t->in.n_bytes < HEAD) return KEEL_OK;
    KEEL_TRY(keel_file_read_at(&t->in.file, 0, head, HEAD));
    *out = !length_of(head, &length) && keel_input_is_deflated(head, HEAD);
    return KEEL_OK;
}

keel_status keel_tfrecord_open(keel_tfrecord *out, const char *path, bool keep_open, int64_t *room)
{
    bool gzipped = false;
    *out = (keel_tfrecord){ 0 };
    KEEL_TRY(keel_input_open(&out->in, path, true));
    KEEL_TRY(is_gzipped(out, &gzipped));
    if (gzipped) {
        look_state l = { out, 0 };
        keel_input_close(&out->in);
        KEEL_TRY(keel_input_inflate(&out->in, path, room, look, &l));
    } else {
        KEEL_TRY(index_file(out));
        if (!keep_open) keel_file_close(&out->in.file);
    }
    KEEL_TRY(add_record(out, out->in.n_bytes)); /* the end */
    out->count--;
    return KEEL_OK;
}

void keel_tfrecord_close(keel_tfrecord *t)
{
    keel_input_close(&t->in);
    keel_free(t->offset);
    *t = (keel_tfrecord){ 0 };
}

keel_status keel_tfrecord_read(const keel_tfrecord *t, int64_t i, keel_scratch *scratch,
                               const unsigned char **data, size_t *n_bytes)
{
    const unsigned char *piece;
    const uint64_t at = t->offset[i];
    const size_t n = (size_t)(t->offset[i + 1] - at), length = n - HEAD - TAIL;
    void *buffer = t->in.memory ? NULL : keel_scratch_reserve(scratch, 0, n);
    uint64_t now = 0;
    if (!t->in.memory && !buffer) return KEEL_ENOMEM;
    KEEL_TRY(keel_input_read(&t->in, at, n, buffer, &piece));
    if (!length_of(piece, &now) || now != length)
        return keel_fail(KEEL_EFORMAT,
                         "%s: record %lld at byte %llu is damaged: its length does not have its "
                         "checksum, or was changed since the file was opened",
                         t->in.path, (long long)i, (unsigned long long)at);
    if (keel_crc32c_masked(keel_crc32c(piece + HEAD, length)) != get32(piece + HEAD + length))
        return keel_fail(KEEL_EFORMAT,
                         "%s: record %lld at byte %llu is damaged: its %zu bytes of data do not "
                         "have their checksum",
                         t->in.path, (long long)i, (unsigned long long)at, length);
    *data = piece + HEAD;
    *n_bytes = length;
    return KEEL_OK;
}
