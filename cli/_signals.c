/* See signals.h. The handler only notes a signal and writes a byte to a pipe; a thread reads it. */
#define _GNU_SOURCE /* pipe2 */
#include "signals.h"
#include "follow.h"
#include "processes.h"
#include "progress.h"
#include "voice.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t first, second;
static int pipe_end[2] = { -1, -1 };
static void (*quit)(void *, int);
static void *quit_context;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    static const char text[] =
        "\nkeel: stopping after this step; press Ctrl-C again to quit at once\n";
    const unsigned char byte = (unsigned char)number;
    if (number == SIGPIPE && first) return; /* each write to a closed pipe is one */
    if (number == SIGXCPU && first) return; /* one comes each second */
    if (info->si_code == SI_QUEUE && info->si_value.sival_int == KEEL_FROM_FOLLOWER && first)
        return; /* the launcher told this process, too */
    if (!first) {
        first = number;
        keel_interrupt();
        if (number == SIGINT && keel_processes_first()) keel_voice_cry(text, sizeof text - 1);
        return;
    }
    if (!second) second = number;
    signal(SIGINT, SIG_DFL); /* the third one kills */
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (write(pipe_end[1], &byte, 1) < 0) return; /* the thread has one byte already */
}

static void *watch(void *context)
{
    unsigned char byte;
    (void)context;
    while (read(pipe_end[0], &byte, 1) != 1) continue;
    quit(quit_context, first);
    return NULL;
}

bool keel_signals_catch(void (*call)(void *context, int signal), void *context)
{
    pthread_t thread;
    struct sigaction a = { .sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO }, was;
    if (pipe2(pipe_end, O_CLOEXEC)) return false;
    quit = call;
    quit_context = context;
    if (pthread_create(&thread, NULL, watch, NULL)) return false;
    pthread_detach(thread);
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGPIPE, &a, NULL);
    sigaction(SIGXCPU, &a, NULL);
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &a, NULL);
    return true;
}

int keel_signal_got(void)
{
    return first;
}

bool keel_signal_again(void)
{
    return second;
}

const char *keel_signal_text(int number)
{
    switch (number) {
    case SIGINT:
        return "stopped by Ctrl-C";
    case SIGTERM:
        return "stopped by SIGTERM";
    case SIGHUP:
        return "the terminal was closed (SIGHUP)";
    case SIGPIPE:
        return "standard output was closed (SIGPIPE)";
    case SIGXCPU:
        return "the limit of processor time is reached (SIGXCPU)";
    default:
        return "stopped by a signal";
    }
}
