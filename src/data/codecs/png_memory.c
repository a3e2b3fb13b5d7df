/* The memory of libspng: what it will take, by the head of a file, and an allocator that takes it
 * from the account. Its allocator has no context, so the account is that of the thread. */
#include "base/memory.h"
#include "data/codecs/png.h"
#include <stdlib.h>
#include <string.h>

static _Thread_local keel_account *account;
static _Thread_local bool short_of;

void keel_png_begin(keel_account *a)
{
    account = a;
    short_of = false;
}

bool keel_png_was_short(void)
{
    return short_of;
}

/* ---- the allocator: the size stands before each block ------------------------------------------
 */

enum { BEFORE = 16 };

static void *allocate(size_t n_bytes)
{
    const bool taken =
        n_bytes <= INT64_MAX - BEFORE && keel_account_take(account, (int64_t)n_bytes);
    char *block = taken ? keel_calloc(1, n_bytes + BEFORE) : NULL;
    if (!block) {
        if (taken) keel_account_give(account, (int64_t)n_bytes);
        short_of = true;
        return NULL;
    }
    memcpy(block, &n_bytes, sizeof n_bytes);
    return block + BEFORE;
}

static void *allocate_zeroed(size_t count, size_t each)
{
    size_t n;
    return keel_mul(count, each, &n) ? allocate(n) : NULL;
}

static size_t size_of(const void *at)
{
    size_t n = 0;
    if (at) memcpy(&n, (const char *)at - BEFORE, sizeof n);
    return n;
}

static void let_go(void *at)
{
    if (!at) return;
    keel_account_give(account, (int64_t)size_of(at));
    keel_free((char *)at - BEFORE);
}

static void *reallocate(void *at, size_t n_bytes)
{
    const size_t before = size_of(at), n = before < n_bytes ? before : n_bytes;
    void *to = allocate(n_bytes);
    if (to && n) memcpy(to, at, n);
    if (to) let_go(at);
    return to;
}

struct spng_alloc keel_png_alloc(void)
{
    return (struct spng_alloc){ .malloc_fn = allocate,
                                .realloc_fn = reallocate,
                                .calloc_fn = allocate_zeroed,
                                .free_fn = let_go };
}

/* ---- what it will take -------------------------------------------------------------------------
 */

static uint32_t u32(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Texts, EXIF and profiles before the pixels, which libspng keeps. Of compressed ones only the file
 * tells nothing; profiles are some kilobytes. False: the head ends before the pixels. */
static bool kept_bytes(const unsigned char *b, size_t n_head, size_t n_bytes, int64_t *out)
{
    enum { FIRST = 8, FRAME = 12, STRUCT = 128, GROWS = 4, LEAST = 8 << 10 };
    for (size_t at = FIRST; at <= n_bytes && n_bytes - at >= FRAME;) {
        if (at > n_head || n_head - at < FRAME) return false;
        const uint32_t n = u32(b + at);
        const unsigned char *type = b + at + 4;
        if (!memcmp(type, "IDAT", 4)) return true;
        if (!memcmp(type, "zTXt", 4) || !memcmp(type, "iTXt", 4) || !memcmp(type, "iCCP", 4))
            *out += STRUCT + LEAST + GROWS * (int64_t)n;
        else if (!memcmp(type, "tEXt", 4) || !memcmp(type, "eXIf", 4) || !memcmp(type, "sPLT", 4))
            *out += STRUCT + 2 * (int64_t)n;
        if (n > n_bytes - at - FRAME) return true; /* cut short, which decoding will tell */
        at += FRAME + n;
    }
    return true;
}

int64_t keel_png_own(const void *head, size_t n_head, size_t n_bytes)
{
    enum {
        FIXED = 46 << 10, /* its state, and the window of zlib */
        WIDTH = 16,
        DEPTH = 24,
        COLOR = 25,
        INTERLACED = 28,
        HEAD = 33,
        LINE = 48 /* what a line has besides its pixels */
    };
    static const int samples[8] = { 1, 0, 3, 1, 2, 0, 4, 0 };
    const unsigned char *b = head;
    int64_t kept = 0;
    if (n_head < HEAD || !kept_bytes(b, n_head, n_bytes, &kept)) return 0;
    const int64_t width = u32(b + WIDTH);
    const int64_t line = (width * samples[b[COLOR] & 7] * b[DEPTH] + 7) / 8 + LINE;
    return FIXED + 2 * line + (b[INTERLACED] ? width + LINE : 0) + kept;
}
