/* Wrong calls of cuBLASLt, each a right one with one thing changed. */
#include "cuda_double.h"
#include "device/cuda/libraries.h"
#include "emulator.h"
#include "machine.h"
#include <vector>

namespace
{
const uint64_t M = 4, N = 3, K = 5;

/* D[M, N] = A[M, K] B[K, N], column by column, with a bias of M. */
struct trial {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t a_layout = nullptr, b_layout = nullptr, d_layout = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t result = {};
    cudaDataType type = CUDA_R_32F, type_b = CUDA_R_32F, type_d = CUDA_R_32F;
    cublasComputeType_t how = CUBLAS_COMPUTE_32F;
    uint64_t rows_a = M;
    int64_t ld_a = M;
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, aligned = 4;
    char *a = nullptr, *b = nullptr, *d = nullptr, *bias = nullptr, *workspace = nullptr;
    size_t workspace_bytes = 4096;
    float beta = 0;
    cudaStream_t stream = emu_only_stream();

    static char *written(int64_t count, const char *name)
    {
        const std::vector<float> ones((size_t)count, 1.0f);
        void *at = emu_allocate(count * 4, name);
        emu_copy_in(at, ones.data(), count * 4);
        return static_cast<char *>(at);
    }

    void allocate()
    {
        a = written(M * K, "a");
        b = written(K * N, "b");
        bias = written(M, "bias");
        d = static_cast<char *>(emu_allocate(M * N * 4, "d"));
        workspace = static_cast<char *>(emu_allocate((int64_t)workspace_bytes, "workspace"));
    }

    void make()
    {
        const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        const uint64_t most = 1 << 20;
        if (!a) allocate();
        cublasLtCreate(&handle);
        cublasLtMatmulDescCreate(&desc, how, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                       sizeof epilogue);
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        cublasLtMatrixLayoutCreate(&a_layout, type, rows_a, K, ld_a);
        cublasLtMatrixLayoutCreate(&b_layout, type_b, K, N, K);
        cublasLtMatrixLayoutCreate(&d_layout, type_d, M, N, M);
        cublasLtMatmulPreferenceCreate(&preference);
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &most, sizeof most);
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &reductions, sizeof reductions);
        for (int i = 0; i < 4; i++)
            cublasLtMatmulPreferenceSetAttribute(
                preference,
                (cublasLtMatmulPreferenceAttributes_t)(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES +
                                                       i),
                &aligned, sizeof aligned);
    }

    void ask()
    {
        int found;
        cublasLtMatmulAlgoGetHeuristic(handle, desc, a_layout, b_layout, d_layout, d_layout,
                                       preference, 1, &result, &found);
    }

    void run()
    {
        const float one = 1;
        cublasLtMatmul(handle, desc, &one, a, a_layout, b, b_layout, &beta, d, d_layout, d,
                       d_layout, &result.algo, workspace, workspace_bytes, stream);
    }

    void all()
    {
        make();
        ask();
        run();
    }

    ~trial()
    {
        if (desc) cublasLtMatmulDescDestroy(desc);
        for (cublasLtMatrixLayout_t l : { a_layout, b_layout, d_layout })
            if (l) cublasLtMatrixLayoutDestroy(l);
        if (preference) cublasLtMatmulPreferenceDestroy(preference);
        if (handle) cublasLtDestroy(handle);
    }
};
} // namespace

/* Says in one expression what is changed, before or after the trial is made. */
#define BEFORE(what, change, says)                                                                 \
    {                                                                                              \
        what,                                                                                      \
            [] {                                                                                   \
                trial t;                                                                           \
                change;                                                                            \
                t.all();                                                                           \
            },                                                                                     \
            says                                                                                   \
    }
#define BETWEEN(what, change, says)                                                                \
    {                                                                                              \
        what,                                                                                      \
            [] {                                                                                   \
                trial t;                                                                           \
                t.make();                                                                          \
                t.ask();                                                                           \
                change;                                                                            \
                t.run();                                                                           \
            },                                                                                     \
            says                                                                                   \
    }

