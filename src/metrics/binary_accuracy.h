/* The arguments of metrics/binary_accuracy.c. */
#ifndef KEEL_METRICS_BINARY_ACCURACY_H
#define KEEL_METRICS_BINARY_ACCURACY_H

typedef struct keel_binary_accuracy {
    double threshold; /* predictions above it count as 1 */
} keel_binary_accuracy;

#endif
