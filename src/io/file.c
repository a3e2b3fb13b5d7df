/* Files; see file.h. A new file has no name until it is complete, where the file system can do that
 * (O_TMPFILE): a process that is killed then leaves nothing. The buffer of a whole file grows with
 * the bytes read, not with the size that the file system reports, so files of /proc work too. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "io/file.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

keel_status keel_file_open(keel_file *out, const char *path)
{
    struct stat st;
    /* O_NONBLOCK: opening a pipe would wait for its writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0) {
        const keel_status s = keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
        close(fd);
        return s;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return keel_fail(KEEL_EIO, "%s: is a %s, not a plain file", path,
                         S_ISDIR(st.st_mode) ? "folder" : "device or pipe");
    }
    *out = (keel_file){ fd, path, st.st_size > 0 ? (size_t)st.st_size : 0 };
    return KEEL_OK;
}

void keel_file_close(keel_file *f)
{
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

void keel_file_soon(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here */
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

keel_status keel_file_read_at(const keel_file *f, uint64_t at, void *data, size_t n)
{
    char *p = data;
    if (at > INT64_MAX || n > INT64_MAX - at)
        return keel_fail(KEEL_EIO, "%s: a read beyond its end", f->path);
    while (n > 0) {
        const ssize_t got = pread(f->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return keel_fail(KEEL_EIO, "%s: %s", f->path, strerror(errno));
        if (got == 0) return keel_fail(KEEL_EIO, "%s: was truncated while it was read", f->path);
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return KEEL_OK;
}

keel_status keel_file_read(const char *path, size_t limit, void **data, size_t *n_bytes)
{
    keel_status s = KEEL_OK;
    keel_file f = { -1, NULL, 0 };
    unsigned char *bytes = NULL;
    size_t n = 0, capacity = 0;
    KEEL_TRY(keel_file_open(&f, path));
    if (f.n_bytes > limit) {
        s = keel_fail(KEEL_EFORMAT, "%s: %zu bytes, longer than the %zu that are allowed", path,
                      f.n_bytes, limit);
        goto out;
    }
    capacity = f.n_bytes > 4095 ? f.n_bytes + 1 : 4096;
    for (;;) {
        if (!bytes || n == capacity) {
            if (bytes) capacity *= 2;
            unsigned char *grown = keel_grow(bytes, capacity + 1, 1);
            if (!grown) {
                s = KEEL_ENOMEM;
                goto out;
            }
            bytes = grown;
        }
        const ssize_t got = read(f.fd, bytes + n, capacity - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            s = keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
            goto out;
        }
        if (got == 0) break;
        n += (size_t)got;
        if (n > limit) {
            s = keel_fail(KEEL_EFORMAT, "%s: longer than the %zu bytes that are allowed", path,
                          limit);
            goto out;
        }
    }
    bytes[n] = 0;
    *data = bytes;
    *n_bytes = n;
    bytes = NULL;
out:
    keel_free(bytes);
    keel_file_close(&f);
    return s;
}

/* The file that `path` stands for, to be freed: where a link leads. `mode` is that of a file that
 * is there. A device or a pipe is refused: the rename would replace it by a plain file. */
static keel_status find_place(char **place, mode_t *mode, const char *path)
{
    struct stat st, link;
    const bool there = stat(path, &st) == 0;
    const bool linked = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    if (linked && !there)
        return keel_fail(KEEL_EIO, "%s: cannot be created: it is a link that leads nowhere", path);
    if (there && !S_ISREG(st.st_mode))
        return keel_fail(KEEL_EIO, "%s: cannot be created: a %s has this name; give another", path,
                         S_ISDIR(st.st_mode) ? "folder" : "device or pipe");
    char *real = linked ? realpath(path, NULL) : NULL;
    if (linked && !real) return keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    *mode = there ? st.st_mode & 0777 : 0;
    *place = keel_strdup(real ? real : path);
    free(real);
    return *place ? KEEL_OK : KEEL_ENOMEM;
}

struct keel_new_file {
    int fd;
    char *path, *temporary; /* "": it has no name */
    mode_t mode; /* permissions of the file that it takes the place of; 0: there is none */
};

enum { PROC_NAME = 40, NAMES_MOST = 1000 };

static void proc_name(char out[PROC_NAME], int fd)
{
    snprintf(out, PROC_NAME, "/proc/self/fd/%d", fd);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return keel_strdup(".");
    return slash == path ? keel_strdup("/") : keel_strndup(path, (size_t)(slash - path));
}

/* A file without a name in the folder of `path`, which can get one; -1: not here. */
static int open_unnamed(const char *path)
{
    char proc[PROC_NAME];
    char *folder = folder_of(path);
    const int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
    keel_free(folder);
    if (fd < 0) return -1;
    proc_name(proc, fd);
    if (access(proc, F_OK) == 0) return fd;
    close(fd);
    return -1;
}

/* The file gets a temporary name: one that is open, or else a new one. */
static keel_status give_name(keel_new_file *f)
{
    char proc[PROC_NAME];
    const size_t size = strlen(f->path) + 32;
    const bool open_already = f->fd >= 0;
    proc_name(proc, f->fd);
    for (int i = 0; i < NAMES_MOST; i++) { /* a killed process may have left a file of this name */
        snprintf(f->temporary, size, "%s.%ld-%d.tmp", f->path, (long)getpid(), i);
        if (open_already) {
            if (!linkat(AT_FDCWD, proc, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW)) return KEEL_OK;
        } else {
            f->fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (f->fd >= 0) return KEEL_OK;
        }
        if (errno != EEXIST) break;
    }
    f->temporary[0] = 0; /* not ours */
    return keel_fail(KEEL_EIO, "%s: cannot be created: %s", f->path, strerror(errno));
}

/* Other processes of the owner may have to write into it. A file system without permissions has
 * none to keep. */
static void keep_mode(const keel_new_file *f)
{
    if (f->mode) (void)fchmod(f->fd, f->mode | S_IRUSR | S_IWUSR);
}

/* Where a file without a name cannot get one after all, it is copied into one that has. */
static keel_status copy_with_name(keel_new_file *f)
{
    char bytes[1 << 14];
    ssize_t n;
    const int from = f->fd;
    f->fd = -1;
    keel_status s = give_name(f);
    if (s >= 0) keep_mode(f);
    for (off_t at = 0; s >= 0 && (n = pread(from, bytes, sizeof bytes, at)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            s = keel_fail(KEEL_EIO, "%s: copying: %s", f->path, strerror(errno));
        } else {
            s = keel_new_file_write(f, bytes, (size_t)n);
            at += n;
        }
    }
    close(from);
    return s;
}

static keel_status have_name(keel_new_file *f)
{
    if (f->temporary[0] || give_name(f) >= 0) return KEEL_OK;
    return copy_with_name(f);
}

keel_status keel_new_file_create(keel_new_file **out, const char *path)
{
    keel_new_file *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->fd = -1;
    keel_status s = find_place(&f->path, &f->mode, path);
    if (s < 0) goto out;
    if (!(f->temporary = keel_calloc(strlen(f->path) + 32, 1))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    f->fd = open_unnamed(f->path);
    if (f->fd < 0 && (s = give_name(f)) < 0) goto out;
    keep_mode(f);
    *out = f;
    f = NULL;
out:
    keel_new_file_abort(f);
    return s;
}

keel_status keel_new_file_write(keel_new_file *f, const void *data, size_t n_bytes)
{
    const char *p = data;
    while (n_bytes > 0) {
        const ssize_t put = write(f->fd, p, n_bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return keel_fail(KEEL_EIO, "%s: writing: %s", f->path, strerror(errno));
        p += put;
        n_bytes -= (size_t)put;
    }
    return KEEL_OK;
}

keel_status keel_new_file_write_at(keel_new_file *f, int64_t at, const void *data, size_t n_bytes)
{
    const char *p = data;
    while (n_bytes > 0) {
        const ssize_t put = pwrite(f->fd, p, n_bytes, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return keel_fail(KEEL_EIO, "%s: writing: %s", f->path, strerror(errno));
        p += put;
        at += put;
        n_bytes -= (size_t)put;
    }
    return KEEL_OK;
}

keel_status keel_new_file_read_at(const keel_new_file *f, int64_t at, void *data, size_t n_bytes)
{
    const keel_file in = { .fd = f->fd, .path = f->path };
    return keel_file_read_at(&in, (uint64_t)at, data, n_bytes);
}

keel_status keel_new_file_resize(keel_new_file *f, int64_t n_bytes)
{
    if (ftruncate(f->fd, (off_t)n_bytes) == 0) return KEEL_OK;
    return keel_fail(KEEL_EIO, "%s: writing: %s", f->path, strerror(errno));
}

keel_status keel_new_file_temporary(keel_new_file *f, const char **name)
{
    KEEL_TRY(have_name(f));
    *name = f->temporary;
    return KEEL_OK;
}

keel_status keel_new_file_join(keel_new_file **out, const char *temporary)
{
    keel_new_file *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->fd = -1;
    if (!(f->path = keel_strdup(temporary))) {
        keel_new_file_abort(f);
        return KEEL_ENOMEM;
    }
    f->fd = open(temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (f->fd < 0) {
        const keel_status s = keel_fail(KEEL_EIO, "%s: %s", temporary, strerror(errno));
        keel_new_file_abort(f);
        return s;
    }
    *out = f;
    return KEEL_OK;
}

keel_status keel_new_file_sync(keel_new_file *f)
{
    if (fsync(f->fd) == 0 || errno == EINVAL || errno == EROFS) return KEEL_OK;
    return keel_fail(KEEL_EIO, "%s: syncing: %s", f->path, strerror(errno));
}

/* Make the rename survive a crash. A file system that cannot sync a folder is no error: the file
 * itself is complete. */
static void sync_folder(const char *path)
{
    char *folder = folder_of(path);
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    keel_free(folder);
}

keel_status keel_new_file_commit(keel_new_file *f)
{
    keel_status s = keel_new_file_sync(f);
    if (s < 0) goto out;
    if (!f->temporary[0]) { /* the name at the last moment; and that it has one is synced, too */
        if ((s = have_name(f)) < 0 || (s = keel_new_file_sync(f)) < 0) goto out;
    }
    const int closed = close(f->fd);
    f->fd = -1;
    if (closed != 0) {
        s = keel_fail(KEEL_EIO, "%s: closing: %s", f->path, strerror(errno));
        goto out;
    }
    if (rename(f->temporary, f->path) != 0) {
        s = keel_fail(KEEL_EIO, "%s: cannot be put in place: %s", f->path, strerror(errno));
        goto out;
    }
    f->temporary[0] = 0;
    sync_folder(f->path);
out:
    keel_new_file_abort(f);
    return s;
}

void keel_new_file_abort(keel_new_file *f)
{
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    if (f->temporary && f->temporary[0]) unlink(f->temporary);
    keel_free(f->temporary);
    keel_free(f->path);
    keel_free(f);
}

keel_status keel_file_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        const bool bad = mkdir(path, 0777) && errno != EEXIST;
        if (bad) keel_fail(KEEL_EIO, "%s: the folder cannot be made: %s", path, strerror(errno));
        *slash = '/';
        if (bad) return KEEL_EIO;
    }
    return KEEL_OK;
}

keel_status keel_file_write(const char *path, const void *data, size_t n_bytes)
{
    keel_new_file *f = NULL;
    KEEL_TRY(keel_new_file_create(&f, path));
    const keel_status s = keel_new_file_write(f, data, n_bytes);
    if (s >= 0) return keel_new_file_commit(f);
    keel_new_file_abort(f);
    return s;
}
