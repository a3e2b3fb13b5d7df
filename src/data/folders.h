/* Lists the files of a directory with their labels, as keras.utils does for images, sound and
 * texts: the same classes and the same order of files. */
#ifndef KEEL_DATA_FOLDERS_H
#define KEEL_DATA_FOLDERS_H
#include "data/source.h"

typedef enum keel_file_kind {
    KEEL_FILE_IMAGE,
    KEEL_FILE_AUDIO,
    KEEL_FILE_TEXT,
    KEEL_FILE_KINDS /* also: not known yet, or no such file */
} keel_file_kind;

typedef struct keel_listed {
    char *path;
    size_t folder; /* length of the path before its last '/' */
    int32_t label;
    uint8_t kind;
} keel_listed;

/* The first member of the state of every source that reads a directory. */
typedef struct keel_folder {
    keel_listed *at; /* [count] in Keras's order */
    int64_t count, room;
    keel_file_kind kind;
    char **class_names; /* moved to the spec of the dataset */
    int64_t n_classes, class_room;
    keel_label_mode label_mode;
    keel_data_field x, y; /* x is set by the source */
    int64_t found[KEEL_FILE_KINDS + 1], folders;
    char note[512];
} keel_folder;

/* The kind that "images:", "audio:" or "text:" before a path says, and the path behind it. Without
 * one of them KEEL_FILE_KINDS and the whole text. */
keel_file_kind keel_folder_kind(const char *spec, const char **path);

/* List the files of a kind; KEEL_FILE_KINDS: of the one kind that there is, which f->kind then
 * says. `f` must be zero, and is freed by keel_folder_free, on failure too. KEEL_EDATA: no files,
 * files of several kinds, labels that do not fit. */
keel_status keel_folder_read(keel_folder *f, const char *path, keel_file_kind kind,
                             const keel_dataset_options *o);
void keel_folder_free(keel_folder *f);

/* Write the label of a row, if it is asked for, in the way that the label mode requests. */
keel_status keel_folder_write_label(const keel_folder *f, int64_t index, const keel_row *row);
const char *keel_folder_row_name(const void *state, int64_t index); /* keel_source.row_name */
void keel_folder_soon(const void *state, int64_t index);            /* keel_source.soon */

/* What is done with the files of a kind once they are listed. */
typedef struct keel_folder_reader {
    const keel_source *source;
    size_t size; /* of the state, whose keel_folder is set and the rest zero */
    /* Look at the files and set f.x. The source closes the state, on failure too. */
    keel_status (*begin)(void *state, const char *path, const keel_dataset_options *o);
} keel_folder_reader;

extern const keel_folder_reader keel_images_reader, keel_sounds_reader, keel_texts_reader;

/* keel_source.open of "audio:DIR" and "text:DIR": as the kind that is said. */
keel_status keel_folder_open_said(keel_dataset **out, const char *spec,
                                  const keel_dataset_options *o);

/* List and open, and take the subset of the options. */
keel_status keel_folder_open(keel_dataset **out, const char *path, keel_file_kind kind,
                             const keel_dataset_options *options);

/* ---- the walk (folder_walk.c) ------------------------------------------------------------------
 */

/* Append the files of a kind in a folder and below, or of all kinds, each with a label. KEEL_EDATA:
 * nested too deep, too many folders, links in a circle. */
keel_status keel_folder_walk(keel_folder *f, const char *path, keel_file_kind wanted,
                             bool follow_links, int32_t label);
void keel_folder_sort(keel_folder *f);                        /* into Keras's order */
char *keel_folder_join(const char *folder, const char *name); /* freed by keel_free; NULL: ENOMEM */
const char *keel_file_what(keel_file_kind kind);              /* "images" */
const char *keel_file_endings(keel_file_kind kind, char out[64]); /* "jpg, png"; returns out */

/* ---- labels (folder_labels.c) ------------------------------------------------------------------
 */

/* Give the sorted files the labels of o->labels or o->labels_path. */
keel_status keel_folder_take_labels(keel_folder *f, const char *path,
                                    const keel_dataset_options *o);

/* At most `most` whole numbers, separated by white space or commas. The caller frees *out with
 * keel_free. KEEL_EFORMAT names the line; KEEL_EDATA: there are more. */
keel_status keel_labels_parse(int32_t **out, int64_t *count, int64_t most, const char *text,
                              size_t n_bytes, const char *what);

#endif
