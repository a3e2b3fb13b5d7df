/* Files: opened, read with a limit, and replaced atomically.
 *
 * All files are opened by keel_file_open, which takes plain files only: a pipe could block a run,
 * a device could feed it without end. Files are read, not mapped: if another process truncates a
 * file, a read gives an error, but an access to a map kills the process (SIGBUS).
 *
 * A file is written under a temporary name in the same folder, synced and renamed. A reader, or
 * the user after a crash, sees either the old file or the complete new one. It has the permissions
 * of the old one; where a link has the name, the file that it leads to is replaced, and not it. */
#ifndef KEEL_IO_FILE_H
#define KEEL_IO_FILE_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct keel_file {
    int fd;           /* -1: closed */
    const char *path; /* borrowed, for messages */
    size_t n_bytes;   /* when it was opened */
} keel_file;

/* KEEL_EIO names path and cause; folders, devices, pipes and sockets are refused. */
keel_status keel_file_open(keel_file *out, const char *path);
/* Read exactly n bytes from offset `at`. Thread-safe, also on one file. KEEL_EIO: the file was
 * truncated meanwhile, or reading failed. */
keel_status keel_file_read_at(const keel_file *f, uint64_t at, void *data, size_t n);
void keel_file_close(keel_file *f); /* NULL and a closed file are allowed */
/* All of a file will be read soon: the operating system fetches it meanwhile. Only a hint: whatever
 * is wrong with the file shows when it is read. Costs microseconds if it is in memory already. */
void keel_file_soon(const char *path);

/* Read all of `path`, at most `limit` bytes. The caller frees *data with keel_free; one zero byte
 * follows the data. KEEL_EIO names path and cause; KEEL_EFORMAT: longer than limit. */
keel_status keel_file_read(const char *path, size_t limit, void **data, size_t *n_bytes);

/* A file being written: create, write, then commit or abort. An existing file at `path` must be a
 * plain one. */
typedef struct keel_new_file keel_new_file;

keel_status keel_new_file_create(keel_new_file **out, const char *path);
keel_status keel_new_file_write(keel_new_file *f, const void *data, size_t n_bytes);
/* Write at a place, which may be behind the end; cut the file, or make it longer. */
keel_status keel_new_file_write_at(keel_new_file *f, int64_t at, const void *data, size_t n_bytes);
keel_status keel_new_file_resize(keel_new_file *f, int64_t n_bytes);
/* Its temporary name, for other processes, which may write into the same file: they open it, and
 * close it when all of theirs is on the disk. Nobody else may commit it. Until then it may have no
 * name, so that nothing is left of it if the process is killed. */
keel_status keel_new_file_temporary(keel_new_file *f, const char **name);
keel_status keel_new_file_join(keel_new_file **out, const char *temporary);
keel_status keel_new_file_read_at(const keel_new_file *f, int64_t at, void *data, size_t n_bytes);
keel_status keel_new_file_sync(keel_new_file *f);
/* Sync, rename to path, sync the folder. Frees f in any case; on failure the temporary file is
 * removed and the old file stays. */
keel_status keel_new_file_commit(keel_new_file *f);
void keel_new_file_abort(keel_new_file *f); /* removes the temporary file; NULL is allowed */

/* Make the folders that `path` names up to its last slash; those that are there stay. The text is
 * changed meanwhile, and as it was at the end. KEEL_EIO names the folder and the cause. */
keel_status keel_file_folders(char *path);

/* Create, write and commit in one call. */
keel_status keel_file_write(const char *path, const void *data, size_t n_bytes);

#endif
