/* Says that rows do not come, and ends the process where --input-timeout says so, or when a signal
 * has come from a system that would kill it soon. What hangs cannot be stopped, so the model is
 * saved beside it, as by a second Ctrl-C. */
#include "processes.h"
#include "setup.h"
#include "signals.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void (*save)(void *context, const char *why);
static void *save_context;

/* A user who has pressed Ctrl-C can press it again. */
static bool hurries(void *context)
{
    (void)context;
    return keel_signal_got() && keel_signal_got() != SIGINT;
}

static void tell(void *context, const char *line, bool last)
{
    const int code = hurries(context) ? 128 + keel_signal_got() : EXIT_FAILED;
    char why[640];
    if (!last) {
        keel_complain(0, "%s", line);
        return;
    }
    if (code == EXIT_FAILED)
        snprintf(why, sizeof why, "%s: --input-timeout", line);
    else
        snprintf(why, sizeof why, "%s, and there were %s", keel_signal_text(keel_signal_got()),
                 line);
    if (save)
        save(save_context, why);
    else
        keel_complain(code, "%s", why);
    keel_processes_abandon();
    _exit(code);
}

const keel_input_watch *keel_setup_watch(double timeout)
{
    static keel_input_watch watch;
    watch = (keel_input_watch){ .size = sizeof watch,
                                .limit = isnan(timeout) ? 0 : timeout,
                                .tell = tell,
                                .hurries = hurries };
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
