#include "datasets/survey/survey_images.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <xxhash.h>

#include "core/arena.h"
#include "core/file.h"
#include "datasets/readers/reader.h"

enum { IMAGES_BETWEEN_SAVES = 4096, SECONDS_BETWEEN_SAVES = 30 };

#define SECOND 1000000000

struct look {
    struct survey_images *images;
    const struct dataset *dataset;
    const struct survey_settings *settings;
    struct survey_label label;
    char *path; /* of the file; NULL: nothing is stored */
    struct survey_file kept;
    uint64_t saved; /* time of the last save */
    enum split split;
    size_t first; /* item of job 0 */
    atomic_size_t done, known;
    atomic_bool reads, stopped, out_of_memory;
};

static int64_t system_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

static uint64_t now(const struct look *look)
{
    return (uint64_t)(look->settings->clock != NULL ? look->settings->clock : system_clock)();
}

/* --- one image ---------------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Zeros if there is no such file; reading it reports that. */
static struct survey_stamp stamp_of(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return (struct survey_stamp){0};
    return (struct survey_stamp){(uint64_t)found.st_size, found.st_ino, nanoseconds(found.st_mtim),
                                 nanoseconds(found.st_ctim)};
}

static bool same_stamp(const struct survey_stamp *a, const struct survey_stamp *b)
{
    return a->size == b->size && a->inode == b->inode && a->modified == b->modified && a->changed == b->changed;
}

/* File systems store times with a resolution of two seconds (FAT) or better. */
static bool is_settled(const struct survey_stamp *stamp, uint64_t now)
{
    const int64_t tick = 2 * (int64_t)SECOND;
    return llabs((int64_t)(now - stamp->modified)) > tick && llabs((int64_t)(now - stamp->changed)) > tick;
}

static void decode(struct look *look, size_t item, struct survey_image *found)
{
    struct image image;
    struct error error;
    status result = dataset_read(look->dataset, look->split, item, &image, NULL, &error);
    found->state = result == OK ? SURVEY_READABLE : result == ERROR_FORMAT ? SURVEY_BROKEN : SURVEY_FAILED;
    if (result != OK)
        return;
    XXH128_hash_t hash = XXH3_128bits(image.pixels, (size_t)image.width * (size_t)image.height * 3);
    found->width = (uint32_t)image.width;
    found->height = (uint32_t)image.height;
    found->clipped = image.clipped;
    found->pixels[0] = hash.low64;
    found->pixels[1] = hash.high64;
    image_free(&image);
}

static bool recall(struct look *look, const char *name, struct survey_image *found)
{
    const struct survey_record *record = survey_file_find(&look->kept, survey_name(name));
    if (record == NULL || !same_stamp(&record->stamp, &found->stamp))
        return false;
    found->state = record->width > 0 ? SURVEY_READABLE : SURVEY_BROKEN;
    found->kept = true;
    found->width = record->width;
    found->height = record->height;
    found->clipped = record->clipped;
    memcpy(found->pixels, record->pixels, sizeof found->pixels);
    return true;
}

static void look_at_file(struct look *look, size_t item, const char *name, struct survey_image *found)
{
    char *path = path_format("%s/%s", look->dataset->root, name);
    if (path == NULL) {
        atomic_store(&look->out_of_memory, true);
        return;
    }
    uint64_t begun = now(look);
    found->stamp = stamp_of(path);
    if (recall(look, name, found)) {
        atomic_fetch_add(&look->known, 1);
    } else {
        atomic_store(&look->reads, true);
        decode(look, item, found);
        struct survey_stamp after = stamp_of(path);
        found->settled =
            found->state != SURVEY_FAILED && same_stamp(&found->stamp, &after) && is_settled(&after, begun);
    }
    free(path);
}

/* The caller's thread is worker 0, which alone reports and polls. */
static bool goes_on(struct look *look, size_t worker)
{
    const struct survey_settings *settings = look->settings;
    if (worker == 0 && settings->progress != NULL && atomic_load(&look->reads))
        settings->progress(settings->context, atomic_load(&look->done), look->images->count);
    if (worker == 0 && settings->stopped != NULL && settings->stopped(settings->context))
        atomic_store(&look->stopped, true);
    return !atomic_load(&look->stopped);
}

static void look_at_item(void *context, size_t job, size_t worker)
{
    struct look *look = context;
    size_t item = look->first + job;
    struct survey_image *found = &look->images->of[look->split][item];
    const char *name = look->dataset->items[look->split].items[item].file;
    if (!goes_on(look, worker))
        return;
    if (name != NULL)
        look_at_file(look, item, name, found);
    else
        decode(look, item, found);
    atomic_fetch_add(&look->done, 1);
}

/* --- stored results
 * ------------------------------------------------------------------------------------------------- */

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

