/* Shares: devices that are not equally fast get unequal parts of each step. */
#ifndef KEEL_SHARE_H
#define KEEL_SHARE_H
#include <keel/model.h>
#include <keel/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Give the devices unequal parts of each step: with shares of 3 and 1 the first of two has three of
 * four rows. share [n], one for each device, 1 to 1000; NULL: equal parts again. Results do not
 * depend on them, as they do not depend on the number of devices: to the bit, if the strategy is
 * reproducible, and then each device has whole shards. Of several processes all call this, each for
 * its own devices; with NULL in some of them, these have shares of 1.
 *
 * Returns  KEEL_OK; KEEL_EARG: not one for each device, not 1 to 1000, or a device would have none
 *          of the shards
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s */
keel_status keel_strategy_share(keel_strategy *s, const int *share, int n);

/* The share of a device.
 *
 * Returns  the share, 1 if all are equal; 0: no such device
 * Owns     nothing changes hands
 * Threads  any */
int keel_strategy_share_of(const keel_strategy *s, int device);

/* Give the devices shares by their speed: a few steps of training are measured, on made-up rows and
 * on one device of each kind, while the others rest. GPUs of one model are of one kind, and so are
 * devices of as many cores. rows: of a step, of which each device gets one at least. inputs: as for
 * keel_plan_make. If all are of one kind, nothing is measured, and their parts are equal. Where the
 * loss of made-up rows is not finite, steps are without their last part, which moves the weights.
 * Of several processes all call this, with the same model, and each measures its own devices;
 * within 5 % they count as equally fast.
 *
 * Returns  KEEL_OK, with the shares set; KEEL_EUNSUP: one of several processes has more devices than
 *          cores; as keel_fit, except KEEL_ENUMERIC
 * Owns     nothing changes hands; the model's weights do not change
 * Threads  one at a time on a model and on a strategy
 * Cost     half a second for each kind, or eight steps if those take longer; the memory of a fit */
keel_status keel_strategy_share_by_speed(keel_strategy *s, keel_model *m, int64_t rows,
                                         const keel_shape *inputs);

#ifdef __cplusplus
}
#endif
#endif
