/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/wire.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* One of each, with no two fields alike. */
static const struct gpu_msg samples[] = {
    {.type = GPU_HELLO, .u.hello = {.half = 0x12000, .selector = "GPU-0a"}},
    {.type = GPU_HELLO, .u.hello = {.half = GPU_HALF_MAX}},
    {.type = GPU_BEGIN,
        .u.begin =
            {.id = 0x1122334455667788, .elements = 33, .bytes = 40, .encoding = 1, .target = 2, .share = 1}},
    {.type = GPU_BEGIN, .u.begin = {.id = UINT64_MAX, .elements = 4, .bytes = 2, .dtype = DTYPE_F4}},
    {.type = GPU_FILL, .u.fill = {.id = 5, .off = 0x100000000, .len = 0x1234, .half = 1}},
    {.type = GPU_END, .u.end = {.id = 6}},
    {.type = GPU_RELEASE, .u.release = {.id = 7}},
    {.type = GPU_INFO},
    {.type = GPU_MAKE, .u.make = {.id = 8, .bytes = 12, .share = 1}},
    {.type = GPU_WRITE, .u.write = {.id = 9, .off = 10, .len = 11, .half = 0}},
    {.type = GPU_READ, .u.read = {.id = 12, .off = 13, .len = 14, .half = 1}},
    {.type = GPU_DEVICE,
        .u.device = {.ordinal = 1,
            .driver = 12040,
            .total = 1ull << 40,
            .free = 3,
            .granule = 4,
            .pinned = true,
            .uuid = {1, 2, 3, 0, 5},
            .name = "A device",
            .lack = "why"}},
    {.type = GPU_ALLOCATED, .u.allocated = {.id = 15, .bytes = 16, .taken = 17, .dtype = DTYPE_F6_E3M2}},
    {.type = GPU_FILLED, .u.filled = {.id = 18, .half = 1}},
    {.type = GPU_READY, .u.ready = {.id = 19, .bytes = 20, .offset = 256, .block = 276, .handle = {7, 8}}},
    {.type = GPU_READY, .u.ready = {.id = 19, .bytes = 0, .offset = 0, .block = 0, .share = 1}},
    {.type = GPU_RELEASED, .u.released = {.id = 21, .given = 22}},
    {.type = GPU_MEMORY, .u.memory = {.total = 23, .free = 24, .taken = 25}},
    {.type = GPU_ERROR, .u.error = {.id = 26, .os_errno = ENOMEM, .text = "cuMemAlloc: no"}},
    {.type = GPU_COPIED, .u.copied = {.id = 27, .half = 1}},
};

/* Decodes a copy of exactly len bytes, so that a sanitizer sees any read past them. */
static int decode(const uint8_t *frame, size_t len, struct gpu_msg *ret_msg, struct ckpt_err *err) {
    uint8_t *copy = malloc(len ? len : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, frame, len);
    int rc = gpu_decode(copy, len, ret_msg, err);
    free(copy);
    return rc;
}

START_TEST(messages_come_back) {
    for (size_t i = 0; i < COUNT(samples); i++) {
        uint8_t frame[GPU_FRAME_MAX], again[GPU_FRAME_MAX];
        struct gpu_msg msg;
        struct ckpt_err err;
        size_t len = gpu_encode(&samples[i], frame);
        ck_assert_msg(decode(frame, len, &msg, &err) == 0, "%zu: %s", i, err.msg);
        ck_assert_int_eq(msg.type, samples[i].type);
        ck_assert_uint_eq(gpu_encode(&msg, again), len);
        ck_assert_mem_eq(again, frame, len);
    }
}
END_TEST

START_TEST(fields_come_back) {
    uint8_t frame[GPU_FRAME_MAX];
    struct gpu_msg msg;
    ck_assert_int_eq(decode(frame, gpu_encode(&samples[2], frame), &msg, NULL), 0);
    ck_assert_uint_eq(msg.u.begin.id, 0x1122334455667788);
    ck_assert_uint_eq(msg.u.begin.elements, 33);
    ck_assert_uint_eq(msg.u.begin.target, GPU_TARGET_F16);
    ck_assert_int_eq(decode(frame, gpu_encode(&samples[11], frame), &msg, NULL), 0);
    ck_assert_uint_eq(msg.u.device.total, 1ull << 40);
    ck_assert(msg.u.device.pinned && !msg.u.device.converts);
    ck_assert_str_eq(msg.u.device.name, "A device");
    ck_assert_str_eq(msg.u.device.lack, "why");
    ck_assert_uint_eq(msg.u.device.uuid[4], 5);
}
END_TEST

