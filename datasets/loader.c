/* A ring of batches. A background thread, or the reader while it waits, claims one image of the earliest unfinished
 * batch, decodes it without holding the lock, and marks it finished. A batch depends on its step only, so the
 * assignment of images to threads does not matter. */
#include "datasets/loader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

struct slot {
    uint64_t step;
    size_t images;               /* of the batch */
    size_t count, claimed, done; /* those to decode, given out, finished */
    uint8_t *pixels;             /* [batch, R, R, 3] */
    int32_t *labels;
    uint32_t *items;
    size_t failed; /* the first image that failed; count: none */
    struct error error;
};

struct loader {
    struct loader_settings settings;
    struct cache_part *cached; /* NULL: nothing is kept */
    size_t items, batches, image_bytes;
    uint32_t *order; /* [items] of epoch ordered_epoch */
    uint64_t ordered_epoch;
    pthread_mutex_t mutex;
    pthread_cond_t work, finished; /* there are images to claim; a batch is complete */
    struct slot *slots;            /* slot i holds the steps with step mod slot_count = i */
    size_t slot_count;
    uint64_t next; /* the ring holds the steps [next, next + slot_count) */
    bool stop;
    pthread_t *threads;
    size_t started;
};

/* --- what a batch holds ------------------------------------------------------------------------------------------- */

static void order_items(struct loader *loader, uint64_t epoch)
{
    const struct loader_settings *settings = &loader->settings;
    if (loader->ordered_epoch == epoch)
        return;
    enum rng_purpose purpose = settings->order != 0 ? settings->order : RNG_ORDER;
    struct rng rng = rng_make(settings->seed, purpose, settings->task, (uint32_t)epoch);
    rng_permutation(&rng, loader->items, loader->order);
    loader->ordered_epoch = epoch;
}

struct loader_share loader_share_of(size_t total, size_t part, size_t parts)
{
    if (parts == 0)
        return (struct loader_share){0, total};
    size_t first = (total * part + parts - 1) / parts, end = (total * (part + 1) + parts - 1) / parts;
    return (struct loader_share){first, end - first};
}

size_t loader_batch_size(const struct loader *loader, uint64_t step)
{
    size_t batch = loader->settings.batch, first = (size_t)(step % loader->batches) * batch;
    return loader->items - first < batch ? loader->items - first : batch;
}

/* At a place of the epoch's order. */
static uint32_t item_at(const struct loader *loader, size_t place)
{
    uint32_t index = loader->settings.shuffle ? loader->order[place] : (uint32_t)place;
    return loader->settings.items != NULL ? loader->settings.items[index] : index;
}

/* Prepares slot, which no thread is using. With a share of a mixed batch, the last image is the one before the first. */
static void start_slot(struct loader *loader, struct slot *slot, uint64_t step)
{
    const struct loader_settings *settings = &loader->settings;
    size_t total = loader_batch_size(loader, step), first = (size_t)(step % loader->batches) * settings->batch;
    struct loader_share share = loader_share_of(total, settings->part, settings->parts);
    if (settings->shuffle)
        order_items(loader, step / loader->batches);
    slot->step = step;
    slot->images = slot->count = share.count;
    for (size_t i = 0; i < share.count; i++)
        slot->items[i] = item_at(loader, first + share.first + i);
    if (augmentation_mixes(&settings->augmentation) && share.count > 0 && share.count < total)
        slot->items[slot->count++] = item_at(loader, first + (share.first + total - 1) % total);
    slot->claimed = slot->done = 0;
    slot->failed = slot->count;
}

static void training_crop(const struct loader *loader, uint64_t step, uint32_t item, const struct image *image,
                          uint8_t *pixels)
{
    const struct loader_settings *settings = &loader->settings;
    uint32_t epoch = (uint32_t)(step / loader->batches);
    struct rng rng = rng_make(settings->seed, RNG_CROP, settings->task, epoch),
               crop = rng_make(settings->seed, RNG_CROP, settings->task, settings->augmentation.one_crop ? 0 : epoch);
    double scale = settings->augmentation.crop_scale > 0 ? settings->augmentation.crop_scale : IMAGE_CROP_SCALE;
    struct image_box box = image_draw_box(image->width, image->height, scale, &crop, item);
    image_training_crop(image, box, settings->resolution, pixels);
    augment_image(&settings->augmentation, rng, item, settings->resolution, pixels);
}

/* The cache holds whole images if they are augmented or squashed, otherwise the crops. */
static bool keeps_whole(const struct loader_settings *settings)
{
    return settings->augment || settings->squash;
}

