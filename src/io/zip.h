/* Zip archives, the format of `.keras` and `.npz`.
 *
 * The reader trusts no number. Before memory is allocated, a member's size is checked against the
 * size of the archive (deflate expands at most 1032 times) and against the caller's limit. Members
 * may not overlap, names must differ, and checksums must match. The writer stores without
 * compression, as Keras does, and with fixed times, so that equal members give an equal file. */
#ifndef KEEL_IO_ZIP_H
#define KEEL_IO_ZIP_H
#include "io/file.h"

typedef struct keel_zip keel_zip;

/* Open an archive for reading, from a file, or from memory that must outlive it (`what` names it in
 * messages). KEEL_EIO: no such file, or not a plain one; KEEL_EFORMAT: not an archive, or damaged.
 * An archive is used by one thread at a time. */
keel_status keel_zip_open(keel_zip **out, const char *path);
keel_status keel_zip_open_memory(keel_zip **out, const void *data, size_t n_bytes,
                                 const char *what);
void keel_zip_close(keel_zip *z); /* NULL is allowed */

const char *keel_zip_what(const keel_zip *z);                /* its name in messages */
int64_t keel_zip_count(const keel_zip *z);                   /* members */
const char *keel_zip_name(const keel_zip *z, int64_t index); /* valid until close */
int64_t keel_zip_find(const keel_zip *z, const char *name);  /* index, or -1 */
uint64_t keel_zip_size(const keel_zip *z, int64_t index);    /* in bytes, as announced; checked */

/* Read a whole member of at most `limit` bytes; the caller frees *data with keel_free; one zero
 * byte follows the data. KEEL_EFORMAT: no such member, too long, or damaged. */
keel_status keel_zip_read(keel_zip *z, const char *name, size_t limit, void **data,
                          size_t *n_bytes);

/* Read a member from its begin in pieces: open, read exactly n bytes each time, finish. Finish
 * checks that no bytes are left and that the checksum matches. */
typedef struct keel_zip_stream keel_zip_stream;
keel_status keel_zip_stream_open(keel_zip_stream **out, keel_zip *z, int64_t index);
keel_status keel_zip_stream_read(keel_zip_stream *s, void *data, size_t n_bytes);
keel_status keel_zip_stream_finish(keel_zip_stream *s); /* frees s in any case */
void keel_zip_stream_close(keel_zip_stream *s);         /* no checks; NULL is allowed */

/* Where the bytes of a member begin in the archive, for keel_zip_read_at, after a check of its
 * checksum in little memory; 0: it is compressed, and was not checked. */
keel_status keel_zip_place(keel_zip *z, int64_t index, uint64_t *at);
keel_status keel_zip_read_at(const keel_zip *z, uint64_t at, void *data, size_t n);

typedef struct keel_zip_member {
    const char *name;
    const void *data;
    size_t n_bytes;
    /* Not NULL: the member's bytes are what it writes into the archive from byte `at` on, which is
     * then the end of the file; *n_bytes is their number. */
    keel_status (*write)(const void *context, keel_new_file *archive, int64_t at,
                         uint64_t *n_bytes);
    const void *context;
} keel_zip_member;

/* Write an archive with these members in this order, atomically. KEEL_EARG: names repeat. */
keel_status keel_zip_write(const char *path, const keel_zip_member *members, int64_t count);

#endif
