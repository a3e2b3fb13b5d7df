/* Inputs that are cheap to make and dear to read: each is refused with one line, before it has
 * taken a second of the processor or 256 MiB. Each runs in a process of its own, which measures
 * both. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/hash.h"
#include "base/memory.h"
#include "data/codecs/image.h"
#include "data/feed.h"
#include "data/row_store.h"
#include "data_files.h"
#include "io/file.h"
#include "io/weights_h5.h"
#include "io/zip.h"
#include "keel/dataset.h"
#include "model/parts.h"
#include "record_files.h"
#include <jpeglib.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <zlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SECONDS = 10, MIB = 1024 }; /* shadow memory, quarantine, slower code */
#else
enum { SECONDS = 1, MIB = 256 };
#endif

/* ---- measuring ------------------------------------------------------------------------------- */

typedef struct report {
    keel_status status;
    double seconds;
    long kib;
    char text[KEEL_ERROR_MAX];
} report;

typedef keel_status (*reader)(const char *path);

/* In a child, so that the peak of memory is this reader's alone. Half a minute by the clock is for
 * what waits instead of working. */
static void measure(report *r, reader read, const char *path)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct rusage before, after;
        alarm(30 * SECONDS);
        getrusage(RUSAGE_SELF, &before);
        r->status = read(path);
        getrusage(RUSAGE_SELF, &after);
        r->kib = after.ru_maxrss - before.ru_maxrss;
        r->seconds = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                     (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                     1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                     1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
        snprintf(r->text, sizeof r->text, "%s", keel_error());
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) fail_msg("%s: the reader ended with %d", path, status);
}

/* `says`: of the error; NULL: it is read after all. */
static void costs_little(const char *what, reader read, const char *path, const char *says)
{
    report *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r != MAP_FAILED);
    measure(r, read, path);
    if (getenv("KEEL_TEST_SHOW"))
        print_message("%s: %d, %.2f s, %ld KiB: %s\n", what, r->status, r->seconds, r->kib,
                      r->text);
    if (says ? r->status >= 0 || !strstr(r->text, says) : r->status < 0)
        fail_msg("%s: status %d: %s", what, r->status, r->text);
    if (r->seconds > SECONDS) fail_msg("%s: took %.2f s", what, r->seconds);
    if (r->kib > MIB * 1024L) fail_msg("%s: took %ld KiB", what, r->kib);
    munmap(r, sizeof *r);
}

static keel_status load_model(const char *path)
{
    keel_model *m = NULL;
    const keel_status s = keel_model_load(&m, path);
    keel_model_destroy(m);
    return s;
}

static keel_status open_zip(const char *path)
{
    keel_zip *z = NULL;
    const keel_status s = keel_zip_open(&z, path);
    for (int64_t i = 0; s >= 0 && i < keel_zip_count(z); i++)
        if (keel_zip_find(z, keel_zip_name(z, i)) != i) abort();
    keel_zip_close(z);
    return s;
}

static keel_status open_data(const char *path)
{
    keel_dataset *d = NULL;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    const keel_status s = keel_dataset_open(&d, path, &o);
    keel_dataset_destroy(d);
    return s;
}

static keel_status decode_image(const char *path)
{
    void *bytes = NULL;
    size_t n = 0;
    keel_scratch scratch = { 0 };
    keel_image image;
    KEEL_TRY(keel_file_read(path, 1 << 28, &bytes, &n));
    const keel_status s = keel_image_decode(&image, bytes, n, 1, &scratch, 0, path);
    keel_scratch_free(&scratch);
    keel_free(bytes);
    return s;
}

/* ---- a member that inflates to gigabytes ----------------------------------------------------- */

typedef struct bytes {
    unsigned char *at;
    size_t n, room;
} bytes;

static void add(bytes *b, const void *data, size_t n)
{
    while (b->n + n > b->room) b->at = realloc(b->at, b->room = 2 * b->room + 4096);
    if (!b->at) abort();
    if (n) memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void add_le(bytes *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        add(b, &(unsigned char){ i < 8 ? (unsigned char)(value >> (8 * i)) : 0 }, 1);
}

static void add_be(bytes *b, uint64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--)
        add(b, &(unsigned char){ (unsigned char)(value >> (8 * i)) }, 1);
}

/* `head`, then `mib` MiB of zeros, deflated: a block that ends in a full flush can be repeated as
 * it is, so this costs what one block costs. window: -15 for zip, 15 for PNG. */
