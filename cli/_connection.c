/* See connection.h. The plug-in for the launcher's MPI is loaded when the program runs, so that a
 * keel without any MPI is the same program. */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "command.h"
#include "connection.h"
#include <dlfcn.h>
#include <keel/mpi_open.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool folder_of(char out[PATH_MAX], const char *file)
{
    char path[PATH_MAX];
    if (!file || !realpath(file, path)) return false;
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = 0;
    strcpy(out, path);
    return true;
}

/* Beside libkeel.so, where a build has it, or in its folder keel/, where it is installed. */
static bool find_plugin(char out[PATH_MAX], const char *name, char folder[PATH_MAX])
{
    static const char *const below[] = { "/keel", "" };
    Dl_info library;
    void *in_library = dlsym(RTLD_DEFAULT, "keel_fit");
    if (!in_library || !dladdr(in_library, &library) || !folder_of(folder, library.dli_fname))
        snprintf(folder, PATH_MAX, ".");
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const int n = snprintf(out, PATH_MAX, "%s%s/%s", folder, below[i], name);
        if (n < PATH_MAX && !access(out, R_OK)) return true;
    }
    return false;
}

static int complain_missing(const keel_launch *l, const char *name, const char *folder)
{
    const bool mpich = l->mpi && !strcmp(l->mpi, "mpich");
    char who[128] = "";
    if (l->name && l->size)
        snprintf(who, sizeof who, "%s started %d processes, but ", l->name, l->size);
    return keel_complain(
        EXIT_FAILED,
        "%sthe plug-in that connects processes is missing: no %s in %s/keel; install "
        "%s and build Keel again",
        who, name, folder, mpich ? "libmpich-dev and mpich" : "libopenmpi-dev and openmpi-bin");
}

/* srun tells all of its processes apart, so one of them says it for all. */
static int complain_unconnected(const keel_launch *l)
{
    keel_complain(EXIT_USAGE,
                  "%s started %d processes without connecting them; use srun --mpi=pmix (Open MPI) "
                  "or --mpi=pmi2 (MPICH), whichever srun --mpi=list shows, or mpirun",
                  l->name, l->size);
    if (l->rank > 0) keel_complaints_drop();
    return EXIT_USAGE;
}

int keel_connect(keel_process_group *out, const keel_launch *l, bool asked)
{
    char name[64], path[PATH_MAX], folder[PATH_MAX], text[1024], error[512] = "";
    keel_mpi_opener *open_it = NULL;
    if (!l->mpi && l->name && !asked) return complain_unconnected(l);
    snprintf(name, sizeof name, "libkeel_mpi%s%s.so", l->mpi ? "_" : "", l->mpi ? l->mpi : "");
    if (!find_plugin(path, name, folder)) return complain_missing(l, name, folder);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* see keel/mpi_open.h */
    if (!plugin)
        return keel_complain(EXIT_FAILED, "%s", keel_printable(text, sizeof text, dlerror()));
    *(void **)&open_it = dlsym(plugin, KEEL_MPI_OPEN);
    if (!open_it) return keel_complain(EXIT_FAILED, "%s has no function " KEEL_MPI_OPEN, path);
    keel_process_group g = { 0 };
    if (open_it(&g, KEEL_MPI_ABI, error, sizeof error) < 0)
        return keel_complain(EXIT_FAILED, "%s: %s", path, error);
    if (l->size && (g.count != l->size || g.rank != l->rank)) {
        const int count = g.count;
        g.close(g.context, true);
        return keel_complain(
            EXIT_FAILED,
            "%s started %d processes, but MPI connects %d: it is not the launcher of this "
            "MPI (%s)",
            l->name, l->size, count, name);
    }
    *out = g;
    return -1;
}
