/* keel devices: lists the names for --devices. A pure query: no context, no device memory, no
 * thread. */
#include "command.h"
#include <stdlib.h>

static int run(const void *options, int n_arg, char **arg)
{
    enum { MOST = 1024 };
    int count = 0;
    char text[KEEL_NUMBER_MAX];
    keel_device_info *info = calloc(MOST, sizeof *info);
    (void)options, (void)n_arg, (void)arg;
    if (!info) return keel_complain(EXIT_FAILED, "out of memory");
    const keel_status s = keel_devices(info, MOST, &count);
    for (int i = 0; s >= 0 && i < count && i < MOST; i++)
        printf("%-8s %s, %s\n", info[i].name, info[i].description,
               info[i].memory ? keel_size_text(text, info[i].memory) : "memory unknown");
    if (s >= 0 && count > MOST) printf("and %d more\n", count - MOST);
    if (s >= 0) printf("computing with %s\n", keel_computes_with());
    free(info);
    return s < 0 ? keel_complain_status(s) : EXIT_OK;
}

const keel_command keel_command_devices = {
    .name = "devices",
    .args = "",
    .summary = "List the devices of this machine",
    .help =
        "Starts and allocates nothing on any device. --devices of fit, evaluate, predict and "
        "plan takes these names: cpu:0-3 is four logical devices of one core each (with fewer "
        "cores, a core runs several), cpu:0+1 one device of two cores, cpu:0,cpu:1 two devices. "
        "cuda:0-1 names NVIDIA GPUs, cuda all of them, and cuda:0x4 four logical devices on one; "
        "cuda:0-1,cpu:0-1 puts cores beside them. "
        "The default is one device per core. The last line names the instructions in use and the "
        "version of oneDNN.",
    .example = "keel devices",
    .run = run,
};
