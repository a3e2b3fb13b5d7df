/* A set of texts that are numbered in the order in which they came. */
#ifndef KEEL_DATA_WORDS_H
#define KEEL_DATA_WORDS_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_WORDS_MAX = 1 << 20 };

enum { KEEL_WORDS_SEEN = 1 << 11 }; /* as many as 11 bits of a hash count */

typedef struct keel_words {
    char **word; /* [n]; owned */
    int64_t n, room;
    int32_t *slot; /* [slots]: a number + 1; 0: free */
    int64_t slots;
    uint64_t key[2]; /* of the hash; drawn, so that no file can be full of collisions */
    struct keel_word_seen {
        uint64_t head, tail;  /* the first and the last 8 bytes */
        int64_t number, size; /* bytes with the zero byte at the end; 0: no word is here */
    } * seen;                 /* [KEEL_WORDS_SEEN]: short words that were found lately */
    bool borrowed;            /* all but `seen` is another set's */
} keel_words;

/* The number of a word; -1: it is not in the set. */
int64_t keel_words_find(keel_words *w, const char *word);

/* The same; a word that is not in the set is copied into it. KEEL_EFORMAT: the set would have more
 * than KEEL_WORDS_MAX words. */
keel_status keel_words_add(keel_words *w, const char *word, int64_t *number);
/* For another thread that only finds: the same words. `of` must stay and must not change. */
keel_status keel_words_borrow(keel_words *out, const keel_words *of);
void keel_words_free(keel_words *w);

#endif
