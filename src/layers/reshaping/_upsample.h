/* What layers share that make rows longer along their places. */
#ifndef KEEL_LAYERS_RESHAPING_UPSAMPLE_H
#define KEEL_LAYERS_RESHAPING_UPSAMPLE_H
#include "layers/layer.h"

/* Each of the dims before the channels by its factor, the last first, as there is least to write
 * then. */
keel_status keel_emit_upsample(keel_emit *e, const keel_ints *factors, bool between);

#endif
