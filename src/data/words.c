/* Open addressing; see words.h. */
#include "data/words.h"
#include "base/hash.h"
#include "base/memory.h"
#include <stdbool.h>
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

int64_t keel_words_find(const keel_words *w, const char *word)
{
    return w->slots ? w->slot[slot_of(w, word)] - 1 : -1;
}

static keel_status make_room(keel_words *w)
{
    enum { LEAST = 64 };
    if (!w->slots && getrandom(w->key, sizeof w->key, GRND_NONBLOCK) < 0)
        w->key[0] = (uint64_t)(uintptr_t)w; /* before the pool is filled: better than nothing */
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
    for (int64_t i = 0; i < w->n; i++) keel_free(w->word[i]);
    keel_free(w->word);
    keel_free(w->slot);
    *w = (keel_words){ 0 };
}
