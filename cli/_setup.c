/* See setup.h. */
#include "setup.h"
#include "processes.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(KEEL_KEEP == 0 && KEEL_DROP == 1 && KEEL_CARRY == 2 && KEEL_WRAP == 3 &&
                   KEEL_REFUSE == 4,
               "the order of words in KEEL_END_ROW");
_Static_assert(KEEL_FLOAT32_EXACT == 0 && KEEL_FLOAT32_FMA == 1 && KEEL_FLOAT32_FAST == 2,
               "the order of words in KEEL_FLOAT32_ROW");

/* ---- compiling ------------------------------------------------------------------------------- */

/* A number, or a schedule. */
static int set_learning_rate(keel_model *m, const char *text, const char *who)
{
    char old[512];
    const char *end;
    const double rate = keel_decimal(text, &end);
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
    return s < 0 ? keel_complain_within(s, "--exclude-from-weight-decay") : -1;
}

int keel_setup_compile(keel_model *m, const keel_compile_options *o, const char *who)
{
    enum { METRICS = 8 };
    static keel_parsed_name optimizer, loss, metrics[METRICS]; /* larger than some stacks */
    static keel_compile c;
    c = (keel_compile){ KEEL_COMPILE };
    optimizer.schedule = NULL;
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
        code = keel_setup_named_list(metrics, METRICS, c.metrics, "metrics", o->metrics);
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
        printf("%s: trained and evaluated without metrics that Keel does not have: %s\n", who,
               keel_printable(text, sizeof text, keel_model_metrics_left_out(m)));
    if (o->undecayed && (code = exclude_from_decay(m, o->undecayed)) >= 0) return code;
    const char *rate = o->learning_rate ? o->learning_rate : optimizer.schedule;
    return rate ? set_learning_rate(m, rate, who) : -1;
}

/* ---- model and data -------------------------------------------------------------------------- */

const char *keel_setup_policy(int dtype)
{
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16" };
    return policies[dtype];
}

