/* The built-in suite's pictures: eleven small domains named after MTIL's datasets, ten drawn, one handwritten.
 *
 *     for (int k = 0; k < SUITE_DOMAINS; k++) {
 *         const struct domain *domain = &suite_domains[k];
 *         uint8_t pixels[SUITE_PIXELS];
 *         if (domain->draw != NULL)                             // NULL: mnist, handwritten
 *             suite_drawing(domain, seed, index, index % domain->classes, pixels);
 *     }
 *
 * Everything that makes a domain easy or hard is a number in suite.c's table.
 */
#pragma once

#include <stdint.h>

enum { SUITE_DOMAINS = 11, SUITE_SPLITS = 2, SUITE_PIXELS = 64 * 64 * 3 };

struct picture; /* a drawing in the making (suite/picture.h) */

/* A change of a domain's colours that a model trained on ordinary pictures has not seen. */
enum shift {
    SHIFT_NONE,
    SHIFT_NEGATIVE, /* c → 1 − c */
    SHIFT_ROTATE,   /* red → green → blue → red: false colours */
    SHIFT_HEAT      /* brightness as a heat map */
};

struct difficulty {
    enum shift shift;
    float shift_share;    /* of the pictures that are shifted */
    float shift_strength; /* 0 … 1: mix of the picture as drawn and shifted */
    float tilt;           /* standard deviation, in turns */
    float wobble;         /* of outlines, in frame units */
    float clutter;        /* strength of the background, 0 … 1 */
    float noise;          /* standard deviation a pixel */
    int blur;             /* passes */
};

struct domain {
    const char *name; /* the reader's */
    const char *const *class_names;
    int classes, side, train, test;
    void (*draw)(struct picture *, int label);
    struct difficulty difficulty;
};

extern const struct domain suite_domains[SUITE_DOMAINS];

/* Draws picture index of a class: pixels [side, side, 3] of the caller's, at most SUITE_PIXELS. */
void suite_drawing(const struct domain *domain, uint64_t seed, uint64_t index, int label, uint8_t *pixels);
