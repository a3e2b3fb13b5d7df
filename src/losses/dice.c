/* Dice: l = 1 - 2 sum t p / (sum t + sum p). */
#include "losses/_overlap.h"

static const keel_field fields[] = { KEEL_LOSS_FIELDS(keel_overlap), KEEL_OVERLAP_AXIS, { 0 } };

static keel_status ready(void *args)
{
    keel_overlap *a = args;
    a->twice = 2;
    a->of_true = a->of_pred = 1;
    return KEEL_OK;
}

const keel_loss keel_loss_dice = {
    .type = {
        .name = "Dice",
        .module = "keras.losses",
        .help = "one minus the overlap of predictions and targets over their sizes",
        .args_size = sizeof(keel_overlap),
        .fields = fields,
        .ready = ready,
    },
    .reduction_offset = offsetof(keel_overlap, reduction),
    .whole = &keel_overlap_whole,
    .check = keel_overlap_check,
};
