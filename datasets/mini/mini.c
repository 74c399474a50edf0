#include "datasets/mini/mini.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "datasets/image/image.h"
#include "datasets/mini/layout.h"
#include "datasets/readers/reader.h"

/* --- pictures ----------------------------------------------------------------------------------------------------- */

enum { JPEG_QUALITY = 92, PICTURES_AT_ONCE = 64 };

/* The pictures of one round, shared out to threads; the first failure is kept. */
struct round {
    const struct layout *layout;
    size_t first;
    pthread_mutex_t lock;
    struct error error;
};

static status draw_one(const struct layout *layout, const struct layout_picture *picture, struct error *error)
{
    uint8_t pixels[SUITE_PIXELS];
    suite_drawing(layout->domain, layout->settings->seed, picture->item, layout_label(layout, picture->item), pixels);
    struct image image = {.pixels = pixels, .width = layout->domain->side, .height = layout->domain->side};
    return image_write_jpeg(picture->path, &image, JPEG_QUALITY, error);
}

static void draw_job(void *context, size_t job, size_t worker)
{
    struct round *round = context;
    struct error error = {0};
    if (draw_one(round->layout, &round->layout->pictures[round->first + job], &error) == OK)
        return;
    pthread_mutex_lock(&round->lock);
    if (round->error.code == OK)
        round->error = error;
    pthread_mutex_unlock(&round->lock);
}

/* ERROR_STOPPED when the owner of the settings asks to stop. */
static status go_on(const struct mini_settings *settings, const char *root, struct error *error)
{
    return stop_requested(settings->stop)
               ? error_set(error, ERROR_STOPPED, "%s: stopped; the same command continues", root)
               : OK;
}

/* Draws, encodes and writes every listed picture; looks for a request to stop now and then. */
static status draw_all(struct layout *layout, struct error *error)
{
    const struct mini_settings *settings = layout->settings;
    struct round round = {.layout = layout, .lock = PTHREAD_MUTEX_INITIALIZER};
    for (; round.first < layout->count && round.error.code == OK; round.first += PICTURES_AT_ONCE) {
        size_t left = layout->count - round.first, jobs = left < PICTURES_AT_ONCE ? left : PICTURES_AT_ONCE;
        if (settings->progress != NULL)
            settings->progress(settings->context, layout->domain->name, round.first, layout->count);
        TRY(go_on(settings, layout->root, error));
        threads_run(settings->threads, jobs, draw_job, &round);
    }
    if (round.error.code != OK)
        return error_set(error, round.error.code, "%s", round.error.message);
    if (settings->progress != NULL)
        settings->progress(settings->context, layout->domain->name, layout->count, layout->count);
    return OK;
}

/* --- CoOp's split files ------------------------------------------------------------------------------------------- */

/* The suite's own test pictures, and every fifth training picture of a class to validate with. */
enum { LISTS = 3, VALIDATED = 5 };

static const char *const keys[LISTS] = {"train", "val", "test"};

/* The position of its list in keys. */
static int list_of(const struct layout *layout, size_t item)
{
    size_t train = (size_t)layout->domain->train, test = (size_t)layout->domain->test;
    if (item >= train)
        return item < train + test ? 2 : 1; /* flowers has some more, to validate with */
    return item / (size_t)layout->domain->classes % VALIDATED == VALIDATED - 1 ? 1 : 0;
}

static void add_list(const struct layout *layout, int list, size_t prefix, struct text *text)
{
    const char *before = "";
    text_add(text, "\"%s\": [", keys[list]);
    for (size_t i = 0; i < layout->count; i++) {
        size_t item = layout->pictures[i].item;
        int label = layout_label(layout, item);
        if (list_of(layout, item) != list)
            continue;
        text_add(text, "%s\n[\"%s\", %d, \"%s\"]", before, layout->pictures[i].path + prefix, label,
                 layout->domain->class_names[label]);
        before = ",";
    }
    text_add(text, "]");
}

static status write_split(const struct layout *layout, const char *path, size_t prefix, struct error *error)
{
    struct text text = {0};
    for (int list = 0; list < LISTS; list++) {
        text_add(&text, list == 0 ? "{" : ",\n");
        add_list(layout, list, prefix, &text);
    }
    text_add(&text, "}\n");
    return layout_text(layout, path, &text, error);
}

