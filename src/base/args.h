/* Arguments of a C call as JSON. */
#ifndef KEEL_BASE_ARGS_H
#define KEEL_BASE_ARGS_H
#include "base/error.h"
#include "keel/args.h"
#include <jansson.h>

/* A JSON object of typed arguments; NULL args: an empty one. KEEL_EARG: an argument that is given
 * twice, is not UTF-8 or not finite. */
keel_status keel_args_json(const keel_arg *args, json_t **out);

#endif
