/* Sources of files for pipelines drawn by chance, with the rows of random_sources.h where a format
 * can hold them. `drawn_files_begin` writes them; before, no pipeline is drawn from files. */
#ifndef KEEL_TESTS_RANDOM_FILES_H
#define KEEL_TESTS_RANDOM_FILES_H
#include "random_sources.h"
#include "base/memory.h"
#include "data_files.h"
#include "io/npy_write.h"
#include "io/png_write.h"
#include "io/zip.h"
#include "record_files.h"

enum { FILE_ROWS = 23 };

/* @: the folder of files. fits: x and y are those that a model of these tests takes. */
static const struct drawn_file_source {
    const char *name, *spec; /* name: of the source */
    const char *label, *input;
    bool fits;
} drawn_file_sources[] = {
    { "audio_directory", "audio:@sounds", NULL, NULL, false },
    { "csv", "@rows.csv", "y", NULL, true },
    { "exec", "exec(x,y):cat @batches.bin", NULL, NULL, true },
    { "hdf5", "golden/data_kinds.h5", NULL, NULL, false },
    { "idx", "@idx", NULL, NULL, false },
    { "image_directory", "@photos", NULL, NULL, false },
    { "jsonl", "@rows.jsonl", NULL, NULL, true },
    { "list_files", "files:@texts/*/*.txt", NULL, NULL, false },
    { "npy", "@x.npy,@y.npy", NULL, NULL, true },
    { "npz", "@rows.npz", NULL, NULL, true },
    { "pipeline", "@rows.toml", NULL, NULL, false },
    { "range", "range:3:40:2", NULL, NULL, false },
    { "range", "counter:5", NULL, NULL, false },
    { "raw", "raw(y=uint8,x=float32(3)):@rows.bin", NULL, NULL, true },
    { "synthetic", "synthetic(x=float32(3),y=int(5),rows=19)", NULL, NULL, true },
    { "tar", "@rows.tar", NULL, "npy", true },
    { "text_directory", "@texts", NULL, NULL, false },
    { "text_lines", "@rows.txt", NULL, NULL, false },
    { "tfrecord", "@rows.tfrecord", NULL, NULL, true },
};
enum { FILE_SOURCES = sizeof drawn_file_sources / sizeof *drawn_file_sources };

static int drawn_from_file[FILE_SOURCES]; /* how often */

static inline const char *drawn_spec(const char *spec)
{
    static char text[1024];
    size_t n = 0;
    for (const char *c = spec; *c && n + 1 < sizeof text; c++)
        if (*c == '@')
            n += (size_t)snprintf(text + n, sizeof text - n, "%s/", files_root);
        else
            text[n++] = *c;
    text[n] = 0;
    return text;
}

static inline void drawn_of_file(drawn *p, draws *r)
{
    const int k = (int)draw(r, 0, FILE_SOURCES - 1);
    const struct drawn_file_source *s = &drawn_file_sources[k];
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.label = s->label;
    o.inputs = &s->input;
    o.n_input = s->input != NULL;
    o.height = o.width = 3; /* images are resized */
    if (keel_dataset_open(&p->d, drawn_spec(s->spec), &o) < 0)
        fail_msg("%s: %s", s->name, keel_error());
    p->fits = s->fits;
    drawn_from_file[k]++;
    drawn_say(p, "%s", s->name);
}

/* ---- the files ------------------------------------------------------------------------------- */

static inline void drawn_save(const char *name, record_bytes b)
{
    files_write(name, b.at, b.n);
    free(b.at);
}

static inline void drawn_text_of(record_bytes *b, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    record_add(b, text, (size_t)vsnprintf(text, sizeof text, format, args));
    va_end(args);
}

static inline void drawn_tables(void)
{
    record_bytes csv = { 0 }, json = { 0 }, lines = { 0 };
    drawn_text_of(&csv, "a,b,c,y\n");
    for (int i = 0; i < FILE_ROWS; i++) {
        const float *x = drawn_x[i];
        drawn_text_of(&csv, "%g,%g,%g,%g\n", x[0], x[1], x[2], drawn_y[i]);
        drawn_text_of(&json, "{\"x\": [%g, %g, %g], \"y\": %g}\n", x[0], x[1], x[2], drawn_y[i]);
        drawn_text_of(&lines, "%s\n", drawn_text[i]);
    }
    drawn_save("rows.csv", csv);
    drawn_save("rows.jsonl", json);
    drawn_save("rows.txt", lines);
    files_text("rows.toml",
               drawn_spec("source = '@rows.txt'\n[[stage]]\nname = 'skip'\ncount = 3\n"));
}

/* Rows [from, to) as a .npy; width 0: their labels. */
static inline void drawn_npy(record_bytes *b, int from, int to, int width)
{
    char head[KEEL_NPY_HEADER_MOST];
    const keel_shape shape = { width ? 2 : 1, { to - from, width } };
    record_add(b, head, keel_npy_header_write(head, KEEL_FLOAT32, &shape));
    for (int i = from; i < to; i++)
        record_add(b, width ? drawn_x[i] : &drawn_y[i],
                   sizeof(float) * (size_t)(width ? width : 1));
}

