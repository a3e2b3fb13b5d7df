/* Walks a directory and collects its files; see folders.h. */
#include "base/memory.h"
#include "data/folders.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 32, FOLDERS_MAX = 1 << 18 };

static const struct {
    const char *prefix, *what, *endings[8];
} kinds[KEEL_FILE_KINDS] = {
    [KEEL_FILE_IMAGE] = { "images:",
                          "images",
                          { ".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp" } },
    [KEEL_FILE_AUDIO] = { "audio:", "sound", { ".wav" } },
    [KEEL_FILE_TEXT] = { "text:", "texts", { ".txt" } },
};

keel_file_kind keel_folder_kind(const char *spec, const char **path)
{
    *path = spec;
    for (int k = 0; k < KEEL_FILE_KINDS; k++) {
        const size_t n = strlen(kinds[k].prefix);
        if (strncmp(spec, kinds[k].prefix, n) || !spec[n]) continue;
        *path = spec + n;
        return (keel_file_kind)k;
    }
    return KEEL_FILE_KINDS;
}

static keel_file_kind kind_of(const char *name)
{
    const size_t n = strlen(name);
    for (int k = 0; k < KEEL_FILE_KINDS; k++)
        for (const char *const *e = kinds[k].endings; *e; e++)
            if (n >= strlen(*e) && !strcasecmp(name + n - strlen(*e), *e)) return (keel_file_kind)k;
    return KEEL_FILE_KINDS;
}

/* "jpg, jpeg, png" */
const char *keel_file_endings(keel_file_kind kind, char out[64])
{
    size_t n = 0;
    out[0] = 0;
    for (const char *const *e = kinds[kind].endings; *e && n < 64; e++)
        n += (size_t)snprintf(out + n, 64 - n, "%s%s", n ? ", " : "", *e + 1);
    return out;
}

const char *keel_file_what(keel_file_kind kind)
{
    return kinds[kind].what;
}

/* ---- order -------------------------------------------------------------------------------------
 */

/* The order of Keras: folders sorted by path, then the files in each. */
static int by_folder_then_name(const void *a, const void *b)
{
    const keel_listed *p = a, *q = b;
    if (p->label != q->label) return p->label < q->label ? -1 : 1;
    const size_t n = p->folder < q->folder ? p->folder : q->folder;
    const int order = memcmp(p->path, q->path, n);
    if (order || p->folder != q->folder) return order ? order : p->folder < q->folder ? -1 : 1;
    return strcmp(p->path + n, q->path + n);
}

void keel_folder_sort(keel_folder *f)
{
    if (f->count) qsort(f->at, (size_t)f->count, sizeof *f->at, by_folder_then_name);
}

/* ---- the walk -----------------------------------------------------------------------------------
 */

char *keel_folder_join(const char *folder, const char *name)
{
    size_t a = strlen(folder);
    const size_t b = strlen(name);
    while (a && folder[a - 1] == '/') a--; /* "photos/" */
    char *path = keel_calloc(a + b + 2, 1);
    if (!path) return NULL;
    memcpy(path, folder, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b);
    return path;
}

/* Takes over `path`. */
static keel_status add_file(keel_folder *f, char *path, int32_t label, keel_file_kind kind)
{
    if (f->count == f->room) {
        const int64_t room = f->room ? 2 * f->room : 256;
        keel_listed *at = keel_grow(f->at, (size_t)room, sizeof *at);
        if (!at) {
            keel_free(path);
            return KEEL_ENOMEM;
        }
        f->at = at;
        f->room = room;
    }
    f->at[f->count++] =
        (keel_listed){ path, (size_t)(strrchr(path, '/') - path), label, (uint8_t)kind };
    return KEEL_OK;
}

typedef struct level { /* a folder that the walk is in */
    const struct level *above;
    dev_t device;
    ino_t number;
    int depth;
} level;

typedef struct trip {
    keel_folder *f;
    keel_file_kind wanted; /* KEEL_FILE_KINDS: all */
    bool follow_links;
    int32_t label;
} trip;

static keel_status walk(const trip *t, const char *folder, const level *above);

/* A folder inside the one of `l`, which may be a link. */
static keel_status enter(const trip *t, const char *path, const level *l)
{
    struct stat st;
    if (l->depth >= DEPTH_MAX)
        return keel_fail(KEEL_EDATA, "%s: folders are nested deeper than %d", path, DEPTH_MAX);
    if (t->f->folders++ >= FOLDERS_MAX)
        return keel_fail(KEEL_EDATA, "%s: more than %d folders", path, FOLDERS_MAX);
    if (stat(path, &st)) return keel_fail(KEEL_EIO, "%s: %s", path, strerror(errno));
    for (const level *i = l; i; i = i->above)
        if (i->device == st.st_dev && i->number == st.st_ino)
            return keel_fail(KEEL_EDATA,
                             "%s: a link to a folder that it lies in; remove the link, or do not "
                             "follow links",
                             path);
    return walk(t, path, l);
}

/* A file, or a link to what is no folder. */
static keel_status take_file(const trip *t, char *path, const char *name)
{
    keel_file_kind kind = kind_of(name);
    if (t->wanted != KEEL_FILE_KINDS && kind != t->wanted) kind = KEEL_FILE_KINDS;
    if (kind != KEEL_FILE_KINDS || *name != '.') t->f->found[kind]++;
    if (kind != KEEL_FILE_KINDS) return add_file(t->f, path, t->label, kind);
    keel_free(path);
    return KEEL_OK;
}

static keel_status take_entry(const trip *t, const char *folder, const struct dirent *e,
                              const level *l)
{
    struct stat st;
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) return KEEL_OK;
    char *path = keel_folder_join(folder, e->d_name);
    if (!path) return KEEL_ENOMEM;
    bool is_folder = e->d_type == DT_DIR, is_link = e->d_type == DT_LNK;
    if (e->d_type == DT_UNKNOWN && !lstat(path, &st)) {
        is_folder = S_ISDIR(st.st_mode);
        is_link = S_ISLNK(st.st_mode);
    }
    const bool to_folder = is_link && !stat(path, &st) && S_ISDIR(st.st_mode);
    if (!is_folder && !to_folder) return take_file(t, path, e->d_name);
    const keel_status s = is_folder || t->follow_links ? enter(t, path, l) : KEEL_OK;
    keel_free(path);
    return s;
}

/* Collect the files in a folder and below. */
static keel_status walk(const trip *t, const char *folder, const level *above)
{
    keel_status s = KEEL_OK;
    struct stat st;
    DIR *d = opendir(folder);
    if (!d || fstat(dirfd(d), &st)) {
        s = keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
        if (d) closedir(d);
        return s;
    }
    const level l = { above, st.st_dev, st.st_ino, above ? above->depth + 1 : 0 };
    const struct dirent *e = NULL;
    while (s >= 0 && (errno = 0, e = readdir(d))) s = take_entry(t, folder, e, &l);
    if (s >= 0 && errno) s = keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    closedir(d);
    return s;
}

keel_status keel_folder_walk(keel_folder *f, const char *path, keel_file_kind wanted,
                             bool follow_links, int32_t label)
{
    const trip t = { f, wanted, follow_links, label };
    return walk(&t, path, NULL);
}
