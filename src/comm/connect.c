/* See keel/launcher.h. The plug-in for the launcher's MPI is loaded when the program runs, so that
 * a libkeel without any MPI is the same library. */
#define _GNU_SOURCE /* dladdr */
#include "base/error.h"
#include "keel/launcher.h"
#include "keel/mpi_open.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where libkeel is: beside it, in a build, or in its folder keel/, where it is installed, are the
 * plug-ins. A plug-in calls libkeel but does not name it (mpi/keel_mpi.c), so the library's names
 * must be for all to see; a program like Python loads libraries for itself alone. */
static void find_library(char folder[PATH_MAX])
{
    static const char within = 0;
    Dl_info library;
    snprintf(folder, PATH_MAX, ".");
    if (!dladdr(&within, &library) || !library.dli_fname) return;
    void *seen = dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    if (seen) dlclose(seen); /* who has loaded it keeps it */
    char path[PATH_MAX];
    if (!realpath(library.dli_fname, path)) return;
    char *slash = strrchr(path, '/');
    if (!slash) return;
    *slash = 0;
    strcpy(folder, path);
}

static bool find_plugin(char out[PATH_MAX], const char *name, char folder[PATH_MAX])
{
    static const char *const below[] = { "/keel", "" };
    find_library(folder);
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const int n = snprintf(out, PATH_MAX, "%s%s/%s", folder, below[i], name);
        if (n < PATH_MAX && !access(out, R_OK)) return true;
    }
    return false;
}

static keel_status fail_missing(const keel_launch *l, const char *name, const char *folder)
{
    const bool mpich = l->mpi && !strcmp(l->mpi, "mpich");
    char who[128] = "";
    if (l->name && l->size)
        snprintf(who, sizeof who, "%s started %d processes, but ", l->name, l->size);
    return keel_fail(KEEL_EIO,
                     "%sthe plug-in that connects processes is missing: no %s in %s/keel; install "
                     "%s and build Keel again",
                     who, name, folder,
                     mpich ? "libmpich-dev and mpich" : "libopenmpi-dev and openmpi-bin");
}

keel_status keel_launch_connect(keel_process_group *out, const keel_launch *l, bool asked)
{
    char name[64], path[PATH_MAX], folder[PATH_MAX], text[1024], error[512] = "";
    keel_mpi_opener *open_it = NULL;
    if (!l->mpi && l->name && !asked)
        return keel_fail(KEEL_EARG,
                         "%s started %d processes without connecting them; use srun --mpi=pmix "
                         "(Open MPI) or --mpi=pmi2 (MPICH), whichever srun --mpi=list shows, or "
                         "mpirun",
                         l->name, l->size);
    snprintf(name, sizeof name, "libkeel_mpi%s%s.so", l->mpi ? "_" : "", l->mpi ? l->mpi : "");
    if (!find_plugin(path, name, folder)) return fail_missing(l, name, folder);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* see keel/mpi_open.h */
    if (!plugin) return keel_fail(KEEL_EIO, "%s", keel_printable(text, sizeof text, dlerror()));
    *(void **)&open_it = dlsym(plugin, KEEL_MPI_OPEN);
    if (!open_it) return keel_fail(KEEL_EIO, "%s has no function " KEEL_MPI_OPEN, path);
    keel_process_group g = { 0 };
    if (open_it(&g, KEEL_MPI_ABI, error, sizeof error) < 0)
        return keel_fail(KEEL_EREMOTE, "%s: %s", path, error);
    if (l->size && (g.count != l->size || g.rank != l->rank)) {
        const int count = g.count;
        g.close(g.context, true);
        return keel_fail(KEEL_EREMOTE,
                         "%s started %d processes, but MPI connects %d: it is not the launcher of "
                         "this MPI (%s)",
                         l->name, l->size, count, name);
    }
    *out = g;
    return KEEL_OK;
}
