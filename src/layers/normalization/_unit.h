/* What UnitNormalization and Dot share: vectors of length 1. */
#ifndef KEEL_LAYERS_UNIT_H
#define KEEL_LAYERS_UNIT_H
#include "layers/layer.h"

/* x / max(sqrt(sum x^2), least), the sum over those dims of a row; *x becomes it. */
keel_status keel_emit_unit(keel_emit *e, const bool over[KEEL_RANK_MAX], double least,
                           keel_value *x);

#endif
