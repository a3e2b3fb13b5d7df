/* Files: opened, read with a limit, and replaced atomically.
 *
 * Whatever Keel reads is opened by keel_file_open: plain files only, so that a pipe does not hold a
 * run up and a device does not feed it without end. Nothing is mapped: another process may cut a
 * file short, and a map of it would then kill the reader (SIGBUS); reading gives an error.
 *
 * A file that Keel writes is first written beside its place under another name, synced, and then
 * renamed, so that a reader or a crash sees the old file or the new one and nothing between. */
#ifndef KEEL_IO_FILE_H
#define KEEL_IO_FILE_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct keel_file {
    int fd;           /* -1: none */
    const char *path; /* borrowed, for messages */
    size_t n_bytes;   /* when it was opened */
} keel_file;

/* KEEL_EIO: names path and cause; a folder, device, pipe or socket is no plain file. */
keel_status keel_file_open(keel_file *out, const char *path);
/* Exactly n bytes from `at` on; any thread, also concurrently. KEEL_EIO: fewer are there, since the
 * file was cut short meanwhile, or reading failed. */
keel_status keel_file_read_at(const keel_file *f, uint64_t at, void *data, size_t n);
void keel_file_close(keel_file *f); /* NULL and a closed one are fine */

/* Read all of `path`, at most `limit` bytes. The caller frees *data with keel_free; one zero byte
 * follows the data. KEEL_EIO names path and cause; KEEL_EFORMAT: longer than limit. */
keel_status keel_file_read(const char *path, size_t limit, void **data, size_t *n_bytes);

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
