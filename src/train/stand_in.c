/* See stand_in.h. */
#include "train/stand_in.h"
#include "base/memory.h"
#include "base/text.h"
#include "keel/checkpoint.h"
#include "train/saver.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static keel_status write_to(const char *path, const keel_standing *st)
{
    keel_snapshot *shot = NULL;
    void *block = NULL;
    size_t n_bytes = 0;
    keel_status s = keel_snapshot_create(&shot, st->trainer->model);
    if (s >= 0) s = keel_snapshot_take(shot, st->trainer);
    if (s >= 0) s = keel_standing_encode(st, &block, &n_bytes);
    if (s >= 0)
        s = keel_snapshot_write(shot, &(keel_zip_member){ KEEL_STATE_MEMBER, block, n_bytes },
                                path);
    keel_free(block);
    keel_snapshot_destroy(shot);
    return s;
}

keel_status keel_stand_in(const char *folder, const keel_comm *c, bool hurried,
                          const keel_standing *st)
{
    char name[KEEL_SAVER_NAME];
    keel_text path = { 0 };
    keel_claim *claim = NULL;
    KEEL_TRY(keel_saver_make_folder(folder)); /* of a machine with disks of its own */
    keel_saver_name(name, st);
    keel_text_add(&path, "%s/%s", folder, name);
    const double turn = keel_claim_turn(c->group.rank, c->lost_rank, c->timeout, hurried);
    keel_status s = path.failed ? KEEL_ENOMEM : keel_claim_first(&claim, path.data, turn);
    if (s == KEEL_OK) s = write_to(path.data, st);
    keel_claim_release(claim);
    keel_text_free(&path);
    return s;
}
