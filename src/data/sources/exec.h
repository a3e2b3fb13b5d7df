/* A program that writes batches, and what of them is in memory. */
#ifndef KEEL_DATA_SOURCES_EXEC_H
#define KEEL_DATA_SOURCES_EXEC_H
#include "data/stored.h"
#include "io/program.h"

typedef struct keel_exec_buffer {
    void *data;
    size_t room;
    bool charged; /* its bytes are taken from the account */
} keel_exec_buffer;

typedef struct keel_exec_column { /* one array of each batch */
    char *name;
    keel_stored stored; /* of a field */
    int field;          /* -1: read, but not used */
    keel_npy_header header;
    keel_exec_buffer rows; /* of the batch, as they are stored, row-major */
} keel_exec_column;

typedef struct keel_exec {
    char *command, *fields; /* fields: "KEEL_FIELDS=x,y" */
    char name[80];          /* in messages: the beginning of the command */
    keel_program *program;
    int n;
    keel_exec_column column[KEEL_FIELDS_MAX];
    keel_exec_buffer turned; /* of Fortran order, before it is turned */
    keel_account *account;   /* of the run that reads it; NULL: none */
    uint32_t pass;
    bool fresh;       /* nothing of this run was given yet */
    bool ended;       /* the pass is over */
    int64_t number;   /* batches of this run so far */
    int64_t at, rows; /* of the batch in memory, [at, rows) are still to be given */
    int64_t first_row;
    int64_t max_rows;
    keel_failure failure; /* of this run */
    keel_scratch scratch;
} keel_exec;

/* Read a batch. KEEL_END: the program has ended well, after a whole batch. */
keel_status keel_exec_read(keel_exec *p);

void keel_exec_free_buffer(const keel_exec *p, keel_exec_buffer *b);
/* The buffer stays, and is counted by nobody. */
void keel_exec_give_bytes(const keel_exec *p, keel_exec_buffer *b);

#endif
