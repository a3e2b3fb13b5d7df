/* Inside the emulator: its memory, and the launch that runs. */
#ifndef EMULATOR_MACHINE_H
#define EMULATOR_MACHINE_H
#include "gpu.h"
#include <functional>
#include <vector>

enum {
    EMU_THREADS = 1024, /* of a block */
    EMU_WARP = 32,
    EMU_WARPS = EMU_THREADS / EMU_WARP,
    EMU_SHARED = 48 << 10, /* bytes a block may have */
    EMU_GAP = 256,
    EMU_WINDOW = 256 << 10, /* of the heap, for shared memory with its gaps */
    EMU_GPUS = 4
};
static const size_t EMU_HEAP = (size_t)256 << 20; /* of each GPU */
static const size_t EMU_HEAPS = EMU_GPUS * EMU_HEAP;

/* Who touched a cell of 4 bytes: which of its bytes, which thread, and how often the thread's warp
 * had met since the last barrier. */
struct emu_who {
    uint32_t bytes : 4, thread : 10, warp_epoch : 16;
    uint32_t several : 1; /* a thread of another warp has also read it */
    uint32_t atomic : 1;
};

/* `when` counts all intervals between barriers, of all blocks; 0: never. */
struct emu_cell {
    emu_who wrote;
    uint32_t write_when;
    emu_who read;
    uint32_t read_when;
};

struct emu_fiber {
    emu_place place; /* first: emu_self */
    void *sp;
    int number;
    enum { READY, AT_BARRIER, IN_WARP, ENDED } state;
    uint32_t barriers; /* that it has come to */
    const char *file;  /* where it waits */
    int line;
    uint64_t bits; /* that a shuffle brings */
};
static_assert(sizeof(emu_fiber) <= EMU_HEAD, "the head of a stack");

struct emu_machine {
    char *heap;     /* EMU_HEAPS bytes, of which the first EMU_WINDOW are shared memory */
    uint8_t *state; /* of each cell: 4 bits of bytes that exist, 4 of bytes that were written */
    emu_cell *cell; /* of each 4 bytes */
    char *stacks;   /* EMU_THREADS of them */
    size_t used[EMU_GPUS]; /* of the heap of each: the offset of its end */
    uint32_t releases;     /* of all of it */
    int gpu;               /* that computes now: its memory may be touched, and no other's */

    /* the launch; thread -1: the host runs */
    int thread;
    const void *params;
    size_t params_bytes;
    uint32_t epoch, block_epoch, launch_epoch; /* `when` now, and where block and launch began */
    uint32_t warp_epoch[EMU_WARPS];
    size_t shared_used;
    dim3 block;
};
extern emu_machine emu;
/* This thread runs a kernel. Each access asks, so no function may be called for it. */
extern __thread bool emu_inside __attribute__((tls_model("initial-exec")));

/* Threads of the host take turns: one has the machine until its launch has ended. What is here, and
 * all functions of doubles, run within a turn. A thread may take a turn within its turn. */
struct emu_turn {
    emu_turn();
    ~emu_turn();
    emu_turn(const emu_turn &) = delete;
};
void emu_turn_pass(); /* to others for a moment, from the only turn of this thread */

emu_fiber *emu_fiber_of(int thread);

/* Keeps the report if it is the first, and leaves the launch for good if a kernel runs. pc: an
 * address in the code that did it; NULL: file and line are known. */
void emu_fault(const void *pc, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void emu_leave(); /* the fiber that runs, for good */
/* "'weights' + 12" */
const char *emu_name_of(const void *at, char *out, size_t size);
void emu_memory_init();
void emu_shared_reset(size_t dynamic); /* a block begins */
void emu_mark(const void *at, size_t bytes, bool exists, bool written);
void *emu_allocate_on(int gpu, int64_t bytes, const char *name);

/* For what is enqueued beside launches: counts it as one; false: it shall fail. */
bool emu_enqueue();
/* What would be wrong if the host's code of a library read (or wrote) the device's memory from `at`
 * on; NULL: nothing. */
const char *emu_range(const void *at, size_t bytes, bool reads);
/* The stream of all calls, but for those of the double of CUDA's runtime, which has its own. */
cudaStream_t emu_only_stream();
extern bool (*emu_knows_stream)(cudaStream_t stream); /* NULL: there is none */
/* How it takes launches, which run later; NULL, or why it refuses. NULL: there is none, and they
 * run at once. */
extern const char *(*emu_gives)(cudaStream_t stream, std::function<void()> what);

#endif
