/* How files become rows. Included by <keel/dataset.h>. */
#ifndef KEEL_DATASET_OPTIONS_H
#define KEEL_DATASET_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum keel_color_mode {
    KEEL_COLOR_RGB,
    KEEL_COLOR_RGBA, /* alpha is 255 where a file has none */
    KEEL_COLOR_GRAYSCALE
} keel_color_mode;

typedef enum keel_label_mode {
    KEEL_LABEL_INT,         /* the index of the class, row shape () */
    KEEL_LABEL_CATEGORICAL, /* one-hot, row shape (classes) */
    KEEL_LABEL_BINARY,      /* 0 or 1, row shape (1); exactly two classes */
    KEEL_LABEL_NONE         /* no y */
} keel_label_mode;

typedef enum keel_interpolation { /* half-pixel centres, no antialias, as tf.image.resize */
                                  KEEL_BILINEAR, /* Keras's default */
                                  KEEL_BICUBIC,
                                  KEEL_AREA,
                                  KEEL_LANCZOS3,
                                  KEEL_LANCZOS5,
                                  KEEL_GAUSSIAN,
                                  KEEL_MITCHELLCUBIC,
                                  KEEL_NEAREST
} keel_interpolation;

typedef enum keel_subset {
    KEEL_SUBSET_ALL,
    KEEL_SUBSET_TRAINING,
    KEEL_SUBSET_VALIDATION
} keel_subset;

/* What becomes of a missing value in a table (CSV, JSON lines): an empty field, null, a key that is
 * not there, or a word that pandas reads as missing, such as NA, NaN, null or None. Texts are never
 * missing: an empty one is a text. */
typedef enum keel_missing {
    KEEL_MISSING_REFUSE, /* an error that names line and column */
    KEEL_MISSING_DROP,   /* its row is left out; `note` says how many were */
    KEEL_MISSING_FILL,   /* missing_value; in inputs only, as the next one */
    KEEL_MISSING_MEAN    /* the mean of the column's other values in the same data */
} keel_missing;

/* A column of texts that become whole numbers: the place of a text among the words. */
typedef struct keel_vocabulary {
    const char *column;
    const char *const *words; /* any other text is refused; NULL: those in the data, sorted by
                                 bytes, which `note` tells */
    int64_t n_words;
} keel_vocabulary;

/* What is said of rows that do not come: of a program that hangs, a pipe that nobody writes to, a
 * file on a server that is gone, a callback that waits. */
typedef struct keel_input_watch {
    size_t size;    /* sizeof(keel_input_watch) */
    double seconds; /* a longer wait is told, once; 0: 60 */
    double limit;   /* a longer wait ends the run with KEEL_ETIMEOUT; 0: none does */
    /* Called with one line, by a thread of its own: who waits for whom, and where the thread is
     * that is waited for. last: the limit is reached. What hangs cannot be stopped from outside,
     * and a run ends when it returns; a program that cannot wait for that may call keel_fit_save
     * and end here. May be NULL. */
    void (*tell)(void *context, const char *line, bool last);
    void *context;
    /* Asked by that thread while somebody waits: true: the limit is one second now. NULL: never. */
    bool (*hurries)(void *context);
} keel_input_watch;

