/* Runs a program; see program.h. It is run by a shell, which a second shell looks after.
 *
 * Between fork and exec the child calls only what is safe there, since other threads may hold
 * locks. The dead shell is reaped last: until then its number cannot become that of another process
 * or group, so that the kill cannot hit a stranger. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ, environ */
#include "io/program.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LINE = 200,           /* bytes of a line of errors that are kept */
    PIPE_BYTES = 1 << 20, /* asked of the kernel; it gives what it allows */
    LOOK_MS = 10,         /* between two looks whether a program without output has ended */
};

struct keel_program {
    const char *command, *name;
    char **environment;
    int out[2], err[2]; /* ends to read and to write; -1: closed */
    pid_t pid;          /* 0: not started */
    pthread_t keeper;
    bool kept;
    int errors; /* errno of a failed start */
    pthread_mutex_t lock;
    pthread_cond_t started;
    bool has_started;
    _Atomic bool ended;
    char line[LINE], last[LINE]; /* of errors: being read, and the last that was not empty */
    size_t line_bytes;
};

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Runs "$1" in a shell of its own. When Keel ends, however that happens, all ends that the program
 * has started: the signal that this shell then gets is for its group. */
static const char guard[] = "trap 'kill -KILL 0' USR1; /bin/sh -c \"$1\" & exec >&- 2>&-; wait $!";

/* In the child. */
static void become(const keel_program *p, int null, pid_t parent)
{
    static const int defaults[] = { SIGPIPE, SIGCHLD, SIGUSR1 }; /* may be ignored here */
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != parent) _exit(127);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) signal(defaults[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(null, 0) < 0 || dup2(p->out[1], 1) < 0 || dup2(p->err[1], 2) < 0) _exit(127);
    char *const arguments[] = { (char *)"sh", (char *)"-c",       (char *)guard,
                                (char *)"sh", (char *)p->command, NULL };
    execve("/bin/sh", arguments, p->environment);
    _exit(127);
}

/* Start the child, and wait for its end, but leave it to be reaped. */
static void *keep(void *program)
{
    keel_program *p = program;
    const pid_t parent = getpid();
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const pid_t pid = null < 0 ? -1 : fork();
    if (pid == 0) become(p, null, parent);
    const int why = errno;
    if (null >= 0) close(null);
    if (pid > 0) setpgid(pid, pid); /* whichever of both comes first */
    pthread_mutex_lock(&p->lock);
    p->pid = pid > 0 ? pid : 0;
    p->errors = why;
    p->has_started = true;
    pthread_cond_signal(&p->started);
    pthread_mutex_unlock(&p->lock);
    siginfo_t info;
    while (pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        continue;
    atomic_store(&p->ended, true);
    return NULL;
}

static keel_status set_environment(keel_program *p, const char *const *more)
{
    size_t n = 0, m = 0, k = 0;
    while (environ && environ[n]) n++;
    while (more[m]) m++;
    p->environment = keel_calloc(n + m + 1, sizeof *p->environment);
    if (!p->environment) return KEEL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (size_t j = 0; j < m; j++)
            replaced |= !strncmp(environ[i], more[j], strcspn(more[j], "=") + 1);
        if (!replaced) p->environment[k++] = environ[i];
    }
    for (size_t j = 0; j < m; j++) p->environment[k++] = (char *)more[j];
    return KEEL_OK;
}

static keel_status start(keel_program *p, const char *const *more)
{
    KEEL_TRY(set_environment(p, more));
    if (pipe2(p->out, O_CLOEXEC) != 0 || pipe2(p->err, O_CLOEXEC) != 0)
        return keel_fail(KEEL_EIO, "%s: cannot be started: %s", p->name, strerror(errno));
    (void)fcntl(p->out[0], F_SETPIPE_SZ, PIPE_BYTES); /* fewer bytes only make it slower */
    const int e = pthread_create(&p->keeper, NULL, keep, p);
    if (e) return keel_fail(KEEL_EIO, "%s: cannot be started: %s", p->name, strerror(e));
    p->kept = true;
    pthread_mutex_lock(&p->lock);
    while (!p->has_started) pthread_cond_wait(&p->started, &p->lock);
    pthread_mutex_unlock(&p->lock);
    close_end(&p->out[1]);
    close_end(&p->err[1]);
    if (p->pid) return KEEL_OK;
    return keel_fail(KEEL_EIO, "%s: cannot be started: %s", p->name, strerror(p->errors));
}

