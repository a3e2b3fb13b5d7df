/* Whole files; see file.h. Reading grows with what arrives, not with what the file system claims,
 * so pipes and /proc files work too. */
#include "io/file.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static keel_status open_file(int *out, struct stat *st, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    if (fstat(fd, st) != 0) {
        const keel_status s = keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
        close(fd);
        return s;
    }
    if (S_ISDIR(st->st_mode)) {
        close(fd);
        return keel_fail(KEEL_EIO, "%s: is a folder, not a file", path);
    }
    *out = fd;
    return KEEL_OK;
}

keel_status keel_file_read(const char *path, size_t limit, void **data, size_t *n_bytes)
{
    keel_status s = KEEL_OK;
    struct stat st;
    int fd = -1;
    unsigned char *bytes = NULL;
    size_t n = 0, capacity = 0;
    KEEL_TRY(open_file(&fd, &st, path));
    if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > limit) {
        s = keel_fail(KEEL_EFORMAT, "%s: %jd bytes, longer than the %zu that are allowed", path,
                      (intmax_t)st.st_size, limit);
        goto out;
    }
    capacity = S_ISREG(st.st_mode) && st.st_size > 4095 ? (size_t)st.st_size + 1 : 4096;
    for (;;) {
        if (!bytes || n + 1 >= capacity) {
            if (bytes) capacity *= 2;
            unsigned char *grown = keel_grow(bytes, capacity + 1, 1);
            if (!grown) {
                s = KEEL_ENOMEM;
                goto out;
            }
            bytes = grown;
        }
        const ssize_t got = read(fd, bytes + n, capacity - n);
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
    close(fd);
    return s;
}

keel_status keel_map_open(keel_map *out, const char *path)
{
    struct stat st;
    int fd = -1;
    KEEL_TRY(open_file(&fd, &st, path));
    keel_status s = KEEL_OK;
    keel_map m = { 0 };
    if (!S_ISREG(st.st_mode)) {
        s = keel_fail(KEEL_EIO, "%s: not a plain file, cannot be mapped", path);
    } else if (st.st_size > 0) {
        m.n_bytes = (size_t)st.st_size;
        void *p = mmap(NULL, m.n_bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) s = keel_fail(KEEL_EIO, "%s: mapping: %s", path, strerror(errno));
        m.data = p;
    }
    close(fd);
    if (s >= 0) *out = m;
    return s;
}

void keel_map_close(keel_map *m)
{
    if (m && m->data) munmap((void *)(uintptr_t)m->data, m->n_bytes);
    if (m) *m = (keel_map){ 0 };
}

/* A rename would put a plain file in place of a device or a pipe. */
static keel_status check_place(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return KEEL_OK;
    return keel_fail(KEEL_EIO, "%s: cannot be created: a %s has this name; give another", path,
                     S_ISDIR(st.st_mode) ? "folder" : "device or pipe");
}

struct keel_new_file {
    int fd;
    char *path, *temporary;
};

keel_status keel_new_file_create(keel_new_file **out, const char *path)
{
    keel_status s = KEEL_OK;
    KEEL_TRY(check_place(path));
    keel_new_file *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->fd = -1;
    const size_t size = strlen(path) + 32;
    f->path = keel_strdup(path);
    f->temporary = keel_calloc(size, 1);
    if (!f->path || !f->temporary) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; f->fd < 0; i++) { /* leftovers of killed processes may have the name */
        snprintf(f->temporary, size, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd < 0 && (errno != EEXIST || i == 999)) {
            s = keel_fail(KEEL_EIO, "%s: cannot be created: %s", path, strerror(errno));
            f->temporary[0] = 0; /* not ours */
            goto out;
        }
    }
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

/* Without this a crash may forget the rename. Some file systems cannot; the file is whole then
 * all the same, so it is no error. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == path ? keel_strdup("/")
                   : slash       ? keel_strndup(path, (size_t)(slash - path))
                                 : keel_strdup(".");
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    keel_free(folder);
}

keel_status keel_new_file_commit(keel_new_file *f)
{
    keel_status s = KEEL_OK;
    if (fsync(f->fd) != 0 && errno != EINVAL && errno != EROFS) {
        s = keel_fail(KEEL_EIO, "%s: syncing: %s", f->path, strerror(errno));
        goto out;
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

keel_status keel_file_write(const char *path, const void *data, size_t n_bytes)
{
    keel_new_file *f = NULL;
    KEEL_TRY(keel_new_file_create(&f, path));
    const keel_status s = keel_new_file_write(f, data, n_bytes);
    if (s >= 0) return keel_new_file_commit(f);
    keel_new_file_abort(f);
    return s;
}
