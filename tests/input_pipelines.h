/* Pipelines of each kind for tests of the memory of the input: of arrays, callbacks, images and
 * layers, by row and as streams. */
#ifndef TESTS_INPUT_PIPELINES_H
#define TESTS_INPUT_PIPELINES_H
#include "must.h"
#include "keel/keel.h"
#include "base/memory.h"
#include "data/feed.h"
#include "data/source.h"
#include "data_files.h"
#include "io/png_write.h"
#include "made_jpegs.h"
#include <malloc.h>
#include <stdatomic.h>

/* Rows are so large that what is not a buffer of rows does not matter beside one batch. */
enum { N = 40, WIDTH = 4096, BATCH = 8, EPOCHS = 2, SIDE = 16 };

/* ---- what the process has allocated, besides what the account says ----------------------------
 */

static _Atomic int64_t before, most;

static void note_memory(void)
{
    const struct mallinfo2 m = mallinfo2(); /* all zero under a sanitizer */
    const int64_t now = (int64_t)(m.uordblks + m.hblkhd) - atomic_load(&before);
    int64_t top = atomic_load(&most);
    while (now > top && !atomic_compare_exchange_weak(&most, &top, now)) continue;
}

/* ---- sources ----------------------------------------------------------------------------------
 */

static void fill(float *x, int64_t i)
{
    for (int k = 0; k < WIDTH; k++) x[k] = (float)(i * 7 + k % 31);
}

static keel_status read_row(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    (void)state;
    float *own = keel_scratch_reserve(s, 0, 64); /* as a reader of files does */
    if (!own) return KEEL_ENOMEM;
    if (row->at[0]) fill(row->at[0], i);
    note_memory();
    return KEEL_OK;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    (void)state, (void)want;
    return 64;
}

static void close_nothing(void *state)
{
    (void)state;
}

static const keel_source by_number = {
    .name = "numbers", .read = read_row, .needs = needs, .close = close_nothing
};

static keel_dataset *numbers(void)
{
    static int none;
    const keel_data_field x = { .shape = { 1, { WIDTH } } };
    keel_data_spec spec = { .rows = N, .yields = -1 };
    keel_dataset *d;
    keel_spec_add_xy(&spec, &x, NULL, false);
    must(keel_dataset_create(&d, &by_number, &none, &spec, "numbers"));
    return d;
}

static keel_dataset *arrays(void)
{
    static float all[N * WIDTH];
    keel_dataset *d;
    for (int i = 0; i < N; i++) fill(all + i * WIDTH, i);
    must(keel_dataset_from_arrays(&d, &(keel_tensor){ KEEL_FLOAT32, { 2, { N, WIDTH } }, all },
                                  NULL, NULL));
    return d;
}

static int64_t given; /* rows of the generator */

static keel_status generate(void *context, void *x, void *y, float *weight, int64_t capacity,
                            int64_t *n)
{
    (void)context, (void)y, (void)weight;
    if (given == N) return KEEL_END;
    for (*n = 0; *n < capacity && given < N; ++*n) fill((float *)x + *n * WIDTH, given++);
    note_memory();
    return KEEL_OK;
}

static keel_status again(void *context)
{
    (void)context;
    given = 0;
    return KEEL_OK;
}

static keel_dataset *generator(void)
{
    const keel_generator g = { .size = sizeof g,
                               .x_shape = { 1, { WIDTH } },
                               .max_rows = 6,
                               .next = generate,
                               .reset = again };
    keel_dataset *d;
    given = 0;
    must(keel_dataset_from_generator(&d, &g));
    return d;
}

static int64_t length(void *context)
{
    (void)context;
    return N / 4;
}

static keel_status get(void *context, int64_t i, void *x, void *y, float *weight, int64_t capacity,
                       int64_t *rows)
{
    (void)context, (void)y, (void)weight, (void)capacity;
    for (int k = 0; k < 4; k++) fill((float *)x + k * WIDTH, i * 4 + k);
    *rows = 4;
    note_memory();
    return KEEL_OK;
}

static keel_dataset *sequence(void)
{
    const keel_sequence q = { .size = sizeof q,
                              .x_shape = { 1, { WIDTH } },
                              .max_rows = 4,
                              .length = length,
                              .get = get,
                              .workers = 5 };
    keel_dataset *d;
    must(keel_dataset_from_sequence(&d, &q));
    return d;
}

/* ---- stages -----------------------------------------------------------------------------------
 */

static keel_dataset *put(keel_dataset *d, const char *stage, const keel_arg *args)
{
    keel_dataset *out;
    must(keel_dataset_apply(&out, stage, args, &d, 1));
    keel_dataset_destroy(d);
    return out;
}

