/* Open addressing; see words.h. */
#include "data/words.h"
#include "base/hash.h"
#include "base/memory.h"
#include <string.h>
#include <sys/random.h>

/* The slot of a word, or the free one where it belongs. At least half of the slots are free. */
static int64_t slot_of(const keel_words *w, const char *word)
{
    const uint64_t mask = (uint64_t)w->slots - 1;
    uint64_t at = keel_siphash(w->key, word, strlen(word)) & mask;
    while (w->slot[at] && strcmp(w->word[w->slot[at] - 1], word)) at = (at + 1) & mask;
    return (int64_t)at;
}

/* Head and tail of a word of at most 16 bytes; with its length they are the word. */
static void ends_of(struct keel_word_seen *s, const char *word, size_t n)
{
    s->size = (int64_t)n + 1;
    s->head = s->tail = 0;
    if (n >= 8) { /* copies of a constant size are one instruction each */
        memcpy(&s->head, word, 8);
        memcpy(&s->tail, word + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&s->head, word, 4);
        memcpy(&s->tail, word + n - 4, 4);
    } else if (n) {
        s->head = (uint64_t)(unsigned char)word[0] | (uint64_t)(unsigned char)word[n / 2] << 8 |
                  (uint64_t)(unsigned char)word[n - 1] << 16;
    }
}

/* Most columns have few words: one that was found lately needs neither hash nor comparison. */
int64_t keel_words_find(keel_words *w, const char *word)
{
    struct keel_word_seen this, *at;
    if (!w->slots) return -1;
    const size_t n = strlen(word);
    if (n > 16) return w->slot[slot_of(w, word)] - 1;
    ends_of(&this, word, n);
    at = &w->seen[(this.head + 31 * this.tail) * 0x9E3779B97F4A7C15 >> 53];
    if (at->size == this.size && at->head == this.head && at->tail == this.tail && at->number >= 0)
        return at->number;
    this.number = w->slot[slot_of(w, word)] - 1;
    *at = this;
    return this.number;
}

static keel_status make_seen(keel_words *w)
{
    w->seen = keel_calloc(KEEL_WORDS_SEEN, sizeof *w->seen);
    return w->seen ? KEEL_OK : KEEL_ENOMEM;
}

keel_status keel_words_borrow(keel_words *out, const keel_words *of)
{
    keel_words w = *of;
    w.borrowed = true;
    KEEL_TRY(make_seen(&w));
    *out = w;
    return KEEL_OK;
}

static keel_status make_room(keel_words *w)
{
    enum { LEAST = 64 };
    if (!w->slots && getrandom(w->key, sizeof w->key, GRND_NONBLOCK) < 0)
        w->key[0] = (uint64_t)(uintptr_t)w; /* before the pool is filled: better than nothing */
    if (!w->seen) KEEL_TRY(make_seen(w));
    const int64_t room = w->room ? 2 * w->room : LEAST;
    int32_t *slot = keel_calloc((size_t)room, 2 * sizeof *slot), *const old = w->slot;
    if (!slot) return KEEL_ENOMEM;
    char **word = keel_grow(w->word, (size_t)room, sizeof *word);
    if (!word) {
        keel_free(slot);
        return KEEL_ENOMEM;
    }
    w->word = word;
    w->slot = slot;
    w->room = room;
    w->slots = 2 * room;
    for (int64_t i = 0; i < w->n; i++) slot[slot_of(w, word[i])] = (int32_t)i + 1;
    keel_free(old);
    return KEEL_OK;
}

keel_status keel_words_add(keel_words *w, const char *word, int64_t *number)
{
    if (w->n == w->room) KEEL_TRY(make_room(w));
    const int64_t at = slot_of(w, word);
    if (!w->slot[at]) {
        if (w->n == KEEL_WORDS_MAX)
            return keel_fail(KEEL_EFORMAT, "more than %d different words", KEEL_WORDS_MAX);
        char *copy = keel_strdup(word);
        if (!copy) return KEEL_ENOMEM;
        w->word[w->n++] = copy;
        w->slot[at] = (int32_t)w->n;
    }
    *number = w->slot[at] - 1;
    return KEEL_OK;
}

void keel_words_free(keel_words *w)
{
    for (int64_t i = 0; !w->borrowed && i < w->n; i++) keel_free(w->word[i]);
    if (!w->borrowed) {
        keel_free(w->word);
        keel_free(w->slot);
    }
    keel_free(w->seen);
    *w = (keel_words){ 0 };
}
