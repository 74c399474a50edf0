/* Internal: the result for each image of a dataset, from the stored records or by decoding.
 *
 *     struct survey_images images;
 *     TRY(survey_images_look(&images, dataset, &settings, error));
 *     … images.of[SPLIT_TRAIN][item].state …
 *     survey_images_free(&images);
 *
 * Like git, a record is stored only if the times of the file are clearly older than the moment it was read, because a
 * write within the same tick of the clock would not change them.
 */
#pragma once

#include "core/stamp.h"
#include "datasets/survey.h"

enum survey_state {
    SURVEY_UNSEEN,
    SURVEY_READABLE,
    SURVEY_BROKEN, /* cannot be decoded */
    SURVEY_FAILED  /* no permission, a failing disk, no memory: nothing is stored */
};

struct survey_image {
    enum survey_state state;
    bool kept;               /* found in the file, or already written to it */
    bool settled;            /* may be stored */
    uint32_t width, height;  /* of a readable one */
    bool clipped;            /* as in struct image */
    uint64_t pixels[2];      /* XXH3 of [height, width, 3] */
    struct file_stamp stamp; /* of its file */
};

struct survey_images {
    struct survey_image *of[SPLITS]; /* [images] */
    size_t count, known;             /* images of both splits; those with a valid record */
};

/* The caller frees images; after a failure there is nothing to free. Results are stored in settings->folder. */
status survey_images_look(struct survey_images *images, const struct dataset *dataset,
                          const struct survey_settings *settings, struct error *error);
size_t survey_images_clipped(const struct survey_images *images, const struct dataset *dataset, enum split split);
void survey_images_free(struct survey_images *images);
