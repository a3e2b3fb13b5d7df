/* Processes of one machine that act as one. Threads share memory, and processes would have to copy,
 * so where a launcher started several processes on a machine, the first of them trains on the
 * devices of all, and the others follow: they wait until it has ended. Between machines there is
 * then one process each.
 *
 *     keel_machines_join(&m, &group, "cpu", alike);
 *     if (keel_machines_together(m)) {
 *         group = keel_machines_group(m);
 *         keel_strategy_create_group(&s, keel_machines_devices(m), &group);
 *         ...
 *         keel_strategy_destroy(s);
 *     } else
 *         while (keel_machines_test(m, &code) == 0) sleep a little;
 *     keel_machines_end(m, code, false); */
#ifndef KEEL_MACHINES_H
#define KEEL_MACHINES_H
#include <keel/process_group.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_machines keel_machines;

/* Find out who is on whose machine. All processes of the group call this, each with the devices
 * that it would open. Two act as one if they are on one machine, gave the same `alike`, which is to
 * be a fingerprint of all that they were started with, and may use each other's cores; this process
 * may then use those of all that follow it. Processes may take ten timeouts of the group to come
 * here, since some begin later than others. If any of that is not so, each stays by itself.
 *
 * Returns  KEEL_OK; KEEL_ENOMEM; KEEL_EREMOTE: another process failed or is silent
 * Owns     the group, also after a failure; the caller ends *out by keel_machines_end
 * Threads  one; call it before threads are started that shall use the cores of all
 * Cost     two exchanges */
keel_status keel_machines_join(keel_machines **out, const keel_process_group *group,
                               const char *devices, uint64_t alike);

/* How many act as one.
 *
 * Returns  the number of processes that act as this one, with itself; 0: it follows another
 * Owns     nothing changes hands
 * Threads  any */
int keel_machines_together(const keel_machines *m);

/* For a process that does not follow: what to give keel_strategy_create_group, which has no member
 * but those that do not follow. That may be one.
 *
 * Returns  the devices of all that act as this process; the group
 * Owns     m keeps both; end m after the strategy
 * Threads  one */
const char *keel_machines_devices(const keel_machines *m);
keel_process_group keel_machines_group(keel_machines *m);

/* For one that follows: how the process stands that it follows. Call it some times a second.
 *
 * Returns  1: it has ended, with *code; 0: not yet; -1: it is gone, or was stopped for the timeout
 *          of the group, and keel_error names it
 * Owns     nothing changes hands
 * Threads  one */
int keel_machines_test(keel_machines *m, int *code);

/* For one that follows: how many others with lower ranks follow the same process. The one with 0
 * may speak for all.
 *
 * Returns  the number
 * Owns     nothing changes hands
 * Threads  any */
int keel_machines_place(const keel_machines *m);

/* The process that this one follows, for signals.
 *
 * Returns  the operating system's number of it
 * Owns     nothing changes hands
 * Threads  any */
int64_t keel_machines_followed(const keel_machines *m);

/* The end: those that follow this process learn its code, and the group is closed. failed: some
 * process may not answer any more. NULL is allowed.
 *
 * Returns  nothing; who cannot be told sees that this process ends
 * Owns     m is freed
 * Threads  one */
void keel_machines_end(keel_machines *m, int code, bool failed);

#ifdef __cplusplus
}
#endif
#endif
