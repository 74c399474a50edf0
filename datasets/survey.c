#include "datasets/survey.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/seen.h"
#include "core/text.h"
#include "datasets/readers/reader.h"

enum { IMAGES_BETWEEN_SAVES = 4096, SECONDS_BETWEEN_SAVES = 30 };

#define SECOND INT64_C(1000000000)

struct look {
    struct survey_images *images;
    const struct dataset *dataset;
    const struct survey_settings *settings;
    struct seen *seen; /* NULL: nothing is stored */
    int64_t saved;     /* time of the last save */
    enum split split;
    size_t first; /* item of job 0 */
    atomic_size_t done, known;
    atomic_bool reads;
    pthread_mutex_t failing; /* held while a failure is added */
};

/* What is stored of an image that could be read. */
struct kept {
    uint64_t pixels[2];
    uint32_t width, height;
    uint64_t clipped; /* 0 or 1 */
};

static int64_t now(const struct look *look)
{
    return (look->settings->clock != NULL ? look->settings->clock : clock_now)();
}

/* --- one image ---------------------------------------------------------------------------------------------------- */

static void add_failure(struct look *look, size_t item, const struct error *error)
{
    struct survey_images *images = look->images;
    char *why = xstrdup(error->message);
    pthread_mutex_lock(&look->failing);
    GROW(images->failures, images->failure_count);
    images->failures[images->failure_count++] = (struct survey_failure){look->split, item, error->code, why};
    pthread_mutex_unlock(&look->failing);
}

static void decode(struct look *look, size_t item, struct survey_image *found)
{
    SCOPED(image_free) struct image image = {0};
    struct error error;
    status result = dataset_read(look->dataset, look->split, item, &image, NULL, &error);
    found->state = result == OK ? SURVEY_READABLE : result == ERROR_FORMAT ? SURVEY_BROKEN : SURVEY_FAILED;
    if (result != OK) {
        add_failure(look, item, &error);
        return;
    }
    XXH128_hash_t hash = XXH3_128bits(image.pixels, (size_t)image.width * (size_t)image.height * 3);
    found->width = (uint32_t)image.width;
    found->height = (uint32_t)image.height;
    found->clipped = image.clipped;
    found->pixels[0] = hash.low64;
    found->pixels[1] = hash.high64;
}

static bool recall(struct look *look, const char *name, struct survey_image *found)
{
    struct kept kept;
    if (!seen_find(look->seen, name, &found->stamp, &kept, sizeof kept))
        return false;
    found->state = SURVEY_READABLE;
    found->kept = true;
    found->width = kept.width;
    found->height = kept.height;
    found->clipped = kept.clipped != 0;
    memcpy(found->pixels, kept.pixels, sizeof found->pixels);
    return true;
}

/* Where there is no such file, the stamp is zeros; reading it reports that. */
static void look_at_file(struct look *look, size_t item, const char *name, struct survey_image *found)
{
    OWNED char *path = path_format("%s/%s", look->dataset->root, name);
    int64_t begun = now(look);
    bool there = file_stamp_read(&found->stamp, path, NULL) == OK;
    if (there && recall(look, name, found)) {
        atomic_fetch_add(&look->known, 1);
    } else {
        struct file_stamp after = {0};
        atomic_store(&look->reads, true);
        decode(look, item, found);
        found->settled = there && found->state == SURVEY_READABLE && file_stamp_read(&after, path, NULL) == OK &&
                         file_stamp_same(&found->stamp, &after) && file_stamp_is_settled(&after, begun);
    }
}

/* The caller's thread is worker 0, which alone reports. */
static void report(const struct look *look, size_t worker)
{
    const struct survey_settings *settings = look->settings;
    if (worker == 0 && settings->progress != NULL && atomic_load(&look->reads))
        settings->progress(settings->context, atomic_load(&look->done), look->images->count);
}

static void look_at_item(void *context, size_t job, size_t worker)
{
    struct look *look = context;
    size_t item = look->first + job;
    struct survey_image *found = &look->images->of[look->split][item];
    const char *name = look->dataset->items[look->split].items[item].file;
    report(look, worker);
    if (stop_requested(look->settings->stop))
        return;
    if (name != NULL)
        look_at_file(look, item, name, found);
    else
        decode(look, item, found);
    atomic_fetch_add(&look->done, 1);
}

/* --- Stored results --- */

/* A warning the first time, then a note, because an unwritable folder affects every dataset. */
static void warn_once(const struct look *look, const struct error *problem)
{
    bool *warned = look->settings->warned, before = warned != NULL && *warned;
    (before ? log_debug : log_warn)(look->settings->log,
                                    "%s; surveys of images cannot be stored, so images are decoded by every run",
                                    problem->message);
    if (warned != NULL)
        *warned = true;
}