/* The bytes that doc/gpu-protocol.md promises. */
START_TEST(the_layout_is_as_written) {
    static const uint8_t fill[] = {
        1, 0, 3, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x34, 0x12, 0, 0, 1};
    static const uint8_t complaint[] = {1, 0, 71, 0, 26, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 14, 0, 'c', 'u',
        'M', 'e', 'm', 'A', 'l', 'l', 'o', 'c', ':', ' ', 'n', 'o'};
    uint8_t frame[GPU_FRAME_MAX];
    ck_assert_uint_eq(gpu_encode(&samples[4], frame), sizeof fill);
    ck_assert_mem_eq(frame, fill, sizeof fill);
    ck_assert_uint_eq(gpu_encode(&samples[18], frame), sizeof complaint);
    ck_assert_mem_eq(frame, complaint, sizeof complaint);
}
END_TEST

START_TEST(any_other_length_is_refused) {
    for (size_t i = 0; i < COUNT(samples); i++) {
        uint8_t frame[GPU_FRAME_MAX + 1] = {0};
        struct gpu_msg msg = {.type = GPU_INFO};
        struct ckpt_err err;
        size_t len = gpu_encode(&samples[i], frame);
        for (size_t cut = 0; cut <= len + 1; cut++)
            if (cut != len) {
                ck_assert_int_eq(decode(frame, cut, &msg, &err), CKPT_E_CORRUPT);
                ck_assert_int_eq(msg.type, GPU_INFO);
            }
    }
}
END_TEST

START_TEST(the_longest_message_fits) {
    struct gpu_msg msg = {.type = GPU_ERROR, .u.error = {.os_errno = EIO}}, again;
    uint8_t frame[GPU_FRAME_MAX];
    memset(msg.u.error.text, 'x', GPU_TEXT_MAX);
    ck_assert_uint_le(gpu_encode(&msg, frame), GPU_FRAME_MAX);
    msg = (struct gpu_msg){.type = GPU_DEVICE};
    memset(msg.u.device.name, 'n', GPU_NAME_MAX);
    memset(msg.u.device.lack, 'l', GPU_NAME_MAX);
    size_t len = gpu_encode(&msg, frame);
    ck_assert_uint_le(len, GPU_FRAME_MAX);
    ck_assert_int_eq(decode(frame, len, &again, NULL), 0);
    ck_assert_str_eq(again.u.device.lack, msg.u.device.lack);
}
END_TEST

START_TEST(texts_are_printable) {
    struct gpu_msg msg = {.type = GPU_ERROR, .u.error = {.os_errno = EIO, .text = "a\nb\x7f\xc3\xa9\x1b"}};
    uint8_t frame[GPU_FRAME_MAX];
    struct ckpt_err err;
    size_t len = gpu_encode(&msg, frame);
    ck_assert_int_eq(decode(frame, len, &msg, NULL), 0);
    ck_assert_str_eq(msg.u.error.text, "a?b????");
    for (unsigned byte = 0; byte < 256; byte++) {
        frame[len - 1] = (uint8_t)byte;
        ck_assert_int_eq(decode(frame, len, &msg, &err), byte >= 0x20 && byte < 0x7f ? 0 : CKPT_E_CORRUPT);
    }
}
END_TEST

START_TEST(other_versions_are_told_apart) {
    uint8_t frame[GPU_FRAME_MAX];
    struct gpu_msg msg;
    struct ckpt_err err;
    size_t len = gpu_encode(&samples[7], frame);
    frame[0] = 2;
    ck_assert_int_eq(decode(frame, len, &msg, &err), CKPT_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.msg, "version 2, not 1"));
}
END_TEST

