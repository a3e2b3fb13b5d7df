/* Sequences of the last dim, at equal distances. */
#include "layers/operations/_operation.h"
#include "ops/frames.h"

typedef struct args_t {
    int64_t sequence_length, sequence_stride;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, sequence_length, NULL, 1, KEEL_FFT_MAX, "numbers of a sequence"),
    KEEL_INT(args_t, sequence_stride, NULL, 1, 1e9, "from one to the next"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_frames_args op = { .size = a->sequence_length,
                                  .stride = a->sequence_stride,
                                  .window = { .length = a->sequence_length } };
    return keel_emit_unary(e, &keel_op_frames, &op);
}

KEEL_ARGS_OPERATION(ops_extract_sequences, "ExtractSequences", "math", 1,
                    "Sequences of the last dim, at equal distances.", .whole = KEEL_WHOLE_KEPT)
