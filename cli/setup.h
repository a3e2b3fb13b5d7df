/* Shared by commands: opening the model, compiling it, opening data and devices, and writing files.
 * Unless said otherwise a function returns -1 to continue, or an exit code after it has printed an
 * error. */
#ifndef KEEL_CLI_SETUP_H
#define KEEL_CLI_SETUP_H
#include "command.h"

/* ---- compiling ------------------------------------------------------------------------------- */

/* A name with arguments, as in Keras: "SGD(momentum=0.9, nesterov=True)". `named` points into it.
 */
typedef struct keel_parsed_name {
    char text[512];
    char value[16][256]; /* JSON */
    keel_arg arg[17];
    keel_named named;
    const char *schedule; /* the learning_rate of an optimizer, if it is one; in `text` */
} keel_parsed_name;

int keel_setup_named(keel_parsed_name *out, const char *option, const char *text);

/* Several, separated by commas, into list[most] and named[most]. */
int keel_setup_named_list(keel_parsed_name *list, int most, keel_named *named, const char *option,
                          const char *text);

/* The length of the first part of a list: up to a comma outside of brackets and quotes. */
size_t keel_setup_part(const char *text);

typedef struct keel_compile_options {
    const char *optimizer, *loss, *metrics;
    const char *learning_rate; /* a number, or a schedule as in Python */
    const char *undecayed;     /* names, separated by commas */
} keel_compile_options;

#define KEEL_OPTION_ROW(T, member, option, letter_, required_, kind_, value_, fallback_, help_)    \
    {                                                                                              \
        .name = (option), .letter = (letter_), .required = (required_), .kind = (kind_),           \
        .value = (value_), .fallback = (fallback_), .help = (help_), .offset = offsetof(T, member) \
    }

#define KEEL_LOSS_ROWS(T, member)                                                                  \
    KEEL_OPTION_ROW(T, member.loss, "loss", 0, false, KEEL_OPTION_TEXT, "NAME", NULL,              \
                    "loss by Keras's name, with optional arguments: "                              \
                    "'SparseCategoricalCrossentropy(from_logits=True)' (default: the model's)"),   \
        KEEL_OPTION_ROW(T, member.metrics, "metrics", 0, false, KEEL_OPTION_ONCE, "NAMES", NULL,   \
                        "metrics, separated by commas: accuracy,mse (default: the model's)")

#define KEEL_OPTIMIZER_ROWS(T, member)                                                             \
    KEEL_OPTION_ROW(                                                                               \
        T, member.optimizer, "optimizer", 0, false, KEEL_OPTION_TEXT, "NAME", NULL,                \
        "one of Keras's (sgd, adam, muon ...), with optional arguments: 'SGD(momentum=0.9, "       \
        "nesterov=True)' (default: the model's, else adam)"),                                      \
        KEEL_OPTION_ROW(T, member.learning_rate, "learning-rate", 0, false, KEEL_OPTION_TEXT, "R", \
                        NULL,                                                                      \
                        "learning rate: a number, or a schedule of Keras's: 'CosineDecay(0.1, "    \
                        "1000)' (default: the optimizer's)")

/* Compile a model by the options, or change its compile configuration. `who` names the model in
 * messages. */
int keel_setup_compile(keel_model *m, const keel_compile_options *o, const char *who);

/* ---- model and data -------------------------------------------------------------------------- */

/* The dtype policy that is the n-th choice of a new model's --dtype: "float32" is 0. */
const char *keel_setup_policy(int dtype);

/* The classes of KEEL_PLUGIN_ROW, before a model is loaded; NULL: none. */
int keel_setup_plugin(const char *file);

#define KEEL_PLUGIN_ROW(T, member)                                                                 \
    KEEL_OPTION_ROW(T, member, "plugin", 0, false, KEEL_OPTION_ONCE, "FILE.so", NULL,              \
                    "layers, losses and metrics of your own: a shared library whose function "     \
                    "keel_plugin registers them (see keel/custom.h)")

/* weights: of KEEL_WEIGHTS_ROW; NULL: those of the model's file. dtype: index of the choices of
 * KEEL_DTYPE_ROW. trains: it needs the state of its optimizer. */
int keel_setup_model(keel_model **out, const char *path, const char *weights, int dtype,
                     bool trains);

#define KEEL_WEIGHTS_ROW(T, member)                                                                \
    KEEL_OPTION_ROW(                                                                               \
        T, member, "weights", 0, false, KEEL_OPTION_TEXT, "FILE", NULL,                            \
        "read the weights from this file: .weights.h5, .keras, or .h5 of Keras 2 "                 \
        "and 3, where they are found by the names of layers (default: the model's). "              \
        "keel fit goes on with the optimizer's state in it, as Keras does, if it has one "         \
        "that fits")