/* One byte of a sample changed: (sample, byte, value). */
START_TEST(values_out_of_range_are_refused) {
    static const struct {
        size_t sample, at;
        uint8_t value;
        const char *words;
    } rows[] = {{0, 4, 1, "wrong half"}, {1, 7, 0x80, "wrong half"}, {2, 12, 65, "wrong bytes"},
        {2, 20, 41, "wrong bytes"}, {2, 28, DTYPE_COUNT, "wrong dtype"},
        {2, 28, DTYPE_BF16, "wrong encoding"}, {2, 29, 3, "wrong encoding"}, {2, 30, 4, "wrong target"},
        {2, 31, 2, "wrong share"}, {3, 12, 3, "wrong bytes"}, {4, 24, 2, "wrong half"},
        {4, 23, 0x41, "wrong len"}, {8, 20, 2, "wrong share"}, {8, 12, 0, "wrong bytes"},
        {11, 36, 2, "wrong pinned"}, {11, 37, 2, "wrong converts"}, {12, 28, DTYPE_COUNT, "wrong dtype"},
        {14, 28, 0x13, "wrong offset"}, {14, 36, 2, "wrong share"}, {18, 12, EPERM, "wrong errno"},
        {7, 2, 10, "no message has type 10"}, {7, 2, 64, "type 64"}, {7, 3, 1, "type 262"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t frame[GPU_FRAME_MAX];
        struct gpu_msg msg;
        struct ckpt_err err = {0};
        size_t len = gpu_encode(&samples[rows[i].sample], frame);
        frame[rows[i].at] = rows[i].value;
        ck_assert_msg(decode(frame, len, &msg, &err) == CKPT_E_CORRUPT, "row %zu is accepted", i);
        ck_assert_msg(strstr(err.msg, rows[i].words), "row %zu: %s", i, err.msg);
    }
}
END_TEST

START_TEST(sizes_are_those_of_the_catalog) {
    static const struct {
        enum dtype dtype;
        enum encoding encoding;
        uint64_t elements, bytes;
        bool fits;
    } rows[] = {{DTYPE_F32, ENCODING_DENSE, 3, 12, true}, {DTYPE_C128, ENCODING_DENSE, 3, 48, true},
        {DTYPE_F4, ENCODING_DENSE, 6, 3, true}, {DTYPE_F4, ENCODING_DENSE, 5, 0, false},
        {DTYPE_F6_E2M3, ENCODING_DENSE, 4, 3, true}, {DTYPE_F32, ENCODING_Q4, 32, 20, true},
        {DTYPE_F32, ENCODING_Q4, 33, 40, true}, {DTYPE_F32, ENCODING_Q8, 33, 72, true},
        {DTYPE_F32, ENCODING_Q8, 0, 0, true}, {DTYPE_F32, ENCODING_DENSE, UINT64_MAX / 4 + 1, 0, false},
        {DTYPE_U8, ENCODING_DENSE, UINT64_MAX, UINT64_MAX, true},
        {DTYPE_F32, ENCODING_Q8, UINT64_MAX, 0, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t bytes = 77;
        bool fits = gpu_stored_bytes(rows[i].dtype, rows[i].encoding, rows[i].elements, &bytes);
        ck_assert_msg(fits == rows[i].fits, "row %zu", i);
        ck_assert_uint_eq(bytes, fits ? rows[i].bytes : 77);
    }
}
END_TEST

START_TEST(floats_convert_and_nothing_else) {
    ck_assert_int_eq(gpu_result(DTYPE_F32, ENCODING_Q4, GPU_TARGET_STORED), DTYPE_F32);
    ck_assert_int_eq(gpu_result(DTYPE_F32, ENCODING_Q8, GPU_TARGET_BF16), DTYPE_BF16);
    ck_assert_int_eq(gpu_result(DTYPE_BF16, ENCODING_DENSE, GPU_TARGET_STORED), DTYPE_BF16);
    ck_assert_int_eq(gpu_result(DTYPE_F8_E8M0, ENCODING_DENSE, GPU_TARGET_F32), DTYPE_F32);
    ck_assert_int_eq(gpu_result(DTYPE_F32, ENCODING_DENSE, GPU_TARGET_F16), DTYPE_F16);
    static const enum dtype stay[] = {
        DTYPE_I8, DTYPE_U64, DTYPE_F64, DTYPE_C64, DTYPE_BOOL, DTYPE_F4, DTYPE_F6_E2M3};
    for (size_t i = 0; i < COUNT(stay); i++)
        ck_assert_int_eq(gpu_result(stay[i], ENCODING_DENSE, GPU_TARGET_F32), stay[i]);
}
END_TEST

/* ---- the socket -------------------------------------------------------------------------------------- */

static int ends[2];

static void make_pair(void) {
    ck_assert_int_eq(gpu_wire_pair(ends, NULL), 0);
}

static void close_pair(void) {
    close(ends[0]);
    close(ends[1]);
}

START_TEST(frames_come_in_order_and_with_their_descriptor) {
    struct gpu_msg msg;
    int fd = -5, pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    ck_assert_int_eq(gpu_wire_send(ends[0], &samples[0], pipe_fds[1], 1000, NULL), 0);
    ck_assert_int_eq(gpu_wire_send(ends[0], &samples[2], -1, 1000, NULL), 0);
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, 1000, NULL), 0);
    ck_assert_int_eq(msg.type, GPU_HELLO);
    ck_assert_int_eq((int)write(fd, "!", 1), 1);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    char byte = 0;
    ck_assert_int_eq((int)read(pipe_fds[0], &byte, 1), 1);
    ck_assert_int_eq(byte, '!');
    close(fd);
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, -1, NULL), 0);
    ck_assert_int_eq(msg.type, GPU_BEGIN);
    ck_assert_int_eq(fd, -1);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}
