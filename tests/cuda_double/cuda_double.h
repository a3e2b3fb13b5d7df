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
    CUDA_DOUBLE_NO_MASK = 4,        /* cuBLASLt has no algorithm where a mask is set */
    CUDA_DOUBLE_NO_ALGORITHM = 8,   /* nor any other; nor has cuDNN an engine */
    CUDA_DOUBLE_NO_EPILOGUE = 32,   /* cuBLASLt adds no bias */
    CUDA_DOUBLE_NO_WIDE_FILTER = 16 /* cuDNN: a filter gradient has the type of its inputs */
};
void cuda_double_without(int what); /* from now on; 0: nothing */

void cuda_double_fail_at(int64_t call); /* the n-th call of a library from now on; 0: none */
int64_t cuda_double_calls(void);        /* since the program began */
int64_t cuda_double_live(void);         /* handles and descriptors that are not destroyed */
int64_t cuda_double_products(void);     /* that were computed */
int64_t cuda_double_convolutions(void);

/* A misuse, and what must be said of it. */
typedef struct cuda_misuse {
    const char *what;
    void (*run)(void);
    const char *says; /* NULL: nothing */
} cuda_misuse;
extern const cuda_misuse cublaslt_misuses[], cudnn_misuses[]; /* end with what NULL */
extern const cuda_misuse runtime_misuses[];

/* Of CUDA's runtime. */
void cuda_runtime_hangs(bool hangs);     /* from now on no stream comes to its end */
void cuda_runtime_ends(void);            /* as the process: what a lost GPU has is taken back */
void cuda_runtime_refuses(bool refuses); /* no capture succeeds */
int64_t cuda_runtime_live(void);     /* what was made and is not destroyed: memory, streams, ... */
int64_t cuda_runtime_captures(void); /* so far */
int64_t cuda_runtime_replays(void);

#ifdef __cplusplus
}
#endif
#endif
