/* One interface over the C APIs of oneDNN 2.6 and 3.x, which differ in three ways. Memory
 * descriptors are structs in 2.6, handles in 3.x. A primitive descriptor takes two calls in 2.6
 * (fill an operation descriptor, then create), one call in 3.x. A convolution without dilation has
 * its own call in 2.6; 3.x always takes the dilation. In both, primitive descriptors and primitives
 * keep the thread count of the thread that creates them. */
#include "device/cpu/dnnl.h"
#include "device/cpu/cpu.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define V3 (DNNL_VERSION_MAJOR >= 3)

/* With OpenMP, a CPU engine and stream have no state between calls, so one of each serves every
 * thread, for the life of the process. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_stream_t stream;
static char version[32] = "none", fault[160];

/* oneDNN fixes its instruction set at the first query, so this must come before. */
static void limit_instructions(void)
{
    static const dnnl_cpu_isa_t most[KEEL_CPU_ISAS] = {
        [KEEL_CPU_BASE] = dnnl_cpu_isa_sse41,
        [KEEL_CPU_AVX2] = dnnl_cpu_isa_avx2,
        [KEEL_CPU_AVX512] = dnnl_cpu_isa_avx512_core,
        [KEEL_CPU_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
    };
    const keel_cpu_isa limit = keel_cpu_limit_now();
    /* Without a limit of Keel, the user's ONEDNN_MAX_CPU_ISA applies. */
    if (limit < KEEL_CPU_AMX && dnnl_set_max_cpu_isa(most[limit]) != dnnl_success)
        snprintf(fault, sizeof fault, "oneDNN %s: cannot be limited to %s", version,
                 keel_cpu_isa_name(limit));
}

static void start(void)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(version, sizeof version, "%d.%d.%d", v->major, v->minor, v->patch);
    limit_instructions();
    if (fault[0]) return;
    if (v->major != DNNL_VERSION_MAJOR)
        snprintf(fault, sizeof fault,
                 "oneDNN: version %s is loaded, but Keel was built for version %d", version,
                 DNNL_VERSION_MAJOR);
    else if (v->cpu_runtime != DNNL_RUNTIME_OMP && v->cpu_runtime != DNNL_RUNTIME_SEQ)
        snprintf(fault, sizeof fault,
                 "oneDNN %s: uses threading runtime %u; OpenMP or sequential is needed", version,
                 v->cpu_runtime);
    else if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
             dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)
        snprintf(fault, sizeof fault, "oneDNN %s: no CPU engine", version);
}

static keel_status ready(void)
{
    pthread_once(&once, start);
    return fault[0] ? keel_fail(KEEL_EDEVICE, "%s", fault) : KEEL_OK;
}

const char *keel_dnnl_version(void)
{
    pthread_once(&once, start);
    return version;
}

/* For a shape without implementation oneDNN returns unimplemented or invalid_arguments. */
static keel_status status_of(dnnl_status_t s, const char *what)
{
    switch (s) {
    case dnnl_success:
        return KEEL_OK;
    case dnnl_out_of_memory:
        return keel_fail(KEEL_ENOMEM, "oneDNN: %s: out of memory", what);
    case dnnl_unimplemented:
    case dnnl_invalid_arguments:
        return keel_fail(KEEL_EUNSUP, "oneDNN: %s: not for this shape", what);
    default:
        return keel_fail(KEEL_EDEVICE, "oneDNN: %s: status %d", what, (int)s);
    }
}

/* Layouts ------------------------------------------------------------------------------------ */

static bool fill(dnnl_dims_t out, int n, const int64_t *in)
{
    if (n < 1 || n > KEEL_DNNL_DIMS) return false;
    memset(out, 0, sizeof(dnnl_dims_t));
    for (int i = 0; i < n; i++) {
        if (in[i] <= 0 || in[i] > INT_MAX) return false; /* oneDNN's kernels count in int */
        out[i] = in[i];
    }
    return true;
}

keel_status keel_dnnl_md_tag(keel_dnnl_md *m, dnnl_data_type_t type, int n, const int64_t *dims,
                             dnnl_format_tag_t tag)
{
    dnnl_dims_t d;
    if (!fill(d, n, dims)) return status_of(dnnl_invalid_arguments, "layout");
#if V3
    return status_of(dnnl_memory_desc_create_with_tag(&m->md, n, d, type, tag), "layout");
#else
    return status_of(dnnl_memory_desc_init_by_tag(m->md, n, d, type, tag), "layout");
#endif
}

keel_status keel_dnnl_md_strides(keel_dnnl_md *m, dnnl_data_type_t type, int n, const int64_t *dims,
                                 const int64_t *strides)
{
    dnnl_dims_t d, s;
    if (!fill(d, n, dims) || !fill(s, n, strides))
        return status_of(dnnl_invalid_arguments, "layout");
#if V3
    return status_of(dnnl_memory_desc_create_with_strides(&m->md, n, d, type, s), "layout");
#else
    return status_of(dnnl_memory_desc_init_by_strides(m->md, n, d, type, s), "layout");
#endif
}