static bytes deflate_zeros(const void *head, size_t n_head, int mib, int window)
{
    enum { MIB_BYTES = 1 << 20 };
    bytes out = { 0 };
    z_stream z = { 0 };
    unsigned char *zeros = calloc(1, MIB_BYTES), *block = malloc(MIB_BYTES);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t repeated = 0;
    for (int i = 0; i < 3; i++) { /* the head; a block; the block as it follows a block */
        z.next_in = (Bytef *)(uintptr_t)(i ? zeros : head);
        z.avail_in = i ? MIB_BYTES : (uInt)n_head;
        z.next_out = block;
        z.avail_out = MIB_BYTES;
        assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
        repeated = MIB_BYTES - z.avail_out;
        assert_true(z.avail_out > 0);
        if (i < 2 || mib > 1) add(&out, block, repeated);
    }
    for (int i = 2; i < mib; i++) add(&out, block, repeated);
    add(&out, "\3\0", 2); /* an empty block, the last */
    if (window > 0) {
        uLong sum = adler32(1, head, (uInt)n_head), block_sum = adler32(1, zeros, MIB_BYTES);
        for (int i = 0; i < mib; i++) sum = adler32_combine(sum, block_sum, MIB_BYTES);
        add_be(&out, sum, 4);
    }
    deflateEnd(&z);
    free(zeros);
    free(block);
    return out;
}

/* Replace a member of a stored archive by `head` and zeros behind it, deflated. */
static const char *with_zeros(const char *from, const char *name, const char *to, int mib,
                              void (*change)(unsigned char *head, uint64_t n_bytes))
{
    keel_zip *z = NULL;
    bytes out = { 0 }, directory = { 0 };
    const char *path = files_path(to);
    assert_int_equal(keel_zip_open(&z, from), KEEL_OK);
    const int64_t count = keel_zip_count(z);
    for (int64_t i = 0; i < count; i++) {
        void *data = NULL;
        size_t n = 0;
        const char *member = keel_zip_name(z, i);
        const bool grows = !strcmp(member, name);
        assert_int_equal(keel_zip_read(z, member, 1 << 24, &data, &n), KEEL_OK);
        const uint64_t size = n + (grows ? (uint64_t)mib << 20 : 0), at = out.n;
        if (grows && change) change(data, size);
        uLong crc = crc32(0, data, (uInt)n);
        bytes packed = { 0 };
        if (grows) {
            unsigned char *zeros = calloc(1, 1 << 20);
            const uLong zero_crc = crc32(0, zeros, 1 << 20);
            for (int k = 0; k < mib; k++) crc = crc32_combine(crc, zero_crc, 1 << 20);
            free(zeros);
            packed = deflate_zeros(data, n, mib, -15);
        } else {
            add(&packed, data, n);
        }
        for (int central = 0; central < 2; central++) {
            bytes *b = central ? &directory : &out;
            add(b, central ? "PK\1\2" : "PK\3\4", 4);
            if (central) add_le(b, 20, 2);
            add_le(b, 20, 2);
            add_le(b, 0, 2);
            add_le(b, grows ? 8 : 0, 2);
            add_le(b, 0x210000, 4);
            add_le(b, crc, 4);
            add_le(b, packed.n, 4);
            add_le(b, size, 4);
            add_le(b, strlen(member), 2);
            add_le(b, 0, 2);
            if (central) add_le(b, 0, 10);
            if (central) add_le(b, at, 4);
            add(b, member, strlen(member));
        }
        add(&out, packed.at, packed.n);
        free(packed.at);
        keel_free(data);
    }
    const size_t begin = out.n;
    add(&out, directory.at, directory.n);
    add(&out, "PK\5\6\0\0\0\0", 8);
    add_le(&out, (uint64_t)count, 2);
    add_le(&out, (uint64_t)count, 2);
    add_le(&out, directory.n, 4);
    add_le(&out, begin, 4);
    add_le(&out, 0, 2);
    assert_int_equal(keel_file_write(path, out.at, out.n), KEEL_OK);
    keel_zip_close(z);
    free(out.at);
    free(directory.at);
    return path;
}

static void claim_all(unsigned char *head, uint64_t n_bytes) /* the superblock's end of the file */
{
    for (int i = 0; i < 8; i++) head[40 + i] = (unsigned char)(n_bytes >> (8 * i));
}

static void zeros_behind_the_weights_are_not_inflated(void **state)
{
    (void)state;
    costs_little(
        "3 GiB behind what HDF5 announces", load_model,
        with_zeros("golden/sequential_adam.keras", "model.weights.h5", "zeros.keras", 3072, NULL),
        "model.weights.h5");
    costs_little("3 GiB that HDF5 announces", load_model,
                 with_zeros("golden/sequential_adam.keras", "model.weights.h5", "claimed.keras",
                            3072, claim_all),
                 "model.weights.h5");
    costs_little(
        "1 MiB behind what HDF5 announces", load_model,
        with_zeros("golden/sequential_adam.keras", "model.weights.h5", "some.keras", 1, NULL),
        "where its HDF5 file has");
    costs_little(
        "1 MiB that HDF5 announces", load_model,
        with_zeros("golden/sequential_adam.keras", "model.weights.h5", "room.keras", 1, claim_all),
        NULL);
}

/* ---- archives of many members ---------------------------------------------------------------- */