static keel_status add_one(void *context, const keel_tensor *in, keel_tensor *out,
                           const keel_element_place *at)
{
    (void)context, (void)at;
    const int64_t n = in->shape.rank == 2 ? in->shape.dim[0] * WIDTH : WIDTH;
    for (int64_t i = 0; i < n; i++) ((float *)out->data)[i] = ((float *)in->data)[i] + 1;
    note_memory();
    return KEEL_OK;
}

static keel_dataset *mapped(keel_dataset *d)
{
    const keel_map m = { .size = sizeof m, .call = add_one };
    keel_dataset *out;
    must(keel_dataset_map(&out, d, &m));
    keel_dataset_destroy(d);
    return out;
}

static keel_status stays(void *context, const keel_tensor *in, bool *keep,
                         const keel_element_place *at)
{
    (void)context, (void)at;
    *keep = ((float *)in->data)[0] >= 7;
    return KEEL_OK;
}

static keel_dataset *filtered(keel_dataset *d)
{
    const keel_filter f = { .size = sizeof f, .call = stays };
    keel_dataset *out;
    must(keel_dataset_filter(&out, d, &f));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *batched(keel_dataset *d)
{
    return put(d, "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", BATCH)));
}

static keel_dataset *shuffled(keel_dataset *d, int64_t buffer)
{
    return put(d, "shuffle", KEEL_ARGS(KEEL_ARG_INT("buffer_size", buffer)));
}

static keel_dataset *cached(keel_dataset *d)
{
    return put(d, "cache", NULL);
}

static keel_dataset *zipped(keel_dataset *a, keel_dataset *b)
{
    keel_dataset *out, *both[] = { a, b };
    must(keel_dataset_apply(&out, "interleave", NULL, both, 2));
    keel_dataset_destroy(a);
    keel_dataset_destroy(b);
    return out;
}

/* ---- pipelines --------------------------------------------------------------------------------
 */

static keel_dataset *map_by_number(void)
{
    return mapped(numbers());
}
static keel_dataset *maps_of_maps(void)
{
    return mapped(shuffled(mapped(mapped(numbers())), 10));
}
static keel_dataset *batches_by_number(void)
{
    return batched(mapped(numbers()));
}
static keel_dataset *map_of_batches(void)
{
    return mapped(batched(numbers()));
}
static keel_dataset *cache(void)
{
    return cached(numbers());
}
static keel_dataset *map_behind_a_cache(void)
{
    return mapped(cached(mapped(numbers())));
}
static keel_dataset *stream(void)
{
    return batched(filtered(numbers()));
}
static keel_dataset *maps_of_a_stream(void)
{
    return batched(mapped(mapped(filtered(mapped(numbers())))));
}
static keel_dataset *shuffle_buffer(void)
{
    return batched(mapped(shuffled(filtered(mapped(numbers())), 12)));
}
static keel_dataset *stream_behind_a_cache(void)
{
    return batched(mapped(filtered(cached(mapped(numbers())))));
}
static keel_dataset *windows(void)
{
    return put(mapped(numbers()), "window",
               KEEL_ARGS(KEEL_ARG_INT("size", 4), KEEL_ARG_INT("shift", 1)));
}
static keel_dataset *rebatched(void)
{
    return put(mapped(batched(filtered(numbers()))), "rebatch",
               KEEL_ARGS(KEEL_ARG_INT("batch_size", 5)));
}
static keel_dataset *in_turn(void)
{
    return batched(zipped(filtered(numbers()), mapped(filtered(numbers()))));
}
static keel_dataset *generated_rows(void)
{
    return batched(mapped(shuffled(put(generator(), "unbatch", NULL), 9)));
}
static keel_dataset *sequence_behind_a_map(void)
{
    return mapped(sequence());
}

