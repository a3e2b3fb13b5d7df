/* Texts in attributes; see h5_texts.h.
 *
 * Safety: every position is checked against the size of the image. Texts may share bytes, so heaps
 * are not claimed as other blocks are. Instead the objects of heaps that are passed by are counted,
 * over all attributes of the file. An honest file has its texts in their order, in heaps of 4 KiB,
 * so a text takes one step and an attribute some hundred; a file that needs more than STEPS for
 * each of its bytes is refused. */
#include "io/h5_texts.h"
#include "base/memory.h"
#include <string.h>

enum {
    CLASS_STRING = 3,
    CLASS_VARIABLE = 9,
    REFERENCE_BYTES = 16, /* of a text of any length: its length, its heap, its number there */
    HEAP_HEAD_BYTES = 16,
    STEPS = 16,
};

typedef struct reading {
    const unsigned char *image;
    size_t size;
    uint64_t heap; /* where the last text was found: its heap, and the object after it; 0: none */
    size_t next;
    size_t *steps; /* still allowed */
} reading;

static keel_status bad(size_t at, const char *what)
{
    return keel_fail(KEEL_EFORMAT, "weights file, offset %zu: %s", at, what);
}

static uint64_t get(const unsigned char *p, int n_bytes)
{
    uint64_t v = 0;
    for (int i = n_bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

/* Looks for an object of a heap from `from` on. *found NULL: it does not follow. */
static keel_status search(reading *r, size_t heap, size_t end, size_t from, unsigned index,
                          const unsigned char **found, size_t *n_bytes)
{
    *found = NULL;
    for (size_t at = from; end - at >= HEAP_HEAD_BYTES;) {
        const unsigned char *p = r->image + at;
        const unsigned here = (unsigned)get(p, 2);
        const uint64_t size = get(p + 8, 8);
        if (here == 0) return KEEL_OK; /* free space: the last object */
        if (size > end - at - HEAP_HEAD_BYTES) return bad(at, "a text ends outside its heap");
        if (*r->steps == 0) return bad(heap, "a heap of texts that are in disorder");
        --*r->steps;
        const size_t all = HEAP_HEAD_BYTES + (((size_t)size + 7) & ~(size_t)7);
        const size_t next = all > end - at ? end : at + all;
        if (here == index) {
            *found = p + HEAP_HEAD_BYTES;
            *n_bytes = (size_t)size;
            r->heap = heap;
            r->next = next;
            return KEEL_OK;
        }
        at = next;
    }
    return KEEL_OK;
}

/* The text that 16 bytes refer to. */
static keel_status refer(reading *r, const unsigned char *p, keel_h5_text *out)
{
    const size_t length = (size_t)get(p, 4), from = (size_t)(p - r->image);
    const uint64_t heap = get(p + 4, 8);
    const unsigned index = (unsigned)get(p + 12, 4);
    const unsigned char *found = NULL;
    size_t n = 0;
    if (length == 0) {
        *out = (keel_h5_text){ "", 0 };
        return KEEL_OK;
    }
    if (heap > r->size || r->size - heap < HEAP_HEAD_BYTES)
        return bad(from, "a text in a heap outside the file");
    const unsigned char *h = r->image + heap;
    if (memcmp(h, "GCOL", 4) != 0 || h[4] != 1) return bad((size_t)heap, "not a heap of texts");
    const uint64_t size = get(h + 8, 8);
    if (size < HEAP_HEAD_BYTES || size > r->size - heap)
        return bad((size_t)heap, "a heap of texts that does not fit in the file");
    const size_t end = (size_t)(heap + size), first = (size_t)heap + HEAP_HEAD_BYTES;
    if (r->heap == heap) KEEL_TRY(search(r, (size_t)heap, end, r->next, index, &found, &n));
    if (!found) KEEL_TRY(search(r, (size_t)heap, end, first, index, &found, &n));
    if (!found) return bad(from, "a text that its heap does not have");
    if (length > n) return bad(from, "a text longer than what its heap has");
    *out = (keel_h5_text){ (const char *)found, length };
    return KEEL_OK;
}

/* The parts of an attribute message; keel_h5_check has checked that type and space fit. */
typedef struct parts {
    const char *name;
    const unsigned char *type, *space, *value;
    size_t type_bytes, space_bytes, value_bytes;
} parts;

static parts parts_of(const unsigned char *m, size_t n)
{
    const size_t round = m[0] == 1 ? 7 : 0; /* version 1 pads each part to 8 bytes */
    const size_t name = (size_t)get(m + 2, 2), type = (size_t)get(m + 4, 2);
    const size_t space = (size_t)get(m + 6, 2);
    parts p = { .name = (const char *)m + (m[0] == 3 ? 9 : 8),
                .type_bytes = type,
                .space_bytes = space };
    p.type = (const unsigned char *)p.name + ((name + round) & ~round);
    p.space = p.type + ((type + round) & ~round);
    p.value = p.space + ((space + round) & ~round);
    p.value_bytes = n - (size_t)(p.value - m);
    return p;
}

static keel_status count_of(const parts *p, size_t at, uint64_t *count)
{
    const unsigned char *s = p->space;
    if (p->space_bytes < 4 || s[0] < 1 || s[0] > 2) return bad(at, "an attribute without its size");
    const size_t begin = s[0] == 1 ? 8 : 4;
    if (s[1] > 1)
        return keel_fail(KEEL_EUNSUP, "weights file, attribute '%.60s': %d dims", p->name, s[1]);
    if (p->space_bytes < begin + 8 * (size_t)s[1]) return bad(at, "an attribute without its size");
    const bool none = s[0] == 2 && s[3] == 2;
    *count = none ? 0 : s[1] ? get(s + begin, 8) : 1;
    return KEEL_OK;
}

static keel_status read_texts(reading *r, const parts *p, size_t at, keel_h5_text **out,
                              size_t *count)
{
    keel_status s = KEEL_OK;
    uint64_t n = 0;
    KEEL_TRY(count_of(p, at, &n));
    if (n > 0 && p->type_bytes < 8) return bad(at, "an attribute without its type");
    const int class = n > 0 ? p->type[0] & 15 : CLASS_STRING;
    const bool variable = class == CLASS_VARIABLE && (p->type[1] & 15) == 1;
    if (class != CLASS_STRING && !variable)
        return keel_fail(KEEL_EUNSUP, "weights file: the attribute '%.60s' is not a text", p->name);
    const size_t each = n > 0 ? (size_t)get(p->type + 4, 4) : 1;
    if (each == 0 || n > p->value_bytes / each || (n > 0 && variable && each != REFERENCE_BYTES))
        return bad(at, "an attribute shorter than its elements");
    keel_h5_text *texts = keel_calloc((size_t)n + 1, sizeof *texts);
    if (!texts) return KEEL_ENOMEM;
    for (size_t i = 0; i < n && s >= 0; i++) {
        const unsigned char *value = p->value + i * each;
        if (variable)
            s = refer(r, value, &texts[i]);
        else
            texts[i] = (keel_h5_text){ (const char *)value, strnlen((const char *)value, each) };
    }
    if (s < 0) {
        keel_free(texts);
        return s;
    }
    *out = texts;
    *count = (size_t)n;
    return KEEL_OK;
}

keel_status keel_h5_texts(keel_h5_tree *t, const void *image, size_t n_bytes, const char *path,
                          const char *name, keel_h5_text **out, size_t *count)
{
    size_t low = 0, high = t->n_attributes;
    *out = NULL;
    *count = 0;
    if (!t->looked) t->steps = n_bytes > SIZE_MAX / STEPS ? SIZE_MAX : n_bytes * STEPS;
    t->looked = true;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(t->attributes[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < t->n_attributes && !strcmp(t->attributes[low].path, path); low++) {
        const keel_h5_attribute *a = &t->attributes[low];
        const parts p = parts_of((const unsigned char *)image + a->offset, a->n_bytes);
        if (strcmp(p.name, name) != 0) continue;
        reading r = { .image = image, .size = n_bytes, .steps = &t->steps };
        return read_texts(&r, &p, a->offset, out, count);
    }
    return KEEL_OK;
}
