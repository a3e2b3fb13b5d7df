/* TFRecord files, TensorFlow's: records of any bytes, each with its length and two checksums. A
 * record is
 *
 *   length  8 bytes, little-endian        checksum of the length  4 bytes
 *   data    `length` bytes                checksum of the data    4 bytes
 *
 * and the checksums are masked CRC-32C. Opening a file reads the lengths alone and checks them, so
 * truncated files are found; a record's data are checked when they are read. Files gzipped by
 * TFRecordOptions("GZIP" or "ZLIB") are held in memory; see input.h. */
#ifndef KEEL_IO_TFRECORD_H
#define KEEL_IO_TFRECORD_H
#include "base/scratch.h"
#include "io/input.h"

typedef struct keel_tfrecord {
    keel_input in;
    int64_t count;    /* records */
    uint64_t *offset; /* [count + 1] where each begins, and the end of the last */
    int64_t room;
} keel_tfrecord;

/* Open a file and find its records. keep_open, room: as in input.h. KEEL_EFORMAT: not such a file,
 * truncated, or a length does not have its checksum; the text names file, record and byte. The
 * caller closes it, on failure too. */
keel_status keel_tfrecord_open(keel_tfrecord *out, const char *path, bool keep_open, int64_t *room);
void keel_tfrecord_close(keel_tfrecord *t); /* an empty one is allowed */

/* Read record i, 0 <= i < count, into scratch buffer 0, and check it. Thread-safe. KEEL_EFORMAT: it
 * is damaged; the text names file, record and byte. */
keel_status keel_tfrecord_read(const keel_tfrecord *t, int64_t i, keel_scratch *scratch,
                               const unsigned char **data, size_t *n_bytes);

#endif