keel_status keel_program_start(keel_program **out, const char *command, const char *name,
                               const char *const *more)
{
    keel_program *p = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    p->command = command;
    p->name = name;
    p->out[0] = p->out[1] = p->err[0] = p->err[1] = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->started, NULL);
    const keel_status s = start(p, more);
    keel_free(p->environment); /* the child has its own by now */
    p->environment = NULL;
    if (s < 0)
        keel_program_close(p);
    else
        *out = p;
    return s;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void end_line(keel_program *p)
{
    p->line[p->line_bytes] = 0;
    if (p->line[strspn(p->line, " \t\r")]) memcpy(p->last, p->line, sizeof p->last);
    p->line_bytes = 0;
}

/* Read what the program has said on its error output, so that it never waits for us. */
static void take_errors(keel_program *p)
{
    char text[512];
    ssize_t n = read(p->err[0], text, sizeof text);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
        end_line(p);
        close_end(&p->err[0]);
        return;
    }
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\n')
            end_line(p);
        else if (p->line_bytes < LINE - 1)
            p->line[p->line_bytes++] = text[i];
}

/* Wait for output, or for `ms` (-1: forever). *ready: there is output, or its end. */
static keel_status await(keel_program *p, int ms, bool *ready)
{
    struct pollfd both[2] = { { p->out[0], POLLIN, 0 }, { p->err[0], POLLIN, 0 } };
    *ready = false;
    if (poll(both, 2, ms) < 0)
        return errno == EINTR ? KEEL_OK : keel_fail(KEEL_EIO, "%s: %s", p->name, strerror(errno));
    if (both[1].revents) take_errors(p);
    *ready = both[0].revents != 0;
    return KEEL_OK;
}

keel_status keel_program_read(keel_program *p, void *data, size_t n, size_t *got)
{
    bool ready = false;
    *got = 0;
    while (*got < n && p->out[0] >= 0) {
        KEEL_TRY(await(p, -1, &ready));
        if (!ready) continue;
        const ssize_t r = read(p->out[0], (char *)data + *got, n - *got);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return keel_fail(KEEL_EIO, "%s: %s", p->name, strerror(errno));
        if (r == 0) close_end(&p->out[0]);
        *got += (size_t)r;
    }
    return KEEL_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Join the keeper, kill the group, reap the shell. Returns its status, or -1. */
static int reap(keel_program *p)
{
    int status = -1;
    pid_t r;
    if (p->pid) kill(-p->pid, SIGKILL);
    if (p->kept) pthread_join(p->keeper, NULL);
    p->kept = false;
    if (p->pid) {
        while ((r = waitpid(p->pid, &status, 0)) < 0 && errno == EINTR) continue;
        if (r < 0) status = -1;
    }
    p->pid = 0;
    return status;
}

keel_status keel_program_finish(keel_program *p)
{
    bool ready;
    close_end(&p->out[0]);
    while (!atomic_load(&p->ended)) KEEL_TRY(await(p, LOOK_MS, &ready));
    while (p->err[0] >= 0) { /* what it has said last; a child may still have it open */
        struct pollfd err = { p->err[0], POLLIN, 0 };
        if (poll(&err, 1, 0) <= 0) break;
        take_errors(p);
    }
    end_line(p);
    const int status = reap(p);
    const char *colon = *p->last ? ": " : "";
    if (status == 0) return KEEL_OK;
    if (status < 0)
        return keel_fail(KEEL_EIO, "%s: its status is not known: this process ignores SIGCHLD",
                         p->name);
    const int by =
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128; /* a shell's */
    if (by > 0 && by < NSIG)
        return keel_fail(KEEL_EIO, "%s: ended by signal %d (%s)%s%s", p->name, by, strsignal(by),
                         colon, p->last);
    return keel_fail(KEEL_EIO, "%s: ended with status %d%s%s", p->name, WEXITSTATUS(status), colon,
                     p->last);
}

void keel_program_close(keel_program *p)
{
    if (!p) return;
    reap(p);
    close_end(&p->out[0]);
    close_end(&p->out[1]);
    close_end(&p->err[0]);
    close_end(&p->err[1]);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->started);
    keel_free(p->environment);
    keel_free(p);
}
