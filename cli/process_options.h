/* What the options of several processes (processes.h) say before there is any other process. */
#ifndef KEEL_CLI_PROCESS_OPTIONS_H
#define KEEL_CLI_PROCESS_OPTIONS_H
#include "processes.h"
#include <keel/launcher.h>

/* Refuse what does not make sense where this process was started so, for the command of that name,
 * on these devices (NULL: the default). Returns -1, or an exit code after an error was printed. */
int keel_processes_check(const keel_processes_options *o, const keel_launch *l, const char *command,
                         const char *devices);

/* Limit the instructions to the set that --instructions names. True: all processes are to have
 * those that are common to them. */
bool keel_processes_limit(const keel_processes_options *o);

#endif
