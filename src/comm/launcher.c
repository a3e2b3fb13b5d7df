/* See keel/launcher.h. A variable that is not the number it should be is as if it were not there.
 */
#include "keel/launcher.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first row whose variables are there, `needs` too and `lacks` not. Open MPI sets those of
 * PMIx, too, and both may run inside a job of Slurm, whose own variables come last. mpiexec of
 * MPICH sets MPI_LOCALRANKID and srun --mpi=pmi2 does not; mpiexec may be inside a job, and then
 * its processes have Slurm's variables of the daemon that started them. Slurm sets SLURM_STEP_ID
 * only for what srun starts, and not for the script of a job, which is one process for the whole
 * job. */
static const struct {
    const char *rank, *size, *local, *needs, *lacks, *mpi, *name;
    bool slurm;
} rows[] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", NULL, NULL,
      "openmpi", "mpirun of Open MPI", false },
    { "PMI_RANK", "PMI_SIZE", "SLURM_LOCALID", "SLURM_STEP_ID", "MPI_LOCALRANKID", "mpich",
      "srun --mpi=pmi2", true },
    { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL, NULL, "mpich", "mpiexec of MPICH", false },
    { "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, NULL, "openmpi",
      "srun --mpi=pmix", true },
    { "PMIX_RANK", NULL, NULL, NULL, NULL, "openmpi", "a launcher with PMIx", false },
    { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID", NULL, NULL, "srun",
      true },
    { "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID", NULL, NULL, "srun", true },
};

/* Below 0: it is not set, or no number that can be a rank or a count of processes. */
static int number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    const long n = strtol(text, &end, 10);
    return *end || n > 1 << 20 ? -1 : (int)n;
}

keel_launch keel_launch_find(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int rank = number(rows[i].rank), size = rows[i].size ? number(rows[i].size) : 0;
        if (rank < 0 || size < 0 || (rows[i].needs && !getenv(rows[i].needs)) ||
            (rows[i].lacks && getenv(rows[i].lacks)))
            continue;
        if (size && rank >= size) continue;
        const int local = rows[i].local ? number(rows[i].local) : 0;
        return (keel_launch){ rows[i].name, rows[i].mpi,           rank,
                              size,         local > 0 ? local : 0, rows[i].slurm };
    }
    return (keel_launch){ 0 };
}

/* ---- TF_CONFIG ------------------------------------------------------------------------------- */

enum { HOSTS = 16, HOST = 64 };

typedef struct host_list {
    int n, all;
    bool told; /* every host can be typed as it is, and there are not too many */
    char name[HOSTS][HOST];
    int slots[HOSTS];
} host_list;

/* "node1:2222" */
static void add_host(host_list *l, const char *address)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const size_t length = address ? strspn(address, plain) : 0;
    int i = 0;
    l->all++;
    if (length == 0 || length >= HOST || (address[length] && address[length] != ':')) {
        l->told = false;
        return;
    }
    while (i < l->n && (strncmp(l->name[i], address, length) || l->name[i][length])) i++;
    if (i == HOSTS) {
        l->told = false;
        return;
    }
    if (i == l->n) {
        snprintf(l->name[i], HOST, "%.*s", (int)length, address);
        l->slots[i] = 0;
        l->n++;
    }
    l->slots[i]++;
}

static void write_hosts(const host_list *l, char *out, size_t size)
{
    size_t used = 0;
    if (!l->told) {
        snprintf(out, size, "--hostfile FILE, which lists them,");
        return;
    }
    used = (size_t)snprintf(out, size, "--host ");
    for (int i = 0; i < l->n && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "", l->name[i]);
        if (l->slots[i] > 1 && used < size)
            used += (size_t)snprintf(out + used, size - used, ":%d", l->slots[i]);
    }
}

bool keel_launch_refuses_tensorflow(char *out, size_t size, const char *command)
{
    static const char *const kinds[] = { "chief", "master", "worker" };
    const char *text = getenv("TF_CONFIG");
    char hosts[HOSTS * (HOST + 8)];
    host_list l = { .told = true };
    json_error_t error;
    if (!text || !*text) return false;
    json_t *config = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!config) {
        snprintf(out, size,
                 "the environment variable TF_CONFIG is not JSON (%s); unset it to train in one "
                 "process",
                 error.text);
        return true;
    }
    const json_t *cluster = json_object_get(config, "cluster");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *list = json_object_get(cluster, kinds[i]);
        for (size_t k = 0; k < json_array_size(list); k++)
            add_host(&l, json_string_value(json_array_get(list, k)));
    }
    if (l.all > 1) {
        write_hosts(&l, hosts, sizeof hosts);
        snprintf(out, size,
                 "TF_CONFIG names %d workers, which Keel does not connect; unset it, and start "
                 "all processes by one command: mpirun -n %d %s %s",
                 l.all, l.all, hosts, command);
    }
    json_decref(config);
    return l.all > 1;
}
