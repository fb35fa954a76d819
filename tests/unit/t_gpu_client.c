/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of the GPU helper, as far as it needs no helper: who holds what, what goes first, who
 * gets descriptors, and what the files say. The rest is in tests/gpu. */
#include "gpu/desk.h"
#include "gpu/fault.h"
#include "gpu/place.h"
#include "gpu/shelf.h"
#include "gpu_options.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* ---- the shelf --------------------------------------------------------------------------------------- */

static struct shelf shelf;

static void set_up(void) {
    ck_assert_int_eq(shelf_init(&shelf, 8, NULL), 0);
}

static void tear_down(void) {
    shelf_free(&shelf);
}

static struct copy *hold(uint64_t number) {
    struct copy *copy = NULL;
    ck_assert_int_eq(shelf_hold(&shelf, number, 2 * MIB, &copy, NULL), 0);
    return copy;
}

/* Held, and on the device. */
static struct copy *ready(uint64_t number) {
    const struct loaded loaded = {.fd = -1};
    struct copy *copy = hold(number);
    ck_assert_ptr_eq(shelf_next(&shelf), copy);
    shelf_begin(&shelf, copy);
    shelf_ready(&shelf, copy, &loaded);
    return copy;
}

START_TEST(charges) {
    ck_assert_uint_eq(shelf_charge(0), 256);
    ck_assert_uint_eq(shelf_charge(1), 256);
    ck_assert_uint_eq(shelf_charge(257), 512);
    ck_assert_uint_eq(shelf_charge(MIB), MIB);
    ck_assert_uint_eq(shelf_charge(MIB + 1), 2 * MIB);
    ck_assert_uint_eq(shelf_charge(5 * MIB), 6 * MIB);
    ck_assert_uint_eq(shelf_charge(UINT64_MAX), UINT64_MAX);
    ck_assert_uint_eq(shelf_charge(UINT64_MAX - 2 * MIB + 1), UINT64_MAX - 2 * MIB + 1);
}
END_TEST

START_TEST(openers_share) {
    struct copy *first = hold(3);
    ck_assert_ptr_eq(hold(3), first);
    ck_assert_ptr_ne(hold(4), first);
    ck_assert_ptr_eq(shelf_next(&shelf), first);
    shelf_drop(&shelf, first);
    ck_assert_ptr_eq(shelf_next(&shelf), first);
    shelf_drop(&shelf, first); /* nobody waits for it any more */
    ck_assert_uint_eq(shelf_next(&shelf)->number, 4);
    shelf_drop(&shelf, shelf_next(&shelf));
    ck_assert_ptr_null(shelf_next(&shelf));
}
END_TEST

START_TEST(kept_until_others_need_the_room) {
    uint64_t id;
    shelf.budget = 6 * MIB;
    struct copy *a = ready(0), *b = ready(1), *c = ready(2);
    uint64_t second = b->id;
    ck_assert_uint_eq(shelf.used, 6 * MIB);
    struct copy *d = hold(3);
    ck_assert(!shelf_fits(&shelf, d));
    ck_assert(!shelf_evict(&shelf)); /* all are in use */
    shelf_drop(&shelf, b);
    shelf_drop(&shelf, a);
    ck_assert(!shelf_pop_doomed(&shelf, &id));
    ck_assert(shelf_evict(&shelf)); /* b was let go first */
    ck_assert(!shelf_fits(&shelf, d));
    ck_assert(shelf_pop_doomed(&shelf, &id));
    ck_assert_uint_eq(id, second);
    ck_assert(shelf_fits(&shelf, d));
    ck_assert_ptr_eq(hold(0), a); /* still there */
    ck_assert(hold(1)->state == COPY_WAITING);
    shelf_drop(&shelf, shelf.of_tensor[1]);
    shelf_drop(&shelf, a);
    shelf_drop(&shelf, c);
    shelf_drop(&shelf, d);
}
END_TEST

START_TEST(use_renews) {
    uint64_t id;
    struct copy *a = ready(0), *b = ready(1);
    uint64_t second = b->id;
    shelf_drop(&shelf, a);
    shelf_drop(&shelf, b);
    shelf_drop(&shelf, hold(0));
    ck_assert(shelf_evict(&shelf) && shelf_pop_doomed(&shelf, &id));
    ck_assert_uint_eq(id, second);
}
END_TEST

