/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading past the page cache, without giving up mappings. A kernel maps files that are opened so only when
 * the daemon's answer to its greeting (INIT) has asked for it, which libfuse 3.14 cannot: the answer is
 * completed on its way. What does not look as expected goes out as it is, and everything stays in the cache.
 */
#ifndef FUSE_GREETING_H
#define FUSE_GREETING_H

#include "fuse/front.h"

#include <stdatomic.h>

/* To be called with a session that is mounted and has not answered yet. front->greeting.direct tells the
 * outcome before the first file is opened. Errors: negative errno. */
int greeting_ask_direct(struct front *front);

#endif