void keel_dnnl_md_free(keel_dnnl_md *m)
{
#if V3
    if (m->md) dnnl_memory_desc_destroy(m->md);
#endif
    memset(m, 0, sizeof *m);
}

bool keel_dnnl_md_equal(const keel_dnnl_md *a, const keel_dnnl_md *b)
{
    return dnnl_memory_desc_equal(a->md, b->md) != 0;
}

size_t keel_dnnl_md_bytes(const keel_dnnl_md *m)
{
    return dnnl_memory_desc_get_size(m->md);
}

static void mix(uint64_t *h, const void *data, size_t bytes) /* FNV-1a */
{
    const unsigned char *b = data;
    for (size_t i = 0; i < bytes; i++) *h = (*h ^ b[i]) * 1099511628211u;
}

uint64_t keel_dnnl_md_key(const keel_dnnl_md *m)
{
    uint64_t h = 14695981039346656037u;
#if V3
    int n = 0, n_inner = 0;
    dnnl_format_kind_t kind;
    dnnl_data_type_t type;
    const dnnl_query_t what[] = { dnnl_query_dims, dnnl_query_padded_dims, dnnl_query_strides };
    const dnnl_query_t inner[] = { dnnl_query_inner_blks, dnnl_query_inner_idxs };
    if (dnnl_memory_desc_query(m->md, dnnl_query_format_kind, &kind) != dnnl_success ||
        kind != dnnl_blocked ||
        dnnl_memory_desc_query(m->md, dnnl_query_data_type, &type) != dnnl_success ||
        dnnl_memory_desc_query(m->md, dnnl_query_ndims_s32, &n) != dnnl_success ||
        dnnl_memory_desc_query(m->md, dnnl_query_inner_nblks_s32, &n_inner) != dnnl_success)
        return 0;
    mix(&h, &n, sizeof n);
    mix(&h, &type, sizeof type);
    for (int i = 0; i < 3; i++) {
        const dnnl_dims_t *d;
        if (dnnl_memory_desc_query(m->md, what[i], &d) != dnnl_success) return 0;
        mix(&h, *d, sizeof(*d)[0] * (size_t)n);
    }
    for (int i = 0; i < 2; i++) {
        const dnnl_dims_t *d;
        if (dnnl_memory_desc_query(m->md, inner[i], &d) != dnnl_success) return 0;
        mix(&h, *d, sizeof(*d)[0] * (size_t)n_inner);
    }
#else
    const dnnl_memory_desc_t *md = m->md;
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (md->format_kind != dnnl_blocked || md->extra.flags) return 0;
    const size_t n = sizeof(dnnl_dim_t) * (size_t)md->ndims;
    const size_t n_inner = sizeof(dnnl_dim_t) * (size_t)b->inner_nblks;
    mix(&h, &md->ndims, sizeof md->ndims);
    mix(&h, &md->data_type, sizeof md->data_type);
    mix(&h, md->dims, n);
    mix(&h, md->padded_dims, n);
    mix(&h, b->strides, n);
    mix(&h, b->inner_blks, n_inner);
    mix(&h, b->inner_idxs, n_inner);
#endif
    return h ? h : 1;
}

keel_status keel_dnnl_md_wanted(keel_dnnl_md *m, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
#if V3
    const_dnnl_memory_desc_t have = dnnl_primitive_desc_query_md(pd, what, 0);
    if (!have) return status_of(dnnl_invalid_arguments, "wanted layout");
    return status_of(dnnl_memory_desc_clone(&m->md, have), "wanted layout");
#else
    const dnnl_memory_desc_t *have = dnnl_primitive_desc_query_md(pd, what, 0);
    if (!have) return status_of(dnnl_invalid_arguments, "wanted layout");
    m->md[0] = *have;
    return KEEL_OK;
#endif
}

/* Primitive descriptors ---------------------------------------------------------------------- */

static keel_status user_scratch(dnnl_primitive_attr_t *attr)
{
    KEEL_TRY(ready());
    KEEL_TRY(status_of(dnnl_primitive_attr_create(attr), "attributes"));
    return status_of(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user),
                     "scratchpad");
}

/* Evaluate `make` with an attribute `attr` for scratchpads of the caller. In 2.6 `make` fills `d`
 * first. */
#if V3
#define MAKE(what, make)                                                                           \
    do {                                                                                           \
        dnnl_primitive_attr_t attr = NULL;                                                         \
        keel_status s = user_scratch(&attr);                                                       \
        if (s >= 0) s = status_of(make, what);                                                     \
        if (attr) dnnl_primitive_attr_destroy(attr);                                               \
        return s;                                                                                  \
    } while (0)
