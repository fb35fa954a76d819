/* SPDX-License-Identifier: Apache-2.0 */
#include "hash/block.h"

#include <errno.h>
#include <sys/random.h>
#include <xxhash.h>

_Static_assert(BLOCK_KEY_BYTES >= XXH3_SECRET_SIZE_MIN, "XXH3 needs a longer secret");

int block_key_new(struct block_key *ret_key, struct ckpt_err *err) {
    struct block_key key;
    size_t have = 0;
    while (have < sizeof key.secret) {
        ssize_t got = getrandom(key.secret + have, sizeof key.secret - have, 0);
        if (got < 0 && errno != EINTR)
            return err_os(err, errno, "draw a random key");
        have += got > 0 ? (size_t)got : 0;
    }
    *ret_key = key;
    return 0;
}

uint64_t block_digest(const struct block_key *key, const void *bytes, size_t len) {
    return XXH3_64bits_withSecret(bytes, len, key->secret, sizeof key->secret);
}
