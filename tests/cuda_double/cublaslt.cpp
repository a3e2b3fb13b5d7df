/* A double of cuBLASLt: see double.h. */
#include "double.h"
#include "device/cuda/libraries.h"
#include <string.h>
#include <vector>

struct cublasLtContext {
    bool live;
};

struct cublaslt_double_desc {
    bool live;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t turned[2];
    uint32_t epilogue;
    const void *bias;
};

struct cublaslt_double_layout {
    bool live;
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld, stride;
    int32_t batch;
};

struct cublaslt_double_preference {
    bool live;
    uint64_t workspace, implementations;
    uint32_t reductions, aligned[4];
};

namespace
{
const uint64_t EVERY = UINT64_MAX, CUBLASLT_ALGO = 0x616c676f;
const size_t NEEDS = 1000; /* bytes that an algorithm wants, where it may have some */

/* An algorithm is for one problem: what it was asked for is in it. */
struct algorithm {
    uint64_t kind, problem, workspace;
    uint32_t aligned[4];
    uint64_t tf32, rest[2];
};
static_assert(sizeof(algorithm) == sizeof(cublasLtMatmulAlgo_t), "cublasLtMatmulAlgo_t");

template <class T> bool is_live(const char *function, const char *what, const T *x)
{
    if (x && x->live) return true;
    return double_wrong(function, "%s %s", what,
                        x ? "was destroyed before" : "was never created (NULL)");
}

template <class T> cublasStatus_t create(const char *function, T **out)
{
    if (!double_begins(function, true)) return CUBLAS_STATUS_ALLOC_FAILED;
    static auto *kept = new std::vector<T *>(); /* also what is destroyed: a later use is seen */
    *out = new T();
    kept->push_back(*out);
    (*out)->live = true;
    double_made(1);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T> cublasStatus_t destroy(const char *function, T *x)
{
    double_begins(function, false);
    if (!is_live(function, "what is destroyed", x)) return CUBLAS_STATUS_INVALID_VALUE;
    x->live = false;
    double_made(-1);
    return CUBLAS_STATUS_SUCCESS;
}

struct setter {
    const char *function;
    const void *value;
    size_t bytes;

    template <class T> cublasStatus_t to(T *out) const
    {
        if (bytes != sizeof *out) {
            double_wrong(function, "an attribute of %zu bytes was given %zu", sizeof *out, bytes);
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        memcpy(out, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
};

bool type_of(const char *function, cudaDataType t, double_type *out)
{
    *out = t == CUDA_R_32F ? DOUBLE_F32 : t == CUDA_R_16F ? DOUBLE_F16 : DOUBLE_BF16;
    return t == CUDA_R_32F || t == CUDA_R_16F || t == CUDA_R_16BF
               ? true
               : double_wrong(function, "a type that the double does not have");
}

void mix(uint64_t *h, uint64_t x)
{
    *h = (*h ^ x) * 0x9e3779b97f4a7c15u;
    *h ^= *h >> 29;
}

typedef const cublaslt_double_layout *layout;

uint64_t problem_of(const cublaslt_double_desc *d, layout a, layout b, layout c, layout y)
{
    uint64_t h = 1;
    mix(&h, d->compute), mix(&h, (uint64_t)d->turned[0]), mix(&h, (uint64_t)d->turned[1]);
    mix(&h, d->epilogue);
    for (layout l : { a, b, c, y }) {
        mix(&h, l->type), mix(&h, l->rows), mix(&h, l->columns), mix(&h, (uint64_t)l->ld);
        mix(&h, (uint64_t)l->stride), mix(&h, (uint64_t)l->batch);
    }
    return h;
}

/* Elements from the first to the last of one product, and of all. */
uint64_t extent(layout l)
{
    return (uint64_t)l->ld * (l->columns - 1) + l->rows;
}
size_t bytes_of(layout l, double_type t)
{
    return (size_t)(extent(l) + (uint64_t)l->stride * (uint64_t)(l->batch - 1)) * double_size(t);
}

/* One product behind another, or side by side within a leading dimension. */
bool lie_apart(layout l)
{
    const uint64_t stride = (uint64_t)l->stride, others = (uint64_t)l->batch - 1;
    return stride >= extent(l) ||
           (stride >= l->rows && stride * others + l->rows <= (uint64_t)l->ld);
}

bool layout_fits(const char *f, const char *what, layout l, bool turned, uint64_t rows,
                 uint64_t columns)
{
    const uint64_t r = turned ? l->columns : l->rows, c = turned ? l->rows : l->columns;
    if (r != rows || c != columns)
        return double_wrong(f, "%s is %llu x %llu%s, where %llu x %llu is needed", what,
                            (unsigned long long)r, (unsigned long long)c, turned ? " (turned)" : "",
                            (unsigned long long)rows, (unsigned long long)columns);
    if (l->ld < 0 || (uint64_t)l->ld < l->rows)
        return double_wrong(f, "%s has a leading dimension of %lld for %llu rows", what,
                            (long long)l->ld, (unsigned long long)l->rows);
    return true;
}

struct problem {
    const cublaslt_double_desc *desc;
    layout a, b, c, y;
    bool turned_a, turned_b, bias;
    uint64_t m, n, k;
    double_type type[4];

    /* What both the question for an algorithm and the product demand. */
    bool is_right(const char *f);
};

bool problem::is_right(const char *f)
{
    if (!is_live(f, "the description", desc) || !is_live(f, "the layout of A", a) ||
        !is_live(f, "the layout of B", b) || !is_live(f, "the layout of C", c) ||
        !is_live(f, "the layout of D", y))
        return false;
    turned_a = desc->turned[0] == CUBLAS_OP_T;
    turned_b = desc->turned[1] == CUBLAS_OP_T;
    bias = desc->epilogue == CUBLASLT_EPILOGUE_BIAS;
    m = y->rows, n = y->columns, k = turned_a ? a->rows : a->columns;
    const layout all[] = { a, b, c, y };
    for (int i = 0; i < 4; i++)
        if (!type_of(f, all[i]->type, &type[i])) return false;
    if (!layout_fits(f, "A", a, turned_a, m, k) || !layout_fits(f, "B", b, turned_b, k, n) ||
        !layout_fits(f, "C", c, false, m, n) || !layout_fits(f, "D", y, false, m, n))
        return false;
    if (type[0] != type[1]) return double_wrong(f, "A and B have different types");
    if (type[2] != type[3]) return double_wrong(f, "C and D have different types");
    if (type[3] != DOUBLE_F32 && type[3] != type[0])
        return double_wrong(f, "D is neither float32 nor of the type of A");
    if (desc->scale != CUDA_R_32F) return double_wrong(f, "alpha and beta must be float32");
    if (type[0] != DOUBLE_F32 && desc->compute != CUBLAS_COMPUTE_32F &&
        desc->compute != CUBLAS_COMPUTE_32F_PEDANTIC)
        return double_wrong(f, "sums of narrow values are not float32");
    for (layout l : all) {
        if (l->batch != y->batch) return double_wrong(f, "batches of different sizes");
        if (l->batch < 1) return double_wrong(f, "a batch of %d", l->batch);
        if (l->batch > 1 && l == y && !lie_apart(l))
            return double_wrong(f, "the products of the batch lie on one another in D");
    }
    return true;
}

int64_t runs;

void compute(const problem &p, const algorithm &x, float alpha, const char *a, const char *b,
             float beta, const char *c, char *y)
{
    for (int32_t t = 0; t < p.y->batch; t++)
        for (uint64_t j = 0; j < p.n; j++)
            for (uint64_t i = 0; i < p.m; i++) {
                double sum = 0;
                for (uint64_t l = 0; l < p.k; l++) {
                    const uint64_t u =
                        p.turned_a ? (uint64_t)p.a->ld * i + l : (uint64_t)p.a->ld * l + i;
                    const uint64_t v =
                        p.turned_b ? (uint64_t)p.b->ld * l + j : (uint64_t)p.b->ld * j + l;
                    double left = double_load(a, t * p.a->stride + (int64_t)u, p.type[0]);
                    double right = double_load(b, t * p.b->stride + (int64_t)v, p.type[1]);
                    if (x.tf32) left = double_tf32(left), right = double_tf32(right);
                    sum += left * right;
                }
                const int64_t at = t * p.y->stride + (int64_t)((uint64_t)p.y->ld * j + i);
                double value = (double)alpha * sum;
                if (beta != 0) /* else C may be anything */
                    value += (double)beta *
                             double_load(c, t * p.c->stride + (int64_t)((uint64_t)p.c->ld * j + i),
                                         p.type[2]);
                if (p.bias) value += double_load(p.desc->bias, (int64_t)i, p.type[3]);
                double_store(y, at, p.type[3], value);
                emu_mark(y + at * (int64_t)double_size(p.type[3]), double_size(p.type[3]), true,
                         true);
            }
}

/* Memory that D takes, of all products of the batch. */
bool memory_is_right(const char *f, const problem &p, const algorithm &x, const void *a,
                     const void *b, float beta, const void *c, void *d, void *workspace,
                     size_t workspace_bytes)
{
    const size_t na = bytes_of(p.a, p.type[0]), nb = bytes_of(p.b, p.type[1]),
                 nd = bytes_of(p.y, p.type[3]);
    const void *const at[] = { a, b, c, d };
    static const char *const names[] = { "A", "B", "C", "D" };
    for (int i = 0; i < 4; i++)
        if (!double_aligned(f, names[i], at[i], x.aligned[i])) return false;
    if (!double_reads(f, "A", a, na) || !double_reads(f, "B", b, nb) ||
        !double_writes(f, "D", d, nd))
        return false;
    if (beta != 0 && !double_reads(f, "C", c, bytes_of(p.c, p.type[2]))) return false;
    if (p.bias && !double_reads(f, "the bias", p.desc->bias, p.m * double_size(p.type[3])))
        return false;
    if (!double_apart(f, "D", d, nd, "A", a, na) || !double_apart(f, "D", d, nd, "B", b, nb))
        return false;
    if (c != d && beta != 0 && !double_apart(f, "D", d, nd, "C", c, bytes_of(p.c, p.type[2])))
        return false;
    if (x.workspace && (!double_apart(f, "the workspace", workspace, workspace_bytes, "A", a, na) ||
                        !double_apart(f, "the workspace", workspace, workspace_bytes, "B", b, nb) ||
                        !double_apart(f, "the workspace", workspace, workspace_bytes, "D", d, nd)))
        return false;
    return double_workspace(f, workspace, workspace_bytes, x.workspace);
}
} // namespace

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    return create("cublasLtCreate", out);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return destroy("cublasLtDestroy", handle);
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS ? "success" : "the double says no";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    const cublasStatus_t s = create("cublasLtMatmulDescCreate", out);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    **out = {
        true, compute, scale, { CUBLAS_OP_N, CUBLAS_OP_N }, CUBLASLT_EPILOGUE_DEFAULT, nullptr
    };
    return s;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    return destroy("cublasLtMatmulDescDestroy", d);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes)
{
    const setter set = { "cublasLtMatmulDescSetAttribute", value, bytes };
    if (!double_begins(set.function, true) || !is_live(set.function, "the description", d))
        return CUBLAS_STATUS_INVALID_VALUE;
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set.to(&d->turned[0]);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set.to(&d->turned[1]);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set.to(&d->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set.to(&d->bias);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    const cublasStatus_t s = create("cublasLtMatrixLayoutCreate", out);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    **out = { true, type, rows, columns, ld, 0, 1 };
    return s;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    return destroy("cublasLtMatrixLayoutDestroy", l);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t which,
                                                const void *value, size_t bytes)
{
    const setter set = { "cublasLtMatrixLayoutSetAttribute", value, bytes };
    if (!double_begins(set.function, true) || !is_live(set.function, "the layout", l))
        return CUBLAS_STATUS_INVALID_VALUE;
    return which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set.to(&l->batch) : set.to(&l->stride);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    const cublasStatus_t s = create("cublasLtMatmulPreferenceCreate", out);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    **out = { true, 0, EVERY, CUBLASLT_REDUCTION_SCHEME_MASK, { 256, 256, 256, 256 } };
    return s;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    return destroy("cublasLtMatmulPreferenceDestroy", p);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t bytes)
{
    const setter set = { "cublasLtMatmulPreferenceSetAttribute", value, bytes };
    if (!double_begins(set.function, true) || !is_live(set.function, "the preference", p))
        return CUBLAS_STATUS_INVALID_VALUE;
    switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set.to(&p->workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set.to(&p->reductions);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set.to(&p->aligned[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set.to(&p->aligned[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set.to(&p->aligned[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set.to(&p->aligned[3]);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
        return set.to(&p->implementations);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    const char *f = "cublasLtMatmulAlgoGetHeuristic";
    problem x = { .desc = desc, .a = a, .b = b, .c = c, .y = d };
    if (!double_begins(f, true) || !is_live(f, "the handle", handle) ||
        !is_live(f, "the preference", p) || !x.is_right(f) || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p->reductions &
        (CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) {
        double_wrong(f, "sums may be cut so that their bits change, or so that parts are rounded");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *found = 0;
    const bool masked = p->implementations != EVERY;
    if ((x.bias && double_lacks(CUDA_DOUBLE_NO_EPILOGUE)) ||
        double_lacks(CUDA_DOUBLE_NO_ALGORITHM) || (masked && double_lacks(CUDA_DOUBLE_NO_MASK)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool may_tf32 =
        x.type[0] == DOUBLE_F32 && (p->implementations & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32);
    algorithm made = {};
    made.kind = CUBLASLT_ALGO;
    made.problem = problem_of(desc, a, b, c, d);
    made.workspace = p->workspace < NEEDS ? 0 : NEEDS;
    memcpy(made.aligned, p->aligned, sizeof made.aligned);
    made.tf32 = may_tf32 && desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    results[0] = {};
    memcpy(&results[0].algo, &made, sizeof made);
    results[0].workspaceSize = made.workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const char *f = "cublasLtMatmul";
    problem p = { .desc = desc, .a = a_layout, .b = b_layout, .c = c_layout, .y = d_layout };
    algorithm x = {};
    float by, keep;
    if (!double_begins(f, true) || !emu_enqueue() || double_is_dead(double_device()))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!is_live(f, "the handle", handle) || !p.is_right(f) || !double_stream(f, stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (algo) memcpy(&x, algo, sizeof x);
    if (x.kind != CUBLASLT_ALGO ||
        x.problem != problem_of(desc, a_layout, b_layout, c_layout, d_layout)) {
        double_wrong(f, "the algorithm is not of this problem");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(&by, alpha, sizeof by);
    memcpy(&keep, beta, sizeof keep);
    /* what describes the problem may be destroyed or changed when this returns */
    struct description {
        cublaslt_double_desc desc;
        cublaslt_double_layout a, b, c, y;
    } const kept = { *desc, *a_layout, *b_layout, *c_layout, *d_layout };
    double_give(stream, [=] {
        problem q = p;
        q.desc = &kept.desc, q.a = &kept.a, q.b = &kept.b, q.c = &kept.c, q.y = &kept.y;
        if (!memory_is_right(f, q, x, a, b, keep, c, d, workspace, workspace_bytes)) return;
        compute(q, x, by, static_cast<const char *>(a), static_cast<const char *>(b), keep,
                static_cast<const char *>(c), static_cast<char *>(d));
        runs++;
    });
    return CUBLAS_STATUS_SUCCESS;
}
}

const cuda_blas *keel_cuda_blas(keel_device *d)
{
#define FUNCTION(name) .name = double_function<::name>::call,
    static const cublaslt_functions functions = { CUBLASLT_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    static cublasLtContext handle = { true };
    static const cuda_blas one = { &functions, &handle, CUDA_BLAS_WORKSPACE };
    const emu_turn turn;
    cudaStream_t stream;
    if (double_lacks(CUDA_DOUBLE_NO_CUBLASLT)) return nullptr;
    double_opens(d, KEEL_OWN_PRODUCTS, &stream);
    return &one;
}

int64_t cuda_double_products(void)
{
    return runs;
}
