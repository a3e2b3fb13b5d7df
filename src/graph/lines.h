/* A row, an image, through several programs one behind the other, some lines at a time: what a
 * block of lines becomes stays in the L1 cache until it is done. Flips and crops copy nothing by
 * themselves: they only say which lines of the image are read, and how. All other ops make a pixel
 * of that pixel alone (keel_op.by_pixels), so that it does not matter which of them come before a
 * flip. The bits are those of the programs one by one. */
#ifndef KEEL_GRAPH_LINES_H
#define KEEL_GRAPH_LINES_H
#include "graph/rows.h"
#include "ops/warp.h"

enum { KEEL_LINES_OPS_MAX = 24 };

/* An op that computes. */
typedef struct keel_lines_op {
    keel_node node; /* of a block; op NULL: bytes to real numbers */
    keel_spec in, out;
    const keel_rows *rows;
    const keel_step_facts *step;
    int graph_node, program;
    bool bytes;
    int64_t scratch; /* offset */
} keel_lines_op;

/* What a row goes through; on the caller's stack. */
typedef struct keel_lines {
    keel_shape image; /* [H, W, C] of what is read */
    keel_dtype from, to;
    keel_view view;   /* of it */
    int n_op, n_view; /* ops that compute, and that do not */
    int viewer;       /* the program of the first of those; -1: none */
    keel_lines_op op[KEEL_LINES_OPS_MAX];
    int64_t scratch; /* bytes of all ops */
} keel_lines;

/* How many ops a program has, if all can run like this; 0: some cannot. */
int keel_rows_lines(const keel_rows *r);

/* Of images of this spec; then each program in its order, and what its random numbers depend on,
 * both borrowed. There must be room for the ops of the program. */
void keel_lines_begin(keel_lines *l, const keel_spec *image);
void keel_lines_add(keel_lines *l, const keel_rows *r, const keel_step_facts *step, int program);
/* Bytes become float32 in the end. */
void keel_lines_widen(keel_lines *l, int program);

/* The bytes of memory that a row takes besides itself. */
int64_t keel_lines_bytes(const keel_lines *l);
/* The most that a block of lines takes of it, for images of this spec. */
int64_t keel_lines_block_bytes(const keel_spec *image);

/* One row. works: told before each program works on a block; NULL: nobody asks. */
void keel_lines_run(const keel_lines *l, const void *in, void *out, void *memory,
                    void (*works)(void *context, int program), void *context);

#endif
