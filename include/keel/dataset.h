/* Datasets: the source of rows. A dataset has the number of rows and their fields; fit, evaluate
 * and predict choose batch size, shuffling and the end of the data, so one dataset serves all. A
 * row is a list of named fields: inputs, targets and weights; mostly x, y and sample_weight, of
 * which the last two are optional. A weight must be finite and not negative. Any other is refused
 * with the number of its row; Keras would train with it.
 *
 * Names are those of Keras and tf.data. Options begin with their size; NULL means the defaults. */
#ifndef KEEL_DATASET_H
#define KEEL_DATASET_H
#include <keel/data_field.h>
#include <keel/dataset_options.h>
#include <keel/generator.h>
#include <keel/status.h>
#include <keel/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_dataset keel_dataset;

/* What to do with the rows at the end of the data that do not fill a batch. */
typedef enum keel_end_of_data {
    KEEL_KEEP,  /* trained as a short step, with exact weights */
    KEEL_DROP,  /* left out, with a note to the user */
    KEEL_CARRY, /* they open the next epoch; the last epoch trains them as a short step */
    KEEL_WRAP,  /* filled up with rows from the start, which are counted as duplicates */
    KEEL_REFUSE /* refused before step 1 */
} keel_end_of_data;

/* A dataset over arrays in memory: row i is x[i], y[i], weight[i].
 *
 * Shapes   x [n, ...], y [n, ...], weight [n] or [n, 1]; y and weight may be NULL; any dtype
 * Returns  KEEL_OK; KEEL_EARG: x is NULL or has no first dim; KEEL_ESHAPE: the counts of rows
 *          differ; KEEL_EDATA: no rows, or a weight that is negative or not finite; KEEL_ENOMEM
 * Owns     the arrays are borrowed, not copied: they must outlive the dataset unchanged; the caller
 *          destroys *out
 * Threads  any */
keel_status keel_dataset_from_arrays(keel_dataset **out, const keel_tensor *x, const keel_tensor *y,
                                     const keel_tensor *weight);

/* An array with one field of all rows: field `path` of row i is array[i]. */
typedef struct keel_array_field {
    const char *path;
    keel_data_role role;
    const char *target; /* of a weight: the path of its target; NULL: all targets */
    keel_tensor array;
    /* If rows differ in length, as in a RaggedTensor: int64 [n + 1] from 0 to the array's first
     * dim; row i is array[row_splits[i] .. row_splits[i + 1]). See keel_fit_options.bucket. */
    keel_tensor row_splits;
} keel_array_field;

/* A dataset over any number of arrays in memory, for models with several inputs or outputs. Fields
 * keep the order of the arrays.
 *
 * Shapes   each [n, ...] with the same n; any dtype; weights [n], [n, 1], or with the first dims of
 *          the predictions: [n, time]
 * Returns  KEEL_OK; KEEL_EARG: no input, no path, the same path twice in a role, more than
 *          KEEL_FIELDS_MAX, an array without data, a weight of no target; KEEL_ESHAPE: the counts
 *          of rows differ; KEEL_ENOMEM
 * Owns     the arrays are borrowed, not copied: they must outlive the dataset unchanged; paths are
 *          copied; the caller destroys *out
 * Threads  any */
keel_status keel_dataset_from_fields(keel_dataset **out, const keel_array_field *fields, int n);

/* A dataset over a directory that has one folder of images (jpg, jpeg, png, bmp, gif, webp) per
 * class. Classes are the sorted names of the folders; rows are ordered by class, then by path.
 * Without labels (KEEL_LABEL_NONE), or with labels given, it has all images in the directory and
 * below, ordered by path. Of an animated GIF the first frame is taken. Keras leaves out webp.
 *
 * Shapes   x (height, width, 1, 3 or 4), 0..255: uint8 if that is exact (all images have that
 * height and width, or interpolation is KEEL_NEAREST), else float32; y by label_mode
 * Returns  KEEL_OK; KEEL_EIO: cannot be listed; KEEL_EDATA: no images, not two classes where
 *          label_mode is binary, a folder that is not in options->class_names, labels that are not
 *          as many as images, links that lead in a circle; KEEL_EFORMAT: a truncated file;
 *          KEEL_EARG: options
 * Owns     the caller destroys *out; a file is read with its row
 * Threads  any
 * Cost     reads the beginning and end of every file: some 30 us each if the file is cached in
 *          memory
 * Source   keras.utils.image_dataset_from_directory */
