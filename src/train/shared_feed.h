/* How the feed of a stream reaches the other processes: process 0 reads, and sends each of them its
 * rows. */
#ifndef KEEL_TRAIN_SHARED_FEED_H
#define KEEL_TRAIN_SHARED_FEED_H
#include "data/feed_shared.h"
#include "train/strategy.h"

/* s is borrowed for as long as the feed lives, and shared by several processes. */
keel_feed_share keel_share_feed(const keel_strategy *s);

#endif
