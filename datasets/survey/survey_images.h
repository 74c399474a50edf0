/* Inside the survey: what each image of a dataset shows, from what was kept of it or by decoding it.
 *
 *     struct survey_images images;
 *     TRY(survey_images_look(&images, dataset, &settings, error));
 *     … images.of[SPLIT_TRAIN][item].state …
 *     survey_images_free(&images);
 *
 * A record is kept only of a file whose times are clearly older than the moment it was read, as git does: what is
 * written within the same tick of the clock would leave the times as they are.
 */
#ifndef MTIL_DATASETS_SURVEY_SURVEY_IMAGES_H
#define MTIL_DATASETS_SURVEY_SURVEY_IMAGES_H

#include "datasets/survey.h"
#include "datasets/survey/survey_file.h"

enum survey_state {
    SURVEY_UNSEEN,
    SURVEY_READABLE,
    SURVEY_BROKEN, /* its bytes are no image */
    SURVEY_FAILED  /* no permission, a failing disk, no memory: nothing is known of it, and nothing kept */
};

struct survey_image {
    enum survey_state state;
    bool kept;                 /* found in the file, or already written to it */
    bool settled;              /* may be kept */
    uint32_t width, height;    /* of a readable one */
    uint64_t pixels[2];        /* XXH3 of [height, width, 3] */
    struct survey_stamp stamp; /* of its file */
};

struct survey_images {
    struct survey_image *of[SPLITS]; /* [images] */
    size_t count, known;             /* images of both splits; those of which what was kept still holds */
};

/* The caller frees images; after a failure there is nothing to free. What is found is kept in settings->folder. */
status survey_images_look(struct survey_images *images, const struct dataset *dataset,
                          const struct survey_settings *settings, struct error *error);
void survey_images_free(struct survey_images *images);

#endif
