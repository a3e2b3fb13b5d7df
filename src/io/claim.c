/* Claims on files, by flock on a lock file beside each. The kernel ends a lock with its process, so
 * that a process which was killed claims nothing; what it leaves is an empty claim that the next
 * one takes over. See keel/checkpoint.h. */
#include "keel/checkpoint.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct keel_claim {
    int fd; /* -1: the file system has no locks */
    char *path;
};

/* Whether the file that fd has open is still the one with this name: who had the lock before may
 * have removed it. */
static bool same(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static keel_status refused(int fd, const char *path)
{
    char text[32] = "";
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    const long pid = n > 0 ? atol(text) : 0;
    return pid > 0 ? keel_fail(KEEL_EIO,
                               "%s: process %ld is training into it; wait for its end, or give "
                               "another name",
                               path, pid)
                   : keel_fail(KEEL_EIO,
                               "%s: another process is training into it; wait for its end, or give "
                               "another name",
                               path);
}

/* A process that was killed needs a moment to end, and whoever watches it may begin the next one at
 * once: so a lock that is held is asked for again, for a second. */
static bool locked(int fd)
{
    for (int i = 0; i < 20; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK) return false;
        usleep(50000);
    }
    errno = EWOULDBLOCK;
    return false;
}

/* Open and lock c->path. KEEL_END: it was removed meanwhile; try again. */
static keel_status try_lock(keel_claim *c, const char *path)
{
    char text[32];
    c->fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (c->fd < 0) return keel_fail(KEEL_EIO, "%s: %s", c->path, strerror(errno));
    if (!locked(c->fd)) {
        if (errno == EWOULDBLOCK) return refused(c->fd, path);
        close(c->fd); /* a file system without locks */
        c->fd = -1;
        unlink(c->path);
        return KEEL_OK;
    }
    if (!same(c->fd, c->path)) {
        close(c->fd);
        c->fd = -1;
        return KEEL_END;
    }
    const int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* the number is only for the message of others */
    if (ftruncate(c->fd, 0) != 0 || pwrite(c->fd, text, (size_t)n, 0) != n) return KEEL_OK;
    return KEEL_OK;
}

keel_status keel_claim_take(keel_claim **out, const char *path)
{
    if (!out || !path || !*path)
        return keel_fail(KEEL_EARG, "claim: out must not be NULL, and path must name a file");
    keel_status s = KEEL_END;
    keel_text name = { 0 };
    keel_claim *c = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    c->fd = -1;
    keel_text_add(&name, "%s.lock", path);
    if (name.failed) {
        keel_text_free(&name);
        keel_free(c);
        return KEEL_ENOMEM;
    }
    c->path = name.data;
    for (int i = 0; i < 100 && s == KEEL_END; i++) s = try_lock(c, path);
    if (s != KEEL_OK) {
        if (c->fd >= 0) close(c->fd);
        keel_free(c->path);
        keel_free(c);
        return s < 0 ? s : keel_fail(KEEL_EIO, "%s.lock: others keep removing it", path);
    }
    *out = c;
    return KEEL_OK;
}

/* Whether there is a lock file; else a claim failed for another reason than another process. */
static bool is_locked(const char *path)
{
    keel_text name = { 0 };
    keel_text_add(&name, "%s.lock", path);
    const bool is = !name.failed && access(name.data, F_OK) == 0;
    keel_text_free(&name);
    return is;
}

keel_status keel_claim_first(keel_claim **out, const char *path, double seconds)
{
    enum { NAP_NS = 5000000 };
    static const double PATIENCE = 30; /* seconds, for a file that another process writes */
    const double begin = keel_seconds();
    while (access(path, F_OK) != 0 && keel_seconds() - begin < seconds)
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    for (;;) {
        keel_claim *c = NULL;
        const keel_status s = access(path, F_OK) ? keel_claim_take(&c, path) : KEEL_END;
        if (s == KEEL_OK && access(path, F_OK)) {
            *out = c;
            return KEEL_OK;
        }
        keel_claim_release(c); /* it was written before the claim could be had */
        if (s == KEEL_OK || s == KEEL_END) return KEEL_END;
        if (!is_locked(path) || keel_seconds() - begin > seconds + PATIENCE) return s;
    }
}

/* A turn is long enough to find the file claimed by the process before; the last ones of many share
 * one. */
double keel_claim_turn(int rank, int lost, double timeout, bool hurried)
{
    static const double EACH = 0.02, LAST = 0.3, HURRIED = 0.15, MOST = 10;
    const double after = rank > 0 ? EACH * (rank - 1) : 0;
    if (lost == 0) return after < LAST ? after : LAST;
    if (hurried) return HURRIED;
    return timeout < MOST ? timeout : MOST;
}

void keel_claim_release(keel_claim *c)
{
    if (!c) return;
    if (c->fd >= 0) {
        unlink(c->path); /* before the lock ends, so that nobody else's file is removed */
        close(c->fd);
    }
    keel_free(c->path);
    keel_free(c);
}
