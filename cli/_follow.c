/* See follow.h. */
#define _GNU_SOURCE /* environ, sigqueue */
#include "fnv.h"
#include "follow.h"
#include "signals.h"
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A piece and its length, since two texts are not the same as one. */
static void mix(uint64_t *sum, const void *data, size_t n)
{
    *sum = fnv_add(fnv_add(*sum, data, n), &n, sizeof n);
}

static bool mix_file(uint64_t *sum, const char *path)
{
    char part[4096];
    size_t n;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    while ((n = fread(part, 1, sizeof part, f)) > 0) mix(sum, part, n);
    const bool good = !ferror(f);
    fclose(f);
    return good;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* KEEL_CPU and its like, in any order. */
static bool mix_environment(uint64_t *sum)
{
    int n = 0, kept = 0;
    while (environ[n]) n++;
    char **own = calloc((size_t)n + 1, sizeof *own);
    if (!own) return false;
    for (int i = 0; i < n; i++)
        if (!strncmp(environ[i], "KEEL_", 5)) own[kept++] = environ[i];
    qsort(own, (size_t)kept, sizeof *own, by_text);
    for (int i = 0; i < kept; i++) mix(sum, own[i], strlen(own[i]));
    free(own);
    return true;
}

uint64_t keel_started_with(void)
{
    uint64_t sum = FNV_BEGIN;
    struct stat program;
    char *folder = getcwd(NULL, 0);
    const bool good = folder && !stat("/proc/self/exe", &program) &&
                      mix_file(&sum, "/proc/self/cmdline") && mix_environment(&sum);
    if (good) {
        mix(&sum, folder, strlen(folder));
        mix(&sum, &program.st_dev, sizeof program.st_dev);
        mix(&sum, &program.st_ino, sizeof program.st_ino);
    }
    free(folder);
    return good ? sum : 0;
}

static void stay(void *context, int number)
{
    (void)context, (void)number;
}

/* The last of the checkpoints' names, which have numbers of one length; "": there is none. */
static void find_newest(char out[NAME_MAX + 1], const char *folder)
{
    DIR *d = opendir(folder);
    *out = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        if (!strncmp(e->d_name, "checkpoint-", 11) && n > 6 &&
            !strcmp(e->d_name + n - 6, ".keras") && strcmp(e->d_name, out) > 0)
            snprintf(out, NAME_MAX + 1, "%s", e->d_name);
    }
    if (d) closedir(d);
}

void keel_follow_left(char *out, size_t size, const char *folder)
{
    char name[NAME_MAX + 1] = "";
    if (folder) find_newest(name, folder);
    if (!folder)
        snprintf(out, size,
                 "nothing is left of what was learned; with --checkpoint DIR, checkpoints are");
    else if (!*name)
        snprintf(out, size, "nothing is left of what was learned, since %s has no checkpoint yet",
                 folder);
    else
        snprintf(out, size,
                 "the newest checkpoint is left, %s/%s: the same command with --resume goes on "
                 "from it",
                 folder, name);
}

/* The other's end is seen at once, since some launchers end all processes as soon as they see it.
 */
int keel_follow(keel_machines *m)
{
    enum { NAP_MS = 20, NAPS_BEFORE_TELLING = 15 };
    int code = -1, asked = 0, got;
    struct pollfd other = { .events = POLLIN };
    other.fd = (int)syscall(SYS_pidfd_open, (pid_t)keel_machines_followed(m), 0); /* or -1 */
    keel_signals_catch(stay, NULL);
    while ((got = keel_machines_test(m, &code)) == 0) {
        /* launchers tell all processes, so the other one mostly knows */
        if (keel_signal_got() && ++asked == NAPS_BEFORE_TELLING)
            sigqueue((pid_t)keel_machines_followed(m), keel_signal_got(),
                     (union sigval){ .sival_int = KEEL_FROM_FOLLOWER });
        poll(&other, 1, NAP_MS);
    }
    if (other.fd >= 0) close(other.fd);
    return got > 0 ? code : -1;
}
