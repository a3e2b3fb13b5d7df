/* The arguments of losses/huber.c. */
#ifndef KEEL_LOSSES_HUBER_H
#define KEEL_LOSSES_HUBER_H

typedef struct keel_huber {
    int reduction;
    double delta;
} keel_huber;

#endif
