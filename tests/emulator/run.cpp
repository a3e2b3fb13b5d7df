/* Launches: fibers for the threads of one block at a time, in an order that the seed decides; the
 * barriers and shuffles at which they wait; and reports. */
#include "machine.h"
#include "emulator.h"
#include <cstddef>
#include <link.h>
#include <memory>
#include <mutex>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <utility>

extern "C" void emu_switch(void **save, void *to);
asm(R"(
    .text
    .globl emu_switch
    .type emu_switch, @function
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emu_switch, .-emu_switch
)");

namespace
{
struct warp { /* lanes that wait for each other */
    unsigned mask, here;
    const char *file;
    int line;
    bool shuffle;
    uint64_t bits[EMU_WARP];
    unsigned from[EMU_WARP];
};

std::recursive_mutex turns;
uint32_t order = 1;
void *scheduler;
void (*body)(const void *);
warp warps[EMU_WARPS];
std::vector<int> ready;
bool left; /* a fault ended the launch */
char report[600];
int fail_in;
int64_t launches;
int64_t blocks_most; /* of launches by gpu_blocks; 0: any number */
unsigned times_few;

uint32_t draw(uint32_t n)
{
    order = order * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)order * n >> 32);
}

void shuffle(std::vector<int> *v)
{
    for (size_t i = v->size(); i > 1; i--) std::swap((*v)[i - 1], (*v)[draw((uint32_t)i)]);
}

emu_fiber *current()
{
    return emu_fiber_of(emu.thread);
}

void wait_as(decltype(emu_fiber::state) state, const char *file, int line)
{
    emu_fiber *f = current();
    f->state = state;
    f->file = file;
    f->line = line;
    emu_switch(&f->sp, scheduler);
}

void fiber_main()
{
    body(emu.params);
    current()->state = emu_fiber::ENDED;
    emu_leave();
}

void begin(int thread, dim3 block, dim3 grid, dim3 size)
{
    emu_fiber *f = emu_fiber_of(thread);
    const unsigned t = (unsigned)thread;
    f->place = { dim3(t % size.x, t / size.x % size.y, t / size.x / size.y), block, size, grid };
    f->number = thread;
    f->state = emu_fiber::READY;
    f->barriers = 0;
    f->file = nullptr;
    void **sp = reinterpret_cast<void **>(f);
    *--sp = nullptr; /* where fiber_main would return to, so that its stack is aligned */
    *--sp = reinterpret_cast<void *>(fiber_main);
    for (int i = 0; i < 6; i++) *--sp = nullptr;
    f->sp = sp;
}

const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* "kernels.cu:18" of an address that a call returns to. */
void find_line(const void *pc, char *out, size_t size)
{
    char program[400], command[600], line[400] = "";
    uintptr_t base = 0;
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    snprintf(out, size, "%p", pc);
    if (n <= 0) return;
    program[n] = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *to) {
            *static_cast<uintptr_t *>(to) = info->dlpi_addr;
            return 1;
        },
        &base);
    snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null", program,
             (size_t)(reinterpret_cast<uintptr_t>(pc) - base - 1));
    FILE *p = popen(command, "r");
    if (!p) return;
    if (fgets(line, sizeof line, p) && line[0] != '?') {
        line[strcspn(line, " \n")] = 0;
        snprintf(out, size, "%s", base_name(line));
    }
    pclose(p);
}

const void *fault_pc;

/* The fibers that wait, where nobody is left who could come. */
void report_waiting(int threads)
{
    const emu_fiber *one = nullptr, *other = nullptr;
    for (int i = 0; i < threads; i++) {
        const emu_fiber *f = emu_fiber_of(i);
        if (f->state == emu_fiber::ENDED) {
            if (!other) other = f;
        } else if (!one) {
            one = f;
        } else if (f->state != one->state || f->line != one->line || f->file != one->file) {
            other = f;
        }
    }
    char where[100] = "nobody";
    if (other && other->state == emu_fiber::ENDED)
        snprintf(where, sizeof where, "thread %d has ended", other->number);
    else if (other)
        snprintf(where, sizeof where, "thread %d waits at %s:%d", other->number,
                 base_name(other->file), other->line);
    emu.thread = -1;
    if (one->state == emu_fiber::IN_WARP)
        emu_fault(nullptr, one->file, one->line,
                  "deadlock: thread %d waits for lanes of its warp that do not come; %s",
                  one->number, where);
    else
        emu_fault(nullptr, one->file, one->line, "barrier: thread %d waits, and %s", one->number,
                  where);
}

