/* A program whose standard output is read: started by /bin/sh in a process group of its own, and
 * killed with it. Its standard input is /dev/null.
 *
 * A thread waits for the program as long as it runs. The kernel kills the shell, and so a program
 * that is all it runs, when that thread ends, so neither outlives a process that was killed itself.
 */
#ifndef KEEL_IO_PROGRAM_H
#define KEEL_IO_PROGRAM_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct keel_program keel_program;

/* Start `command`, `name` in messages; both are borrowed. `more`: "NAME=value" texts, added to the
 * environment, the last NULL. KEEL_EIO: it cannot be started. */
keel_status keel_program_start(keel_program **out, const char *command, const char *name,
                               const char *const *more);

/* Read up to n bytes of its output: fewer, *got, only at its end. It may wait forever. One thread
 * at a time. */
keel_status keel_program_read(keel_program *p, void *data, size_t n, size_t *got);

/* After the end of the output, wait for the end of the program, and kill what it has left running
 * in its group. KEEL_EIO: it ended with a status other than 0, or by a signal; the text has the
 * last line of its error output. */
keel_status keel_program_finish(keel_program *p);

/* Kill the program, unless it is finished, and free everything. NULL is allowed. */
void keel_program_close(keel_program *p);

#endif