static inline void drawn_array_files(void)
{
    record_bytes x = { 0 }, y = { 0 }, raw = { 0 }, batches = { 0 };
    drawn_npy(&x, 0, FILE_ROWS, DRAWN_WIDTH);
    drawn_npy(&y, 0, FILE_ROWS, 0);
    const keel_zip_member m[] = { { "x.npy", x.at, x.n }, { "y.npy", y.at, y.n } };
    must(keel_zip_write(files_path("rows.npz"), m, 2));
    drawn_save("x.npy", x);
    drawn_save("y.npy", y);
    for (int i = 0; i < FILE_ROWS; i++) {
        record_le(&raw, (uint64_t)drawn_y[i], 1);
        record_add(&raw, drawn_x[i], sizeof drawn_x[i]);
    }
    drawn_save("rows.bin", raw);
    for (int from = 0, n = 4; from < FILE_ROWS; from += n, n = 3 + from % 5) {
        const int to = from + n < FILE_ROWS ? from + n : FILE_ROWS;
        drawn_npy(&batches, from, to, DRAWN_WIDTH);
        drawn_npy(&batches, from, to, 0);
    }
    drawn_save("batches.bin", batches);
}

static inline void drawn_record_files(void)
{
    record_bytes all = { 0 }, tar = { 0 };
    for (int i = 0; i < FILE_ROWS; i++) {
        record_bytes f = { 0 }, x = { 0 }, y = { 0 }, a = { 0 };
        char name[40], label[8], head[KEEL_NPY_HEADER_MOST];
        const unsigned char number = (unsigned char)drawn_y[i];
        const keel_shape shape = { 1, { DRAWN_WIDTH } };
        record_field(&x, 1, drawn_x[i], sizeof drawn_x[i]);
        record_field(&y, 1, &number, 1);
        record_entry(&f, "x", 2, x.at, x.n);
        record_entry(&f, "y", 3, y.at, y.n);
        const record_bytes e = record_example(f);
        record_put(&all, e.at, e.n);
        record_add(&a, head, keel_npy_header_write(head, KEEL_FLOAT32, &shape));
        record_add(&a, drawn_x[i], sizeof drawn_x[i]);
        snprintf(name, sizeof name, "%03d.npy", i);
        tar_put(&tar, name, '0', a.at, a.n);
        snprintf(name, sizeof name, "%03d.cls", i);
        tar_put(&tar, name, '0', label, (size_t)snprintf(label, sizeof label, "%d", number));
        free(e.at), free(x.at), free(y.at), free(a.at);
    }
    tar_end(&tar);
    drawn_save("rows.tar", tar);
    drawn_save("rows.tfrecord", all);
}

static inline void drawn_sound(const char *name, int i)
{
    record_bytes b = { 0 };
    const uint32_t frames = (uint32_t)(20 + i % 4), bytes = 2 * frames;
    record_add(&b, "RIFF", 4);
    record_le(&b, 36 + bytes, 4);
    record_add(&b, "WAVEfmt ", 8);
    record_le(&b, 16, 4);
    record_le(&b, 1, 2);
    record_le(&b, 1, 2);
    record_le(&b, 8000, 4);
    record_le(&b, 16000, 4);
    record_le(&b, 2, 2);
    record_le(&b, 16, 2);
    record_add(&b, "data", 4);
    record_le(&b, bytes, 4);
    for (uint32_t k = 0; k < frames; k++) record_le(&b, (uint64_t)(k * 31 + (uint32_t)i), 2);
    drawn_save(name, b);
}

/* A folder of two classes of each kind. */
static inline void drawn_folders(void)
{
    static const char *const kinds[] = { "sounds", "photos", "texts" };
    char name[64];
    for (int k = 0; k < 3; k++) {
        files_folder(kinds[k]);
        for (int c = 0; c < 2; c++) {
            snprintf(name, sizeof name, "%s/%c", kinds[k], "ab"[c]);
            files_folder(name);
        }
    }
    for (int i = 0; i < 12; i++) {
        unsigned char pixel[4 * 3 * 3];
        void *file;
        size_t n;
        for (size_t k = 0; k < sizeof pixel; k++) pixel[k] = (unsigned char)((size_t)i * 7 + k);
        must(keel_png_write(&file, &n, pixel, 4, 3, 3));
        snprintf(name, sizeof name, "photos/%c/%d.png", "ab"[i % 2], i);
        files_write(name, file, n);
        keel_free(file);
        snprintf(name, sizeof name, "texts/%c/%d.txt", "ab"[i % 2], i);
        files_text(name, drawn_text[i]);
        snprintf(name, sizeof name, "sounds/%c/%d.wav", "ab"[i % 2], i);
        drawn_sound(name, i);
    }
}

/* Images of 2x3 bytes, as MNIST's are stored. */
static inline void drawn_idx(void)
{
    record_bytes images = { 0 }, labels = { 0 };
    const unsigned char head[] = { 0, 0, 8, 3, 0, 0, 0, FILE_ROWS, 0, 0, 0, 2, 0, 0, 0, 3 };
    const unsigned char of_labels[] = { 0, 0, 8, 1, 0, 0, 0, FILE_ROWS };
    record_add(&images, head, sizeof head);
    record_add(&labels, of_labels, sizeof of_labels);
    for (int i = 0; i < FILE_ROWS; i++) {
        for (int k = 0; k < 6; k++) record_le(&images, (uint64_t)(i * 6 + k), 1);
        record_le(&labels, (uint64_t)drawn_y[i], 1);
    }
    files_folder("idx");
    drawn_save("idx/train-images-idx3-ubyte", images);
    drawn_save("idx/train-labels-idx1-ubyte", labels);
}

static inline void drawn_files_begin(void)
{
    files_begin();
    drawn_tables();
    drawn_array_files();
    drawn_record_files();
    drawn_folders();
    drawn_idx();
}

#endif
