/* A server of one file over HTTP on this machine, in a thread, that misbehaves as the first folder of the address asks:
 *
 *     whole    serves the file, and ranges of it          moved    redirects to whole
 *     deaf     ignores ranges                             missing  404
 *     cut      ends each answer after `cut` bytes         wrong    other bytes of the same number
 *     stall    sends `cut` bytes, then nothing            long     one byte more
 *     portal   a page that begs for a login               page     the same, without its length
 *     huge     promises 10^22 bytes and sends none        ftp      redirects to another protocol
 *
 *     struct server server;
 *     server_start(&server, data, size);
 *     … server.base, "http://127.0.0.1:PORT" …
 *     server_stop(&server);
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct server {
    const uint8_t *data; /* borrowed */
    size_t size, cut;
    char base[64];
    int listener;
    pthread_t thread;
    atomic_size_t requests, ranges, sent; /* ranges: requests for one; sent: bytes of content */
};

void server_start(struct server *server, const void *data, size_t size);
void server_stop(struct server *server);