START_TEST(nothing_is_kept) {
    uint64_t id, first;
    shelf.keep = false;
    struct copy *a = ready(0);
    first = a->id;
    ck_assert(!shelf_pop_doomed(&shelf, &id));
    shelf_drop(&shelf, a);
    ck_assert_ptr_ne(hold(0), a); /* what is to go is not handed out */
    ck_assert(shelf_pop_doomed(&shelf, &id));
    ck_assert_uint_eq(id, first);
    ck_assert_uint_eq(shelf.used, 0);
    shelf_drop(&shelf, shelf_next(&shelf));
}
END_TEST

START_TEST(failures_are_told_to_all) {
    struct ckpt_err err;
    struct copy *a = hold(0);
    hold(0);
    struct copy *b = hold(1);
    gpu_fault(&err, ENOMEM, "no room");
    shelf_begin(&shelf, a);
    shelf_fail(&shelf, a, &err);
    shelf_fail_waiting(&shelf, &err);
    ck_assert(a->state == COPY_FAILED && b->state == COPY_FAILED);
    ck_assert_int_eq(ckpt_errno(&a->err), ENOMEM);
    ck_assert_uint_eq(shelf.used, 0);
    ck_assert(hold(0)->state == COPY_WAITING); /* the next one tries again */
    shelf_drop(&shelf, shelf.of_tensor[0]);
    shelf_drop(&shelf, a);
    shelf_drop(&shelf, a);
    shelf_drop(&shelf, b);
}
END_TEST

START_TEST(abandoned_and_resumed) {
    struct ckpt_err err = {0};
    struct copy *a = hold(0), *b = hold(1);
    shelf_begin(&shelf, a);
    shelf_drop(&shelf, a); /* whoever loads it will see */
    ck_assert_ptr_eq(hold(0), a);
    shelf_again(&shelf, a);
    ck_assert_ptr_eq(shelf_next(&shelf), a); /* before b */
    shelf_begin(&shelf, a);
    shelf_drop(&shelf, a);
    shelf_fail(&shelf, a, &err); /* frees it */
    ck_assert_ptr_null(shelf.of_tensor[0]);
    ck_assert_ptr_eq(shelf_next(&shelf), b);
    shelf_drop(&shelf, b);
}
END_TEST

START_TEST(all_is_lost) {
    uint64_t id;
    struct copy *a = ready(0), *b = ready(1);
    shelf_drop(&shelf, b);
    shelf_lose(&shelf);
    ck_assert(a->state == COPY_LOST);
    ck_assert(!shelf_pop_doomed(&shelf, &id));
    ck_assert_uint_eq(shelf.used, 0);
    ck_assert_ptr_ne(hold(0), a);
    shelf_drop(&shelf, shelf.of_tensor[0]);
    shelf_drop(&shelf, a);
}
END_TEST

START_TEST(descriptors_are_closed) {
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    const struct loaded loaded = {.fd = fds[0]};
    struct copy *a = hold(0);
    shelf_begin(&shelf, a);
    shelf_ready(&shelf, a, &loaded);
    shelf_lose(&shelf);
    ck_assert_int_ge(fcntl(fds[0], F_GETFD), 0); /* whoever has the file open may still ask for it */
    shelf_drop(&shelf, a);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD), -1);
    close(fds[1]);
}
END_TEST

/* ---- the desk ---------------------------------------------------------------------------------------- */

static char base[64];

static struct desk *new_desk(void) {
    struct desk *desk = NULL;
    struct ckpt_err err = {0};
    ck_assert_msg(!desk_new(base, &desk, &err), "%s", err.msg);
    return desk;
}

static int call(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(sock, (struct sockaddr *)&address, sizeof address) == 0)
        return sock;
    close(sock);
    return -1;
}

/* The answer to a token; *ret_fd -1: no descriptor came. */
static char ask(const char *path, const char *token, int *ret_fd) {
    char answer = 0, control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {&answer, 1};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int sock = call(path);
    ck_assert_int_ge(sock, 0);
    ck_assert_int_eq(send(sock, token, strlen(token), 0), (ssize_t)strlen(token));
    ck_assert_int_ge(recvmsg(sock, &packet, 0), 0);
    struct cmsghdr *head = CMSG_FIRSTHDR(&packet);
    *ret_fd = -1;
    if (head)
        memcpy(ret_fd, CMSG_DATA(head), sizeof *ret_fd);
    close(sock);
    return answer;
}