keel_status keel_dataset_from_image_directory(keel_dataset **out, const char *path,
                                              const keel_dataset_options *options);

/* The same for sound: WAV files of PCM (8, 16, 24, 32 bits) or floats.
 *
 * Shapes   x (frames, channels) float32, -1..1; frames is options->audio_length, or without it open
 *          if files differ in length (padded as keel_fit_options.bucket says); y by label_mode
 * Returns  as keel_dataset_from_image_directory; KEEL_EUNSUP: another encoding or sampling rate;
 *          KEEL_EDATA: also files that differ in their channels
 * Owns     the caller destroys *out; a file is read with its row
 * Threads  any
 * Source   keras.utils.audio_dataset_from_directory */
keel_status keel_dataset_from_audio_directory(keel_dataset **out, const char *path,
                                              const keel_dataset_options *options);

/* The same for texts: a row is a .txt file, its first options->max_length bytes.
 *
 * Shapes   x () of KEEL_STRING; y by label_mode
 * Returns  as keel_dataset_from_image_directory
 * Owns     the caller destroys *out; all files are read at once
 * Threads  any
 * Source   keras.utils.text_dataset_from_directory */
keel_status keel_dataset_from_text_directory(keel_dataset **out, const char *path,
                                             const keel_dataset_options *options);

/* A dataset over a CSV file with a header line: the column `label` is y, all others are features.
 * Labels that are not numbers become their index in the sorted names. options->inputs and targets
 * choose several fields instead; these inputs may have texts. true and false are 1 and 0;
 * options->missing says what becomes of missing values, options->vocabularies of words. `path` may
 * also be a .csv.gz, or a folder or a pattern of files with one header.
 *
 * Shapes   x (features) float32, or int64 if all are whole and float32 cannot hold them; y (), or
 *          by label_mode if labels are classes
 * Returns  KEEL_OK; KEEL_EIO; KEEL_EFORMAT: a line has too few or many fields, or a field is not a
 *          number (the text names line and column); KEEL_EARG: no such column, a header of numbers;
 *          KEEL_EDATA: a label that is not a class
 * Owns     the caller destroys *out; the file is read once, and its rows are kept as arrays
 * Threads  any; options->note is called in the caller's
 * Cost     a second for some 500 MB of numbers, on one core */
keel_status keel_dataset_from_csv(keel_dataset **out, const char *path, const char *label,
                                  const keel_dataset_options *options);

/* A dataset over an .npz file with the members x, y and sample_weight (y and sample_weight are
 * optional), or x_0, x_1 and y_0, y_1, or x_train and y_train. For other names use
 * keel_dataset_open with options->inputs and targets. The weights of one of several targets are
 * sample_weight_ and its name or number. An array whose rows differ in length has them one after
 * another, together with an array x_row_splits (n + 1 numbers from 0) or x_row_lengths (n).
 *
 * Returns  KEEL_OK; KEEL_EIO; KEEL_EFORMAT: damaged or without x; KEEL_ESHAPE: row counts differ
 * Owns     the caller destroys *out; the file is read whole
 * Threads  any */
keel_status keel_dataset_from_npz(keel_dataset **out, const char *path);

/* A dataset over two .npy files; y_path may be NULL.
 *
 * Returns  KEEL_OK; KEEL_EIO; KEEL_EFORMAT: damaged; KEEL_ESHAPE: row counts differ
 * Owns     the caller destroys *out; the files are read whole, unless x has more than 1 GiB and is
 *          in row-major order: then its rows are read when they are needed
 * Threads  any */
keel_status keel_dataset_from_npy(keel_dataset **out, const char *x_path, const char *y_path);

/* A dataset over MNIST's idx files, plain or gzipped; labels_path may be NULL. Images without
 * channels get a last dimension of 1: [n, 28, 28] gives rows (28, 28, 1).
 *
 * Returns  KEEL_OK; KEEL_EIO; KEEL_EFORMAT: damaged; KEEL_ESHAPE: row counts differ
 * Owns     the caller destroys *out; the files are read whole
 * Threads  any */
keel_status keel_dataset_from_idx(keel_dataset **out, const char *images_path,
                                  const char *labels_path);