/* All threads have come to one barrier, or have ended: false if some have and some have not. */
bool meet(int threads, bool *ended)
{
    const emu_fiber *one = emu_fiber_of(0);
    *ended = one->state == emu_fiber::ENDED;
    for (int i = 0; i < threads; i++) {
        const emu_fiber *f = emu_fiber_of(i);
        if (f->state == emu_fiber::IN_WARP || f->state != one->state) return false;
        if (!*ended && (f->line != one->line || f->file != one->file)) return false;
    }
    return true;
}

void run_block(int threads)
{
    bool ended = false;
    while (!left) {
        std::vector<int> all(threads);
        for (int i = 0; i < threads; i++) all[i] = i;
        shuffle(&all);
        ready = all;
        memset(emu.warp_epoch, 0, sizeof emu.warp_epoch);
        while (!ready.empty() && !left) {
            emu.thread = ready.back();
            ready.pop_back();
            emu_switch(&scheduler, current()->sp);
        }
        emu.thread = -1;
        if (left) return;
        if (!meet(threads, &ended)) return report_waiting(threads);
        if (ended) return;
        for (int i = 0; i < threads; i++) emu_fiber_of(i)->state = emu_fiber::READY;
        emu.epoch++;
    }
}

/* A lane comes to where its warp meets. The last to come has `true`. */
bool arrive(const char *file, int line, unsigned mask, bool shuffles)
{
    warp *w = &warps[emu.thread / EMU_WARP];
    const unsigned me = 1u << emu.thread % EMU_WARP;
    if (!(mask & me))
        emu_fault(nullptr, file, line, "warp: lane %d is not in the mask %08x",
                  emu.thread % EMU_WARP, mask);
    if (w->here && (w->mask != mask || w->line != line || w->file != file))
        emu_fault(nullptr, file, line,
                  "warp: lanes meet at different places or by different masks; others are at %s:%d "
                  "with %08x",
                  base_name(w->file), w->line, w->mask);
    w->mask = mask;
    w->file = file;
    w->line = line;
    w->shuffle = shuffles;
    w->here |= me;
    return w->here == mask;
}

/* All lanes of the mask go on; the one that runs does so at once. */
void release_warp()
{
    const int number = emu.thread / EMU_WARP;
    warp *w = &warps[number];
    for (int lane = 0; lane < EMU_WARP; lane++) {
        const int t = number * EMU_WARP + lane;
        if (!(w->mask >> lane & 1)) continue;
        emu_fiber *f = emu_fiber_of(t);
        if (w->shuffle) {
            if (!(w->mask >> w->from[lane] & 1))
                emu_fault(nullptr, w->file, w->line,
                          "warp: lane %d reads lane %u, which is not in the mask %08x", lane,
                          w->from[lane], w->mask);
            f->bits = w->bits[w->from[lane]];
        }
        if (t == emu.thread) continue;
        f->state = emu_fiber::READY;
        ready.push_back(t);
    }
    if (ready.size() > 1) std::swap(ready.back(), ready[draw((uint32_t)ready.size())]);
    w->here = 0;
}
} // namespace

__thread bool emu_inside;

emu_turn::emu_turn()
{
    turns.lock();
}

emu_turn::~emu_turn()
{
    turns.unlock();
}

void emu_turn_pass()
{
    turns.unlock();
    usleep(200);
    turns.lock();
}

emu_fiber *emu_fiber_of(int thread)
{
    return reinterpret_cast<emu_fiber *>(emu.stacks + (size_t)(thread + 1) * EMU_STACK - EMU_HEAD);
}

void emu_leave()
{
    void *nowhere;
    emu_switch(&nowhere, scheduler);
}

void emu_fault(const void *pc, const char *file, int line, const char *format, ...)
{
    turns.lock(); /* a thread that runs no kernel waits for another's to end */
    va_list list;
    va_start(list, format);
    const bool first = !report[0], runs = emu.thread >= 0;
    if (first) {
        int n = 0;
        if (runs)
            n = snprintf(report, sizeof report, "thread %d of block %u: ", emu.thread, emu.block.x);
        n += vsnprintf(report + n, sizeof report - (size_t)n, format, list);
        const size_t end = strlen(report);
        if (file && line)
            snprintf(report + end, sizeof report - end, "; %s:%d", base_name(file), line);
        fault_pc = pc;
    }
    va_end(list);
    left = true;
    turns.unlock(); /* nothing is destroyed where it leaves */
    if (runs) emu_leave();
}

