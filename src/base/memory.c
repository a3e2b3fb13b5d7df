/* Small blocks come from the C library. Large aligned blocks are mapped: the system gives their
 * zeroed pages when a worker first touches them, so memory is not cleared twice and unused pages
 * cost nothing. Live blocks are counted; the counters are relaxed, since they are read while no
 * thread allocates. */
#include "base/memory.h"
#include "base/error.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CACHE_LINE = 64,
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    HUGE_FROM = 4 << 20,
    LEAVE_FROM = 1 << 20, /* below it, a call to the system costs more than the pages are worth */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MAPS = 0 }; /* so that the sanitizer sees every block */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { MAPS = 0 };
#else
enum { MAPS = 1 };
#endif
#else
enum { MAPS = 1 };
#endif

static _Atomic int64_t live, calls, fail_in = -1;

/* Count a request; true if it is the one that a test makes fail. */
static bool refused(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    int64_t left = atomic_load_explicit(&fail_in, memory_order_relaxed);
    while (left >= 0)
        if (atomic_compare_exchange_weak(&fail_in, &left, left - 1)) return left == 0;
    return false;
}

/* Count a new block, or set the error text if there is none. */
static void *born(void *p, size_t bytes)
{
    if (p)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    else
        keel_fail(KEEL_ENOMEM, "out of memory: %zu bytes could not be allocated", bytes);
    return p;
}

static bool product(size_t n, size_t size, size_t *bytes)
{
    if (keel_mul(n, size, bytes) && *bytes <= PTRDIFF_MAX - HUGE_PAGE) {
        if (*bytes == 0) *bytes = 1;
        return true;
    }
    keel_fail(KEEL_ENOMEM, "out of memory: %zu times %zu bytes exceeds the address space", n, size);
    return false;
}

void *keel_calloc(size_t n, size_t size)
{
    size_t bytes;
    if (!product(n, size, &bytes)) return NULL;
    return born(refused() ? NULL : calloc(1, bytes), bytes);
}

/* Header before a mapped block. Mapped blocks are aligned to a huge page. If the C library gave
 * a block of that alignment, the bytes before it would be its own header, so reading them is safe.
 */
typedef struct mapped {
    uint64_t magic;
    void *self, *base;
    size_t length;
} mapped;

static const uint64_t mapped_magic = 0x6b65656c2d6d6170;

static void *map(size_t bytes)
{
    const size_t length = (bytes + CACHE_LINE + HUGE_PAGE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    char *p = base + HUGE_PAGE - (uintptr_t)base % HUGE_PAGE; /* leaves room for the header */
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* may fail: only speed depends on it */
    ((mapped *)p)[-1] =
        (mapped){ .magic = mapped_magic, .self = p, .base = base, .length = length };
    return p;
}

/* The mapping of a block; NULL: it is from the C library. */
static const mapped *mapping_of(const void *p)
{
    if (!MAPS || !p || (uintptr_t)p % HUGE_PAGE) return NULL;
    const mapped *m = (const mapped *)p - 1;
    return m->magic == mapped_magic && m->self == p ? m : NULL;
}

void *keel_aligned_calloc(size_t n, size_t size)
{
    size_t bytes;
    if (!product(n, size, &bytes)) return NULL;
    if (refused()) return born(NULL, bytes);
    if (MAPS && bytes >= HUGE_FROM) return born(map(bytes), bytes);
    void *p = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (p) memset(p, 0, bytes);
    return born(p, bytes);
}

void keel_want_huge_pages(void *block, size_t bytes)
{
    if (!MAPS || bytes < HUGE_FROM) return;
    const size_t before = (HUGE_PAGE - (uintptr_t)block % HUGE_PAGE) % HUGE_PAGE;
    const size_t whole = (bytes - before) / HUGE_PAGE * HUGE_PAGE;
    (void)madvise((char *)block + before, whole, MADV_HUGEPAGE); /* may fail: speed only */
}

bool keel_leaves(size_t n)
{
    return n >= (MAPS ? LEAVE_FROM : 1);
}

void keel_leave(void *bytes, size_t n)
{
    const uintptr_t first = ((uintptr_t)bytes + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = ((uintptr_t)bytes + n) / PAGE * PAGE;
    if (!keel_leaves(n)) return;
    if (MAPS)
        (void)madvise((void *)first, end - first, MADV_DONTNEED); /* may fail: nothing is lost */
    else
        memset(bytes, 0xFF, n); /* NaN, so that whoever reads it is found */
}

void keel_copy(void *to, void *from, size_t n, bool leaves)
{
    const size_t most = leaves ? 4 << 20 : n;
    for (size_t at = 0; at < n; at += most) {
        const size_t piece = n - at < most ? n - at : most;
        memcpy((char *)to + at, (char *)from + at, piece);
        if (leaves) keel_leave((char *)from + at, piece);
    }
}

void *keel_grow(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (!product(n, size, &bytes)) return NULL;
    void *q = refused() ? NULL : realloc(p, bytes);
    if (p && q) return q; /* still one block, already counted */
    return born(q, bytes);
}

char *keel_strdup(const char *s)
{
    return keel_strndup(s, strlen(s));
}

char *keel_strndup(const char *s, size_t n)
{
    const size_t length = strnlen(s, n);
    char *copy = keel_calloc(1, length + 1);
    if (copy) memcpy(copy, s, length);
    return copy;
}

void keel_free(void *p)
{
    const mapped *m = mapping_of(p);
    if (p) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    if (m)
        munmap(m->base, m->length);
    else
        free(p);
}

bool keel_mul(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

bool keel_mul_i64(int64_t a, int64_t b, int64_t *product)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

int64_t keel_memory_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

int64_t keel_memory_calls(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

void keel_memory_fail_at(int64_t call)
{
    atomic_store(&fail_in, call < 0 ? -1 : call);
}
