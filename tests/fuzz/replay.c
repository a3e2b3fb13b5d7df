/* Runs a fuzz target without libFuzzer: on each file of the folder as it is, and on changed copies
 * of it, which are cut off, or have other bytes and numbers, or a piece of another file. The
 * changes are the same in each run. Arguments: COPIES FOLDER, where COPIES is the number of copies
 * of each file. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES_MAX = 256, FILE_MAX = 1 << 16, CHANGES_MAX = 4 };

typedef struct input {
    char path[1024];
    uint8_t *data;
    size_t size;
} input;

static input files[FILES_MAX];
static int n_files;
static uint64_t state = 88172645463325252u;

static size_t chance(size_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17; /* xorshift */
    return below ? (size_t)(state % below) : 0;
}

/* A copy that has exactly its size, so that AddressSanitizer sees each byte beyond it. */
static void read_exactly(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t change(uint8_t *data, size_t size)
{
    static const uint8_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', '"', '{', '\n', ',' };
    const size_t at = chance(size);
    if (size == 0) return 0;
    switch (chance(6)) {
    case 0:
        return at;
    case 1:
        data[at] ^= (uint8_t)(1u << chance(8));
        return size;
    case 2:
        data[at] = bytes[chance(sizeof bytes)];
        return size;
    case 3: /* a number of four bytes that is huge, or negative */
        for (size_t i = at; i < size && i < at + 4; i++) data[i] = chance(2) ? 0xff : 0x7f;
        return size;
    case 4: { /* what follows moves */
        const size_t gone = 1 + chance(8);
        if (at + gone > size) return at;
        memmove(data + at, data + at + gone, size - at - gone);
        return size - gone;
    }
    default: {
        const input *other = &files[chance((size_t)n_files)];
        const size_t from = chance(other->size), left = other->size - from;
        const size_t n = chance(left < size - at ? left + 1 : size - at + 1);
        memcpy(data + at, other->data + from, n);
        return size;
    }
    }
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

static void add_file(const char *folder, const char *name)
{
    input *f = &files[n_files];
    if (n_files == FILES_MAX) fail(folder, "too many files");
    snprintf(f->path, sizeof f->path, "%s/%s", folder, name);
    FILE *file = fopen(f->path, "rb");
    if (!file) fail(f->path, "cannot be read");
    f->data = malloc(FILE_MAX);
    if (!f->data) abort();
    f->size = fread(f->data, 1, FILE_MAX, file);
    if (fgetc(file) != EOF) fail(f->path, "is too long");
    fclose(file);
    n_files++;
}

static void read_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) fail(path, "is no folder");
    for (struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] != '.') add_file(path, e->d_name);
    closedir(folder);
    if (n_files == 0) fail(path, "has no file");
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const input *)a)->path, ((const input *)b)->path);
}

int main(int argc, char **argv)
{
    if (argc != 3) fail(argv[0], "write COPIES FOLDER");
    const int copies = atoi(argv[1]);
    read_folder(argv[2]);
    qsort(files, (size_t)n_files, sizeof *files, by_path);
    read_exactly((const uint8_t *)"", 0);
    uint8_t *data = malloc(FILE_MAX);
    if (!data) abort();
    int n = 1;
    for (int i = 0; i < n_files; i++)
        for (int k = 0; k <= copies; k++, n++) {
            size_t size = files[i].size;
            memcpy(data, files[i].data, size);
            for (size_t c = k ? 1 + chance(CHANGES_MAX) : 0; c > 0; c--) size = change(data, size);
            read_exactly(data, size);
        }
    free(data);
    for (int i = 0; i < n_files; i++) free(files[i].data);
    printf("%d inputs\n", n);
    return 0;
}
