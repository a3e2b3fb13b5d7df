/* See voice.h. The streams stdout and stderr get a function that writes, which asks first whether a
 * write would wait. Non-blocking files would be simpler, but that flag belongs to all processes
 * that have the file, such as the shell on its terminal, and stays when this one has ended. */
#define _GNU_SOURCE /* fopencookie; and glibc's stdout can be assigned */
#include "voice.h"
#include "progress.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

/* A signal may come to another thread and not interrupt poll, so it is looked for that often. */
enum { LOOK_MS = 50, MOST_MS = 200 };

static atomic_int waited; /* ms since the first signal */

/* False: what is to be written is dropped. */
static bool await_reader(int file)
{
    struct pollfd p = { .fd = file, .events = POLLOUT };
    for (;;) {
        const bool ends = keel_interrupted();
        const int left = MOST_MS - waited;
        const double before = keel_now();
        const int got = poll(&p, 1, !ends ? LOOK_MS : left > 0 ? left : 0);
        if (got > 0 || (got < 0 && errno != EINTR)) return true; /* write says what is wrong */
        if (ends) waited += (int)(1e3 * (keel_now() - before)) + 1;
        if (ends && waited >= MOST_MS) return false;
    }
}

/* In pieces for which a pipe has room whenever poll says that it has some. */
static ssize_t give(void *cookie, const char *text, size_t n)
{
    const int file = *(const int *)cookie;
    for (size_t done = 0; done < n;) {
        if (!await_reader(file)) break;
        const size_t part = n - done < PIPE_BUF ? n - done : PIPE_BUF;
        const ssize_t got = write(file, text + done, part);
        if (got < 0 && errno == EAGAIN)
            usleep(1000); /* another process writes there, too */
        else if (got < 0 && errno != EINTR)
            return 0;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)n;
}

/* A program may be started with closed files. The next ones that are opened would get their
 * numbers, and what is printed would go into a model, or into the pipe of signals. So /dev/null
 * takes the numbers, in the mode in which writing, or reading from 0, fails as it does for a closed
 * file. */
static void fill_closed(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) != file)
            return; /* there is no /dev/null */
}

void keel_voice_begin(void)
{
    fill_closed();
    static int file[] = { STDOUT_FILENO, STDERR_FILENO };
    const cookie_io_functions_t functions = { .write = give };
    FILE *out = fopencookie(&file[0], "w", functions);
    FILE *err = fopencookie(&file[1], "w", functions);
    if (out) {
        setvbuf(out, NULL, __flbf(stdout) || isatty(file[0]) ? _IOLBF : _IOFBF, BUFSIZ);
        stdout = out;
    }
    if (err) {
        setvbuf(err, NULL, _IONBF, 0);
        stderr = err;
    }
}

void keel_voice_cry(const char *text, size_t n)
{
    struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
    const int before = errno;
    if (poll(&p, 1, 0) > 0 && write(STDERR_FILENO, text, n) < 0)
        p.fd = -1; /* nothing can be done */
    errno = before;
}
