/* Another part of the kernels for CUDA, so that no test takes long. */
#define PART 1
#include "test_cuda_kernels.c"
