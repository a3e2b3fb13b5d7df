/* A wire between two network namespaces, for tests/network.sh: it has a TUN device in each, and
 * what comes out of one goes into the other after a delay, unless it is lost. Some kernels have no
 * netem; this needs only TUN. Which packets are lost follows from their numbers and the seed.
 *
 *     forwarder PID NAME PID NAME [DELAY_US [LOSS [SEED]]]
 *
 * A device called NAME is made in the network namespace of each process PID. LOSS is a share, such
 * as 0.01. It prints "ready" when both are there. SIGUSR1 cuts the wire, SIGUSR2 mends it, and
 * SIGTERM ends it: then it prints for each direction "packets bytes lost full", where lost counts
 * also those of a wire that was cut, and full those that found no room here. */
#define _GNU_SOURCE /* setns, ppoll */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 4096, SLOT = 65536, BATCH = 64 };

/* Packets on their way in one direction: all wait equally long, so they leave as they came. */
typedef struct way {
    int from, to;
    uint64_t seen, packets, bytes, lost, full;
    size_t first, n;
    struct packet {
        int64_t due; /* ns */
        size_t n_bytes;
    } packet[SLOTS];
    unsigned char (*data)[SLOT]; /* [SLOTS] */
} way;

static way ways[2];
static volatile sig_atomic_t cut, ended;

static void on_signal(int number)
{
    if (number == SIGTERM)
        ended = 1;
    else
        cut = number == SIGUSR1;
}

static int refuse(const char *what)
{
    fprintf(stderr, "forwarder: %s: %s\n", what, strerror(errno));
    return -1;
}

/* The device in the namespace of a process; this one returns to its own. */
static int open_device(const char *pid, const char *name)
{
    char path[64];
    struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    const int there = open(path, O_RDONLY | O_CLOEXEC);
    if (home < 0 || there < 0 || setns(there, CLONE_NEWNET)) return refuse(path);
    const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) return refuse("/dev/net/tun");
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (ioctl(device, TUNSETIFF, &r)) return refuse(name);
    if (setns(home, CLONE_NEWNET)) return refuse("the namespace of this process");
    close(home);
    close(there);
    return device;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A number of [0, 1) for each packet of each direction. */
static double chance(uint64_t seed, int direction, uint64_t packet)
{
    uint64_t x =
        (seed * 2 + (uint64_t)direction) * 0xd1342543de82ef95u + packet * 0x2545f4914f6cdd1du;
    for (int i = 0; i < 3; i++) {
        x ^= x >> 29;
        x *= 0xaef17502108ef2d9u;
    }
    return (double)(x >> 11) * 0x1p-53;
}

static void take(way *w, int64_t delay, double loss, uint64_t seed)
{
    static unsigned char dropped[SLOT];
    for (int i = 0; i < BATCH; i++) {
        const bool full = w->n == SLOTS;
        const size_t slot = (w->first + w->n) % SLOTS;
        const ssize_t n = read(w->from, full ? dropped : w->data[slot], SLOT);
        if (n <= 0) return;
        if (cut || chance(seed, (int)(w - ways), w->seen++) < loss) {
            w->lost++;
        } else if (full) {
            w->full++;
        } else {
            w->packet[slot] = (struct packet){ now() + delay, (size_t)n };
            w->n++;
        }
    }
}

static void give(way *w)
{
    while (w->n && w->packet[w->first].due <= now()) {
        const struct packet *p = &w->packet[w->first];
        if (cut) {
            w->lost++;
        } else if (write(w->to, w->data[w->first], p->n_bytes) == (ssize_t)p->n_bytes) {
            w->packets++;
            w->bytes += p->n_bytes;
        } else {
            w->full++;
        }
        w->first = (w->first + 1) % SLOTS;
        w->n--;
    }
}

/* Until a packet comes, or one is due, or a signal. */
static void wait_for_packets(const sigset_t *open)
{
    struct pollfd p[2] = { { ways[0].from, POLLIN, 0 }, { ways[1].from, POLLIN, 0 } };
    int64_t due = INT64_MAX;
    for (int k = 0; k < 2; k++)
        if (ways[k].n && ways[k].packet[ways[k].first].due < due)
            due = ways[k].packet[ways[k].first].due;
    int64_t left = due == INT64_MAX ? 0 : due - now();
    if (left < 0) left = 0;
    const struct timespec t = { left / 1000000000, left % 1000000000 };
    ppoll(p, 2, due == INT64_MAX ? NULL : &t, open);
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 8) return 2;
    const int64_t delay = argc > 5 ? (int64_t)(1000 * strtod(argv[5], NULL)) : 0;
    const double loss = argc > 6 ? strtod(argv[6], NULL) : 0;
    const uint64_t seed = argc > 7 ? strtoull(argv[7], NULL, 10) : 1;
    static const int caught[] = { SIGUSR1, SIGUSR2, SIGTERM };
    sigset_t blocked, open;
    sigemptyset(&blocked);
    for (int i = 0; i < 3; i++) {
        sigaddset(&blocked, caught[i]);
        sigaction(caught[i], &(struct sigaction){ .sa_handler = on_signal }, NULL);
    }
    sigprocmask(SIG_BLOCK, &blocked, &open); /* they come while it waits, and only then */
    prctl(PR_SET_TIMERSLACK, 1);             /* ns; else a delay is 50 us longer */
    const int a = open_device(argv[1], argv[2]), b = a < 0 ? -1 : open_device(argv[3], argv[4]);
    if (a < 0 || b < 0) return 1;
    for (int k = 0; k < 2; k++) {
        ways[k].from = k ? b : a;
        ways[k].to = k ? a : b;
        ways[k].data = malloc((size_t)SLOTS * SLOT); /* touched only as far as it is used */
        if (!ways[k].data) return refuse("packets");
    }
    printf("ready\n");
    fflush(stdout);
    while (!ended) {
        wait_for_packets(&open);
        for (int k = 0; k < 2; k++) {
            take(&ways[k], delay, loss, seed);
            give(&ways[k]);
        }
    }
    for (int k = 0; k < 2; k++)
        printf("%llu %llu %llu %llu\n", (unsigned long long)ways[k].packets,
               (unsigned long long)ways[k].bytes, (unsigned long long)ways[k].lost,
               (unsigned long long)ways[k].full);
    return 0;
}