static status read_image(const struct loader *loader, uint64_t step, uint32_t item, uint8_t *pixels, int32_t *label,
                         struct error *error)
{
    const struct loader_settings *settings = &loader->settings;
    struct image image;
    bool whole = keeps_whole(settings);
    *label = dataset_label(settings->dataset, settings->split, item);
    if (!whole && cache_copy(loader->cached, item, pixels))
        return OK;
    bool cached = whole && cache_find(loader->cached, item, &image);
    if (!cached)
        TRY(dataset_read(settings->dataset, settings->split, item, &image, NULL, error));
    if (whole && !cached)
        cache_keep(loader->cached, item, &image);
    status result = OK;
    if (settings->augment)
        training_crop(loader, step, item, &image, pixels);
    else
        result = (settings->squash ? image_squash : image_evaluation_crop)(&image, settings->resolution, pixels, error);
    if (cached)
        cache_release(loader->cached, &image);
    else
        image_free(&image);
    if (result == OK && !whole)
        cache_keep(loader->cached, item,
                   &(struct image){.pixels = pixels, .width = settings->resolution, .height = settings->resolution});
    return result;
}

/* --- Sharing the work; the mutex is held on entry and on return --- */

static struct slot *slot_of(struct loader *loader, uint64_t step)
{
    return &loader->slots[step % loader->slot_count];
}

/* The earliest slot with an unclaimed image; NULL: none. */
static struct slot *find_work(struct loader *loader)
{
    for (uint64_t step = loader->next; step < loader->next + loader->slot_count; step++) {
        struct slot *slot = slot_of(loader, step);
        if (slot->claimed < slot->count)
            return slot;
    }
    return NULL;
}

/* Claims and decodes one image. Of several failures the first in the batch is kept, independent of timing. */
static void work_on(struct loader *loader, struct slot *slot)
{
    size_t i = slot->claimed++;
    struct error error;
    pthread_mutex_unlock(&loader->mutex);
    status result = read_image(loader, slot->step, slot->items[i], slot->pixels + i * loader->image_bytes,
                               &slot->labels[i], &error);
    if (result == OK && loader->settings.mirror)
        augment_mirror(loader->settings.resolution, slot->pixels + i * loader->image_bytes);
    pthread_mutex_lock(&loader->mutex);
    if (result != OK && i < slot->failed) {
        slot->failed = i;
        slot->error = error;
    }
    if (++slot->done == slot->claimed)
        pthread_cond_broadcast(&loader->finished);
}