/* Names that a hash of h * 33 + byte sends to one place: pairs of characters that count alike. */
static void many_members_with_colliding_names_are_no_work(void **state)
{
    (void)state;
    enum { COUNT = 65534, BITS = 16, BYTES = 2 * BITS + 1 };
    keel_zip_member *m = calloc(COUNT, sizeof *m);
    char *names = calloc(COUNT, BYTES);
    for (int i = 0; i < COUNT; i++) {
        char *name = names + (size_t)i * BYTES;
        for (int k = 0; k < BITS; k++) memcpy(name + 2 * k, i >> k & 1 ? "Az" : "BY", 2);
        m[i] = (keel_zip_member){ name, "", 0 };
    }
    const char *path = files_path("many.keras");
    assert_int_equal(keel_zip_write(path, m, COUNT), KEEL_OK);
    costs_little("65,534 names, an archive", open_zip, path, NULL);
    costs_little("65,534 names, a model", load_model, path, "65534 members");
    free(m);
    free(names);
}

/* ---- what is no plain file ------------------------------------------------------------------- */

static void devices_and_pipes_are_not_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        reader read;
    } cases[] = {
        { "x.keras", load_model }, { "x.csv", open_data },         { "x.npy", open_data },
        { "x.npz", open_data },    { "x-images-idx3", open_data }, { "x.tfrecord", open_data },
        { "x.tar", open_data },    { "x.txt", open_data },         { "x.jsonl", open_data },
    };
    const char *const pipe = files_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 2; k++) {
            const char *path = files_path(cases[i].name);
            assert_int_equal(symlink(k ? "/dev/zero" : files_path("pipe"), path), 0);
            costs_little(path, cases[i].read, path, "device or pipe, not a plain file");
            unlink(path);
        }
}

/* ---- HDF5 ------------------------------------------------------------------------------------ */

static keel_status check_weights(const char *path)
{
    void *image = NULL;
    size_t n = 0;
    keel_weights *w = NULL;
    KEEL_TRY(keel_file_read(path, 1 << 28, &image, &n));
    const keel_status s = keel_weights_decode(&w, image, n);
    keel_weights_destroy(w);
    keel_free(image);
    return s;
}

/* One group of 2^20 symbols, whose names are the tails of texts in one heap, `every` bytes long.
 * The symbols lie in nodes of 1024 under a tree of two levels; their headers need not be there,
 * since names come first. */
static const char *h5_of_names(const char *file, unsigned every)
{
    enum { K = 512, NODES = 1024, HEAP = 1 << 20, FULL = 2 * K, TREE = 32 + 32 * K };
    const uint64_t header = 96, btree = header + 16 + 24, children = btree + TREE,
                   heap = children + 1 * TREE, names = heap + 32, nodes = names + HEAP,
                   node_bytes = 8 + 2 * K * 40, size = nodes + (uint64_t)NODES * node_bytes;
    bytes b = { 0 };
    add(&b, "\x89HDF\r\n\x1a\n", 8);
    add(&b, (unsigned char[]){ 0, 0, 0, 0, 0, 8, 8, 0 }, 8);
    add_le(&b, K, 2);
    add_le(&b, K, 2);
    add_le(&b, 0, 4);
    add_le(&b, 0, 8);
    add_le(&b, UINT64_MAX, 8);
    add_le(&b, size, 8);
    add_le(&b, UINT64_MAX, 8);
    add_le(&b, 0, 8);
    add_le(&b, header, 8);
    add_le(&b, 0, 24);
    assert_int_equal(b.n, header);
    add(&b, (unsigned char[]){ 1, 0, 1, 0, 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0 }, 16);
    add(&b, (unsigned char[]){ 0x11, 0, 16, 0, 0, 0, 0, 0 }, 8);
    add_le(&b, btree, 8);
    add_le(&b, heap, 8);
    for (int level = 1; level >= 0; level--) {
        add(&b, "TREE\0", 5);
        add_le(&b, (uint64_t)level, 1);
        add_le(&b, level ? 1 : FULL, 2);
        add_le(&b, UINT64_MAX, 8);
        add_le(&b, UINT64_MAX, 8);
        for (uint64_t i = 0; i < FULL; i++) {
            add_le(&b, 0, 8);
            add_le(&b, level ? (i ? 0 : children) : nodes + i * node_bytes, 8);
        }
        add_le(&b, 0, 8);
    }
    assert_int_equal(b.n, heap);
    add(&b, "HEAP\0\0\0\0", 8);
    add_le(&b, HEAP, 8);
    add_le(&b, UINT64_MAX, 8);
    add_le(&b, names, 8);
    for (unsigned i = 0, x = 1; i < HEAP; i++) {
        x = x * 1664525u + 1013904223u;
        add_le(&b, i % every == every - 1 || i + 1 == HEAP ? 0 : 'a' + (x >> 20) % 26, 1);
    }
    for (unsigned i = 0; i < NODES; i++) {
        add(&b, "SNOD\1\0", 6);
        add_le(&b, FULL, 2);
        for (unsigned k = 0; k < FULL; k++) {
            const unsigned at = i * FULL + k;
            add_le(&b, at % every == every - 1 || at + 1 == HEAP ? at - 1 : at, 8);
            add_le(&b, 0, 8);
            add_le(&b, 0, 24);
        }
    }
    assert_int_equal(b.n, size);
    const char *path = files_write(file, b.at, b.n);
    free(b.at);
    return path;
}

