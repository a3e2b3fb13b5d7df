/* One corrupt record in the files of every source: the error names the file, the place in it and
 * the row; it comes before step 1 where looking is cheap; and where a row can fail alone,
 * `keel data --verify`, ignore_errors and substitute go on with the others.
 *
 * Where a format has no checksum, changed bytes are other numbers, which no reader can tell: of
 * such formats the files here are cut short, or are something else. */
#define _GNU_SOURCE /* memmem */
#include "data_files.h"
#include "must.h"
#include "golden.h"
#include "data/source.h"
#include "io/h5_data_impl.h"
#include "io/npy.h"
#include "io/zip.h"
#include "base/memory.h"
#include "record_files.h"
#include <zlib.h>

enum { ROWS = 8, BAD = 5 };

static json_t *golden;

/* ---- files ------------------------------------------------------------------------------------
 */

static record_bytes load(const char *path)
{
    record_bytes b = { 0 };
    unsigned char piece[4096];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) record_add(&b, piece, n);
    fclose(f);
    return b;
}

static void put(const char *name, record_bytes b)
{
    files_write(name, b.at, b.n);
    free(b.at);
}

static void cut(const char *name, size_t n_bytes)
{
    struct stat st;
    const char *path = files_path(name);
    if (stat(path, &st) || truncate(path, st.st_size - (off_t)n_bytes)) abort();
}

static void pack(const char *from, const char *to)
{
    record_bytes b = load(files_path(from));
    gzFile f = gzopen(files_path(to), "wb");
    assert_true(gzwrite(f, b.at, (unsigned)b.n) == (int)b.n && gzclose(f) == Z_OK);
    free(b.at);
}

static void write_array(const char *name, bool labels)
{
    float x[ROWS * 4];
    int64_t y[ROWS];
    for (int i = 0; i < ROWS * 4; i++) x[i] = (float)i;
    for (int i = 0; i < ROWS; i++) y[i] = i % 2;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, 4 } }, x };
    const keel_tensor ty = { KEEL_INT64, { 1, { ROWS } }, y };
    must(keel_npy_write(files_path(name), labels ? &ty : &tx));
}

/* Lines of which one is other. */
static void write_lines(const char *name, const char *head, const char *line, const char *other)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "%s", head);
    for (int i = 0; i < ROWS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s\n", i == BAD ? other : line);
    files_text(name, text);
}

/* Files of two classes, of which number BAD has only `n_bytes` of its bytes, or `instead`. */
static void write_directory(const char *folder, const char *ending, record_bytes whole,
                            size_t n_bytes, const char *instead)
{
    char name[64];
    files_folder(folder);
    for (int c = 0; c < 2; c++) {
        snprintf(name, sizeof name, "%s/%c", folder, 'a' + c);
        files_folder(name);
    }
    for (int i = 0; i < ROWS; i++) {
        snprintf(name, sizeof name, "%s/%c/%d.%s", folder, 'a' + i / (ROWS / 2), i, ending);
        if (i == BAD && instead)
            files_text(name, instead);
        else
            files_write(name, whole.at, i == BAD ? n_bytes : whole.n);
    }
}

static record_bytes of_golden(const char *group, const char *name)
{
    record_bytes b = { 0 };
    b.at = files_base64(golden_text(json_object_get(golden, group), name), &b.n);
    return b;
}

static void npy(void)
{
    write_array("a.npy", false);
    cut("a.npy", 40);
}

static void npz(void)
{
    write_array("x.npy", false);
    write_array("y.npy", true);
    record_bytes x = load(files_path("x.npy")), y = load(files_path("y.npy"));
    const keel_zip_member m[] = { { "x.npy", x.at, x.n }, { "y.npy", y.at, y.n } };
    must(keel_zip_write(files_path("a.npz"), m, 2));
    record_bytes all = load(files_path("a.npz"));
    unsigned char *at = memmem(all.at, all.n, x.at, x.n);
    at[x.n - 30] ^= 1;
    put("a.npz", all);
    free(x.at);
    free(y.at);
}

static void idx(void)
{
    static const unsigned char images[16 + ROWS * 4] = {
        [2] = 8, [3] = 3, [7] = ROWS, [11] = 2, [15] = 2
    };
    static const unsigned char labels[8 + ROWS] = { [2] = 8, [3] = 1, [7] = ROWS };
    files_folder("idx");
    files_write("idx/train-images-idx3-ubyte", images, sizeof images - 9);
    files_write("idx/train-labels-idx1-ubyte", labels, sizeof labels);
}

