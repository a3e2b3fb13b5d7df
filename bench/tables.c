/* bench_tables FILE LABEL [TIMES [VOCABULARY COLUMN...]]: how long it takes to open a CSV, or JSON
 * lines, so that its rows are arrays in memory: `seconds` of the processor, of all threads, which
 * other programs disturb less, and `wall` seconds, from `begin` on. There is a thread for each core
 * that the process may use (taskset). A line of JSON for each time; bench/peers/tables.py and
 * input.py compare them with pandas, Arrow and tf.data. */
#include "keel/keel.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { VOCABULARIES = 16 };

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    const int times = argc > 3 ? atoi(argv[3]) : 1;
    keel_vocabulary words[VOCABULARIES] = { 0 };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    struct stat st;
    if (argc < 3 || argc > 4 + VOCABULARIES || stat(argv[1], &st)) {
        fputs("usage: bench_tables FILE LABEL [TIMES [VOCABULARY COLUMN...]]\n", stderr);
        return 2;
    }
    for (int i = 4; i < argc; i++) words[o.n_vocabulary++].column = argv[i];
    o.vocabularies = words;
    o.label = argv[2];
    for (int i = 0; i < times; i++) {
        keel_dataset *d = NULL;
        const double begin = now(CLOCK_PROCESS_CPUTIME_ID), wall_begin = now(CLOCK_MONOTONIC);
        if (keel_dataset_open(&d, argv[1], &o) < 0) {
            fprintf(stderr, "bench_tables: %s\n", keel_error());
            return 1;
        }
        const double seconds = now(CLOCK_PROCESS_CPUTIME_ID) - begin;
        printf("{\"rows\": %lld, \"seconds\": %.4f, \"begin\": %.4f, \"wall\": %.4f, "
               "\"rows_per_s\": %.0f, \"mb_per_s\": %.1f}\n",
               (long long)keel_dataset_rows(d), seconds, wall_begin,
               now(CLOCK_MONOTONIC) - wall_begin, (double)keel_dataset_rows(d) / seconds,
               1e-6 * (double)st.st_size / seconds);
        fflush(stdout);
        keel_dataset_destroy(d);
    }
    return 0;
}
