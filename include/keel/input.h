/* What the input of a run does: the time of each stage, what the steps waited for, and what would
 * help. Always measured; it costs less than a thousandth of a run. Included by train.h. */
#ifndef KEEL_INPUT_H
#define KEEL_INPUT_H
#include <keel/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_INPUT_STAGES = 64, KEEL_INPUT_REMEDIES = 4 };

/* A stage of a pipeline or a part of what its source does, in the order in which rows go through.
 */
typedef struct keel_input_stage {
    char name[80];  /* "image directory: decode", "map 'augment'" */
    double seconds; /* of the threads that read, without what it asks other stages for */
    double waited;  /* waits of steps while the row that they needed was here */
    double rows;    /* that went through, or batches; estimated where rows are fast; 0: the parts of
                       a source count in its first */
    int64_t row_bytes; /* of what it gives; of rows that differ in length those of length 1 */
    bool parallel;     /* several threads may work on it at the same time */
    bool cacheable;    /* a cache behind it would save its work in later epochs */
} keel_input_stage;

typedef struct keel_input_remedy {
    char what[200];      /* "4 threads instead of 2" */
    double step_seconds; /* predicted time of a step, with its waits */
    double factor;       /* by which steps become faster */
} keel_input_remedy;

/* Numbers of steps since the input has found its threads (from the 20th step, of a long run). All
 * devices wait for their rows alike, since a step begins on all of them at once. */
typedef struct keel_input_stats {
    int64_t steps;
    double seconds, waited; /* of these steps, and part of them: waiting for rows */
    double work, cpu;       /* of all threads that read: working; on a core */
    int threads, batches;   /* that read; that may be ready ahead of the step that runs */
    bool threads_fixed;     /* by an option */
    bool stream;            /* one more thread takes the rows in order */
    int cores, workers;     /* that this process may use; that compute steps */
    int64_t memory, memory_peak, memory_limit; /* bytes of all buffers; limit 0: none */
    int64_t rows, epochs; /* of an epoch (-1: not known); left to run, with the current one */
    int n_stage;
    keel_input_stage stage[KEEL_INPUT_STAGES];
    int n_remedy; /* those that help by 3 % or more, the best first */
    keel_input_remedy remedy[KEEL_INPUT_REMEDIES];
} keel_input_stats;

/* One sentence: which share of the time steps waited, and for which stage; then what each remedy
 * would gain. "" if less than 1 % was waited.
 *
 * Returns  out
 * Owns     nothing changes hands
 * Threads  any */
enum { KEEL_INPUT_TEXT_MAX = 800 };
const char *keel_input_text(const keel_input_stats *in, char out[KEEL_INPUT_TEXT_MAX]);

/* A picture of the pipeline with these numbers, as SVG: a box for each stage, those wider that take
 * more time, and that which steps wait for most in red.
 *
 * Returns  KEEL_OK; KEEL_EIO, KEEL_ENOMEM
 * Owns     nothing changes hands; the file is replaced at once
 * Threads  any
 * Cost     writes a file of a few kilobytes */
keel_status keel_input_draw(const keel_input_stats *in, const char *path);

/* The least memory limit of the control groups of this process: its bytes, those that it leaves
 * free, and the group.
 *
 * Returns  true, or false if there is no limit
 * Owns     *group is valid until the next call in this thread
 * Threads  any */
bool keel_input_group_limit(int64_t *limit, int64_t *free, const char **group);

#ifdef __cplusplus
}
#endif
#endif
