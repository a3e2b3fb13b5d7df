/* A file of rows that are read by number, each with a checksum: what the stages cache and snapshot
 * keep on disk.
 *
 *   "KEELROWS"   8 bytes, then the version, u64
 *   rows         in any order, each as it is or deflated by zlib
 *   index        sections (io/sections.h), which have a checksum of their own:
 *                  "head"   a text that is the writer's business
 *                  "rows"   of each row: begin, bytes in the file, bytes inflated, fingerprint of
 *                           the bytes in the file, u64 each
 *                  "dims"   of each row: n_dims numbers, u64 each
 *   end          begin and bytes of the index, u64 each, and "KEELROWE"
 *
 * Numbers are little-endian. The reader trusts none of them; what it costs to open a file is in
 * proportion to its bytes. The file is complete or not there: it is renamed when it is whole. */
#ifndef KEEL_IO_ROW_FILE_H
#define KEEL_IO_ROW_FILE_H
#include "base/scratch.h"
#include "io/file.h"
#include "io/sections.h"
#include <stdbool.h>

typedef struct keel_row_file {
    char *path; /* owned */
    keel_file file;
    void *block; /* the index */
    keel_sections sections;
    const unsigned char *rows, *dims; /* in the block */
    int64_t count;
    int n_dims;
} keel_row_file;

/* KEEL_EIO: it cannot be read; KEEL_EFORMAT: it is no such file, or damaged. The caller closes it,
 * on failure too. */
keel_status keel_row_file_open(keel_row_file *out, const char *path);
void keel_row_file_close(keel_row_file *f); /* an empty one is allowed */

/* The head, not zero-terminated. */
const char *keel_row_file_head(const keel_row_file *f, size_t *n_bytes);

/* Of row i, 0 <= i < count: a dim, and the bytes inflated, from which a caller that knows better
 * finds that the row is wrong before it is read. */
uint64_t keel_row_file_dim(const keel_row_file *f, int64_t i, int k);
uint64_t keel_row_file_bytes(const keel_row_file *f, int64_t i);

/* Read row i into scratch buffer 0, or 1 if it is inflated, and check it. Thread-safe.
 * KEEL_EFORMAT: it is damaged; the text names file and row. */
keel_status keel_row_file_read(const keel_row_file *f, int64_t i, keel_scratch *scratch,
                               const unsigned char **data, size_t *n_bytes);

/* ---- writing --------------------------------------------------------------------------------- */

/* A row as it stands in the file. */
typedef struct keel_row_packed {
    const void *data; /* borrowed, or in the scratch */
    size_t n_bytes, inflated;
    uint64_t fingerprint;
} keel_row_packed;

/* Deflate it into scratch buffer 1, if `deflate` and it becomes smaller. Thread-safe. */
keel_status keel_row_pack(keel_row_packed *out, const void *data, size_t n_bytes, bool deflate,
                          keel_scratch *scratch);

typedef struct keel_row_writer keel_row_writer; /* one thread at a time */

keel_status keel_row_writer_create(keel_row_writer **out, const char *path, int n_dims);
/* Write row number `row`, once; dims has n_dims numbers. */
keel_status keel_row_writer_add(keel_row_writer *w, int64_t row, const keel_row_packed *p,
                                const uint64_t *dims);
/* All rows 0 .. count - 1 are there: end the file and put it into its place. Frees w in any case.
 */
keel_status keel_row_writer_commit(keel_row_writer *w, int64_t count, const char *head);
void keel_row_writer_abort(keel_row_writer *w); /* NULL is allowed */

#endif
