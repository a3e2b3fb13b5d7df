/* Eager messages. MPI sends a long message only after a rendezvous with its receiver, which takes a
 * call of both processes: between their calls nothing of it moves, so gradients would not travel
 * while backward computes. An eager message needs no such call, because TCP carries it by itself.
 * Its bytes are copied once more, into and out of MPI's memory. */
#ifndef KEEL_MPI_EAGER_H
#define KEEL_MPI_EAGER_H

/* Bytes of the longest piece of a message: with room for MPI's header in 1 MiB, so that it is
 * eager; or what an int can count. */
enum { KEEL_MPI_PIECE_EAGER = (1 << 20) - 4096, KEEL_MPI_PIECE_LONG = 1 << 30 };

/* Before MPI begins in this process: ask it to send up to 1 MiB eagerly, unless the user's
 * environment says something else. Where there is an RDMA device, or one machine, MPI does better
 * by itself, and nothing changes. Returns the longest piece. */
int keel_mpi_eager(void) __attribute__((visibility("hidden")));

#endif
