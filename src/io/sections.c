/* See sections.h. */
#include "io/sections.h"
#include "base/hash.h"
#include "base/memory.h"
#include <stdbool.h>
#include <string.h>

enum { HEAD = 24, SUMMED_FROM = 16, ENTRY = KEEL_SECTION_NAME + 16, ALIGN = 8 };
static const char magic[8] = { 'K', 'E', 'E', 'L', 'S', 'T', '0', '1' };

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static void put64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get64(const unsigned char *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* Whether the name ends within its place and no section before i has it. */
static bool good_name(const keel_section *list, int64_t i)
{
    const char *name = list[i].name;
    if (!name[0] || !memchr(name, 0, KEEL_SECTION_NAME)) return false;
    for (int64_t k = 0; k < i; k++)
        if (!strcmp(list[k].name, name)) return false;
    return true;
}

keel_status keel_sections_encode(const keel_section *list, int64_t count, void **out,
                                 size_t *n_bytes)
{
    if (count < 0 || count > KEEL_SECTIONS_MAX)
        return keel_fail(KEEL_EARG, "%lld sections; at most %d", (long long)count,
                         KEEL_SECTIONS_MAX);
    size_t size = HEAD + (size_t)count * ENTRY;
    for (int64_t i = 0; i < count; i++) {
        if (!good_name(list, i))
            return keel_fail(KEEL_EARG, "section %lld: its name", (long long)i);
        if (list[i].n_bytes > SIZE_MAX / 4 - size)
            return keel_fail(KEEL_ENOMEM, "section '%s' is too large", list[i].name);
        size = round_up(size + list[i].n_bytes);
    }
    unsigned char *block = keel_calloc(size, 1);
    if (!block) return KEEL_ENOMEM;
    size_t at = HEAD + (size_t)count * ENTRY;
    memcpy(block, magic, sizeof magic);
    put64(block + SUMMED_FROM, (uint64_t)count);
    for (int64_t i = 0; i < count; i++) {
        unsigned char *entry = block + HEAD + i * ENTRY;
        memcpy(entry, list[i].name, strlen(list[i].name));
        put64(entry + KEEL_SECTION_NAME, at);
        put64(entry + KEEL_SECTION_NAME + 8, list[i].n_bytes);
        if (list[i].n_bytes) memcpy(block + at, list[i].data, list[i].n_bytes);
        at = round_up(at + list[i].n_bytes);
    }
    put64(block + 8, keel_fingerprint(block + SUMMED_FROM, size - SUMMED_FROM));
    *out = block;
    *n_bytes = size;
    return KEEL_OK;
}

static keel_status read_entry(keel_section *list, int64_t i, const unsigned char *block,
                              size_t n_bytes)
{
    const unsigned char *entry = block + HEAD + i * ENTRY;
    const uint64_t begin = get64(entry + KEEL_SECTION_NAME);
    const uint64_t size = get64(entry + KEEL_SECTION_NAME + 8);
    memcpy(list[i].name, entry, KEEL_SECTION_NAME);
    if (!good_name(list, i) || begin % ALIGN || begin > n_bytes || size > n_bytes - begin)
        return keel_fail(KEEL_EFORMAT, "section %lld is damaged", (long long)i);
    list[i].data = block + begin;
    list[i].n_bytes = (size_t)size;
    return KEEL_OK;
}

keel_status keel_sections_decode(keel_sections *out, const void *data, size_t n_bytes)
{
    const unsigned char *block = data;
    if (n_bytes < HEAD || memcmp(block, magic, sizeof magic))
        return keel_fail(KEEL_EFORMAT, "it does not begin as a state of training does");
    if (get64(block + 8) != keel_fingerprint(block + SUMMED_FROM, n_bytes - SUMMED_FROM))
        return keel_fail(KEEL_EFORMAT, "its checksum does not match");
    const uint64_t count = get64(block + SUMMED_FROM);
    if (count > KEEL_SECTIONS_MAX || count > (n_bytes - HEAD) / ENTRY)
        return keel_fail(KEEL_EFORMAT, "%llu sections in %zu bytes", (unsigned long long)count,
                         n_bytes);
    keel_section *list = keel_calloc((size_t)count, sizeof *list);
    if (!list) return KEEL_ENOMEM;
    for (int64_t i = 0; i < (int64_t)count; i++) {
        const keel_status s = read_entry(list, i, block, n_bytes);
        if (s < 0) {
            keel_free(list);
            return s;
        }
    }
    *out = (keel_sections){ list, (int64_t)count };
    return KEEL_OK;
}

void keel_sections_free(keel_sections *s)
{
    keel_free(s->at);
    *s = (keel_sections){ 0 };
}

const keel_section *keel_sections_find(const keel_sections *s, const char *name)
{
    for (int64_t i = 0; i < s->count; i++)
        if (!strcmp(s->at[i].name, name)) return &s->at[i];
    return NULL;
}