static void open_seen(struct look *look)
{
    struct error problem;
    OWNED char *root = realpath(look->dataset->root, NULL);
    const struct seen_place place = {.kind = dataset_name(look->dataset),
                                     .root = root != NULL ? root : look->dataset->root,
                                     .version = image_version()};
    if (seen_open(&look->seen, look->settings->folder, &place, &problem) != OK)
        log_warn(look->settings->log, "%s; all images are decoded again", problem.message);
}

/* A record of every image read since the last call. Returns the number of records. */
static size_t gather(const struct look *look, struct seen_record *records, struct kept *kept)
{
    size_t count = 0;
    for (int split = 0; split < SPLITS; split++) {
        const struct dataset_items *items = &look->dataset->items[split];
        for (size_t i = 0; i < items->count; i++) {
            struct survey_image *image = &look->images->of[split][i];
            if (image->kept || !image->settled)
                continue;
            image->kept = true;
            kept[count] =
                (struct kept){{image->pixels[0], image->pixels[1]}, image->width, image->height, image->clipped};
            records[count] = (struct seen_record){items->items[i].file, image->stamp, &kept[count], sizeof *kept};
            count++;
        }
    }
    return count;
}

static void save(struct look *look)
{
    struct error problem;
    if (look->seen == NULL || !atomic_load(&look->reads))
        return;
    OWNED struct seen_record *records = xcalloc(look->images->count + 1, sizeof *records);
    OWNED struct kept *kept = xcalloc(look->images->count + 1, sizeof *kept);
    if (seen_write(look->seen, records, gather(look, records, kept), &problem) != OK) {
        warn_once(look, &problem);
        seen_close(look->seen);
        look->seen = NULL;
    }
    look->saved = now(look);
}

static int compare_failures(const void *a, const void *b)
{
    const struct survey_failure *x = a, *y = b;
    return x->split != y->split ? (int)x->split - (int)y->split : (x->item > y->item) - (x->item < y->item);
}

/* --- all images -------------------------------------------------------------------------------------------------- */

static status look_at_all(struct look *look, struct error *error)
{
    const char *name = dataset_name(look->dataset);
    look->saved = now(look);
    for (int split = 0; split < SPLITS; split++) {
        size_t count = dataset_size(look->dataset, (enum split)split);
        look->split = (enum split)split;
        report(look, 0); /* with few images, worker 0 may get none */
        for (look->first = 0; look->first < count; look->first += IMAGES_BETWEEN_SAVES) {
            size_t left = count - look->first;
            threads_run(look->settings->threads, left < IMAGES_BETWEEN_SAVES ? left : IMAGES_BETWEEN_SAVES,
                        look_at_item, look);
            if (now(look) - look->saved > SECONDS_BETWEEN_SAVES * SECOND)
                save(look);
        }
    }
    save(look);
    if (look->images->failure_count > 1)
        qsort(look->images->failures, look->images->failure_count, sizeof *look->images->failures, compare_failures);
    look->images->known = atomic_load(&look->known);
    log_debug(look->settings->log, "%s: %zu images, %zu of them known", name, look->images->count, look->images->known);
    if (atomic_load(&look->done) < look->images->count)
        return error_set(error, ERROR_STOPPED, "%s: stopped before all images were checked", name);
    return OK;
}

static void create_images(struct survey_images *images, const struct dataset *dataset)
{
    *images = (struct survey_images){0};
    for (int split = 0; split < SPLITS; split++) {
        size_t count = dataset_size(dataset, (enum split)split);
        images->count += count;
        images->of[split] = xcalloc(count + 1, sizeof *images->of[split]);
    }
}

status survey_images_look(struct survey_images *images, const struct dataset *dataset,
                          const struct survey_settings *settings, struct error *error)
{
    struct look look = {.images = images, .dataset = dataset, .settings = settings};
    status result = OK;
    create_images(images, dataset);
    if (settings->folder != NULL && (dataset_has_files(dataset, SPLIT_TRAIN) || dataset_has_files(dataset, SPLIT_TEST)))
        open_seen(&look);
    pthread_mutex_init(&look.failing, NULL);
    NEXT(result, look_at_all(&look, error));
    pthread_mutex_destroy(&look.failing);
    seen_close(look.seen);
    if (result != OK)
        survey_images_free(images);
    return result;
}

size_t survey_images_clipped(const struct survey_images *images, const struct dataset *dataset, enum split split)
{
    size_t clipped = 0;
    for (size_t i = 0; i < dataset_size(dataset, split); i++)
        clipped += images->of[split][i].clipped;
    return clipped;
}

