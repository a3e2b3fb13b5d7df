/* What a plug-in of mpi/ promises to keel/process_group.h, tried by several processes:
 * tests/test_mpi.sh and test_network.sh start this program under mpirun. exchange PLUGIN CASE; 0:
 * all held. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <keel/mpi_open.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NUMBERS = 6, ROUNDS = 16, LARGEST = 3 << 20, PROCESSES = 16 };

static keel_process_group group;
static char error[512];

static void check(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "process %d: %s does not hold; %s\n", group.rank, what, error);
    _exit(1);
}

/* ---- memory that the plug-in asks for -------------------------------------------------------- */

static atomic_int plugin_calls;
static bool memory_ends;
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_malloc(size_t size);

static bool by_plugin(void *caller)
{
    Dl_info i;
    return dladdr(caller, &i) && i.dli_fname && strstr(i.dli_fname, "libkeel_mpi");
}

void *calloc(size_t n, size_t size)
{
    if (!by_plugin(__builtin_return_address(0))) return __libc_calloc(n, size);
    plugin_calls++;
    return memory_ends ? NULL : __libc_calloc(n, size);
}

void *malloc(size_t size)
{
    if (by_plugin(__builtin_return_address(0))) plugin_calls++;
    return __libc_malloc(size);
}

/* Processes share cores: who waits lets others run. */
static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44d;
    return x ^ x >> 33;
}

/* The bytes from p to q in round r of exchange k: nothing, a few, or more than a MiB. All processes
 * know the sizes of all. */
static size_t bytes_of(int p, int q, int k, int r)
{
    const uint64_t x =
        mixed((uint64_t)p << 48 | (uint64_t)q << 32 | (uint64_t)k << 16 | (uint64_t)r);
    switch (x % 8) {
    case 0:
    case 1:
        return 0;
    case 2:
        return r % 8 == 0 ? (size_t)(1 << 20) + x / 8 % (LARGEST - (1 << 20)) : 8;
    case 3:
        return x / 8 % 65536;
    default:
        return x / 8 % 3000;
    }
}

static unsigned char byte_of(int p, int q, int k, int r, size_t i)
{
    return (unsigned char)((uint64_t)i * 31 + (uint64_t)(p * 7 + q * 5 + k * 3 + r) + i / 251);
}

typedef struct lane {
    void *send[PROCESSES], *receive[PROCESSES];
    size_t send_bytes[PROCESSES], receive_bytes[PROCESSES];
    int with[PROCESSES], n_with; /* those with bytes */
    int round;
    bool runs;
} lane;

static lane lanes[NUMBERS];

static void begin(int k)
{
    lane *l = &lanes[k];
    const int me = group.rank;
    l->n_with = 0;
    for (int q = 0; q < group.count; q++) {
        l->send_bytes[q] = q == me ? 99 : bytes_of(me, q, k, l->round);
        l->receive_bytes[q] = q == me ? 77 : bytes_of(q, me, k, l->round);
        if (q == me) continue; /* its entry is not looked at */
        if (l->send_bytes[q] + l->receive_bytes[q]) l->with[l->n_with++] = q;
        for (size_t i = 0; i < l->send_bytes[q]; i++)
            ((unsigned char *)l->send[q])[i] = byte_of(me, q, k, l->round, i);
        memset(l->receive[q], 0xee, l->receive_bytes[q] + 1);
    }
    const keel_exchange e = {
        (const void *const *)l->send,  l->send_bytes, l->receive, l->receive_bytes,
        l->round % 2 ? l->with : NULL, l->n_with
    };
    check(group.start(group.context, k, &e, error, sizeof error) == 0, "an exchange starts");
    l->runs = true;
}

static void compare(int k)
{
    lane *l = &lanes[k];
    const int me = group.rank;
    for (int q = 0; q < group.count; q++) {
        if (q == me) continue;
        const unsigned char *got = l->receive[q];
        for (size_t i = 0; i < l->receive_bytes[q]; i++)
            check(got[i] == byte_of(q, me, k, l->round, i), "what was sent is what comes");
        check(got[l->receive_bytes[q]] == 0xee, "nothing is written behind a message");
    }
    check(group.awaited(group.context, k) == -1, "of a complete exchange nobody is awaited");
    l->runs = false;
    l->round++;
}

