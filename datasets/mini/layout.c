#include "datasets/mini/layout.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/file.h"
#include "datasets/image/image.h"

enum { JPEG_QUALITY = 92, PICTURES_AT_ONCE = 64 };

struct layout_picture {
    char *path;
    size_t item;
};

size_t layout_items(const struct layout *layout, bool test, size_t *first)
{
    *first = test ? (size_t)layout->domain->train : 0;
    return (size_t)(test ? layout->domain->test : layout->domain->train);
}

int layout_label(const struct layout *layout, size_t item)
{
    return (int)(item % (size_t)layout->domain->classes);
}

/* "root/words"; the caller frees it. */
static char *below_root(const struct layout *layout, const char *format, va_list arguments)
{
    struct text path = {0};
    text_add(&path, "%s/", layout->root);
    text_add_list(&path, format, arguments);
    return path.data;
}

void layout_picture(struct layout *layout, size_t item, const char *format, ...)
{
    GROW(layout->pictures, layout->count);
    va_list arguments;
    va_start(arguments, format);
    char *path = below_root(layout, format, arguments);
    va_end(arguments);
    layout->pictures[layout->count++] = (struct layout_picture){path, item};
}

status layout_folder(const struct layout *layout, struct error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *path = below_root(layout, format, arguments);
    va_end(arguments);
    status result = directory_create(path, error);
    free(path);
    return result;
}

size_t layout_picture_at(const struct layout *layout, size_t i, const char **path)
{
    *path = layout->pictures[i].path;
    return layout->pictures[i].item;
}

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
    (void)worker;
    struct round *round = context;
    struct error error = {0};
    if (draw_one(round->layout, &round->layout->pictures[round->first + job], &error) == OK)
        return;
    pthread_mutex_lock(&round->lock);
    if (round->error.code == OK)
        round->error = error;
    pthread_mutex_unlock(&round->lock);
}

status layout_go_on(const struct mini_settings *settings, const char *root, struct error *error)
{
    if (settings->stopped == NULL || !settings->stopped(settings->context))
        return OK;
    return error_set(error, ERROR_STOPPED, "%s: stopped; the same command continues", root);
}

status layout_draw(struct layout *layout, struct error *error)
{
    const struct mini_settings *settings = layout->settings;
    struct round round = {.layout = layout, .lock = PTHREAD_MUTEX_INITIALIZER};
    for (; round.first < layout->count && round.error.code == OK; round.first += PICTURES_AT_ONCE) {
        size_t left = layout->count - round.first, jobs = left < PICTURES_AT_ONCE ? left : PICTURES_AT_ONCE;
        if (settings->progress != NULL)
            settings->progress(settings->context, layout->domain->name, round.first, layout->count);
        TRY(layout_go_on(settings, layout->root, error));
        threads_run(settings->threads, jobs, draw_job, &round);
    }
    if (round.error.code != OK)
        return error_set(error, round.error.code, "%s", round.error.message);
    if (settings->progress != NULL)
        settings->progress(settings->context, layout->domain->name, layout->count, layout->count);
    return OK;
}

void layout_free(struct layout *layout)
{
    for (size_t i = 0; i < layout->count; i++)
        free(layout->pictures[i].path);
    free(layout->pictures);
    text_free(&layout->list);
    *layout = (struct layout){0};
}

status layout_text(const struct layout *layout, const char *path, struct text *text, struct error *error)
{
    char *whole = path_format("%s/%s", layout->root, path);
    status result = file_write(whole, text->data, text->size, error);
    free(whole);
    text_free(text);
    return result;
}

status layout_class_names(const struct layout *layout, const char *path, struct error *error)
{
    struct text text = {0};
    for (int i = 0; i < layout->domain->classes; i++)
        text_add(&text, "%s\n", layout->domain->class_names[i]);
    return layout_text(layout, path, &text, error);
}
