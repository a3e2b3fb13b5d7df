/* keel network: measures what connects the processes that a launcher started, and prints it as
 * --network of keel simulate takes it. */
#include "processes.h"
#include "setup.h"
#include <keel/launcher.h>
#include <keel/simulate.h>

typedef struct options {
    keel_processes_options processes; /* all apart, and with their own instructions */
} options;

/* "9.41Gbit" */
static void print_rate(double bytes_per_second)
{
    static const struct {
        double bits;
        const char *name;
    } unit[] = { { 1e9, "Gbit" }, { 1e6, "Mbit" }, { 1e3, "Kbit" }, { 0, "bit" } };
    const double bits = 8 * bytes_per_second;
    int i = 0;
    while (bits < unit[i].bits) i++;
    printf("%.3f%s", bits / (i < 3 ? unit[i].bits : 1), unit[i].name);
}

static void print(const keel_network *n, int machines, int processes)
{
    print_rate(n->bytes_per_second);
    printf(",%.3fus", 1e6 * n->latency);
    if (machines > 1)
        printf(",eager=%.0fK,own=%.3fGB", n->eager / 1024, 1e-9 * n->own_bytes_per_second);
    if (processes > machines)
        printf(",local=%.3fGB,local-latency=%.3fus", 1e-9 * n->local_bytes_per_second,
               1e6 * n->local_latency);
    putchar('\n');
    if (machines == 1 && keel_processes_first())
        keel_complain(EXIT_OK, "all processes are on one machine, so 25Gbit,50us between machines "
                               "is an example and not measured");
}

static int run(const void *given, int n_arg, char **arg)
{
    const options *o = given;
    keel_processes_options each = o->processes;
    keel_network n = { KEEL_NETWORK };
    (void)n_arg, (void)arg;
    each.apart = each.mpi || keel_launch_find().name;
    int code = keel_processes_begin(&each, NULL);
    if (code >= 0) return keel_processes_end(NULL, code);
    if (!keel_processes_several())
        return keel_processes_end(
            NULL, keel_complain(EXIT_USAGE, "there is one process, so there is nothing to measure; "
                                            "start several, two on each of two machines for "
                                            "example: mpirun -n 4 keel network"));
    const keel_process_group *g = keel_processes_group();
    const int machines = keel_processes_machines(), processes = g->count;
    const keel_status s = keel_network_measure(&n, g);
    if (s < 0)
        code = keel_complain_status(s);
    else
        print(&n, machines, processes);
    return keel_processes_end(NULL, s < 0 ? code : EXIT_OK);
}

static const keel_option table[] = {
    KEEL_MPI_ROW(options, processes),
    KEEL_TIMEOUT_ROW(options, processes),
    { 0 },
};

const keel_command keel_command_network = {
    .name = "network",
    .args = "",
    .summary = "Measure what connects processes, for keel simulate",
    .help =
        "Started by a launcher, it times exchanges between the processes as steps of keel fit make "
        "them, and prints one line, which --network of keel simulate takes: between machines the "
        "rate and the latency of a link, by one process of each; between processes of a machine "
        "the rate of copies and the latency, by all of them together. These are the numbers that "
        "Keel reaches with this MPI, so run it while nothing else does, with as many processes on "
        "a machine as the fit will have there.",
    .example = "mpirun -n 2 keel network",
    .options = table,
    .size = sizeof(options),
    .processes = KEEL_TOGETHER,
    .run = run,
};
