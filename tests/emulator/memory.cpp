/* The emulator's memory: one range, allocations with gaps, and what is known of each 4 bytes. */
#include "machine.h"
#include "emulator.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

emu_machine emu = { .thread = -1 };

namespace
{
struct allocation {
    const char *name;
    size_t at, bytes;
    const void *key; /* of shared memory */
};
std::vector<allocation> heap, shared;
size_t dynamic_at;

size_t begin_of(size_t gpu)
{
    return gpu > 0 ? gpu * EMU_HEAP : (size_t)EMU_WINDOW;
}

void *reserve(size_t bytes)
{
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        perror("emulator: mmap");
        abort();
    }
    return at;
}

void forget_all()
{
    heap.clear();
    for (size_t gpu = 0; gpu < EMU_GPUS; gpu++) emu.used[gpu] = begin_of(gpu);
}

void *share(const void *key, const char *name, size_t bytes)
{
    const size_t at = emu.shared_used;
    if (at + bytes + EMU_GAP > EMU_WINDOW) {
        fprintf(stderr, "emulator: no room for the shared array '%s'\n", name);
        abort();
    }
    shared.push_back({ name, at, bytes, key });
    emu.shared_used = (at + bytes + 2 * EMU_GAP - 1) / EMU_GAP * EMU_GAP;
    emu_mark(emu.heap + at, bytes, true, false);
    return emu.heap + at;
}
} // namespace

void emu_memory_init()
{
    if (emu.heap) return;
    emu.heap = static_cast<char *>(reserve(EMU_HEAPS));
    emu.state = static_cast<uint8_t *>(reserve(EMU_HEAPS / 4));
    emu.cell = static_cast<emu_cell *>(reserve(EMU_HEAPS / 4 * sizeof(emu_cell)));
    char *stacks = static_cast<char *>(reserve((size_t)(EMU_THREADS + 1) * EMU_STACK));
    emu.stacks = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(stacks) + EMU_STACK - 1) /
                                          EMU_STACK * EMU_STACK);
    for (int i = 0; i < EMU_THREADS; i++) /* who overruns a stack meets this page */
        mprotect(emu.stacks + (size_t)i * EMU_STACK, 4096, PROT_NONE);
    forget_all();
    emu.epoch = 1;
}

void emu_mark(const void *at, size_t bytes, bool exists, bool written)
{
    const size_t first = static_cast<const char *>(at) - emu.heap;
    for (size_t i = first; i < first + bytes; i++) {
        if (i % 4 == 0 && i + 4 <= first + bytes) { /* a whole cell */
            emu.state[i / 4] = (uint8_t)((exists ? 0x0f : 0) | (written ? 0xf0 : 0));
            i += 3;
            continue;
        }
        uint8_t *s = &emu.state[i / 4];
        const int live = 1 << i % 4, set = 16 << i % 4;
        *s = (uint8_t)((*s & ~(live | set)) | (exists ? live : 0) | (written ? set : 0));
    }
}

void emu_shared_reset(size_t dynamic)
{
    memset(emu.state, 0, emu.shared_used / 4);
    memset(emu.cell, 0, emu.shared_used / 4 * sizeof *emu.cell);
    shared.clear();
    emu.shared_used = 0;
    dynamic_at = 0;
    if (dynamic) share(&dynamic_at, "dynamic shared memory", dynamic);
}

void *emu_shared(const void *key, const char *name, size_t bytes)
{
    for (const allocation &a : shared)
        if (a.key == key) return emu.heap + a.at;
    size_t all = bytes;
    for (const allocation &a : shared) all += a.bytes;
    if (all > EMU_SHARED)
        emu_fault(nullptr, "", 0, "shared memory: '%s' makes %zu bytes, of %d", name, all,
                  (int)EMU_SHARED);
    return share(key, name, bytes);
}

void *emu_shared_dynamic()
{
    return emu_shared(&dynamic_at, "dynamic shared memory of no bytes", 0);
}

const char *emu_name_of(const void *at, char *out, size_t size)
{
    const size_t to = static_cast<const char *>(at) - emu.heap;
    const std::vector<allocation> &list = to < EMU_WINDOW ? shared : heap;
    const allocation *nearest = nullptr;
    for (const allocation &a : list)
        if (a.at <= to && (!nearest || a.at > nearest->at)) nearest = &a;
    if (nearest)
        snprintf(out, size, "'%s' + %zu of %zu bytes", nearest->name, to - nearest->at,
                 nearest->bytes);
    else
        snprintf(out, size, "%p, memory that was never allocated", at);
    return out;
}

const char *emu_range(const void *at, size_t bytes, bool reads)
{
    static char out[300];
    char name[200];
    const char *from = static_cast<const char *>(at);
    const size_t first = (size_t)(from - emu.heap), gpu = first / EMU_HEAP;
    if (!emu.heap || gpu >= EMU_GPUS || first < begin_of(gpu) || first > emu.used[gpu] ||
        bytes > emu.used[gpu] - first) {
        snprintf(out, sizeof out, "%zu bytes at %p, which is no memory of the device", bytes, at);
        return out;
    }
    if ((int)gpu != emu.gpu) {
        snprintf(out, sizeof out, "%zu bytes from %s on, which GPU %d has, by GPU %d", bytes,
                 emu_name_of(at, name, sizeof name), (int)gpu, emu.gpu);
        return out;
    }
    for (size_t i = first; i < first + bytes; i++) {
        const uint8_t state = emu.state[i / 4];
        const bool live = state >> i % 4 & 1, set = state >> (4 + i % 4) & 1;
        if (live && (set || !reads)) continue;
        snprintf(out, sizeof out, "%zu bytes from %s on, of which byte %zu %s", bytes,
                 emu_name_of(at, name, sizeof name), i - first,
                 live ? "has never been written" : "is outside");
        return out;
    }
    return nullptr;
}

void *emu_allocate_on(int gpu, int64_t bytes, const char *name)
{
    const emu_turn turn;
    emu_memory_init();
    const size_t at = emu.used[gpu], all = (size_t)bytes + EMU_GAP;
    if (bytes < 0 || all > (size_t)(gpu + 1) * EMU_HEAP - at) {
        fprintf(stderr, "emulator: no room for %lld bytes of '%s'\n", (long long)bytes, name);
        abort();
    }
    heap.push_back({ name, at, (size_t)bytes, nullptr });
    emu.used[gpu] = at + (all + EMU_GAP - 1) / EMU_GAP * EMU_GAP;
    emu_mark(emu.heap + at, (size_t)bytes, true, false);
    memset(emu.heap + at, 0xff, (size_t)bytes); /* NaN */
    return emu.heap + at;
}

void *emu_allocate(int64_t bytes, const char *name)
{
    return emu_allocate_on(0, bytes, name);
}

void emu_release_all(void)
{
    const emu_turn turn;
    if (!emu.heap) return;
    for (size_t gpu = 0; gpu < EMU_GPUS; gpu++) {
        const size_t cell = begin_of(gpu) / 4, n = emu.used[gpu] / 4 - cell;
        memset(emu.state + cell, 0, n);
        memset(emu.cell + cell, 0, n * sizeof *emu.cell);
    }
    forget_all();
    emu.releases++;
}

void emu_copy_in(void *to, const void *from, int64_t bytes)
{
    const emu_turn turn;
    memcpy(to, from, (size_t)bytes);
    emu_mark(to, (size_t)bytes, true, true);
}

void emu_copy_out(void *to, const void *from, int64_t bytes)
{
    const emu_turn turn;
    memcpy(to, from, (size_t)bytes);
}
