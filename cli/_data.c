/* Opens SRC of --data in the form that a model's inputs and loss need; see setup.h. */
#define _GNU_SOURCE /* strcasestr */
#include "processes.h"
#include "setup.h"
#include "tables.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

_Static_assert(KEEL_BILINEAR == 0 && KEEL_BICUBIC == 1 && KEEL_AREA == 2 && KEEL_LANCZOS3 == 3 &&
                   KEEL_LANCZOS5 == 4 && KEEL_GAUSSIAN == 5 && KEEL_MITCHELLCUBIC == 6 &&
                   KEEL_NEAREST == 7,
               "the order of words of --interpolation");

static keel_label_mode label_mode(const keel_model *m, int output)
{
    const char *loss = m ? keel_model_loss_name(m, output) : NULL;
    keel_shape y;
    if (!loss || keel_model_output_shape(m, output, &y) < 0) return KEEL_LABEL_INT;
    if (!strcmp(loss, "CategoricalCrossentropy")) return KEEL_LABEL_CATEGORICAL;
    if (!strcmp(loss, "BinaryCrossentropy") && y.rank == 1 && y.dim[0] == 1)
        return KEEL_LABEL_BINARY;
    return KEEL_LABEL_INT;
}

/* The first output that has a loss: that of targets without a name. */
static int first_compared(const keel_model *m)
{
    const int n = m ? keel_model_output_count(m) : 0;
    for (int k = 0; k < n; k++)
        if (keel_model_loss_name(m, k)) return k;
    return 0;
}

static bool holds(const char *folder, const char *begin)
{
    DIR *d = opendir(folder);
    bool found = false;
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = !strncmp(e->d_name, begin, strlen(begin));
    if (d) closedir(d);
    return found;
}

static bool holds_t10k(const char *folder)
{
    return holds(folder, "t10k-images");
}

const char *keel_setup_folder(const char *spec)
{
    static const char *const kinds[] = { "images:", "audio:", "text:" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(spec, kinds[i], strlen(kinds[i]))) return spec + strlen(kinds[i]);
    return spec;
}

/* True if a folder has images, not MNIST's files. */
static bool holds_images(const char *spec)
{
    struct stat st;
    const char *folder = keel_setup_folder(spec);
    if (!strncmp(spec, "audio:", 6) || !strncmp(spec, "text:", 5)) return false;
    return !stat(folder, &st) && S_ISDIR(st.st_mode) && !holds_t10k(folder) &&
           !holds(folder, "train-images");
}

static int64_t class_count(const keel_model *m, int output)
{
    const char *loss = m ? keel_model_loss_name(m, output) : NULL;
    keel_shape y;
    if (!loss || !strstr(loss, "CategoricalCrossentropy")) return 0;
    return keel_model_output_shape(m, output, &y) >= 0 && y.rank == 1 && y.dim[0] > 1 ? y.dim[0]
                                                                                      : 0;
}

/* True if images to predict are in one folder, not in a folder per class: it has no folders, or the
 * model already has class names. */
static bool is_flat(const char *spec, const keel_model *m)
{
    const char *folder = keel_setup_folder(spec);
    DIR *d = opendir(folder);
    bool flat = d != NULL;
    for (const struct dirent *e; flat && (e = readdir(d));) {
        char path[4096];
        struct stat st;
        if (e->d_name[0] == '.') continue;
        const int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        flat = n < (int)sizeof path && (stat(path, &st) || !S_ISDIR(st.st_mode));
    }
    if (!d) return false;
    closedir(d);
    return flat || keel_model_class_count(m) > 0;
}

/* --inputs and --label, split into words: "left=a,b right=c". */
typedef struct word_list {
    char *text;
    const char *word[KEEL_FIELDS_MAX];
    int n;
} word_list;

static int split_words(word_list *w, const char *option, const char *text)
{
    if (!(w->text = strdup(text))) return keel_complain(EXIT_FAILED, "out of memory");
    for (char *p = w->text; *(p += strspn(p, " "));) {
        if (w->n == KEEL_FIELDS_MAX)
            return keel_complain(EXIT_USAGE, "--%s: more than %d names", option, KEEL_FIELDS_MAX);
        w->word[w->n++] = p;
        p += keel_tables_until(p, ' ');
        if (*p) *p++ = 0;
    }
    return -1;
}