#define KEEL_DTYPE_ROW(T, member)                                                                  \
    KEEL_OPTION_ROW(T, member, "dtype", 0, false, KEEL_OPTION_CHOICE,                              \
                    "model|float32|mixed_bfloat16|mixed_float16", "model",                         \
                    "dtype policy of all layers: that of the model's file; float32; or "           \
                    "mixed_bfloat16 or mixed_float16, which store values between layers in "       \
                    "bfloat16 or float16, and weights, their gradients and sums in float32; "      \
                    "with mixed_float16 the loss is scaled, as in Keras")

typedef struct keel_data_options {
    const char *data, *image_size, *label, *inputs, *features, *missing, *vocabulary;
    const char *sample_weight;
    const char *labels, *class_names; /* of directories */
    const char *skip_list;
    int64_t audio_length, sampling_rate, max_length;
    int interpolation;
    bool no_header, follow_links, crop, pad, dct_scaling;
    double input_timeout;
} keel_data_options;

/* The watch over waiting for data, which a line tells of after a minute. `rescue` is called before
 * the process ends because of --input-timeout; NULL: nothing is to be saved. */
const keel_input_watch *keel_setup_watch(double timeout);
/* After the work: the files of the data that decoders have complained of. */
void keel_setup_warnings(const keel_dataset *d);
void keel_setup_watch_rescue(void (*rescue)(void *context, const char *why), void *context);

#define KEEL_TIMEOUT_HELP                                                                          \
    "end with an error if no rows come for S seconds, because a program, a pipe or a file hangs; " \
    "which one, is said after a minute in any case (default: wait)"

/* --threads as an int, `most` at most. Returns -1, or the exit code after it has complained. */
int keel_setup_threads(int *out, int64_t n, int most);

/* "512M" as bytes; NULL: 0. Returns -1, or the exit code after it has complained. */
int keel_setup_input_memory(int64_t *out, const char *text);

#define KEEL_INPUT_MEMORY_ROW(T, member)                                                           \
    KEEL_OPTION_ROW(T, member, "input-memory", 0, false, KEEL_OPTION_TEXT, "SIZE", NULL,           \
                    "what all buffers of the input may take, to the byte: batches, rows that are " \
                    "read ahead, shuffle buffers, caches, those of decoders; as 512M or 2G "       \
                    "(default: half of what the control group of the process leaves free; "        \
                    "without one as much as they need)")

#define KEEL_DATA_ROWS(T, member, required)                                                        \
    KEEL_OPTION_ROW(                                                                               \
        T, member.data, "data", 0, required, KEEL_OPTION_ONCE, "SRC", NULL,                        \
        "the data: a directory with a folder of images, sounds (wav) or texts per class (what "    \
        "its "                                                                                     \
        "files are is found out, or said by images:DIR, audio:DIR, text:DIR), a.npz with x and "   \
        "y, x.npy,y.npy, idx files images,labels (.gz too), a.csv, a.jsonl or a.txt "              \
        "(.gz, a pattern or folder too), TFRecord files and tar shards: a file, a directory of "   \
        "them, train-*.tfrecord, shard-{000..010}.tar, or, of any names, tfrecord:train-*; or a "  \
        "pipeline file .toml"),                                                                    \
        KEEL_SOURCE_ROWS(T, member)

