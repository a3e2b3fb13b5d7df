/* Data of which another process has the rows. Of several processes (keel/process_group.h) process 0
 * reads a stream for all; the others need to know its fields, not its rows. A generator can be made
 * in each process, since it is called only where it is read. A program (exec:) is started when it
 * is opened: open it in process 0, and send its description to the others. */
#ifndef KEEL_DESCRIBED_H
#define KEEL_DESCRIBED_H
#include <keel/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Describe a stream: fields, classes, how many rows if that is known, and what it is made by.
 *
 * Shapes   out [bytes] of KEEL_UINT8
 * Returns  KEEL_OK; KEEL_END: its rows have numbers, so that each process reads its own; KEEL_EUNSUP:
 *          a name in it is not UTF-8; KEEL_ENOMEM
 * Owns     the caller frees *out with keel_tensor_free
 * Threads  any */
keel_status keel_dataset_describe(const keel_dataset *d, keel_tensor *out);

/* A dataset like the one that was described, for a process other than 0. It has no rows.
 *
 * Returns  KEEL_OK; KEEL_EFORMAT: no description; KEEL_EARG, KEEL_ESHAPE: it has impossible fields;
 *          KEEL_ENOMEM
 * Owns     the caller destroys *out; nothing of the text is kept
 * Threads  any */
keel_status keel_dataset_from_description(keel_dataset **out, const void *text, size_t n_bytes);

#ifdef __cplusplus
}
#endif
#endif
