/* See process_options.h. */
#include "process_options.h"
#include <math.h>
#include <string.h>

static int needs_launcher(const char *option)
{
    return keel_complain(EXIT_USAGE,
                         "%s is for several processes, which mpirun starts; leave it out", option);
}

/* Whether the list of devices names a GPU: "cuda", "cuda:0-3", "cpu:0,cuda:1". */
static bool has_gpu(const char *devices)
{
    return devices && strstr(devices, "cuda");
}

int keel_processes_check(const keel_processes_options *o, const keel_launch *l, const char *command,
                         const char *devices)
{
    char text[2048], typed[64];
    const bool alone = !l->name && !o->mpi;
    if (!isnan(o->timeout) && !(o->timeout > 0 && o->timeout < 1e9))
        return keel_complain(EXIT_USAGE, "--timeout %g: must be above 0", o->timeout);
    if (!isnan(o->timeout) && alone && !has_gpu(devices))
        return keel_complain(EXIT_USAGE, "--timeout is for several processes, which mpirun starts, "
                                         "and for GPUs (--devices cuda); leave it out");
    if (o->apart && alone) return needs_launcher("--apart");
    snprintf(typed, sizeof typed, "keel %s ...", command);
    if (!l->name && keel_launch_refuses_tensorflow(text, sizeof text, typed))
        return keel_complain(EXIT_USAGE, "%s", text);
    return -1;
}

/* KEEL_CPU may have set a lower limit, which stays. */
bool keel_processes_limit(const keel_processes_options *o)
{
    enum { COMMON = 1, NAMES = 2 }; /* of the words of --instructions */
    static const char *const names[] = { "base", "avx2", "avx512", "avx512_bf16", "amx" };
    const int chosen = o->instructions;
    const char *now = keel_instructions();
    int level = 0;
    while (level < 4 && strcmp(names[level], now)) level++;
    if (chosen >= NAMES && chosen - NAMES < level) keel_instructions_limit(names[chosen - NAMES]);
    return chosen == COMMON;
}

_Static_assert(KEEL_COMPRESS_NONE == 0 && KEEL_COMPRESS_BF16 == 1,
               "the order of words in KEEL_COMPRESS_ROW");

int keel_processes_check_compress(int compress, bool reproducible, const char *otherwise)
{
    if (compress && reproducible)
        return keel_complain(EXIT_USAGE, "--compress bf16 and --reproducible: gradients that are "
                                         "rounded on their way depend on the number of processes; "
                                         "choose one of the two");
    if (compress && otherwise)
        return keel_complain(EXIT_USAGE, "--compress is for several processes, %s", otherwise);
    return -1;
}

int keel_processes_check_shards(bool shards, const char *otherwise)
{
    if (shards && otherwise)
        return keel_complain(EXIT_USAGE, "--shard-optimizer is for several processes, %s",
                             otherwise);
    return -1;
}
