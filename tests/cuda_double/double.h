/* What the doubles of NVIDIA's libraries share. A double has the functions of a library, computes
 * with plain loops on the emulator's memory, and checks what the library demands of each call. What
 * is wrong is a fault of the emulator (emu_report), and the call fails. */
#ifndef CUDA_DOUBLE_DOUBLE_H
#define CUDA_DOUBLE_DOUBLE_H
#include "cuda_double.h"
#include "machine.h"

/* Reports; false. */
bool double_wrong(const char *function, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A call begins. false: it shall fail. `works` false: one that destroys, which never does. */
bool double_begins(const char *function, bool works);
void double_forgives(void); /* the call that just failed is one whose failure has an answer */
void double_made(int by);   /* handles and descriptors, more or fewer */
bool double_lacks(int what);

/* Whether a call may read or write so many bytes; reports. */
bool double_reads(const char *function, const char *what, const void *at, size_t bytes);
bool double_writes(const char *function, const char *what, const void *at, size_t bytes);
bool double_aligned(const char *function, const char *what, const void *at, size_t to);
bool double_apart(const char *function, const char *what, const void *a, size_t a_bytes,
                  const char *other, const void *b, size_t b_bytes);
bool double_stream(const char *function, cudaStream_t stream);
/* The library's own memory: what was there is lost. */
bool double_workspace(const char *function, void *at, size_t given, size_t needed);

/* Values of the three types. */
enum double_type { DOUBLE_F32, DOUBLE_F16, DOUBLE_BF16 };
size_t double_size(double_type t);
double double_load(const void *at, int64_t i, double_type t);
void double_store(void *at, int64_t i, double_type t, double value); /* rounded once */
double double_tf32(double value);                                    /* as tensor cores read it */

#endif
