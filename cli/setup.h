/* What commands share before they run: the model's file, what compiles it, the data, the devices.
 * Each answers -1 to go on, or the exit code after it has said what is wrong. And a file that two
 * of them write. */
#ifndef KEEL_CLI_SETUP_H
#define KEEL_CLI_SETUP_H
#include "command.h"

/* ---- compiling ------------------------------------------------------------------------------- */

/* "SGD(momentum=0.9, nesterov=True)", as in Keras. */
typedef struct keel_spelled {
    char text[512];
    char value[16][64];
    keel_arg arg[17];
    keel_named named;
} keel_spelled;

int keel_setup_spelled(keel_spelled *out, const char *option, const char *text);

typedef struct keel_compile_options {
    const char *optimizer, *loss, *metrics;
    double learning_rate;
} keel_compile_options;

#define KEEL_OPTION_ROW(T, member, option, letter_, required_, kind_, value_, fallback_, help_)    \
    {                                                                                              \
        .name = (option), .letter = (letter_), .required = (required_), .kind = (kind_),           \
        .value = (value_), .fallback = (fallback_), .help = (help_), .offset = offsetof(T, member) \
    }

#define KEEL_LOSS_ROWS(T, member)                                                                  \
    KEEL_OPTION_ROW(T, member.loss, "loss", 0, false, KEEL_OPTION_TEXT, "NAME", NULL,              \
                    "loss by Keras's name, with arguments if need be: "                            \
                    "'SparseCategoricalCrossentropy(from_logits=True)' (default: the model's)"),   \
        KEEL_OPTION_ROW(T, member.metrics, "metrics", 0, false, KEEL_OPTION_TEXT, "NAMES", NULL,   \
                        "metrics, by comma: accuracy,mse (default: the model's)")

#define KEEL_OPTIMIZER_ROWS(T, member)                                                             \
    KEEL_OPTION_ROW(                                                                               \
        T, member.optimizer, "optimizer", 0, false, KEEL_OPTION_TEXT, "NAME", NULL,                \
        "one of Keras's (sgd, adam, muon ...), with arguments if need be: 'SGD(momentum=0.9, "     \
        "nesterov=True)' (default: the model's, else adam)"),                                      \
        KEEL_OPTION_ROW(T, member.learning_rate, "learning-rate", 0, false, KEEL_OPTION_REAL, "R", \
                        NULL, "learning rate (default: the optimizer's)")

/* Compile a model, or change what its file says, by the options. `who` is the model in messages. */
int keel_setup_compile(keel_model *m, const keel_compile_options *o, const char *who);

/* ---- model and data -------------------------------------------------------------------------- */

/* dtype: index of the choices of KEEL_DTYPE_ROW. */
int keel_setup_model(keel_model **out, const char *path, int dtype);

#define KEEL_DTYPE_ROW(T, member)                                                                  \
    KEEL_OPTION_ROW(T, member, "dtype", 0, false, KEEL_OPTION_CHOICE,                              \
                    "model|float32|mixed_bfloat16", "model",                                       \
                    "dtype policy of all layers: as the model's file says; float32; or "           \
                    "mixed_bfloat16, which holds values between layers in bfloat16 and weights, "  \
                    "gradients of weights and sums in float32")

typedef struct keel_data_options {
    const char *data, *image_size, *label, *inputs;
    int interpolation;
    bool no_header;
} keel_data_options;

#define KEEL_DATA_ROWS(T, member, required)                                                        \
    KEEL_OPTION_ROW(T, member.data, "data", 0, required, KEEL_OPTION_TEXT, "SRC", NULL,            \
                    "the data: a directory with a folder of images a class, a.npz with x and y, "  \
                    "x.npy,y.npy, idx files images,labels (.gz too), or a.csv"),                   \
        KEEL_OPTION_ROW(T, member.image_size, "image-size", 0, false, KEEL_OPTION_TEXT, "H,W",     \
                        NULL, "resize images to this (default: what the model takes)"),            \
        KEEL_OPTION_ROW(T, member.interpolation, "interpolation", 0, false, KEEL_OPTION_CHOICE,    \
                        "bilinear|nearest", "bilinear", "how images are resized"),                 \
        KEEL_OPTION_ROW(T, member.label, "label", 0, false, KEEL_OPTION_TEXT, "COLUMN", NULL,      \
                        "the column of a CSV file that holds the labels; of several targets "      \
                        "'age=column sex=column', for an .npz their arrays"),                      \
        KEEL_OPTION_ROW(T, member.inputs, "inputs", 0, false, KEEL_OPTION_TEXT, "LIST", NULL,      \
                        "which columns of a CSV file are the inputs: 'a,b,c', or of several "      \
                        "inputs 'left=a,b right=c'; for an .npz which arrays: 'left=array' "       \
                        "(default: what is called as the model's inputs, else all columns but "    \
                        "the label; x, or x_0, x_1)"),                                             \
        KEEL_OPTION_ROW(T, member.no_header, "no-header", 0, false, KEEL_OPTION_FLAG, NULL, NULL,  \
                        "the first line of a CSV file is a row; columns are called 0, 1, ... "     \
                        "and 1-3 is short for 1,2,3")