static void a_million_long_names_are_refused(void **state)
{
    (void)state;
    costs_little("2^20 long names", check_weights, h5_of_names("long.h5", 500), "names of groups");
    costs_little("2^20 short names", check_weights, h5_of_names("short.h5", 30),
                 "more than 262144");
}

/* ---- images ---------------------------------------------------------------------------------- */

/* A progressive JPEG of one colour, whose last scan is repeated: each costs a pass over all blocks
 * and a few bytes. */
static const char *jpeg_of_scans(const char *name, int side, int scans)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char *data = NULL, *row = calloc(1, (size_t)side);
    unsigned long n = 0;
    bytes b = { 0 };
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &n);
    c.image_width = c.image_height = (JDIMENSION)side;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < side; y++) jpeg_write_scanlines(&c, &row, 1);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    size_t last = 0, first = n;
    for (size_t i = 0; i + 1 < n; i++)
        if (data[i] == 0xFF && data[i + 1] == 0xDA) last = i;
    for (size_t i = 0; i + 1 < n && first == n; i++)
        if (data[i] == 0xFF && data[i + 1] == 0xDA) first = i;
    int there = 0;
    for (size_t i = 0; i + 1 < n; i++) there += data[i] == 0xFF && data[i + 1] == 0xDA;
    assert_true(last > 0 && there > 1 && first < last);
    add(&b, data, n - 2);
    for (int i = there; i < scans; i++) add(&b, data + last, n - 2 - last);
    add(&b, data + n - 2, 2);
    const char *path = files_write(name, b.at, b.n);
    free(b.at);
    free(data);
    free(row);
    return path;
}

static void a_jpeg_of_countless_scans_is_refused(void **state)
{
    (void)state;
    costs_little("1,500 scans", decode_image, jpeg_of_scans("scans.jpg", 4096, 1500), "1500 scans");
    costs_little("60 scans", decode_image, jpeg_of_scans("some.jpg", 256, 60), NULL);
}

static void add_chunk(bytes *b, const char *type, const bytes *data)
{
    add_be(b, data->n, 4);
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);
    if (data->n) crc = crc32(crc, data->at, (uInt)data->n);
    add(b, type, 4);
    add(b, data->at, data->n);
    add_be(b, crc, 4);
}

