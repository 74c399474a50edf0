#include "datasets/survey.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/readers/reader.h"
#include "datasets/survey/survey_images.h"

/* --- Images that cannot be decoded --- */

static size_t count_state(const struct survey_images *images, const struct dataset *dataset, enum split split,
                          enum survey_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < dataset_size(dataset, split); i++)
        count += images->of[split][i].state == state;
    return count;
}

/* The dataset's name; its folder, where one reader reads several. */
static const char *name_of(const struct dataset *dataset)
{
    const char *folder = dataset_own_folder(dataset);
    return folder != NULL && strcmp(dataset_name(dataset), "folder") == 0 ? folder : dataset_name(dataset);
}

/* Reads the first such image again for its error. */
static void say_why(const struct survey_images *images, const struct dataset *dataset, enum survey_state state,
                    struct error *why)
{
    struct image image;
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++) {
            if (images->of[split][i].state != state)
                continue;
            if (dataset_read(dataset, (enum split)split, i, &image, NULL, why) != OK)
                return;
            image_free(&image);
            char *name = dataset_item_name(dataset, (enum split)split, i);
            error_set(why, ERROR_IO, "%s/%s: changed while it was read; start again", dataset->root,
                      name != NULL ? name : "an image");
            free(name);
            return;
        }
}

static status require_read(const struct survey_images *images, const struct dataset *dataset, struct error *error)
{
    size_t failed = 0;
    for (int split = 0; split < SPLITS; split++)
        failed += count_state(images, dataset, (enum split)split, SURVEY_FAILED);
    if (failed == 0)
        return OK;
    say_why(images, dataset, SURVEY_FAILED, error);
    return failed == 1 ? error->code
                       : error_context(error, "%zu of %zu images of %s cannot be read, the first is", failed,
                                       images->count, name_of(dataset));
}

static status complain(const struct survey_images *images, const struct dataset *dataset, size_t broken,
                       struct error *error)
{
    struct error why;
    say_why(images, dataset, SURVEY_BROKEN, &why);
    if (dataset->reader->open == NULL) /* belongs to no task */
        return error_set(
            error, ERROR_FORMAT,
            "%zu of %zu images below %s cannot be decoded: repair, replace or remove them (mtil data check %s "
            "--problems names each); the first is %s",
            broken, images->count, dataset->root, dataset->root, why.message);
    return error_set(error, ERROR_FORMAT,
                     "%zu of %zu images of %s cannot be decoded: repair or replace them (mtil data check %s --problems "
                     "lists all), or set on_unreadable: skip for %s to leave them out; the first is %s",
                     broken, images->count, name_of(dataset), dataset->root, name_of(dataset), why.message);
}

static void warn(const struct survey_images *images, const struct dataset *dataset, size_t broken,
                 const struct log *log)
{
    enum { NAMED = 3 };
    struct text names = {0};
    size_t named = 0;
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; named < NAMED && i < dataset_size(dataset, (enum split)split); i++)
            if (images->of[split][i].state == SURVEY_BROKEN)
                text_add(&names, "%s%s", named++ > 0 ? ", " : "", dataset->items[split].items[i].file);
    log_warn(log, "%s: %zu of %zu images of %s cannot be decoded and are left out: %s%s", dataset->root, broken,
             images->count, name_of(dataset), names.data, broken > NAMED ? ", …" : "");
    text_free(&names);
}

/* Removes the items and their results. */
static void leave_out(struct survey_images *images, struct dataset *dataset, enum split split)
{
    size_t count = dataset_size(dataset, split), kept = 0;
    bool *keep = xcalloc(count + 1, sizeof *keep);
    for (size_t i = 0; i < count; i++) {
        keep[i] = images->of[split][i].state != SURVEY_BROKEN;
        if (keep[i])
            images->of[split][kept++] = images->of[split][i];
    }
    dataset_keep_items(dataset, split, keep);
    free(keep);
}

