/* Rows that a stage passes over because they cannot be read (ignore_errors, substitute): a budget
 * for them, and a list of them in a file.
 *
 * Threads read ahead and in any order, so a budget is charged where elements are given out, which
 * is in order: a run ends at the same element with any number of threads. What was charged is part
 * of a checkpoint. */
#ifndef KEEL_DATA_FAULTS_H
#define KEEL_DATA_FAULTS_H
#include "base/field.h"
#include "data/source.h"

/* ---- the arguments of such a stage -------------------------------------------------------------
 */

typedef struct keel_budget {
    int64_t most;
    double rate;
    char *quarantine;
} keel_budget;

#define KEEL_BUDGET_FIELDS(what)                                                                   \
    KEEL_INT(keel_budget, most, "null", 1, 1e15, what " in a pass; one more fails"),               \
        KEEL_FLOAT(keel_budget, rate, "null", 0, 1,                                                \
                   "the same as a part of the elements of a pass; where their number is not "      \
                   "known, of those so far, counted as 1000 at least"),                            \
        KEEL_STRING(keel_budget, quarantine, "null",                                               \
                    "file to which a line is added for each such row, once; --skip-list takes it")

/* ---- faults ------------------------------------------------------------------------------------
 */

/* Where an element comes from. */
typedef struct keel_spot {
    const keel_dataset *from; /* NULL: not known */
    keel_position at;         /* index: the element of `from` */
    /* If it failed: the innermost dataset that did; NULL: not known. */
    const keel_data_origin *failed_in;
    int64_t failed_row;
} keel_spot;

typedef struct keel_fault {
    const keel_applied *stage; /* that passed over it */
    uint64_t pass;             /* of the data of that stage */
    int64_t order;             /* among the rows of a batch; -1: not set */
    keel_spot place;
    keel_failure failure;
} keel_fault;

typedef struct keel_faults {
    keel_fault *at;
    int64_t n, room;
} keel_faults;

keel_status keel_faults_add(keel_faults *f, const keel_fault *one);
keel_status keel_faults_move(keel_faults *to, keel_faults *from); /* empties `from` */
/* Set the order of those that have none. */
void keel_faults_number(keel_faults *f, int64_t order);
void keel_faults_free(keel_faults *f);

/* ---- what a stage has passed over (keel_applied.made) ------------------------------------------
 */

typedef struct keel_passed keel_passed;

/* Check the arguments, and open the list. KEEL_EARG: neither number nor rate; KEEL_EIO: the file
 * cannot be read or written. */
keel_status keel_passed_create(keel_passed **out, const keel_budget *b);
void keel_passed_destroy(keel_passed *p); /* NULL is allowed */

/* The most elements of a pass that may be passed over. rows: of a pass, -1: not known; seen: so
 * far. */
int64_t keel_budget_allows(const keel_budget *b, int64_t rows, int64_t seen);

/* Count a row that was passed over, and add it to the list unless it is there. Any thread. */
void keel_passed_add(keel_passed *p, const keel_fault *f);

/* "N rows could not be read MANY, the first (row) because: ...", or "1 row (row) could not be read
 * ONE, because: ..."; leaves the text as it is: none. A row without a number is not named. */
void keel_passed_note(keel_passed *p, const char *name, const char *one, const char *many,
                      char *text, size_t size);

/* ---- the budgets of one run --------------------------------------------------------------------
 */

typedef struct keel_ledger_entry {
    const keel_applied *stage;
    uint64_t pass; /* the last one that had a fault */
    int64_t n;     /* faults of that pass so far */
} keel_ledger_entry;

typedef struct keel_ledger {
    keel_ledger_entry *at; /* [n], in the order of the stages; behind them room for a copy */
    int n;
} keel_ledger;

/* An entry for each stage of a dataset that substitutes rows. */
keel_status keel_ledger_create(keel_ledger *out, const keel_dataset *d);
void keel_ledger_free(keel_ledger *l);

/* Charge faults in their order. The failure of one that is too many, with nothing charged. */
keel_status keel_ledger_charge(keel_ledger *l, keel_faults *f);

#endif
