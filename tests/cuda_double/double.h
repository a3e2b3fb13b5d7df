/* What the doubles of NVIDIA's libraries share. A double has the functions of a library, computes
 * with plain loops on the emulator's memory, and checks what the library demands of each call. What
 * is wrong is a fault of the emulator (emu_report), and the call fails. */
#ifndef CUDA_DOUBLE_DOUBLE_H
#define CUDA_DOUBLE_DOUBLE_H
#include "cuda_double.h"
#include "device/cuda/libraries.h"
#include "machine.h"

/* Reports; false. */
bool double_wrong(const char *function, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A call begins. false: it shall fail. `works` false: one that destroys, which never does. */
bool double_begins(const char *function, bool works);
void double_forgives(void); /* the call that just failed is one whose failure has an answer */
/* The thread's device, and that of a stream. Whether it fails in all that it is asked for. */
int double_device();
int double_device_of(cudaStream_t s);
bool double_is_dead(int device);

/* Enqueues on a stream, which does it when all before is done: now or later, or in each launch of
 * the graph that is captured. What is pointed to must be there then, so it should be values. */
void double_give(cudaStream_t s, std::function<void()> what);
/* The same of what waits for others: asked again until it returns true. */
void double_give_waiting(cudaStream_t s, std::function<bool()> what);
void double_goes_on(); /* what a stream waited for may have come */

/* A function for a table of functions: each call is a turn. */
template <auto F> struct double_function;
template <class R, class... A, R (*F)(A...)> struct double_function<F> {
    static R call(A... a)
    {
        const emu_turn turn;
        return F(a...);
    }
};

/* Bytes of the GPU's memory, more or fewer; returns all that are taken. */
int64_t double_takes(int device, int64_t bytes);
/* A device asks for a library, which takes memory of it at the first time. Returns what it has of
 * libraries, and its stream; NULL: kernels alone are tested, without a device. */
cuda_libraries *double_opens(keel_device *d, keel_device_own kind, cudaStream_t *stream);
void double_closes_cudnn(cuda_libraries *l);
void double_loads();      /* the library loads its code, once */
void double_made(int by); /* handles and descriptors, more or fewer */
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
