/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/load.h"

#include "base/ovf.h"
#include "gpu/fault.h"

#include <errno.h>
#include <unistd.h>

bool load_bytes(const struct tensor *tensor, enum gpu_target target, uint64_t *ret_bytes) {
    return gpu_device_bytes(gpu_result(tensor->dtype, tensor->encoding, target), tensor->elements, ret_bytes);
}

int load_begin(struct session *session, const struct load *load, uint64_t *ret_taken, struct ckpt_err *err) {
    const struct tensor *tensor = load->tensor;
    const struct gpu_msg begin = {.type = GPU_BEGIN,
        .u.begin = {.id = load->id,
            .elements = tensor->elements,
            .bytes = tensor->size,
            .dtype = tensor->dtype,
            .encoding = tensor->encoding,
            .target = (uint8_t)load->target,
            .share = (uint8_t)load->share}};
    struct gpu_msg reply;
    uint64_t bytes = 0;
    int rc = session_ask(session, &begin, GPU_ALLOCATED, load->id, &reply, NULL, err);
    if (rc)
        return rc;
    if (!load_bytes(tensor, load->target, &bytes) || reply.u.allocated.bytes != bytes ||
        reply.u.allocated.dtype != gpu_result(tensor->dtype, tensor->encoding, load->target))
        return session_break(session, err, "memory for another tensor");
    *ret_taken = reply.u.allocated.taken;
    return 0;
}

/* ---- the halves -------------------------------------------------------------------------------------- */

/* What is on its way. */
struct filling {
    struct session *session;
    const struct load *load;
    uint64_t off;
    unsigned waiting; /* fills without a reply: 0 to 2, the older one in the half that is next */
    unsigned next;    /* half to write */
    bool refused;     /* the helper has ended the load itself */
};

/* The oldest fill's reply. */
static int hear_filled(struct filling *filling, struct ckpt_err *err) {
    struct gpu_msg reply;
    unsigned half = filling->waiting == 2 ? filling->next : !filling->next;
    int rc = session_hear(filling->session, GPU_FILLED, filling->load->id, &reply, NULL, err);
    filling->waiting--;
    if (rc) {
        filling->refused = true;
        return rc;
    }
    if (reply.u.filled.half != half)
        return session_break(filling->session, err, "the other half was filled");
    return 0;
}

static int fill_next(struct filling *filling, struct ckpt_err *err) {
    const struct load *load = filling->load;
    uint32_t len = (uint32_t)ovf_min(WINDOW_HALF, load->tensor->size - filling->off);
    uint8_t *half = filling->session->window + (size_t)filling->next * WINDOW_HALF;
    int rc = filling->waiting == 2 ? hear_filled(filling, err) : 0;
    if (!rc)
        rc = load->source->read(load->source->arg, load->tensor, filling->off, half, len, load->cancel, err);
    if (rc)
        return rc;
    const struct gpu_msg fill = {.type = GPU_FILL,
        .u.fill = {.id = load->id, .off = filling->off, .len = len, .half = (uint8_t)filling->next}};
    rc = session_tell(filling->session, &fill, err);
    filling->waiting++;
    filling->off += len;
    filling->next = !filling->next;
    return rc;
}

static int fill_all(struct filling *filling, struct ckpt_err *err) {
    const struct load *load = filling->load;
    const struct ckpt_cancel *cancel = load->cancel;
    int rc = load->source->vouch(load->source->arg, load->tensor, cancel, err);
    while (!rc && filling->off < load->tensor->size) {
        if (cancel && cancel->asked(cancel->arg))
            return err_set(err, CKPT_E_INTR, "stopped after %llu of %llu bytes",
                (unsigned long long)filling->off, (unsigned long long)load->tensor->size);
        rc = fill_next(filling, err);
    }
    while (!rc && filling->waiting)
        rc = hear_filled(filling, err);
    return rc;
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static int finish(
    struct session *session, const struct load *load, struct loaded *ret_loaded, struct ckpt_err *err) {
    const struct gpu_msg end = {.type = GPU_END, .u.end.id = load->id};
    struct loaded loaded = {
        .dtype = gpu_result(load->tensor->dtype, load->tensor->encoding, load->target), .fd = -1};
    struct gpu_msg reply;
    uint64_t bytes = 0;
    int rc = session_ask(session, &end, GPU_READY, load->id, &reply, &loaded.fd, err);
    if (rc)
        return rc;
    loaded.at = reply.u.ready;
    (void)load_bytes(load->tensor, load->target, &bytes); /* as at the beginning */
    if (loaded.at.share != load->share || loaded.at.bytes != bytes) {
        if (loaded.fd >= 0)
            close(loaded.fd);
        return session_break(session, err, "another tensor is ready");
    }
    *ret_loaded = loaded;
    return 0;
}

/* Takes what was begun back, unless the helper has done so. The first error is the one that is told. */
static void undo(struct filling *filling, uint64_t *ret_given) {
    struct session *session = filling->session;
    struct ckpt_err ignored;
    while (filling->waiting && !session->broken)
        (void)hear_filled(filling, &ignored);
    if (!session->broken && !filling->refused)
        (void)load_release(session, filling->load->id, ret_given, &ignored);
}

int load_fill(struct session *session, const struct load *load, struct loaded *ret_loaded,
    uint64_t *ret_given, struct ckpt_err *err) {
    struct filling filling = {.session = session, .load = load};
    int rc = fill_all(&filling, err);
    if (rc) {
        undo(&filling, ret_given);
        return rc;
    }
    return finish(session, load, ret_loaded, err);
}

int load_release(struct session *session, uint64_t id, uint64_t *ret_given, struct ckpt_err *err) {
    const struct gpu_msg release = {.type = GPU_RELEASE, .u.release.id = id};
    struct gpu_msg reply;
    int rc = session_ask(session, &release, GPU_RELEASED, id, &reply, NULL, err);
    if (rc) {
        session->broken = true; /* what it holds is not known any more */
        return rc;
    }
    *ret_given = reply.u.released.given;
    return 0;
}
