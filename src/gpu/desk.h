/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where other processes of the same user get descriptors: a socket (AF_UNIX, SOCK_SEQPACKET, 0600, in a
 * directory of its own, 0700). A client sends a token, one packet; the answer is one packet: "y" with the
 * descriptor, or "n". A thread of its own answers, so that nobody waits for what else goes on.
 *
 * Threads: desk_offer and desk_withdraw from any thread.
 */
#ifndef GPU_DESK_H
#define GPU_DESK_H

#include "base/err.h"

#define DESK_TOKEN_DIGITS 32

struct desk;

struct desk_offer {
    char token[DESK_TOKEN_DIGITS + 1]; /* unguessable */
    int fd;                            /* of whoever offers it; stays open until it is withdrawn */
    struct desk_offer *before, *after;
};

/* base: where the directory is made; where that cannot be, in /tmp. Directories that a daemon left which was
 * killed are removed on the way. Errors: IO, NOMEM. */
int desk_new(const char *base, struct desk **ret_desk, struct ckpt_err *err);
void desk_free(struct desk *desk); /* removes the directory; NULL is allowed */

const char *desk_path(const struct desk *desk); /* of the socket */

/* Fills the offer's token; the offer stays where it is until desk_withdraw. Errors: IO (no random bytes). */
int desk_offer(struct desk *desk, struct desk_offer *offer, int fd, struct ckpt_err *err);
void desk_withdraw(struct desk *desk, struct desk_offer *offer);

#endif
