/* See setup.h. */
#define _GNU_SOURCE /* strcasestr */
#include "setup.h"
#include "tables.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(KEEL_KEEP == 0 && KEEL_DROP == 1 && KEEL_CARRY == 2 && KEEL_WRAP == 3 &&
                   KEEL_REFUSE == 4,
               "the order of words in KEEL_END_ROW");
_Static_assert(KEEL_BILINEAR == 0 && KEEL_BICUBIC == 1 && KEEL_AREA == 2 && KEEL_LANCZOS3 == 3 &&
                   KEEL_LANCZOS5 == 4 && KEEL_GAUSSIAN == 5 && KEEL_MITCHELLCUBIC == 6 &&
                   KEEL_NEAREST == 7,
               "the order of words of --interpolation");
_Static_assert(KEEL_FLOAT32_EXACT == 0 && KEEL_FLOAT32_FMA == 1 && KEEL_FLOAT32_FAST == 2,
               "the order of words in KEEL_FLOAT32_ROW");

/* ---- names with arguments, as SGD(momentum=0.9) ---------------------------------------------- */

/* Write a value as JSON: numbers stay, Python's True, False and None become JSON's, other words are
 * quoted. */
static bool json_value(char out[64], const char *text, size_t length)
{
    static const char *const words[][2] = {
        { "True", "true" }, { "False", "false" }, { "None", "null" },
        { "true", "true" }, { "false", "false" }, { "null", "null" },
    };
    if (length == 0 || length > 60) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i][0]) == length && !strncmp(words[i][0], text, length)) {
            strcpy(out, words[i][1]);
            return true;
        }
    const bool quoted = length >= 2 && (*text == '"' || *text == '\'') && text[length - 1] == *text;
    const bool number = strspn(text, "+-.0123456789eE") >= length;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\\' || (text[i] == '"' && !(quoted && (i == 0 || i == length - 1))))
            return false;
    if (number)
        snprintf(out, 64, "%.*s", (int)length, text);
    else if (quoted)
        snprintf(out, 64, "\"%.*s\"", (int)length - 2, text + 1);
    else
        snprintf(out, 64, "\"%.*s\"", (int)length, text);
    return true;
}

int keel_setup_named(keel_parsed_name *out, const char *option, const char *text)
{
    *out = (keel_parsed_name){ 0 };
    size_t n = strlen(text);
    if (n >= sizeof out->text)
        return keel_complain(EXIT_USAGE, "--%s: %zu characters are too long", option, n);
    memcpy(out->text, text, n + 1);
    out->named.name = out->text;
    char *at = strchr(out->text, '(');
    if (!at) return -1;
    if (out->text[n - 1] != ')')
        return keel_complain(EXIT_USAGE, "--%s '%s': the ')' at the end is missing", option, text);
    out->text[n - 1] = 0;
    *at++ = 0;
    int k = 0;
    while (*(at += strspn(at, " ,"))) {
        char *key = at, *equals = strchr(at, '=');
        if (!equals || k == 16)
            return keel_complain(EXIT_USAGE, "--%s '%s': arguments are written key=value", option,
                                 text);
        *equals = 0;
        key[strcspn(key, " ")] = 0;
        at = equals + 1 + strspn(equals + 1, " ");
        const size_t length = strcspn(at, ", ");
        if (!json_value(out->value[k], at, length))
            return keel_complain(EXIT_USAGE, "--%s '%s': %s has no value", option, text, key);
        out->arg[k] = (keel_arg)KEEL_ARG_JSON(key, out->value[k]);
        at += length;
        k++;
    }
    if (k) out->named.args = out->arg;
    return -1;
}

static int parse_names(keel_parsed_name *list, int most, keel_named *named, const char *option,
                       const char *text)
{
    char one[512];
    int n = 0, code;
    for (const char *p = text; *p; n++) {
        int depth = 0;
        size_t length = 0;
        for (; p[length] && (depth || p[length] != ','); length++)
            depth += (p[length] == '(') - (p[length] == ')');
        if (n == most || length >= sizeof one)
            return keel_complain(EXIT_USAGE, "--%s '%s': too many or too long", option, text);
        snprintf(one, sizeof one, "%.*s", (int)length, p);
        if ((code = keel_setup_named(&list[n], option, one)) >= 0) return code;
        named[n] = list[n].named;
        p += length + (p[length] == ',');
    }
    return -1;
}