/* Open SRC of the command line: a directory of class folders, of images, sound or texts, which its
 * files' names tell ("images:", "audio:" or "text:" before the path decides), or one with MNIST's
 * files (train; t10k with subset validation); "a.npz"; "x.npy,y.npy" or "x.npy";
 * "images.idx,labels.idx" or any pair with idx in their names (.gz too); "a.csv" (options->label
 * names the label column); a pipeline file "a.toml" (see pipeline.h);
 * "a.jsonl" or "a.ndjson", an object a line, whose keys are named as columns are, by path:
 * "x=image.pixels" (by default x and y; without x, all numbers); "a.txt" or "lines:FILE", whose
 * lines are texts (these and CSV may be gzipped, a folder, or a pattern such as "day-*.csv");
 * TFRecord files of tf.train.Example (.tfrec in their names, or "tfrecord:" before them, gzipped
 * too), where options->inputs
 * and targets choose features, by default x and y; tar shards of WebDataset, where they choose
 * endings ("x=jpg", "x=jpg;png"), by default an image and cls. Of both, a file, a directory of
 * them, or a pattern: "train-*.tfrecord", "shard-{000..010}.tar". A record is read and checked with
 * its row; texts, and gzipped files of at most 1 GiB in all, are held in memory. A directory of
 * several kinds of files is refused, except that fewer than half as many texts as images or sounds
 * are left out. "a.h5" with x and y, or with the arrays that options->inputs and targets name
 * ("x=/train/images"). And what a scheme says, with a list in parentheses:
 *
 *   raw(y=uint8,x=uint8(3,32,32):chw):FILE,FILE
 *     records of one length: their fields in order, with types as NumPy names them (>int16:
 *     big-endian). :chw turns [C, H, W] to [H, W, C]; _=uint8(4) skips bytes; header= and footer=
 *     are bytes of each file.
 *   exec:CMD or exec(x,y,sample_weight,rows=1000):CMD
 *     a program, run by /bin/sh for each pass, that writes batches to its output: one .npy after
 *     the other, in the order of the list, with any number of rows. KEEL_EPOCH, the number of the
 *     pass from 0, and KEEL_FIELDS, the list, are in its environment. A status other than 0 is a
 *     failure; its last line of errors is in the text. Without a batch size, a step has at most as
 *     many rows as the first batch. It is killed when the dataset is destroyed. It is a stream.
 *   synthetic(x=float32(224,224,3),y=int(1000),rows=5000,seed=0)
 *     rows that are drawn: float32 and float64 in [0, 1), normal, uint8, bool, and int below its
 *     first number.
 *
 * Rows of an .h5, of records, and of an x.npy of more than 1 GiB in row-major order are read when
 * they are needed; other files are read whole, and must not shrink meanwhile: KEEL_EIO.
 *
 * Returns  KEEL_OK; KEEL_EARG: not a kind of data that Keel reads (the text lists those); else as
 *          its reader
 * Owns     the caller destroys *out
 * Threads  any */
keel_status keel_dataset_open(keel_dataset **out, const char *spec,
                              const keel_dataset_options *options);

/* Split the rows in two: `validation` gets the fraction `split`, `training` the rest. As in Keras,
 * a directory is first shuffled by `seed`, with the same files in both parts as in Keras for this
 * seed; of arrays and files of arrays the last rows are for validation, and of a pipeline the last
 * that it gives.
 *
 * Returns  KEEL_OK; KEEL_EARG: split not in (0, 1), or the seed of a directory above 2^32 - 1;
 *          KEEL_EDATA: one part would be empty; KEEL_EUNSUP: the rows have no index (generator,
 *          sequence), a pipeline gives them another order in each pass, or some more than once, or
 *          gives a directory folder by folder
 * Owns     both parts share the data with `dataset`; each is destroyed on its own, in any order
 * Threads  any */
keel_status keel_dataset_split(const keel_dataset *dataset, double split, uint64_t seed,
                               keel_dataset **training, keel_dataset **validation);

/* Destroy a dataset; data that it shares with others lives until the last is destroyed.
 *
 * Returns  nothing
 * Owns     frees the dataset; NULL is allowed
 * Threads  any, after its last use */
void keel_dataset_destroy(keel_dataset *dataset);

/* The number of rows.
 *
 * Returns  the count, or -1 if it is not known in advance
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_dataset_rows(const keel_dataset *dataset);

/* The number of fields of a row.
 *
 * Returns  the count, at least 1
 * Owns     nothing changes hands
 * Threads  any */