static void tables(void)
{
    write_lines("a.csv", "a,y\n", "1,0", "one,0");
    write_lines("b.csv", "a,y\n", "1,0", "1,0");
    pack("b.csv", "b.csv.gz");
    cut("b.csv.gz", 8);
    write_lines("a.jsonl", "", "{\"x\": [1, 2], \"y\": 0}", "{\"x\": [1, 2, \"y\": 0}");
    write_lines("b.jsonl", "", "{\"x\": [1, 2], \"y\": 0}", "{\"x\": [1], \"y\": 0}");
    write_lines("a.txt", "", "a line", "a line");
    record_bytes b = load(files_path("a.txt"));
    b.at[BAD * 7 + 2] = 0;
    put("a.txt", b);
    write_lines("b.txt", "", "a line", "a line");
    pack("b.txt", "b.txt.gz");
    cut("b.txt.gz", 8);
}

static void records(void)
{
    record_bytes all = { 0 }, other = { 0 };
    size_t begin = 0;
    for (int i = 0; i < ROWS; i++) {
        record_bytes f = { 0 };
        record_entry(&f, "x", 3, (unsigned char[]){ 0x0a, 2, 1, (unsigned char)i }, 4);
        record_entry(&f, "y", 3, (unsigned char[]){ 0x0a, 1, (unsigned char)(i % 2) }, 3);
        record_bytes e = record_example(f);
        if (i == BAD) begin = all.n;
        record_put(&all, e.at, e.n);
        record_put(&other, i == BAD ? (void *)"\x0a\xff\1no" : e.at, i == BAD ? 5 : e.n);
        free(e.at);
    }
    files_write("a.tfrecord", all.at, all.n - 7);
    put("b.tfrecord", other);
    all.at[begin + 20] ^= 1;
    put("c.tfrecord", all);
    pack("c.tfrecord", "d.tfrecord");
}

static void archives(void)
{
    record_bytes image = of_golden("files", "clear.png"), member = { 0 }, label = { 0 }, head;
    write_array("row.npy", true);
    record_bytes texts = { 0 }, x = load(files_path("row.npy"));
    for (int i = 0; i < ROWS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.png", i);
        tar_put(&member, name, '0', image.at, i == BAD ? image.n / 2 : image.n);
        tar_put(&label, name, '0', image.at, image.n);
        snprintf(name, sizeof name, "%d.cls", i);
        tar_put(&member, name, '0', "1", 1);
        tar_put(&label, name, '0', i == BAD ? "?" : "1", 1);
    }
    tar_end(&member);
    tar_end(&label);
    for (int i = 0; i < ROWS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.npy", i);
        tar_put(&texts, name, '0', x.at, i == BAD - 1 ? x.n - 1 : x.n);
        snprintf(name, sizeof name, "%d.txt", i);
        tar_put(&texts, name, '0', i == BAD ? "\xff" : "word", i == BAD ? 1 : 4);
        snprintf(name, sizeof name, "%d.cls", i);
        if (i != BAD + 1) tar_put(&texts, name, '0', "1", 1);
    }
    tar_end(&texts);
    put("texts.tar", texts);
    free(x.at);
    head = (record_bytes){ 0 };
    record_add(&head, member.at, member.n);
    head.at[2048 * BAD + 3] ^= 1;
    files_write("cut.tar", member.at, member.n - 2048);
    put("head.tar", head);
    put("image.tar", member);
    put("label.tar", label);
    pack("image.tar", "image.tar.gz");
    char toml[512];
    snprintf(toml, sizeof toml, "source = \"%s/image.tar\"\n", files_root);
    files_text("p.toml", toml);
    free(image.at);
}

static void hdf5(void)
{
    const char *from = golden_path("data_kinds.h5");
    keel_h5_data *h = NULL;
    record_bytes b = load(from);
    must(keel_h5_data_open(&h, from));
    for (size_t i = 0; i < h->count; i++) {
        if (strcmp(keel_h5_data_name(h, i), "chunks/gzip") != 0) continue;
        must(keel_h5_data_index(h, i));
        b.at[h->arrays[i].chunks[1].at + 4] ^= 1;
    }
    keel_h5_data_close(h);
    files_write("a.h5", b.at, b.n);
    files_write("b.h5", b.at, b.n - 100);
    free(b.at);
}

static void raw(void)
{
    static const char bytes[ROWS * 9];
    files_write("a.bin", bytes, sizeof bytes - 3);
}

