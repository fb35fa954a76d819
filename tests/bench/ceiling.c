/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ceiling: the least that a FUSE file system can do. Serves one file as MOUNT/data by pread into a reused
 * buffer and checks nothing, with the same request size, caching and threads as ckptfs. What ckptfs is
 * measured against.
 *
 *   ceiling FILE MOUNT    mounts and returns; unmount with umount(8)
 */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_INO 2
#define FOREVER 1e9

static int source_fd;
static struct stat source_stat;
static pthread_key_t buffer_key;

static void fill(fuse_ino_t ino, struct stat *st) {
    *st = (struct stat){.st_ino = ino, .st_nlink = 1, .st_mode = S_IFDIR | 0555};
    if (ino == DATA_INO) {
        st->st_mode = S_IFREG | 0444;
        st->st_size = source_stat.st_size;
        st->st_blksize = 128 * 1024;
    }
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct fuse_entry_param entry = {.ino = DATA_INO, .attr_timeout = FOREVER, .entry_timeout = FOREVER};
    if (parent != FUSE_ROOT_ID || strcmp(name, "data") != 0) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    fill(DATA_INO, &entry.attr);
    fuse_reply_entry(req, &entry);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    (void)fi;
    struct stat st;
    fill(ino, &st);
    fuse_reply_attr(req, &st, FOREVER);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    (void)ino;
    fi->keep_cache = 1;
    fuse_reply_open(req, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
    (void)ino;
    (void)fi;
    char *buffer = pthread_getspecific(buffer_key);
    if (!buffer) {
        buffer = malloc(1 << 20);
        pthread_setspecific(buffer_key, buffer);
    }
    ssize_t got = pread(source_fd, buffer, size < 1 << 20 ? size : 1 << 20, off);
    if (got < 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_buf(req, buffer, (size_t)got);
}

static void op_init(void *user, struct fuse_conn_info *conn) {
    (void)user;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

static const struct fuse_lowlevel_ops ops = {
    .init = op_init, .lookup = op_lookup, .getattr = op_getattr, .open = op_open, .read = op_read};

static void raise_readahead(const char *mount, const char *kb) {
    struct stat st;
    char path[64];
    if (stat(mount, &st) != 0)
        return;
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", (unsigned)(st.st_dev >> 8 & 0xfff),
        (unsigned)(st.st_dev & 0xff));
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(kb, file);
        fclose(file);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE MOUNT\n", argv[0]);
        return 1;
    }
    source_fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (source_fd < 0 || fstat(source_fd, &source_stat) != 0 || pthread_key_create(&buffer_key, free) != 0) {
        perror(argv[1]);
        return 2;
    }
    char *words[] = {argv[0], (char *)"-o", (char *)"ro,fsname=ceiling,subtype=ceiling", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    struct fuse_session *session = fuse_session_new(&args, &ops, sizeof ops, NULL);
    if (!session || fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, argv[2]) != 0)
        return 2;
    pid_t child = fork();
    if (child != 0) {
        const char *kb = getenv("READ_AHEAD_KB");
        raise_readahead(argv[2], kb ? kb : "1024");
        _exit(child < 0 ? 2 : 0);
    }
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int rc = fuse_session_loop_mt(session, config);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return rc < 0 ? 2 : 0;
}
