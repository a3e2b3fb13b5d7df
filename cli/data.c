/* keel data: shows what a dataset or a pipeline gives: its fields, how many elements, the first of
 * them, and how fast they come; in a terminal, or as an HTML page. */
#include "page.h"
#include "setup.h"
#include "shown.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct data_options {
    keel_data_options source;
    const char *html;
    int64_t rows, threads, seed, batch_size;
    double seconds;
    bool stages, verify;
} data_options;

/* ---- the parts of the answer ----------------------------------------------------------------- */

static void print_spec(const keel_dataset *d)
{
    char text[80], name[256];
    const bool batches = keel_dataset_is_batched(d);
    printf("%s\n", keel_printable(name, sizeof name, keel_dataset_name(d)));
    printf("  %s\n", keel_cardinality_text(text, sizeof text, d));
    for (int i = 0; i < keel_dataset_field_count(d); i++) {
        keel_data_field f;
        if (keel_dataset_field(d, i, &f) < 0) continue;
        char shape[160];
        printf("  %-6s %-16s %-8s %s%s\n", keel_role_name(f.role),
               keel_printable(name, sizeof name, f.path), keel_dtype_name(f.dtype),
               keel_shape_text(shape, sizeof shape, &f.shape), batches ? " a row" : "");
    }
    for (int64_t i = 0; i < keel_dataset_class_count(d) && i < 20; i++)
        printf("%s%s", i ? ", " : "  classes: ",
               keel_printable(name, sizeof name, keel_dataset_class_name(d, i)));
    if (keel_dataset_class_count(d)) printf("\n");
}

