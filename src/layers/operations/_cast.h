/* Numbers of another type. Values of a model are real numbers, whatever Keras calls them, so whole
 * numbers are those without a fraction; exact up to 2^24, as float32 is. */
#ifndef KEEL_LAYERS_OPERATIONS_CAST_H
#define KEEL_LAYERS_OPERATIONS_CAST_H
#include "layers/operations/_values.h"

/* dtype NULL: the type stays. `clamps`: numbers beyond a type become its nearest. */
keel_status keel_emit_cast(keel_emit *e, const char *dtype, bool clamps, keel_value x,
                           keel_value *out);

/* KEEL_EUNSUP: a dtype other than float32 or none, with the reason. */
keel_status keel_float32_only(const char *dtype, const char *why);

#endif
