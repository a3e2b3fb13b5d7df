/* What is said once to a person and not on every run: a file in the cache folder remembers it. */
#include "setup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the folder, with those above it. */
static bool make_folder(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        const bool made = !mkdir(path, 0777) || errno == EEXIST;
        *p = '/';
        if (!made) return false;
    }
    return !mkdir(path, 0777) || errno == EEXIST;
}

/* Is this the first run here that has `what` to say? false: no, or it cannot be remembered. */
static bool is_first(const char *what)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool given = cache && cache[0] == '/';
    char path[4096], file[4200];
    if (!given && (!home || home[0] != '/')) return false;
    const int n =
        snprintf(path, sizeof path, "%s%s/keel", given ? cache : home, given ? "" : "/.cache");
    if (n < 0 || (size_t)n >= sizeof path || !make_folder(path)) return false;
    snprintf(file, sizeof file, "%s/%s", path, what);
    const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    close(fd);
    return true;
}

void keel_tell_untuned(void)
{
    char once[64];
    snprintf(once, sizeof once, "untuned-%s", keel_instructions());
    if (keel_instructions_tuned() || !is_first(once)) return;
    printf("no kernels were measured on processors of this kind (%s) yet, so the usual ones are "
           "taken: 'make tune' in Keel's sources takes a minute and may make training faster (said "
           "once)\n",
           keel_instructions());
}
