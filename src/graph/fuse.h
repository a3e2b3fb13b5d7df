/* Fusing: an op that only changes what the op before it wrote is taken into that op, so that values
 * are read and written as few times as possible. */
#ifndef KEEL_GRAPH_FUSE_H
#define KEEL_GRAPH_FUSE_H
#include "graph/graph.h"

/* Rewrite `g` where what lies between two ops has one reader and is not among `keep` [n_keep],
 * values that others will ask for; they get their new numbers. Call it before nodes whose index
 * somebody remembers are added.
 *
 *     zero_pad2d -> conv2d, depthwise_conv2d   the convolution pads
 *     relu ... zero_pad2d -> max_pool2d        the pooling pads: nothing is below 0
 *     batch_norm -> relu, relu6                args relu, max_value of batch_norm
 *     batch_norm -> silu                       arg silu of batch_norm
 *     batch_norm -> add -> relu, relu6         and its second input, made before it
 *     relu -> max_pool2d                       arg relu of max_pool2d; reshapes may lie between
 *     add -> layer_norm                        add_layer_norm, whose outputs are both; others may
 *                                              read the sum, too
 *
 * Of relu, relu6, reshape and cast one is left, where several do the same with the same value. And
 * two ops change places, so that one of them has fewer places or channels to do:
 *
 *     upsample -> conv2d, conv3d of 1x1        the convolution first
 *     upsample, upsample -> add                the sum first, and one upsample
 *     conv2d of 1x1 -> average_pool2d          the pooling first, if it has strides
 *     average_pool2d -> conv2d of 1x1          the convolution first, if the pooling has none and
 *                                              there are fewer filters than channels
 *
 * A fused node is called by both layers, "bn + relu". Values and gradients are those of the graph
 * as it was, mostly to the bit in float32. Where padding moves into a window op, or ops change
 * places, a gradient may be added in another order; the results of average pooling and of
 * interpolation are then rounded at another point. Where two results are exactly 0, their signs may
 * differ. */
keel_status keel_graph_fuse(keel_graph *g, keel_value *keep, int n_keep);

#endif
