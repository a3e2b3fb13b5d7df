/* Event files of TensorBoard: records of protocol buffers, each with its length and masked CRC-32C,
 * as tf.io.TFRecordWriter writes them. Only what TensorBoard shows of a training: numbers,
 * histograms, images and one graph. */
#ifndef KEEL_IO_EVENTS_H
#define KEEL_IO_EVENTS_H
#include "base/text.h"
#include "keel/tensor.h"

typedef struct keel_events keel_events;

/* Make the folder and a new file in it. KEEL_EIO names the path. */
keel_status keel_events_create(keel_events **out, const char *folder);
/* Each writes one event of a step and flushes it. KEEL_EIO: it could not be written. */
keel_status keel_events_scalar(keel_events *e, const char *tag, int64_t step, double value);
/* n numbers, float32 or float64, in 30 buckets of equal width. */
keel_status keel_events_histogram(keel_events *e, const char *tag, int64_t step, keel_dtype real,
                                  const void *value, int64_t n);
/* n images as PNG files. */
typedef struct keel_events_image {
    const void *png;
    size_t n_bytes;
} keel_events_image;
keel_status keel_events_images(keel_events *e, const char *tag, int64_t step, int64_t width,
                               int64_t height, const keel_events_image *image, int n);
/* A node of the graph: its inputs are names of nodes. */
typedef struct keel_events_node {
    const char *name, *op;
    const char *const *input;
    int n_input;
} keel_events_node;
keel_status keel_events_graph(keel_events *e, const keel_events_node *node, int n);
keel_status keel_events_close(keel_events *e); /* frees e in any case; NULL is allowed */

#endif
