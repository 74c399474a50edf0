/* Fetches public datasets from their publishers and mirrors: downloads, checks, unpacks, and moves the whole folder to its place.
 *
 *     const struct fetch_source *source;
 *     TRY(fetch_find("dtd", &source, error));
 *     TRY(fetch_dataset(source, "data", &(struct fetch_settings){.log = log}, error));      // data/dtd
 *
 * The dataset's folder appears in one step, once every file has its published size and SHA-256 and the reader opens the
 * unpacked dataset. Until then everything is in ROOT/FOLDER.download, where an interrupted download continues; links
 * there are not followed, and links and paths that leave the folder are not unpacked. Proxies are taken from the
 * environment, as curl does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/threads.h"

enum { FETCH_MIRRORS = 4 };

enum fetch_kind {
    FETCH_ARCHIVE, /* tar, compressed by gzip or not, or zip */
    FETCH_GZIP,    /* one file, named without ".gz" */
    FETCH_PLAIN
};

struct fetch_file {
    const char *name;
    const char *urls[FETCH_MIRRORS + 1]; /* tried in order; ends with NULL */
    uint64_t bytes;
    const char *sha256;
    enum fetch_kind kind;
    const char *into;  /* the folder below the root that it belongs to, or is unpacked in; "": the root */
    const char *inner; /* the archive to unpack within this one; NULL: this one itself */
};

struct fetch_source {
    const char *name;               /* the reader's */
    const char *folder;             /* below the root; becomes visible when complete */
    const struct fetch_file *files; /* ends with a name of NULL */
    const char *by_hand;            /* why it cannot be fetched, and what to do; NULL: it can */
    const char *gone;               /* what to do where no mirror answers; NULL: nothing is known */
};

extern const struct fetch_source fetch_sources[]; /* ends with a name of NULL */

/* An unknown name is an error with the nearest known one. */
status fetch_find(const char *name, const struct fetch_source **source, struct error *error);

struct fetch_settings {
    const char *from; /* the only mirror to ask, FROM/DATASET/FILE; NULL: the mirrors of the table */
    const struct log *log;
    void (*progress)(void *context, const char *file, uint64_t done, uint64_t bytes); /* may be NULL */
    void *context;
    const struct stop *stop; /* ends with ERROR_STOPPED and keeps the download; may be NULL */
};

/* ERROR_ARGUMENT where from is no address of http or https; the message does not show its password. */
status fetch_check_mirror(const char *from, struct error *error);

/* An existing folder is left as it is, and the result is OK. ERROR_BUSY while another process fetches it. */
status fetch_dataset(const struct fetch_source *source, const char *root, const struct fetch_settings *settings,
                     struct error *error);

const char *fetch_curl_version(void); /* "7.88.1" */
const char *fetch_archive_version(void);
