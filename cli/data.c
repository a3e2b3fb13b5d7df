/* keel data: shows what a dataset or a pipeline gives: its fields, how many elements, the first of
 * them, and how fast they come. */
#include "setup.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <time.h>

typedef struct data_options {
    const char *image_size, *label, *skip_list;
    int64_t rows, threads, seed;
    double seconds, input_timeout;
    bool stages, no_header, verify;
} data_options;

/* ---- one value ------------------------------------------------------------------------------- */

static double number_at(const keel_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case KEEL_FLOAT32:
        return (double)((const float *)t->data)[i];
    case KEEL_FLOAT64:
        return ((const double *)t->data)[i];
    case KEEL_INT32:
        return ((const int32_t *)t->data)[i];
    case KEEL_INT64:
        return (double)((const int64_t *)t->data)[i];
    default:
        return ((const uint8_t *)t->data)[i];
    }
}

static int64_t count_of(const keel_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->shape.rank; d++) n *= t->shape.dim[d];
    return n;
}

static void print_text(const keel_string *s)
{
    char raw[64], safe[64];
    const int n = s->n_bytes < 40 ? (int)s->n_bytes : 40;
    snprintf(raw, sizeof raw, "%.*s%s", n, s->data, s->n_bytes > n ? "..." : "");
    printf("\"%s\"", keel_printable(safe, sizeof safe, raw));
}

/* A short value whole, a long one by its first numbers and its range. */
static void print_value(const keel_tensor *t)
{
    enum { SHOWN = 6 };
    const int64_t n = count_of(t);
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        if (i) printf(" ");
        if (t->dtype == KEEL_STRING)
            print_text(&((const keel_string *)t->data)[i]);
        else
            printf("%.7g", number_at(t, i));
    }
    if (n <= SHOWN || t->dtype == KEEL_STRING) return;
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double v = number_at(t, i);
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    printf(" ... (%" PRId64 " numbers, %.7g to %.7g)", n, least, most);
}

/* ---- the parts of the answer ----------------------------------------------------------------- */

static const char *role_name(keel_data_role role)
{
    return role == KEEL_ROLE_INPUT ? "input" : role == KEEL_ROLE_TARGET ? "target" : "weight";
}

static const char *dtype_name(keel_dtype t)
{
    static const char *const name[] = { "float32", "float64", "uint8", "int32",
                                        "int64",   "bool",    "text" };
    return (unsigned)t < sizeof name / sizeof *name ? name[t] : "?";
}

static const char *shape_text(char *out, size_t size, const keel_shape *s)
{
    size_t at = (size_t)snprintf(out, size, "(");
    for (int d = 0; d < s->rank; d++) {
        const char *comma = d ? ", " : "";
        if (s->dim[d] == KEEL_DIM_OPEN)
            at += (size_t)snprintf(out + at, size - at, "%sNone", comma);
        else
            at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, comma, s->dim[d]);
    }
    snprintf(out + at, size - at, s->rank == 1 ? ",)" : ")");
    return out;
}

static void print_spec(const keel_dataset *d)
{
    char text[KEEL_NUMBER_MAX], name[256];
    const int64_t n = keel_dataset_cardinality(d);
    const bool batches = keel_dataset_is_batched(d);
    const char *what = batches ? "batches" : "rows";
    printf("%s\n", keel_printable(name, sizeof name, keel_dataset_name(d)));
    if (n == KEEL_CARDINALITY_INFINITE)
        printf("  %s without end\n", what);
    else if (n == KEEL_CARDINALITY_UNKNOWN)
        printf("  an unknown number of %s\n", what);
    else
        printf("  %s %s\n", keel_grouped(text, n), what);
    for (int i = 0; i < keel_dataset_field_count(d); i++) {
        keel_data_field f;
        if (keel_dataset_field(d, i, &f) < 0) continue;
        char shape[160];
        printf("  %-6s %-16s %-8s %s%s\n", role_name(f.role),
               keel_printable(name, sizeof name, f.path), dtype_name(f.dtype),
               shape_text(shape, sizeof shape, &f.shape), batches ? " a row" : "");
    }
    for (int64_t i = 0; i < keel_dataset_class_count(d) && i < 20; i++)
        printf("%s%s", i ? ", " : "  classes: ",
               keel_printable(name, sizeof name, keel_dataset_class_name(d, i)));
    if (keel_dataset_class_count(d)) printf("\n");
    if (keel_dataset_note(d))
        printf("  %s\n", keel_printable(name, sizeof name, keel_dataset_note(d)));
}

