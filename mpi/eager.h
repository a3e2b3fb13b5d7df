/* Messages that are sent without being asked for. MPI sends a long message once its receiver has
 * asked for it, which takes a call of both processes: between two calls nothing of it moves. So
 * gradients would not travel while backward computes. Bytes of a message that is not asked for move
 * by TCP alone. They are copied once more, into and out of memory of MPI. */
#ifndef KEEL_MPI_EAGER_H
#define KEEL_MPI_EAGER_H

/* The longest piece of a message that is worth sending. */
enum { KEEL_MPI_PIECE_EAGER = (1 << 20) - 4096, KEEL_MPI_PIECE_LONG = 1 << 30 };

/* Before MPI begins in this process: ask it to send messages of 1 MiB without being asked for them,
 * unless the user's environment says something else. Returns the longest piece. Where the network
 * is not TCP, or there is one machine, MPI does better by itself, and nothing changes. */
int keel_mpi_eager(void) __attribute__((visibility("hidden")));

#endif