void survey_images_free(struct survey_images *images)
{
    for (int split = 0; split < SPLITS; split++)
        free(images->of[split]);
    for (size_t i = 0; i < images->failure_count; i++)
        free(images->failures[i].why);
    free(images->failures);
    *images = (struct survey_images){0};
}

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

/* Why the first of them could not be read. */
static const struct survey_failure *first_failure(const struct survey_images *images, enum survey_state state)
{
    const struct survey_failure *failure = images->failures;
    while (images->of[failure->split][failure->item].state != state)
        failure++;
    return failure;
}

static status require_read(const struct survey_images *images, const struct dataset *dataset, struct error *error)
{
    size_t failed = 0;
    for (int split = 0; split < SPLITS; split++)
        failed += count_state(images, dataset, (enum split)split, SURVEY_FAILED);
    if (failed == 0)
        return OK;
    const struct survey_failure *first = first_failure(images, SURVEY_FAILED);
    error_set(error, first->code, "%s", first->why);
    return failed == 1 ? first->code
                       : error_context(error, "%zu of %zu images of %s cannot be read, the first is", failed,
                                       images->count, name_of(dataset));
}

static status complain(const struct survey_images *images, const struct dataset *dataset, size_t broken,
                       struct error *error)
{
    const char *why = first_failure(images, SURVEY_BROKEN)->why;
    if (dataset->reader->open == NULL) /* belongs to no task */
        return error_set(
            error, ERROR_FORMAT,
            "%zu of %zu images below %s cannot be decoded: repair, replace or remove them (mtil data check %s "
            "--problems names each); the first is %s",
            broken, images->count, dataset->root, dataset->root, why);
    return error_set(error, ERROR_FORMAT,
                     "%zu of %zu images of %s cannot be decoded: repair or replace them (mtil data check %s --problems "
                     "lists all), or set on_unreadable: skip for %s to leave them out; the first is %s",
                     broken, images->count, name_of(dataset), dataset->root, name_of(dataset), why);
}

static void warn(const struct survey_images *images, const struct dataset *dataset, size_t broken,
                 const struct log *log)
{
    enum { NAMED = 3 };
    SCOPED(text_free) struct text names = {0};
    size_t named = 0;
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; named < NAMED && i < dataset_size(dataset, (enum split)split); i++)
            if (images->of[split][i].state == SURVEY_BROKEN)
                text_add(&names, "%s%s", named++ > 0 ? ", " : "", dataset->items[split].items[i].file);
    log_warn(log, "%s: %zu of %zu images of %s cannot be decoded and are left out: %s%s", dataset->root, broken,
             images->count, name_of(dataset), names.data, broken > NAMED ? ", …" : "");
}

/* Removes the items and their results. */
static void leave_out(struct survey_images *images, struct dataset *dataset, enum split split)
{
    size_t count = dataset_size(dataset, split), kept = 0;
    OWNED bool *keep = xcalloc(count + 1, sizeof *keep);
    for (size_t i = 0; i < count; i++) {
        keep[i] = images->of[split][i].state != SURVEY_BROKEN;
        if (keep[i])
            images->of[split][kept++] = images->of[split][i];
    }
    dataset_keep_items(dataset, split, keep);
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
        OWNED char *path = used ? path_format("%s/%s", dataset->root, dataset->sources[source].name) : NULL;
        if (path != NULL && file_size(path, &size, NULL) == OK)
            result->bytes += size;
        result->files += used;
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
                            const struct survey_settings *settings, struct error *error)
{
    TRY(require_read(images, dataset, error));
    TRY(handle_broken(survey, images, dataset, settings->log, error));
    warn_clipped(images, dataset, settings->log);
    for (int split = 0; split < SPLITS; split++) {
        for (size_t i = 0; settings->found != NULL && i < dataset_size(dataset, (enum split)split); i++)
            settings->found(settings->context, (enum split)split, i, &images->of[split][i]);
        digest_split(&survey->splits[split], images, dataset, (enum split)split);
        count_sources(&survey->splits[split], dataset, (enum split)split);
    }
    digest_prompts(dataset, survey->prompts);
    return OK;
}

status dataset_survey(struct survey *survey, struct dataset *dataset, const struct survey_settings *settings,
                      struct error *error)
{
    SCOPED(survey_images_free) struct survey_images images = {0};
    *survey = (struct survey){0};
    TRY(survey_images_look(&images, dataset, settings, error));
    return survey_images(survey, &images, dataset, settings, error);
}
