#include "results/store/live.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "results/store/store_internal.h"

/* Where it cannot be written, watchers see nothing new, and the run continues. */
static void put(const struct store *store, int64_t run, const char text[LIVE_SIZE])
{
    if (store->locks.descriptor >= 0 && pwrite(store->locks.descriptor, text, LIVE_SIZE, (off_t)run * LIVE_SIZE) < 0)
        return;
}

void live_write(struct store *store, int64_t run, const struct live *live)
{
    char text[LIVE_SIZE] = "";
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "activity", live->activity, "subject",
                  live->subject, "task", (json_int_t)live->task, "tasks", (json_int_t)live->tasks, "step",
                  (json_int_t)live->step, "steps", (json_int_t)live->steps, "loss", live->loss, "images_per_second",
                  live->images_per_second, "seconds_left", live->seconds_left, "done", live->done);
    if (json_dumpb(json, text, sizeof text - 1, 0) < sizeof text)
        put(store, run, text);
    json_decref(json);
}

void live_erase(struct store *store, int64_t run)
{
    put(store, run, (char[LIVE_SIZE]){0});
}

/* A store that only reads opens the file on first use. */
static int descriptor_of(struct store *store)
{
    if (store->locks.descriptor < 0 && !database_writable(store->database)) {
        lock_file_close(&store->locks);
        lock_file_open(&store->locks, database_full_path(store->database), false, NULL);
    }
    return store->locks.descriptor;
}

void live_text(struct store *store, int64_t run, char text[LIVE_SIZE])
{
    int descriptor = descriptor_of(store);
    ssize_t size = descriptor >= 0 ? pread(descriptor, text, LIVE_SIZE - 1, (off_t)run * LIVE_SIZE) : 0;
    text[size > 0 ? size : 0] = '\0';
}

bool live_read(struct store *store, int64_t run, struct live *live)
{
    char text[LIVE_SIZE];
    live_text(store, run, text);
    json_t *json = json_loads(text, 0, NULL);
    *live = (struct live){.task = json_integer_value(json_object_get(json, "task")),
                          .tasks = json_integer_value(json_object_get(json, "tasks")),
                          .seconds_left = json_number_value(json_object_get(json, "seconds_left")),
                          .done = json_number_value(json_object_get(json, "done"))};
    bool read = json != NULL;
    json_decref(json);
    return read;
}

bool live_has_process(struct store *store, int64_t run)
{
    return descriptor_of(store) >= 0 && lock_is_taken(&store->locks, run);
}

bool live_is_gone(struct store *store, int64_t run, const char *host)
{
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    return strcmp(own, host) == 0 && !live_has_process(store, run);
}
