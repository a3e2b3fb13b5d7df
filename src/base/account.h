/* An account of bytes: whoever allocates a buffer for rows takes its bytes first, so that all
 * buffers of a run together stay within a limit at every moment. */
#ifndef KEEL_BASE_ACCOUNT_H
#define KEEL_BASE_ACCOUNT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_account {
    int64_t limit;   /* 0: none. Set before the first use. */
    bool soft;       /* what is next is taken above the limit, too; nothing is read ahead then */
    int64_t reserve; /* that caches leave free for rows that a step needs */
    _Atomic int64_t used, peak;
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
int64_t keel_account_room(const keel_account *a);         /* INT64_MAX: no limit */

#endif