#else
#define MAKE(what, fill_desc, hint)                                                                \
    do {                                                                                           \
        dnnl_primitive_attr_t attr = NULL;                                                         \
        keel_status s = user_scratch(&attr);                                                       \
        if (s >= 0) s = status_of(fill_desc, what);                                                \
        if (s >= 0) s = status_of(dnnl_primitive_desc_create(pd, &d, attr, engine, hint), what);   \
        if (attr) dnnl_primitive_attr_destroy(attr);                                               \
        return s;                                                                                  \
    } while (0)
#endif

/* Window arguments in arrays of oneDNN's length. */
typedef struct window {
    dnnl_dims_t stride, dilation, before, after;
} window;

static window window_of(const keel_dnnl_window *w)
{
    window o = { 0 };
    for (int i = 0; i < w->dims; i++) {
        o.stride[i] = w->stride[i];
        o.dilation[i] = w->dilation[i];
        o.before[i] = w->before[i];
        o.after[i] = w->after[i];
    }
    return o;
}

#define MD(p) ((p) ? (p)->md : NULL)

keel_status keel_dnnl_conv_forward(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                   const keel_dnnl_md *weights, const keel_dnnl_md *bias,
                                   const keel_dnnl_md *dst, const keel_dnnl_window *w)
{
    const window o = window_of(w);
#if V3
    MAKE("convolution forward",
         dnnl_convolution_forward_primitive_desc_create(
             pd, engine, dnnl_forward_training, dnnl_convolution_direct, src->md, weights->md,
             MD(bias), dst->md, o.stride, o.dilation, o.before, o.after, attr));
#else
    dnnl_convolution_desc_t d;
    MAKE("convolution forward",
         dnnl_dilated_convolution_forward_desc_init(
             &d, dnnl_forward_training, dnnl_convolution_direct, src->md, weights->md, MD(bias),
             dst->md, o.stride, o.dilation, o.before, o.after),
         NULL);
#endif
}

static bool same_type(const keel_dnnl_md *a, const keel_dnnl_md *b)
{
#if V3
    dnnl_data_type_t x, y;
    return dnnl_memory_desc_query(a->md, dnnl_query_data_type, &x) == dnnl_success &&
           dnnl_memory_desc_query(b->md, dnnl_query_data_type, &y) == dnnl_success && x == y;
#else
    return a->md->data_type == b->md->data_type;
#endif
}

/* A backward primitive takes a forward descriptor of the same shapes as a hint: 2.6 uses it to
 * choose an implementation, 3.x also for layouts that are `any`. For float32 gradients of bfloat16
 * values there is no hint, since no forward has such types. */
static keel_status hint_of(dnnl_primitive_desc_t *hint, const keel_dnnl_md *src,
                           const keel_dnnl_md *weights, const keel_dnnl_md *dst,
                           const keel_dnnl_window *w)
{
    *hint = NULL;
    const bool has = V3 && same_type(src, dst) && same_type(weights, dst);
    return has ? keel_dnnl_conv_forward(hint, src, weights, NULL, dst, w) : KEEL_OK;
}

static keel_status conv_backward(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                 const keel_dnnl_md *weights, const keel_dnnl_md *dst,
                                 const window *o, const_dnnl_primitive_desc_t hint)
{
#if V3
    MAKE("convolution backward",
         dnnl_convolution_backward_data_primitive_desc_create(
             pd, engine, dnnl_convolution_direct, src->md, weights->md, dst->md, o->stride,
             o->dilation, o->before, o->after, hint, attr));
#else
    dnnl_convolution_desc_t d;
    MAKE("convolution backward",
         dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, src->md,
                                                          weights->md, dst->md, o->stride,
                                                          o->dilation, o->before, o->after),
         hint);
#endif
}

static keel_status conv_weights(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                const keel_dnnl_md *weights, const keel_dnnl_md *bias,
                                const keel_dnnl_md *dst, const window *o,
                                const_dnnl_primitive_desc_t hint)
{
#if V3
    MAKE("convolution weights",
         dnnl_convolution_backward_weights_primitive_desc_create(
             pd, engine, dnnl_convolution_direct, src->md, weights->md, MD(bias), dst->md,
             o->stride, o->dilation, o->before, o->after, hint, attr));
#else
    dnnl_convolution_desc_t d;
    MAKE("convolution weights",
         dnnl_dilated_convolution_backward_weights_desc_init(
             &d, dnnl_convolution_direct, src->md, weights->md, MD(bias), dst->md, o->stride,
             o->dilation, o->before, o->after),
         hint);
#endif
}

