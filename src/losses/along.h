/* Losses and metrics compute along the last dim of a row. One whose `axis` is another dim gets
 * predictions and targets with that dim moved to the end, by ops of the graph. */
#ifndef KEEL_LOSSES_ALONG_H
#define KEEL_LOSSES_ALONG_H
#include "graph/graph.h"
#include "losses/loss.h"

typedef struct keel_along {
    bool moves;                   /* else nothing is to be done */
    int64_t axis;                 /* of a row: the dim that the loss runs along */
    keel_spec prediction, target; /* of a row, as the loss gets them */
} keel_along;

/* What `axis` (counted with the batch, -1 is the last) means for such rows; `name` is for messages.
 * KEEL_EUNSUP: it is the batch; KEEL_EARG: there is no such dim; KEEL_ESHAPE: targets that are no
 * class numbers have another shape than predictions. */
keel_status keel_along_find(keel_along *out, int64_t axis, keel_target_kind kind, const char *name,
                            const keel_spec *prediction, const keel_spec *target);
/* The same for a loss; one without an axis runs along the last dim. KEEL_EUNSUP: Keras would take
 * one of its arguments along the last dim all the same. */
keel_status keel_along_loss(keel_along *out, const keel_loss *l, const void *args,
                            const keel_spec *prediction, const keel_spec *target);
/* keel_loss_check of the values as the loss gets them. */
keel_status keel_along_check(const keel_loss *l, const void *args, const keel_spec *prediction,
                             const keel_spec *target, int64_t *elements);
/* Adds the ops. */
keel_status keel_along_emit(const keel_along *a, keel_target_kind kind, keel_graph *g,
                            keel_value *prediction, keel_value *target);

#endif