static void images(void)
{
    static const char *const names[] = { "photo.jpg", "photo.png", "bits24.bmp", "palette.gif",
                                         "lossy.webp" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *ending = strchr(names[i], '.') + 1;
        char folder[16];
        record_bytes b = of_golden("files", names[i]);
        write_directory(ending, ending, b, b.n / 2, NULL);
        snprintf(folder, sizeof folder, "no_%s", ending);
        write_directory(folder, ending, b, 0, "this is no image");
        free(b.at);
    }
}

static void sounds_and_texts(void)
{
    record_bytes b = of_golden("wavs", "a/1.wav");
    write_directory("wavs", "wav", b, b.n - 3, NULL);
    write_directory("heads", "wav", b, 30, NULL);
    write_directory("others", "wav", b, 0, "this is no sound");
    write_directory("texts", "txt", b, 0, "text");
    free(b.at);
    unlink(files_path("texts/b/5.txt"));
    if (symlink("/nowhere", files_path("texts/b/5.txt"))) abort();
}

static void streams(void)
{
    write_array("x.npy", false);
    write_array("y.npy", true);
    write_array("cut.npy", false);
    cut("cut.npy", 40);
}

/* ---- what becomes of them ---------------------------------------------------------------------
 */

typedef enum found {
    OPENING,  /* when the data is opened, and nothing of it can be read */
    LOOKING,  /* when it is opened, but its other rows can be read */
    READING,  /* with its row; the others can be read */
    STREAMING /* with its row, behind which a stream ends */
} found;