/* Warns of images that are clipped, as in Pillow. */
static void warn_clipped(const struct survey_images *images, const struct dataset *dataset, const struct log *log)
{
    size_t clipped =
        survey_images_clipped(images, dataset, SPLIT_TRAIN) + survey_images_clipped(images, dataset, SPLIT_TEST);
    if (clipped > 0)
        log_warn(
            log,
            "%s: %zu of %zu images of %s are 16-bit grey with values beyond 255, which are read as white, as Pillow "
            "does; convert them to 8 bits for all of their greys",
            dataset->root, clipped, images->count, name_of(dataset));
}

static status handle_broken(struct survey *survey, struct survey_images *images, struct dataset *dataset,
                            const struct log *log, struct error *error)
{
    size_t broken = 0;
    for (int split = 0; split < SPLITS; split++)
        broken += survey->splits[split].unreadable = count_state(images, dataset, (enum split)split, SURVEY_BROKEN);
    if (broken == 0)
        return OK;
    if (!dataset->skip_unreadable)
        return complain(images, dataset, broken, error);
    warn(images, dataset, broken, log);
    for (int split = 0; split < SPLITS; split++)
        leave_out(images, dataset, (enum split)split);
    return OK;
}

/* --- digests ------------------------------------------------------------------------------------------------------ */

static void digest_split(struct survey_split *result, const struct survey_images *images, const struct dataset *dataset,
                         enum split split)
{
    struct digest digest = digest_begin();
    for (size_t i = 0; i < dataset_size(dataset, split); i++) {
        const struct survey_image *image = &images->of[split][i];
        const uint64_t values[] = {image->width, image->height, image->pixels[0], image->pixels[1]};
        dataset_digest_item(&digest, dataset, split, i);
        digest_add(&digest, values, sizeof values);
        if (dataset->items[split].items[i].file != NULL) {
            result->files++;
            result->bytes += image->stamp.size;
        }
    }
    digest_end(&digest, result->digest);
}

/* Counts the files of samples; the remaining items of a split may come from some of them only. */
static void count_sources(struct survey_split *result, const struct dataset *dataset, enum split split)
{
    for (size_t source = 0; source < dataset->source_count; source++) {
        uint64_t size = 0;
        bool used = false;
        for (size_t i = 0; !used && i < dataset_size(dataset, split); i++)
            used = dataset->items[split].items[i].file == NULL && dataset->items[split].items[i].source == source;
        char *path = used ? path_format("%s/%s", dataset->root, dataset->sources[source].name) : NULL;
        if (path != NULL && file_size(path, &size, NULL) == OK)
            result->bytes += size;
        result->files += used;
        free(path);
    }
}

static void digest_prompts(const struct dataset *dataset, char hash[DIGEST_SIZE])
{
    struct digest digest = digest_begin();
    const struct strings *const lists[] = {&dataset->classes, &dataset->templates};
    for (size_t list = 0; list < 2; list++) {
        uint64_t count = lists[list]->count;
        digest_add(&digest, &count, sizeof count);
        for (size_t i = 0; i < count; i++)
            digest_add(&digest, lists[list]->items[i], strlen(lists[list]->items[i]) + 1);
    }
    digest_end(&digest, hash);
}

static status survey_images(struct survey *survey, struct survey_images *images, struct dataset *dataset,
                            const struct log *log, struct error *error)
{
    TRY(require_read(images, dataset, error));
    TRY(handle_broken(survey, images, dataset, log, error));
    warn_clipped(images, dataset, log);
    for (int split = 0; split < SPLITS; split++) {
        digest_split(&survey->splits[split], images, dataset, (enum split)split);
        count_sources(&survey->splits[split], dataset, (enum split)split);
    }
    digest_prompts(dataset, survey->prompts);
    return OK;
}

status dataset_survey(struct survey *survey, struct dataset *dataset, const struct survey_settings *settings,
                      struct error *error)
{
    struct survey_images images;
    *survey = (struct survey){0};
    TRY(survey_images_look(&images, dataset, settings, error));
    status result = survey_images(survey, &images, dataset, settings->log, error);
    survey_images_free(&images);
    return result;
}