int keel_setup_model(keel_model **out, const char *path, const char *weights, int dtype,
                     bool trains)
{
    keel_status s = trains ? keel_model_load(out, path) : keel_model_load_without_state(out, path);
    if (s >= 0 && weights) s = keel_model_load_weights(*out, weights);
    if (s >= 0 && dtype > 0) s = keel_model_set_dtype_policy(*out, keel_setup_policy(dtype - 1));
    return s < 0 ? keel_complain_status(s) : -1;
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
    if (outputs == KEEL_DIM_OPEN) return -1; /* each batch says how many, and the step compares */
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
        printf("%s: %lld %s, but the model has %lld outputs: the last %lld %s no rows\n", data,
               classes, classes == 1 ? "class" : "classes", outputs, outputs - classes,
               outputs - classes == 1 ? "has" : "have");
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

static bool is_auto(const keel_devices_options *o)
{
    return o->share && !strcmp(o->share, "auto");
}

/* Reads "3,1" into `share`, which has a place for each character. Returns how many numbers there
 * are; 0: the text has another form. */
static int read_shares(int *share, const char *text)
{
    int n = 0;
    for (const char *p = text;; p++) {
        char *end;
        const long v = isdigit((unsigned char)*p) ? strtol(p, &end, 10) : -1;
        if (v < 0 || (*end && *end != ',')) return 0;
        share[n++] = v < INT_MAX ? (int)v : INT_MAX;
        if (!*end) return n;
        p = end;
    }
}

static int set_shares(keel_strategy *s, const char *text)
{
    int *share = calloc(strlen(text), sizeof *share), code = -1;
    if (!share) return keel_complain(EXIT_FAILED, "no memory for the numbers of --share");
    const int n = read_shares(share, text);
    const keel_status status = n ? keel_strategy_share(s, share, n) : KEEL_OK;
    if (n == 0)
        code = keel_complain(EXIT_USAGE,
                             "--share '%s': write a number for each device (3,1), or auto", text);
    else if (status < 0)
        code = keel_complain_within(status, "--share");
    free(share);
    return code;
}

int keel_setup_no_auto_share(const keel_devices_options *o)
{
    return is_auto(o) ? keel_complain(EXIT_USAGE, "--share auto measures steps of training; give "
                                                  "the numbers that keel fit or keel plan shows")
                      : -1;
}

int keel_setup_share_by_speed(keel_strategy *s, const keel_devices_options *o, keel_model *m,
                              int64_t rows, const keel_shape *inputs)
{
    if (!is_auto(o)) return -1;
    const keel_status status = keel_strategy_share_by_speed(s, m, rows, inputs);
    return status < 0 ? keel_complain_within(status, "--share auto") : -1;
}

const char *keel_share_text(const keel_strategy *s, char out[KEEL_SHARE_TEXT_MAX])
{
    enum { SHOWN = 16 };
    const int n = keel_strategy_devices(s);
    int at = 0;
    bool equal = true;
    for (int i = 1; i < n; i++)
        equal = equal && keel_strategy_share_of(s, i) == keel_strategy_share_of(s, 0);
    *out = 0;
    for (int i = 0; !equal && i < n && i < SHOWN; i++)
        at += snprintf(out + at, KEEL_SHARE_TEXT_MAX - (size_t)at, "%s%d", i ? "," : "",
                       keel_strategy_share_of(s, i));
    if (!equal && n > SHOWN) snprintf(out + at, KEEL_SHARE_TEXT_MAX - (size_t)at, ",...");
    return out;
}

int keel_setup_strategy(keel_strategy **out, const keel_devices_options *o)
{
    if (o->shards && !o->reproducible)
        return keel_complain(EXIT_USAGE, "--shards needs --reproducible");
    if (o->shards > KEEL_SHARDS_MAX)
        return keel_complain(EXIT_USAGE, "--shards: at most %d", KEEL_SHARDS_MAX);
    const int code = keel_processes_strategy(out, o->list);
    if (code >= 0) return code;
    if (o->reproducible) {
        const keel_status s =
            keel_strategy_reproducible(*out, o->shards ? (int)o->shards : KEEL_SHARDS);
        if (s < 0) return keel_complain_status(s);
    }
    if (o->share && !is_auto(o)) return set_shares(*out, o->share);
    if (keel_strategy_processes(*out) == 1) return -1;
    const keel_status s = keel_strategy_share(*out, NULL, 0); /* others may have given some */
    return s < 0 ? keel_complain_within(s, "--share") : -1;
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

int keel_setup_try_beside(const char *path)
{
    char tried[PATH_MAX];
    char *real = realpath(path, NULL); /* the file is written where a link leads */
    const char *at = real ? real : path, *slash = strrchr(at, '/');
    snprintf(tried, sizeof tried, "%.*s.keel-try-XXXXXX", slash ? (int)(slash - at) + 1 : 0, at);
    free(real);
    const int fd = mkstemp(tried);
    if (fd >= 0) unlink(tried); /* now, so that nothing is left if the process is killed */
    return fd;
}

int keel_setup_output(const char *option, const char *path, const char *ending)
{
    struct stat st;
    const size_t n = strlen(path), e = strlen(ending);
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    if (n <= e || strcmp(path + n - e, ending))
        return keel_complain(EXIT_USAGE, "%s '%s': the name must end in %s", option, path, ending);
    if (n + 32 >= PATH_MAX) return keel_complain(EXIT_USAGE, "%s: the path is too long", option);
    const bool there = !stat(path, &st);
    if (there && S_ISDIR(st.st_mode))
        return keel_complain(EXIT_USAGE, "%s '%s' is a directory; name a file", option, path);
    if (there && !S_ISREG(st.st_mode))
        return keel_complain(EXIT_USAGE, "%s '%s' is a device or a pipe; name a file", option,
                             path);
    if (there && access(path, W_OK))
        return keel_complain(EXIT_FAILED, "%s '%s' cannot be written: %s", option, path,
                             strerror(errno));
    if (!there && !lstat(path, &st))
        return keel_complain(EXIT_USAGE, "%s '%s' is a link that leads nowhere; name a file",
                             option, path);
    const int fd = keel_setup_try_beside(path);
    if (fd < 0)
        return keel_complain(EXIT_FAILED, "%s '%s': %.*s is not writable: %s", option, path,
                             folder ? folder : 1, folder ? path : ".", strerror(errno));
    close(fd);
    return -1;
}

int keel_setup_own_table(const char *option, const char *path, const char *begin)
{
    char first[32] = "";
    FILE *f = path ? fopen(path, "r") : NULL;
    const bool holds = f && fgets(first, sizeof first, f);
    if (f) fclose(f);
    if (!holds || !strncmp(first, begin, strlen(begin))) return -1;
    return keel_complain(EXIT_USAGE,
                         "%s '%s' would overwrite a file that keel has not written: its first line "
                         "does not begin with '%s'; name another file, or remove this one",
                         option, path, begin);
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
    if (!strcmp(a, b)) return true;
    if (!stat(a, &s) && !stat(b, &t) && s.st_dev == t.st_dev && s.st_ino == t.st_ino) return true;
    return resolve(x, a) && resolve(y, b) && !strcmp(x, y);
}

int keel_setup_apart(const keel_setup_file *outputs, const keel_setup_file *inputs)
{
    for (const keel_setup_file *o = outputs; o->option; o++) {
        if (!o->path) continue;
        for (const keel_setup_file *p = o + 1; p->option; p++)
            if (p->path && !(o->is_folder && p->is_folder) && same_file(o->path, p->path))
                return keel_complain(EXIT_USAGE, "%s and %s%s both write '%s'; choose two paths",
                                     o->option, strcmp(o->option, p->option) ? "" : "another ",
                                     p->option, o->path);
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
