/* bench_tables FILE LABEL [TIMES [VOCABULARY COLUMN...]]: how long it takes to open a CSV, or JSON
 * lines, so that its rows are arrays in memory, in time of the processor, which other programs
 * disturb less. A line of JSON for each time; bench/peers/tables.py compares them with pandas and
 * tf.data. */
#include "keel/keel.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { VOCABULARIES = 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
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
        const double begin = now();
        if (keel_dataset_open(&d, argv[1], &o) < 0) {
            fprintf(stderr, "bench_tables: %s\n", keel_error());
            return 1;
        }
        const double seconds = now() - begin;
        printf("{\"rows\": %lld, \"seconds\": %.4f, \"rows_per_s\": %.0f, \"mb_per_s\": %.1f}\n",
               (long long)keel_dataset_rows(d), seconds, (double)keel_dataset_rows(d) / seconds,
               1e-6 * (double)st.st_size / seconds);
        fflush(stdout);
        keel_dataset_destroy(d);
    }
    return 0;
}
