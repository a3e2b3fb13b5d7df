/* Signals of fit: it ends after the current step and keeps what it has learned. */
#ifndef KEEL_CLI_SIGNALS_H
#define KEEL_CLI_SIGNALS_H
#include <stdbool.h>

/* From now on Ctrl-C, SIGTERM, SIGHUP (unless nohup ignores it), SIGXCPU (a limit of processor
 * time, of ulimit -t or a batch system) and a closed pipe are noted. The second one is for those
 * who do not want to wait: `quit` is called with it, from a thread of its own, while the first
 * thread may be anywhere; if it returns, the first thread ends the process. The third one kills.
 * Returns false if there is no memory for this. */
bool keel_signals_catch(void (*quit)(void *context, int signal), void *context);

int keel_signal_got(void);                /* the first; 0: none */
bool keel_signal_again(void);             /* a second one came */
const char *keel_signal_text(int signal); /* "stopped by SIGTERM" */

#endif
