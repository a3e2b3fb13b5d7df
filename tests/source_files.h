/* Data of each source in files, with the same numbers: for tests of the memory that reading takes.
 * Rows are so large that what is no buffer of rows does not matter beside one batch. */
#ifndef TESTS_SOURCE_FILES_H
#define TESTS_SOURCE_FILES_H
#include "must.h"
#include "base/memory.h"
#include "data_files.h"
#include "io/npy_write.h"
#include "io/png_write.h"
#include "io/zip.h"
#include "record_files.h"
#include <zlib.h>

enum { N = 48, WIDTH = 4096, SIDE = 36, BATCH = 8 };

static float number_at(int row, int k)
{
    return (float)(row * 7 + k % 31) / 8;
}

static record_bytes row_of(int row)
{
    record_bytes b = { 0 };
    for (int k = 0; k < WIDTH; k++) {
        const float v = number_at(row, k);
        record_add(&b, &v, sizeof v);
    }
    return b;
}

static void save(const char *name, record_bytes b)
{
    files_write(name, b.at, b.n);
    free(b.at);
}

static void save_zipped(const char *name, record_bytes b)
{
    gzFile f = gzopen(files_path(name), "wb1");
    if (!f || gzwrite(f, b.at, (unsigned)b.n) != (int)b.n || gzclose(f) != Z_OK) abort();
    free(b.at);
}

/* ---- tables and texts -------------------------------------------------------------------------
 */

static void add_text(record_bytes *b, const char *format, double v)
{
    char text[64];
    record_add(b, text, (size_t)snprintf(text, sizeof text, format, v));
}

static void make_texts(void)
{
    record_bytes csv = { 0 }, json = { 0 }, lines = { 0 };
    for (int k = 0; k < WIDTH; k++) add_text(&csv, "x%.0f,", k);
    record_add(&csv, "y\n", 2);
    for (int i = 0; i < N; i++) {
        record_add(&json, "{\"x\":[", 6);
        for (int k = 0; k < WIDTH; k++) {
            add_text(&csv, "%g,", number_at(i, k));
            add_text(&json, k ? ",%g" : "%g", number_at(i, k));
            add_text(&lines, "%g ", number_at(i, k));
        }
        add_text(&csv, "%g\n", i % 2);
        add_text(&json, "],\"y\":%g}\n", i % 2);
        record_add(&lines, "\n", 1);
    }
    save("table.csv", csv);
    save("table.jsonl", json);
    save("lines.txt", lines);
}

/* ---- arrays -----------------------------------------------------------------------------------
 */

/* Rows [from, to) as a .npy; width 0: their labels. */
static record_bytes npy(int from, int to, int width)
{
    record_bytes b = { 0 };
    char head[KEEL_NPY_HEADER_MOST];
    const keel_shape shape = { width ? 2 : 1, { to - from, width } };
    record_add(&b, head, keel_npy_header_write(head, KEEL_FLOAT32, &shape));
    for (int i = from; i < to; i++)
        for (int k = 0; k < (width ? width : 1); k++) {
            const float v = width ? number_at(i, k) : (float)(i % 2);
            record_add(&b, &v, sizeof v);
        }
    return b;
}

static void add_all(record_bytes *to, record_bytes from)
{
    record_add(to, from.at, from.n);
    free(from.at);
}

static void make_arrays(void)
{
    record_bytes x = npy(0, N, WIDTH), y = npy(0, N, 0), raw = { 0 }, batches = { 0 };
    const keel_zip_member m[] = { { "x.npy", x.at, x.n }, { "y.npy", y.at, y.n } };
    must(keel_zip_write(files_path("arrays.npz"), m, 2));
    save("x.npy", x);
    save("y.npy", y);
    for (int i = 0; i < N; i++) {
        record_le(&raw, (uint64_t)i % 2, 1);
        add_all(&raw, row_of(i));
    }
    save("rows.bin", raw);
    for (int from = 0, n = 4; from < N; from += n, n = 8 + from / 4) { /* larger and larger */
        const int to = from + n < N ? from + n : N;
        add_all(&batches, npy(from, to, WIDTH));
        add_all(&batches, npy(from, to, 0));
    }
    save("batches.bin", batches);
}

/* ---- records ----------------------------------------------------------------------------------
 */

/* A picture that takes much more memory than its file. */
static record_bytes picture(int height, int width, int shade)
{
    record_bytes out = { 0 };
    unsigned char *p = malloc((size_t)(height * width * 3));
    void *file;
    size_t n;
    for (int i = 0; i < height * width * 3; i++) p[i] = (unsigned char)(i / 64 % 7 + shade);
    must(keel_png_write(&file, &n, p, height, width, 3));
    record_add(&out, file, n);
    keel_free(file);
    free(p);
    return out;
}