void emu_barrier(const char *file, int line)
{
    current()->barriers++;
    wait_as(emu_fiber::AT_BARRIER, file, line);
}

void emu_warp_barrier(const char *file, int line, unsigned mask)
{
    if (!arrive(file, line, mask, false)) return wait_as(emu_fiber::IN_WARP, file, line);
    if (mask == 0xffffffffu) emu.warp_epoch[emu.thread / EMU_WARP]++;
    release_warp();
}

uint64_t emu_shuffle(const char *file, int line, unsigned mask, uint64_t bits, unsigned from)
{
    warp *w = &warps[emu.thread / EMU_WARP];
    const bool last = arrive(file, line, mask, true);
    w->bits[emu.thread % EMU_WARP] = bits;
    w->from[emu.thread % EMU_WARP] = from % EMU_WARP;
    if (last)
        release_warp();
    else
        wait_as(emu_fiber::IN_WARP, file, line);
    return current()->bits;
}

unsigned emu_lane()
{
    return (unsigned)emu.thread % EMU_WARP;
}

cudaStream_t emu_only_stream()
{
    static char one; /* doubles of libraries check that they are given it */
    return reinterpret_cast<cudaStream_t>(&one);
}

bool (*emu_knows_stream)(cudaStream_t stream);
const char *(*emu_gives)(cudaStream_t stream, std::function<void()> what);

bool emu_enqueue()
{
    launches++;
    return fail_in == 0 || --fail_in > 0;
}

namespace
{
void run_now(void (*run)(const void *), const void *params, size_t bytes, dim3 grid, dim3 block,
             size_t shared)
{
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (left) return; /* until somebody has read the report */
    emu_memory_init();
    body = run;
    emu.params = params;
    emu.params_bytes = bytes;
    emu.launch_epoch = ++emu.epoch;
    std::vector<int> numbers(blocks);
    for (size_t i = 0; i < blocks; i++) numbers[i] = (int)i;
    shuffle(&numbers);
    emu_inside = true;
    for (size_t i = 0; i < blocks && !left; i++) {
        const unsigned b = (unsigned)numbers[i];
        emu.block = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
        emu.block_epoch = ++emu.epoch;
        emu_shared_reset(shared);
        memset(warps, 0, sizeof warps);
        for (int t = 0; t < (int)threads; t++) begin(t, emu.block, grid, block);
        run_block((int)threads);
    }
    emu_inside = false;
    emu.thread = -1;
    emu.params_bytes = 0;
    emu.launch_epoch = ++emu.epoch;
}
} // namespace

const char *emu_launch(void (*run)(const void *), const void *params, size_t bytes, dim3 grid,
                       dim3 block, size_t shared, cudaStream_t stream)
{
    const emu_turn turn;
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (!emu_enqueue()) return "the emulator was told to fail this launch";
    if (threads == 0 || threads > EMU_THREADS || threads % EMU_WARP)
        return "a block must have 32 to 1024 threads, whole warps";
    if (blocks == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
        return "invalid configuration argument: the grid";
    if (shared > EMU_SHARED) return "more than 48 KiB of shared memory";
    if (!emu_gives) {
        run_now(run, params, bytes, grid, block, shared);
        return nullptr;
    }
    auto own =
        std::make_shared<std::vector<std::max_align_t>>(bytes / sizeof(std::max_align_t) + 1);
    memcpy(own->data(), params, bytes);
    return emu_gives(stream, [=] { run_now(run, own->data(), bytes, grid, block, shared); });
}

void emu_seed(uint32_t seed)
{
    order = seed * 2654435761u + 1;
    blocks_most = seed % 2 ? 0 : 1 + times_few++ % 3;
}

int64_t gpu_blocks_most(int64_t most)
{
    return blocks_most && blocks_most < most ? blocks_most : most;
}

const char *emu_report(void)
{
    static char out[800];
    char line[200] = "";
    const emu_turn turn;
    if (!report[0]) return nullptr;
    if (fault_pc) find_line(fault_pc, line, sizeof line);
    snprintf(out, sizeof out, "%s%s%s", report, line[0] ? "; " : "", line);
    report[0] = 0;
    fault_pc = nullptr;
    left = false;
    return out;
}

void emu_fail_launch(int n)
{
    fail_in = n;
}

int64_t emu_launches(void)
{
    return launches;
}
