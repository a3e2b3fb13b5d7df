/* Finds the files of SRC; see shards.h. */
#include "data/shards.h"
#include "base/memory.h"
#include "data/spec.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 100000, BRACES_MAX = 8 };

bool keel_tfrecord_named(const char *name)
{
    return strstr(name, ".tfrec") != NULL;
}

bool keel_tar_named(const char *name)
{
    const size_t n = strlen(name);
    return keel_spec_ends(name, n, ".tar") || keel_spec_ends(name, n, ".tar.gz") ||
           keel_spec_ends(name, n, ".tgz");
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

static char *join(const char *folder, const char *name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *path = keel_calloc(n, 1);
    if (path) snprintf(path, n, "%s/%s", folder, name);
    return path;
}

/* True if a directory has such files and no folders: a folder per class is another format. */
static bool holds_shards(const char *folder, keel_shards_named named)
{
    DIR *d = opendir(folder);
    bool found = false, folders = false;
    for (const struct dirent *e; d && !folders && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char *path = join(folder, e->d_name);
        if (!path) break;
        if (e->d_type == DT_DIR || (e->d_type != DT_REG && is_folder(path)))
            folders = true;
        else
            found = found || named(e->d_name);
        keel_free(path);
    }
    if (d) closedir(d);
    return found && !folders;
}

bool keel_shards_claims(const char *spec, keel_shards_named named)
{
    if (is_folder(spec)) return holds_shards(spec, named);
    return named(name_of(spec));
}

/* Takes the path, on failure too. */
static keel_status add(keel_shards *s, char *path)
{
    if (!path) return KEEL_ENOMEM;
    if (s->count == FILES_MAX) {
        keel_free(path);
        return keel_fail(KEEL_EARG, "more than %d files", FILES_MAX);
    }
    if (s->count == s->room) {
        const int64_t room = s->room ? 2 * s->room : 16;
        char **grown = keel_grow(s->path, (size_t)room, sizeof *grown);
        if (!grown) {
            keel_free(path);
            return KEEL_ENOMEM;
        }
        s->path = grown;
        s->room = room;
    }
    s->path[s->count++] = path;
    return KEEL_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(keel_shards *s, int64_t from)
{
    if (s->count > from)
        qsort(s->path + from, (size_t)(s->count - from), sizeof *s->path, by_bytes);
}

static keel_status list_folder(keel_shards *s, const char *folder, keel_shards_named named)
{
    keel_status r = KEEL_OK;
    DIR *d = opendir(folder);
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    struct dirent *e;
    while (r >= 0 && (errno = 0, e = readdir(d)))
        if (e->d_name[0] != '.' && named(e->d_name)) r = add(s, join(folder, e->d_name));
    if (r >= 0 && errno) r = keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    closedir(d);
    sort(s, 0);
    return r;
}

/* The files of one pattern without braces, sorted. A name without * or ? is a file that must exist;
 * opening it reports the error. */
static keel_status add_matches(keel_shards *s, const char *pattern)
{
    glob_t g = { 0 };
    keel_status r = KEEL_OK;
    const int64_t from = s->count;
    if (exists(pattern) || !strpbrk(pattern, "*?[")) return add(s, keel_strdup(pattern));
    /* glob allocates by its own malloc, which base/memory.h does not count. */
    const int code = glob(pattern, GLOB_NOSORT, NULL, &g);
    if (code == GLOB_NOSPACE)
        r = keel_fail(KEEL_ENOMEM, "%s: out of memory", pattern);
    else if (code == GLOB_NOMATCH)
        r = keel_fail(KEEL_EDATA, "%s: no file has such a name", pattern);
    else if (code)
        r = keel_fail(KEEL_EIO, "%s: its folder cannot be read", pattern);
    for (size_t i = 0; r >= 0 && i < g.gl_pathc; i++) r = add(s, keel_strdup(g.gl_pathv[i]));
    globfree(&g);
    sort(s, from);
    return r;
}

/* "000..010": numbers of the first one's width. */
static bool read_range(const char *text, size_t n, long *first, long *last, int *width)
{
    char copy[32], *end;
    if (n >= sizeof copy) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    *width = (int)strspn(copy, "0123456789");
    if (!*width || *width > 9 || strncmp(copy + *width, "..", 2)) return false;
    const char *second = copy + *width + 2;
    const size_t digits = strspn(second, "0123456789");
    if (!digits || digits > 9 || second[digits]) return false;
    *first = strtol(copy, &end, 10);
    *last = strtol(second, &end, 10);
    return true;
}

static keel_status expand(keel_shards *s, const char *pattern, int depth);

/* Expand the pattern with `n` bytes of `text` in place of its braces. */
static keel_status with(keel_shards *s, const char *pattern, const char *open, const char *close,
                        const char *text, size_t n, int depth)
{
    const size_t head = (size_t)(open - pattern), tail = strlen(close + 1);
    char *one = keel_calloc(head + n + tail + 1, 1);
    if (!one) return KEEL_ENOMEM;
    memcpy(one, pattern, head);
    memcpy(one + head, text, n);
    memcpy(one + head + n, close + 1, tail);
    const keel_status r = expand(s, one, depth + 1);
    keel_free(one);
    return r;
}

static keel_status expand(keel_shards *s, const char *pattern, int depth)
{
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    long first, last;
    int width;
    if (exists(pattern) || !close) return add_matches(s, pattern);
    if (depth == BRACES_MAX)
        return keel_fail(KEEL_EARG, "%s: more than %d pairs of braces", pattern, BRACES_MAX);
    if (read_range(open + 1, (size_t)(close - open - 1), &first, &last, &width)) {
        if (last < first || last - first >= FILES_MAX)
            return keel_fail(KEEL_EARG,
                             "%s: braces go from a number to a larger one, by fewer than "
                             "%d",
                             pattern, FILES_MAX);
        for (long i = first; i <= last; i++) {
            char number[32];
            const int n = snprintf(number, sizeof number, "%0*ld", width, i);
            KEEL_TRY(with(s, pattern, open, close, number, (size_t)n, depth));
        }
        return KEEL_OK;
    }
    for (const char *at = open + 1; at <= close;) {
        const size_t n = strcspn(at, ",}");
        KEEL_TRY(with(s, pattern, open, close, at, n, depth));
        at += n + 1;
    }
    return KEEL_OK;
}

keel_status keel_shards_find(keel_shards *out, const char *spec, keel_shards_named named)
{
    *out = (keel_shards){ 0 };
    return is_folder(spec) ? list_folder(out, spec, named) : expand(out, spec, 0);
}

void keel_shards_free(keel_shards *s)
{
    for (int64_t i = 0; i < s->count; i++) keel_free(s->path[i]);
    keel_free(s->path);
    *s = (keel_shards){ 0 };
}
