/* Files of a kind; see file_list.h. */
#include "data/file_list.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/spec.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 1 << 20 };

static bool ends(const char *name, const char *const *endings)
{
    for (; *endings; endings++)
        if (keel_spec_ends(name, strlen(name), *endings)) return true;
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

/* True if a folder has files of a kind, and no folders or images, for which other readers are. */
static bool is_folder_of(const char *path, const char *const *endings)
{
    static const char *const images[] = { ".jpg", ".jpeg", ".png", NULL };
    bool found = false, other = false;
    DIR *d = is_folder(path) ? opendir(path) : NULL;
    for (const struct dirent *e; d && !other && (e = readdir(d));) {
        char entry[4096];
        if (e->d_name[0] == '.') continue;
        const int n = snprintf(entry, sizeof entry, "%s/%s", path, e->d_name);
        other = n >= (int)sizeof entry || ends(e->d_name, images) || is_folder(entry);
        found |= ends(e->d_name, endings);
    }
    if (d) closedir(d);
    return found && !other;
}

bool keel_file_list_claims(const char *spec, const char *const *endings)
{
    if (!strncmp(spec, "files:", 6)) return false; /* list_files: names, not what is in them */
    if (!ends(spec, endings)) return is_folder_of(spec, endings);
    /* "x.npy,y.csv.gz" is a pair of which this is the second */
    return !keel_spec_ends(spec, strlen(spec), ".gz") || !keel_spec_comma(spec) || exists(spec);
}

bool keel_file_list_is_texts(const char *folder)
{
    static const char *const endings[] = { ".csv",    ".csv.gz",    ".tsv", ".tsv.gz",
                                           ".jsonl",  ".jsonl.gz",  ".txt", ".txt.gz",
                                           ".ndjson", ".ndjson.gz", NULL };
    return is_folder_of(folder, endings);
}

static keel_status add(keel_file_list *l, char *path)
{
    if (!path) return KEEL_ENOMEM;
    if (l->n == l->room) {
        const int64_t room = l->room ? 2 * l->room : 16;
        char **more = keel_grow(l->path, (size_t)room, sizeof *more);
        if (!more) {
            keel_free(path);
            return KEEL_ENOMEM;
        }
        l->path = more;
        l->room = room;
    }
    l->path[l->n++] = path;
    return KEEL_OK;
}

static keel_status list_folder(keel_file_list *l, const char *path, const char *const *endings)
{
    DIR *d = opendir(path);
    keel_status s = KEEL_OK;
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    for (const struct dirent *e; s >= 0 && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !ends(e->d_name, endings)) continue;
        keel_text entry = { 0 };
        keel_text_add(&entry, "%s/%s", path, e->d_name);
        s = entry.failed ? KEEL_ENOMEM : add(l, keel_strdup(entry.data));
        keel_text_free(&entry);
        if (s >= 0 && l->n > FILES_MAX)
            s = keel_fail(KEEL_EIO, "%s: more than %d files", path, FILES_MAX);
    }
    closedir(d);
    return s;
}

static keel_status list_pattern(keel_file_list *l, const char *pattern)
{
    glob_t g = { 0 };
    keel_status s = KEEL_OK;
    const int r = glob(pattern, GLOB_NOSORT, NULL, &g);
    if (r == GLOB_NOSPACE) s = keel_fail(KEEL_ENOMEM, "%s: out of memory", pattern);
    for (size_t i = 0; s >= 0 && !r && i < g.gl_pathc; i++) s = add(l, keel_strdup(g.gl_pathv[i]));
    globfree(&g);
    return s;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

keel_status keel_file_list_find(keel_file_list *out, const char *spec, const char *const *endings)
{
    keel_file_list l = { 0 };
    keel_status s;
    const bool folder = is_folder(spec), pattern = !exists(spec) && strpbrk(spec, "*?[");
    if (folder)
        s = list_folder(&l, spec, endings);
    else if (pattern)
        s = list_pattern(&l, spec);
    else
        s = add(&l, keel_strdup(spec));
    if (s >= 0 && !l.n)
        s = keel_fail(KEEL_EIO, "%s: %s", spec,
                      folder ? "a folder without such files" : "no file has such a name");
    if (s < 0) {
        keel_file_list_free(&l);
        return s;
    }
    qsort(l.path, (size_t)l.n, sizeof *l.path, by_path);
    *out = l;
    return KEEL_OK;
}

void keel_file_list_free(keel_file_list *l)
{
    for (int64_t i = 0; i < l->n; i++) keel_free(l->path[i]);
    keel_free(l->path);
    *l = (keel_file_list){ 0 };
}
