/* Inside the stages that change rows by a model: their state, and a row through it. */
#ifndef KEEL_TRAIN_STAGES_CHANGE_IMPL_H
#define KEEL_TRAIN_STAGES_CHANGE_IMPL_H
#include "train/stages/change.h"

struct keel_change {
    keel_change_plan plan;
    const keel_data_spec *parent;
    keel_compiled_rows *compiled;
    bool random;
    int64_t row_step; /* rows of random numbers that belong to an element */
    int lines;        /* the only field that it changes, in place of itself, where that can be done
                         some lines at a time (graph/lines.h); -1: it cannot */
    int n_op;         /* of its program then */
};

/* The model for rows of these shapes, by field of the parent. The caller gives it back. */
keel_status keel_change_rows_for(const keel_change *c, int call, const keel_shape *row,
                                 keel_change_rows **out);

/* What a call reads and writes. */
typedef struct keel_change_ends {
    const void *in[KEEL_FIELDS_MAX];
    void *out[KEEL_OUTPUTS_MAX];
} keel_change_ends;

/* change_lines.c: sets c->lines. */
void keel_change_find_lines(keel_change *c);
/* Reads a row by lines, through this stage and those before it that can be. *done false: it cannot
 * be, or there is nothing to gain; nothing was read. */
keel_status keel_change_read_lines(const keel_applied *s, keel_position at, const keel_row *row,
                                   keel_scratch *scratch, bool *done);
/* The bytes that a row takes for that. */
int64_t keel_change_lines_bytes(const keel_change *c);

/* change_needs.c: streams: the bytes of a row of each end of a call, and where they begin. */
size_t keel_change_room(const keel_change *c, const keel_change_rows *rows, size_t *at);

keel_step_facts keel_change_facts(const keel_applied *s, const keel_position *at);
/* One row, in the types that the model was compiled for. */
keel_status keel_change_run(const keel_change *c, const keel_change_rows *r,
                            const keel_step_facts *facts, int64_t row, const keel_change_ends *ends,
                            keel_scratch *scratch);

#endif