static int print_rows(const keel_dataset *d, const data_options *o, const keel_reader_options *r)
{
    keel_reader *reader;
    const keel_tensor *field;
    bool shown = false;
    const keel_status drawn = keel_shown_images(d, o->rows, r, &shown);
    if (drawn < 0) return keel_complain_status(drawn);
    if (shown) return -1;
    keel_status s = keel_reader_create(&reader, d, r);
    if (s < 0) return keel_complain_status(s);
    for (int64_t k = 0; k < o->rows && (s = keel_reader_next(reader, &field)) == KEEL_OK; k++) {
        printf("%" PRId64 ":\n", k);
        for (int i = 0; i < keel_dataset_field_count(d); i++) {
            keel_data_field f;
            if (keel_dataset_field(d, i, &f) < 0) continue;
            printf("  %-16s ", f.path);
            keel_shown_value(&field[i]);
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

static int stage_count(const keel_dataset *d)
{
    int n = 1;
    while ((d = keel_dataset_parent(d, 0))) n++;
    return n;
}

/* A line for the source and each stage behind it: with all that comes before. They are stage[0] to
 * stage[n - 1]; d is the last. */
static keel_status measure_stages(keel_page_stage *stage, int n, const keel_dataset *d,
                                  double seconds, const keel_reader_options *r)
{
    char text[KEEL_NUMBER_MAX], name[128];
    keel_page_stage *own = &stage[n - 1];
    if (n > 1) {
        const keel_status s = measure_stages(stage, n - 1, keel_dataset_parent(d, 0), seconds, r);
        if (s < 0) return s;
    }
    own->name = keel_dataset_stage(d) ? keel_dataset_stage(d) : keel_dataset_name(d);
    while (keel_dataset_parent(d, own->others + 1)) own->others++;
    own->rate = -1;
    if (!(seconds > 0)) return KEEL_OK;
    const keel_status s = measure(d, seconds, r, &own->rate);
    if (s < 0) return s;
    printf("  %-28s %14s rows a second\n", keel_printable(name, sizeof name, own->name),
           own->rate > 0 ? keel_grouped(text, (int64_t)own->rate) : "no");
    return KEEL_OK;
}

static int print_speed(keel_page_stage *stage, int n, const keel_dataset *d, double seconds,
                       const keel_reader_options *r)
{
    if (seconds > 0) printf("%s\n", n > 1 ? "read alone, up to each stage:" : "read alone:");
    const keel_status s = measure_stages(stage, n, d, seconds / n, r);
    return s < 0 ? keel_complain_status(s) : -1;
}

/* The dataset in the chain of d whose failures a stage leaves out; NULL: no stage does. */
static const keel_dataset *passed_over(const keel_dataset *d, const char **by)
{
    for (; d; d = keel_dataset_parent(d, 0))
        if ((*by = keel_dataset_stage(d)) &&
            (!strcmp(*by, "ignore_errors") || !strcmp(*by, "substitute")))
            return keel_dataset_parent(d, 0);
    return NULL;
}

static int write_html(const keel_dataset *d, const data_options *o, const keel_page_stage *stage,
                      int n_stage, const keel_reader_options *r)
{
    enum { PER_BATCH = 16 };
    keel_samples samples = { 0 }, failures = { 0 };
    char cardinality[80], report[1024];
    keel_page page = { .name = keel_dataset_name(d),
                       .note = keel_dataset_note(d),
                       .stage = stage,
                       .n_stage = n_stage,
                       .samples = &samples };
    const keel_dataset *failing = passed_over(d, &page.left_out_by);
    keel_status s = keel_samples_read(&samples, d, o->rows, PER_BATCH, false, r);
    if (s >= 0 && failing) {
        s = keel_samples_read(&failures, failing, o->rows, PER_BATCH, true, r);
        page.failures = &failures;
    }
    page.cardinality = keel_cardinality_text(cardinality, sizeof cardinality, d);
    page.report = keel_dataset_warnings(d, report, sizeof report) ? report : NULL;
    const int code =
        s < 0 ? keel_complain_status(s) : keel_save_whole(o->html, keel_page_write, &page);
    if (code == EXIT_OK) printf("page     %s\n", o->html);
    keel_samples_free(&samples);
    keel_samples_free(&failures);
    return code == EXIT_OK ? -1 : code;
}

/* Once all rows were read. */
static void print_memory(const keel_dataset *d, int64_t batch_size)
{
    keel_dataset_memory m;
    char least[KEEL_NUMBER_MAX], row[KEEL_NUMBER_MAX], name[512];
    const keel_status s = keel_dataset_least_memory(&m, d, batch_size);
    if (s < 0) {
        printf("memory   not known: %s\n", keel_printable(name, sizeof name, keel_error()));
        return;
    }
    printf("memory   a fit needs --input-memory %lld (%s) or more", (long long)m.n_bytes,
           keel_size_text(least, m.n_bytes));
    if (!keel_dataset_is_batched(d))
        printf(", in batches of %lld", (long long)(batch_size ? batch_size : 32));
    printf("; to read a row takes up to %s", keel_size_text(row, m.row_bytes));
    printf("%s%s\n", *m.row ? ": " : "", keel_printable(name, sizeof name, m.row));
}

/* Read everything once, and name what cannot be read. */
static int verify(const keel_dataset *d, const keel_reader_options *r, int64_t batch_size)
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
    const char *what = keel_unit_text(d, n);
    keel_grouped(good, n);
    keel_grouped(bad, failed);
    if (failed)
        return keel_complain(EXIT_FAILED, "%s %s can be read, %s cannot%s", good, what, bad,
                             s == KEEL_END ? "" : "; the rest was not tried");
    printf("all %s %s can be read\n", good, what);
    print_memory(d, batch_size);
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
    if (o->stages) return print_stages();
    if (!n_arg) return keel_complain(EXIT_USAGE, "give SRC, or --stages for the list of stages");
    keel_reader_options r = KEEL_READER_OPTIONS;
    if (o->seconds < 0)
        return keel_complain(EXIT_USAGE, "--seconds %g: must be 0 or more", o->seconds);
    if (o->batch_size > INT32_MAX)
        return keel_complain(EXIT_USAGE, "--batch-size %lld: %d are the most",
                             (long long)o->batch_size, INT32_MAX);
    const int many = keel_setup_threads(&r.threads, o->threads, 256);
    if (many >= 0) return many;
    if (o->html) {
        const keel_setup_file out[] = { { "--html", o->html }, { 0 } };
        const keel_setup_file in[] = { { "SRC", arg[0] },
                                       { "--skip-list", o->source.skip_list },
                                       { 0 } };
        int code = keel_setup_output("--html", o->html, ".html");
        if (code < 0) code = keel_setup_apart(out, in);
        if (code >= 0) return code;
    }
    if (o->html && o->verify)
        return keel_complain(EXIT_USAGE, "--html and --verify: give one of them");
    const int opened = keel_setup_data(&d, arg[0], o->verify ? KEEL_USE_VERIFY : KEEL_USE_TRAINING,
                                       &o->source, NULL);
    if (opened >= 0) return opened;
    r.seed = (uint64_t)o->seed;
    r.watch = keel_setup_watch(o->source.input_timeout);
    print_spec(d);
    if (o->verify) {
        const int code = verify(d, &r, o->batch_size);
        keel_dataset_destroy(d);
        return code;
    }
    int code = o->rows ? print_rows(d, o, &r) : -1;
    const int n_stage = stage_count(d);
    keel_page_stage *stage = calloc((size_t)n_stage, sizeof *stage);
    if (!stage) code = keel_complain(EXIT_FAILED, "out of memory");
    if (code < 0) code = print_speed(stage, n_stage, d, o->seconds, &r);
    if (code < 0 && o->html) code = write_html(d, o, stage, n_stage, &r);
    free(stage);
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
    { "threads", 0, false, KEEL_OPTION_COUNT, "N", NULL,
      "threads that read ahead (default: one for each core)", offsetof(T, threads) },
    { "seed", 0, false, KEEL_OPTION_COUNT, "N", "0", "of shuffles and random stages",
      offsetof(T, seed) },
    KEEL_SOURCE_ROWS(T, source),
    { "verify", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
      "read everything once, name what cannot be read, and exit with 1 if there is any; tells the "
      "least --input-memory of a fit",
      offsetof(T, verify) },
    { "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", "32",
      "rows of a step of the fit for which --verify tells the least --input-memory; of data that "
      "comes in batches, those",
      offsetof(T, batch_size) },
    { "html", 0, false, KEEL_OPTION_TEXT, "P.html", NULL,
      "write what is shown as one page with pictures: images, sounds as curves, texts, and the "
      "speed of "
      "each stage; of a batch the first 16 rows; and what ignore_errors and substitute pass over",
      offsetof(T, html) },
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
        "second can be read when nothing trains. In a terminal of 24-bit colours (COLORTERM is "
        "truecolor or 24bit, and NO_COLOR is not set) images are shown as pictures, of a batch the "
        "first 6. A pipeline file is TOML: a source and the "
        "stages that follow it, with the names and the meaning of tf.data:\n\n"
        "source = \"photos\"\n"
        "[[stage]]\n"
        "name = \"shuffle\"\n"
        "buffer_size = 500\n"
        "[[stage]]\n"
        "name = \"batch\"\n"
        "batch_size = 32",
    .example = "keel data photos --image-size 100,100\nkeel data pipeline.toml --rows 2\nkeel data "
               "pipeline.toml --rows 8 "
               "--html rows.html",
    .options = options,
    .size = sizeof(data_options),
    .run = run,
};