/* 16000 x 16000 black pixels of three 16-bit samples: 0.7 GiB at 3 bytes a pixel, 1.9 GiB at 8. */
static void a_deep_png_is_held_against_what_decoding_takes(void **state)
{
    (void)state;
    enum { SIDE = 16000 };
    bytes b = { 0 }, header = { 0 }, none = { 0 };
    add_be(&header, SIDE, 4);
    add_be(&header, SIDE, 4);
    add(&header, (unsigned char[]){ 16, 2, 0, 0, 0 }, 5);
    bytes data = deflate_zeros("", 0, 1 + (int)((6LL * SIDE + 1) * SIDE >> 20), 15);
    add(&b, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(&b, "IHDR", &header);
    add_chunk(&b, "IDAT", &data);
    add_chunk(&b, "IEND", &none);
    const char *path = files_write("deep.png", b.at, b.n);
    free(b.at);
    free(header.at);
    free(data.at);
    costs_little("a 16-bit PNG in gray", decode_image, path, "16000 x 16000");
}

/* ---- the other formats of directories ---------------------------------------------------------
 */

/* Frames of `side` x `side` pixels, with the bytes of one code each: clear, color, end. */
static const char *gif_of_frames(const char *name, unsigned side, int frames, unsigned color)
{
    const unsigned codes = 4 | color << 3 | 5 << 6;
    bytes b = { 0 };
    add(&b, "GIF89a", 6);
    add_le(&b, side, 2);
    add_le(&b, side, 2);
    add(&b, (unsigned char[]){ 0x80, 0, 0, 0, 0, 0, 9, 9, 9 }, 9);
    for (int i = 0; i < frames; i++) {
        add(&b, (unsigned char[]){ 0x2c, 0, 0, 0, 0 }, 5);
        add_le(&b, side, 2);
        add_le(&b, side, 2);
        add(&b, (unsigned char[]){ 0, 2, 2 }, 3);
        add_le(&b, codes, 2);
        add(&b, (unsigned char[]){ 0 }, 1);
    }
    add(&b, (unsigned char[]){ 0x3b }, 1);
    const char *path = files_write(name, b.at, b.n);
    free(b.at);
    return path;
}

static void a_gif_without_the_bytes_of_its_pixels_is_refused(void **state)
{
    (void)state;
    costs_little("16000 x 16000 of one code", decode_image, gif_of_frames("wide.gif", 16000, 1, 1),
                 "no complete frame");
    costs_little("a million frames", decode_image, gif_of_frames("many.gif", 1, 1000000, 1), NULL);
}

static void a_gif_with_a_color_that_its_palette_lacks_is_refused(void **state)
{
    (void)state;
    costs_little("the last of two colors", decode_image, gif_of_frames("last.gif", 1, 1, 1), NULL);
    costs_little("a third color", decode_image, gif_of_frames("third.gif", 1, 1, 2),
                 "a pixel is outside of the palette");
}

/* The header of a lossless WebP of the largest size, and nothing behind it. */
static void a_webp_without_the_bytes_of_its_pixels_is_refused(void **state)
{
    (void)state;
    bytes b = { 0 };
    add(&b, "RIFF", 4);
    add_le(&b, 40, 4);
    add(&b, "WEBPVP8L", 8);
    add_le(&b, 28, 4);
    add(&b, (unsigned char[]){ 0x2f, 0xff, 0x3f, 0, 0x08 }, 5); /* 16384 x 8193 */
    add_le(&b, 0, 23);
    const char *path = files_write("wide.webp", b.at, b.n);
    costs_little("a wide WebP", decode_image, path, "pixels");
    free(b.at);
}

static void a_bmp_without_the_bytes_of_its_pixels_is_refused(void **state)
{
    (void)state;
    bytes b = { 0 };
    add(&b, "BM", 2);
    add_le(&b, 54, 4);
    add_le(&b, 0, 4);
    add_le(&b, 54, 4);
    add_le(&b, 40, 4);
    add_le(&b, 18000, 4);
    add_le(&b, 18000, 4);
    add_le(&b, 1, 2);
    add_le(&b, 24, 2);
    add_le(&b, 0, 24);
    const char *path = files_write("wide.bmp", b.at, b.n);
    costs_little("a wide BMP", decode_image, path, "do not fit into");
    free(b.at);
}

static void a_directory_of_costly_sounds_and_texts_is_refused(void **state)
{
    (void)state;
    bytes b = { 0 };
    files_folder("sounds");
    files_folder("sounds/a");
    files_folder("texts");
    files_folder("texts/a");
    add(&b, "RIFF", 4);
    add_le(&b, 32 << 20, 4);
    add(&b, "WAVE", 4);
    const char *path = files_write("sounds/a/chunks.wav", b.at, b.n);
    assert_int_equal(truncate(path, 32 << 20), 0); /* four million empty chunks */
    costs_little("chunks without end", open_data, files_path("sounds"), "cut short");
    unlink(files_path("sounds/a/chunks.wav"));
    add(&b, "fmt ", 4);
    add_le(&b, 16, 4);
    add(&b, (unsigned char[]){ 1, 0, 1, 0, 64, 31, 0, 0, 64, 31, 0, 0, 1, 0, 8, 0 }, 16);
    add(&b, "data", 4);
    add_le(&b, 1 << 30, 4);
    files_write("sounds/a/claims.wav", b.at, b.n);
    costs_little("a gigabyte that is not there", open_data, files_path("sounds"), "cut short");
    files_write("texts/a/0.txt", "", 0);
    assert_int_equal(truncate(files_path("texts/a/0.txt"), 3LL << 30), 0);
    costs_little("a text of 3 GiB", open_data, files_path("texts"), "more than is read of a text");
    unlink(files_path("texts/a/0.txt"));
    assert_int_equal(symlink("/dev/zero", files_path("texts/a/0.txt")), 0);
    costs_little("a text without end", open_data, files_path("texts"), "device or pipe");
    free(b.at);
}

/* [{},{},... of 60 MiB: 20 million objects of 230 bytes. */
static void a_configuration_of_empty_objects_is_not_parsed(void **state)
{
    (void)state;
    const size_t n = (size_t)20 << 20;
    char *text = malloc(3 * n);
    char path[PATH_MAX];
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) memcpy(text + 3 * i, i + 1 < n ? "{}," : "{}]", 3);
    text[0] = '[';
    text[1] = text[2] = ' ';
    snprintf(path, sizeof path, "%s", files_path("objects.keras"));
    const keel_zip_member m[] = { { "config.json", text, 3 * n } };
    assert_int_equal(keel_zip_write(path, m, 1), KEEL_OK);
    free(text);
    costs_little("20 million objects", load_model, path, "would take more than");
}

/* ---- records --------------------------------------------------------------------------------- */

