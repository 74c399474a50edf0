#include "datasets/fetch/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <curl/curl.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/text.h"

enum { CONNECT_SECONDS = 30, SILENCE_SECONDS = 60, REDIRECTS = 10 };

/* A download in progress: `have` bytes lie at path and in digest. */
struct transfer {
    const struct fetch_file *file;
    const struct fetch_settings *settings;
    const char *path;
    int target;
    uint64_t have;
    struct digest digest;
    bool begun, too_long; /* of the answer that is being read */
    uint64_t offered;     /* the file's size by that answer; 0: not known, or as expected */
    int failure;          /* errno of a write that failed */
    CURL *curl;
    char reason[CURL_ERROR_SIZE];
};

/* --- the file ----------------------------------------------------------------------------------------------------- */

static bool restart(struct transfer *transfer)
{
    transfer->have = 0;
    transfer->digest = digest_begin();
    if (ftruncate(transfer->target, 0) != 0 || lseek(transfer->target, 0, SEEK_SET) != 0)
        transfer->failure = errno;
    return transfer->failure == 0;
}

/* Skipped on file systems that do not report their size. */
static status check_space(const struct transfer *transfer, struct error *error)
{
    struct statvfs disk;
    uint64_t left = transfer->file->bytes - transfer->have;
    if (fstatvfs(transfer->target, &disk) != 0 || disk.f_blocks == 0 || left / disk.f_frsize <= disk.f_bavail)
        return OK;
    return error_set(error, ERROR_IO, "%s: needs %llu bytes more, the disk has room for %llu", transfer->path,
                     (unsigned long long)left, (unsigned long long)disk.f_bavail * disk.f_frsize);
}

/* Reads the bytes of an earlier call again, so that the digest covers the bytes on the disk. */
static status open_part(struct transfer *transfer, int folder, struct error *error)
{
    TRY(file_open_own(folder, transfer->path, O_RDWR, &transfer->target, error));
    uint8_t *buffer = xmalloc(1 << 20);
    ssize_t got = -1;
    while (transfer->have <= transfer->file->bytes && (got = read(transfer->target, buffer, 1 << 20)) > 0) {
        digest_add(&transfer->digest, buffer, (size_t)got);
        transfer->have += (uint64_t)got;
    }
    free(buffer);
    if (got < 0)
        return error_errno(error, errno, "%s: cannot be opened for a download", transfer->path);
    if (transfer->have > transfer->file->bytes && !restart(transfer))
        return error_errno(error, transfer->failure, "%s: cannot be emptied", transfer->path);
    return check_space(transfer, error);
}

static bool write_all(struct transfer *transfer, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t written = write(transfer->target, data + done, size - done);
        if (written < 0 && errno != EINTR) {
            transfer->failure = errno;
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* An answer of another size (a page of a portal, another version of the file) replaces nothing. A server that ignores
 * the range sends the file from its beginning. */
static bool begin_answer(struct transfer *transfer)
{
    long code = 0;
    curl_off_t length = -1;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_getinfo(transfer->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    uint64_t size = length < 0 ? transfer->file->bytes : (uint64_t)length + (code == 206 ? transfer->have : 0);
    transfer->begun = true;
    if ((code == 200 || code == 206) && size != transfer->file->bytes)
        transfer->offered = size;
    return transfer->offered == 0 && (code != 200 || restart(transfer));
}

/* libcurl's write function */
static size_t receive(char *data, size_t unit, size_t count, void *context)
{
    struct transfer *transfer = context;
    size_t size = unit * count;
    if (!transfer->begun && !begin_answer(transfer))
        return 0;
    transfer->too_long = size > transfer->file->bytes - transfer->have;
    if (transfer->too_long || !write_all(transfer, data, size))
        return 0;
    digest_add(&transfer->digest, data, size);
    transfer->have += size;
    return size;
}

/* --- one answer --------------------------------------------------------------------------------------------------- */

/* libcurl's progress function; it is called once a second, and more often while bytes arrive. */
static int report(void *context, curl_off_t total, curl_off_t done, curl_off_t upload, curl_off_t uploaded)
{
    const struct transfer *transfer = context;
    const struct fetch_settings *settings = transfer->settings;
    if (settings->progress != NULL)
        settings->progress(settings->context, transfer->file->name, transfer->have, transfer->file->bytes);
    return stop_requested(settings->stop);
}

/* Where libcurl was built for another system than this one, as in a wheel: NULL means that libcurl knows itself. */
static const char *authorities(void)
{
    static const char *const bundles[] = {"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"};
    const char *own = curl_version_info(CURLVERSION_NOW)->cainfo;
    for (size_t i = 0; own != NULL && !file_exists(own) && i < sizeof bundles / sizeof *bundles; i++) {
        if (file_exists(bundles[i]))
            return bundles[i];
    }
    return own;
}

static void set_options(struct transfer *transfer, const char *url)
{
    char range[32];
    CURL *curl = transfer->curl;
    snprintf(range, sizeof range, "%llu-", (unsigned long long)transfer->have);
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CAINFO, authorities());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)transfer->file->bytes);
    curl_easy_setopt(curl, CURLOPT_RANGE, transfer->have > 0 ? range : NULL);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "mtil");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_SECONDS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, report);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
}