keel_status keel_dnnl_conv_backward(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                    const keel_dnnl_md *weights, const keel_dnnl_md *dst,
                                    const keel_dnnl_window *w)
{
    const window o = window_of(w);
    dnnl_primitive_desc_t hint;
    KEEL_TRY(hint_of(&hint, src, weights, dst, w));
    const keel_status s = conv_backward(pd, src, weights, dst, &o, hint);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return s;
}

keel_status keel_dnnl_conv_weights(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                                   const keel_dnnl_md *weights, const keel_dnnl_md *bias,
                                   const keel_dnnl_md *dst, const keel_dnnl_window *w)
{
    const window o = window_of(w);
    dnnl_primitive_desc_t hint;
    KEEL_TRY(hint_of(&hint, src, weights, dst, w));
    const keel_status s = conv_weights(pd, src, weights, bias, dst, &o, hint);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return s;
}

keel_status keel_dnnl_reorder(dnnl_primitive_desc_t *pd, const keel_dnnl_md *src,
                              const keel_dnnl_md *dst, bool adds)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t sum = NULL;
    keel_status s = user_scratch(&attr);
    if (s >= 0 && adds) {
        s = status_of(dnnl_post_ops_create(&sum), "reorder");
#if V3
        if (s >= 0)
            s = status_of(dnnl_post_ops_append_sum(sum, 1, 0, dnnl_data_type_undef), "reorder");
#else
        if (s >= 0) s = status_of(dnnl_post_ops_append_sum(sum, 1), "reorder");
#endif
        if (s >= 0) s = status_of(dnnl_primitive_attr_set_post_ops(attr, sum), "reorder");
    }
    if (s >= 0)
        s = status_of(
            dnnl_reorder_primitive_desc_create(pd, src->md, engine, dst->md, engine, attr),
            "reorder");
    if (sum) dnnl_post_ops_destroy(sum);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return s;
}

bool keel_dnnl_is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strncmp(name, "ref", 3) == 0;
}

bool keel_dnnl_uses_tiles(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strstr(name, "amx") != NULL;
}

/* Primitives --------------------------------------------------------------------------------- */

static keel_status add_argument(keel_dnnl_primitive *p, const_dnnl_primitive_desc_t pd, int arg)
{
    if (p->n_arg == KEEL_DNNL_ARGS) return keel_fail(KEEL_EUNSUP, "oneDNN: too many arguments");
    dnnl_memory_t memory = NULL;
    KEEL_TRY(status_of(
        dnnl_memory_create(&memory, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg),
                           engine, DNNL_MEMORY_NONE),
        "memory"));
    p->arg[p->n_arg++] = (dnnl_exec_arg_t){ arg, memory };
    return KEEL_OK;
}

keel_status keel_dnnl_create(keel_dnnl_primitive *p, dnnl_primitive_desc_t pd, const int *args)
{
    keel_dnnl_primitive q = { 0 };
    keel_status s = status_of(dnnl_primitive_create(&q.primitive, pd), "primitive");
    for (; s >= 0 && *args; args++) s = add_argument(&q, pd, *args);
    if (s >= 0) {
        q.scratch = dnnl_memory_desc_get_size(
            dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
        if (q.scratch) s = add_argument(&q, pd, DNNL_ARG_SCRATCHPAD);
    }
    dnnl_primitive_desc_destroy(pd);
    if (s < 0)
        keel_dnnl_destroy(&q);
    else
        *p = q;
    return s;
}

void keel_dnnl_destroy(keel_dnnl_primitive *p)
{
    for (int i = 0; i < p->n_arg; i++) dnnl_memory_destroy(p->arg[i].memory);
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    memset(p, 0, sizeof *p);
}

keel_status keel_dnnl_run(const keel_dnnl_primitive *p, void *const *data, void *scratch)
{
    for (int i = 0; i < p->n_arg; i++) {
        void *const at = p->arg[i].arg == DNNL_ARG_SCRATCHPAD ? scratch : data[i];
        const dnnl_status_t s = dnnl_memory_set_data_handle(p->arg[i].memory, at);
        if (s != dnnl_success) return status_of(s, "pointer");
    }
    const dnnl_status_t s = dnnl_primitive_execute(p->primitive, stream, p->n_arg, p->arg);
    return s == dnnl_success ? KEEL_OK
                             : keel_fail(KEEL_EDEVICE, "oneDNN: execute: status %d", (int)s);
}

keel_status keel_dnnl_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                            const float *a, int64_t lda, const float *b, int64_t ldb, bool adds,
                            float *c, int64_t ldc)
{
    KEEL_TRY(ready());
    const dnnl_status_t s = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1,
                                       a, lda, b, ldb, adds, c, ldc);
    return s == dnnl_success ? KEEL_OK
                             : keel_fail(KEEL_EDEVICE, "oneDNN: sgemm: status %d", (int)s);
}
