/* Predicting how fast a model trains on many machines, from measurements on one. The process with
 * the most rows is run here: real steps, by the program that it would have among all others, whose
 * messages are made up. The time that the messages would take follows from a network that is
 * described by a few numbers. */
#ifndef KEEL_SIMULATE_H
#define KEEL_SIMULATE_H
#include <keel/process_group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What connects the processes. A message between two machines is on its way for `latency`, and all
 * bytes that leave a machine, or come to it, share its link. Messages longer than `eager` bytes
 * first ask whether they may come, and so take three latencies. Between processes of one machine,
 * bytes are copied in and out of memory that they share. */
typedef struct keel_network {
    size_t size;                   /* sizeof(keel_network): KEEL_NETWORK */
    double bytes_per_second;       /* of the link of a machine, each way; above 0 */
    double latency;                /* seconds */
    double message;                /* seconds of a process for each message that it sends or gets */
    double eager;                  /* bytes */
    double local_bytes_per_second; /* copied by one process; 0: measured */
    double local_latency;          /* seconds */
    double own_bytes_per_second;   /* to and from other machines, by a process's own time; 0: the
                                      bytes take none */
} keel_network;

#define KEEL_NETWORK                                                                               \
    .size = sizeof(keel_network), .bytes_per_second = 25e9 / 8, .latency = 50e-6, .message = 1e-6, \
    .eager = 65536, .local_latency = 2e-6

/* Read "25Gbit,50us": the rate of a link (bit, Kbit, Mbit, Gbit, Tbit, of 1000 each) and the
 * latency (ns, us, ms, s), then, if given, in any order: message=1us, eager=64K, local=8GB (bytes
 * copied in a second), local-latency=2us, own=5GB (bytes to and from other machines in a second
 * of a process's own time). What is not given is that of KEEL_NETWORK.
 *
 * Returns  KEEL_OK; KEEL_EARG: the text has another form or a number is out of range, and the
 *          message names it; *out is then unchanged
 * Owns     nothing changes hands
 * Threads  any */
keel_status keel_network_parse(keel_network *out, const char *text);

/* Measure what connects the processes of a group, by exchanges as steps make them. Between machines
 * that is the rate, the latency, `eager` and `own`, by the first process of each; inside a machine
 * the rate of copies, with what it takes to write again what others have read, and the latency, by
 * all of its processes. What there is none of, since there is one machine or one process on each,
 * stays as it is in *out, which begins with KEEL_NETWORK. `message` stays, too. All processes call
 * this, and get the same numbers.
 *
 * Returns  KEEL_OK; KEEL_EARG: something is NULL, or there is one process; KEEL_EREMOTE: another
 *          process failed or is silent, and the text names it; KEEL_ENOMEM
 * Owns     the group stays open, and the caller's; *out is written on success only
 * Threads  one of each process
 * Cost     some tenths of a second, and more on slow networks; 16 MiB for as long
 * Source   the lines that benchmarks of MPI fit: latency of short and rate of long messages */
keel_status keel_network_measure(keel_network *out, const keel_process_group *group);

/* One number of machines, predicted. Times are those of a step. */
typedef struct keel_simulated {
    int machines, processes;
    int64_t batch_size;                       /* rows of a step in all processes */
    int64_t rows;                             /* of the process with the most */
    double compute_seconds;                   /* measured: all but exchanges */
    double forward_seconds, backward_seconds; /* of these, in calls of kernels, a worker's mean */
    double update_seconds;        /* merging records, adding up gradients, and the optimizer */
    int exchanges;                /* in which a process waits for others */
    int64_t sent_bytes, messages; /* of one process, to all others together */
    int64_t link_bytes;           /* that leave a machine */
    double exchange_seconds;      /* exposed: not hidden behind compute */
    double step_seconds;          /* both: of nine groups of steps, the median of their means */
    double rows_per_second, efficiency; /* rows_per_second over machines times that of one */
    int64_t memory_bytes;               /* of a process, as planned */
    int64_t measured_steps;
} keel_simulated;

typedef struct keel_simulation {
    int count;
    keel_simulated *point; /* [count] in the order of machines */
    keel_simulated one;    /* one machine, with which the others are compared */
    keel_network network;  /* in use: what was measured is filled in */
    int processes_per_machine;
    int at_once;    /* processes that ran here at the same time, as on one machine */
    char note[256]; /* one line about what could not be measured as it would be; "": nothing */
} keel_simulation;

typedef struct keel_simulate_options {
    size_t size;         /* sizeof(keel_simulate_options): KEEL_SIMULATE_OPTIONS */
    const int *machines; /* [machine_count] each 1 to 1024; borrowed */
    int machine_count;
    int processes_per_machine; /* 0: 1 */
    /* Exactly one of the two is above 0: rows of a step over all processes, which each then has
     * fewer of (strong scaling), or rows of each process (weak scaling). */
    int64_t batch_size, process_batch_size;
    const char *devices; /* of each process, as in keel_strategy_create; NULL: one per core, which
                            the processes of a machine divide among themselves */
    int shards;          /* reproducible steps of so many shards; 0: ordinary ones */
    keel_network network;
    const keel_shape *inputs; /* as in keel_plan_make */
    keel_float32 float32;
    double seconds; /* to measure for each number of machines; 0: 1. At least three steps */
    /* Is told before each measurement; anything but KEEL_OK ends the simulation with it. NULL:
     * nobody asks. */
    keel_status (*progress)(void *context, int machines);
    void *context;
    keel_compress compress; /* how gradients travel: see keel_strategy_compress */
    bool shard_optimizer;   /* see keel_strategy_shard_optimizer */
} keel_simulate_options;

#define KEEL_SIMULATE_OPTIONS .size = sizeof(keel_simulate_options), .network = { KEEL_NETWORK }

/* Predict the steps of a compiled model on the given numbers of machines like this one. Rows are
 * made up, and the model's weights stay as they are. Not predicted: reading data, noise
 * between machines, congestion between links.
 *
 * Returns  KEEL_OK; what `progress` returns; KEEL_EARG: an option, or a network, that makes no
 *          sense, more than 1024 processes, more devices than shards, or compressed gradients of
 *          reproducible steps or of one process, or a sharded optimizer of one; as keel_fit;
 * KEEL_ENUMERIC also if made-up rows are not valid for this model
 * Owns     *out is freed with keel_simulation_free; it is written on success only
 * Threads  one at a time on a model
 * Cost     a compilation and `seconds` for each number of machines; the memory of a fit, and
 *          32 MiB of rows, for each process of a machine, as far as there are cores for them
 * Source   the cost of a message: Culler et al. 1993, LogP; Alexandrov et al. 1995, LogGP */
keel_status keel_simulate(keel_simulation *out, keel_model *m,
                          const keel_simulate_options *options);

/* Free the members; NULL and a zeroed simulation are allowed.
 *
 * Returns  nothing
 * Owns     frees the members
 * Threads  any */
void keel_simulation_free(keel_simulation *s);

#ifdef __cplusplus
}
#endif
#endif
