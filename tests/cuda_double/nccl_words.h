/* What the double has of NCCL: the functions in NCCL_FUNCTIONS, with NCCL's names and numbers. */
#ifndef CUDA_DOUBLE_NCCL_WORDS_H
#define CUDA_DOUBLE_NCCL_WORDS_H
#include "gpu.h"
#include <limits.h>
#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
enum ncclResult_t {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
};
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1 };
enum ncclDataType_t { ncclInt8 = 0, ncclFloat16 = 6, ncclFloat32 = 7, ncclFloat64 = 8 };
struct ncclConfig_t {
    int blocking;
};
#define NCCL_CONFIG_INITIALIZER                                                                    \
    {                                                                                              \
        INT_MIN                                                                                    \
    }

extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId *out);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
const char *ncclGetErrorString(ncclResult_t r);
}

#endif