END_TEST

/* Descriptors that do not belong are closed: the pipe's reader sees its end. */
START_TEST(strange_descriptors_are_refused_and_closed) {
    struct gpu_msg msg;
    struct ckpt_err err;
    int fd = -5, pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    ck_assert_int_eq(gpu_wire_send(ends[0], &samples[7], pipe_fds[1], 1000, NULL), 0);
    close(pipe_fds[1]);
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, 1000, &err), CKPT_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.msg, "type 6 came with 1 descriptors"));
    char byte;
    ck_assert_int_eq((int)read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    ck_assert_int_eq(gpu_wire_send(ends[0], &samples[15], -1, 1000, NULL), 0);
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, 1000, &err), CKPT_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.msg, "type 68 came with 0 descriptors"));
    ck_assert_int_eq(fd, -5);
}
END_TEST

START_TEST(deadlines_and_ends_are_told) {
    struct gpu_msg msg;
    struct ckpt_err err;
    int fd, rc = 0;
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, 0, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, ETIMEDOUT);
    for (int i = 0; i < 100000 && !rc; i++)
        rc = gpu_wire_send(ends[0], &samples[7], -1, 0, &err); /* until the socket is full */
    ck_assert_int_eq(rc, CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, ETIMEDOUT);
    close(ends[1]);
    ck_assert_int_eq(gpu_wire_send(ends[0], &samples[7], -1, -1, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, EPIPE);
    make_pair();
    close(ends[0]);
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, -1, &err), CKPT_E_IO);
    ck_assert_int_eq(err.os_errno, EPIPE);
    ends[0] = -1;
}
END_TEST

START_TEST(long_packets_are_refused) {
    static const uint8_t zeros[GPU_FRAME_MAX + 1];
    struct gpu_msg msg;
    struct ckpt_err err;
    int fd;
    ck_assert_int_eq((int)send(ends[0], zeros, sizeof zeros, 0), (int)sizeof zeros);
    ck_assert_int_eq(gpu_wire_recv(ends[1], &msg, &fd, 1000, &err), CKPT_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.msg, "more than 1024 bytes"));
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("gpu_proto");
    TCase *frames = tcase_create("frames");
    tcase_add_test(frames, messages_come_back);
    tcase_add_test(frames, fields_come_back);
    tcase_add_test(frames, the_layout_is_as_written);
    tcase_add_test(frames, any_other_length_is_refused);
    tcase_add_test(frames, the_longest_message_fits);
    tcase_add_test(frames, texts_are_printable);
    tcase_add_test(frames, other_versions_are_told_apart);
    tcase_add_test(frames, values_out_of_range_are_refused);
    tcase_add_test(frames, sizes_are_those_of_the_catalog);
    tcase_add_test(frames, floats_convert_and_nothing_else);
    suite_add_tcase(s, frames);
    TCase *wire = tcase_create("wire");
    tcase_add_checked_fixture(wire, make_pair, close_pair);
    tcase_add_test(wire, frames_come_in_order_and_with_their_descriptor);
    tcase_add_test(wire, strange_descriptors_are_refused_and_closed);
    tcase_add_test(wire, deadlines_and_ends_are_told);
    tcase_add_test(wire, long_packets_are_refused);
    suite_add_tcase(s, wire);
    return s;
}

int main(void) {
    return unit_run(suite());
}
