/* Files for the tests of data: a folder that is made and removed, and what stands in it. */
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H
#include <dirent.h>
#include <fts.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char files_root[256];

static inline void files_begin(void)
{
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(files_root, sizeof files_root, "%s/keel_test_XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(files_root)) abort();
}

static inline void files_end(void)
{
    char *root[] = { files_root, NULL };
    FTS *all = fts_open(root, FTS_PHYSICAL | FTS_NOSTAT | FTS_NOCHDIR, NULL);
    for (const FTSENT *e; all && (e = fts_read(all));)
        if (e->fts_info != FTS_D) remove(e->fts_path); /* folders when they are left */
    if (all) fts_close(all);
}

/* The path of a name in the folder; good for the next four calls. */
static inline const char *files_path(const char *name)
{
    static char path[4][512];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", files_root, name);
    return path[at];
}

static inline const char *files_folder(const char *name)
{
    const char *path = files_path(name);
    if (mkdir(path, 0700)) abort();
    return path;
}

static inline const char *files_write(const char *name, const void *data, size_t n_bytes)
{
    const char *path = files_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n_bytes, f) != n_bytes || fclose(f)) abort();
    return path;
}

static inline const char *files_text(const char *name, const char *text)
{
    return files_write(name, text, strlen(text));
}

/* How many files this process has open. */
static inline int files_open(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    if (!d) abort();
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Base64, as golden files keep binary data; the caller frees it. */
static inline unsigned char *files_base64(const char *text, size_t *n_bytes)
{
    unsigned char *out = calloc(strlen(text) + 4, 1);
    unsigned bits = 0;
    int n = 0;
    *n_bytes = 0;
    for (; out && *text && *text != '='; text++) {
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        bits = bits << 6 | (unsigned)(strchr(digits, *text) - digits);
        n += 6;
        if (n < 8) continue;
        n -= 8;
        out[(*n_bytes)++] = (unsigned char)(bits >> n);
        bits &= (1u << n) - 1;
    }
    return out;
}

#endif
