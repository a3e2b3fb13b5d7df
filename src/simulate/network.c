/* Reads the text of a network; see keel_network_parse in keel/simulate.h. */
#include "base/error.h"
#include "io/number.h"
#include "simulate/timeline.h"
#include <stdio.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit rates[] = { { "bit", 1.0 / 8 },  { "Kbit", 1e3 / 8 },  { "Mbit", 1e6 / 8 },
                              { "Gbit", 1e9 / 8 }, { "Tbit", 1e12 / 8 }, { NULL, 0 } };
static const unit times[] = {
    { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 }, { NULL, 0 }
};
static const unit sizes[] = { { "", 1 },        { "B", 1 },         { "K", 1024 }, { "KiB", 1024 },
                              { "M", 1 << 20 }, { "MiB", 1 << 20 }, { NULL, 0 } };
static const unit copies[] = { { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 }, { NULL, 0 } };

static const struct part {
    const char *name; /* "": without a name, in its place */
    const char *shape;
    const unit *unit;
    size_t offset;
} parts[] = {
    { "", "a rate such as 25Gbit", rates, offsetof(keel_network, bytes_per_second) },
    { "", "a latency such as 50us", times, offsetof(keel_network, latency) },
    { "message=", "a time such as 1us", times, offsetof(keel_network, message) },
    { "eager=", "a size such as 64K", sizes, offsetof(keel_network, eager) },
    { "local=", "bytes a second such as 8GB", copies,
      offsetof(keel_network, local_bytes_per_second) },
    { "local-latency=", "a time such as 2us", times, offsetof(keel_network, local_latency) },
    { "own=", "bytes a second such as 5GB", copies, offsetof(keel_network, own_bytes_per_second) },
};
enum { PARTS = sizeof parts / sizeof *parts, TEXT_MAX = 64 };

static keel_status refuse(const char *item, const char *why)
{
    char shown[TEXT_MAX];
    return keel_fail(KEEL_EARG,
                     "network: '%s' %s; write for example 25Gbit,50us, and then, if you like, "
                     "message=1us, eager=64K, local=8GB, local-latency=2us, own=5GB",
                     keel_printable(shown, sizeof shown, item), why);
}

static keel_status read_part(keel_network *out, const char *item, const struct part *p)
{
    const char *text = item + strlen(p->name);
    char why[96];
    double value;
    const char *rest = keel_number_scan(text, text + strlen(text), &value);
    for (const unit *u = p->unit; rest > text && u->name; u++)
        if (!strcmp(rest, u->name)) {
            if (p->unit == copies && value == 0)
                return refuse(item, "is no rate"); /* 0: not given */
            *(double *)((char *)out + p->offset) = value * u->factor;
            return KEEL_OK;
        }
    snprintf(why, sizeof why, "is not %s", p->shape);
    return refuse(item, why);
}

/* The part that item number i is; -1: none. */
static int part_of(const char *item, int i)
{
    if (i < 2) return i;
    for (int k = 2; k < PARTS; k++)
        if (!strncmp(item, parts[k].name, strlen(parts[k].name))) return k;
    return -1;
}

keel_status keel_network_parse(keel_network *out, const char *text)
{
    keel_network n = { KEEL_NETWORK };
    bool seen[PARTS] = { false };
    int i = 0;
    if (!out || !text) return keel_fail(KEEL_EARG, "network: out and text must not be NULL");
    for (const char *at = text;; i++) {
        char item[TEXT_MAX];
        const size_t length = strcspn(at, ",");
        if (length >= sizeof item) return refuse(at, "is too long");
        memcpy(item, at, length);
        item[length] = 0;
        const int k = part_of(item, i);
        if (k < 0) return refuse(item, "is not known");
        if (seen[k]) return refuse(item, "is given twice");
        seen[k] = true;
        KEEL_TRY(read_part(&n, item, &parts[k]));
        if (!at[length]) break;
        at += length + 1;
    }
    if (!seen[1]) return refuse(text, "lacks a latency");
    KEEL_TRY(keel_network_check(&n));
    *out = n;
    return KEEL_OK;
}