/* spec: @ is the folder. bad: rows that fail, from the first on. */
static const struct {
    const char *what, *spec;
    found found;
    int first, bad, rows;
    const char *says[3];
    const char *source; /* that reads it, where it claims any folder and cannot open this one */
} cases[] = {
    { "an .npy without its end", "@/a.npy", OPENING, 0, 0, 0, { "a.npy: 88 bytes of elements" } },
    { "an .npz with a flipped bit",
      "@/a.npz",
      OPENING,
      0,
      0,
      0,
      { "a.npz: member 'x.npy' is damaged: its checksum" } },
    { "MNIST's files without an end",
      "@/idx",
      OPENING,
      0,
      0,
      0,
      { "train-images-idx3-ubyte: cut short: it announces 32 more bytes and has 23" } },
    { "a word for a number", "@/a.csv", OPENING, 0, 0, 0, { "a.csv:7: column 'a' has 'one'" } },
    { "a packed table without its end",
      "@/b.csv.gz",
      OPENING,
      0,
      0,
      0,
      { "b.csv.gz: the gzip data is cut short behind byte 36" } },
    { "a line that is no JSON",
      "@/a.jsonl",
      OPENING,
      0,
      0,
      0,
      { "a.jsonl:6: not JSON at byte 17" } },
    { "a list that ends early",
      "@/b.jsonl",
      OPENING,
      0,
      0,
      0,
      { "b.jsonl:6: key 'x' has a list of 1, where line 1 has 2" } },
    { "a zero byte in a text", "@/a.txt", OPENING, 0, 0, 0, { "a.txt: not a text file: byte 37" } },
    { "packed lines without their end",
      "@/b.txt.gz",
      OPENING,
      0,
      0,
      0,
      { "b.txt.gz: the gzip data is cut short behind byte 56" } },
    { "records without their end",
      "@/a.tfrecord",
      OPENING,
      0,
      0,
      0,
      { "a.tfrecord: is cut short in record 7, which begins at byte " } },
    { "a record of another kind",
      "@/b.tfrecord",
      LOOKING,
      BAD,
      1,
      ROWS,
      { "b.tfrecord: record 5 at byte ", "is not a tf.train.Example" } },
    { "a record with a flipped bit",
      "@/c.tfrecord",
      LOOKING,
      BAD,
      1,
      ROWS,
      { "c.tfrecord: record 5 at byte ", "do not have their checksum" } },
    { "a packed record with a flipped bit",
      "@/d.tfrecord",
      LOOKING,
      BAD,
      1,
      ROWS,
      { "d.tfrecord: record 5 at byte ", "do not have their checksum" } },
    { "an archive without its end",
      "@/cut.tar",
      OPENING,
      0,
      0,
      0,
      { "cut.tar: is cut short at byte 15360" } },
    { "a header with a flipped bit",
      "@/head.tar",
      OPENING,
      0,
      0,
      0,
      { "head.tar: the header at byte 10240 is damaged" } },
    { "half an image in an archive",
      "@/image.tar",
      READING,
      BAD,
      1,
      ROWS,
      { "image.tar: member '5.png' at byte 10752: image: decode PNG" } },
    { "half an image in a packed archive",
      "@/image.tar.gz",
      READING,
      BAD,
      1,
      ROWS,
      { "image.tar.gz: member '5.png' at byte 10752: image: decode PNG" } },
    { "a wrong label in an archive",
      "@/label.tar",
      READING,
      BAD,
      1,
      ROWS,
      { "label.tar: member '5.cls' at byte 11776: is no whole number" } },
    { "half an image, behind a pipeline file",
      "@/p.toml",
      READING,
      BAD,
      1,
      ROWS,
      { "image.tar: member '5.png' at byte 10752: image: decode PNG" } },
    { "a compressed chunk with a flipped bit",
      "@/a.h5",
      READING,
      0,
      4,
      37,
      { "a.h5: 'chunks/gzip', chunk 1: its compressed bytes are damaged" } },
    { "an HDF5 file without its end", "@/b.h5", OPENING, 0, 0, 0, { "b.h5: HDF5, offset " } },
    { "half a record of fixed size",
      "raw(x=float32(2),y=uint8):@/a.bin",
      OPENING,
      0,
      0,
      0,
      { "a.bin: 69 bytes are not a whole number of records of 9 bytes" } },
#define IMAGE(ending, decoder, why)                                                                \
    { "half a " decoder,                                                                           \
      "@/" ending,                                                                                 \
      LOOKING,                                                                                     \
      BAD,                                                                                         \
      1,                                                                                           \
      ROWS,                                                                                        \
      { ending "/b/5." ending ": decode " decoder ": " why } },                                    \
    {                                                                                              \
        "a text named as a " decoder, "@/no_" ending, LOOKING, BAD, 1, ROWS,                       \
        {                                                                                          \
            "no_" ending "/b/5." ending ": no image ("                                             \
        }                                                                                          \
    }
    IMAGE("jpg", "JPEG", "Premature end"),
    IMAGE("png", "PNG", "end of stream"),
    IMAGE("bmp", "BMP", "37 x 53 pixels do not fit"),
    IMAGE("gif", "GIF", "no complete frame"),
    IMAGE("webp", "WebP", "damaged or truncated"),
    { "a sound without its end",
      "@/wavs",
      LOOKING,
      BAD,
      1,
      ROWS,
      { "wavs/b/5.wav: decode WAV: cut short" } },
    { "a sound without its header", "@/heads", LOOKING, BAD, 1, ROWS, { "heads/b/5.wav: " } },
    { "a text named as a sound",
      "@/others",
      LOOKING,
      BAD,
      1,
      ROWS,
      { "others/b/5.wav: no WAV file" } },
    { "a text that is not there",
      "@/texts",
      OPENING,
      0,
      0,
      0,
      { "texts/b/5.txt: No such file" },
      "text_directory" },
    { "a program that writes half a batch",
      "exec:cd @; cat x.npy y.npy cut.npy",
      STREAMING,
      ROWS,
      1,
      0,
      { "'x' of batch 2: the program ended before it was complete" } },
    { "a program that writes something else",
      "exec:cd @; cat x.npy y.npy a.csv b.csv a.csv b.csv",
      STREAMING,
      ROWS,
      1,
      0,
      { "'x' of batch 2: not a .npy" } },
    { "a program that fails",
      "exec:cd @; cat x.npy y.npy; exit 3",
      STREAMING,
      ROWS,
      1,
      0,
      { "ended with status 3" } },
};

enum { CASES = sizeof cases / sizeof *cases };

static const char *spec_of(int i)
{
    static char spec[1024];
    const char *at = strchr(cases[i].spec, '@');
    snprintf(spec, sizeof spec, "%.*s%s%s", (int)(at - cases[i].spec), cases[i].spec, files_root,
             at + 1);
    return spec;
}

