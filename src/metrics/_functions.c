/* A function of Keras's as a metric: metrics=[keras.losses.huber], or a MeanMetricWrapper around
 * one. A file has its name only. That of a loss comes first, as in Keras: cosine_similarity is the
 * negative one, which the metric of that name is not. */
#include "metrics/metric.h"
#include <pthread.h>
#include <string.h>

enum { LOSSES_MAX = 64 };

static keel_metric of_losses[LOSSES_MAX]; /* by the number of the loss; without a name: none */
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* The mean of the values of a loss that has one for each element. Its args are those of the loss,
 * of which the reduction says nothing here. */
static void make_all(void)
{
    for (int i = 0; keel_losses[i] && i < LOSSES_MAX; i++) {
        const keel_loss *l = keel_losses[i];
        if (l->whole || l->scratch) continue;
        of_losses[i] = (keel_metric){ .type = l->type,
                                      .loss = l,
                                      .axis_offset = l->axis_offset,
                                      .direction = -1,
                                      .result = keel_metric_mean };
        of_losses[i].type.module = "keras.metrics";
    }
}

const keel_type *keel_metric_function(const char *name)
{
    pthread_once(&made, make_all);
    for (int i = 0; keel_losses[i] && i < LOSSES_MAX; i++)
        if (of_losses[i].type.name && keel_type_is(&of_losses[i].type, name))
            return &of_losses[i].type;
    const keel_type *type = keel_metric_find(name);
    return type && ((const keel_metric *)type)->result == keel_metric_mean ? type : NULL;
}
