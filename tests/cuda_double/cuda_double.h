/* For tests: what the doubles of cuBLASLt and cuDNN shall lack and fail, and what they have. */
#ifndef CUDA_DOUBLE_CUDA_DOUBLE_H
#define CUDA_DOUBLE_CUDA_DOUBLE_H
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_DOUBLE_NO_CUBLASLT = 1, /* the library is not there */
    CUDA_DOUBLE_NO_CUDNN = 2,
    CUDA_DOUBLE_NO_MASK = 4,      /* cuBLASLt has no algorithm where a mask is set */
    CUDA_DOUBLE_NO_ALGORITHM = 8, /* nor any other; nor has cuDNN an engine */
    CUDA_DOUBLE_NO_EPILOGUE = 32, /* cuBLASLt adds no bias */
    CUDA_DOUBLE_NO_NCCL = 64
};
void cuda_double_without(int what); /* from now on; 0: nothing */

/* Bytes that the GPU's memory has less, by cudaMemGetInfo: from the beginning, with a handle of a
 * library, and from the first kernel of cuDNN on, whose code stays when its handle is destroyed. */
enum {
    CUDA_DOUBLE_CONTEXT = 7 << 20,
    CUDA_DOUBLE_CUBLASLT = 3 << 20,
    CUDA_DOUBLE_CUDNN = 5 << 20,
    CUDA_DOUBLE_NCCL = 4 << 20, /* of each rank */
    CUDA_DOUBLE_CODE = 2 << 20
};
int64_t cuda_double_taken(void); /* bytes, now */
void cuda_double_unloads(void);  /* the code of cuDNN */

void cuda_double_fail_at(int64_t call); /* the n-th call of a library from now on; 0: none */
/* Count, and fail, only calls whose names begin so, but for questions of a host that waits; and
 * what comes after one that failed is right, as in a fit, whose other kernels know nothing of it.
 * NULL: all. */
void cuda_double_counts(const char *names);
int64_t cuda_double_calls(void);    /* since the program began */
int64_t cuda_double_live(void);     /* handles and descriptors that are not destroyed */
int64_t cuda_double_products(void); /* that were computed */
int64_t cuda_double_convolutions(void);

/* A misuse, and what must be said of it. */
typedef struct cuda_misuse {
    const char *what;
    void (*run)(void);
    const char *says; /* NULL: nothing */
} cuda_misuse;
extern const cuda_misuse cublaslt_misuses[], cudnn_misuses[]; /* end with what NULL */
extern const cuda_misuse runtime_misuses[], nccl_misuses[];

enum { CUDA_DOUBLE_GPUS = 4 };
/* Of NCCL: what runs fails from now on, as where a link is lost. */
void cuda_double_breaks_links(bool breaks);
int64_t cuda_double_sums(void); /* that were made, of all ranks */

/* Of CUDA's runtime. A GPU that fails for good is well again with the next cuda_runtime_fail_at. */
/* The n-th call from now on that may fail does, launches and graphs included; 0: none. for_good:
 * and all that its GPU is asked for afterwards, as after a fault of a kernel. */
void cuda_runtime_fail_at(int64_t call, bool for_good);
const char *cuda_runtime_failed(void);
int64_t cuda_runtime_calls(void); /* that may fail, since the program began */
void cuda_runtime_late(
    uint32_t seed);                  /* streams lag behind the host, each as it decides; 0: none */
void cuda_runtime_hangs(bool hangs); /* from now on no stream comes to its end */
void cuda_runtime_ends(void);        /* as the process: what a lost GPU has is taken back */
void cuda_runtime_refuses(bool refuses); /* no capture succeeds */
void cuda_runtime_graphs(int most);      /* that find memory, from now on; -1: all do */
int64_t cuda_runtime_live(void);     /* what was made and is not destroyed: memory, streams, ... */
int64_t cuda_runtime_captures(void); /* so far */
int64_t cuda_runtime_replays(void);

#ifdef __cplusplus
}
#endif
#endif
