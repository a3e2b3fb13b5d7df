/* Host ops: functions that the feed applies to fields of each row while reading, before any step.
 * A layer that looks up texts or numbers provides one when it is emitted. */
#ifndef KEEL_TENSOR_HOST_OP_H
#define KEEL_TENSOR_HOST_OP_H
#include "base/scratch.h"
#include "keel/tensor.h"

enum { KEEL_HOST_INS_MAX = 8 };

/* Read `in` [n_in] and fill `out`, for one row; types and shapes (without the batch) are those that
 * the layer was emitted with. Thread-safe; `scratch` belongs to the calling thread. KEEL_EDATA: an
 * invalid row; the text quotes it. */
typedef keel_status (*keel_host_op)(const void *args, const keel_tensor *in, int n_in,
                                    const keel_tensor *out, keel_scratch *scratch);

#endif
