/* Shared by commands, for models with open dims: padding of batches, the number of compiled
 * programs, and the shape for a plan. */
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
                    "pad rows that differ in length with 0 at the end: longest, to the longest "   \
                    "row of the batch; or bucket:8,16,32, to the smallest of these lengths that "  \
                    "the batch fits in"),                                                          \
        KEEL_OPTION_ROW(T, member.programs, "programs", 0, false, KEEL_OPTION_POSITIVE, "N", "8",  \
                        "if batches differ in shape, keep at most this many compiled programs "    \
                        "(2 to 30)")

typedef struct keel_padding {
    int64_t bucket[KEEL_BUCKETS_MAX];
    int n; /* 0: longest */
} keel_padding;

/* Parse --pad. Returns -1 to continue, or an exit code after an error was printed. */
int keel_padding_read(keel_padding *out, const keel_pad_options *o);

/* If batches had several shapes, print the number of compiled programs, and a warning if some were
 * compiled repeatedly. */
void keel_programs_print(const keel_program_counts *c, const keel_pad_options *o);

/* Parse --shape, "80" or "tokens=80 image=40,48,3", to *out [keel_model_input_count], which the
 * caller frees. Inputs without a shape in `text` (NULL: it has none) get that of the rows of `d`
 * (NULL: there are none), which must fit the model, or rank -1. Returns as keel_padding_read. */
int keel_shapes_read(keel_shape **out, const char *text, const keel_dataset *d,
                     const keel_model *m);

#endif