/* An Example with an image, and bytes that nobody reads. */
static void put_picture(record_bytes *to, record_bytes image, size_t pad)
{
    record_bytes f = { 0 }, list = { 0 }, unused = { 0 };
    unsigned char *zeros = calloc(pad + 1, 1);
    record_field(&list, 1, image.at, image.n);
    record_field(&unused, 1, zeros, pad);
    record_entry(&f, "x", 1, list.at, list.n);
    record_entry(&f, "pad", 1, unused.at, unused.n);
    const record_bytes e = record_example(f);
    record_put(to, e.at, e.n);
    free(e.at), free(list.at), free(unused.at), free(image.at), free(zeros);
}

static record_bytes numbers_as_records(void)
{
    record_bytes all = { 0 };
    for (int i = 0; i < N; i++) {
        record_bytes f = { 0 }, list = { 0 }, label = { 0 }, row = row_of(i);
        record_field(&list, 1, row.at, row.n);
        record_field(&label, 1, &(unsigned char){ (unsigned char)(i % 2) }, 1);
        record_entry(&f, "x", 2, list.at, list.n);
        record_entry(&f, "y", 3, label.at, label.n);
        const record_bytes e = record_example(f);
        record_put(&all, e.at, e.n);
        free(e.at), free(list.at), free(label.at), free(row.at);
    }
    return all;
}

/* Row 20 is the largest. */
static record_bytes nth_picture(int i)
{
    return i == 20 ? picture(500, 400, 3) : picture(SIDE + i % 3, SIDE, i);
}

static void make_records(void)
{
    record_bytes images = { 0 }, tar = { 0 }, arrays = { 0 };
    char name[40];
    save("numbers.tfrecord", numbers_as_records());
    save_zipped("numbers_gz.tfrecord.gz", numbers_as_records());
    for (int i = 0; i < N; i++) {
        put_picture(&images, nth_picture(i), 1000);
        record_bytes p = nth_picture(i), a = { 0 }, row = row_of(i);
        snprintf(name, sizeof name, "%03d.png", i);
        tar_put(&tar, name, '0', p.at, p.n);
        snprintf(name, sizeof name, "%03d.cls", i);
        tar_put(&tar, name, '0', i % 2 ? "1\n" : "0\n", 2);
        char head[KEEL_NPY_HEADER_MOST];
        const keel_shape shape = { 1, { WIDTH } };
        record_add(&a, head, keel_npy_header_write(head, KEEL_FLOAT32, &shape));
        record_add(&a, row.at, row.n);
        snprintf(name, sizeof name, "%03d.npy", i);
        tar_put(&arrays, name, '0', a.at, a.n);
        free(p.at), free(a.at), free(row.at);
    }
    tar_end(&tar);
    tar_end(&arrays);
    files_write("images.tar", tar.at, tar.n);
    save_zipped("images_gz.tar.gz", tar);
    save("arrays.tar", arrays);
    save("images.tfrecord", images);
}

/* More than is scanned when it is opened: one file with a large image, and another many times. */
static void make_many_records(void)
{
    enum { FILES = 20, EACH = 8, PAD = 512 << 10 };
    record_bytes first = { 0 }, others = { 0 };
    for (int i = 0; i < EACH; i++) {
        put_picture(&first, i == 5 ? picture(900, 800, 1) : picture(SIDE + i % 2, SIDE, i), PAD);
        put_picture(&others, picture(SIDE + i % 2, SIDE, i), PAD);
    }
    files_folder("many");
    save("many/00.tfrecord", first);
    save("many/01.tfrecord", others);
    for (int i = 2; i < FILES; i++) {
        char name[40];
        snprintf(name, sizeof name, "many/%02d.tfrecord", i);
        if (symlink("01.tfrecord", files_path(name))) abort();
    }
}

/* ---- sounds -----------------------------------------------------------------------------------
 */

static void make_sounds(void)
{
    files_folder("sounds");
    files_folder("sounds/a");
    files_folder("sounds/b");
    for (int i = 0; i < N; i++) {
        record_bytes b = { 0 };
        char name[40];
        const uint32_t frames = (uint32_t)(i == 9 ? 3 * WIDTH : WIDTH + i), bytes = 2 * frames;
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
        for (uint32_t k = 0; k < frames; k++) record_le(&b, k % 1000, 2);
        snprintf(name, sizeof name, "sounds/%c/%d.wav", "ab"[i % 2], i);
        save(name, b);
    }
}

static void make_pictures(void)
{
    files_folder("photos");
    files_folder("photos/a");
    files_folder("photos/b");
    for (int i = 0; i < N; i++) {
        char name[40];
        snprintf(name, sizeof name, "photos/%c/%d.png", "ab"[i % 2], i);
        save(name, nth_picture(i));
    }
}

static void make_source_files(void)
{
    files_begin();
    make_texts();
    make_arrays();
    make_records();
    make_many_records();
    make_sounds();
    make_pictures();
}

#endif