static status find_kept(struct look *look, struct error *error)
{
    struct error problem;
    char *root = realpath(look->dataset->root, NULL);
    strncpy(look->label.dataset, dataset_name(look->dataset), sizeof look->label.dataset - 1);
    strncpy(look->label.root, root != NULL ? root : look->dataset->root, sizeof look->label.root - 1);
    strncpy(look->label.decoder, image_version(), sizeof look->label.decoder - 1);
    free(root);
    look->path = survey_file_path(look->settings->folder, &look->label);
    if (look->path == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for a name");
    if (survey_file_read(&look->kept, look->path, &look->label, &problem) != OK)
        log_warn(look->settings->log, "%s; all images are decoded again", problem.message);
    return OK;
}

/* A record of every image decoded since the last call. Returns the number of records. */
static size_t gather(const struct look *look, struct survey_record *records)
{
    size_t count = 0;
    for (int split = 0; split < SPLITS; split++) {
        const struct dataset_items *items = &look->dataset->items[split];
        for (size_t i = 0; i < items->count; i++) {
            struct survey_image *image = &look->images->of[split][i];
            if (image->kept || !image->settled)
                continue;
            image->kept = true;
            records[count++] = (struct survey_record){.name = survey_name(items->items[i].file),
                                                      .stamp = image->stamp,
                                                      .pixels = {image->pixels[0], image->pixels[1]},
                                                      .width = image->width,
                                                      .height = image->height & 0x7fffffff,
                                                      .clipped = image->clipped};
        }
    }
    return count;
}

/* Other processes may have written meanwhile, so the file is read again and merged. */
static status write_records(struct look *look, struct survey_record *records, size_t count, struct error *error)
{
    struct survey_file file;
    TRY(directory_create(look->settings->folder, error));
    if (survey_file_read(&file, look->path, &look->label, NULL) != OK) /* reported when it was first read */
        file = (struct survey_file){0};
    survey_file_add(&file, records, count);
    status result = survey_file_write(&file, look->path, &look->label, error);
    survey_file_free(&file);
    return result;
}

static void save(struct look *look)
{
    struct error problem;
    struct survey_record *records = NULL;
    if (look->path == NULL || !atomic_load(&look->reads))
        return;
    records = malloc(array_size(look->images->count + 1, sizeof *records));
    status result = records != NULL ? OK : error_set(&problem, ERROR_MEMORY, "%s: no memory", look->path);
    size_t count = result == OK ? gather(look, records) : 0;
    if (count > 0)
        result = write_records(look, records, count, &problem);
    if (result != OK) {
        warn_once(look, &problem);
        free(look->path);
        look->path = NULL;
    }
    free(records);
    look->saved = now(look);
}

/* --- all images -------------------------------------------------------------------------------------------------- */

static void run_jobs(struct look *look, size_t count)
{
    if (look->settings->threads != NULL) {
        threads_run(look->settings->threads, count, look_at_item, look);
        return;
    }
    for (size_t i = 0; i < count; i++)
        look_at_item(look, i, 0);
}

static status look_at_all(struct look *look, struct error *error)
{
    const char *name = dataset_name(look->dataset);
    look->saved = now(look);
    for (int split = 0; split < SPLITS; split++) {
        size_t count = dataset_size(look->dataset, (enum split)split);
        look->split = (enum split)split;
        goes_on(look, 0); /* with few images, worker 0 may get none */
        for (look->first = 0; look->first < count; look->first += IMAGES_BETWEEN_SAVES) {
            size_t left = count - look->first;
            run_jobs(look, left < IMAGES_BETWEEN_SAVES ? left : IMAGES_BETWEEN_SAVES);
            if (now(look) - look->saved > (uint64_t)SECONDS_BETWEEN_SAVES * SECOND)
                save(look);
        }
    }
    save(look);
    look->images->known = atomic_load(&look->known);
    log_debug(look->settings->log, "%s: %zu images, %zu of them known", name, look->images->count, look->images->known);
    if (atomic_load(&look->out_of_memory))
        return error_set(error, ERROR_MEMORY, "%s: no memory for a name", name);
    if (atomic_load(&look->stopped))
        return error_set(error, ERROR_STOPPED, "%s: stopped before all images were checked", name);
    return OK;
}

static status create_images(struct survey_images *images, const struct dataset *dataset, struct error *error)
{
    bool made = true;
    *images = (struct survey_images){0};
    for (int split = 0; split < SPLITS; split++) {
        size_t count = dataset_size(dataset, (enum split)split);
        images->count += count;
        images->of[split] = calloc(count + 1, sizeof *images->of[split]);
        made = made && images->of[split] != NULL;
    }
    return made ? OK
                : error_set(error, ERROR_MEMORY, "%s: no memory for the results of %zu images", dataset_name(dataset),
                            images->count);
}

static bool has_files(const struct dataset *dataset)
{
    return dataset_has_files(dataset, SPLIT_TRAIN) || dataset_has_files(dataset, SPLIT_TEST);
}

status survey_images_look(struct survey_images *images, const struct dataset *dataset,
                          const struct survey_settings *settings, struct error *error)
{
    struct look look = {.images = images, .dataset = dataset, .settings = settings};
    status result = create_images(images, dataset, error);
    if (result == OK && settings->folder != NULL && has_files(dataset))
        result = find_kept(&look, error);
    NEXT(result, look_at_all(&look, error));
    survey_file_free(&look.kept);
    free(look.path);
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
    *images = (struct survey_images){0};
}
