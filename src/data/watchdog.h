/* A thread that looks at those who read while somebody waits for rows, and says who waits for whom
 * if that takes too long. It costs those who read nothing: they leave a trail in any case. */
#ifndef KEEL_DATA_WATCHDOG_H
#define KEEL_DATA_WATCHDOG_H
#include "data/trail.h"

typedef struct keel_watchdog keel_watchdog;

/* `wake` is called once the limit is reached, to wake who waits; may be NULL. d NULL: `name` is
 * being opened. *out is NULL if nobody wants to be told. */
keel_status keel_watchdog_create(keel_watchdog **out, const keel_input_watch *o,
                                 const keel_dataset *d, const char *name, void (*wake)(void *),
                                 void *context);
void keel_watchdog_destroy(keel_watchdog *w); /* NULL is allowed in all of these */

/* Before anything is waited for: look at these trails too. */
keel_status keel_watchdog_add(keel_watchdog *w, keel_trail *trail, int n);

/* Somebody begins to wait for rows, or has them. */
void keel_watchdog_begin(keel_watchdog *w);
void keel_watchdog_end(keel_watchdog *w);

/* True once a wait has reached the limit. */
bool keel_watchdog_is_over(const keel_watchdog *w);
keel_status keel_watchdog_fail(keel_watchdog *w); /* KEEL_ETIMEOUT, with the line */

#endif