/* `head`, then zeros, as a gzip file: its last 8 bytes, which are never reached, are missing. */
static const char *gzipped_zeros(const char *name, const record_bytes *head, int mib)
{
    bytes b = { 0 }, packed = deflate_zeros(head->at, head->n, mib, -15);
    add(&b, "\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
    add(&b, packed.at, packed.n);
    const char *path = files_write(name, b.at, b.n);
    free(packed.at);
    free(b.at);
    return path;
}

static void gzipped_records_are_looked_at_while_they_are_inflated(void **state)
{
    (void)state;
    record_bytes none = { 0 }, one = { 0 }, head = { 0 };
    costs_little("3 GiB of zeros as records", open_data, gzipped_zeros("a.tfrecord", &none, 3072),
                 "is damaged: its length");
    costs_little("3 GiB of zeros as an archive", open_data, gzipped_zeros("a.tar.gz", &none, 3072),
                 "behind the end");
    record_le(&head, 900 << 20, 8); /* a record that announces them */
    record_le(&head, keel_crc32c_masked(keel_crc32c(head.at, 8)), 4);
    costs_little("a record of 900 MiB of zeros", open_data, gzipped_zeros("b.tfrecord", &head, 900),
                 "which no data does");
    tar_put(&one, "a.txt", '0', "", 0);
    memcpy(one.at + 124, "07777777777", 11);
    tar_sum(one.at);
    costs_little("a member of 1 GiB of zeros", open_data, gzipped_zeros("b.tar.gz", &one, 1024),
                 "which no data does");
    free(one.at);
    free(head.at);
}

static void millions_of_records_and_members_cost_no_more_than_their_bytes(void **state)
{
    (void)state;
    enum { RECORDS = 2000000, MEMBERS = 20000, FEATURES = 1000000 };
    record_bytes b = { 0 }, one = { 0 }, features = { 0 };
    record_put(&one, "", 0);
    for (int i = 0; i < RECORDS; i++) record_add(&b, one.at, one.n);
    costs_little("2 million empty records", open_data, files_write("c.tfrecord", b.at, b.n),
                 "has no feature 'x'");
    b.n = 0;
    for (int i = 0; i < MEMBERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "key.%d", i);
        tar_put(&b, name, '0', "", 0);
    }
    tar_end(&b);
    costs_little("20,000 members of one key", open_data, files_write("c.tar", b.at, b.n),
                 "more than 256 members");
    b.n = 0;
    for (int i = 0; i < FEATURES; i++) record_add(&features, "\x0a\5\x0a\1a\x12\0", 7);
    record_le(&b, 0x0a, 1); /* an Example of them, whose length takes four bytes */
    for (int i = 0; i < 4; i++) record_le(&b, (features.n >> 7 * i & 127) | (i < 3 ? 128 : 0), 1);
    record_add(&b, features.at, features.n);
    one.n = 0;
    record_put(&one, b.at, b.n);
    costs_little("a million features of one name", open_data,
                 files_write("d.tfrecord", one.at, one.n), "has no feature 'x'");
    free(b.at);
    free(one.at);
    free(features.at);
}

/* ---- tables and texts -------------------------------------------------------------------------
 */

/* `head`, `middle` so often that it fills `n_bytes`, `tail`. */
static const char *repeated(const char *name, const char *head, const char *middle, size_t n_bytes,
                            const char *tail)
{
    const size_t h = strlen(head), m = strlen(middle), t = strlen(tail), n = n_bytes / m * m;
    char *text = malloc(h + n + t);
    assert_non_null(text);
    memcpy(text, head, h);
    for (size_t i = 0; i < n; i += m) memcpy(text + h + i, middle, m);
    memcpy(text + h + n, tail, t);
    const char *path = files_write(name, text, h + n + t);
    free(text);
    return path;
}

static const char *packed(const char *name, const char *head, const char *middle, int mib)
{
    enum { PIECE = 1 << 20 };
    const char *path = files_path(name);
    char *piece = malloc(PIECE);
    gzFile f = gzopen(path, "wb");
    assert_true(piece && f);
    const size_t m = strlen(middle), n = PIECE / m * m;
    for (size_t i = 0; i < n; i += m) memcpy(piece + i, middle, m);
    gzwrite(f, head, (unsigned)strlen(head));
    for (int i = 0; i < mib; i++) gzwrite(f, piece, (unsigned)n);
    gzclose(f);
    free(piece);
    return path;
}

static void texts_that_grow_or_never_end_are_refused(void **state)
{
    static const char *const many = "expands to more than 200 times its size";
    (void)state;
    costs_little("a packed line", open_data, packed("a.csv.gz", "a,y\n", "1", 20), many);
    costs_little("a packed JSON line", open_data, packed("a.jsonl.gz", "{\"x\": [", "1,", 20),
                 many);
    costs_little("a packed text", open_data, packed("a.txt.gz", "", "a", 20), many);
    costs_little("packed lines", open_data, packed("b.txt.gz", "", "\n", 20), many);
    const size_t line = (size_t)80 << 20;
    costs_little("a line without end", open_data, repeated("b.txt", "", "ab", line, ""),
                 "b.txt:1: a line of more than 64 MiB");
    const char *path = files_path("sparse.csv");
    FILE *f = fopen(path, "wb");
    assert_true(f && !ftruncate(fileno(f), (off_t)12 << 30) && !fclose(f));
    costs_little("12 GiB of zeros", open_data, path, "sparse.csv: not a text file");
}

static void tables_of_countless_parts_are_refused(void **state)
{
    (void)state;
    const size_t mib = 1 << 20;
    costs_little("10 million columns", open_data, repeated("a.csv", "", "a,", 20 * mib, "a\n1\n"),
                 "a.csv:1: more than 1048576 fields");
    costs_little("a quote without end", open_data, repeated("b.csv", "a,b\n\"", "1,", 16 * mib, ""),
                 "b.csv:2: a quote is never closed");
    costs_little("quotes in quotes", open_data, repeated("c.csv", "a,b\n\"", "\"\"", 16 * mib, ""),
                 "c.csv:2: a quote is never closed");
    costs_little("a number of 10 million digits", open_data,
                 repeated("d.csv", "a,b\n", "7", 10 * mib, ",1\n"), "which is not a number");
    costs_little("a fraction of 10 million digits", open_data,
                 repeated("e.csv", "a,b\n0.", "7", 10 * mib, ",1\n"), NULL);
    costs_little("empty lines", open_data, repeated("f.csv", "a,b\n", "\n", 16 * mib, "1,2\n"),
                 NULL);
}

