/* Files of a kind; see file_list.h. */
#include "data/file_list.h"
#include "base/memory.h"
#include "data/folders.h"
#include "data/spec.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 1 << 20, NAMES_MAX = 100000 /* in braces */, BRACES_MAX = 8 };

const char *const keel_tfrecord_endings[] = { "*.tfrec", NULL };
const char *const keel_tar_endings[] = { ".tar", ".tar.gz", ".tgz", NULL };
const char *const keel_csv_endings[] = { ".csv", ".csv.gz", ".tsv", ".tsv.gz", NULL };
const char *const keel_jsonl_endings[] = { ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", NULL };

static bool ends(const char *path, const char *const *endings)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (; *endings; endings++)
        if (**endings == '*' ? strstr(name, *endings + 1) != NULL
                             : keel_spec_ends(path, strlen(path), *endings))
            return true;
    return false;
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

/* True if a folder has files of a kind, and no folders, for which other readers are. */
static bool is_folder_of(const char *path, const char *const *endings, bool may_have_images)
{
    static const char *const images[] = { ".jpg", ".jpeg", ".png", NULL };
    bool found = false, other = false;
    DIR *d = is_folder(path) ? opendir(path) : NULL;
    for (const struct dirent *e; d && !other && (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.') continue;
        other = (!may_have_images && ends(e->d_name, images)) ||
                (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISDIR(st.st_mode));
        found |= ends(e->d_name, endings);
    }
    if (d) closedir(d);
    return found && !other;
}

bool keel_file_list_claims(const char *spec, const char *const *endings)
{
    if (!strncmp(spec, "files:", 6)) return false; /* list_files: names, not what is in them */
    if (!ends(spec, endings)) return is_folder_of(spec, endings, false);
    /* "x.npy,y.csv.gz" is a pair of which this is the second */
    return !keel_spec_ends(spec, strlen(spec), ".gz") || !keel_spec_comma(spec) ||
           strchr(spec, '{') || exists(spec);
}

bool keel_file_list_claims_shards(const char *spec, const char *const *endings)
{
    return is_folder(spec) ? is_folder_of(spec, endings, true) : ends(spec, endings);
}

bool keel_file_list_is_texts(const char *folder)
{
    static const char *const lines[] = { ".txt", ".txt.gz", NULL };
    return is_folder_of(folder, keel_csv_endings, false) ||
           is_folder_of(folder, keel_jsonl_endings, false) || is_folder_of(folder, lines, false);
}

/* Takes the path, on failure too. */
static keel_status add(keel_file_list *l, char *path)
{
    keel_status s = path ? KEEL_OK : KEEL_ENOMEM;
    if (path && l->n == FILES_MAX)
        s = keel_fail(KEEL_EARG, "%s and others: more than %d files", l->path[0], FILES_MAX);
    if (s >= 0 && l->n == l->room) {
        const int64_t room = l->room ? 2 * l->room : 16;
        char **more = keel_grow(l->path, (size_t)room, sizeof *more);
        if (more) {
            l->path = more;
            l->room = room;
        } else {
            s = KEEL_ENOMEM;
        }
    }
    if (s < 0)
        keel_free(path);
    else
        l->path[l->n++] = path;
    return s;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(keel_file_list *l, int64_t from)
{
    if (l->n > from) qsort(l->path + from, (size_t)(l->n - from), sizeof *l->path, by_bytes);
}

static keel_status list_folder(keel_file_list *l, const char *folder, const char *const *endings)
{
    keel_status s = KEEL_OK;
    DIR *d = opendir(folder);
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    const struct dirent *e;
    while (s >= 0 && (errno = 0, e = readdir(d)))
        if (e->d_name[0] != '.' && ends(e->d_name, endings))
            s = add(l, keel_folder_join(folder, e->d_name));
    if (s >= 0 && errno) s = keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    closedir(d);
    sort(l, 0);
    if (s < 0 || l->n) return s;
    return keel_fail(KEEL_EIO, "%s: a folder without such files", folder);
}

/* The files of one pattern without braces, sorted. A name without * or ? is a file that must exist;
 * opening it reports the error. */
static keel_status add_matches(keel_file_list *l, const char *pattern)
{
    glob_t g = { 0 };
    keel_status s = KEEL_OK;
    const int64_t from = l->n;
    if (exists(pattern) || !strpbrk(pattern, "*?[")) return add(l, keel_strdup(pattern));
    /* glob allocates by its own malloc, which base/memory.h does not count. */
    const int code = glob(pattern, GLOB_NOSORT, NULL, &g);
    if (code == GLOB_NOSPACE)
        s = keel_fail(KEEL_ENOMEM, "%s: out of memory", pattern);
    else if (code == GLOB_NOMATCH)
        s = keel_fail(KEEL_EIO, "%s: no file has such a name", pattern);
    else if (code)
        s = keel_fail(KEEL_EIO, "%s: its folder cannot be read", pattern);
    for (size_t i = 0; s >= 0 && i < g.gl_pathc; i++) s = add(l, keel_strdup(g.gl_pathv[i]));
    globfree(&g);
    sort(l, from);
    return s;
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

static keel_status expand(keel_file_list *l, const char *pattern, int depth);

/* Expand the pattern with `n` bytes of `text` in place of its braces. */
static keel_status with(keel_file_list *l, const char *pattern, const char *open, const char *close,
                        const char *text, size_t n, int depth)
{
    const size_t head = (size_t)(open - pattern), tail = strlen(close + 1);
    if (l->n >= NAMES_MAX)
        return keel_fail(KEEL_EARG, "%s: more than %d names in braces", pattern, NAMES_MAX);
    char *one = keel_calloc(head + n + tail + 1, 1);
    if (!one) return KEEL_ENOMEM;
    memcpy(one, pattern, head);
    memcpy(one + head, text, n);
    memcpy(one + head + n, close + 1, tail);
    const keel_status s = expand(l, one, depth + 1);
    keel_free(one);
    return s;
}

static keel_status expand(keel_file_list *l, const char *pattern, int depth)
{
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    long first, last;
    int width;
    if (!close || exists(pattern)) return add_matches(l, pattern);
    if (depth == BRACES_MAX)
        return keel_fail(KEEL_EARG, "%s: more than %d pairs of braces", pattern, BRACES_MAX);
    if (read_range(open + 1, (size_t)(close - open - 1), &first, &last, &width)) {
        if (last < first || last - first >= NAMES_MAX)
            return keel_fail(KEEL_EARG,
                             "%s: braces go from a number to a larger one, by fewer than %d",
                             pattern, NAMES_MAX);
        for (long i = first; i <= last; i++) {
            char number[32];
            const int n = snprintf(number, sizeof number, "%0*ld", width, i);
            KEEL_TRY(with(l, pattern, open, close, number, (size_t)n, depth));
        }
        return KEEL_OK;
    }
    for (const char *at = open + 1; at <= close;) {
        const size_t n = strcspn(at, ",}");
        KEEL_TRY(with(l, pattern, open, close, at, n, depth));
        at += n + 1;
    }
    return KEEL_OK;
}

keel_status keel_file_list_find(keel_file_list *out, const char *spec, const char *const *endings)
{
    keel_file_list l = { 0 };
    const keel_status s = is_folder(spec) ? list_folder(&l, spec, endings) : expand(&l, spec, 0);
    if (s < 0)
        keel_file_list_free(&l);
    else
        *out = l;
    return s;
}

void keel_file_list_free(keel_file_list *l)
{
    for (int64_t i = 0; i < l->n; i++) keel_free(l->path[i]);
    keel_free(l->path);
    *l = (keel_file_list){ 0 };
}
