/* See setup.h. */
#include "setup.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(KEEL_KEEP == 0 && KEEL_DROP == 1 && KEEL_CARRY == 2 && KEEL_WRAP == 3 &&
                   KEEL_REFUSE == 4,
               "the words of KEEL_END_ROW");
_Static_assert(KEEL_FLOAT32_EXACT == 0 && KEEL_FLOAT32_FMA == 1 && KEEL_FLOAT32_FAST == 2,
               "the words of KEEL_FLOAT32_ROW");

/* ---- names with arguments -------------------------------------------------------------------- */

/* A value as JSON: numbers stay, Python's words become JSON's, other words are quoted. */
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

int keel_setup_spelled(keel_spelled *out, const char *option, const char *text)
{
    *out = (keel_spelled){ 0 };
    size_t n = strlen(text);
    if (n >= sizeof out->text)
        return keel_complain(EXIT_USAGE, "--%s: %zu characters are too many", option, n);
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
            return keel_complain(EXIT_USAGE, "--%s '%s': what is the value of %s?", option, text,
                                 key);
        out->arg[k] = (keel_arg)KEEL_ARG_JSON(key, out->value[k]);
        at += length;
        k++;
    }
    if (k) out->named.args = out->arg;
    return -1;
}

static int spelled_list(keel_spelled *list, int most, keel_named *named, const char *option,
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
        if ((code = keel_setup_spelled(&list[n], option, one)) >= 0) return code;
        named[n] = list[n].named;
        p += length + (p[length] == ',');
    }
    return -1;
}

int keel_setup_compile(keel_model *m, const keel_compile_options *o, const char *who)
{
    enum { METRICS = 8 };
    keel_spelled optimizer, loss, metrics[METRICS];
    keel_compile c = { KEEL_COMPILE };
    const bool refused = keel_model_refused(m) != NULL;
    const bool compiled = keel_model_is_compiled(m) || refused;
    int code;
    if (!compiled && !o->loss)
        return keel_complain(EXIT_USAGE,
                             "%s says no loss; give one, as --loss sparse_categorical_crossentropy",
                             who);
    const char *name = o->optimizer ? o->optimizer : compiled ? NULL : "adam";
    if (name) {
        if ((code = keel_setup_spelled(&optimizer, "optimizer", name)) >= 0) return code;
        c.optimizer = optimizer.named;
    }
    if (o->loss) {
        if ((code = keel_setup_spelled(&loss, "loss", o->loss)) >= 0) return code;
        c.loss[0] = loss.named;
    }
    if (o->metrics) {
        code = spelled_list(metrics, METRICS, c.metrics, "metrics", o->metrics);
        if (code >= 0) return code;
    } else if (!compiled && strstr(o->loss, "rossentropy")) {
        c.metrics[0].name = "accuracy";
    }
    if (refused || c.optimizer.name || c.loss[0].name || c.metrics[0].name) {
        const keel_status s = keel_model_recompile(m, &c);
        if (s < 0) return keel_complain_status(s);
    }
    if (keel_model_metrics_left_out(m))
        printf("%s: trained and evaluated without %s, a metric that keel does not have\n", who,
               keel_model_metrics_left_out(m));
    if (!isnan(o->learning_rate)) {
        if (keel_model_schedule(m))
            printf("%s: a learning rate of %g takes the place of the schedule %s\n", who,
                   o->learning_rate, keel_model_schedule(m));
        const keel_status s = keel_model_set_learning_rate(m, o->learning_rate);
        if (s < 0) return keel_complain_status(s);
    }
    return -1;
}

/* ---- model and data -------------------------------------------------------------------------- */

int keel_setup_model(keel_model **out, const char *path, int dtype)
{
    static const char *const policy[] = { NULL, "float32", "mixed_bfloat16" };
    keel_status s = keel_model_load(out, path);
    if (s >= 0 && policy[dtype]) s = keel_model_set_dtype_policy(*out, policy[dtype]);
    return s < 0 ? keel_complain_status(s) : -1;
}

static keel_label_mode label_mode(const keel_model *m)
{
    const char *loss = keel_model_loss_name(m, 0);
    keel_shape y;
    if (!loss || keel_model_output_shape(m, 0, &y) < 0) return KEEL_LABEL_INT;
    if (!strcmp(loss, "CategoricalCrossentropy")) return KEEL_LABEL_CATEGORICAL;
    if (!strcmp(loss, "BinaryCrossentropy") && y.rank == 1 && y.dim[0] == 1)
        return KEEL_LABEL_BINARY;
    return KEEL_LABEL_INT;
}

static bool holds_t10k(const char *folder)
{
    DIR *d = opendir(folder);
    bool found = false;
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = !strncmp(e->d_name, "t10k-images", 11);
    if (d) closedir(d);
    return found;
}

int keel_setup_data(keel_dataset **out, const char *spec, bool held_out, const keel_data_options *o,
                    const keel_model *m)
{
    keel_dataset_options d = KEEL_DATASET_OPTIONS;
    keel_shape x, size;
    keel_status s = keel_model_input_shape(m, 0, &x);
    if (s < 0) return keel_complain_status(s);
    if (x.rank == 3) {
        d.height = x.dim[0];
        d.width = x.dim[1];
        if (x.dim[2] == 1) d.color_mode = KEEL_COLOR_GRAYSCALE;
    }
    if (o->image_size) {
        if (!keel_shape_parse(&size, o->image_size, 2, 2))
            return keel_complain(EXIT_USAGE,
                                 "--image-size '%s': two whole numbers, as --image-size 100,100",
                                 o->image_size);
        d.height = size.dim[0];
        d.width = size.dim[1];
    }
    d.label_mode = label_mode(m);
    d.label = o->label;
    if (held_out && holds_t10k(spec)) d.subset = KEEL_SUBSET_VALIDATION;
    d.interpolation = o->interpolation ? KEEL_NEAREST : KEEL_BILINEAR;
    s = keel_dataset_open(out, spec, &d);
    return s < 0 ? keel_complain_status(s) : -1;
}

int keel_setup_output(const char *option, const char *path, const char *ending)
{
    char folder[4096];
    struct stat st;
    const size_t n = strlen(path), e = strlen(ending);
    const char *slash = strrchr(path, '/');
    if (n <= e || strcmp(path + n - e, ending))
        return keel_complain(EXIT_USAGE, "%s '%s': the name must end in %s", option, path, ending);
    if (n >= sizeof folder) return keel_complain(EXIT_USAGE, "%s: the path is too long", option);
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return keel_complain(EXIT_USAGE, "%s '%s' is a directory; name a file", option, path);
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return keel_complain(EXIT_USAGE, "%s '%s' is a device or a pipe; name a file", option,
                             path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    if (access(folder, W_OK))
        return keel_complain(EXIT_FAILED, "%s '%s': nothing can be written to %s: %s", option, path,
                             folder, strerror(errno));
    return -1;
}