/* A number, or a schedule. */
static int set_learning_rate(keel_model *m, const char *text, const char *who)
{
    char old[512];
    char *end;
    const double rate = strtod(text, &end);
    const bool is_number = end != text && !*end;
    const char *replaced = keel_model_schedule(m);
    if (replaced && is_number)
        printf("%s: a learning rate of %g replaces the schedule %s\n", who, rate,
               keel_printable(old, sizeof old, replaced));
    else if (replaced)
        printf("%s: the schedule given replaces %s\n", who,
               keel_printable(old, sizeof old, replaced));
    const keel_status s =
        is_number ? keel_model_set_learning_rate(m, rate) : keel_model_set_schedule(m, text);
    return s < 0 ? keel_complain_status(s) : -1;
}

/* "bias,dense/kernel" */
static int exclude_from_decay(keel_model *m, const char *text)
{
    enum { NAMES = 32, LONGEST = 1024 };
    char copy[LONGEST];
    const char *names[NAMES];
    int n = 0;
    if (snprintf(copy, sizeof copy, "%s", text) >= LONGEST)
        return keel_complain(EXIT_USAGE, "--exclude-from-weight-decay: more than %d letters",
                             LONGEST);
    for (char *at = strtok(copy, ","); at; at = strtok(NULL, ",")) {
        if (n == NAMES)
            return keel_complain(EXIT_USAGE, "--exclude-from-weight-decay: more than %d names",
                                 NAMES);
        names[n++] = at;
    }
    const keel_status s = keel_model_exclude_from_weight_decay(m, names, n);
    return s < 0 ? keel_complain_status(s) : -1;
}

int keel_setup_compile(keel_model *m, const keel_compile_options *o, const char *who)
{
    enum { METRICS = 8 };
    keel_parsed_name optimizer, loss, metrics[METRICS];
    keel_compile c = { KEEL_COMPILE };
    const bool refused = keel_model_refused(m) != NULL;
    const bool compiled = keel_model_is_compiled(m) || refused;
    int code;
    if (!compiled && !o->loss)
        return keel_complain(
            EXIT_USAGE, "%s has no loss; give one, as --loss sparse_categorical_crossentropy", who);
    const char *name = o->optimizer ? o->optimizer : compiled ? NULL : "adam";
    if (name) {
        if ((code = keel_setup_named(&optimizer, "optimizer", name)) >= 0) return code;
        c.optimizer = optimizer.named;
    }
    if (o->loss) {
        if ((code = keel_setup_named(&loss, "loss", o->loss)) >= 0) return code;
        c.loss[0] = loss.named;
    }
    if (o->metrics) {
        code = parse_names(metrics, METRICS, c.metrics, "metrics", o->metrics);
        if (code >= 0) return code;
    } else if (!compiled && strstr(o->loss, "rossentropy")) {
        c.metrics[0].name = "accuracy";
    }
    if (refused || c.optimizer.name || c.loss[0].name || c.metrics[0].name) {
        const keel_status s = keel_model_recompile(m, &c);
        if (s < 0) return keel_complain_status(s);
    }
    char text[512];
    if (keel_model_metrics_left_out(m))
        printf("%s: trained and evaluated without %s, a metric that Keel does not have\n", who,
               keel_printable(text, sizeof text, keel_model_metrics_left_out(m)));
    if (o->undecayed && (code = exclude_from_decay(m, o->undecayed)) >= 0) return code;
    return o->learning_rate ? set_learning_rate(m, o->learning_rate, who) : -1;
}

/* ---- model and data -------------------------------------------------------------------------- */

const char *keel_setup_policy(int dtype)
{
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16" };
    return policies[dtype];
}

