/* What a test of cases drawn by chance does when it is started with FROM COUNT: it tries so many
 * numbers from one on, prints what is wrong with each that fails, and ends after 20 of them. With
 * KEEL_SEEDS each is named before it is tried, so that one that crashes or hangs is known. */
#ifndef KEEL_TESTS_RANDOM_SEEDS_H
#define KEEL_TESTS_RANDOM_SEEDS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns how many failed; `trouble` is what `attempt` has written of the last one. */
static inline int try_seeds(char **argv, bool (*attempt)(uint64_t seed), const char *trouble)
{
    const uint64_t from = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    int bad = 0;
    for (uint64_t seed = from; seed < from + count && bad < 20; seed++) {
        if (getenv("KEEL_SEEDS")) fprintf(stderr, "%llu\n", (unsigned long long)seed);
        if (attempt(seed)) continue;
        printf("%s\n", trouble);
        fflush(stdout);
        bad++;
    }
    printf("%d of %llu differ\n", bad, (unsigned long long)count);
    return bad;
}

#endif
