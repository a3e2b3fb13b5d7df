/* Numbers of the real Keras for tests: JSON files in tests/golden, made by the script beside them.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "keel/tensor.h"

/* The path of a file in tests/golden, whatever the working directory. It stays as it is for one
 * more call. */
__attribute__((format(printf, 1, 2))) const char *golden_path(const char *format, ...);

/* The JSON of tests/golden/<name>, which Python wrote; exits where it cannot be read. */
json_t *golden_load(const char *name);

static inline double golden_number(const json_t *case_, const char *key)
{
    return json_number_value(json_object_get(case_, key));
}

static inline const char *golden_text(const json_t *case_, const char *key)
{
    return json_string_value(json_object_get(case_, key));
}

static inline keel_shape golden_shape(const json_t *case_, const char *key)
{
    const json_t *list = json_object_get(case_, key);
    keel_shape s = { .rank = (int)json_array_size(list) };
    for (int i = 0; i < s.rank; i++) s.dim[i] = json_integer_value(json_array_get(list, (size_t)i));
    return s;
}

/* A list of numbers as float32 or float64; NULL where it is null. The caller frees it. */
static inline void *golden_reals(const json_t *list, int f64)
{
    const size_t n = json_array_size(list);
    double *d = json_is_array(list) ? calloc(n + 1, sizeof *d) : NULL;
    if (!d) return NULL;
    for (size_t i = 0; i < n; i++) {
        const double x = json_number_value(json_array_get(list, i));
        if (f64)
            d[i] = x;
        else
            ((float *)d)[i] = (float)x;
    }
    return d;
}

static inline double golden_at(const void *reals, int f64, size_t i)
{
    return f64 ? ((const double *)reals)[i] : (double)((const float *)reals)[i];
}

/* |a - b| <= tolerance * max(1, |b|), and NAN is never near. */
static inline int golden_near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

#endif