int keel_setup_model(keel_model **out, const char *path, const char *weights, int dtype)
{
    keel_status s = keel_model_load(out, path);
    if (s >= 0 && weights) s = keel_model_load_weights(*out, weights);
    if (s >= 0 && dtype > 0) s = keel_model_set_dtype_policy(*out, keel_setup_policy(dtype - 1));
    return s < 0 ? keel_complain_status(s) : -1;
}

static keel_label_mode label_mode(const keel_model *m, int output)
{
    const char *loss = keel_model_loss_name(m, output);
    keel_shape y;
    if (!loss || keel_model_output_shape(m, output, &y) < 0) return KEEL_LABEL_INT;
    if (!strcmp(loss, "CategoricalCrossentropy")) return KEEL_LABEL_CATEGORICAL;
    if (!strcmp(loss, "BinaryCrossentropy") && y.rank == 1 && y.dim[0] == 1)
        return KEEL_LABEL_BINARY;
    return KEEL_LABEL_INT;
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

/* The path of a directory behind "images:", "audio:" or "text:". */
static const char *without_kind(const char *spec)
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
    const char *folder = without_kind(spec);
    if (!strncmp(spec, "audio:", 6) || !strncmp(spec, "text:", 5)) return false;
    return !stat(folder, &st) && S_ISDIR(st.st_mode) && !holds_t10k(folder) &&
           !holds(folder, "train-images");
}

static int64_t class_count(const keel_model *m, int output)
{
    const char *loss = keel_model_loss_name(m, output);
    keel_shape y;
    if (!loss || !strstr(loss, "CategoricalCrossentropy")) return 0;
    return keel_model_output_shape(m, output, &y) >= 0 && y.rank == 1 && y.dim[0] > 1 ? y.dim[0]
                                                                                      : 0;
}

/* True if images to predict are in one folder, not in a folder per class: it has no folders, or the
 * model already has class names. */
