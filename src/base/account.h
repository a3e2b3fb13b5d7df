/* An account of bytes: whoever allocates a buffer for rows takes its bytes first, so that all
 * buffers of a run together stay within a limit at every moment.
 *
 * It also keeps some blocks that were let go, to give them out again: rows of a stream come and go
 * by the thousand, and fresh pages cost more than what is written into them. Blocks that are kept
 * stay counted, and are freed where there is no room. */
#ifndef KEEL_BASE_ACCOUNT_H
#define KEEL_BASE_ACCOUNT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEEL_BLOCKS_KEPT = 16, KEEL_BLOCK_LEAST = 16 << 10 /* bytes */ };

typedef struct keel_account {
    _Atomic int64_t limit; /* 0: none */
    bool soft; /* what is next is taken above the limit, too; nothing is read ahead then */
    _Atomic int64_t reserve; /* that caches leave free for rows that a step needs */
    _Atomic int64_t used, peak;
    atomic_flag busy; /* guards `kept` */
    struct {
        void *at; /* NULL: none */
        size_t n_bytes;
    } kept[KEEL_BLOCKS_KEPT];
} keel_account;

/* What this thread can let go of if there is no room: rows that were read ahead, which are read
 * again later. `let_go` may be called within any keel_account_take of this thread. */
typedef struct keel_relief {
    void (*let_go)(void *context);
    void *context;
} keel_relief;

/* From now on this thread has this relief (NULL: none). Returns the one that it had. */
keel_relief *keel_account_relief(keel_relief *r);

/* Take bytes. False: there is no room, also after this thread let go of what it could; the error
 * text then has the numbers. NULL counts nothing, and always has room. */
bool keel_account_take(keel_account *a, int64_t n_bytes);
/* The same without letting go of anything and without an error text. */
bool keel_account_try(keel_account *a, int64_t n_bytes);
void keel_account_give(keel_account *a, int64_t n_bytes); /* give bytes back */

/* A block, whose bytes are taken; a block that was kept has its old bytes. NULL: there is no room,
 * or no memory, with the error set. NULL is allowed for a. */
void *keel_account_block(keel_account *a, size_t n_bytes);
/* Let go of a block, and give its bytes back; NULL: nothing. */
void keel_account_free(keel_account *a, void *block, size_t n_bytes);
/* Free the blocks that are kept: at the end of whoever uses the account. NULL is allowed. */
void keel_account_drop(keel_account *a);

int64_t keel_account_room(const keel_account *a); /* INT64_MAX: no limit */

#endif
