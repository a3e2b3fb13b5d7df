/* See npy_write.h. Source: numpy/lib/format.py, "NPY format". */
#include "io/npy_write.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t keel_npy_header_write(char out[KEEL_NPY_HEADER_MOST], keel_dtype dtype,
                             const keel_shape *shape)
{
    enum { HEAD = 10, DIGITS = 19, LINE = 64 };
    static const char *const types[KEEL_DTYPE_COUNT] = {
        [KEEL_FLOAT32] = "<f4", [KEEL_FLOAT64] = "<f8", [KEEL_UINT8] = "|u1",
        [KEEL_INT32] = "<i4",   [KEEL_INT64] = "<i8",   [KEEL_BOOL] = "|b1"
    };
    char dims[KEEL_RANK_MAX * (DIGITS + 3)] = "", first[DIGITS + 2];
    size_t at = 0;
    for (int i = 0; i < shape->rank; i++)
        at += (size_t)snprintf(dims + at, sizeof dims - at, "%s%" PRId64, i ? ", " : "",
                               shape->dim[i]);
    const int digits = snprintf(first, sizeof first, "%" PRId64, shape->rank ? shape->dim[0] : 0);
    int n = snprintf(out + HEAD, KEEL_NPY_HEADER_MOST - HEAD,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", types[dtype],
                     dims, shape->rank == 1 ? "," : "");
    const int size = (HEAD + n + DIGITS - digits + 1 + LINE - 1) / LINE * LINE;
    memset(out + HEAD + n, ' ', (size_t)(size - HEAD - n));
    out[size - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01", 7);
    out[7] = 0;
    out[8] = (char)((size - HEAD) & 255);
    out[9] = (char)((size - HEAD) >> 8);
    return (size_t)size;
}
