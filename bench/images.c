/* bench_images [--size HxW] [--seconds S] [--threads N] [--crop]
 * [--dct-scaling] [--json] FILE...: how fast image files
 * become rows of a batch, on one thread and on N (2).
 *
 * Files are in memory, as after their first epoch they are in the page cache. Stages: `read` (open,
 * read, close), `decode`, `resize` (bilinear to float32), `row` (decode and resize, as a row of a
 * folder is made). A turn is so many rounds over all files as take a tenth of S; the median of
 * the turns counts. Seconds are of the thread's processor, which programs beside do not lengthen;
 * threads share the files and nothing else. With --json a line of images per second, which
 * bench/peers/images.py reads. */
#include "base/memory.h"
#include "data/photo.h"
#include "io/file.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 10, THREADS_MAX = 64, SLOTS = 32 /* of a batch, so that rows leave the cache */ };
enum { READ, DECODE, RESIZE, ROW, STAGES };
static const char *const stage_names[STAGES] = { "read", "decode", "resize", "row" };

typedef struct file {
    const char *path;
    void *data;
    size_t n_bytes;
    keel_image image; /* for `resize`; pixels are owned */
} file;

static file *files;
static int n_file;
static int64_t height = 224, width = 224;
static double seconds = 3;
static keel_photo photo = { .channels = 3, .interpolation = KEEL_BILINEAR };
static keel_data_field field;

static void must(keel_status s)
{
    if (s >= 0) return;
    fprintf(stderr, "bench_images: %s\n", keel_error());
    exit(1);
}

static void *room(size_t n_bytes)
{
    void *p = keel_calloc(1, n_bytes);
    if (!p) must(KEEL_ENOMEM);
    return p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *ready;
    int stage;
    keel_scratch scratch;
    float *slots;
    int at;
    double rate[TURNS]; /* images per second */
} worker;

static void take(worker *w, const file *f)
{
    keel_image image;
    float *slot = w->slots + (int64_t)(w->at++ % SLOTS) * height * width * 3;
    if (w->stage == READ) {
        keel_file open;
        void *data = keel_scratch_reserve(&w->scratch, 0, f->n_bytes);
        if (!data) must(KEEL_ENOMEM);
        must(keel_file_open(&open, f->path));
        must(keel_file_read_at(&open, 0, data, f->n_bytes));
        keel_file_close(&open);
    }
    if (w->stage == DECODE)
        must(keel_image_decode(&image, f->data, f->n_bytes, 3, &w->scratch, 1, f->path));
    if (w->stage == RESIZE) must(keel_resize(&f->image, slot, height, width, &w->scratch, 2));
    if (w->stage == ROW)
        must(keel_photo_read(&photo, &field, f->data, f->n_bytes, slot, KEEL_FLOAT32, &w->scratch,
                             f->path));
}

static void *run(void *context)
{
    worker *w = context;
    double took = 0;
    int rounds = 0;
    for (const double begin = now(); took < 0.1 * seconds / TURNS || rounds < 2; rounds++) {
        for (int i = 0; i < n_file; i++) take(w, &files[i]);
        took = now() - begin;
    }
    rounds = (int)(seconds / TURNS / (took / rounds)) + 1;
    pthread_barrier_wait(w->ready);
    for (int t = 0; t < TURNS; t++) {
        const double begin = now();
        for (int r = 0; r < rounds; r++)
            for (int i = 0; i < n_file; i++) take(w, &files[i]);
        w->rate[t] = rounds * n_file / (now() - begin);
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Images per second of all threads together. */
static double measure(int stage, int threads)
{
    static worker all[THREADS_MAX];
    pthread_barrier_t ready;
    double sum = 0;
    pthread_barrier_init(&ready, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        all[i] = (worker){ .ready = &ready, .stage = stage };
        all[i].slots = room((size_t)(SLOTS * height * width * 3) * sizeof(float));
        if (pthread_create(&all[i].thread, NULL, run, &all[i])) must(keel_fail(KEEL_EIO, "thread"));
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i].thread, NULL);
        qsort(all[i].rate, TURNS, sizeof *all[i].rate, by_value);
        sum += (all[i].rate[TURNS / 2] + all[i].rate[(TURNS - 1) / 2]) / 2;
        keel_scratch_free(&all[i].scratch);
        keel_free(all[i].slots);
    }
    pthread_barrier_destroy(&ready);
    return sum;
}

static void open_files(char **path, int n)
{
    keel_scratch scratch = { 0 };
    files = room((size_t)n * sizeof *files);
    for (n_file = 0; n_file < n; n_file++) {
        file *f = &files[n_file];
        f->path = path[n_file];
        must(keel_file_read(f->path, 1 << 29, &f->data, &f->n_bytes));
        must(keel_image_decode(&f->image, f->data, f->n_bytes, 3, &scratch, 0, f->path));
        const size_t bytes = (size_t)(f->image.height * f->image.width * 3);
        f->image.pixels = memcpy(room(bytes), f->image.pixels, bytes);
    }
    keel_scratch_free(&scratch);
}

int main(int argc, char **argv)
{
    int threads = 2, i = 1;
    bool json = false;
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        long long h, w;
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (!strcmp(argv[i], "--crop"))
            photo.crop = true;
        else if (!strcmp(argv[i], "--dct-scaling"))
            photo.shrinks = true;
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--size") && i + 1 < argc &&
                 sscanf(argv[++i], "%lldx%lld", &h, &w) == 2)
            height = h, width = w;
        else
            must(keel_fail(KEEL_EARG, "'%s' is no option", argv[i]));
    }
    if (i == argc || threads < 1 || threads > THREADS_MAX || height < 1 || width < 1 ||
        height > KEEL_IMAGE_SIDE_MAX || width > KEEL_IMAGE_SIDE_MAX || !(seconds > 0))
        must(keel_fail(KEEL_EARG, "give files; threads are 1 to %d", THREADS_MAX));
    photo.height = height;
    photo.width = width;
    keel_photo_field(&photo, &field);
    open_files(argv + i, argc - i);
    double pixels = 0, bytes = 0;
    for (int k = 0; k < n_file; k++) {
        pixels += (double)(files[k].image.height * files[k].image.width);
        bytes += (double)files[k].n_bytes;
    }
    if (json)
        printf("{");
    else
        printf("%d files, %.1f bits a pixel, to %lldx%lld\n%-8s%14s%14s%10s%10s%14s%8s\n", n_file,
               8 * bytes / pixels, (long long)height, (long long)width, "", "images/s", "us/image",
               "MPix/s", "MB/s", "threads", "each");
    for (int stage = 0; stage < STAGES; stage++) {
        const double one = measure(stage, 1), all = threads > 1 ? measure(stage, threads) : one;
        if (json)
            printf("%s\"%s\": [%.1f, %.1f]", stage ? ", " : "", stage_names[stage], one, all);
        else
            printf("%-8s%14.1f%14.1f%10.1f%10.1f%14.1f%7.1f%%\n", stage_names[stage], one,
                   1e6 / one, one * pixels / n_file * 1e-6, one * bytes / n_file * 1e-6, all,
                   100 * all / one / threads);
        fflush(stdout);
    }
    if (json) printf("}\n");
    return 0;
}
