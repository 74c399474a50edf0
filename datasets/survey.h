/* Surveys the images of a dataset: a digest of all pixels, and the images that cannot be decoded.
 *
 *     struct survey survey;
 *     TRY(dataset_survey(&survey, dataset, &(struct survey_settings){.folder = folder, .threads = pool}, error));
 *     … survey.splits[SPLIT_TRAIN].digest …
 *
 * Every image is read and decoded once. The results are stored in a file below `folder`, by the image's name, size,
 * times and inode, so that a later survey reads only changed files. The digests depend neither on the root nor on the
 * encoding: the same pixels under the same names have the same digest.
 */
#pragma once

#include "core/file.h"
#include "core/threads.h"
#include "datasets/dataset.h"

struct survey_split {
    char digest[DIGEST_SIZE]; /* of the items in order: name below the dataset's folder (or row), label, width, height,
                                 pixels */
    size_t files;             /* images, or files that hold them; 0: generated */
    uint64_t bytes;           /* of those files */
    size_t unreadable;        /* images that cannot be decoded and are left out (on_unreadable: skip) */
};

struct survey {
    struct survey_split splits[SPLITS];
    char prompts[DIGEST_SIZE]; /* class names and templates in order */
};

struct survey_image;

/* Optional parts may be NULL. */
struct survey_settings {
    const char *folder;      /* where results are stored, beside the cache of decoded images */
    struct threads *threads; /* borrowed; NULL: only the caller's thread */
    const struct log *log;
    bool *warned; /* the caller's flag: a warning said that the folder cannot be written; set once */
    /* Called from the caller's thread. progress: once an image has to be read; done includes those already known.
     * found: by dataset_survey, for every image that the dataset keeps. */
    void (*progress)(void *context, size_t done, size_t total);
    void (*found)(void *context, enum split split, size_t item, const struct survey_image *image);
    void *context;
    const struct stop *stop; /* ends with ERROR_STOPPED; results so far are stored */
    int64_t (*clock)(void);  /* nanoseconds since 1970, for tests; NULL: the system's */
};

/* Images that cannot be decoded are an error that names the first one, or are removed from the dataset, according to
 * its key on_unreadable. An image that cannot be read at all (permission, disk, memory) is always an error, because
 * the cause may be temporary. */
status dataset_survey(struct survey *survey, struct dataset *dataset, const struct survey_settings *settings,
                      struct error *error);

/* --- for each image ----------------------------------------------------------------------------------------------- */

/* The result for each image, from the stored records or by decoding. Only what could be read is stored: what could not is tried
 * again by every survey, so that no fault outlives its cause. Like git, a record is stored only if the times of the
 * file are clearly older than the moment it was read, because a write within the same tick of the clock would not change
 * them. */
enum survey_state {
    SURVEY_UNSEEN,
    SURVEY_READABLE,
    SURVEY_BROKEN, /* cannot be decoded */
    SURVEY_FAILED  /* no permission, a failing disk, no memory or descriptors */
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

/* Why an image is broken or failed. */
struct survey_failure {
    enum split split;
    size_t item;
    status code;
    char *why;
};

struct survey_images {
    struct survey_image *of[SPLITS]; /* [images] */
    size_t count, known;             /* images of both splits; those with a valid record */
    struct survey_failure *failures; /* by split, then item */
    size_t failure_count;
};

/* The caller frees images; after a failure there is nothing to free. Results are stored in settings->folder. */
status survey_images_look(struct survey_images *images, const struct dataset *dataset,
                          const struct survey_settings *settings, struct error *error);
size_t survey_images_clipped(const struct survey_images *images, const struct dataset *dataset, enum split split);
void survey_images_free(struct survey_images *images);