/* Lists all pictures in CoOp's split, for datasets that have one. */
static status write_coop_split(const struct layout *layout, struct error *error)
{
    const struct dataset_reader *reader;
    TRY(dataset_reader_find(&reader, layout->domain->name, error));
    const struct coop *coop = reader->coop;
    for (size_t i = 0; coop != NULL && coop->file != NULL && i < COOP_PLACES && coop->places[i].folder != NULL; i++) {
        const struct coop_place *place = &coop->places[i];
        char *prefix = path_format("%s/%s/%s%s", layout->root, place->folder, place->images, *place->images ? "/" : ""),
             *path = path_format("%s/%s", place->folder, coop->file);
        bool here = strncmp(layout->pictures[0].path, prefix, strlen(prefix)) == 0;
        status result = OK;
        if (here)
            result = write_split(layout, path, strlen(prefix), error);
        free(prefix);
        free(path);
        if (here || result != OK)
            return result;
    }
    return OK;
}

/* --- datasets ----------------------------------------------------------------------------------------------------- */

/* In the order of suite_domains, each with its folder below the root. */
static const struct {
    const char *folder;
    status (*write)(struct layout *, struct error *);
} layouts[SUITE_DOMAINS] = {
    {"fgvc-aircraft-2013b", layout_aircraft},
    {"caltech101", layout_caltech101},
    {"cifar-100-python", layout_cifar100},
    {"dtd", layout_dtd},
    {"eurosat", layout_eurosat},
    {"flowers-102", layout_flowers},
    {"food-101", layout_food},
    {"MNIST", layout_mnist},
    {"oxford-iiit-pet", layout_oxford_pet},
    {"stanford_cars", layout_stanford_cars},
    {"SUN397", layout_sun397},
};

static status write_datasets(const char *root, const struct mini_settings *settings, struct error *error)
{
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        TRY(go_on(settings, root, error));
        SCOPED(layout_free) struct layout layout = {.domain = &suite_domains[k], .settings = settings, .root = root};
        log_debug(settings->log, "%s: writing %s", root, layout.domain->name);
        TRY(layouts[k].write(&layout, error));
        TRY(write_coop_split(&layout, error));
        TRY(draw_all(&layout, error));
    }
    return OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* mini.json says that the suite is complete, mini.unfinished that it is being written; both hold the same line. */
struct marker {
    char *complete, *unfinished;
    struct text line;
};

static void marker_make(struct marker *marker, const char *root, uint64_t seed)
{
    marker->complete = path_format("%s/mini.json", root);
    marker->unfinished = path_format("%s/mini.unfinished", root);
    text_add(&marker->line, "{\"suite\": \"mini\", \"generator\": %d, \"seed\": %llu}\n", MINI_GENERATOR,
             (unsigned long long)seed);
}

static void marker_free(struct marker *marker)
{
    free(marker->complete);
    free(marker->unfinished);
    text_free(&marker->line);
}

/* ERROR_ARGUMENT when the marker at path is not ours. */
static status marker_check(const struct marker *marker, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes found = {0};
    TRY(file_read(path, 4096, &found, error));
    bool same = found.size == marker->line.size && memcmp(found.data, marker->line.data, found.size) == 0;
    if (same)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "%s: expected %.*s, found %.*s; remove the folder or choose another one",
                     path, (int)marker->line.size - 1, marker->line.data, (int)strcspn((const char *)found.data, "\n"),
                     (const char *)found.data);
}

/* Refuses a root without a marker that has one of the folders. */
static status refuse_foreign(const char *root, struct error *error)
{
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        OWNED char *path = path_format("%s/%s", root, layouts[k].folder);
        if (file_exists(path))
            return error_set(error, ERROR_ARGUMENT,
                             "%s: already there and not written by this program; choose an empty folder for the suite",
                             path);
    }
    return OK;
}

static status write_marked(const char *root, const struct mini_settings *settings, const struct marker *marker,
                           struct error *error)
{
    if (file_exists(marker->complete)) {
        TRY(marker_check(marker, marker->complete, error));
        unlink(marker->unfinished);
        log_info(settings->log, "%s: the suite is complete, nothing to do", root);
        return OK;
    }
    if (file_exists(marker->unfinished)) {
        TRY(marker_check(marker, marker->unfinished, error));
        temporary_clear_below(root);
    } else {
        TRY(refuse_foreign(root, error));
    }
    TRY(directory_create(root, error));
    TRY(file_write(marker->unfinished, marker->line.data, marker->line.size, error));
    TRY(write_datasets(root, settings, error));
    TRY(file_sync_all(root, error));
    TRY(file_write(marker->complete, marker->line.data, marker->line.size, error));
    unlink(marker->unfinished); /* harmless when it stays: mini.json is looked at first, and the next call removes it */
    return OK;
}

status mini_write(const char *root, const struct mini_settings *settings, struct error *error)
{
    SCOPED(marker_free) struct marker marker = {0};
    marker_make(&marker, root, settings->seed);
    return write_marked(root, settings, &marker, error);
}
