/* The arguments of the two metrics of the k largest predictions. */
#ifndef KEEL_METRICS_TOP_K_H
#define KEEL_METRICS_TOP_K_H
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_top_k {
    int64_t k;
    bool from_sorted_ids; /* of labels only: predictions are numbers of classes, the best first */
} keel_top_k;

#endif
