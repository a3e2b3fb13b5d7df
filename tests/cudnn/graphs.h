/* The real cuDNN and cuBLASLt, which are told the descriptors, graphs and layouts of our kernels
 * without a device: for tests/test_cudnn_graphs.c, where the machine has them. */
#ifndef TESTS_CUDNN_GRAPHS_H
#define TESTS_CUDNN_GRAPHS_H
#include <stdbool.h>
#ifdef __cplusplus
extern "C" {
#endif
struct keel_kernel;

/* The kernels by cuDNN; NULL at the end. */
extern const struct keel_kernel *const cudnn_graph_kernels[];
extern const struct keel_kernel *const cublaslt_kernels[];
/* Loads cuBLASLt: NULL, or why it cannot be. */
const char *cublaslt_open(void);
/* How many products it would have had to find an algorithm for since the last time. */
int cublaslt_asked(void);
/* Loads cuDNN: NULL, or why it cannot be. */
const char *cudnn_graphs_open(void);
/* How many graphs it has accepted since the last time, and what it refused last ("": nothing). */
int cudnn_graphs_accepted(char refused[400]);
#ifdef __cplusplus
}
#endif
#endif