static void json_lines_of_countless_parts_are_refused(void **state)
{
    (void)state;
    const size_t mib = 1 << 20;
    costs_little("lists in lists", open_data, repeated("a.jsonl", "{\"x\": ", "[", 100000, "\n"),
                 "maximum parsing depth");
    costs_little("objects in objects", open_data, repeated("b.jsonl", "", "{\"x\": ", 700000, "\n"),
                 "maximum parsing depth");
    costs_little("3 million objects", open_data,
                 repeated("c.jsonl", "{\"x\": [", "{},", 10 * mib, "{}]}\n"),
                 "would take more than");
    costs_little("a list that claims more than it has", open_data,
                 repeated("d.jsonl", "{\"x\": [[", "1,", mib, "1], 1, 1, 1, 1, 1, 1, 1]}\n"),
                 "lists that differ in length");
    costs_little("a number of 10 million digits", open_data,
                 repeated("e.jsonl", "{\"x\": 0.", "7", 10 * mib, "}\n"), NULL);
    bytes b = { 0 };
    add(&b, "{\"k\": 1", 7);
    for (int i = 0; i < 100000; i++) {
        char key[32];
        add(&b, key, (size_t)snprintf(key, sizeof key, ", \"k%d\": 1", i));
    }
    add(&b, "}\n", 2);
    costs_little("100,000 keys", open_data, files_write("keys.jsonl", b.at, b.n), NULL);
    free(b.at);
}

static int begin(void **state)
{
    (void)state;
    files_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    files_end();
    return 0;
}

