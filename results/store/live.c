/* The file beside a database, "DATABASE-lock": locks of runs, and what they report. */
#include "results/store/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/threads.h"
#include "results/store/store_internal.h"

#define RETRY_MS 10

status lock_file_open(struct lock_file *locks, const char *database_path, bool writable, struct error *error)
{
    *locks = (struct lock_file){.descriptor = -1, .path = path_format("%s-lock", database_path)};
    if (writable)
        return file_open_own(AT_FDCWD, locks->path, O_RDWR, &locks->descriptor, error);
    locks->descriptor = open(locks->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return OK;
}

void lock_file_close(struct lock_file *locks)
{
    if (locks->descriptor >= 0)
        close(locks->descriptor);
    free(locks->path);
    *locks = (struct lock_file){.descriptor = -1};
}

/* Returns errno, or 0; F_OFD_GETLK leaves in *type whether another has it. */
static int control(const struct lock_file *locks, int command, int64_t number, short *type)
{
    struct flock range = {.l_type = *type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    int code;
    do
        code = fcntl(locks->descriptor, command, &range);
    while (code != 0 && errno == EINTR);
    *type = range.l_type;
    return code == 0 ? 0 : errno;
}

status lock_take(struct lock_file *locks, int64_t number, int patience, bool *taken, struct error *error)
{
    for (int waited = 0;; waited += RETRY_MS) {
        int code = control(locks, F_OFD_SETLK, number, &(short){F_WRLCK});
        *taken = code == 0;
        if (code != 0 && code != EAGAIN && code != EACCES)
            return error_errno(error, code, "%s: cannot be locked; does its file system support locks?", locks->path);
        if (*taken || waited >= patience || stop_requested(locks->stop))
            return OK;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    }
}

void lock_give(struct lock_file *locks, int64_t number)
{
    control(locks, F_OFD_SETLK, number, &(short){F_UNLCK});
}

/* --- Reports --- */

/* Where it cannot be written, watchers see nothing new, and the run continues. */
static void put(const struct store *store, int64_t run, const char text[LIVE_SIZE])
{
    if (store->locks.descriptor >= 0 && pwrite(store->locks.descriptor, text, LIVE_SIZE, (off_t)run * LIVE_SIZE) < 0)
        return;
}

void live_write(struct store *store, int64_t run, const struct live *live)
{
    char text[LIVE_SIZE] = "";
    SCOPED(json_decref_at)
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "activity", live->activity, "subject",
                  live->subject, "task", (json_int_t)live->task, "tasks", (json_int_t)live->tasks, "step",
                  (json_int_t)live->step, "steps", (json_int_t)live->steps, "loss", live->loss, "images_per_second",
                  live->images_per_second, "seconds_left", live->seconds_left, "done", live->done);
    if (json_dumpb(json, text, sizeof text - 1, 0) < sizeof text)
        put(store, run, text);
}

void live_erase(struct store *store, int64_t run)
{
    put(store, run, (char[LIVE_SIZE]){0});
}

/* A store that only reads opens the file as soon as there is one. */
static int descriptor_of(struct store *store)
{
    const char *path = database_full_path(store->database);
    if (store->locks.descriptor < 0 && *path) {
        lock_file_close(&store->locks);
        lock_file_open(&store->locks, path, false, NULL);
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
    SCOPED(json_decref_at) json_t *json = json_loads(text, 0, NULL);
    *live = (struct live){.task = json_integer_value(json_object_get(json, "task")),
                          .tasks = json_integer_value(json_object_get(json, "tasks")),
                          .seconds_left = json_number_value(json_object_get(json, "seconds_left")),
                          .done = json_number_value(json_object_get(json, "done"))};
    return json != NULL;
}

bool live_has_process(struct store *store, int64_t run)
{
    short type = F_WRLCK;
    return descriptor_of(store) >= 0 && control(&store->locks, F_OFD_GETLK, run, &type) == 0 && type != F_UNLCK;
}

bool live_is_gone(struct store *store, int64_t run, const char *host)
{
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    return strcmp(own, host) == 0 && !live_has_process(store, run);
}