/* The class names of --class-names, of which there may be many. */
static int split_names(char **text, const char ***name, int64_t *n, const char *given)
{
    int64_t count = 1;
    for (const char *p = given; *p; p++) count += *p == ',';
    *text = strdup(given);
    *name = calloc((size_t)count, sizeof **name);
    if (!*text || !*name) return keel_complain(EXIT_FAILED, "out of memory");
    char *p = *text;
    for (*n = 0; *n < count; p += strlen(p) + 1) {
        p[strcspn(p, ",")] = 0;
        if (!*p) return keel_complain(EXIT_USAGE, "--class-names '%s': a name is empty", given);
        (*name)[(*n)++] = p;
    }
    return -1;
}

/* "a,b" are the columns of the only input. */
static int split_inputs(word_list *w, const char *text)
{
    char *one = NULL;
    if (text[keel_tables_until(text, '=')]) return split_words(w, "inputs", text);
    if (!(one = malloc(strlen(text) + 3))) return keel_complain(EXIT_FAILED, "out of memory");
    sprintf(one, "x=%s", text);
    w->text = one;
    w->word[w->n++] = one;
    return -1;
}

/* The first line of a CSV file, truncated to `size`; "" if it cannot be read. */
static void header_of(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    *out = 0;
    if (!f) return;
    if (fgets(out, (int)size, f)) {
        const bool whole = strchr(out, '\n');
        out[strcspn(out, "\r\n")] = 0;
        for (char *c = out; *c; c++)
            if ((unsigned char)*c < 32 || *c == 127) *c = '?';
        if (!whole && strlen(out) > 3) strcpy(out + strlen(out) - 3, "...");
    }
    fclose(f);
}

/* Refuse a CSV file without a label column, since there is nothing to learn. */
static int check_label(const char *spec, const keel_data_options *o)
{
    char columns[512];
    struct stat st;
    const size_t n = strlen(spec);
    if (o->label || !keel_tables_is(spec)) return -1;
    if (strcasecmp(spec + n - 4, ".csv") || stat(spec, &st) || !S_ISREG(st.st_mode))
        return -1; /* what is missing is found when it is opened */
    header_of(spec, columns, sizeof columns);
    if (o->no_header)
        return keel_complain(EXIT_USAGE,
                             "%s: give the column of the labels: --label N, counted from 0; the "
                             "first line is %s",
                             spec, columns);
    return keel_complain(EXIT_USAGE,
                         "%s: give the column of the labels: --label COLUMN, one "
                         "of %s",
                         spec, columns);
}

/* True if each input takes one column of a CSV file, so that columns may have the names of inputs.
 */
static bool takes_columns(const keel_model *m)
{
    for (int i = 0, n = keel_model_input_count(m); n == 1 && i < n; i++) {
        keel_shape s;
        if (keel_model_input_shape(m, i, &s) < 0) return false;
        for (int k = 0; k < s.rank; k++)
            if (s.dim[k] != 1) return false;
    }
    return true;
}

/* True if SRC has named parts that may have the names of a model's inputs: a file of arrays,
 * TFRecord files or tar shards, or one of the schemes that name what they give. */
static bool has_named_parts(const char *spec)
{
    static const char *const endings[] = { ".npz", ".h5", ".hdf5", ".tar" };
    static const char *const schemes[] = { "exec", "raw", "synthetic", "tfrecord" };
    const size_t n = strlen(spec);
    struct stat st;
    for (int i = 0; i < 4; i++) {
        const size_t ending = strlen(endings[i]);
        if (n >= ending && !strcasecmp(spec + n - ending, endings[i])) return true;
    }
    for (int i = 0; i < 4; i++) {
        const size_t scheme = strlen(schemes[i]);
        if (!strncmp(spec, schemes[i], scheme) && (spec[scheme] == '(' || spec[scheme] == ':'))
            return true;
    }
    return strstr(spec, ".tfrec") || strstr(spec, ".tar.") || strpbrk(spec, "*{") ||
           (!stat(spec, &st) && S_ISDIR(st.st_mode));
}

