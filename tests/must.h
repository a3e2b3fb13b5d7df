/* Calls that a test needs to succeed before it comes to its point. */
#ifndef KEEL_TESTS_MUST_H
#define KEEL_TESTS_MUST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "keel/keel.h"

static inline void must(keel_status s)
{
    if (s < 0) fail_msg("%s", keel_error());
}

/* Call a new layer of that class on one value. */
static inline keel_symbol must_call(keel_model *m, const char *layer, const keel_arg *args,
                                    keel_symbol in)
{
    keel_symbol out;
    must(keel_model_call(m, layer, args, &in, 1, &out));
    return out;
}

#endif
