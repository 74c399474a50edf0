/* A picture of the suite in the making, and the generators, one file each. */
#pragma once

#include "datasets/mini/figure.h"
#include "datasets/mini/suite.h"

struct picture {
    struct canvas canvas;
    struct frame frame;
    struct dice dice;
    struct noise noise;
    const struct difficulty *difficulty;
    int side;
    struct paint ink;
};

/* The picture's only ink, set to a shade near colour; valid until the next call. */
const struct paint *picture_ink(struct picture *picture, struct colour colour);

/* Starts the picture: blotches of two colours, as different as the domain's clutter says. */
void picture_backdrop(struct picture *picture, struct colour colour, float period);

/* A frame near the middle, half-size in [least, most], tilted as the domain says, mirrored or not. */
struct frame picture_subject(struct picture *picture, float least, float most);

struct colour picture_shade(struct colour colour, float amount); /* darker for amount < 0, lighter for > 0 */
float picture_between(struct picture *picture, float low, float high);

/* Cats, dogs and rabbits, shared by cifar100 and oxford_pet. */
enum pet { PET_CAT, PET_DOG, PET_RABBIT };
enum coat_pattern { COAT_PLAIN, COAT_TABBY, COAT_PATCHES };
struct coat {
    struct colour main, second;
    enum coat_pattern pattern;
};
void picture_pet_head(struct picture *picture, const struct frame *frame, enum pet pet, const struct coat *coat);

void suite_draw_aircraft(struct picture *picture, int label);
void suite_draw_caltech101(struct picture *picture, int label);
void suite_draw_cifar100(struct picture *picture, int label);
void suite_draw_dtd(struct picture *picture, int label);
void suite_draw_eurosat(struct picture *picture, int label);
void suite_draw_flowers(struct picture *picture, int label);
void suite_draw_food(struct picture *picture, int label);
void suite_draw_oxford_pet(struct picture *picture, int label);
void suite_draw_stanford_cars(struct picture *picture, int label);
void suite_draw_sun397(struct picture *picture, int label);

extern const char *const aircraft_names[],
    *const caltech101_names[], *const cifar100_names[],
                                   *const dtd_names[], *const eurosat_names[], *const flowers_names[],
                                                                                   *const food_names[],
                                                                                       *const oxford_pet_names[],
                                                                                           *const stanford_cars_names[],
                                                                                               *const sun397_names[];