static keel_dataset *of_folder(const char *name, bool one_hot)
{
    keel_dataset *d;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = o.width = SIDE;
    if (one_hot) o.label_mode = KEEL_LABEL_CATEGORICAL;
    must(keel_dataset_from_image_directory(&d, files_path(name), &o));
    return d;
}
static keel_dataset *images(void)
{
    return of_folder("png", false);
}
static keel_dataset *images_in_a_cache(void)
{
    return cached(images());
}
static keel_dataset *photos(void)
{
    return of_folder("jpg", false);
}
static keel_dataset *stream_of_photos(void)
{
    return batched(filtered(photos()));
}
static keel_dataset *turned(keel_dataset *d)
{
    return put(d, "RandomRotation", KEEL_ARGS(KEEL_ARG_FLOAT("factor", 0.1)));
}
static keel_dataset *turned_photos(void)
{
    return turned(photos());
}
static keel_dataset *photos_through_layers(void)
{
    keel_dataset *d =
        put(turned(photos()), "RandomContrast", KEEL_ARGS(KEEL_ARG_FLOAT("factor", 0.2)));
    return put(d, "Resizing", KEEL_ARGS(KEEL_ARG_INT("height", 30), KEEL_ARG_INT("width", 20)));
}
static keel_dataset *layers_of_a_stream(void)
{
    return batched(turned(filtered(turned(photos()))));
}
static keel_dataset *layer_of_batches(void)
{
    return turned(batched(photos()));
}
static keel_dataset *mixed_batches(void)
{
    return put(batched(filtered(of_folder("jpg", true))), "MixUp", NULL);
}
static keel_dataset *mapped_photos(void)
{
    return turned(put(photos(), "shuffle", NULL));
}

static const struct pipeline {
    const char *what;
    keel_dataset *(*make)(void);
    int64_t batch_size; /* of the feed; 0: the pipeline has batches */
    bool shuffle, carries;
} pipelines[] = {
    { "arrays in their order", arrays, BATCH, .shuffle = false },
    { "shuffled arrays", arrays, BATCH, .shuffle = true },
    { "rows by number", numbers, BATCH, .shuffle = true },
    { "a map by threads", map_by_number, BATCH },
    { "maps behind a shuffle of maps", maps_of_maps, BATCH },
    { "batches by number", batches_by_number, 0 },
    { "a map of batches", map_of_batches, 0 },
    { "a cache in memory", cache, BATCH },
    { "a map behind a cache", map_behind_a_cache, BATCH },
    { "a stream", stream, 0 },
    { "maps of a stream by threads", maps_of_a_stream, 0 },
    { "a shuffle buffer of a stream", shuffle_buffer, 0 },
    { "a stream behind a cache", stream_behind_a_cache, 0 },
    { "windows", windows, 2 },
    { "batches of another size", rebatched, 0 },
    { "two streams in turn", in_turn, 0 },
    { "a generator", generator, BATCH },
    { "a generator whose rest opens the next epoch", generator, BATCH, .carries = true },
    { "rows of a generator, shuffled and mapped", generated_rows, 0 },
    { "a sequence with workers", sequence, 0 },
    { "a sequence in batches of another size", sequence, BATCH },
    { "a sequence with workers behind a map", sequence_behind_a_map, 0 },
    { "images", images, BATCH, .shuffle = true },
    { "images in a cache", images_in_a_cache, BATCH },
    { "photos, some progressive", photos, BATCH, .shuffle = true },
    { "a stream of photos", stream_of_photos, 0 },
    { "a layer", turned_photos, BATCH },
    { "a layer behind a shuffle", mapped_photos, BATCH },
    { "three layers", photos_through_layers, BATCH },
    { "layers of a stream", layers_of_a_stream, 0 },
    { "a layer of batches", layer_of_batches, 0 },
    { "batches that are mixed", mixed_batches, 0 },
};

/* ---- files ----------------------------------------------------------------------------------- */

static void put_file(const char *folder, int i, const void *data, size_t n)
{
    char name[64];
    if (i == 0) files_folder(folder);
    snprintf(name, sizeof name, "%s/%c", folder, "ab"[i % 2]);
    if (i < 2) files_folder(name);
    snprintf(name, sizeof name, "%s/%c/%d.%s", folder, "ab"[i % 2], i, folder);
    files_write(name, data, n);
}

static int begin(void **state)
{
    (void)state;
    unsigned char pixel_of[24 * 24 * 3];
    files_begin();
    for (int i = 0; i < N; i++) {
        void *file;
        size_t n;
        const int side = SIDE + i % 3 * 4; /* some are resized */
        for (int k = 0; k < side * side * 3; k++) pixel_of[k] = (unsigned char)(i * 5 + k);
        must(keel_png_write(&file, &n, pixel_of, side, side, 3));
        put_file("png", i, file, n);
        keel_free(file);
        /* the largest file, the most pixels and the dearest to decode are three of them */
        const int high = i == 7 ? 150 : 40 + i % 5 * 16, wide = i == 8 ? 190 : 50 + i % 3 * 20;
        const made_jpeg j = made_jpeg_of(high, wide, 1 + i % 2, 1 + i % 4 / 2, i == 11,
                                         i == 9 ? PROGRESSIVE : PLAIN);
        put_file("jpg", i, j.data, j.n);
        free(j.data);
    }
    return 0;
}

#endif
