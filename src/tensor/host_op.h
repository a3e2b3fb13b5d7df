/* Host ops: what a field of a row is made into where rows are read, before any step sees it. A
 * layer that takes texts says one when it is emitted, and the feed runs it. */
#ifndef KEEL_TENSOR_HOST_OP_H
#define KEEL_TENSOR_HOST_OP_H
#include "base/scratch.h"
#include "keel/tensor.h"

/* Of one row: read `in` and fill `out`, whose types and shapes (without the batch) are those that
 * the layer was emitted with. Any thread, at the same time as others; what is needed on the way is
 * in `scratch`. KEEL_EDATA: the row cannot be; the text says what is in it. */
typedef keel_status (*keel_host_op)(const void *args, const keel_tensor *in, const keel_tensor *out,
                                    keel_scratch *scratch);

#endif
