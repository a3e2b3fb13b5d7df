/* See _product.h. */
#include "ops/cuda/_product.h"
extern "C" {
#include "base/memory.h"
}

struct cuda_product_plan {
    cuda_blas blas;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t first, second, out; /* of b, a and y */
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
    bool bias;
};

namespace
{
/* The attempts of one prepare: after a failure nothing more is called. */
struct attempt {
    const cublaslt_functions *of;
    cublasStatus_t first;

    void note(cublasStatus_t s)
    {
        if (first == CUBLAS_STATUS_SUCCESS) first = s;
    }
    bool well() const
    {
        return first == CUBLAS_STATUS_SUCCESS;
    }
};

template <class V>
void describe(attempt *t, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, V value)
{
    if (t->well()) t->note(t->of->cublasLtMatmulDescSetAttribute(d, which, &value, sizeof value));
}

template <class V>
void prefer(attempt *t, cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which,
            V value)
{
    if (t->well())
        t->note(t->of->cublasLtMatmulPreferenceSetAttribute(p, which, &value, sizeof value));
}

cudaDataType type_of(keel_dtype type)
{
    return type == KEEL_FLOAT16 ? CUDA_R_16F : type == KEEL_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* A matrix of `rows` x `columns` as it lies, row by row. */
void lay(attempt *t, cublasLtMatrixLayout_t *out, keel_dtype type, int64_t rows, int64_t columns,
         int64_t batch, const cuda_matrix &x)
{
    const int32_t count = (int32_t)batch;
    const int64_t stride = x.stride;
    if (!t->well()) return;
    t->note(t->of->cublasLtMatrixLayoutCreate(out, type_of(type), (uint64_t)columns, (uint64_t)rows,
                                              x.row ? x.row : columns));
    if (batch == 1 || !t->well()) return;
    t->note(t->of->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &count, sizeof count));
    if (!t->well()) return;
    t->note(t->of->cublasLtMatrixLayoutSetAttribute(
        *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
}

void lay_all(attempt *t, cuda_product_plan *pl, const cuda_product *x)
{
    lay(t, &pl->first, x->type, x->b.turned ? x->n : x->k, x->b.turned ? x->k : x->n, x->batch,
        x->b);
    lay(t, &pl->second, x->type, x->a.turned ? x->k : x->m, x->a.turned ? x->m : x->k, x->batch,
        x->a);
    lay(t, &pl->out, x->type_out, x->m, x->n, x->batch, x->y);
}

void describe_all(attempt *t, cuda_product_plan *pl, const cuda_product *x,
                  cublasComputeType_t compute)
{
    if (t->well()) t->note(t->of->cublasLtMatmulDescCreate(&pl->desc, compute, CUDA_R_32F));
    const int32_t first = x->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t second = x->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    describe(t, pl->desc, CUBLASLT_MATMUL_DESC_TRANSA, first);
    describe(t, pl->desc, CUBLASLT_MATMUL_DESC_TRANSB, second);
    if (!x->bias) return;
    describe(t, pl->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_BIAS);
    /* its alignment is what counts; the run gives the address */
    describe(t, pl->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void *>(256));
}

/* Asks for the algorithm. false: there is none. */
bool choose(attempt *t, cuda_product_plan *pl, const cuda_product *x, bool masked)
{
    cublasLtMatmulPreference_t p = nullptr;
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    if (t->well()) t->note(t->of->cublasLtMatmulPreferenceCreate(&p));
    prefer(t, p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t)pl->blas.workspace);
    prefer(t, p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           (uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    prefer(t, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)x->b.aligned);
    prefer(t, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)x->a.aligned);
    prefer(t, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)x->y.aligned);
    prefer(t, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)x->y.aligned);
    if (masked)
        prefer(t, p, CUBLASLT_MATMUL_PREF_IMPL_MASK,
               (uint64_t)(CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA |
                          CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F |
                          CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F));
    cublasStatus_t s = CUBLAS_STATUS_NOT_SUPPORTED;
    if (t->well())
        s = t->of->cublasLtMatmulAlgoGetHeuristic(pl->blas.handle, pl->desc, pl->first, pl->second,
                                                  pl->out, pl->out, p, 1, &best, &found);
    if (s != CUBLAS_STATUS_NOT_SUPPORTED) t->note(s);
    if (p) t->of->cublasLtMatmulPreferenceDestroy(p);
    pl->algo = best.algo;
    pl->workspace = best.workspaceSize;
    return t->well() && s == CUBLAS_STATUS_SUCCESS && found > 0 &&
           best.state == CUBLAS_STATUS_SUCCESS && best.workspaceSize <= (size_t)pl->blas.workspace;
}

