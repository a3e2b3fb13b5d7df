/* What cropping layers share. */
#ifndef KEEL_LAYERS_RESHAPING_CROPPING_H
#define KEEL_LAYERS_RESHAPING_CROPPING_H
#include "layers/layer.h"

typedef struct keel_cropping {
    keel_ints cropping; /* {before, behind} of each dim */
    int data_format;
} keel_cropping;

/* The emit of such a layer of `dims` dims: e->args is a keel_cropping. */
keel_status keel_emit_cropping(keel_emit *e, int dims);

#endif
