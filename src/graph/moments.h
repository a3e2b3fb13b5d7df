/* BatchNorm's records {mean [C], sum of squared deviations [C]}, combined with the same bits on any
 * processor: for rows on devices, where some are combined by the device and some by the host. */
#ifndef KEEL_GRAPH_MOMENTS_H
#define KEEL_GRAPH_MOMENTS_H
#include "ops/op.h"

/* A keel_combine, as that of ops/batch_norm.c, but products are rounded before they are added. */
void keel_moments_combine(const keel_node *n, keel_record left, keel_record right, double *out);

#endif
