/* Files that the rows of a dataset name, for flat_map and interleave. A name is data, and data may
 * come from anywhere, so it can only be the path of a file or folder that is there: no program to
 * run, and no pipeline, which could name itself. */
#include "base/memory.h"
#include "data/options_copy.h"
#include "data/spec.h"
#include "data/stages/_interleave.h"
#include "tensor/shape.h"
#include <string.h>
#include <unistd.h>

typedef struct files {
    keel_options_copy *options;
    char *text[2 * KEEL_FIELDS_MAX]; /* names of the fields, until the dataset copies them */
} files;

static bool is_name(const keel_data_spec *spec)
{
    const keel_shape *s = &spec->field[0].shape;
    return spec->field[0].dtype == KEEL_STRING && !keel_shape_is_open(s) &&
           keel_shape_count(s) == 1;
}

/* A path without a folder gets one, so that no source takes its begin for a word of its own. */
static keel_status open_name(keel_dataset **out, const keel_string *name,
                             const keel_dataset_options *o)
{
    enum { PATH_BYTES = 4096 };
    const char *of = name->data;
    const size_t n = (size_t)name->n_bytes;
    if (!n || n > PATH_BYTES || memchr(of, 0, n))
        return keel_fail(KEEL_EDATA, "a name of %zu bytes, or with a zero byte, is no path", n);
    const bool folder = of[0] == '/' || (n > 1 && of[0] == '.' && of[1] == '/');
    char *path = keel_calloc(n + 3, 1);
    if (!path) return KEEL_ENOMEM;
    memcpy(path, "./", 2);
    memcpy(path + (folder ? 0 : 2), of, n);
    keel_status s = KEEL_OK;
    if (keel_spec_ends(path, strlen(path), ".toml"))
        s = keel_fail(KEEL_EUNSUP, "%s: a row names a pipeline; only files of data are opened",
                      path);
    else if (access(path, F_OK) != 0)
        s = keel_fail(KEEL_EIO, "%s: a row names a file that is not there", path);
    else
        s = keel_dataset_open(out, path, o);
    keel_free(path);
    return s;
}

keel_status keel_files_open(keel_dataset **out, const keel_applied *s, const keel_element *e)
{
    return open_name(out, e->field[0].data, &((const files *)s->made)->options->options);
}

/* The dataset of the first row, whose fields are those of all. */
static keel_status open_first(keel_dataset **out, const keel_applied *s)
{
    keel_scratch scratch = { 0 };
    keel_element *e;
    const keel_dataset *names = s->parent[0];
    keel_status r = keel_element_read(&e, names, (keel_position){ 0 }, NULL, &scratch);
    if (r >= 0) {
        r = keel_files_open(out, s, e);
        keel_element_release(e);
    }
    keel_scratch_free(&scratch);
    return r;
}

/* The names of the fields are those of a dataset that is closed again. */
static keel_status keep_names(files *f, keel_data_spec *spec)
{
    int n = 0;
    for (int i = 0; i < spec->n_field; i++) {
        keel_data_field *at = &spec->field[i];
        if (!(at->path = f->text[n++] = keel_strdup(at->path))) return KEEL_ENOMEM;
        if (at->target && !(at->target = f->text[n++] = keel_strdup(at->target)))
            return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

keel_status keel_files_infer(keel_applied *s, keel_data_spec *spec)
{
    const bool endless = spec->endless;
    keel_dataset *first;
    if (spec->batched || !is_name(spec))
        return keel_fail(KEEL_EARG, "its rows must be names of files, such as those of "
                                    "files:shards/*.csv; in C, give a function");
    if (!s->parent[0]->origin->source->read)
        return keel_fail(KEEL_EUNSUP, "the names must be rows that are read by number, since the "
                                      "first tells the fields");
    if (!spec->rows) return keel_fail(KEEL_EDATA, "there are no names of files");
    files *f = s->made = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    KEEL_TRY(keel_options_copy_create(&f->options, s->options));
    KEEL_TRY(open_first(&first, s));
    keel_status r = keel_inner_spec(spec, first);
    if (r >= 0) r = keep_names(f, spec);
    keel_dataset_destroy(first);
    spec->endless |= endless;
    return r;
}

void keel_files_release(keel_applied *s)
{
    files *f = s->made;
    for (int i = 0; i < 2 * KEEL_FIELDS_MAX; i++) keel_free(f->text[i]);
    keel_options_copy_destroy(f->options);
    keel_free(f);
}
