/* Every access of instrumented code comes here, before it is made. What it is checked against: that
 * the bytes exist, that somebody has written what is read, and that no other thread touches them
 * without a barrier between. A cell remembers its last writer and one reader, so some races are
 * missed; none is reported that is not one. */
#include "machine.h"
#include <link.h>
#include <stdio.h>

namespace
{
enum kind { READ, WRITE, ATOMIC };
const char *const words[] = { "reads", "writes", "changes" };

/* Whether what `who` did at `when` may happen at the same time as what this thread does now. */
bool together(emu_who who, uint32_t when)
{
    if (when < emu.launch_epoch) return false;
    if (when < emu.block_epoch) return true; /* another block */
    if (when != emu.epoch || (int)who.thread == emu.thread) return false;
    const int warp = emu.thread / EMU_WARP;
    return (int)who.thread / EMU_WARP != warp || who.warp_epoch == (emu.warp_epoch[warp] & 0xffff);
}

[[gnu::noinline]] void race(uintptr_t at, kind k, const void *pc, emu_who who, uint32_t when,
                            const char *did)
{
    char name[200];
    emu_name_of(reinterpret_cast<void *>(at), name, sizeof name);
    if (when < emu.block_epoch)
        emu_fault(pc, nullptr, 0, "race: %s %s, which another block %s in this launch", words[k],
                  name, did);
    else
        emu_fault(pc, nullptr, 0, "race: %s %s, which thread %d %s since the last barrier",
                  words[k], name, (int)who.thread, did);
}

[[gnu::noinline]] void misses(uintptr_t at, size_t n, kind k, const void *pc, const char *what)
{
    char name[200];
    {
        const emu_turn turn; /* the host's code may come here while another thread allocates */
        emu_name_of(reinterpret_cast<void *>(at), name, sizeof name);
    }
    emu_fault(pc, nullptr, 0, "%s: %s %zu bytes of %s", what, words[k], n, name);
}

void check(uintptr_t at, size_t n, kind k, const void *pc)
{
    const uintptr_t base = reinterpret_cast<uintptr_t>(emu.heap), from = at - base;
    const uintptr_t end = from + n;
    if (from / EMU_HEAP != (uintptr_t)emu.gpu && from >= EMU_WINDOW)
        return misses(at, n, k, pc, "memory of another GPU");
    emu_who me = {};
    me.thread = (uint32_t)emu.thread & 1023;
    me.warp_epoch = emu.warp_epoch[emu.thread / EMU_WARP] & 0xffff;
    me.atomic = k == ATOMIC;
    for (uintptr_t c = from / 4; c * 4 < end; c++) {
        unsigned bytes = 15;
        if (c * 4 < from) bytes &= 15u << (from - c * 4);
        if (c * 4 + 4 > end) bytes &= 15u >> (c * 4 + 4 - end);
        const uint8_t state = emu.state[c];
        emu_cell *x = &emu.cell[c];
        if (bytes & ~state) return misses(at, n, k, pc, "out of bounds");
        if (k != WRITE && (bytes & ~(state >> 4u)))
            return misses(at, n, k, pc, "memory that nobody has written");
        if ((x->wrote.bytes & bytes) && !(k == ATOMIC && x->wrote.atomic) &&
            together(x->wrote, x->write_when))
            return race(base + c * 4, k, pc, x->wrote, x->write_when, "wrote");
        const bool read_too = together(x->read, x->read_when);
        if (k == READ) {
            if (!read_too || x->read.bytes != bytes) {
                x->read = me;
                x->read.bytes = bytes & 15;
                x->read_when = emu.epoch;
            } else if ((int)x->read.thread / EMU_WARP != emu.thread / EMU_WARP) {
                x->read.several = 1;
            }
            continue;
        }
        if ((x->read.bytes & bytes) && (read_too || (x->read.several && x->read_when == emu.epoch)))
            return race(base + c * 4, k, pc, x->read, x->read_when, "read");
        if ((int)x->wrote.thread == emu.thread && x->write_when == emu.epoch &&
            x->wrote.warp_epoch == me.warp_epoch && x->wrote.atomic == me.atomic)
            bytes |= x->wrote.bytes;
        x->wrote = me;
        x->wrote.bytes = bytes & 15;
        x->write_when = emu.epoch;
        emu.state[c] = (uint8_t)(state | (bytes & state) << 4);
    }
}

/* Constants of the program are read wherever they are. */
int is_constant(dl_phdr_info *info, size_t, void *at)
{
    const uintptr_t a = *static_cast<uintptr_t *>(at);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && a - from < h->p_memsz) return 1;
    }
    return 0;
}

