/* Moves of weights on the host: see device/move.h. */
#ifndef KEEL_OPTIMIZERS_MOVE_H
#define KEEL_OPTIMIZERS_MOVE_H
#include "device/move.h"

/* All of m is memory of the host. */
void keel_move(const keel_device_move *m);

#endif
