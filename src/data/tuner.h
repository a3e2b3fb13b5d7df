/* How many threads read, and how far ahead: found while training goes on. See feed_tune.c. */
#ifndef KEEL_DATA_TUNER_H
#define KEEL_DATA_TUNER_H
#include <stdbool.h>
#include <stdint.h>

/* What was seen over some steps. */
typedef struct keel_tuner_look {
    int64_t steps;
    double seconds, waited, work, cpu; /* in total; of threads that read, of them on a core */
} keel_tuner_look;

typedef enum keel_tuner_move {
    KEEL_TUNER_NOTHING,
    KEEL_TUNER_THREADS,
    KEEL_TUNER_SLOT
} keel_tuner_move;

typedef struct keel_tuner {
    bool on;
    bool tunes_threads, tunes_slots;
    int most_threads;
    int64_t steps;          /* of the run */
    keel_tuner_look totals; /* of the run, at the last look; seconds: the time then */
    keel_tuner_look look;   /* since the look before */
    keel_tuner_move move;   /* the last one, which is judged by `before` */
    int from;               /* its number of threads before */
    keel_tuner_look before;
    int64_t next;   /* step of the next decision */
    int ceiling;    /* more threads were tried, and did not help */
    int floor;      /* fewer were tried, and cost steps */
    int64_t forget; /* step at which the ceiling is tried again */
    bool began;     /* what is said before the first step was said; of the consumer */
    char line[512]; /* a decision that was not told yet */
} keel_tuner;

#endif
