/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hash/block.h"

#include "hash/cpu.h"

#include <errno.h>
#include <sys/random.h>
#include <xxhash.h>
#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#undef XXH3_64bits_withSecret /* the header hides the plain one, which stays the one for other CPUs */
#endif

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

static uint64_t plain(const struct block_key *key, const void *bytes, size_t len) {
    return XXH3_64bits_withSecret(bytes, len, key->secret, sizeof key->secret);
}

#ifdef HAVE_XXH_DISPATCH
/* The library leaves the upper halves of the vector registers in use, which makes all code for the lower
 * halves four times as slow afterwards. */
__attribute__((target("avx"))) static uint64_t wide(
    const struct block_key *key, const void *bytes, size_t len) {
    uint64_t digest = XXH3_64bits_withSecret_dispatch(bytes, len, key->secret, sizeof key->secret);
    __builtin_ia32_vzeroupper();
    return digest;
}

uint64_t block_digest(const struct block_key *key, const void *bytes, size_t len) {
    return cpu_features() & CPU_AVX2 ? wide(key, bytes, len) : plain(key, bytes, len);
}
#else
uint64_t block_digest(const struct block_key *key, const void *bytes, size_t len) {
    return plain(key, bytes, len);
}
#endif
