/* What upsampling layers share. */
#ifndef KEEL_LAYERS_RESHAPING_UPSAMPLE_H
#define KEEL_LAYERS_RESHAPING_UPSAMPLE_H
#include "layers/layer.h"

/* Repeats along each dim before the channels by its factor, the last dim first, because least is
 * written then. */
keel_status keel_emit_upsample(keel_emit *e, const keel_ints *factors, bool between);

#endif
