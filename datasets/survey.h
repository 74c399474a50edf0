/* What a dataset's images show: a digest of all pixels, and the images that cannot be decoded.
 *
 *     struct survey survey;
 *     TRY(dataset_survey(&survey, dataset, &(struct survey_settings){.folder = folder, .threads = pool}, error));
 *     … survey.splits[SPLIT_TRAIN].digest …
 *
 * Every image is read and decoded once. What was found is kept in a file below `folder`, by the image's name, size, times
 * of change and inode: a later survey reads only what has changed since. The digests do not depend on where the files
 * lie or how they are encoded: the same pixels under the same names have the same digest.
 */
#ifndef MTIL_DATASETS_SURVEY_H
#define MTIL_DATASETS_SURVEY_H

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

/* What is NULL is done without. */
struct survey_settings {
    const char *folder;      /* where what was found is kept, beside the cache of decoded images */
    struct threads *threads; /* borrowed; NULL: the caller alone */
    const struct log *log;
    bool *told; /* whether it was said that nothing can be kept in the folder, so that it is said once; the caller's */
    /* From the caller's thread. progress: from the first image on that has to be read; done counts those known before,
     * too. stopped: whether to leave off, with ERROR_STOPPED; what was found so far is kept. */
    void (*progress)(void *context, size_t done, size_t total);
    bool (*stopped)(void *context);
    void *context;
    int64_t (*clock)(void); /* nanoseconds since 1970, for tests; NULL: the system's */
};

/* Images that cannot be decoded are an error, which names the first one, or left out of the dataset, as its key
 * on_unreadable says. An image that cannot be read at all (permission, disk, memory) is an error either way: that may
 * be otherwise tomorrow, and the dataset another. */
status dataset_survey(struct survey *survey, struct dataset *dataset, const struct survey_settings *settings,
                      struct error *error);

#endif
