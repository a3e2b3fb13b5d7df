/* What the processes of a command tell each other besides their steps: before, between and after
 * works, when some may still read their data and others wait. */
#ifndef KEEL_CLI_TELLING_H
#define KEEL_CLI_TELLING_H
#include <keel/process_group.h>

/* Every process gets what each says, of so many bytes: all[count], with its own. Waits for ten
 * times the timeout of the group. Returns -1, or an exit code after an error was printed: then
 * another process is lost, or there is no memory, and nobody may be waited for any more. */
int keel_tell_all(const keel_process_group *g, const void *own, void *all, size_t bytes);

/* All get the bytes that process 0 has. As above. */
int keel_tell_from_first(const keel_process_group *g, void *data, size_t bytes);

#endif