int keel_dataset_field_count(const keel_dataset *dataset);

/* Field i of a row.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such field
 * Owns     the strings in *out are the dataset's
 * Threads  any */
keel_status keel_dataset_field(const keel_dataset *dataset, int i, keel_data_field *out);

/* The shape of one row of x, the first input.
 *
 * Returns  the shape, without the batch
 * Owns     nothing changes hands
 * Threads  any */
keel_shape keel_dataset_x_shape(const keel_dataset *dataset);

/* The shape of one row of y, the first target; rank 0 for one number.
 *
 * Returns  the shape, without the batch; rank -1 if there is no y
 * Owns     nothing changes hands
 * Threads  any */
keel_shape keel_dataset_y_shape(const keel_dataset *dataset);

/* The type in which x (or y) is stored; training converts it to the model's.
 *
 * Returns  the dtype
 * Owns     nothing changes hands
 * Threads  any */
keel_dtype keel_dataset_x_dtype(const keel_dataset *dataset);

/* As keel_dataset_x_dtype, for y.
 *
 * Returns  the dtype; KEEL_FLOAT32 if there is no y
 * Owns     nothing changes hands
 * Threads  any */
keel_dtype keel_dataset_y_dtype(const keel_dataset *dataset);

/* True if rows have weights.
 *
 * Returns  true if the source has weights, of all targets or of some
 * Owns     nothing changes hands
 * Threads  any */
bool keel_dataset_has_weight(const keel_dataset *dataset);

/* The number of classes that have a name.
 *
 * Returns  the count; 0 if classes have no names
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_dataset_class_count(const keel_dataset *dataset);

/* The name of class i.
 *
 * Returns  the name, or NULL if i is out of range
 * Owns     the string is the dataset's
 * Threads  any */
const char *keel_dataset_class_name(const keel_dataset *dataset, int64_t i);

/* The largest label, if y is a class number and the rows are in memory. Reads all rows.
 *
 * Returns  the label; -1 if there is no y, y is more than one number, a label is negative or not
 *          whole, or rows are only read later
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_dataset_largest_label(const keel_dataset *dataset);

/* The source of the rows, for messages: a path, or "arrays".
 *
 * Returns  a string
 * Owns     the string is the dataset's
 * Threads  any */
const char *keel_dataset_name(const keel_dataset *dataset);

/* What the user should know of the data: files of a directory, or rows of a skip list, that were
 * left out.
 *
 * Returns  one line, or NULL
 * Owns     the string is the dataset's
 * Threads  any */
const char *keel_dataset_note(const keel_dataset *dataset);

/* Files that were read although a decoder has complained of them, in all reading of this dataset
 * and of those that it is made of: "2 files gave warnings: a.jpg: Corrupt JPEG data: ...". The
 * first three by name are in the text. keel_fit adds it to the note of the history.
 *
 * Returns  the number of such files; text is "" if there are none
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_dataset_warnings(const keel_dataset *dataset, char *text, size_t size);

typedef struct keel_dataset_memory {
    int64_t n_bytes;   /* the least input_memory of a fit */
    int64_t row_bytes; /* part of it: to read the row that takes most */
    bool known;        /* of all rows; else of those that were read so far */
    char row[512];     /* which row that is; "": it has no name, or all take the same */
} keel_dataset_memory;

/* The least input_memory with which a fit can read the data in batches of batch_size rows (0: 32;
 * of data that comes in batches, those): inputs as float32, but bytes as bytes, and targets as
 * float32, but whole numbers as they are. A model that leaves fields out needs less. Of rows whose
 * memory is known only once they are read, as images in TFRecord files of more than 64 MiB, those
 * count that were read so far: after all were, by keel_reader for example, it is right.
 *
 * Returns  KEEL_OK; KEEL_EDATA, KEEL_EARG: no fit can have such batches; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  any */
keel_status keel_dataset_least_memory(keel_dataset_memory *out, const keel_dataset *dataset,
                                      int64_t batch_size);

/* The name of row i: the path of its file, if each row has a file. Of data in batches, that of row
 * i of all of them; of a pipeline that shuffles, as the first pass of a run of seed 0 gives rows.
 *
 * Returns  the path, or NULL if rows have no names or i is out of range
 * Owns     the string is the dataset's
 * Threads  any */
const char *keel_dataset_row_name(const keel_dataset *dataset, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
