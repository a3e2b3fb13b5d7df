/* The list of weights of a file on disk, whose arrays are read from there one by one: in a file of
 * its own, or in an archive. So of a large file only what is asked for comes into memory, and only
 * once. A member that is compressed is read whole. */
#ifndef KEEL_IO_WEIGHTS_FILE_H
#define KEEL_IO_WEIGHTS_FILE_H
#include "io/weights_h5.h"
#include "io/zip.h"

typedef struct keel_weights_file {
    keel_weights *list;
    keel_file file;
    const keel_zip *zip;
    uint64_t begin; /* of the member in the archive */
    void *image;    /* of a member that is compressed; else NULL */
} keel_weights_file;

/* Open a file, or a member of an archive that must outlive *out, of at most `limit` bytes. *out
 * does not move, until it is closed. KEEL_EIO, KEEL_EFORMAT, KEEL_EUNSUP as keel_zip_read,
 * keel_file_read and keel_weights_open. */
keel_status keel_weights_file_open(keel_weights_file *out, const char *path, size_t limit);
keel_status keel_weights_file_open_member(keel_weights_file *out, keel_zip *zip, const char *name,
                                          size_t limit);
void keel_weights_file_close(keel_weights_file *f); /* also after a failure */

#endif
