/* How fast processes of one machine exchange bytes: each copies what it sends into memory that they
 * share, and what the other has sent out of it. */
#ifndef KEEL_SIMULATE_COPIES_H
#define KEEL_SIMULATE_COPIES_H
#include "base/error.h"

/* Bytes that a process exchanges in a second, in and out together, while another does the same.
 * core, other: the operating system's numbers of the two cores; equal: one process copies alone.
 * Takes some 10 ms. */
keel_status keel_copies_measure(double *rate, int core, int other);

#endif
