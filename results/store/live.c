#include "results/store/live.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "results/store/store_internal.h"

#define RECORD_SIZE 256

/* The record in the file, in the machine's byte order; a record with another byte order fails the check. */
struct record {
    uint64_t check;
    struct live live;
    char rest[RECORD_SIZE - sizeof(uint64_t) - sizeof(struct live)];
};

_Static_assert(sizeof(struct record) == RECORD_SIZE, "records lie one behind another");

/* FNV-1a of the bytes after the field, so that a partial write or another version's record is not accepted. */
static uint64_t check_of(const struct record *record)
{
    uint64_t check = 0xcbf29ce484222325u ^ sizeof(struct live);
    const unsigned char *bytes = (const unsigned char *)record;
    for (size_t i = sizeof record->check; i < sizeof *record; i++)
        check = (check ^ bytes[i]) * 0x100000001b3u;
    return check;
}

static void put(const struct store *store, int64_t run, const struct record *record)
{
    if (store->locks.descriptor >= 0 &&
        pwrite(store->locks.descriptor, record, sizeof *record, (off_t)run * RECORD_SIZE) != (ssize_t)sizeof *record)
        return; /* watchers see nothing new, and the run continues */
}

void live_write(struct store *store, int64_t run, const struct live *live)
{
    struct record record;
    memset(&record, 0, sizeof record);
    record.live = *live;
    record.live.updated = (int64_t)time(NULL);
    record.check = check_of(&record);
    put(store, run, &record);
}

void live_erase(struct store *store, int64_t run)
{
    struct record record;
    memset(&record, 0, sizeof record);
    put(store, run, &record);
}

/* A store that only reads opens the file on first use. */
static int descriptor_of(struct store *store)
{
    if (store->locks.descriptor < 0 && !database_writable(store->database)) {
        lock_file_close(&store->locks);
        lock_file_look(&store->locks, database_full_path(store->database));
    }
    return store->locks.descriptor;
}

static bool is_sane(const struct live *live)
{
    return memchr(live->activity, 0, sizeof live->activity) && memchr(live->subject, 0, sizeof live->subject) &&
           live->task >= 0 && live->tasks >= 0 && live->step >= 0 && live->steps >= 0 && isfinite(live->done);
}

bool live_read(struct store *store, int64_t run, struct live *live)
{
    struct record record;
    int descriptor = descriptor_of(store);
    if (descriptor < 0 ||
        pread(descriptor, &record, sizeof record, (off_t)run * RECORD_SIZE) != (ssize_t)sizeof record ||
        record.check != check_of(&record) || !is_sane(&record.live))
        return false;
    *live = record.live;
    return true;
}

bool live_has_process(struct store *store, int64_t run)
{
    return descriptor_of(store) >= 0 && lock_is_taken(&store->locks, run);
}