static keel_status open_case(keel_dataset **d, int i, bool unchecked)
{
    const char *spec = spec_of(i);
    static const char *const inputs[] = { "x=chunks/gzip" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = o.width = 20;
    o.unchecked = unchecked;
    if (strstr(spec, "a.h5")) o.inputs = inputs;
    o.n_input = o.inputs != NULL;
    *d = NULL;
    return keel_dataset_open(d, spec, &o);
}

static void check_words(int i, const char *row)
{
    for (int k = 0; k < 3 && cases[i].says[k]; k++)
        if (!strstr(keel_error(), cases[i].says[k]))
            fail_msg("%s: no '%s' in: %s", cases[i].what, cases[i].says[k], keel_error());
    if (row && !strstr(keel_error(), row))
        fail_msg("%s: no '%s' in: %s", cases[i].what, row, keel_error());
}

/* The elements that can be read, and the words of those that cannot. */
static int read_on(const keel_dataset *d, int i, int *failed)
{
    keel_reader *r;
    const keel_tensor *x;
    keel_status s;
    int n = 0;
    char row[32];
    const keel_reader_options o = { .size = sizeof o, .threads = i % 3 ? 2 : -1 };
    *failed = 0;
    must(keel_reader_create(&r, d, &o));
    while ((s = keel_reader_next(r, &x)) != KEEL_END && *failed < 20) {
        n += s == KEEL_OK;
        if (s == KEEL_OK) continue;
        snprintf(row, sizeof row, "row %d of ", cases[i].first + *failed);
        check_words(i, cases[i].found == STREAMING ? NULL : row);
        ++*failed;
        if (cases[i].found == STREAMING) break;
        keel_reader_pass(r);
    }
    keel_reader_destroy(r);
    return n;
}

/* Of these nothing in a file can be wrong: what they draw or count, and names of files. */
static const char *const without_contents[] = { "list_files", "range", "synthetic" };

/* True if the source reads the case: it claims it or, where it does so by what the files of a
 * folder are, has opened it. */
static bool reads(const keel_source *s, int i)
{
    keel_dataset *d = NULL;
    if (s->claims(spec_of(i))) return true;
    if (cases[i].source) return !strcmp(cases[i].source, s->name);
    const bool has = open_case(&d, i, true) >= 0 && !strcmp(d->origin->source->name, s->name);
    keel_dataset_destroy(d);
    return has;
}

static void every_source_has_a_corrupt_record_here(void **state)
{
    (void)state;
    for (int k = 0; keel_sources[k]; k++) {
        const keel_source *s = keel_sources[k];
        bool has = !s->claims; /* it is opened by a program, from its memory */
        for (size_t i = 0; i < sizeof without_contents / sizeof *without_contents; i++)
            has |= !strcmp(without_contents[i], s->name);
        for (int i = 0; i < CASES && !has; i++) has = reads(s, i);
        if (!has) fail_msg("%s has none", s->name);
    }
}

static void it_is_named_before_step_1_where_that_is_cheap(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        keel_dataset *d;
        int failed;
        const keel_status s = open_case(&d, i, false);
        const bool at_once = cases[i].found == OPENING || cases[i].found == LOOKING;
        if ((s < 0) != at_once)
            fail_msg("%s: status %d: %s", cases[i].what, s, s < 0 ? keel_error() : "it is opened");
        if (s < 0) check_words(i, NULL);
        if (s >= 0) {
            read_on(d, i, &failed);
            if (failed != cases[i].bad) fail_msg("%s: %d rows fail", cases[i].what, failed);
        }
        keel_dataset_destroy(d);
    }
}

static void the_other_rows_can_be_read(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        keel_dataset *d, *out;
        int failed;
        if (cases[i].found == STREAMING) continue;
        const keel_status s = open_case(&d, i, true);
        if (s < 0) check_words(i, NULL);
        if ((s < 0) != (cases[i].found == OPENING))
            fail_msg("%s: status %d: %s", cases[i].what, s, keel_error());
        if (s < 0) continue;
        const int rows = cases[i].rows, bad = cases[i].bad;
        const int n = read_on(d, i, &failed); /* as keel data --verify does */
        if (n != rows - bad || failed != bad)
            fail_msg("%s: %d rows are read, %d fail", cases[i].what, n, failed);
        static const char *const stages[] = { "ignore_errors", "substitute" };
        for (int k = 0; k < 2; k++) {
            must(keel_dataset_apply(&out, stages[k], KEEL_ARGS(KEEL_ARG_INT("most", bad)), &d, 1));
            const int got = read_on(out, i, &failed);
            if (got != (k ? rows : rows - bad) || failed)
                fail_msg("%s: %s gives %d rows: %s", cases[i].what, stages[k], got, keel_error());
            keel_dataset_destroy(out);
        }
        keel_dataset_destroy(d);
    }
}