const cuda_misuse cublaslt_misuses[] = {
    BEFORE("a right call", (void)0, nullptr),
    BEFORE("a leading dimension below the rows", t.ld_a = M - 1, "a leading dimension of 3 for 4"),
    BEFORE("A of other rows than D", t.rows_a = t.ld_a = M + 1, "A is 5 x 5, where 4 x 5"),
    BEFORE("factors of two types", t.type_b = CUDA_R_16BF, "A and B have different types"),
    BEFORE("a narrow D of float32", t.type_d = CUDA_R_16BF, "D is neither float32 nor"),
    BEFORE("sums of bfloat16 by TF32",
           (t.type = t.type_b = CUDA_R_16BF, t.how = CUBLAS_COMPUTE_32F_FAST_TF32),
           "sums of narrow values are not float32"),
    BEFORE("sums that are cut anyhow", t.reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
           "sums may be cut so that their bits change"),
    BEFORE("an alignment that pointers do not have",
           (t.allocate(), t.a = trial::written(M * K + 1, "shifted") + 4, t.aligned = 16),
           "A is not aligned to the 16 bytes"),
    BETWEEN("another stream", t.stream = nullptr, "the stream is not that of the call"),
    BETWEEN("a workspace that is too small", t.workspace_bytes = 999, "999 bytes, of which 1000"),
    BETWEEN("a workspace that is said to be larger than it is", t.workspace_bytes = 8192,
            "the workspace is written: 8192 bytes"),
    BETWEEN("a workspace in the middle", t.workspace += 4, "the workspace is"),
    BETWEEN("no workspace", t.workspace = nullptr, "no memory of the device"),
    BETWEEN("A in the host's memory", t.a = reinterpret_cast<char *>(&t), "A is read: 80 bytes at"),
    BETWEEN("B that is too short", t.b += 4, "B is read: 60 bytes from 'b' + 4"),
    BETWEEN("A that nobody has written",
            t.a = static_cast<char *>(emu_allocate(M * K * 4, "fresh")),
            "byte 0 has never been written"),
    BETWEEN("an addition to what nobody has written", t.beta = 1, "C is read: 48 bytes from 'd'"),
    BETWEEN("D over B", t.d = t.b, "D and B overlap"),
    BETWEEN("D in the workspace", t.d = t.workspace + 256, "the workspace and D overlap"),
    BETWEEN("a bias that is too short",
            (t.bias += 4, cublasLtMatmulDescSetAttribute(t.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                         &t.bias, sizeof t.bias)),
            "the bias is read"),
    BETWEEN("an attribute of another size",
            cublasLtMatmulDescSetAttribute(t.desc, CUBLASLT_MATMUL_DESC_TRANSA, &t.beta, 1),
            "an attribute of 4 bytes was given 1"),
    BETWEEN("an algorithm for another problem",
            (cublasLtMatrixLayoutDestroy(t.b_layout),
             cublasLtMatrixLayoutCreate(&t.b_layout, CUDA_R_32F, K, N, K + 1)),
            "the algorithm is not of this problem"),
    BETWEEN("no algorithm", t.result = {}, "the algorithm is not of this problem"),
    BETWEEN("a layout that was destroyed",
            (cublasLtMatrixLayoutDestroy(t.a_layout), t.run(), t.a_layout = nullptr),
            "the layout of A was destroyed before"),
    BETWEEN("a handle that was destroyed", (cublasLtDestroy(t.handle), t.run(), t.handle = nullptr),
            "the handle was destroyed before"),
    BETWEEN("a description that was never made",
            (cublasLtMatmulDescDestroy(t.desc), t.desc = nullptr),
            "the description was never created"),
    BETWEEN("a preference that is destroyed twice", cublasLtMatmulPreferenceDestroy(t.preference);
            cublasLtMatmulPreferenceDestroy(t.preference);
            t.preference = nullptr, "what is destroyed was destroyed before"),
    BETWEEN("a call after a failure", (cuda_double_fail_at(1), t.run()),
            "a call after one that failed"),
    { nullptr, nullptr, nullptr },
};
