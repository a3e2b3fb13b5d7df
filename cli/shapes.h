/* What commands share about rows whose shape the model leaves open: how batches are padded, how
 * many programs that made, and which shape a plan is for. */
#ifndef KEEL_CLI_SHAPES_H
#define KEEL_CLI_SHAPES_H
#include "command.h"
#include <stddef.h>

enum { KEEL_BUCKETS_MAX = 64 };

typedef struct keel_pad_options {
    const char *pad;
    int64_t programs;
} keel_pad_options;

#define KEEL_PAD_ROWS(T, member)                                                                   \
    KEEL_OPTION_ROW(T, member.pad, "pad", 0, false, KEEL_OPTION_TEXT, "HOW", "longest",            \
                    "rows that differ in length are padded with 0 at the end: longest, to the "    \
                    "longest row of their batch, or bucket:8,16,32, to the smallest of these "     \
                    "lengths that the batch fits in"),                                             \
        KEEL_OPTION_ROW(T, member.programs, "programs", 0, false, KEEL_OPTION_POSITIVE, "N", "8",  \
                        "where batches differ in shape, keep at most this many compiled programs " \
                        "(2 to 30)")

typedef struct keel_padding {
    int64_t bucket[KEEL_BUCKETS_MAX];
    int n; /* 0: longest */
} keel_padding;

/* Read --pad. Answers -1 to go on, or the exit code after it has said what is wrong. */
int keel_padding_read(keel_padding *out, const keel_pad_options *o);

/* A line about the programs that were made, where batches had several shapes, and another where
 * some were made again and again. */
void keel_programs_print(const keel_program_counts *c, const keel_pad_options *o);

/* The shapes of --shape, "80" or "tokens=80 image=40,48,3", for the inputs of the model, *out
 * [keel_model_input_count], which the caller frees; of inputs that are not named rank -1. NULL text
 * is fine: none is named. Answers as keel_padding_read. */
int keel_shapes_read(keel_shape **out, const char *text, const keel_model *m);

#endif