/* What is said of a source, whichever option or argument names it. */
#define KEEL_SOURCE_ROWS(T, member)                                                                \
    KEEL_OPTION_ROW(T, member.image_size, "image-size", 0, false, KEEL_OPTION_TEXT, "H,W", NULL,   \
                    "resize images to this size (default: the model's, if there is one)"),         \
        KEEL_OPTION_ROW(T, member.interpolation, "interpolation", 0, false, KEEL_OPTION_CHOICE,    \
                        "bilinear|bicubic|area|lanczos3|lanczos5|gaussian|mitchellcubic|nearest",  \
                        "bilinear", "method to resize images, without antialias, as in Keras"),    \
        KEEL_OPTION_ROW(T, member.crop, "crop-to-aspect-ratio", 0, false, KEEL_OPTION_FLAG, NULL,  \
                        NULL, "cut images to the shape of the rows before they are resized"),      \
        KEEL_OPTION_ROW(T, member.pad, "pad-to-aspect-ratio", 0, false, KEEL_OPTION_FLAG, NULL,    \
                        NULL, "resize images without distortion and fill with black"),             \
        KEEL_OPTION_ROW(T, member.dct_scaling, "image-dct-scaling", 0, false, KEEL_OPTION_FLAG,    \
                        NULL, NULL,                                                                \
                        "let the JPEG decoder shrink large photos to 1/2, 1/4 or 1/8 before they " \
                        "are resized: faster, but pixels differ from Keras's"),                    \
        KEEL_OPTION_ROW(T, member.labels, "labels", 0, false, KEEL_OPTION_TEXT, "FILE", NULL,      \
                        "labels of the files of the directory --data, in place of its folders: "   \
                        "whole numbers, ordered as the paths of the files"),                       \
        KEEL_OPTION_ROW(T, member.class_names, "class-names", 0, false, KEEL_OPTION_ONCE, "A,B,C", \
                        NULL, "the folders of a directory that are classes, in this order"),       \
        KEEL_OPTION_ROW(T, member.input_timeout, "input-timeout", 0, false, KEEL_OPTION_REAL, "S", \
                        NULL, KEEL_TIMEOUT_HELP),                                                  \
        KEEL_OPTION_ROW(T, member.skip_list, "skip-list", 0, false, KEEL_OPTION_TEXT, "FILE",      \
                        NULL,                                                                      \
                        "leave out the rows that this file lists, as the argument quarantine of "  \
                        "the stages ignore_errors and substitute writes it"),                      \
        KEEL_OPTION_ROW(T, member.follow_links, "follow-links", 0, false, KEEL_OPTION_FLAG, NULL,  \
                        NULL, "also read folders that links in a directory point to"),             \
        KEEL_OPTION_ROW(T, member.audio_length, "audio-length", 0, false, KEEL_OPTION_POSITIVE,    \
                        "N", NULL,                                                                 \
                        "cut or pad sounds to N frames (default: the model's length, "             \
                        "else that of each file)"),                                                \
        KEEL_OPTION_ROW(T, member.sampling_rate, "sampling-rate", 0, false, KEEL_OPTION_POSITIVE,  \
                        "HZ", NULL, "refuse sounds of another rate; Keel does not resample"),      \
        KEEL_OPTION_ROW(T, member.max_length, "max-length", 0, false, KEEL_OPTION_POSITIVE, "N",   \
                        NULL, "only the first N bytes of each text of a directory"),               \
        KEEL_OPTION_ROW(T, member.label, "label", 0, false, KEEL_OPTION_ONCE, "COLUMN", NULL,      \
                        "column of the labels in a CSV file; for several targets "                 \
                        "'age=column sex=column'; for an .npz or HDF5 file, arrays; for TFRecord " \
                        "files, a feature; for tar shards, an ending"),                            \
        KEEL_OPTION_ROW(                                                                           \
            T, member.inputs, "inputs", 0, false, KEEL_OPTION_ONCE, "LIST", NULL,                  \
            "columns of the inputs in a CSV file: 'a,b,c', or for several inputs "                 \
            "'left=a,b right=c'; names with a comma or a space in quotes: "                        \
            "'\"a, b\",c'; for an .npz or HDF5 file, TFRecord files and tar shards, arrays, "      \
            "features and endings: 'left=array', 'x=jpg' (default: those with the "                \
            "names of the model's inputs, else all columns except the label; x, or "               \
            "x_0, x_1; the images of a tar)"),                                                     \
        KEEL_OPTION_ROW(                                                                           \
            T, member.sample_weight, "sample-weight", 0, false, KEEL_OPTION_ONCE, "COLUMN", NULL,  \
            "column of a table with the weight of each row; for the weights of several targets "   \
            "'age=column sex=column', with the names of --label; for an .npz or HDF5 file, "       \
            "arrays; for TFRecord files, features; for tar shards, endings "                       \
            "(default: sample_weight, and none of a table)"),                                      \
        KEEL_OPTION_ROW(T, member.features, "features", 0, false, KEEL_OPTION_ONCE, "LIST", NULL,  \
                        "types and shapes of TFRecord features, which the file does not have: "    \
                        "'image=uint8(28,28,1)' for raw bytes, 'tokens=(128)' or "                 \
                        "'tokens=(None)' for a list of numbers, 'a=string'"),                      \
        KEEL_OPTION_ROW(T, member.no_header, "no-header", 0, false, KEEL_OPTION_FLAG, NULL, NULL,  \
                        "the first line of a CSV file is a row; columns are named 0, 1, ..., "     \
                        "and 1-3 means 1,2,3"),                                                    \
        KEEL_OPTION_ROW(                                                                           \
            T, member.missing, "missing", 0, false, KEEL_OPTION_TEXT, "WHAT", NULL,                \
            "missing values of a CSV file or of JSON lines (empty, NA, NaN, null, ...): error; "   \
            "drop leaves their rows out; mean, or a number, fills inputs (the mean of the column " \
            "in the same data) (default: error)"),                                                 \
        KEEL_OPTION_ROW(T, member.vocabulary, "vocabulary", 0, false, KEEL_OPTION_ONCE, "LIST",    \
                        NULL,                                                                      \
                        "columns of texts that become whole numbers, the place of a text among "   \
                        "words: 'color size=S,M,L city=@FILE'; without words those of the data, "  \
                        "sorted, which fit prints for evaluate and predict")

