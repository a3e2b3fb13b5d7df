/* bench_account [SECONDS]: what it costs that every input keeps account of who works on what and
 * what steps wait for (data/work.h), and what gathering a batch costs.
 *
 * Two feeds of the same rows, one with probes and one without, take turns of about 2 ms of one
 * thread. The cost is the mean of the differences of neighbouring turns over that of the turns, the
 * tenth with the largest differences at each end left out, with its standard error; time is that of
 * the processor. A line of JSON for each input. */
#include "base/clock.h"
#include "data/feed.h"
#include "data/work.h"
#include "keel/keel.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 60000, IMAGE = 28 * 28, BATCH = 64, TURNS_MAX = 1 << 20 };

static unsigned char bytes[ROWS * IMAGE];
static float images[ROWS * IMAGE];
static int32_t labels[ROWS];
static double difference[TURNS_MAX];

static void must(keel_status s)
{
    if (s >= 0) return;
    fprintf(stderr, "bench_account: %s\n", keel_error());
    exit(1);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct side {
    keel_feed *feed;
    uint32_t epoch;
} side;

static void open_side(side *x, const keel_dataset *d, bool silent)
{
    const keel_feed_options o = { .real = KEEL_FLOAT32,
                                  .batch_size = BATCH,
                                  .shuffle = true,
                                  .epochs = UINT32_MAX,
                                  .threads = -1 };
    keel_work_silent = silent;
    must(keel_feed_create(&x->feed, d, &o));
    keel_work_silent = false;
    must(keel_feed_begin_epoch(x->feed, 0));
}

/* Seconds of so many batches. */
static double turn(side *x, int n)
{
    const double begin = cpu_seconds();
    for (int i = 0; i < n; i++) {
        keel_batch b;
        keel_status s = keel_feed_next(x->feed, &b);
        if (s == KEEL_END) {
            must(keel_feed_begin_epoch(x->feed, ++x->epoch));
            s = keel_feed_next(x->feed, &b);
        }
        must(s);
        keel_feed_release(x->feed, &b);
    }
    return cpu_seconds() - begin;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean without the tenths at the ends, and its standard error. */
static double mean(double *x, int n, double *error)
{
    const int out = n / 10, left = n - 2 * out;
    double sum = 0, squares = 0;
    qsort(x, (size_t)n, sizeof *x, by_size);
    for (int i = out; i < n - out; i++) sum += x[i];
    for (int i = 0; i < n; i++) { /* those at the ends count as the last that are not left out */
        const double v = x[i < out ? out : i >= n - out ? n - out - 1 : i] - sum / left;
        squares += v * v;
    }
    *error = sqrt(squares / (n - 1) / n) * n / left;
    return sum / left;
}

static void compare(const char *name, const keel_dataset *d, double seconds)
{
    side with = { 0 }, without = { 0 };
    open_side(&with, d, false);
    open_side(&without, d, true);
    turn(&with, 100);
    const int batches = (int)(2e-3 / (turn(&with, 100) / 100)) + 1;
    turn(&without, 200);
    double sum = 0, error;
    int n = 0;
    for (const double begin = keel_seconds(); keel_seconds() - begin < seconds && n < TURNS_MAX;) {
        const bool first = n % 2; /* each side is the first one as often */
        const double a = turn(first ? &with : &without, batches);
        const double b = turn(first ? &without : &with, batches);
        difference[n++] = first ? a - b : b - a;
        sum += first ? b : a;
    }
    const double of = sum / n, cost = mean(difference, n, &error);
    printf("{\"input\": \"%s\", \"us_per_batch\": %.2f, \"turns\": %d, \"cost_percent\": %.3f, "
           "\"error_percent\": %.3f}\n",
           name, 1e6 * of / batches, n, 100 * cost / of, 100 * error / of);
    fflush(stdout);
    keel_feed_destroy(with.feed);
    keel_feed_destroy(without.feed);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 20;
    const keel_shape image = { 4, { ROWS, 28, 28, 1 } }, label = { 1, { ROWS } };
    const keel_tensor x = { KEEL_FLOAT32, image, images }, b = { KEEL_UINT8, image, bytes };
    const keel_tensor y = { KEEL_INT32, label, labels };
    keel_dataset *d = NULL, *plain = NULL, *scaled = NULL;
    for (int i = 0; i < ROWS * IMAGE; i++) {
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
        images[i] = (float)bytes[i] / 255;
    }
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    compare("rows of 28x28 numbers", d, seconds);
    keel_dataset_destroy(d);
    must(keel_dataset_from_arrays(&plain, &b, &y, NULL));
    must(keel_dataset_apply(&scaled, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1.0 / 255)),
                            &plain, 1));
    compare("rows of 28x28 bytes, rescaled", scaled, seconds);
    keel_dataset_destroy(scaled);
    keel_dataset_destroy(plain);
    return 0;
}