/* Several exchanges at once, each process starting and testing them in an order of its own. */
static void exchanges_in_any_order(void)
{
    int left = NUMBERS * ROUNDS;
    for (int k = 0; k < NUMBERS; k++)
        for (int q = 0; q < group.count; q++) {
            lanes[k].send[q] = malloc(LARGEST + 1);
            lanes[k].receive[q] = malloc(LARGEST + 1);
        }
    const int before = plugin_calls;
    for (uint64_t turn = 1; left > 0; turn++) {
        const int k = (int)(mixed(turn << 8 | (uint64_t)group.rank) % NUMBERS);
        if (!lanes[k].runs) {
            if (lanes[k].round < ROUNDS) begin(k);
            continue;
        }
        const int got = group.test(group.context, k, error, sizeof error);
        check(got >= 0, "an exchange moves on");
        if (!got) {
            nap();
        } else {
            compare(k);
            left--;
        }
    }
    check(plugin_calls == before, "nothing is allocated in a step");
    for (int k = 0; k < NUMBERS; k++)
        for (int q = 0; q < group.count; q++) {
            free(lanes[k].send[q]);
            free(lanes[k].receive[q]);
        }
    group.close(group.context, false);
}

/* ---- a process that does not answer ---------------------------------------------------------- */

static char words[PROCESSES][8], heard[PROCESSES][8];

