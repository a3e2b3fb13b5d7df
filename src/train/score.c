/* See score.h. The loss's gradient is that of its numerator (rule 2): seed 1; the one division is
 * done when gradients are reduced. */
#include "train/score.h"

static keel_status loss_infer(keel_node *n)
{
    n->sums = KEEL_LOSS_SUMS;
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

static void run_loss(const keel_call *c, int real)
{
    const keel_loss_args *a = c->node->args;
    a->loss->run[real](&(keel_loss_call){ .args = a->args,
                                          .prediction = &c->node->in[0],
                                          .target = &c->node->in[1],
                                          .rows = c->rows,
                                          .y_pred = c->in[0],
                                          .y_true = c->in[1],
                                          .row = c->row,
                                          .weight = c->in[2],
                                          .seed = 1,
                                          .grad = c->in_grad[0],
                                          .sum = c->partial });
}

static void loss_f32(const keel_call *c)
{
    run_loss(c, 0);
}

static void loss_f64(const keel_call *c)
{
    run_loss(c, 1);
}

const keel_op keel_loss_op = {
    .name = "loss",
    .args_size = sizeof(keel_loss_args),
    .infer = loss_infer,
    .forward = { loss_f32, loss_f64 },
    .backward = { loss_f32, loss_f64 },
    .backward_reads = KEEL_READS_IN,
    .loss = true,
};

static keel_status metric_infer(keel_node *n)
{
    n->sums = KEEL_METRIC_SUMS;
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

static void run_metric(const keel_call *c, int real)
{
    const keel_metric_args *a = c->node->args;
    a->metric->update[real](&(keel_metric_call){ .args = a->args,
                                                 .prediction = &c->node->in[0],
                                                 .target = &c->node->in[1],
                                                 .rows = c->rows,
                                                 .y_pred = c->in[0],
                                                 .y_true = c->in[1],
                                                 .weight = a->weighted ? c->in[2] : NULL,
                                                 .sum = c->partial });
}

static void metric_f32(const keel_call *c)
{
    run_metric(c, 0);
}

static void metric_f64(const keel_call *c)
{
    run_metric(c, 1);
}

const keel_op keel_metric_op = {
    .name = "metric",
    .args_size = sizeof(keel_metric_args),
    .infer = metric_infer,
    .forward = { metric_f32, metric_f64 },
};