static void desk_set_up(void) {
    snprintf(base, sizeof base, "/tmp/t_gpu_client-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
}

static void desk_tear_down(void) {
    ck_assert_int_eq(rmdir(base), 0); /* nothing is left there */
}

START_TEST(tokens) {
    struct desk *desk = new_desk();
    struct desk_offer a, b;
    struct stat given, got;
    char wrong[] = "0123456789abcdef0123456789abcdef";
    int fds[2], fd;
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(desk_offer(desk, &a, fds[0], NULL), 0);
    ck_assert_int_eq(desk_offer(desk, &b, fds[1], NULL), 0);
    ck_assert_uint_eq(strlen(a.token), DESK_TOKEN_DIGITS);
    ck_assert_str_ne(a.token, b.token);
    ck_assert_int_eq(ask(desk_path(desk), b.token, &fd), 'y');
    ck_assert(!fstat(fds[1], &given) && !fstat(fd, &got) && given.st_ino == got.st_ino);
    close(fd);
    ck_assert_int_eq(ask(desk_path(desk), wrong, &fd), 'n');
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(ask(desk_path(desk), "short", &fd), 'n');
    desk_withdraw(desk, &b);
    ck_assert_int_eq(ask(desk_path(desk), b.token, &fd), 'n');
    ck_assert_int_eq(ask(desk_path(desk), a.token, &fd), 'y');
    close(fd);
    desk_withdraw(desk, &a);
    desk_free(desk);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(silent_clients) {
    struct desk *desk = new_desk();
    struct desk_offer offer;
    int silent[100], fd;
    ck_assert_int_eq(desk_offer(desk, &offer, 0, NULL), 0);
    for (int i = 0; i < 100; i++)
        ck_assert_int_ge(silent[i] = call(desk_path(desk)), 0);
    ck_assert_int_eq(ask(desk_path(desk), offer.token, &fd), 'y');
    close(fd);
    for (int i = 0; i < 100; i++)
        close(silent[i]);
    desk_withdraw(desk, &offer);
    desk_free(desk);
}
END_TEST

/* What a killed daemon leaves is removed, what a living one has is not. */
START_TEST(leftovers) {
    struct desk *alive = new_desk();
    char left[128], path[160];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dead = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    snprintf(left, sizeof left, "%s/ckptfs-gpu-left00", base);
    snprintf(path, sizeof path, "%s/socket", left);
    ck_assert_int_eq(mkdir(left, 0700), 0);
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(bind(dead, (struct sockaddr *)&address, sizeof address), 0);
    close(dead);
    struct desk *desk = new_desk();
    ck_assert_int_eq(access(left, F_OK), -1);
    ck_assert_int_eq(access(desk_path(alive), F_OK), 0);
    desk_free(desk);
    desk_free(alive);
}
END_TEST

/* Too long a path for a socket, and no such directory: /tmp serves. */
START_TEST(elsewhere) {
    static const char *const bases[] = {"/nowhere",
        "/tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (int i = 0; i < 2; i++) {
        struct desk *desk = NULL;
        ck_assert_int_eq(desk_new(bases[i], &desk, NULL), 0);
        ck_assert_int_eq(strncmp(desk_path(desk), "/tmp/ckptfs-gpu-", 16), 0);
        desk_free(desk);
    }
}
END_TEST

/* ---- texts and errors -------------------------------------------------------------------------------- */

START_TEST(texts) {
    static const uint64_t shape[] = {2, 3};
    const struct tensor tensor = {.name = "a\"b", .name_len = 3, .shape = shape, .rank = 2};
    struct gpu_place place = {.tensor = &tensor, .loaded = {.dtype = DTYPE_F16, .fd = -1}};
    place.device.ordinal = 1;
    for (int i = 0; i < GPU_UUID_BYTES; i++)
        place.device.uuid[i] = (uint8_t)(0xa0 + i);
    place.loaded.at = (struct gpu_ready){.bytes = 12, .offset = 256, .block = 2 * MIB};
    memset(place.loaded.at.handle, 0x5c, GPU_HANDLE_BYTES);
    char *text = place_text(&place);
    ck_assert_str_eq(text,
        "{\n\t\"device\":\t1,\n\t\"uuid\":\t\"GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf\",\n\t\"name\":\t\"a\\\"b\",\n"
        "\t\"dtype\":\t\"F16\",\n\t\"shape\":\t[2, 3],\n\t\"bytes\":\t12,\n\t\"offset\":\t256,\n\t\"share\":\t\"ipc\",\n"
        "\t\"ipc_handle\":\t\""
        "5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c"
        "5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c\"\n}\n");
    free(text);
    place.loaded.at.share = GPU_SHARE_FD;
    place.socket = "/run/s";
    place.token = "t";
    text = place_text(&place);
    ck_assert_ptr_nonnull(strstr(text,
        "\"share\":\t\"fd\",\n\t\"block\":\t2097152,\n\t\"socket\":\t\"/run/s\",\n\t\"token\":\t\"t\"\n}"));
    free(text);
}
END_TEST

START_TEST(device_text) {
    struct gpu_facts facts = {
        .device = {.driver = 12040, .name = "X", .lack = "no PTX"}, .memory = {9, 8, 1}};
    char *text = facts_text(&facts);
    ck_assert_ptr_nonnull(
        strstr(text, "\"driver\":\t\"12.4\",\n\t\"memory_total\":\t9,\n\t\"memory_free\":\t8,\n"
                     "\t\"memory_used\":\t1,\n\t\"budget\":\tnull"));
    ck_assert_ptr_nonnull(strstr(text, "\"converts\":\tfalse,\n\t\"lack\":\t\"no PTX\"\n}\n"));
    free(text);
}
END_TEST

/* Deadlines that are too long to count end at the longest. */
START_TEST(deadlines) {
    ck_assert_int_eq(gpu_milliseconds(0, 7), 7);
    ck_assert_int_eq(gpu_milliseconds(1, 7), 1000);
    ck_assert_int_eq(gpu_milliseconds(INT_MAX / 1000, 7), INT_MAX / 1000 * 1000);
    ck_assert_int_eq(gpu_milliseconds(INT_MAX / 1000 + 1, 7), INT_MAX);
    ck_assert_int_eq(gpu_milliseconds(UINT_MAX, 7), INT_MAX);
}
END_TEST

START_TEST(errnos) {
    struct ckpt_err err;
    ck_assert_int_eq(gpu_fault(&err, ENODEV, "%d", 7), CKPT_E_GPU);
    ck_assert_int_eq(ckpt_errno(&err), ENODEV);
    ck_assert_str_eq(err.msg, "7");
    err_os(&err, ETIMEDOUT, "x");
    ck_assert_int_eq(gpu_fault_of(&err), CKPT_E_GPU);
    ck_assert_int_eq(ckpt_errno(&err), ETIMEDOUT);
    err_os(&err, EPIPE, "x");
    gpu_fault_of(&err);
    ck_assert_int_eq(ckpt_errno(&err), EIO);
    err_set(&err, CKPT_E_CORRUPT, "x");
    gpu_fault_of(&err);
    ck_assert_int_eq(ckpt_errno(&err), EIO);
    ck_assert_int_eq(gpu_fault(NULL, ENODEV, "x"), CKPT_E_GPU);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gpu client");
    TCase *copies = tcase_create("shelf"), *desk = tcase_create("desk"), *rest = tcase_create("texts");
    tcase_add_checked_fixture(copies, set_up, tear_down);
    tcase_add_test(copies, charges);
    tcase_add_test(copies, openers_share);
    tcase_add_test(copies, kept_until_others_need_the_room);
    tcase_add_test(copies, use_renews);
    tcase_add_test(copies, nothing_is_kept);
    tcase_add_test(copies, failures_are_told_to_all);
    tcase_add_test(copies, abandoned_and_resumed);
    tcase_add_test(copies, all_is_lost);
    tcase_add_test(copies, descriptors_are_closed);
    tcase_add_checked_fixture(desk, desk_set_up, desk_tear_down);
    tcase_add_test(desk, tokens);
    tcase_add_test(desk, silent_clients);
    tcase_add_test(desk, leftovers);
    tcase_add_test(desk, elsewhere);
    tcase_add_test(rest, texts);
    tcase_add_test(rest, device_text);
    tcase_add_test(rest, deadlines);
    tcase_add_test(rest, errnos);
    suite_add_tcase(suite, copies);
    suite_add_tcase(suite, desk);
    suite_add_tcase(suite, rest);
    return unit_run(suite);
}