static void say_to_all(keel_exchange *e)
{
    static const void *send[PROCESSES];
    static void *receive[PROCESSES];
    static size_t bytes[PROCESSES];
    for (int q = 0; q < group.count; q++) {
        send[q] = words[q];
        receive[q] = heard[q];
        bytes[q] = sizeof words[q];
    }
    *e = (keel_exchange){ send, bytes, receive, bytes };
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int finish(int number, double seconds)
{
    const double end = now() + seconds;
    int got = 0;
    while ((got = group.test(group.context, number, error, sizeof error)) == 0 && now() < end)
        nap();
    return got;
}

/* The last process starts no second exchange and ends without a word. The launcher ends the others
 * when it sees that, so the one that ends does so only when they have said what they know. */
static void the_silent_process_is_named(void)
{
    keel_exchange e;
    const int last = group.count - 1;
    say_to_all(&e);
    check(group.start(group.context, 5, &e, error, sizeof error) == 0, "an exchange starts");
    check(finish(5, 20) == 1, "an exchange of all is complete");
    if (group.rank == last) {
        usleep(1200000);
        group.close(group.context, true);
        _exit(3);
    }
    check(group.start(group.context, 5, &e, error, sizeof error) == 0, "an exchange starts again");
    check(group.start(group.context, 6, &e, error, sizeof error) == 0, "as does another");
    check(group.start(group.context, 6, &e, error, sizeof error) == -1, "but not twice");
    check(strstr(error, "exchange 6 is started before it has ended") != NULL, "which is explained");
    check(finish(5, 0.3) == 0, "it is not complete");
    check(group.awaited(group.context, 5) == last, "the silent process is awaited");
    check(finish(6, 0.3) == 0 && group.awaited(group.context, 6) == last, "also in the other");
    check(group.awaited(group.context, 7) == -1, "nobody in one that was not started");
    group.close(group.context, true); /* waits for nobody */
    printf("process %d awaits %d\n", group.rank, last);
    fflush(stdout);
    sleep(10); /* the launcher ends this */
    _exit(3);
}

/* What is expected and what is sent differ: an error and no crash. */
static void a_message_of_another_size_is_an_error(void)
{
    keel_exchange e;
    char large[PROCESSES][64] = { 0 };
    size_t bytes[PROCESSES];
    const void *send[PROCESSES];
    say_to_all(&e);
    for (int q = 0; q < group.count; q++) {
        send[q] = large[q];
        bytes[q] = group.rank == 0 ? 4 : sizeof words[q];
    }
    e.send = send;
    e.send_bytes = bytes;
    check(group.start(group.context, 0, &e, error, sizeof error) == 0, "an exchange starts");
    const int got = finish(0, 5);
    check(group.rank == 0 ? got == 1 : got == -1, "only who gets too little fails");
    check(group.rank == 0 || strstr(error, "process 0 sent 4 bytes where 8 were expected") != NULL,
          "and says so");
    say_to_all(&e);
    for (int q = 0; q < group.count; q++) bytes[q] = group.rank == 0 ? 64 : sizeof words[q];
    e.send = send;
    e.send_bytes = bytes;
    check(group.start(group.context, 1, &e, error, sizeof error) == 0, "an exchange starts");
    *error = 0;
    const int more = finish(1, 5);
    check(group.rank == 0 ? more == 1 : more == -1, "only who gets too much fails");
    check(group.rank == 0 || strstr(error, "receiving from process 0: ") != NULL, "and says so");
    group.close(group.context, false);
}

/* Process 0 sends more than Open MPI sends by TCP unasked, 64 KiB, and is done while process 1
 * neither receives nor looks. Between machines alone. */
static void a_long_message_moves_while_its_receiver_computes(void)
{
    enum { BYTES = 100000 };
    static char bytes[BYTES];
    const int other = 1 - group.rank;
    const void *send[2] = { bytes, bytes };
    void *receive[2] = { bytes, bytes };
    size_t out[2] = { 0 }, in[2] = { 0 };
    keel_exchange e;
    check(group.count == 2, "there are two processes");
    say_to_all(&e);
    check(group.start(group.context, 1, &e, error, sizeof error) == 0, "an exchange starts");
    check(finish(1, 20) == 1, "the processes are connected");
    (group.rank == 0 ? out : in)[other] = BYTES;
    const double begin = now();
    check(group.start(group.context, 2, &(keel_exchange){ send, out, receive, in }, error,
                      sizeof error) == 0,
          "a long message starts");
    if (group.rank == 1) sleep(2);
    check(finish(2, 5) == 1, "it comes");
    check(group.rank == 1 || now() - begin < 1, "it is sent before it is received");
    group.close(group.context, false);
}

/* ---- the beginning --------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        { "exchanges_in_any_order", exchanges_in_any_order },
        { "the_silent_process_is_named", the_silent_process_is_named },
        { "a_message_of_another_size_is_an_error", a_message_of_another_size_is_an_error },
        { "a_long_message_moves_while_its_receiver_computes",
          a_long_message_moves_while_its_receiver_computes },
    };
    keel_mpi_opener *open_group = NULL;
    if (argc != 3) return 2;
    void *plugin = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL);
    if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 2;
    *(void **)&open_group = dlsym(plugin, KEEL_MPI_OPEN);
    check(open_group != NULL, "the plug-in has its function");
    check(open_group(&group, KEEL_MPI_ABI + 1, error, sizeof error) == -1,
          "another Keel is refused");
    check(strstr(error, "another version of Keel") != NULL, "and told why");
    *error = 0;
    if (!strcmp(argv[2], "memory_ends")) { /* of one process, and all of them end well */
        const char *rank = getenv("OMPI_COMM_WORLD_RANK");
        if (!rank) rank = getenv("PMI_RANK");
        memory_ends = rank && atoi(rank) == 1;
        check(open_group(&group, KEEL_MPI_ABI, error, sizeof error) == -1, "no group is made");
        check(strstr(error, memory_ends ? "out of memory" : "another process is out of memory") !=
                  NULL,
              "every process says why");
        memory_ends = false;
        const int before = plugin_calls;
        check(open_group(&group, KEEL_MPI_ABI, error, sizeof error) == 0, "with memory it is made");
        check(plugin_calls == before + 1, "by one allocation");
        group.close(group.context, false);
        return 0;
    }
    check(open_group(&group, KEEL_MPI_ABI, error, sizeof error) == 0, "a group is made");
    check(group.size == sizeof group && group.count <= PROCESSES, "it is of this version");
    char here[256] = "";
    gethostname(here, sizeof here - 1);
    for (int q = 0; q < group.count; q++)
        check(group.host(group.context, q) != NULL, "the machine of each process is known");
    check(!strcmp(group.host(group.context, group.rank), here), "by its name");
    check(!group.host(group.context, group.count) && !group.host(group.context, -1),
          "others have none");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[2], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "there is no case %s\n", argv[2]);
    return 2;
}
