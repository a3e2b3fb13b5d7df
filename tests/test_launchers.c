/* What the environment says of launchers, and what keel says of TF_CONFIG. */
#include "keel/launcher.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static const char *const names[] = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "PMIX_RANK",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_ID",
    "SLURM_LOCALID",
};

/* "PMI_RANK=1 PMI_SIZE=3": these, and no other of the names. */
static void set(const char *text)
{
    char copy[512], *rest = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        setenv(word, equals + 1, 1);
    }
}

static void a_launcher_is_known_by_its_environment(void **state)
{
    const struct {
        const char *what, *environment;
        bool found;
        const char *mpi;
        int rank, size, local;
        bool slurm;
    } cases[] = {
        { "nothing", "", false, NULL, 0, 0, 0 },
        { "Open MPI", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1",
          true, "openmpi", 2, 4, 1 },
        { "Open MPI, which also sets PMIx",
          "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=2", true, "openmpi", 2, 4, 0 },
        { "MPICH", "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0", true, "mpich", 0, 2, 0 },
        { "one process", "PMI_RANK=0 PMI_SIZE=1", true, "mpich", 0, 1, 0 },
        { "srun with PMIx",
          "PMIX_RANK=3 SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=3 SLURM_STEP_ID=0 "
          "SLURM_LOCALID=3",
          true, "openmpi", 3, 8, 3, true },
        { "srun with PMI2",
          "PMI_RANK=3 PMI_SIZE=8 SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=3 SLURM_STEP_ID=0 "
          "SLURM_LOCALID=1",
          true, "mpich", 3, 8, 1, true },
        { "mpiexec of MPICH, whose daemons srun has started",
          "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 "
          "SLURM_STEP_ID=0 SLURM_LOCALID=0",
          true, "mpich", 3, 4, 1 },
        { "mpirun of Open MPI, whose daemons srun has started",
          "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3 SLURM_STEP_NUM_TASKS=2 "
          "SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_LOCALID=0",
          true, "openmpi", 3, 4, 0 },
        { "PMIx alone does not tell how many", "PMIX_RANK=3", true, "openmpi", 3, 0, 0 },
        { "srun without any", "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0", true, NULL,
          1, 2, 0, true },
        { "the script of a job is one process", "SLURM_PROCID=0 SLURM_NTASKS=8", false, NULL, 0, 0,
          0 },
        { "an allocation is none", "SLURM_NTASKS=8", false, NULL, 0, 0, 0 },
        { "mpirun inside of a job",
          "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 PMI_RANK=5 PMI_SIZE=6 MPI_LOCALRANKID=0",
          true, "mpich", 5, 6, 0 },
        { "a rank without a size", "OMPI_COMM_WORLD_RANK=2", false, NULL, 0, 0, 0 },
        { "a rank beyond the size", "PMI_RANK=2 PMI_SIZE=2", false, NULL, 0, 0, 0 },
        { "no numbers", "PMI_RANK=x PMI_SIZE=2x", false, NULL, 0, 0, 0 },
        { "below 0", "PMI_RANK=-1 PMI_SIZE=2", false, NULL, 0, 0, 0 },
        { "more than there can be", "PMI_RANK=1 PMI_SIZE=99999999999999999999", false, NULL, 0, 0,
          0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set(cases[i].environment);
        const keel_launch l = keel_launch_find();
        if ((l.name != NULL) != cases[i].found || l.rank != cases[i].rank ||
            l.size != cases[i].size || l.local != cases[i].local || l.slurm != cases[i].slurm ||
            (l.mpi != NULL) != (cases[i].mpi != NULL) ||
            (l.mpi && strcmp(l.mpi, cases[i].mpi) != 0))
            fail_msg("%s: %s, mpi %s, rank %d of %d, local %d", cases[i].what,
                     l.name ? l.name : "none", l.mpi ? l.mpi : "none", l.rank, l.size, l.local);
    }
    set("");
}

static void tf_config_with_several_workers_becomes_a_command(void **state)
{
    const struct {
        const char *what, *text, *want; /* want NULL: not refused */
    } cases[] = {
        { "none", "", NULL },
        { "an empty object", "{}", NULL },
        { "one worker", "{\"cluster\": {\"worker\": [\"a:1\"]}}", NULL },
        { "only parameter servers", "{\"cluster\": {\"ps\": [\"a:1\", \"b:1\"]}}", NULL },
        { "no object", "[[1]]", NULL },
        { "a cluster that is a list", "{\"cluster\": [1]}", NULL },
        { "workers that are an object", "{\"cluster\": {\"worker\": {\"a\": 1}}}", NULL },
        { "two workers", "{\"cluster\": {\"worker\": [\"a.b-c_d:1\", \"10.0.0.2\"]}}",
          "TF_CONFIG names 2 workers, which Keel does not connect; unset it, and start all "
          "processes by "
          "one command: mpirun -n 2 --host a.b-c_d,10.0.0.2 keel fit ..." },
        { "a chief and workers on one host",
          "{\"cluster\": {\"worker\": [\"b:1\", \"b:2\"], \"chief\": [\"a:1\"]}}",
          "mpirun -n 3 --host a,b:2 keel fit" },
        { "a host that a shell would take for something else",
          "{\"cluster\": {\"worker\": [\"$(x):1\", \"b:2\"]}}", "mpirun -n 2 --hostfile FILE" },
        { "a host with a space", "{\"cluster\": {\"worker\": [\"a b:1\", \"b:2\"]}}",
          "--hostfile FILE" },
        { "a number as a host", "{\"cluster\": {\"worker\": [1, \"b:2\"]}}",
          "-n 2 --hostfile FILE" },
        { "too many to type",
          "{\"cluster\": {\"worker\": "
          "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\","
          "\"l\",\"m\",\"n\",\"o\",\"p\",\"q\"]}}",
          "-n 17 --hostfile FILE" },
        { "a name twice", "{\"cluster\": {}, \"cluster\": {}}", "is not JSON" },
        { "cut short", "{\"cluster\": {\"wor", "is not JSON" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[2048] = "";
        setenv("TF_CONFIG", cases[i].text, 1);
        const bool refused = keel_launch_refuses_tensorflow(out, sizeof out, "keel fit ...");
        if (refused != (cases[i].want != NULL) || (refused && !strstr(out, cases[i].want)))
            fail_msg("%s: %s", cases[i].what, refused ? out : "not refused");
    }
    unsetenv("TF_CONFIG");
}

static void a_costly_tf_config_takes_little_time(void **state)
{
    enum { DEEP = 100000, WORKERS = 20000 };
    char out[2048], *deep = malloc(DEEP + 1), *wide = malloc(WORKERS * 12 + 64), *at = wide;
    assert_non_null(deep);
    assert_non_null(wide);
    memset(deep, '[', DEEP);
    deep[DEEP] = 0;
    at += sprintf(at, "{\"cluster\": {\"worker\": [\"a\"");
    for (int i = 0; i < WORKERS; i++) at += sprintf(at, ",\"h%05d:1\"", i);
    sprintf(at, "]}}");
    const clock_t start = clock();
    setenv("TF_CONFIG", deep, 1);
    assert_true(keel_launch_refuses_tensorflow(out, sizeof out, "keel fit ..."));
    assert_non_null(strstr(out, "is not JSON"));
    setenv("TF_CONFIG", wide, 1);
    assert_true(keel_launch_refuses_tensorflow(out, sizeof out, "keel fit ..."));
    assert_non_null(strstr(out, "20001 workers"));
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 2);
    unsetenv("TF_CONFIG");
    free(deep);
    free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launcher_is_known_by_its_environment),
        cmocka_unit_test(tf_config_with_several_workers_becomes_a_command),
        cmocka_unit_test(a_costly_tf_config_takes_little_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