/* All rows of x of an .h5, or of records. */
static keel_status read_data(const char *spec)
{
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    keel_status s = keel_dataset_open(&d, spec, NULL);
    const keel_feed_options o = { .batch_size = 1, .slots = 1, .threads = -1 };
    if (s >= 0) s = keel_feed_create(&f, d, &o);
    if (s >= 0) s = keel_feed_begin_epoch(f, 0);
    while (s >= 0 && (s = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    return s;
}

static keel_status open_large(const char *path)
{
    keel_dataset *d = NULL;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    const char *const inputs[] = { "x=large" };
    o.inputs = inputs;
    o.n_input = 1;
    const keel_status s = keel_dataset_open(&d, path, &o);
    keel_dataset_destroy(d);
    return s;
}

static void data_that_is_larger_than_its_file_costs_what_a_chunk_costs(void **state)
{
    costs_little("64 MiB in a chunk of 65 KB", read_data, "golden/data_costly.h5", NULL);
    costs_little("a chunk of 68 MiB", open_large, "golden/data_costly.h5", "larger than 64 MiB");
    costs_little("groups that hold themselves", read_data, "golden/data_loop.h5", "overlap");
    const char *path = files_text("a.bin", "abc");
    char spec[700];
    snprintf(spec, sizeof spec, "raw(x=uint8(1073741824)):%s", path);
    costs_little("a record of 1 GiB", read_data, spec, "not a whole number");
    costs_little("output without end", read_data, "exec:cat /dev/zero", "not a .npy");
    costs_little("a batch of 1 GiB that is not there", read_data,
                 "exec:printf '\\223NUMPY\\1\\0\\166\\0%-118s' "
                 "\"{'descr': '<f4', 'fortran_order': True, 'shape': (65536, 4096)}\"",
                 "ended before it was complete");
    costs_little("a batch of no columns", read_data,
                 "exec:printf '\\223NUMPY\\1\\0\\166\\0%-118s' "
                 "\"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 0)}\"",
                 "'x' of batch 1");
    costs_little("countless names in braces", read_data, "{0..99999}{0..99999}.tar",
                 "more than 100000 names in braces");
    costs_little("braces in braces", read_data, "{,}{,}{,}{,}{,}{,}{,}{,}{,}.tar",
                 "more than 8 pairs of braces");
    costs_little("half a billion names", read_data, "{0..500000000}.tfrecord", "by fewer than");
    costs_little("errors without end", read_data, "exec:head -c 30000000 /dev/zero >&2; false",
                 "ended with status 1");
}

/* ---- files of rows, as cache and snapshot write them ----------------------------------------- */

/* Open one, and read its rows as texts or numbers of open length. */
static keel_status read_rows_of(const char *path, const keel_data_spec *spec)
{
    keel_row_file f;
    keel_scratch scratch = { 0 };
    keel_element *e;
    keel_status s = keel_row_file_open(&f, path);
    for (int64_t i = 0; s >= 0 && i < f.count; i++) {
        s = keel_row_store_read(&e, &f, spec, i, NULL, &scratch);
        if (s >= 0) keel_element_release(e);
    }
    keel_scratch_free(&scratch);
    keel_row_file_close(&f);
    return s;
}

static keel_status read_number_rows(const char *path)
{
    const keel_data_spec spec = {
        .n_field = 1,
        .field = { { .path = "x", .dtype = KEEL_INT64, .shape = { 1, { KEEL_DIM_OPEN } } } }
    };
    return read_rows_of(path, &spec);
}

static keel_status read_text_rows(const char *path)
{
    const keel_data_spec spec = {
        .n_field = 1,
        .field = { { .path = "t", .dtype = KEEL_STRING, .shape = { 1, { KEEL_DIM_OPEN } } } }
    };
    return read_rows_of(path, &spec);
}

/* A file of `count` rows that all claim the same bytes; `dim` is what each says of its length. */
static const char *file_of_rows(const char *name, const bytes *stored, uint64_t inflated,
                                uint64_t dim, uint64_t count)
{
    bytes file = { 0 }, rows = { 0 }, dims = { 0 };
    void *block;
    size_t n;
    add(&file, "KEELROWS", 8);
    add_le(&file, 1, 8);
    for (uint64_t i = 0; i < count; i++) {
        add_le(&rows, 16, 8);
        add_le(&rows, stored->n, 8);
        add_le(&rows, inflated, 8);
        add_le(&rows, keel_fingerprint(stored->at, stored->n), 8);
        add_le(&dims, dim, 8);
    }
    add(&file, stored->at, stored->n);
    while (file.n % 8) add(&file, "", 1);
    const keel_section list[] = { { "head", "{}", 2 },
                                  { "rows", rows.at, rows.n },
                                  { "dims", dims.at, dims.n } };
    assert_int_equal(keel_sections_encode(list, 3, &block, &n), KEEL_OK);
    const uint64_t at = file.n;
    add(&file, block, n);
    keel_free(block);
    add_le(&file, at, 8);
    add_le(&file, n, 8);
    add(&file, "KEELROWE", 8);
    const char *path = files_write(name, file.at, file.n);
    free(file.at);
    free(rows.at);
    free(dims.at);
    return path;
}

static void rows_that_claim_more_than_their_bytes_are_refused(void **state)
{
    (void)state;
    const uint64_t gib = UINT64_C(1) << 30;
    bytes small = { 0 }, bomb = deflate_zeros((const unsigned char *)"", 0, 200, 15);
    bytes less = deflate_zeros((const unsigned char *)"", 0, 1, 15);
    add(&small, "0123456789abcdef", 16);
    costs_little("1 GiB of 16 bytes", read_number_rows,
                 file_of_rows("a.rows", &small, gib, gib / 8, 1), "the place of row 0");
    costs_little("a length of 2^60", read_number_rows,
                 file_of_rows("b.rows", &small, 16, UINT64_C(1) << 60, 1), "a shape");
    costs_little("a length of 2^63", read_number_rows,
                 file_of_rows("c.rows", &small, 16, UINT64_C(1) << 63, 1), "a dim");
    costs_little("2^30 texts in 16 bytes", read_text_rows,
                 file_of_rows("d.rows", &small, 16, gib, 1), "not as many bytes as its shape");
    costs_little("a row that inflates to more than it says", read_number_rows,
                 file_of_rows("e.rows", &bomb, 1 << 20, 1 << 17, 1), "cannot be inflated");
    costs_little("a row that inflates to less than it says", read_number_rows,
                 file_of_rows("h.rows", &less, (1 << 20) + 8, (1 << 17) + 1, 1),
                 "cannot be inflated");
    costs_little("texts that say they are longer than the row", read_text_rows,
                 file_of_rows("f.rows", &small, 16, 2, 1), "a text");
    costs_little("100000 rows at one place", read_number_rows,
                 file_of_rows("g.rows", &small, 16, 2, 100000), NULL);
    free(small.at);
    free(bomb.at);
    free(less.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_claim_more_than_their_bytes_are_refused),
        cmocka_unit_test(zeros_behind_the_weights_are_not_inflated),
        cmocka_unit_test(many_members_with_colliding_names_are_no_work),
        cmocka_unit_test(devices_and_pipes_are_not_read),
        cmocka_unit_test(a_million_long_names_are_refused),
        cmocka_unit_test(a_jpeg_of_countless_scans_is_refused),
        cmocka_unit_test(a_gif_without_the_bytes_of_its_pixels_is_refused),
        cmocka_unit_test(a_gif_with_a_color_that_its_palette_lacks_is_refused),
        cmocka_unit_test(a_webp_without_the_bytes_of_its_pixels_is_refused),
        cmocka_unit_test(a_bmp_without_the_bytes_of_its_pixels_is_refused),
        cmocka_unit_test(a_directory_of_costly_sounds_and_texts_is_refused),
        cmocka_unit_test(a_configuration_of_empty_objects_is_not_parsed),
        cmocka_unit_test(texts_that_grow_or_never_end_are_refused),
        cmocka_unit_test(tables_of_countless_parts_are_refused),
        cmocka_unit_test(json_lines_of_countless_parts_are_refused),
        cmocka_unit_test(data_that_is_larger_than_its_file_costs_what_a_chunk_costs),
        cmocka_unit_test(a_deep_png_is_held_against_what_decoding_takes),
        cmocka_unit_test(gzipped_records_are_looked_at_while_they_are_inflated),
        cmocka_unit_test(millions_of_records_and_members_cost_no_more_than_their_bytes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
