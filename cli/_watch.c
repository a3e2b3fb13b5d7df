/* Says that rows do not come, and ends the process where --input-timeout says so. What hangs cannot
 * be stopped, so the model is saved beside it, as by a second Ctrl-C. */
#include "processes.h"
#include "setup.h"
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static void (*save)(void *context, const char *why);
static void *save_context;

static void tell(void *context, const char *line, bool last)
{
    char why[640];
    (void)context;
    if (!last) {
        keel_complain(0, "%s", line);
        return;
    }
    snprintf(why, sizeof why, "%s: --input-timeout", line);
    if (save)
        save(save_context, why);
    else
        keel_complain(EXIT_FAILED, "%s", why);
    keel_processes_abandon();
    _exit(EXIT_FAILED);
}

const keel_input_watch *keel_setup_watch(double timeout)
{
    static keel_input_watch watch;
    watch = (keel_input_watch){ .size = sizeof watch,
                                .limit = isnan(timeout) ? 0 : timeout,
                                .tell = tell };
    return &watch;
}

void keel_setup_warnings(const keel_dataset *d)
{
    char text[1024];
    if (keel_dataset_warnings(d, text, sizeof text)) printf("note     %s\n", text);
}

void keel_setup_watch_rescue(void (*rescue)(void *context, const char *why), void *context)
{
    save = rescue;
    save_context = context;
}
