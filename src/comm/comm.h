/* Exchanges between the processes of a group: started, waited for with patience, and given up after
 * a time, with the name of who is silent. All calls are made by one thread of a process. What
 * starts under one number starts in the same order in every process, and whatever is awaited is
 * started everywhere in the end. Nothing is allocated after keel_comm_create. */
#ifndef KEEL_COMM_COMM_H
#define KEEL_COMM_COMM_H
#include "base/error.h"
#include "keel/process_group.h"
#include <stdint.h>

enum { KEEL_BUCKET_LEAST = 64 << 10, KEEL_BUCKET_MOST = 16 << 20 }; /* of bucket_bytes */

/* Numbers of exchanges. They come in any order: only those of one number follow each other. */
enum {
    KEEL_EXCHANGE_ALONE,   /* of keel_comm_exchange, which waits for its end */
    KEEL_EXCHANGE_BUCKETS, /* and those behind it: graph/buckets_run.c */
    KEEL_EXCHANGE_RECORDS = KEEL_EXCHANGES_MAX - 4, /* graph/rounds.c */
    KEEL_EXCHANGE_PRESENT,                          /* who is still there, when one is silent */
    KEEL_EXCHANGE_FOLLOW /* processes of a machine that act as one: train/machines.c */
};

typedef struct keel_comm {
    keel_process_group group;
    double timeout;       /* seconds */
    int64_t bucket_bytes; /* the least of an exchange of gradients: see keel_comm_measure */
    bool lost;            /* some process did not answer: every later exchange fails at once */
    int lost_rank;        /* who was awaited then; -1: it cannot be said */
    bool passing;         /* it is tested by somebody who does not wait */
    bool (*meanwhile)(void *context); /* what else moves on while one exchange is waited for;
                                         true: something has. NULL: nothing */
    void *meanwhile_context;
    bool told;          /* all processes know that one of them failed */
    keel_failure first; /* the cause of `lost` */
    const void **send;  /* [count], as the next three */
    void **receive;
    size_t *send_bytes, *receive_bytes;
    const void **call; /* [count], as the next three: see `missing` of comm.c */
    void **answer;
    size_t *call_bytes;
    char *heard;
    char *text;              /* [count][KEEL_ERROR_MAX] of keel_comm_agree */
    int64_t *said;           /* [count][1 + KEEL_COMM_NUMBERS] of the same: status, numbers */
    int64_t bytes;           /* sent to other processes so far */
    int64_t moved, shortest; /* ns: when a test last moved bytes; the shortest test, or 0 */
    int64_t busy;            /* ns in calls that moved bytes, or started an exchange */
} keel_comm;

/* Takes the group over: it is closed by keel_comm_destroy, or here on failure. KEEL_EARG: the group
 * does not make sense. */
keel_status keel_comm_create(keel_comm **out, const keel_process_group *group);
void keel_comm_destroy(keel_comm *c); /* NULL is allowed */

/* "process 3 (node7)" */
enum { KEEL_COMM_NAME_MAX = 128 };
char *keel_comm_name(const keel_comm *c, int rank, char out[KEEL_COMM_NAME_MAX]);

/* One exchange. KEEL_EREMOTE: a process is lost, and the text names it. */
keel_status keel_comm_exchange(keel_comm *c, const keel_exchange *e);
/* That of c->send, c->send_bytes, c->receive and c->receive_bytes. */
keel_status keel_comm_exchange_noted(keel_comm *c);

/* The same in steps, with another number than KEEL_EXCHANGE_ALONE, so that several are on their
 * way. */
keel_status keel_comm_start(keel_comm *c, int number, const keel_exchange *e);
keel_status keel_comm_test(keel_comm *c, int number, bool *done);
keel_status keel_comm_wait(keel_comm *c, int number); /* tests with patience, and `meanwhile` */

/* Between two tests of a loop: spin for a short while, then sleep, and fail when nothing came for
 * the timeout. Begin anew when something has come. Time in which this process did not run, since it
 * was stopped or others had its core, is not the silence of another one;
 * but that ends, too. */
typedef struct keel_patience {
    int64_t start, seen, excused, nap; /* ns; seen: the last test; excused: it did not run */
    int64_t idle;                      /* nothing has moved since */
} keel_patience;
keel_patience keel_patience_begin(void);
keel_status keel_comm_patience(keel_comm *c, int number, keel_patience *x);

/* Measures the connection, and sets bucket_bytes, the same in all processes: so many bytes that
 * what an exchange costs besides them is a tenth. It times exchanges in which each process sends to
 * each KEEL_COMM_SMALL bytes, and keel_comm_large_each bytes, of which all are KEEL_COMM_LARGE. */
enum { KEEL_COMM_SMALL = 8, KEEL_COMM_LARGE = 256 << 10 };
static inline size_t keel_comm_large_each(int count)
{
    const size_t share = (size_t)KEEL_COMM_LARGE / (size_t)count;
    return share > KEEL_COMM_SMALL ? share : KEEL_COMM_SMALL;
}
keel_status keel_comm_measure(keel_comm *c);
/* What follows from these times. */
int64_t keel_comm_bucket(int64_t small_ns, int64_t large_ns);

/* Every process has bytes[rank] at all + at[rank]; afterwards each has those of all. */
keel_status keel_comm_all_gather(keel_comm *c, void *all, const size_t *at, const size_t *bytes);
/* The same with `bytes` of each, one after another. */
keel_status keel_comm_all_gather_equal(keel_comm *c, void *all, size_t bytes);

/* All get what process 0 has. */
keel_status keel_comm_broadcast(keel_comm *c, void *data, size_t bytes);

/* Each process says how it stands: a status, with the error text if it is a failure, and n numbers,
 * at most KEEL_COMM_NUMBERS, which afterwards are in all[count][n], if that is not NULL. If a
 * process failed, the first of them by rank is raised everywhere. */
enum { KEEL_COMM_NUMBERS = 8 };
keel_status keel_comm_agree(keel_comm *c, keel_status mine, const int64_t *number, int n,
                            int64_t *all);
/* The numbers that a process has said, until the next agreement. */
static inline const int64_t *keel_comm_said(const keel_comm *c, int process)
{
    return c->said + (size_t)process * (1 + KEEL_COMM_NUMBERS) + 1;
}

#endif
