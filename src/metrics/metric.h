/* A metric adds up sums, in double, and computes its result from them. */
#ifndef KEEL_METRICS_METRIC_H
#define KEEL_METRICS_METRIC_H
#include "base/field.h"
#include "losses/loss.h"
#include "ops/op.h"

/* Most metrics are means: over the elements of a row, then over rows by their weights. They set
 * `of`, or the loss whose mean they are. */
typedef struct keel_metric {
    keel_type type;
    keel_target_kind target;
    keel_target_kind (*kind)(const void *args); /* instead of target, where arguments decide */
    keel_elements_run of[2];                    /* the sum of the values of elements */
    const keel_loss *loss; /* replaces target and of; args are those of the loss */
    /* A metric that is no mean: the number of its sums, for rows of elements of `last` numbers; and
     * what rows add to them. */
    int64_t (*sums)(const void *args, int64_t last);
    void (*add)(const keel_loss_call *c, int real, double *sum);
    /* Puts the sums of later rows into `into`; either may be zeros, of no rows. NULL: sums are
     * added. */
    void (*merge)(const void *args, double *into, const double *from, int64_t n);
    int direction;      /* 1: more is better; -1: less; 0: neither is known */
    size_t axis_offset; /* of that int64_t in args; 0: none */
    bool one_dim;       /* rows must have one dim, as in Keras */
    bool unmasked;      /* counts what the output's mask leaves out, as in Keras */

    keel_status (*check)(const void *args, int64_t last); /* of args against rows; NULL: nothing */
    /* The result from `n` sums; of a mean these are weighted values, and weights. */
    double (*result)(const void *args, const double *sum, int64_t n);
    /* Of a metric that may give several numbers: how many, and number i of them. If they are one,
     * it is the result. NULL: always one. */
    int64_t (*values)(const void *args, int64_t n);
    double (*value)(const void *args, const double *sum, int64_t n, int64_t i);
} keel_metric;

/* The numbers that a metric gives from `n` sums, at least 1, and number i of them. */
static inline int64_t keel_metric_values(const keel_metric *m, const void *args, int64_t n)
{
    return m->values ? m->values(args, n) : 1;
}
static inline double keel_metric_value(const keel_metric *m, const void *args, const double *sum,
                                       int64_t n, int64_t i)
{
    return keel_metric_values(m, args, n) > 1 ? m->value(args, sum, n, i) : m->result(args, sum, n);
}

/* The number of sums; keel_metric_check was KEEL_OK. */
int64_t keel_metric_sums(const keel_metric *m, const void *args, const keel_spec *prediction,
                         const keel_spec *target);

keel_status keel_metric_check(const keel_metric *m, const void *args, const keel_spec *prediction,
                              const keel_spec *target);
/* How targets match predictions. */
keel_target_kind keel_metric_target(const keel_metric *m, const void *args);
/* What its axis means for such rows. As keel_along_loss. */
struct keel_along;
keel_status keel_metric_along(struct keel_along *out, const keel_metric *m, const void *args,
                              const keel_spec *prediction, const keel_spec *target);
/* Add rows to sum [keel_metric_sums]; c is as for a loss, c->sum is not used. */
void keel_metric_update(const keel_metric *m, int real, const keel_loss_call *c, double *sum);

extern const keel_metric *const keel_metrics[]; /* generated; ends with NULL */
const keel_type *keel_metric_find(const char *name);
/* _functions.c. The metric that is the mean of a function of Keras's; NULL: none. */
const keel_type *keel_metric_function(const char *name);
const keel_type *keel_metric_registered(const char *name); /* _custom.c; NULL: none */
extern const keel_metric keel_metric_values_mean;          /* _values.c */
/* Resolve "accuracy" and "crossentropy" by loss and shapes, as Keras does. */
const char *keel_metric_resolve(const char *name, const char *loss, const keel_spec *prediction,
                                const keel_spec *target);

/* The fields of every Keras metric, and the table of a metric without other fields. */
#define KEEL_METRIC_FIELDS                                                                         \
    KEEL_IGNORE("name", "the name in logs, which the compiled model keeps"),                       \
        KEEL_IGNORE("dtype", "sums are always double")
extern const keel_field keel_metric_fields[];

/* sum[0] / sum[1], weighted values over weights; 0 if there were none. */
double keel_metric_mean(const void *args, const double *sum, int64_t n);

#endif