static void *thread_main(void *argument)
{
    struct loader *loader = argument;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        struct slot *slot = find_work(loader);
        if (slot != NULL)
            work_on(loader, slot);
        else
            pthread_cond_wait(&loader->work, &loader->mutex);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* Moves the ring to begin at step. Waits for images that are being decoded for slots of other steps, and discards
 * these. */
static void move_ring(struct loader *loader, uint64_t step)
{
    loader->next = step;
    for (size_t k = 0; k < loader->slot_count; k++) {
        struct slot *slot = slot_of(loader, step + k);
        if (slot->step == step + k)
            continue;
        slot->count = slot->claimed; /* no image can be claimed any more */
        while (slot->done < slot->count)
            pthread_cond_wait(&loader->finished, &loader->mutex);
        start_slot(loader, slot, step + k);
    }
    pthread_cond_broadcast(&loader->work);
}

/* --- Public functions --- */

static status check_settings(const struct loader *loader, struct error *error)
{
    const struct loader_settings *settings = &loader->settings;
    const char *name = dataset_name(settings->dataset);
    if (loader->items == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: there are no %s images to load", name,
                         settings->split == SPLIT_TRAIN ? "training" : "test");
    if (!settings->augment && augmentation_key(&settings->augmentation) != NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: %s is for images that are cropped at random", name,
                         augmentation_key(&settings->augmentation));
    for (size_t i = 0; settings->items != NULL && i < loader->items; i++)
        if (settings->items[i] >= dataset_size(settings->dataset, settings->split))
            return error_set(error, ERROR_ARGUMENT, "%s: asked for image %u of %zu", name, settings->items[i],
                             dataset_size(settings->dataset, settings->split));
    return OK;
}

static void create_slots(struct loader *loader)
{
    size_t batch = loader->settings.batch, side = (size_t)loader->settings.resolution;
    loader->image_bytes = side * side * 3;
    loader->slots = xcalloc(loader->slot_count, sizeof *loader->slots);
    loader->order = xmalloc(loader->items * sizeof *loader->order);
    for (size_t i = 0; i < loader->slot_count; i++) {
        struct slot *slot = &loader->slots[i];
        slot->pixels = xmalloc(array_size(batch, loader->image_bytes));
        slot->labels = xmalloc(array_size(batch, sizeof *slot->labels));
        slot->items = xmalloc(array_size(batch, sizeof *slot->items));
        start_slot(loader, slot, i);
    }
}

static status start_threads(struct loader *loader, struct error *error)
{
    size_t count = loader->settings.threads;
    loader->threads = xcalloc(count + 1, sizeof *loader->threads);
    for (; loader->started < count; loader->started++) {
        int number = pthread_create(&loader->threads[loader->started], NULL, thread_main, loader);
        if (number != 0)
            return error_errno(error, number, "cannot start thread %zu of %zu that decode images", loader->started + 1,
                               count);
    }
    return OK;
}

status loader_create(struct loader **loader, const struct loader_settings *settings, struct error *error)
{
    SCOPED(loader_destroy_at) struct loader *created = xcalloc(1, sizeof *created);
    *loader = NULL;
    created->settings = *settings;
    created->items = settings->items != NULL ? settings->item_count : dataset_size(settings->dataset, settings->split);
    bool whole = settings->full && created->items >= settings->batch;
    created->batches = (created->items + (whole ? 0 : settings->batch - 1)) / settings->batch;
    created->slot_count = settings->threads > 0 ? settings->ahead + 1 : 1;
    created->ordered_epoch = UINT64_MAX;
    pthread_mutex_init(&created->mutex, NULL);
    pthread_cond_init(&created->work, NULL);
    pthread_cond_init(&created->finished, NULL);
    TRY(check_settings(created, error));
    TRY(cache_open(settings->cache, settings->dataset, settings->split,
                   keeps_whole(settings) ? CACHE_WHOLE : settings->resolution, &created->cached, error));
    create_slots(created);
    TRY(start_threads(created, error));
    *loader = TAKE(created);
    return OK;
}

static void copy_mixed(const struct loader *loader, const struct slot *slot, uint8_t *pixels, int32_t *partners,
                       float *own)
{
    const struct loader_settings *s = &loader->settings;
    struct mixing mixing = augment_draw_mixing(&s->augmentation, s->seed, s->task, slot->step, s->resolution);
    for (size_t i = 0; i < slot->images; i++) {
        size_t partner = i > 0 ? i - 1 : slot->count - 1;
        augment_mix(&mixing, s->resolution, slot->pixels + i * loader->image_bytes,
                    slot->pixels + partner * loader->image_bytes, pixels + i * loader->image_bytes);
        partners[i] = slot->labels[partner];
    }
    *own = mixing.own;
}

status loader_read(struct loader *loader, uint64_t step, uint8_t *pixels, int32_t *labels, int32_t *partners,
                   float *own, size_t *count, struct error *error)
{
    pthread_mutex_lock(&loader->mutex);
    if (step < loader->next || step >= loader->next + loader->slot_count)
        move_ring(loader, step);
    struct slot *slot = slot_of(loader, step);
    while (slot->done < slot->count) {
        if (slot->claimed < slot->count)
            work_on(loader, slot);
        else
            pthread_cond_wait(&loader->finished, &loader->mutex);
    }
    status result = OK;
    *count = slot->images;
    if (slot->failed < slot->count) {
        *error = slot->error;
        result = error->code;
        *count = 0;
    }
    pthread_mutex_unlock(&loader->mutex);
    /* No thread changes a complete batch until the ring moves, and only this caller moves it. */
    if (result == OK) {
        if (augmentation_mixes(&loader->settings.augmentation))
            copy_mixed(loader, slot, pixels, partners, own);
        else
            memcpy(pixels, slot->pixels, slot->images * loader->image_bytes);
        memcpy(labels, slot->labels, slot->images * sizeof *labels);
    }
    pthread_mutex_lock(&loader->mutex);
    if (loader->settings.threads > 0)
        move_ring(loader, step + 1);
    pthread_mutex_unlock(&loader->mutex);
    return result;
}

void loader_destroy(struct loader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->stop = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    for (size_t i = 0; i < loader->started; i++)
        pthread_join(loader->threads[i], NULL);
    for (size_t i = 0; loader->slots != NULL && i < loader->slot_count; i++) {
        free(loader->slots[i].pixels);
        free(loader->slots[i].labels);
        free(loader->slots[i].items);
    }
    pthread_mutex_destroy(&loader->mutex);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->finished);
    cache_close(loader->cached);
    free(loader->slots);
    free(loader->order);
    free(loader->threads);
    free(loader);
}
