/* A process that another one of its machine runs the devices of (keel/machines.h). */
#ifndef KEEL_CLI_FOLLOW_H
#define KEEL_CLI_FOLLOW_H
#include <keel/machines.h>

enum { KEEL_FROM_FOLLOWER = 0x6b65656c }; /* the value of a signal that a follower hands on */

/* A fingerprint of what this process was started with: program, command line, folder, and Keel's
 * environment. 0: it cannot be read. */
uint64_t keel_started_with(void);

/* What a fit whose processes are gone leaves, and how it goes on: " what ..." behind the text of
 * the error. folder: of its checkpoints; NULL: it writes none. */
void keel_follow_left(char *out, size_t size, const char *folder);

/* Wait until the other has ended. A signal goes on to it, since people and launchers may tell any
 * process to stop. Returns its exit code; -1 if it is gone, and keel_error names it. */
int keel_follow(keel_machines *m);

#endif