/* How files become rows; a reader uses the members that apply to its format. */
typedef struct keel_dataset_options {
    size_t size;                      /* sizeof(keel_dataset_options) */
    int64_t height, width;            /* images: size that each is resized to; required */
    keel_color_mode color_mode;       /* images */
    keel_label_mode label_mode;       /* images, and files whose labels are classes */
    keel_interpolation interpolation; /* images */
    const char *label;                /* the column, array, feature or ending that is y, if targets
                                       * is empty; NULL: y, and no y of a CSV file */
    double validation_split;          /* in [0, 1); used with subset */
    keel_subset subset;               /* the part of validation_split to open */
    uint64_t seed;                    /* of the split of a directory: Keras's seed */
    /* The arrays of an .npz, columns of a CSV, features of TFRecord files or endings of tar shards
     * that are the fields of a row: "name", "name=array" or "name=column,column", where a column
     * with a comma is in quotes (those in it are written twice). Names that are not in the file
     * stand, in order, for the default ones: x, or x_0, x_1; y, or y_0, y_1; all columns except
     * labels. So a model's names can be given for any file. */
    const char *const *inputs;
    const char *const *targets;
    int n_input, n_target;
    /* CSV: the first line is a row, not a header. Columns are then named by number, from 0, and
     * "1-3" means 1,2,3. */
    bool no_header;
    char separator; /* CSV: between fields; 0: a comma, or if the first line has none, the most
                       frequent of semicolon, tab and | */
    /* Labels that are names: the class names in the order of their numbers, as a model learned
     * them; any other label is refused. NULL: the names in the data, sorted. */
    const char *const *class_names;
    int64_t class_name_count;
    int64_t class_count; /* labels that are classes: the number of classes of the model, the width
                            of one-hot rows; 0: as many as are named or occur */
    const keel_label_mode *target_modes; /* [n_target], in place of label_mode; NULL: one for all */
    const int64_t *target_class_counts;  /* [n_target], in place of class_count */
    int n_numbered; /* where targets is empty, how many values the two above have: those of y_0, y_1
                       and so on */
    /* Directories: the arguments of keras.utils' image_, audio_ and text_dataset_from_directory. */
    const int32_t *labels; /* of each file, ordered by path, in place of folders; NULL: folders */
    int64_t label_count;
    const char *labels_path; /* the same, whole numbers in a text file */
    /* Keras's class_names: the folders that are classes, in the order of their numbers; others are
     * left out. NULL: all, sorted. */
    const char *const *folders;
    int64_t folder_count;
    bool follow_links;         /* go into folders that links point to */
    bool crop_to_aspect_ratio; /* images: cut what the height and width do not have room for */
    bool pad_to_aspect_ratio;  /* images: fill with black; not with crop_to_aspect_ratio */
    int64_t audio_length;  /* audio: frames of a row, cut or padded with 0; 0: those of its file */
    int64_t sampling_rate; /* audio: any other is refused, since Keel does not resample; 0: any */
    int64_t max_length;    /* texts: bytes; 0: all */
    /* TFRecord: type and shape of features, which such files do not have. "image=uint8(28,28,1)"
     * reads the bytes of a feature as numbers of that type, little-endian, as tf.io.decode_raw;
     * types are uint8, int32, int64, float32, float64. "a=(28,28)" shapes a list of numbers, and
     * "a=(None,3)" has rows that differ in their first dim. "a=string" is a text even if it looks
     * like an image. */
    const char *const *features;
    int n_feature;
    keel_missing missing;                /* tables */
    double missing_value;                /* KEEL_MISSING_FILL: finite */
    const keel_vocabulary *vocabularies; /* [n_vocabulary]; tables */
    int n_vocabulary;
    /* Called while a table is opened, with a line for the user: rows that were left out, values
     * that were filled, words that were numbered. NULL: nobody is told. */
    void (*note)(void *note_context, const char *line);
    void *note_context;
    /* Images, sounds, TFRecord and tar: what is found wrong with a row when the data is opened does
     * not refuse all of it. Such rows fail when they are read, and a stage such as ignore_errors or
     * substitute may go on. A pipeline file with such a stage sets it. */
    bool unchecked;
    /* JPEG: the decoder shrinks images to a half, a quarter or an eighth if they are still at least
     * as large as the rows, before they are resized. Several times faster with large photos, but
     * pixels are then means of areas: their values are not those of Keras. */
    bool image_dct_scaling;
    /* A file as the argument `quarantine` of such a stage writes it: its rows are left out from the
     * start, which keel_dataset_note tells. Files of a directory are left out by their names, other
     * rows by their numbers, which those that stay keep. A stream is refused. NULL: none. */
    const char *skip_list;
    const keel_input_watch *watch; /* over opening it; borrowed; NULL: none */
    /* The column of a table, array of an .npz or HDF5 file, feature of TFRecord files or ending of
     * tar shards that is the weight of each row, 0 or more. NULL: sample_weight, and none of a
     * table. */
    const char *sample_weight;
    /* Weights of the targets of several outputs, each "TARGET=COLUMN", as in `targets`; a target
     * that is not here has none. Not together with sample_weight. */
    const char *const *sample_weights;
    int n_sample_weight;
} keel_dataset_options;

#define KEEL_DATASET_OPTIONS ((keel_dataset_options){ .size = sizeof(keel_dataset_options) })

#ifdef __cplusplus
}
#endif
#endif
