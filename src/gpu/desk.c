/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/desk.h"

#include "base/text.h"
#include "base/thread.h"
#include "gpu/desk_place.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 32 /* that have not asked yet; the oldest makes room for the next */
#define FIXED 2        /* of the polled: the listener, the call to stop */

struct desk {
    struct desk_place place;
    pthread_mutex_t lock; /* of the offers */
    struct desk_offer *offers;
    struct pollfd polled[FIXED + CLIENTS_MAX]; /* the thread's */
    unsigned clients;
    int stop; /* an eventfd */
    pthread_t thread;
};

/* ---- offers ------------------------------------------------------------------------------------------ */

int desk_offer(struct desk *desk, struct desk_offer *offer, int fd, struct ckpt_err *err) {
    uint8_t random[DESK_TOKEN_DIGITS / 2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return err_os(err, errno, "a token for gpu_share=fd");
    text_hex(random, sizeof random, offer->token);
    offer->fd = fd;
    offer->before = NULL;
    pthread_mutex_lock(&desk->lock);
    offer->after = desk->offers;
    if (offer->after)
        offer->after->before = offer;
    desk->offers = offer;
    pthread_mutex_unlock(&desk->lock);
    return 0;
}

void desk_withdraw(struct desk *desk, struct desk_offer *offer) {
    pthread_mutex_lock(&desk->lock);
    *(offer->before ? &offer->before->after : &desk->offers) = offer->after;
    if (offer->after)
        offer->after->before = offer->before;
    pthread_mutex_unlock(&desk->lock);
}

static const struct desk_offer *find(const struct desk *desk, const char *token) {
    const struct desk_offer *offer = desk->offers;
    while (offer && memcmp(offer->token, token, DESK_TOKEN_DIGITS) != 0)
        offer = offer->after;
    return offer;
}

/* ---- answers ----------------------------------------------------------------------------------------- */

static void send_answer(int sock, char answer, int fd) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {0};
    struct iovec part = {.iov_base = &answer, .iov_len = 1};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&packet);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    (void)!sendmsg(sock, &packet, MSG_NOSIGNAL | MSG_DONTWAIT); /* who does not listen gets nothing */
}

/* The descriptor is open as long as the offer is in the list. */
static void answer(struct desk *desk, int sock) {
    char token[DESK_TOKEN_DIGITS + 1];
    ssize_t len = recv(sock, token, sizeof token, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    pthread_mutex_lock(&desk->lock);
    const struct desk_offer *offer = len == DESK_TOKEN_DIGITS ? find(desk, token) : NULL;
    if (len > 0)
        send_answer(sock, offer ? 'y' : 'n', offer ? offer->fd : -1);
    pthread_mutex_unlock(&desk->lock);
}

/* ---- clients ----------------------------------------------------------------------------------------- */

static void hang_up(struct desk *desk, unsigned client) {
    struct pollfd *clients = desk->polled + FIXED;
    close(clients[client].fd);
    desk->clients--;
    memmove(clients + client, clients + client + 1, (desk->clients - client) * sizeof *clients);
}

/* The directory keeps others out; root, and whoever was handed the socket, are judged here. */
static bool is_ours(int sock) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static void admit(struct desk *desk) {
    int sock = accept4(desk->place.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (sock < 0)
        return;
    if (!is_ours(sock)) {
        close(sock);
        return;
    }
    if (desk->clients == CLIENTS_MAX)
        hang_up(desk, 0);
    desk->polled[FIXED + desk->clients++] = (struct pollfd){.fd = sock, .events = POLLIN};
}

static void *run(void *arg) {
    struct desk *desk = arg;
    desk->polled[0] = (struct pollfd){.fd = desk->place.listener, .events = POLLIN};
    desk->polled[1] = (struct pollfd){.fd = desk->stop, .events = POLLIN};
    for (;;) {
        if (poll(desk->polled, FIXED + desk->clients, -1) < 0)
            continue; /* no memory in the kernel, or a signal */
        if (desk->polled[1].revents)
            return NULL;
        for (unsigned i = desk->clients; i-- > 0;) {
            if (!desk->polled[FIXED + i].revents)
                continue;
            answer(desk, desk->polled[FIXED + i].fd);
            hang_up(desk, i);
        }
        if (desk->polled[0].revents)
            admit(desk);
    }
}

/* ---- beginning and end ------------------------------------------------------------------------------- */

const char *desk_path(const struct desk *desk) {
    return desk->place.path;
}

static int start(struct desk *desk, struct ckpt_err *err) {
    desk->stop = eventfd(0, EFD_CLOEXEC);
    if (desk->stop < 0)
        return err_os(err, errno, "gpu_share=fd");
    int failed = thread_start(&desk->thread, run, desk);
    if (!failed)
        return 0;
    close(desk->stop);
    return err_os(err, failed, "a thread for gpu_share=fd");
}

int desk_new(const char *base, struct desk **ret_desk, struct ckpt_err *err) {
    struct desk *desk = calloc(1, sizeof *desk);
    if (!desk)
        return err_set(err, CKPT_E_NOMEM, "no memory for gpu_share=fd");
    int rc = desk_place_make(base, &desk->place, err);
    if (!rc) {
        pthread_mutex_init(&desk->lock, NULL);
        rc = start(desk, err);
        if (rc)
            desk_place_remove(&desk->place);
    }
    if (rc)
        free(desk);
    else
        *ret_desk = desk;
    return rc;
}

void desk_free(struct desk *desk) {
    if (!desk)
        return;
    (void)!write(desk->stop, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(desk->thread, NULL);
    while (desk->clients)
        hang_up(desk, 0);
    close(desk->stop);
    desk_place_remove(&desk->place);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
}
