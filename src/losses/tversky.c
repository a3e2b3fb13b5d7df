/* Tversky: l = 1 - I / (I + alpha sum t (1 - p) + beta sum (1 - t) p), where I = sum t p (Salehi et
 * al. 2017, arXiv 1706.05721). alpha weighs what predictions miss, beta what they have too much, as
 * in Keras's code. */
#include "losses/_overlap.h"

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(keel_overlap),
    KEEL_FLOAT(keel_overlap, alpha, "0.5", -1e30, 1e30, "how much counts what predictions miss"),
    KEEL_FLOAT(keel_overlap, beta, "0.5", -1e30, 1e30, "how much counts what is not in targets"),
    KEEL_OVERLAP_AXIS,
    { 0 },
};

static keel_status ready(void *args)
{
    keel_overlap *a = args;
    a->twice = 1;
    a->inside = 1 - a->alpha - a->beta;
    a->of_true = a->alpha;
    a->of_pred = a->beta;
    return KEEL_OK;
}

const keel_loss keel_loss_tversky = {
    .type = {
        .name = "Tversky",
        .module = "keras.losses",
        .help = "one minus the overlap of predictions and targets, their errors weighted apart",
        .args_size = sizeof(keel_overlap),
        .fields = fields,
        .ready = ready,
    },
    .reduction_offset = offsetof(keel_overlap, reduction),
    .whole = &keel_overlap_whole,
    .check = keel_overlap_check,
};
