/* Shared by tests of layers that look texts and numbers up: golden/lookups.json, made by
 * golden/make_lookups.py from the real Keras, its columns as tensors, and two strategies. */
#ifndef TESTS_LOOKUPS_H
#define TESTS_LOOKUPS_H
#include "data_files.h"
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "must.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static json_t *golden;
static keel_strategy *one, *three;

static inline keel_tensor texts_of(const json_t *list, keel_shape shape)
{
    const size_t n = json_array_size(list);
    keel_string *text = calloc(n + 1, sizeof *text);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(list, i);
        text[i] = (keel_string){ json_string_value(s), (int64_t)json_string_length(s) };
    }
    return (keel_tensor){ KEEL_STRING, shape, text };
}

static inline keel_tensor numbers_of(const json_t *list, keel_shape shape)
{
    const size_t n = json_array_size(list);
    int64_t *number = calloc(n + 1, sizeof *number);
    for (size_t i = 0; i < n; i++) number[i] = json_integer_value(json_array_get(list, i));
    return (keel_tensor){ KEEL_INT64, shape, number };
}

static inline keel_tensor column_of(const json_t *list, const char *dtype, keel_shape shape)
{
    if (!strcmp(dtype, "string")) return texts_of(list, shape);
    if (!strcmp(dtype, "int64")) return numbers_of(list, shape);
    return (keel_tensor){ KEEL_FLOAT32, shape, golden_reals(list, false) };
}

static inline int begin(void **state)
{
    golden = golden_load("lookups.json");
    return keel_strategy_create(&one, "cpu:0") < 0 || keel_strategy_create(&three, "cpu:0-2") < 0;
}

static inline int end(void **state)
{
    json_decref(golden);
    keel_strategy_destroy(one);
    keel_strategy_destroy(three);
    return keel_memory_live() != 0;
}

#endif
