/* A simulation as a picture: rows a second and efficiency over the number of machines, and where
 * the time of a step goes. */
#ifndef KEEL_CLI_CURVE_H
#define KEEL_CLI_CURVE_H
#include "command.h"

typedef struct keel_curve {
    const char *title, *subtitle; /* as they are printed; escaped here */
    const keel_simulation *s;
} keel_curve;

/* Write an SVG file, or a page of HTML with the same picture and a table. False: writing failed. */
bool keel_curve_svg(FILE *f, const void *curve);
bool keel_curve_html(FILE *f, const void *curve);

#endif
