#include "tests/datasets/server.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"
static bool asks_for(const char *request, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(request, "GET /", 5) == 0 && strncmp(request + 5, folder, size) == 0 && request[5 + size] == '/';
}

static void send_all(int peer, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(peer, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        done += (size_t)sent;
    }
}

static void send_content(struct server *server, int peer, const char *request, size_t first)
{
    char head[256];
    bool limited = asks_for(request, "cut") || asks_for(request, "stall");
    size_t left = server->size - first, count = limited && left > server->cut ? server->cut : left;
    size_t more = asks_for(request, "long") ? 1 : 0;
    if (first > 0)
        snprintf(head, sizeof head, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n", first,
                 server->size - 1, server->size);
    else
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\n");
    size_t size = strlen(head);
    snprintf(head + size, sizeof head - size, "Content-Length: %zu\r\nConnection: close\r\n\r\n", left + more);
    send_all(peer, head, strlen(head));
    if (asks_for(request, "wrong"))
        for (size_t i = 0; i < count; i++)
            send_all(peer, "x", 1);
    else
        send_all(peer, server->data + first, count);
    send_all(peer, "x", more);
    atomic_fetch_add(&server->sent, count);
}

static void answer(struct server *server, int peer)
{
    char request[4096] = "", rest[256];
    size_t size = 0, first = 0;
    while (size + 1 < sizeof request && strstr(request, "\r\n\r\n") == NULL) {
        ssize_t got = recv(peer, request + size, sizeof request - 1 - size, 0);
        if (got <= 0)
            return;
        request[size += (size_t)got] = 0;
    }
    const char *range = strstr(request, "Range: bytes=");
    atomic_fetch_add(&server->requests, 1);
    atomic_fetch_add(&server->ranges, range != NULL);
    if (range != NULL && !asks_for(request, "deaf"))
        first = strtoull(range + strlen("Range: bytes="), NULL, 10);
    if (asks_for(request, "missing")) {
        snprintf(rest, sizeof rest, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone");
        send_all(peer, rest, strlen(rest));
    } else if (asks_for(request, "moved") || asks_for(request, "ftp")) {
        snprintf(rest, sizeof rest,
                 "HTTP/1.1 302 Found\r\nLocation: %s/whole/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                 asks_for(request, "ftp") ? "ftp://127.0.0.1:1" : server->base);
        send_all(peer, rest, strlen(rest));
    } else if (asks_for(request, "huge")) {
        snprintf(rest, sizeof rest, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000000000000000\r\n\r\n");
        send_all(peer, rest, strlen(rest));
    } else if (asks_for(request, "portal") || asks_for(request, "page")) {
        snprintf(rest, sizeof rest, "HTTP/1.1 200 OK\r\n%sConnection: close\r\n\r\nPlease log in first",
                 asks_for(request, "portal") ? "Content-Length: 19\r\n" : "");
        send_all(peer, rest, strlen(rest));
    } else {
        send_content(server, peer, request, first);
    }
    while ((asks_for(request, "stall") || asks_for(request, "huge")) &&
           recv(peer, rest, sizeof rest, 0) > 0) /* until the other end hangs up */
        ;
}

static void *serve(void *context)
{
    struct server *server = context;
    int peer;
    while ((peer = accept(server->listener, NULL, NULL)) >= 0) {
        answer(server, peer);
        close(peer);
    }
    return NULL;
}

void server_start(struct server *server, const void *data, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *server = (struct server){.data = data, .size = size, .cut = size};
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &length), 0);
    snprintf(server->base, sizeof server->base, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

void server_stop(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR); /* ends accept */
    pthread_join(server->thread, NULL);
    close(server->listener);
}