static int print_rows(const keel_dataset *d, const data_options *o, const keel_reader_options *r)
{
    keel_reader *reader;
    const keel_tensor *field;
    keel_status s = keel_reader_create(&reader, d, r);
    if (s < 0) return keel_complain_status(s);
    for (int64_t k = 0; k < o->rows && (s = keel_reader_next(reader, &field)) == KEEL_OK; k++) {
        printf("%" PRId64 ":\n", k);
        for (int i = 0; i < keel_dataset_field_count(d); i++) {
            keel_data_field f;
            if (keel_dataset_field(d, i, &f) < 0) continue;
            printf("  %-16s ", f.path);
            print_value(&field[i]);
            printf("\n");
        }
    }
    keel_reader_destroy(reader);
    return s < 0 ? keel_complain_status(s) : -1;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rows a second of a dataset alone; 0: it has none. */
static keel_status measure(const keel_dataset *d, double seconds, const keel_reader_options *r,
                           double *rate)
{
    keel_reader *reader;
    const keel_tensor *field;
    int64_t rows = 0;
    *rate = 0;
    keel_status s = keel_reader_create(&reader, d, r);
    if (s < 0) return s;
    const double begin = seconds_now();
    double end = begin;
    while (end - begin < seconds) {
        s = keel_reader_next(reader, &field);
        if (s < 0 || (s == KEEL_END && !rows)) break;
        if (s == KEEL_OK) rows += keel_dataset_is_batched(d) ? field[0].shape.dim[0] : 1;
        end = seconds_now();
    }
    keel_reader_destroy(reader);
    if (rows) *rate = (double)rows / (end - begin);
    return s < 0 ? s : KEEL_OK;
}

/* A line for the source and each stage behind it: with all that comes before. */
static keel_status print_speeds(const keel_dataset *d, double seconds, const keel_reader_options *r)
{
    double rate;
    char text[KEEL_NUMBER_MAX], name[128];
    const keel_dataset *parent = keel_dataset_parent(d, 0);
    if (parent) {
        const keel_status s = print_speeds(parent, seconds, r);
        if (s < 0) return s;
    }
    const char *stage = keel_dataset_stage(d);
    const keel_status s = measure(d, seconds, r, &rate);
    if (s < 0) return s;
    printf("  %-28s %14s rows a second\n",
           stage ? stage : keel_printable(name, sizeof name, keel_dataset_name(d)),
           rate > 0 ? keel_grouped(text, (int64_t)rate) : "no");
    return KEEL_OK;
}

static int print_speed(const keel_dataset *d, const data_options *o, const keel_reader_options *r)
{
    int n = 1;
    for (const keel_dataset *p = d; (p = keel_dataset_parent(p, 0));) n++;
    printf("%s\n", n > 1 ? "read alone, up to each stage:" : "read alone:");
    const keel_status s = print_speeds(d, o->seconds / n, r);
    return s < 0 ? keel_complain_status(s) : -1;
}

/* Read everything once, and name what cannot be read. */
static int verify(const keel_dataset *d, const keel_reader_options *r)
{
    enum { SHOWN = 20 };
    keel_reader *reader;
    const keel_tensor *field;
    char good[KEEL_NUMBER_MAX], bad[KEEL_NUMBER_MAX], text[1024];
    int64_t n = 0, failed = 0;
    if (keel_dataset_cardinality(d) == KEEL_CARDINALITY_INFINITE)
        return keel_complain(EXIT_USAGE, "--verify: the data never ends");
    keel_status s = keel_reader_create(&reader, d, r);
    if (s < 0) return keel_complain_status(s);
    unsigned same = 0; /* failures without a new element: a stream that cannot go on */
    while ((s = keel_reader_next(reader, &field)) != KEEL_END && same < SHOWN) {
        n += s == KEEL_OK;
        same = s == KEEL_OK ? 0 : same + 1;
        if (s == KEEL_OK) continue;
        if (failed++ < SHOWN) printf("%s\n", keel_printable(text, sizeof text, keel_error()));
        keel_reader_pass(reader);
    }
    const char *note = keel_reader_note(reader);
    if (note) printf("%s\n", keel_printable(text, sizeof text, note));
    keel_reader_destroy(reader);
    if (keel_dataset_warnings(d, text, sizeof text)) printf("%s\n", text);
    if (failed > SHOWN) printf("and more\n");
    const char *what = keel_dataset_is_batched(d) ? "batches" : "rows";
    keel_grouped(good, n);
    keel_grouped(bad, failed);
    if (failed)
        return keel_complain(EXIT_FAILED, "%s %s can be read, %s cannot%s", good, what, bad,
                             s == KEEL_END ? "" : "; the rest was not tried");
    printf("all %s %s can be read\n", good, what);
    return EXIT_OK;
}

static int print_stages(void)
{
    for (int i = 0; keel_stage_class(i); i++) {
        char *text;
        const keel_status s = keel_stage_help(keel_stage_class(i), &text);
        if (s < 0) return keel_complain_status(s);
        printf("%s%s", i ? "\n" : "", text);
        keel_model_summary_free(text);
    }
    return EXIT_OK;
}

static int run(const void *options, int n_arg, char **arg)
{
    const data_options *o = options;
    keel_dataset *d;
    keel_dataset_options with = KEEL_DATASET_OPTIONS;
    keel_shape size;
    if (o->stages) return print_stages();
    if (!n_arg) return keel_complain(EXIT_USAGE, "give SRC, or --stages for the list of stages");
    if (o->image_size) {
        if (!keel_shape_parse(&size, o->image_size, 2, 2))
            return keel_complain(EXIT_USAGE, "--image-size '%s': two whole numbers, as 100,100",
                                 o->image_size);
        with.height = size.dim[0];
        with.width = size.dim[1];
    }
    with.label = o->label;
    with.no_header = o->no_header;
    with.unchecked = o->verify;
    with.skip_list = o->skip_list;
    if (o->input_timeout <= 0)
        return keel_complain(EXIT_USAGE, "--input-timeout %g: must be above 0", o->input_timeout);
    with.watch = keel_setup_watch(o->input_timeout);
    keel_status s = keel_dataset_open(&d, arg[0], &with);
    if (s < 0) return keel_complain_status(s);
    keel_reader_options r = KEEL_READER_OPTIONS;
    r.seed = (uint64_t)o->seed;
    r.threads = (int)o->threads;
    r.watch = with.watch;
    print_spec(d);
    if (o->verify) {
        const int code = verify(d, &r);
        keel_dataset_destroy(d);
        return code;
    }
    int code = o->rows ? print_rows(d, o, &r) : -1;
    if (code < 0 && o->seconds > 0) code = print_speed(d, o, &r);
    keel_dataset_destroy(d);
    return code < 0 ? EXIT_OK : code;
}

#define T data_options
static const keel_option options[] = {
    { "rows", 'n', false, KEEL_OPTION_COUNT, "N", "3", "show the first N rows or batches",
      offsetof(T, rows) },
    { "seconds", 0, false, KEEL_OPTION_REAL, "S", "1",
      "measure for S seconds how many rows a second come up to each stage; 0: do not",
      offsetof(T, seconds) },
    { "threads", 0, false, KEEL_OPTION_COUNT, "N", "0",
      "threads that read ahead (default: one for each core)", offsetof(T, threads) },
    { "seed", 0, false, KEEL_OPTION_COUNT, "N", "0", "of shuffles and random stages",
      offsetof(T, seed) },
    { "image-size", 0, false, KEEL_OPTION_TEXT, "H,W", NULL, "resize images to this size",
      offsetof(T, image_size) },
    { "label", 0, false, KEEL_OPTION_TEXT, "COLUMN", NULL, "column of the labels in a CSV file",
      offsetof(T, label) },
    { "no-header", 0, false, KEEL_OPTION_FLAG, NULL, NULL, "the first line of a CSV file is a row",
      offsetof(T, no_header) },
    { "input-timeout", 0, false, KEEL_OPTION_REAL, "S", NULL, KEEL_TIMEOUT_HELP,
      offsetof(T, input_timeout) },
    { "skip-list", 0, false, KEEL_OPTION_TEXT, "FILE", NULL,
      "leave out the rows that this file lists, as the argument quarantine of stages writes it",
      offsetof(T, skip_list) },
    { "verify", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
      "read everything once, name what cannot be read, and exit with 1 if there is any",
      offsetof(T, verify) },
    { "stages", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
      "list the stages that a pipeline file can have, with their arguments", offsetof(T, stages) },
    { .name = NULL },
};

const keel_command keel_command_data = {
    .name = "data",
    .args = "SRC",
    .most = 1,
    .summary = "Show what a dataset or a pipeline gives",
    .help =
        "SRC is what --data of fit takes: files, a folder, or a pipeline file. Shows the fields "
        "of a row, the number of rows or batches, the first of them, and how many rows a "
        "second can be read when nothing trains. A pipeline file is TOML: a source and the "
        "stages that follow it, with the names and the meaning of tf.data:\n\n"
        "source = \"photos\"\n"
        "[[stage]]\n"
        "name = \"shuffle\"\n"
        "buffer_size = 500\n"
        "[[stage]]\n"
        "name = \"batch\"\n"
        "batch_size = 32",
    .example = "keel data photos --image-size 100,100\nkeel data pipeline.toml --rows 2",
    .options = options,
    .size = sizeof(data_options),
    .run = run,
};
