/* A file whose pieces are read by their place from any thread. A gzipped one has no places: it is
 * inflated once, into memory. Access points into the deflate stream would need as much reading at
 * open and then 32 KiB of inflating for each row, so memory is spent instead, up to a limit.
 *
 * With many files, some are opened again for each piece, so that a thousand shards do not use up
 * the descriptors of the process. */
#ifndef KEEL_IO_INPUT_H
#define KEEL_IO_INPUT_H
#include "io/file.h"
#include <stdbool.h>

/* Bytes that the gzipped files of one dataset may have in all, inflated. */
#define KEEL_INFLATED_MAX (INT64_C(1) << 30)

typedef struct keel_input {
    char *path;            /* owned */
    keel_file file;        /* closed: it is opened for each piece, or the input is in memory */
    unsigned char *memory; /* NULL: not inflated */
    uint64_t n_bytes;      /* inflated */
} keel_input;

/* Looks at a file while it is inflated: `n_bytes` of `data` are there, `whole`: these are all.
 * A failure ends the inflation, so that hostile data costs little. */
typedef keel_status (*keel_input_look)(void *arg, const unsigned char *data, uint64_t n_bytes,
                                       bool whole);

/* Open a plain file. keep_open: leave its descriptor open. The caller closes it, on failure too. */
keel_status keel_input_open(keel_input *out, const char *path, bool keep_open);
/* Open a file and inflate it, gzip or zlib. *room: bytes that may still be inflated, from which its
 * size is subtracted. KEEL_EFORMAT: damaged; KEEL_EDATA: there is not enough room. */
keel_status keel_input_inflate(keel_input *out, const char *path, int64_t *room,
                               keel_input_look look, void *arg);
void keel_input_close(keel_input *in); /* an empty one is allowed */

/* Piece [at, at + n): read into `buffer`, or if the input is in memory, where it stands. */
keel_status keel_input_read(const keel_input *in, uint64_t at, size_t n, void *buffer,
                            const unsigned char **piece);

/* True if the bytes begin as a gzip file, or as a zlib stream. */
bool keel_input_is_deflated(const unsigned char *begin, size_t n);

#endif