/* The purpose of the data. */
typedef enum keel_setup_use {
    KEEL_USE_TRAINING,   /* targets are required; a vocabulary may be that of the data */
    KEEL_USE_LABELED,    /* targets are required */
    KEEL_USE_VALIDATION, /* targets are required; of MNIST's files, those named t10k */
    KEEL_USE_INPUTS,     /* targets are not read */
    KEEL_USE_VERIFY /* to be looked at, without a model: rows are not checked when it is opened */
} keel_setup_use;

/* The path of a directory behind "images:", "audio:" or "text:", or the whole text. */
const char *keel_setup_folder(const char *spec);

/* Complains of an option that data of such a name does not read; or, once it is open (d), that the
 * files of such a directory do not. Returns -1, or the exit code. */
int keel_setup_unread(const char *spec, const keel_dataset *d, const keel_data_options *o);

/* What n of a dataset are called: "rows", "batch". */
const char *keel_unit_text(const keel_dataset *d, int64_t n);

/* "1,031 rows", "64 batches", "rows without end": what a dataset has. Returns out. */
enum { KEEL_CARDINALITY_MAX = 80 };
const char *keel_cardinality_text(char *out, size_t size, const keel_dataset *d);

/* Open `spec` (o->data or another source) in the form that the model's input and loss need. m NULL:
 * there is no model, and rows are as they are in the source. */
int keel_setup_data(keel_dataset **out, const char *spec, keel_setup_use use,
                    const keel_data_options *o, const keel_model *m);

/* If the model has no class names yet, store those of the data in it and print their order. */
int keel_setup_class_names(keel_model *m, const keel_dataset *d);

/* Compare the classes of the data with the outputs of a classifier. More classes are refused; more
 * outputs are printed as a note, if the model is to be trained. */
int keel_setup_outputs(const keel_model *m, const keel_dataset *d, bool taught);

/* The name of class i, by the model, else by the data; NULL: none. */
const char *keel_setup_class(const keel_model *m, const keel_dataset *d, int64_t i);

enum { KEEL_SHARE_TEXT_MAX = 128 };

typedef struct keel_devices_options {
    const char *list;
    bool reproducible;
    int64_t shards;
    const char *share; /* "3,1", "auto" or NULL */
} keel_devices_options;

#define KEEL_DEVICES_ROWS(T, member)                                                               \
    KEEL_OPTION_ROW(                                                                               \
        T, member.list, "devices", 0, false, KEEL_OPTION_TEXT, "LIST", NULL,                       \
        "cpu:0-3 is four devices, cpu:0+1 one of two cores, cuda:0-1,cpu:0-1 two GPUs "            \
        "and two cores; see keel devices (default: one per core)"),                                \
        KEEL_OPTION_ROW(T, member.share, "share", 0, false, KEEL_OPTION_TEXT, "N,N,...|auto",      \
                        NULL,                                                                      \
                        "unequal parts of each step: with 3,1 the first of two devices has three " \
                        "of four rows; auto, where steps train: by their speed, which a few "      \
                        "steps measure (default: equal parts)"),                                   \
        KEEL_OPTION_ROW(T, member.reproducible, "reproducible", 0, false, KEEL_OPTION_FLAG, NULL,  \
                        NULL,                                                                      \
                        "the same bits for any devices and any number of cores of one kind of "    \
                        "processor; keel plan --reproducible measures the cost"),                  \
        KEEL_OPTION_ROW(                                                                           \
            T, member.shards, "shards", 0, false, KEEL_OPTION_POSITIVE, "S", NULL,                 \
            "with --reproducible: shards per step; each device gets whole shards, and "            \
            "the result depends on their number (default: 16)")