static bool is_flat(const char *spec, const keel_model *m)
{
    const char *folder = without_kind(spec);
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
        p += strcspn(p, " ");
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
    if (strchr(text, '=')) return split_words(w, "inputs", text);
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
    static const char *const schemes[] = { "exec", "raw", "synthetic" };
    const size_t n = strlen(spec);
    struct stat st;
    for (int i = 0; i < 4; i++) {
        const size_t ending = strlen(endings[i]);
        if (n >= ending && !strcasecmp(spec + n - ending, endings[i])) return true;
    }
    for (int i = 0; i < 3; i++) {
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
    const char *ending = strlen(spec) < 4 ? "" : spec + strlen(spec) - 4;
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
    word_list inputs = { 0 }, targets = { 0 }, features = { 0 };
    char *folders_text = NULL, note[512];
    const char **folders = NULL;
    const int64_t n = keel_model_class_count(m);
    const char **names = calloc((size_t)n + 1, sizeof *names);
    int code = names ? -1 : keel_complain(EXIT_FAILED, "out of memory");
    if (code < 0 && o->inputs) code = split_inputs(&inputs, o->inputs);
    if (code < 0 && o->features) code = split_words(&features, "features", o->features);
    if (code < 0 && o->label && strchr(o->label, '='))
        code = split_words(&targets, "label", o->label);
    else
        d->label = o->label;
    if (code < 0 && o->class_names)
        code = split_names(&folders_text, &folders, &d->folder_count, o->class_names);
    d->folders = folders;
    name_as_model(&inputs, spec, m, true);
    if (!o->label) name_as_model(&targets, spec, m, false);
    for (int64_t i = 0; names && i < n; i++) names[i] = keel_model_class_name(m, i);
    d->class_names = names;
    d->class_name_count = n;
    d->inputs = inputs.word;
    d->n_input = inputs.n;
    d->targets = targets.word;
    d->n_target = targets.n;
    d->features = features.word;
    d->n_feature = features.n;
    keel_label_mode modes[KEEL_FIELDS_MAX];
    int64_t counts[KEEL_FIELDS_MAX];
    for (int i = 0; i < targets.n; i++) {
        const int k = output_of(m, targets.word[i], i);
        modes[i] = label_mode(m, k);
        counts[i] = class_count(m, k);
    }
    if (keel_model_output_count(m) > 1) {
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
    return code;
}

int keel_setup_data(keel_dataset **out, const char *spec, keel_setup_use use,
                    const keel_data_options *o, const keel_model *m)
{
    keel_dataset_options d = KEEL_DATASET_OPTIONS;
    keel_shape x, size;
    keel_status s = keel_model_input_shape(m, 0, &x);
    if (s < 0) return keel_complain_status(s);
    if (use != KEEL_USE_INPUTS) {
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
    d.label_mode = label_mode(m, 0);
    d.class_count = class_count(m, 0);
    if (use == KEEL_USE_VALIDATION && holds_t10k(spec)) d.subset = KEEL_SUBSET_VALIDATION;
    if (use == KEEL_USE_INPUTS && !o->class_names && is_flat(spec, m))
        d.label_mode = KEEL_LABEL_NONE;
    d.interpolation = (keel_interpolation)o->interpolation;
    d.crop_to_aspect_ratio = o->crop;
    d.pad_to_aspect_ratio = o->pad;
    d.labels_path = use == KEEL_USE_LABELED ? o->labels : NULL;
    d.follow_links = o->follow_links;
    d.sampling_rate = o->sampling_rate;
    d.max_length = o->max_length;
    d.no_header = o->no_header;
    return open_data(out, spec, use, o, m, &d);
}

/* ---- classes --------------------------------------------------------------------------------- */

const char *keel_setup_class(const keel_model *m, const keel_dataset *d, int64_t i)
{
    const char *name = keel_model_class_name(m, i);
    return name || keel_model_class_count(m) ? name : keel_dataset_class_name(d, i);
}

int keel_setup_outputs(const keel_model *m, const keel_dataset *d, bool taught)
{
    char data[256];
    keel_shape y;
    const char *loss = keel_model_loss_name(m, 0);
    if (!loss || !strstr(loss, "CategoricalCrossentropy") || keel_model_output_count(m) != 1 ||
        keel_model_output_shape(m, 0, &y) < 0 || y.rank < 1)
        return -1;
    const long long outputs = y.dim[y.rank - 1];
    const int64_t named = keel_dataset_class_count(d);
    const long long classes = named ? named : keel_dataset_largest_label(d) + 1;
    keel_printable(data, sizeof data, keel_dataset_name(d));
    if (classes > outputs)
        return keel_complain(EXIT_FAILED,
                             "%s: %lld classes (labels 0 to %lld), but the model has %lld %s: it "
                             "needs one per class",
                             data, classes, classes - 1, outputs,
                             outputs == 1 ? "output" : "outputs");
    if (taught && classes > 0 && classes < outputs)
        printf("%s: %lld %s, but the model has %lld outputs: the last %lld have no rows\n", data,
               classes, classes == 1 ? "class" : "classes", outputs, outputs - classes);
    return -1;
}

int keel_setup_class_names(keel_model *m, const keel_dataset *d)
{
    enum { SHOWN = 12 };
    char shown[64];
    const int64_t n = keel_dataset_class_count(d);
    if (!n || keel_model_class_count(m)) return -1;
    const char **names = calloc((size_t)n, sizeof *names);
    if (!names) return keel_complain(EXIT_FAILED, "out of memory");
    for (int64_t i = 0; i < n; i++) names[i] = keel_dataset_class_name(d, i);
    const keel_status s = keel_model_set_class_names(m, names, n);
    free(names);
    if (s < 0) return keel_complain_within(s, keel_dataset_name(d));
    fputs("classes in this order, saved in the model's file:", stdout);
    for (int64_t i = 0; i < n && i < SHOWN; i++)
        printf("%s %lld %s", i ? "," : "", (long long)i,
               keel_printable(shown, sizeof shown, keel_model_class_name(m, i)));
    puts(n > SHOWN ? ", ..." : "");
    return -1;
}

int keel_setup_strategy(keel_strategy **out, const keel_devices_options *o)
{
    if (o->shards && !o->reproducible)
        return keel_complain(EXIT_USAGE, "--shards needs --reproducible");
    if (o->shards > KEEL_SHARDS_MAX)
        return keel_complain(EXIT_USAGE, "--shards: at most %d", KEEL_SHARDS_MAX);
    keel_status s = keel_strategy_create(out, o->list);
    if (s >= 0 && o->reproducible)
        s = keel_strategy_reproducible(*out, o->shards ? (int)o->shards : KEEL_SHARDS);
    return s < 0 ? keel_complain_status(s) : -1;
}

int keel_setup_devices(keel_strategy **out, const keel_devices_options *o)
{
    const int code = keel_setup_strategy(out, o);
    if (code >= 0) return code;
    const int n = keel_strategy_devices(*out), cores = keel_strategy_cores(*out);
    if (n > cores)
        printf("%d devices share %d %s: the result is that of %d devices, the speed that of %d\n",
               n, cores, cores == 1 ? "core" : "cores", n, cores);
    return -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

int keel_setup_output(const char *option, const char *path, const char *ending)
{
    char tried[4096];
    struct stat st;
    const size_t n = strlen(path), e = strlen(ending);
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    if (n <= e || strcmp(path + n - e, ending))
        return keel_complain(EXIT_USAGE, "%s '%s': the name must end in %s", option, path, ending);
    if (n + 16 >= sizeof tried)
        return keel_complain(EXIT_USAGE, "%s: the path is too long", option);
    const bool there = !stat(path, &st);
    if (there && S_ISDIR(st.st_mode))
        return keel_complain(EXIT_USAGE, "%s '%s' is a directory; name a file", option, path);
    if (there && !S_ISREG(st.st_mode))
        return keel_complain(EXIT_USAGE, "%s '%s' is a device or a pipe; name a file", option,
                             path);
    if (there && access(path, W_OK))
        return keel_complain(EXIT_FAILED, "%s '%s' cannot be written: %s", option, path,
                             strerror(errno));
    snprintf(tried, sizeof tried, "%.*s.keel-try-XXXXXX", folder, path);
    const int fd = mkstemp(tried);
    if (fd < 0)
        return keel_complain(EXIT_FAILED, "%s '%s': %.*s is not writable: %s", option, path,
                             folder ? folder : 1, folder ? path : ".", strerror(errno));
    close(fd);
    unlink(tried);
    return -1;
}

/* The path with its folder resolved, so that two spellings of one file compare equal. */
static bool resolve(char out[PATH_MAX], const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (realpath(path, out)) return true;
    const int n = slash ? (int)(slash - path) + 1 : 1;
    if (snprintf(folder, sizeof folder, "%.*s", n, slash ? path : ".") >= PATH_MAX) return false;
    if (!realpath(folder, out)) return false;
    const size_t used = strlen(out);
    return snprintf(out + used, PATH_MAX - used, "/%s", name) < (int)(PATH_MAX - used);
}

static bool same_file(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    struct stat s, t;
    if (!stat(a, &s) && !stat(b, &t) && s.st_dev == t.st_dev && s.st_ino == t.st_ino) return true;
    return resolve(x, a) && resolve(y, b) && !strcmp(x, y);
}

int keel_setup_apart(const keel_setup_file *outputs, const keel_setup_file *inputs)
{
    for (const keel_setup_file *o = outputs; o->option; o++) {
        if (!o->path) continue;
        for (const keel_setup_file *p = o + 1; p->option; p++)
            if (p->path && same_file(o->path, p->path))
                return keel_complain(EXIT_USAGE, "%s and %s both write '%s'; choose two files",
                                     o->option, p->option, o->path);
        for (const keel_setup_file *i = inputs; i->option; i++) {
            char part[PATH_MAX];
            const char *comma = i->path ? strchr(i->path, ',') : NULL;
            const int n = comma ? (int)(comma - i->path) : 0;
            bool same = i->path && same_file(o->path, i->path);
            if (comma && n < PATH_MAX) {
                snprintf(part, sizeof part, "%.*s", n, i->path);
                same = same || same_file(o->path, part) || same_file(o->path, comma + 1);
            }
            if (same)
                return keel_complain(EXIT_USAGE, "%s '%s' would overwrite a file that %s reads",
                                     o->option, o->path, i->option);
        }
    }
    return -1;
}
