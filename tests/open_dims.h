/* Shared by tests of open dims (None): the models and arrays of golden/make_dims.py, which come
 * from the real Keras, and strategies of one to four lanes. */
#ifndef TESTS_OPEN_DIMS_H
#define TESTS_OPEN_DIMS_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "data_files.h"
#include "io/npz.h"
#include "keel/keel.h"
#include "must.h"
#include "tensor/shape.h"

enum { BATCH = 4, EPOCHS = 3, LANES = 4 };

static keel_zip *golden;
static keel_strategy *strategy[LANES]; /* of 1 to 4 lanes */

static inline int start(void **unused)
{
    static const char *const devices[LANES] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    (void)unused;
    files_begin();
    for (int i = 0; i < LANES; i++)
        if (keel_strategy_create(&strategy[i], devices[i]) < 0) return -1;
    return keel_zip_open(&golden, "golden/dims.npz") < 0 ? -1 : 0;
}

static inline int finish(void **unused)
{
    (void)unused;
    keel_zip_close(golden);
    for (int i = 0; i < LANES; i++) keel_strategy_destroy(strategy[i]);
    files_end();
    return 0;
}

static inline keel_tensor stored(const char *format, ...)
{
    char name[96];
    keel_tensor t;
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    must(keel_npz_read(&t, golden, name));
    return t;
}

static inline keel_model *load(const char *name)
{
    char path[96];
    keel_model *m;
    snprintf(path, sizeof path, "golden/dims_%s.keras", name);
    must(keel_model_load(&m, path));
    return m;
}

static inline double apart(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        most = d > most ? d : most; /* no number stays no number */
        if (isnan(d)) return d;
    }
    return most;
}

static inline void compare_weights(const keel_model *m, const char *name, int lanes)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor want = stored("%s_weight_%d", name, i), got;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &got));
        const double d = apart(got.data, want.data, keel_shape_count(&want.shape));
        if (!(d < 2e-5)) fail_msg("%s, %d lanes: weight %d is %g off", name, lanes, i, d);
        keel_tensor_free(&want);
        keel_tensor_free(&got);
    }
}

#endif