/* Without options, look for arrays of an .npz, parts of records and keys of JSON lines by the names
 * of the model's inputs and outputs, and for columns of a CSV file by the names of its inputs. */
static void name_as_model(word_list *w, const char *spec, const keel_model *m, bool inputs)
{
    const bool lines = keel_tables_is(spec) && strcasestr(spec, "json");
    const bool columns = inputs && !lines && keel_tables_is(spec) && takes_columns(m);
    const int n = inputs ? keel_model_input_count(m) : keel_model_output_count(m);
    if (w->n || (!has_named_parts(spec) && !columns && !lines)) return;
    for (int i = 0; i < n && i < KEEL_FIELDS_MAX; i++)
        w->word[w->n++] = inputs ? keel_model_input_name(m, i) : keel_model_output_name(m, i);
}

/* The output that a target "left=column" is for: by its name, else in order. */
static int output_of(const keel_model *m, const char *target, int order)
{
    const size_t length = strcspn(target, "=");
    for (int k = 0; k < keel_model_output_count(m); k++) {
        const char *name = keel_model_output_name(m, k);
        if (strlen(name) == length && !strncmp(name, target, length)) return k;
    }
    return order;
}

/* Open data with the fields of the options and the class names of the model. */
static int open_data(keel_dataset **out, const char *spec, keel_setup_use use,
                     const keel_data_options *o, const keel_model *m, keel_dataset_options *d)
{
    word_list inputs = { 0 }, targets = { 0 }, features = { 0 }, weights = { 0 };
    char *folders_text = NULL, note[512];
    const char **folders = NULL;
    const bool learns = m && use != KEEL_USE_INPUTS; /* or compares */
    const int64_t n = learns ? keel_model_class_count(m) : 0;
    const char **names = calloc((size_t)n + 1, sizeof *names);
    int code = names ? -1 : keel_complain(EXIT_FAILED, "out of memory");
    if (code < 0 && o->inputs) code = split_inputs(&inputs, o->inputs);
    if (code < 0 && o->features) code = split_words(&features, "features", o->features);
    if (code < 0 && o->label && o->label[keel_tables_until(o->label, '=')])
        code = split_words(&targets, "label", o->label);
    else
        d->label = o->label;
    if (code < 0 && o->class_names)
        code = split_names(&folders_text, &folders, &d->folder_count, o->class_names);
    d->folders = folders;
    const char *weight = o->sample_weight;
    if (code < 0 && weight && weight[keel_tables_until(weight, '=')])
        code = split_words(&weights, "sample-weight", weight);
    else
        d->sample_weight = weight;
    if (m) name_as_model(&inputs, spec, m, true);
    if (m && !o->label) name_as_model(&targets, spec, m, false);
    for (int64_t i = 0; names && i < n; i++) names[i] = keel_model_class_name(m, i);
    d->class_names = names;
    d->class_name_count = n;
    d->inputs = inputs.word;
    d->n_input = inputs.n;
    d->targets = targets.word;
    d->n_target = targets.n;
    d->sample_weights = weights.word;
    d->n_sample_weight = weights.n;
    d->features = features.word;
    d->n_feature = features.n;
    keel_label_mode modes[KEEL_FIELDS_MAX];
    int64_t counts[KEEL_FIELDS_MAX];
    const int outputs = m ? keel_model_output_count(m) : 0;
    if (!targets.n && !o->label)
        d->n_numbered = outputs < KEEL_FIELDS_MAX ? outputs : KEEL_FIELDS_MAX;
    for (int i = 0; m && i < targets.n + d->n_numbered; i++) {
        const int k = targets.n ? output_of(m, targets.word[i], i) : i;
        modes[i] = learns ? label_mode(m, k) : KEEL_LABEL_INT;
        counts[i] = learns ? class_count(m, k) : 0;
    }
    if (outputs > 1) {
        d->target_modes = modes;
        d->target_class_counts = counts;
    }
    keel_table_options tables = { 0 };
    if (code < 0) code = keel_tables_read(&tables, d, o, use);
    if (code < 0) {
        const keel_status s = keel_dataset_open(out, spec, d);
        if (s < 0)
            code = use == KEEL_USE_VALIDATION ? keel_complain_within(s, "validation data")
                                              : keel_complain_status(s);
        else if (keel_dataset_note(*out))
            puts(keel_printable(note, sizeof note, keel_dataset_note(*out)));
    }
    keel_tables_free(&tables);
    free(names);
    free(folders);
    free(folders_text);
    free(inputs.text);
    free(targets.text);
    free(features.text);
    free(weights.text);
    return code;
}