/* The words are in the order of keel_end_of_data, which _setup.c asserts. */
#define KEEL_END_ROW(T, member, help_)                                                             \
    KEEL_OPTION_ROW(T, member, "end", 0, false, KEEL_OPTION_CHOICE, "keep|drop|carry|wrap|error",  \
                    "keep", help_)

/* The words are in the order of keel_float32, which _setup.c asserts. */
#define KEEL_FLOAT32_ROW(T, member)                                                                \
    KEEL_OPTION_ROW(                                                                               \
        T, member, "float32", 0, false, KEEL_OPTION_CHOICE, "exact|fma|fast", "exact",             \
        "how float32 is multiplied: fma uses only multiply-adds; exact also AMX, with the same "   \
        "accuracy, where it was measured to be faster (see make tune); fast uses AMX with about "  \
        "16 bits; without AMX all are fma. On GPUs fast uses TF32, which has 11 bits, for "        \
        "products and convolutions; the others are exact")

#define KEEL_RECOMPUTE_ROW(T, member)                                                              \
    KEEL_OPTION_ROW(T, member, "recompute", 0, false, KEEL_OPTION_FLAG, NULL, NULL,                \
                    "train in less memory: what batch normalisation, activations and the like "    \
                    "have made is made again for backward instead of being kept; to the same "     \
                    "bits, in a little more time; keel plan shows how much less")

#define KEEL_MICRO_BATCH_ROW(T, member)                                                            \
    KEEL_OPTION_ROW(T, member, "micro-batch", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,           \
                    "train in much less memory: a core takes at most N rows of a step at a time "  \
                    "through all layers and adds up the gradients; steps, learning rate and "      \
                    "result stay what they were, but for rounding; not with layers and losses "    \
                    "that must see all rows of a step, as BatchNormalization (default: as many "   \
                    "as are fastest, mostly all rows of the core); keel plan shows how much less")

#define KEEL_GRAPHS_ROW(T, member)                                                                 \
    KEEL_OPTION_ROW(T, member, "no-graphs", 0, false, KEEL_OPTION_FLAG, NULL, NULL,                \
                    "give a GPU each call by itself, instead of stretches of a step as CUDA "      \
                    "graphs: slower for small calls; to find the one that is at fault")

/* Open the devices; keel_setup_devices also prints a note if they share cores. */
int keel_setup_strategy(keel_strategy **out, const keel_devices_options *o);

/* --share auto: shares by speed, for a model that is compiled. Nothing is done with another
 * --share. rows: of a step. inputs: as for keel_plan_make. */
int keel_setup_share_by_speed(keel_strategy *s, const keel_devices_options *o, keel_model *m,
                              int64_t rows, const keel_shape *inputs);
/* Refuse --share auto, where nothing is trained. */
int keel_setup_no_auto_share(const keel_devices_options *o);
/* "3, 1", or "" if all devices have equal shares. */
const char *keel_share_text(const keel_strategy *s, char out[KEEL_SHARE_TEXT_MAX]);
int keel_setup_devices(keel_strategy **out, const keel_devices_options *o);

/* Make a file without a name in the folder where `path` would be written. Returns its descriptor;
 * -1: errno says why not. */
int keel_setup_try_beside(const char *path);

/* Check, before the work, that a file can be written at `path`, by such a try. */
int keel_setup_output(const char *option, const char *path, const char *ending);

/* Refuse to write a table over a file whose first line does not begin as that of the table: it may
 * be data, found by a pattern, in a folder or through a pipeline file. path may be NULL. */
int keel_setup_own_table(const char *option, const char *path, const char *begin);

/* A file that a command reads or writes, with the option that names it. */
typedef struct keel_setup_file {
    const char *option, *path; /* path NULL: not given; "x.npy,y.npy" stands for both files */
    bool is_folder;            /* outputs: for files of its own, beside which there may be others */
} keel_setup_file;

/* Refuse two outputs of one path, of which one is a file, and outputs that would overwrite an
 * input. Lists end with option NULL. */
int keel_setup_apart(const keel_setup_file *outputs, const keel_setup_file *inputs);

/* Say that `make tune` may help on this kind of processor, if its kernels were not measured. Once:
 * a file in the folder keel/ of XDG_CACHE_HOME, else of ~/.cache, remembers it. */
void keel_tell_untuned(void);

/* ---- afterwards ------------------------------------------------------------------------------ */

/* Write a file atomically; `write` returns false on failure. Returns EXIT_OK, or an exit code after
 * an error was printed. */
int keel_save_whole(const char *path, bool (*write)(FILE *f, const void *what), const void *what);

/* Write a tensor as an .npy file. */
int keel_save_npy(const keel_tensor *t, const char *path);

#endif