/* Why the answer of url was not the end of the file; "" when the file has its size. */
static void ask(struct transfer *transfer, const char *url, struct text *why)
{
    long code = 0;
    transfer->begun = transfer->too_long = false;
    transfer->offered = 0;
    transfer->reason[0] = 0;
    set_options(transfer, url);
    text_clear(why);
    CURLcode result = curl_easy_perform(transfer->curl);
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &code);
    uint64_t bytes = transfer->file->bytes;
    if (transfer->offered > 0)
        text_add(why, "expected %llu bytes, the server has %llu", (unsigned long long)bytes,
                 (unsigned long long)transfer->offered);
    else if (transfer->too_long || result == CURLE_FILESIZE_EXCEEDED)
        text_add(why, "expected %llu bytes, the server has more", (unsigned long long)bytes);
    else if (result != CURLE_OK) /* with an @ it may quote a proxy's password */
        text_add(why, "%s",
                 transfer->reason[0] != 0 && strchr(transfer->reason, '@') == NULL ? transfer->reason
                                                                                   : curl_easy_strerror(result));
    else if (transfer->have < bytes)
        text_add(why, "expected %llu bytes, the server sent %llu", (unsigned long long)bytes,
                 (unsigned long long)transfer->have);
    /* no such range, or a complete answer that is no beginning: the bytes so far are useless to the next mirror */
    bool other = transfer->begun && code == 200 && result == CURLE_OK && transfer->have < bytes;
    if (transfer->too_long || code == 416 || other)
        restart(transfer);
}

/* --- all mirrors -------------------------------------------------------------------------------------------------- */

static bool is_right(const struct transfer *transfer, struct text *why)
{
    struct digest digest = transfer->digest;
    char hash[DIGEST_SIZE];
    digest_end(&digest, hash);
    if (transfer->have < transfer->file->bytes)
        return false;
    text_clear(why);
    text_add(why, "expected SHA-256 %s, found %s", transfer->file->sha256, hash);
    return strcmp(hash, transfer->file->sha256) == 0;
}

static status refuse(const struct transfer *transfer, struct error *error)
{
    if (transfer->failure != 0)
        return error_errno(error, transfer->failure,
                           "%s: cannot be written; the bytes so far are kept for the next try", transfer->path);
    return error_set(error, ERROR_STOPPED, "%s: stopped after %llu of %llu bytes, which are kept for the next try",
                     transfer->path, (unsigned long long)transfer->have, (unsigned long long)transfer->file->bytes);
}

/* For messages; the caller frees with curl_free. NULL: it is no address, or there is no memory. */
static char *without_password(const char *url)
{
    CURLU *parts = curl_url();
    char *shown = NULL;
    if (parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_set(parts, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
        curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK)
        curl_url_get(parts, CURLUPART_URL, &shown, 0);
    curl_url_cleanup(parts);
    return shown;
}

/* Asks one mirror as long as each answer brings more bytes, and once from the start if an old beginning may be wrong.
 * *right: the file is complete. */
static status try_mirror(struct transfer *transfer, const char *url, const char *shown, bool *right, struct text *why,
                         struct error *error)
{
    bool resumed = transfer->have > 0, again = true;
    while (again) {
        uint64_t before = transfer->have;
        if (transfer->have < transfer->file->bytes)
            ask(transfer, url, why);
        if (transfer->failure != 0 || stop_requested(transfer->settings->stop))
            return refuse(transfer, error);
        *right = is_right(transfer, why);
        if (*right)
            return OK;
        again = transfer->have > before;
        if (transfer->have == transfer->file->bytes && !restart(transfer))
            return refuse(transfer, error);
        if (transfer->have == 0) {
            again = resumed;
            resumed = false;
        }
        log_info(transfer->settings->log, "%s: %s%s", shown, why->data, again ? "; trying again" : "");
    }
    return OK;
}

static status try_mirrors(struct transfer *transfer, const char *const *urls, struct error *error)
{
    SCOPED(text_free) struct text why = {0}, reasons = {0};
    bool right = is_right(transfer, &why);
    status result = OK;
    for (; *urls != NULL && !right && result == OK; urls++) {
        char *address = without_password(*urls);
        const char *shown = address != NULL ? address : "an address";
        result = try_mirror(transfer, *urls, shown, &right, &why, error);
        text_add(&reasons, "%s%s: %s", reasons.size > 0 ? "; " : "", shown, why.data);
        curl_free(address);
    }
    if (result == OK && !right)
        result = error_set(error, ERROR_IO, "%s could not be downloaded: %s", transfer->file->name, reasons.data);
    return result;
}

status transfer_get(const struct fetch_file *file, const char *const *urls, int folder, const char *path,
                    const struct fetch_settings *settings, struct error *error)
{
    struct transfer transfer = {
        .file = file, .settings = settings, .path = path, .target = -1, .digest = digest_begin()};
    status result = open_part(&transfer, folder, error);
    if (result == OK && (transfer.curl = curl_easy_init()) == NULL)
        result = error_set(error, ERROR_MEMORY, "%s: libcurl could not be started", file->name);
    NEXT(result, try_mirrors(&transfer, urls, error));
    curl_easy_cleanup(transfer.curl);
    if (transfer.target >= 0 && close(transfer.target) != 0 && result == OK)
        result = error_errno(error, errno, "%s: cannot be written", path);
    return result;
}