/* What the data are for. */
typedef enum keel_setup_use {
    KEEL_USE_LABELED,    /* targets are needed */
    KEEL_USE_VALIDATION, /* too; of a directory of MNIST's files those named t10k */
    KEEL_USE_INPUTS      /* targets are not looked at */
} keel_setup_use;

/* Open `spec` (o->data or another source) as the model's input and loss want it. */
int keel_setup_data(keel_dataset **out, const char *spec, keel_setup_use use,
                    const keel_data_options *o, const keel_model *m);

/* Keep the names of the data's classes in the model, and say their order once, where the model has
 * none yet. */
int keel_setup_class_names(keel_model *m, const keel_dataset *d);

/* Compare the classes of the data with the outputs of a classifier: more classes are refused; more
 * outputs are said in a line, where the model is about to be taught. */
int keel_setup_outputs(const keel_model *m, const keel_dataset *d, bool taught);

/* What class i is called: by the model, else by the data; NULL: it has no name. */
const char *keel_setup_class(const keel_model *m, const keel_dataset *d, int64_t i);

typedef struct keel_devices_options {
    const char *list;
    bool reproducible;
    int64_t shards;
} keel_devices_options;

#define KEEL_DEVICES_ROWS(T, member)                                                               \
    KEEL_OPTION_ROW(T, member.list, "devices", 0, false, KEEL_OPTION_TEXT, "LIST", NULL,           \
                    "cpu:0-3 is four devices, cpu:0+1 one of two cores; see keel devices "         \
                    "(default: one a core)"),                                                      \
        KEEL_OPTION_ROW(T, member.reproducible, "reproducible", 0, false, KEEL_OPTION_FLAG, NULL,  \
                        NULL,                                                                      \
                        "the same bits for any devices on any number of cores, of a kind of "      \
                        "processor; keel plan --reproducible says what that costs"),               \
        KEEL_OPTION_ROW(T, member.shards, "shards", 0, false, KEEL_OPTION_POSITIVE, "S", NULL,     \
                        "with --reproducible: cut steps into so many shards, whole ones of which " \
                        "go to devices; the result depends on it (default: 16)")

/* The order of the words is that of keel_end_of_data; _setup.c holds it to that. */
#define KEEL_END_ROW(T, member, help_)                                                             \
    KEEL_OPTION_ROW(T, member, "end", 0, false, KEEL_OPTION_CHOICE, "keep|drop|carry|wrap|error",  \
                    "keep", help_)

/* The order of the words is that of keel_float32; _setup.c holds it to that. */
#define KEEL_FLOAT32_ROW(T, member)                                                                \
    KEEL_OPTION_ROW(                                                                               \
        T, member, "float32", 0, false, KEEL_OPTION_CHOICE, "exact|fma|fast", "exact",             \
        "how float32 is multiplied: exact is by AMX, as accurate as multiply-adds, "               \
        "where it measured faster (see make tune), fma by multiply-adds only, fast by "            \
        "AMX to about 16 bits; without AMX all are fma")

/* Open the devices; keel_setup_devices says so where they share cores. */
int keel_setup_strategy(keel_strategy **out, const keel_devices_options *o);
int keel_setup_devices(keel_strategy **out, const keel_devices_options *o);

/* Can a file be made at `path`? Tried before the work whose result goes there, by making one beside
 * it and taking it away. */
int keel_setup_output(const char *option, const char *path, const char *ending);

/* A file that a command reads or writes, with the option that names it. */
typedef struct keel_setup_file {
    const char *option, *path; /* path NULL: not given. Of a pair "x.npy,y.npy" both are meant */
} keel_setup_file;

/* Refuse to write over what the command reads, or one output over another. Lists end with option
 * NULL. */
int keel_setup_apart(const keel_setup_file *outputs, const keel_setup_file *inputs);

/* ---- afterwards ------------------------------------------------------------------------------ */

/* Write a file, which appears whole or not at all; `write` answers false where it could not.
 * Answers EXIT_OK, or the exit code after it has said what is wrong. */
int keel_save_whole(const char *path, bool (*write)(FILE *f, const void *what), const void *what);

/* A tensor as an .npy file. */
int keel_save_npy(const keel_tensor *t, const char *path);

#endif
