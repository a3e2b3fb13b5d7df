/* Layer normalisation: see _layer_norm.h. */
#ifndef VALUE
#include "ops/x86/_layer_norm.h"

#define VALUE_FILE "ops/x86/layer_norm.c"
#include "ops/x86/_values.h"

VECTOR_BOTH_WEIGHTS(layer_norm, prepare);
#else
#include "ops/x86/_layer_norm.h"

static void VALUE_(forward)(const keel_call *c)
{
    VALUE_(normalize)(c, c->in[0], NULL, NULL, c->out[0]);
}

static void VALUE_(backward)(const keel_call *c)
{
    if (c->in_grad[0]) VALUE_(normalize_back)(c, c->in[0], c->out_grad[0], NULL, 1);
}

static void VALUE_(weights)(const keel_call *c)
{
    VALUE_(normalize_weights)(c, c->in[0], c->out_grad[0]);
}
#endif