[[gnu::noinline]] void foreign(uintptr_t at, size_t n, kind k, const void *pc)
{
    if (k == READ && dl_iterate_phdr(is_constant, &at)) return;
    emu_fault(pc, nullptr, 0, "memory of the host: %s %zu bytes at %p", words[k], n,
              reinterpret_cast<void *>(at));
}

inline void touch(uintptr_t at, size_t n, kind k, const void *pc)
{
    const bool device = at - reinterpret_cast<uintptr_t>(emu.heap) < EMU_HEAPS;
    if (!emu_inside) {
        if (device && emu.heap) misses(at, n, k, pc, "memory of the device, on the host");
        return;
    }
    if (device) return check(at, n, k, pc);
    const uintptr_t on = at - reinterpret_cast<uintptr_t>(emu.stacks);
    if (on / EMU_STACK == (uintptr_t)emu.thread) return;
    if (k == READ && at - reinterpret_cast<uintptr_t>(emu.params) < emu.params_bytes) return;
    foreign(at, n, k, pc);
}
} // namespace

void emu_atomic(void *at, size_t bytes)
{
    touch(reinterpret_cast<uintptr_t>(at), bytes, ATOMIC, __builtin_return_address(0));
}

void emu_aligned(const void *at, size_t to)
{
    char name[200];
    if (reinterpret_cast<uintptr_t>(at) % to == 0) return;
    emu_fault(__builtin_return_address(0), nullptr, 0, "misaligned: a vector of %zu bytes at %s",
              to, emu_name_of(at, name, sizeof name));
}

#define HOOK(name, bytes, kind)                                                                    \
    extern "C" void name(void *at)                                                                 \
    {                                                                                              \
        touch(reinterpret_cast<uintptr_t>(at), bytes, kind, __builtin_return_address(0));          \
    }
HOOK(__tsan_read1, 1, READ)
HOOK(__tsan_read2, 2, READ)
HOOK(__tsan_read4, 4, READ)
HOOK(__tsan_read8, 8, READ)
HOOK(__tsan_read16, 16, READ)
HOOK(__tsan_write1, 1, WRITE)
HOOK(__tsan_write2, 2, WRITE)
HOOK(__tsan_write4, 4, WRITE)
HOOK(__tsan_write8, 8, WRITE)
HOOK(__tsan_write16, 16, WRITE)
HOOK(__tsan_unaligned_read2, 2, READ)
HOOK(__tsan_unaligned_read4, 4, READ)
HOOK(__tsan_unaligned_read8, 8, READ)
HOOK(__tsan_unaligned_read16, 16, READ)
HOOK(__tsan_unaligned_write2, 2, WRITE)
HOOK(__tsan_unaligned_write4, 4, WRITE)
HOOK(__tsan_unaligned_write8, 8, WRITE)
HOOK(__tsan_unaligned_write16, 16, WRITE)

extern "C" void __tsan_read_range(void *at, size_t n)
{
    touch(reinterpret_cast<uintptr_t>(at), n, READ, __builtin_return_address(0));
}

extern "C" void __tsan_write_range(void *at, size_t n)
{
    touch(reinterpret_cast<uintptr_t>(at), n, WRITE, __builtin_return_address(0));
}

extern "C" void __tsan_init(void)
{
}