/* float32 by multiply-adds: as the ordinary type with a mask that leaves these alone, or as the
 * pedantic type, whose only way they are. */
bool attempt_all(attempt *t, cuda_product_plan *pl, const cuda_product *x, keel_float32 float32)
{
    const bool narrow = keel_dtype_is_narrow(x->type);
    const bool exact = !narrow && float32 != KEEL_FLOAT32_FAST;
    lay_all(t, pl, x);
    describe_all(t, pl, x, narrow || exact ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32);
    if (choose(t, pl, x, exact)) return true;
    if (!exact || !t->well()) return false;
    t->of->cublasLtMatmulDescDestroy(pl->desc);
    pl->desc = nullptr;
    describe_all(t, pl, x, CUBLAS_COMPUTE_32F_PEDANTIC);
    return choose(t, pl, x, false);
}

/* What cuBLASLt counts by 32 bits. */
bool is_small(const cuda_product *x)
{
    return x->m <= INT32_MAX && x->n <= INT32_MAX && x->k <= INT32_MAX && x->batch <= INT32_MAX;
}
} // namespace

keel_status cuda_product_prepare(const keel_prepare *p, const cuda_product *x,
                                 cuda_product_plan **out, int64_t *scratch)
{
    const cuda_blas *blas = is_small(x) ? keel_cuda_blas(p->device) : nullptr;
    if (!blas) return KEEL_EUNSUP;
    cuda_product_plan *pl = static_cast<cuda_product_plan *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    pl->blas = *blas;
    pl->bias = x->bias;
    attempt t = { blas->of, CUBLAS_STATUS_SUCCESS };
    if (attempt_all(&t, pl, x, p->float32)) {
        *out = pl;
        *scratch = cuda_piece((int64_t)pl->workspace);
        return KEEL_OK;
    }
    cuda_product_release(pl);
    if (t.well()) return KEEL_EUNSUP;
    return keel_fail(KEEL_EDEVICE, "a product of [%lld, %lld] and [%lld, %lld] by cuBLASLt: %s",
                     (long long)x->m, (long long)x->k, (long long)x->k, (long long)x->n,
                     t.of->cublasLtGetStatusString(t.first));
}

void cuda_product_release(cuda_product_plan *pl)
{
    if (!pl) return;
    const cublaslt_functions *of = pl->blas.of;
    if (pl->desc) of->cublasLtMatmulDescDestroy(pl->desc);
    if (pl->first) of->cublasLtMatrixLayoutDestroy(pl->first);
    if (pl->second) of->cublasLtMatrixLayoutDestroy(pl->second);
    if (pl->out) of->cublasLtMatrixLayoutDestroy(pl->out);
    keel_free(pl);
}

bool cuda_product_run(const keel_call *c, const cuda_product_plan *pl, const void *a, const void *b,
                      const void *bias, void *y, bool adds, void *scratch)
{
    const float one = 1, keep = adds ? 1 : 0;
    attempt t = { pl->blas.of, CUBLAS_STATUS_SUCCESS };
    if (pl->bias) describe(&t, pl->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (t.well())
        t.note(t.of->cublasLtMatmul(pl->blas.handle, pl->desc, &one, b, pl->first, a, pl->second,
                                    &keep, y, pl->out, y, pl->out, &pl->algo,
                                    pl->workspace ? scratch : nullptr, pl->workspace,
                                    keel_cuda_stream(c)));
    if (t.well()) return true;
    keel_call_failed(
        c, keel_fail(KEEL_EDEVICE, "layer '%s': the op %s could not be launched: cuBLASLt: %s",
                     c->node->layer, c->node->op->name, t.of->cublasLtGetStatusString(t.first)));
    return false;
}
