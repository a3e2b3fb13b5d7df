/* Connects the processes that a launcher started, by the plug-in for its MPI. */
#ifndef KEEL_CLI_CONNECTION_H
#define KEEL_CLI_CONNECTION_H
#include "launchers.h"
#include <keel/process_group.h>

/* The group of all processes. asked: --mpi, so a launcher that is not known, or none, is no reason
 * to refuse. Returns -1, or an exit code after an error was printed; *out is written only with -1.
 */
int keel_connect(keel_process_group *out, const keel_launch *l, bool asked);

#endif
