/* Whole files: read with a limit, map, and replace atomically.
 *
 * A file that Keel writes is first written beside its place under another name, synced, and then
 * renamed, so that a reader or a crash sees the old file or the new one and nothing between. */
#ifndef KEEL_IO_FILE_H
#define KEEL_IO_FILE_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Read all of `path`, at most `limit` bytes. The caller frees *data with keel_free; one zero byte
 * follows the data. KEEL_EIO names path and cause; KEEL_EFORMAT: longer than limit. */
keel_status keel_file_read(const char *path, size_t limit, void **data, size_t *n_bytes);

/* A file mapped for reading. It must not be cut short by others while it is mapped. */
typedef struct keel_map {
    const unsigned char *data; /* NULL when the file is empty */
    size_t n_bytes;
} keel_map;

keel_status keel_map_open(keel_map *out, const char *path);
void keel_map_close(keel_map *m); /* NULL and an empty map are fine */

/* A file on its way: write, then commit or abort. What is at path may be a plain file only. */
typedef struct keel_new_file keel_new_file;

keel_status keel_new_file_create(keel_new_file **out, const char *path);
keel_status keel_new_file_write(keel_new_file *f, const void *data, size_t n_bytes);
/* Sync, rename to path, sync the folder; frees f whatever happens, and on failure removes the
 * temporary file and leaves what was at path. */
keel_status keel_new_file_commit(keel_new_file *f);
void keel_new_file_abort(keel_new_file *f); /* removes the temporary file; NULL is fine */

/* All three in one. */
keel_status keel_file_write(const char *path, const void *data, size_t n_bytes);

#endif
