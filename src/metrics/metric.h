/* Metrics are sums of doubles per piece, added in piece order, and one result of the sums. */
#ifndef KEEL_METRICS_METRIC_H
#define KEEL_METRICS_METRIC_H
#include "base/field.h"
#include "losses/loss.h"
#include "ops/op.h"

enum { KEEL_METRIC_SUMS = 4 };

typedef struct keel_metric_call {
    const void *args;
    const keel_spec *prediction, *target;
    int64_t rows;
    const void *y_pred, *y_true;
    const void
        *weight; /* [rows]; NULL: all one (Keras: metrics= are unweighted, weighted_metrics= not) */
    double *sum; /* [KEEL_METRIC_SUMS], added to */
} keel_metric_call;

typedef struct keel_metric {
    keel_type type; /* alias: what Keras also accepts, "mse" */
    const char *alias2;
    keel_status (*check)(const void *args, const keel_spec *prediction, const keel_spec *target);
    void (*update[2])(const keel_metric_call *c);
    double (*result)(const void *args, const double sum[KEEL_METRIC_SUMS]);
} keel_metric;

extern const keel_metric *const keel_metrics[]; /* generated; ends with NULL */
const keel_type *keel_metric_find(const char *name);
/* "accuracy" and "crossentropy" mean what Keras makes of them from the loss and the shapes. */
const char *keel_metric_resolve(const char *name, const char *loss, const keel_spec *prediction,
                                const keel_spec *target);

/* The fields of every Keras metric. */
#define KEEL_METRIC_FIELDS                                                                         \
    KEEL_IGNORE("name", "shown in logs; whoever compiles keeps it"),                               \
        KEEL_IGNORE("dtype", "sums are always double")

/* sum[0] / sum[1]: weighted values over weights, 0 before anything was seen. */
double keel_metric_mean(const void *args, const double sum[KEEL_METRIC_SUMS]);
/* The update of a metric that is a loss's mean over rows; c->args are the loss's. */
void keel_metric_of_loss(const keel_metric_call *c, keel_loss_run run);

#endif