static int open_own(keel_dataset **out, const char *spec, keel_setup_use use,
                    const keel_data_options *o, const keel_model *m)
{
    keel_dataset_options d = KEEL_DATASET_OPTIONS;
    keel_shape x = { 0 }, size;
    keel_status s = m ? keel_model_input_shape(m, 0, &x) : KEEL_OK;
    if (s < 0) return keel_complain_status(s);
    if (m && use != KEEL_USE_INPUTS) {
        const int code = check_label(spec, o);
        if (code >= 0) return code;
    }
    if (x.rank == 3) {
        d.height = x.dim[0] > 0 ? x.dim[0] : 0;
        d.width = x.dim[1] > 0 ? x.dim[1] : 0;
        if (x.dim[2] == 1) d.color_mode = KEEL_COLOR_GRAYSCALE;
        if (x.dim[2] == 4) d.color_mode = KEEL_COLOR_RGBA;
    }
    if (x.rank == 2 && x.dim[0] > 0) d.audio_length = x.dim[0];
    if (o->audio_length) d.audio_length = o->audio_length;
    if (o->image_size) {
        if (!keel_shape_parse(&size, o->image_size, 2, 2))
            return keel_complain(EXIT_USAGE,
                                 "--image-size '%s': two whole numbers, as --image-size 100,100",
                                 o->image_size);
        d.height = size.dim[0];
        d.width = size.dim[1];
    }
    if ((!d.height || !d.width) && x.rank == 3 && holds_images(spec))
        return keel_complain(EXIT_USAGE,
                             "%s: the model takes images of any size: give a size, as "
                             "--image-size 100,100",
                             spec);
    if (use != KEEL_USE_INPUTS) { /* else any labels may lie beside them: -1, or other classes */
        d.label_mode = label_mode(m, first_compared(m));
        d.class_count = class_count(m, first_compared(m));
    }
    if (use == KEEL_USE_VALIDATION && holds_t10k(spec)) d.subset = KEEL_SUBSET_VALIDATION;
    if (use == KEEL_USE_INPUTS && !o->class_names && is_flat(spec, m))
        d.label_mode = KEEL_LABEL_NONE;
    d.interpolation = (keel_interpolation)o->interpolation;
    d.crop_to_aspect_ratio = o->crop;
    d.pad_to_aspect_ratio = o->pad;
    d.image_dct_scaling = o->dct_scaling;
    d.labels_path = use == KEEL_USE_VALIDATION || use == KEEL_USE_INPUTS ? NULL : o->labels;
    d.unchecked = use == KEEL_USE_VERIFY;
    d.follow_links = o->follow_links;
    d.skip_list = o->skip_list;
    if (o->input_timeout <= 0)
        return keel_complain(EXIT_USAGE, "--input-timeout %g: must be above 0", o->input_timeout);
    d.watch = keel_setup_watch(o->input_timeout);
    d.sampling_rate = o->sampling_rate;
    d.max_length = o->max_length;
    d.no_header = o->no_header;
    const int code = open_data(out, spec, use, o, m, &d);
    return code >= 0 || use == KEEL_USE_VALIDATION ? code : keel_setup_unread(spec, *out, o);
}

/* ---- several processes ----------------------------------------------------------------------- */

