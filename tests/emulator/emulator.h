/* Runs CUDA kernels on the host, and finds what a GPU would not tell: reads and writes out of
 * bounds, memory that nobody has written, races, threads that miss a barrier. For tests.
 *
 * Sources of kernels are compiled by g++ with -fsanitize=thread, which calls a function before each
 * access to memory. These functions are ours (access.cpp), not those of ThreadSanitizer. A thread
 * of a kernel is a fiber (run.cpp); blocks and threads run one after another, in an order that a
 * seed decides. The first fault ends its launch and is kept until emu_report.
 *
 * A device's memory is ordinary memory of one range, but a kernel's host code may not look at it:
 * it is instrumented, too. Tests copy, so they can also run on a GPU (tests/gpu/memory.cu). */
#ifndef EMULATOR_EMULATOR_H
#define EMULATOR_EMULATOR_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "base/error.h"

/* The order of threads and blocks from now on. If the seed is even, launches whose blocks may take
 * several turns have one to three blocks. */
void emu_seed(uint32_t seed);

/* `bytes` that nobody has written, aligned to 256, with a gap behind; ends the program where the
 * emulator has no room. The name is kept and stands in reports. */
void *emu_allocate(int64_t bytes, const char *name);
void emu_release_all(void);
void emu_copy_in(void *to, const void *from, int64_t bytes);
void emu_copy_out(void *to, const void *from, int64_t bytes);

/* The first fault since the last call, with file and line; NULL: none. */
const char *emu_report(void);

/* What a kernel has found wrong with its data since the last call, as the device's finish tells. */
keel_status emu_data_fault(void);

/* What calls name as their device: NULL, unless this is a GPU. */
struct keel_device *emu_device(void);

void emu_fail_launch(int n); /* the n-th launch from now on fails; 0: none */
int64_t emu_launches(void);  /* since the program began */

#ifdef __cplusplus
}
#endif
#endif