/* An array that is cut short, a text that is no UTF-8 and a label that is not there. */
static void members_that_are_looked_at_fail_with_their_rows(void **state)
{
    static const char *const inputs[] = { "a=npy", "b=txt" }, *const targets[] = { "y=cls" };
    static const char *const says[] = { "member '4.npy' at byte ", "member '5.txt' at byte ", "6" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d;
    keel_reader *r;
    const keel_tensor *x;
    (void)state;
    o.inputs = inputs;
    o.targets = targets;
    o.n_input = 2;
    o.n_target = 1;
    assert_true(keel_dataset_open(&d, files_path("texts.tar"), &o) < 0);
    o.unchecked = true;
    must(keel_dataset_open(&d, files_path("texts.tar"), &o));
    must(keel_reader_create(&r, d, NULL));
    for (int i = 0; i < ROWS; i++) {
        const keel_status s = keel_reader_next(r, &x);
        assert_int_equal(s < 0, i >= BAD - 1 && i <= BAD + 1);
        if (s >= 0) continue;
        if (!strstr(keel_error(), says[i - BAD + 1])) fail_msg("row %d: %s", i, keel_error());
        keel_reader_pass(r);
    }
    keel_reader_destroy(r);
    keel_dataset_destroy(d);
}

/* A text that is no UTF-8 fails too, though texts are held in memory, and the class names and the
 * lengths of the others do not change. */
static void a_record_that_is_put_off_changes_no_other(void **state)
{
    static const char *const labels[] = { "ape", "bee", "cat" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d;
    keel_reader *r;
    const keel_tensor *x;
    record_bytes all = { 0 };
    (void)state;
    for (int i = 0; i < 9; i++) {
        record_bytes f = { 0 }, value = { 0 };
        const char *text = i == 4 ? "\xff" : i == 7 ? "dog" : labels[i % 3];
        record_entry(&f, "x", 3, (unsigned char[]){ 0x0a, 2, 1, (unsigned char)i }, i == 7 ? 3 : 4);
        record_field(&value, 1, text, strlen(text));
        record_entry(&f, "y", 1, value.at, value.n);
        record_bytes e = record_example(f);
        record_put(&all, e.at, e.n);
        free(value.at);
        free(e.at);
    }
    put("texts.tfrecord", all);
    const char *path = files_path("texts.tfrecord");
    assert_int_equal(keel_dataset_open(&d, path, &o), KEEL_EFORMAT);
    o.unchecked = true;
    const int64_t live = keel_memory_live();
    must(keel_dataset_open(&d, path, &o));
    must(keel_reader_create(&r, d, NULL));
    assert_int_equal(keel_dataset_class_count(d), 3);
    for (int i = 0; i < 9; i++) {
        const keel_status s = keel_reader_next(r, &x);
        assert_int_equal(s < 0, i == 4 || i == 7);
        if (i == 4) assert_non_null(strstr(keel_error(), "record 4 at byte"));
        if (i == 4) assert_non_null(strstr(keel_error(), "feature 'y': a text that is not UTF-8"));
        if (s < 0)
            keel_reader_pass(r);
        else
            assert_string_equal(keel_dataset_class_name(d, *(const int32_t *)x[1].data),
                                labels[i % 3]);
    }
    keel_reader_destroy(r);
    keel_dataset_destroy(d);
    assert_int_equal(keel_memory_live(), live);
    for (int64_t k = 0, s = KEEL_ENOMEM; s == KEEL_ENOMEM; k++) {
        keel_memory_fail_at(k);
        s = keel_dataset_open(&d, path, &o);
        keel_memory_fail_at(-1);
        if (s == KEEL_ENOMEM) assert_int_equal(keel_memory_live(), live);
        if (s >= 0) keel_dataset_destroy(d);
        assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
    }
}

static int opened_before;

static int begin(void **state)
{
    (void)state;
    files_begin();
    golden = golden_load("directories.json");
    npy(), npz(), idx(), tables(), records(), archives(), hdf5(), raw(), images();
    sounds_and_texts(), streams();
    opened_before = files_open();
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_decref(golden);
    files_end();
    assert_int_equal(files_open(), opened_before); /* what is refused is closed */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_source_has_a_corrupt_record_here),
        cmocka_unit_test(it_is_named_before_step_1_where_that_is_cheap),
        cmocka_unit_test(the_other_rows_can_be_read),
        cmocka_unit_test(members_that_are_looked_at_fail_with_their_rows),
        cmocka_unit_test(a_record_that_is_put_off_changes_no_other),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
