/* A directory with one folder of .txt files per class, or without labels all of them, as
 * keras.utils.text_dataset_from_directory. Texts must live as long as the dataset, so all files are
 * read when the directory is opened. */
#include "base/memory.h"
#include "data/folders.h"
#include "io/file.h"

#define TEXT_BYTES_MAX (INT64_C(1) << 30) /* of one file */

typedef struct texts {
    keel_folder f;     /* first, for keel_dataset_note */
    keel_string *text; /* [f.count] */
} texts;

static keel_status read_text(keel_string *out, const char *path, int64_t max_length)
{
    keel_file f;
    keel_status s;
    char *data = NULL;
    KEEL_TRY(keel_file_open(&f, path));
    const size_t n =
        max_length && (uint64_t)max_length < f.n_bytes ? (size_t)max_length : f.n_bytes;
    if ((int64_t)n > TEXT_BYTES_MAX)
        s = keel_fail(KEEL_EFORMAT,
                      "%s: %zu bytes are more than is read of a text; give max_length", path, n);
    else if (!(data = keel_calloc(n + 1, 1)))
        s = KEEL_ENOMEM;
    else
        s = keel_file_read_at(&f, 0, data, n);
    keel_file_close(&f);
    if (s < 0) {
        keel_free(data);
        return s;
    }
    *out = (keel_string){ data, (int64_t)n };
    return KEEL_OK;
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row, keel_scratch *s)
{
    (void)s;
    const texts *p = state;
    KEEL_TRY(keel_folder_write_label(&p->f, index, row));
    if (!row->at[0]) return KEEL_OK;
    return keel_field_write(row->at[0], row->want[0], &p->text[index], &p->f.x, 1);
}

static void close_texts(void *state)
{
    texts *p = state;
    for (int64_t i = 0; p->text && i < p->f.count; i++) keel_free((char *)p->text[i].data);
    keel_free(p->text);
    keel_folder_free(&p->f);
    keel_free(p);
}

static bool claims(const char *spec)
{
    const char *path;
    return keel_folder_kind(spec, &path) == KEEL_FILE_TEXT;
}

const keel_source keel_source_text_directory = {
    .name = "text_directory",
    .help = "a directory that has one folder of texts (txt) for each class",
    .shuffled_split = true,
    .in_memory = true,
    .prefix = "text",
    .claims = claims,
    .open = keel_folder_open_said,
    .read = read_row,
    .row_name = keel_folder_row_name,
    .close = close_texts,
};

static keel_status begin(void *state, const char *path, const keel_dataset_options *o)
{
    texts *p = state;
    (void)path;
    p->f.x.dtype = KEEL_STRING;
    if (!(p->text = keel_calloc((size_t)p->f.count, sizeof *p->text))) return KEEL_ENOMEM;
    for (int64_t i = 0; i < p->f.count; i++)
        KEEL_TRY(read_text(&p->text[i], p->f.at[i].path, o->max_length));
    return KEEL_OK;
}

const keel_folder_reader keel_texts_reader = { &keel_source_text_directory, sizeof(texts), begin };

keel_status keel_dataset_from_text_directory(keel_dataset **out, const char *path,
                                             const keel_dataset_options *options)
{
    return keel_folder_open(out, path, KEEL_FILE_TEXT, options);
}
