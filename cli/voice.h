/* Standard output and standard error that cannot hold up the end of a run: a launcher that is asked
 * to end, or a pager, may have stopped reading. */
#ifndef KEEL_CLI_VOICE_H
#define KEEL_CLI_VOICE_H
#include <stddef.h>

/* From now on all that is printed waits for its reader only until the first signal. After it the
 * reader has a fifth of a second in all, and what it does not take then is dropped. */
void keel_voice_begin(void);

/* For handlers of signals: write to standard error, or nothing where that would wait. */
void keel_voice_cry(const char *text, size_t n);

#endif