/* True if SRC starts a program, itself or as a pipeline. True also for some that do not, which are
 * then only opened one process after another. */
static bool may_start_program(const char *spec)
{
    enum { MOST = 1 << 20 };
    const size_t n = strlen(spec);
    if (strstr(spec, "exec:") || strstr(spec, "exec(")) return true;
    if (n < 5 || strcasecmp(spec + n - 5, ".toml")) return false;
    FILE *f = fopen(spec, "rb");
    char *text = f ? calloc(MOST + 1, 1) : NULL;
    const size_t got = text ? fread(text, 1, MOST, f) : 0;
    const bool may = text && (got == MOST || strstr(text, "exec") || strstr(text, ".toml"));
    free(text);
    if (f) fclose(f);
    return may;
}

/* A stream is read by the first process: the others make a dataset of what it says of it. */
static int receive_description(keel_dataset **out, int64_t n_bytes)
{
    void *text = malloc((size_t)n_bytes);
    int code = text ? keel_processes_broadcast(text, (size_t)n_bytes)
                    : keel_complain(EXIT_FAILED, "out of memory");
    if (code < 0) {
        const keel_status s = keel_dataset_from_description(out, text, (size_t)n_bytes);
        if (s < 0) code = keel_complain_within(s, "the data of process 0");
    }
    free(text);
    return code;
}

static int send_description(const keel_dataset *d)
{
    keel_tensor text = { 0 };
    const keel_status s = keel_dataset_describe(d, &text);
    if (s < 0) return keel_complain_status(s);
    int64_t n_bytes = s == KEEL_OK ? text.shape.dim[0] : 0;
    int code = keel_processes_agree(&n_bytes);
    if (code < 0 && s == KEEL_OK) code = keel_processes_broadcast(text.data, (size_t)n_bytes);
    keel_tensor_free(&text);
    return code;
}

int keel_setup_data(keel_dataset **out, const char *spec, keel_setup_use use,
                    const keel_data_options *o, const keel_model *m)
{
    int64_t starts = may_start_program(spec), n_bytes = 0;
    int code = use == KEEL_USE_VALIDATION ? -1 : keel_setup_unread(spec, NULL, o);
    if (code < 0 && keel_processes_several()) code = keel_processes_agree(&starts);
    if (code >= 0) return code;
    if (!starts || !keel_processes_several()) return open_own(out, spec, use, o, m);
    if (keel_processes_first()) {
        code = open_own(out, spec, use, o, m);
        return code < 0 ? send_description(*out) : code;
    }
    if ((code = keel_processes_agree(&n_bytes)) >= 0) return code;
    return n_bytes > 0 ? receive_description(out, n_bytes) : open_own(out, spec, use, o, m);
}

int keel_setup_threads(int *out, int64_t n, int most)
{
    if (n > most)
        return keel_complain(EXIT_USAGE, "--threads %lld: %d are the most", (long long)n, most);
    *out = (int)n;
    return -1;
}

int keel_setup_input_memory(int64_t *out, const char *text)
{
    *out = 0;
    if (!text || keel_size_parse(out, text)) return -1;
    return keel_complain(EXIT_USAGE, "--input-memory '%s': give bytes, as 512M or 2G", text);
}

const char *keel_unit_text(const keel_dataset *d, int64_t n)
{
    if (keel_dataset_is_batched(d)) return n == 1 ? "batch" : "batches";
    return n == 1 ? "row" : "rows";
}

const char *keel_cardinality_text(char *out, size_t size, const keel_dataset *d)
{
    char text[KEEL_NUMBER_MAX];
    const int64_t n = keel_dataset_cardinality(d);
    const char *what = keel_unit_text(d, n);
    if (n == KEEL_CARDINALITY_INFINITE)
        snprintf(out, size, "%s without end", what);
    else if (n == KEEL_CARDINALITY_UNKNOWN)
        snprintf(out, size, "an unknown number of %s", what);
    else
        snprintf(out, size, "%s %s", keel_grouped(text, n), what);
    return out;
}
