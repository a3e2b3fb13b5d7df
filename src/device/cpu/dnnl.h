/* One interface to oneDNN 2.6 and 3.x; kernels use oneDNN only through this header.
 *
 * The versions share C names but differ in descriptors (structs in 2.6, handles in 3.x) and in enum
 * values, so a build of Keel is for one major version. Everything is single-threaded: a primitive
 * is created and run in a thread that called keel_cpu_single_thread(). The caller provides
 * scratchpads.
 *
 * The loaded library must have the major version that Keel was compiled for, and run on OpenMP or
 * sequentially; otherwise every function below fails with KEEL_EDEVICE. */
#ifndef KEEL_DEVICE_CPU_DNNL_H
#define KEEL_DEVICE_CPU_DNNL_H
#include "base/error.h"
#include <dnnl.h>
#include <stdbool.h>
#include <stdint.h>

/* The layout of a tensor: in 2.6 a plain struct, in 3.x an owned handle. Zero bytes: empty. */
typedef struct keel_dnnl_md {
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t md;
#else
    dnnl_memory_desc_t md[1];
#endif
} keel_dnnl_md;

enum { KEEL_DNNL_ARGS = 8, KEEL_DNNL_DIMS = 6 };

keel_status keel_dnnl_md_tag(keel_dnnl_md *m, dnnl_data_type_t type, int n, const int64_t *dims,
                             dnnl_format_tag_t tag);
keel_status keel_dnnl_md_strides(keel_dnnl_md *m, dnnl_data_type_t type, int n, const int64_t *dims,
                                 const int64_t *strides);
void keel_dnnl_md_free(keel_dnnl_md *m); /* and zero it */
bool keel_dnnl_md_equal(const keel_dnnl_md *a, const keel_dnnl_md *b);
size_t keel_dnnl_md_bytes(const keel_dnnl_md *m);
/* A hash of layout, dims and type; equal layouts have equal keys. 0: a layout that is not described
 * by blocks and strides alone. */
uint64_t keel_dnnl_md_key(const keel_dnnl_md *m);
/* The layout that a primitive chose, for what = dnnl_query_src_md, dnnl_query_weights_md, ... */
keel_status keel_dnnl_md_wanted(keel_dnnl_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what);

/* The geometry of a convolution. dilation as in oneDNN: 0 is dense. */
typedef struct keel_dnnl_window {
    int dims; /* of places: height, width, and before them the depth of a volume */
    int64_t stride[3], dilation[3], before[3], after[3];
} keel_dnnl_window;

/* Each makes a primitive descriptor. KEEL_EUNSUP: oneDNN has no implementation. bias may be NULL.
 */
keel_status keel_dnnl_conv_forward(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                   const keel_dnnl_md *weights, const keel_dnnl_md *bias,
                                   const keel_dnnl_md *dst, const keel_dnnl_window *w);
keel_status keel_dnnl_conv_backward(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                    const keel_dnnl_md *weights, const keel_dnnl_md *dst,
                                    const keel_dnnl_window *w);
keel_status keel_dnnl_conv_weights(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                   const keel_dnnl_md *weights, const keel_dnnl_md *bias,
                                   const keel_dnnl_md *dst, const keel_dnnl_window *w);
/* True if the implementation is oneDNN's plain reference, which is no faster than Keel's. */
bool keel_dnnl_is_reference(const_dnnl_primitive_desc_t pd);
bool keel_dnnl_uses_tiles(const_dnnl_primitive_desc_t pd); /* AMX */
/* dst = src, or dst += src when `adds`, between two layouts of the same dims. */
keel_status keel_dnnl_reorder(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                              const keel_dnnl_md *dst, bool adds);

/* A primitive with its memory objects, used by one thread at a time. Zero bytes: empty. */
typedef struct keel_dnnl_primitive {
    dnnl_primitive_t primitive;
    int n_arg;
    dnnl_exec_arg_t arg[KEEL_DNNL_ARGS];
    size_t scratch; /* bytes of scratch that keel_dnnl_run needs */
} keel_dnnl_primitive;

/* Make a primitive from pd, which is consumed, on failure too. args: DNNL_ARG_SRC, ..., 0. */
keel_status keel_dnnl_create(keel_dnnl_primitive *p, dnnl_primitive_desc_t pd, const int *args);
void keel_dnnl_destroy(keel_dnnl_primitive *p); /* and zero it */
/* Run on data, one pointer for each of args, in their order. scratch: p->scratch bytes, 64-byte
 * aligned. */
keel_status keel_dnnl_run(const keel_dnnl_primitive *p, void *const *data, void *scratch);

/* C[m,n] = A[m,k] * B[k,n] (+ C if adds), row major; transposed operands are stored [k,m] and
 * [n,k]. */
keel_status keel_dnnl_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                            const float *a, int64_t lda, const float *b, int64_t ldb, bool adds,
                            float *c, int64_t ldc);

#endif
