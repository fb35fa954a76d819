/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckptfs: a model checkpoint is a directory.
 *
 * This header is the whole public interface. A checkpoint is opened once; its tree of directories and
 * files is then immutable, and every byte that leaves has been verified (see enum ckpt_verify_mode).
 *
 * Units      all sizes and offsets are bytes, uint64_t. Inode numbers are dense: 1 is the root, and every
 *            number from 1 to ckpt_node_count() is a node.
 * Ownership  a handle belongs to the caller from the call that returns it to the call that closes it.
 *            Pointers that a call hands out live as long as the handle unless it says otherwise.
 * Errors     calls return 0 or a negative CKPT_E_* and describe it in *err (NULL is allowed). Outputs are
 *            named ret_* and untouched on failure. The library never prints and never exits.
 * Threads    ckpt_open and ckpt_close are not to race with other calls on the same handle; every other
 *            call may be made from any number of threads at once.
 */
#ifndef CKPTFS_H
#define CKPTFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------------- */

enum ckpt_error {
    CKPT_E_INVAL = -1,       /* wrong use: a bad option, a bad argument */
    CKPT_E_NOMEM = -2,       /* no memory */
    CKPT_E_IO = -3,          /* the system refused; os_errno says why */
    CKPT_E_FORMAT = -4,      /* no checkpoint at all (a pickle, an HTML page, a Git LFS pointer, ...) */
    CKPT_E_CORRUPT = -5,     /* a checkpoint, but damaged or malformed */
    CKPT_E_LIMIT = -6,       /* well-formed, but beyond a limit of this implementation */
    CKPT_E_MISMATCH = -7,    /* not what was asked for: contract, manifest, chunk digest */
    CKPT_E_CHANGED = -8,     /* the source changed after it was opened */
    CKPT_E_UNSUPPORTED = -9, /* valid, but not something this build or call can do */
    CKPT_E_GPU = -10,        /* the GPU or its helper failed; os_errno says how */
    CKPT_E_INTR = -11,       /* the caller's ckpt_cancel asked to stop */
    CKPT_E_NOENT = -12,      /* no such path, node or attribute */
};

/*
 * What went wrong. `words` is the verdict alone, exactly as the format's reference reader says it, without
 * numbers or context ("section payload checksum mismatch", "chunk-mismatch 3"); for errors that have no
 * such words it equals the innermost message. `msg` is the whole story with context and numbers.
 */
struct ckpt_err {
    int code;     /* CKPT_E_* */
    int os_errno; /* errno for CKPT_E_IO and CKPT_E_GPU, else 0 */
    char words[200];
    char msg[1024];
};

/* The errno that a file system reports for a CKPT_E_* (EIO for CORRUPT, ESTALE for CHANGED, ...). */
int ckpt_errno(const struct ckpt_err *err);

/* ---- opening --------------------------------------------------------------------------------------- */

enum ckpt_verify_mode {
    CKPT_VERIFY_LAZY,       /* a unit is verified by the first read that touches it */
    CKPT_VERIFY_FULL,       /* everything is verified by ckpt_open; a fault fails it */
    CKPT_VERIFY_BACKGROUND, /* lazy, and the rest at idle priority after ckpt_start */
    CKPT_VERIFY_OFF,        /* nothing is checked */
};

/* Asked now and then during long work; true means stop with CKPT_E_INTR. Called on the caller's thread. */
struct ckpt_cancel {
    bool (*asked)(void *arg);
    void *arg;
};

/* Called now and then during long work with what is done and what there is to do, in bytes. */
struct ckpt_progress {
    void (*tell)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

/* Messages worth a log line (one line, no newline at its end). May be called from any thread. */
struct ckpt_log {
    void (*say)(void *arg, const char *line);
    void *arg;
    bool redact; /* leave tensor and file names out */
};

/* What tensors become on a device. Only floats of at most 32 bits and quantized ones are converted; "as
 * stored" makes float32 of the latter. */
enum ckpt_gpu_dtype { CKPT_GPU_STORED, CKPT_GPU_F32, CKPT_GPU_F16, CKPT_GPU_BF16 };

/* How another process gets at a tensor: cuIpcOpenMemHandle, or a file descriptor that a socket hands out. */
enum ckpt_gpu_share { CKPT_GPU_IPC, CKPT_GPU_FD };

/*
 * gpu/: the weights on a device. Opening gpu/tensors/NAME.json loads the tensor, verified, reading it tells
 * where it is, closing it lets it go. Nothing is started or loaded before the first opening below gpu/. A
 * program of its own talks to the driver; where it fails, the opening fails with CKPT_E_GPU: ENODEV (no
 * driver, no such device, no helper), ENOMEM (the device or the budget is full), ETIMEDOUT (the helper hung
 * and was killed), EIO (it died, the device failed, or a conversion is wanted and the helper was built
 * without them); the next opening starts a new one. A field that is zero stands for its default.
 */
struct ckpt_gpu_options {
    const char *device;  /* a number, "GPU-" and a UUID, or a PCI bus id; the first one */
    const char *tensors; /* patterns as in fnmatch(3) for tensor names, ':' in between; all of them */
    /* Bytes for tensors, each rounded up to 256, those over 1 MiB to 2 MiB. What nobody uses any more stays
     * until others need the room. budget is looked at when limited is true: 0 keeps nothing and limits
     * nothing. Default: nine tenths of what the device has. */
    bool limited;
    uint64_t budget;
    enum ckpt_gpu_dtype dtype;
    enum ckpt_gpu_share share;
    const char *helper;     /* the program; the installed ckptfs-gpu */
    const char *sockets;    /* for FD: the directory in which one is made for the socket; "/tmp" */
    unsigned start_seconds; /* until the helper has started: it waits for the driver; 120 */
    unsigned reply_seconds; /* until it has answered anything else; 30 */
};

struct ckpt_options {
    enum ckpt_verify_mode verify;
    const char *contract;               /* path of a contract (JSON), or NULL */
    const char *manifest;               /* "sha256:HEX" that the envelope's header must hash to, or NULL */
    uint64_t cache_bytes;               /* bound of the memory for verified blocks; 0 means 64 MiB */
    const struct ckpt_gpu_options *gpu; /* NULL: no gpu/, and nothing of it is started or loaded */
    struct ckpt_log log;
    const struct ckpt_cancel *cancel;     /* for ckpt_open itself, or NULL */
    const struct ckpt_progress *progress; /* for ckpt_open itself, or NULL */
};

struct ckpt;

/*
 * Opens a checkpoint: an .oam, an envelope, a safetensors file or a *.safetensors.index.json, told apart by
 * content. Reads headers and indexes only (unless opt->verify is FULL). opt may be NULL (all defaults).
 * Errors: IO, FORMAT, CORRUPT, LIMIT, MISMATCH, NOMEM, INVAL (a malformed contract or manifest, no such
 * enum).
 */
int ckpt_open(const char *path, const struct ckpt_options *opt, struct ckpt **ret_ckpt, struct ckpt_err *err);

/* Starts what runs by itself (background verification). Call it after the last fork. */
int ckpt_start(struct ckpt *ckpt, struct ckpt_err *err);

/* Stops threads, closes the source, frees everything. NULL is allowed. */
void ckpt_close(struct ckpt *ckpt);

/* ---- the tree -------------------------------------------------------------------------------------- */

/*
 * What a checkpoint holds is said by its files, as in a mount: tensors.json lists every tensor with its true
 * name, dtype, shape and file; tensors/NAME.npy, with NAME escaped (doc/tree.md), has its values. Find a file
 * by ckpt_resolve, then ckpt_file_open and ckpt_file_read.
 */

enum ckpt_node_kind { CKPT_DIR, CKPT_FILE };

struct ckpt_stat {
    uint64_t ino;
    uint64_t parent; /* inode of the directory that holds it; the root is its own */
    enum ckpt_node_kind kind;
    uint64_t size;  /* files: exact, before anything is verified; 0 below gpu/, where only opening them tells.
                       Directories: number of entries */
    uint32_t nlink; /* 1 for files; 2 + subdirectories for directories */
    bool dynamic;   /* the content changes while mounted (verify.json, gpu/): do not cache it */
};

/* Times and size of the source (the sum of its parts), for stat and statfs. */
struct ckpt_source_info {
    uint64_t bytes;
    int64_t atime_sec, mtime_sec, ctime_sec;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec;
};

#define CKPT_NAME_MAX 255 /* bytes in a file name, without the NUL */

struct ckpt_dirent {
    struct ckpt_stat stat;
    char name[CKPT_NAME_MAX + 1];
};

uint64_t ckpt_node_count(const struct ckpt *ckpt);
void ckpt_source(const struct ckpt *ckpt, struct ckpt_source_info *ret_info);

/* Error: NOENT when ino is no node. May compute the size of tensors.json on first use. */
int ckpt_stat(struct ckpt *ckpt, uint64_t ino, struct ckpt_stat *ret_stat, struct ckpt_err *err);

/* Finds `name` in directory `dir`. Errors: NOENT, INVAL (dir is no directory). */
int ckpt_lookup(
    struct ckpt *ckpt, uint64_t dir, const char *name, struct ckpt_stat *ret_stat, struct ckpt_err *err);

/* Entry number `index` (from 0) of directory `dir`, without "." and "..". NOENT past the last one. */
int ckpt_entry(
    struct ckpt *ckpt, uint64_t dir, uint64_t index, struct ckpt_dirent *ret_entry, struct ckpt_err *err);

/* Walks a path such as "tensors/w.npy" from the root; "" and "/" are the root. Errors as ckpt_lookup. */
int ckpt_resolve(struct ckpt *ckpt, const char *path, struct ckpt_stat *ret_stat, struct ckpt_err *err);

/*
 * A file that was opened: its content stays the same until ckpt_file_close, dynamic files included. Only an
 * empty file is judged here, since nobody reads it: opening it may verify, as reading does, and fails as
 * ckpt_file_read would. Below gpu/ opening loads a tensor (struct ckpt_gpu_options), verified, and closing
 * lets it go. cancel may be NULL. Errors besides: NOENT, INVAL (a directory), NOMEM, LIMIT, GPU.
 */
struct ckpt_file;
int ckpt_file_open(struct ckpt *ckpt, uint64_t ino, struct ckpt_file **ret_file,
    const struct ckpt_cancel *cancel, struct ckpt_err *err);
void ckpt_file_close(struct ckpt_file *file);
uint64_t ckpt_file_size(const struct ckpt_file *file);

/*
 * Reads min(len, size - offset) bytes (0 at or past the end) into buf and tells how many. All of them are
 * verified first; *buf is undefined on failure. Errors: CORRUPT and MISMATCH (a damaged unit), CHANGED, IO,
 * INTR, NOMEM. cancel may be NULL.
 */
int ckpt_file_read(struct ckpt_file *file, uint64_t offset, void *buf, size_t len, size_t *ret_len,
    const struct ckpt_cancel *cancel, struct ckpt_err *err);

/*
 * Extended attributes of tensor files: user.ckptfs.name, .dtype, .shape, .encoding, .verified.
 * Both write at most cap bytes, tell the full length, and fail with LIMIT when cap is too small (cap 0 only
 * asks for the length). The list is names, each with its NUL. NOENT: no such attribute.
 */
int ckpt_xattr_get(struct ckpt *ckpt, uint64_t ino, const char *name, char *buf, size_t cap, size_t *ret_len,
    struct ckpt_err *err);
int ckpt_xattr_list(
    struct ckpt *ckpt, uint64_t ino, char *buf, size_t cap, size_t *ret_len, struct ckpt_err *err);

/* ---- what it is ------------------------------------------------------------------------------------ */

/*
 * The facts of `ckpt info` as one JSON object, NUL-terminated; *ret_text is freed with free(). Config,
 * optimizer and progress are read through verification; a part that is damaged is null there.
 */
int ckpt_info_json(struct ckpt *ckpt, char **ret_text, struct ckpt_err *err);

/* ---- verifying a file ------------------------------------------------------------------------------ */

/*
 * Verifies everything in the order of the reference readers. Returns 0 when it holds, with the verdict "ok",
 * or "accepted" for an envelope, in verdict->words. Otherwise CORRUPT (the verdict is "corrupt: WORDS") or
 * MISMATCH (it is WORDS: "truncated", "layout", "foreign-schema", ..., "chunk-mismatch N"), or another
 * error when the file could not be judged. *ret_verdict is filled in every case; its line is empty when the
 * file could not be judged, and FORMAT is "corrupt: WORDS" too. err may be NULL.
 */
struct ckpt_verdict {
    char line[256];    /* the verdict's exact first line */
    uint64_t units;    /* sections or chunks that were checked */
    uint64_t bytes;    /* bytes that were hashed */
    char manifest[65]; /* SHA-256 of the envelope's header in hex, "" without an envelope */
    char format[32];   /* "oam", "safetensors", "safetensors-index", "raw", "" when unknown */
    char strength[32]; /* "fnv1a64", "sha256", "none", "" when unknown */
};
int ckpt_verify(
    const char *path, const struct ckpt_options *opt, struct ckpt_verdict *ret_verdict, struct ckpt_err *err);

/* ---- writing: what all writers share ---------------------------------------------------------------- */

/*
 * Writers make a file whole or not at all: they write a temporary file beside the target, flush it to the
 * disk, rename it over the target and flush the directory. Missing parent directories are made; a symbolic
 * link is followed. After a failure, a crash included, the target is as it was, and a temporary file that a
 * killed writer left is removed by the next one. Whatever is read from a checkpoint is verified before it is
 * written. Errors of all of them: IO (disk full, no permission), INTR, NOMEM, and those of ckpt_open for
 * what they read.
 */
struct ckpt_write_options {
    const struct ckpt_cancel *cancel;     /* or NULL */
    const struct ckpt_progress *progress; /* or NULL */
};

/* ---- writing an .oam -------------------------------------------------------------------------------- */

/*
 * Makes an .oam of what stands at `from`: a description in JSON (doc/pack.md), or a directory that is laid
 * out as the tree of an .oam. Byte for byte what the format's reference writer makes of the same model, so
 * that extracting and packing gives the file back. Everything is checked before anything is written. Data
 * is streamed: it may be larger than memory.
 * Errors besides those of all writers: INVAL (the description is malformed, files of the directory do not
 * agree, or no .oam can hold the model; err->words are then the reference writer's), UNSUPPORTED (a tensor's
 * stored bytes are missing, and its .npy cannot stand for them), LIMIT, CHANGED (a file was written to
 * meanwhile).
 */
int ckpt_pack(
    const char *from, const char *to, const struct ckpt_write_options *options, struct ckpt_err *err);

/* Blocks of 32 values of 4 or 8 bits with one float32 scale. */
enum ckpt_quantization { CKPT_Q4, CKPT_Q8 };

/*
 * Writes a quantized copy of the .oam (or envelope around one) `from`: float32 weights of rank 2 and more
 * that are not empty are quantized, other weights and the state are kept, the optimizer is dropped. Errors
 * besides those of all writers: INVAL (not an .oam; a weight of rank 2 or more is not float32 or quantized
 * already; or there is nothing to quantize), CORRUPT and MISMATCH as ckpt_file_read.
 */
int ckpt_quantize(const char *from, enum ckpt_quantization kind, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err);

/* ---- converting ------------------------------------------------------------------------------------- */

struct ckpt_convert {
    bool drop; /* leave out what the target cannot hold; false: it is an error */
    /* Is told of each such thing, with the reason, before anything is written; NULL: nobody is. */
    void (*cannot_hold)(void *arg, const char *line);
    void *arg;
};

/*
 * Writes the checkpoint `from` to `to`, as .oam or as .safetensors by the ending of `to`, which may be `from`
 * itself. Of a sharded set one file is made, of an envelope what is in it. Q4 and Q8 become the float32
 * values that they mean where the target has no such encoding. doc/convert.md says what is held and how. how
 * NULL: what cannot be held is an error. Errors besides those of all writers: INVAL (another ending),
 * UNSUPPORTED (something cannot be held), LIMIT (the format cannot count that far), FORMAT (no checkpoint in
 * an envelope).
 */
int ckpt_convert(const char *from, const char *to, const struct ckpt_convert *how,
    const struct ckpt_write_options *options, struct ckpt_err *err);

/* ---- the parameter store ---------------------------------------------------------------------------- */

/*
 * Named float32 parameters that are trained or computed with, in host memory or where a struct ckpt_memory
 * puts them, saved to safetensors files and loaded from checkpoints.
 *
 * Threads: one at a time per store, reading included.
 */
struct ckpt_store;

/*
 * Memory that a store puts its values into: opaque blocks. All calls may fail with NOMEM, IO or GPU and say
 * why; they are made by the thread that calls the store. The struct is copied, `arg` outlives the store.
 */
struct ckpt_memory {
    void *arg;
    /* A block of bytes (not 0), zeroed, good for float32. */
    int (*alloc)(void *arg, uint64_t bytes, void **ret_block, struct ckpt_err *err);
    void (*free)(void *arg, void *block);
    /* len bytes (not 0) at offset into the block or out of it; float32 in the host's byte order. */
    int (*put)(
        void *arg, void *block, uint64_t offset, const void *bytes, uint64_t len, struct ckpt_err *err);
    int (*get)(void *arg, void *block, uint64_t offset, void *bytes, uint64_t len, struct ckpt_err *err);
    /* Where the block is in host memory, or NULL: it is not. The whole call may be NULL. */
    void *(*host)(void *arg, void *block);
};

/* memory NULL: host memory. Errors: NOMEM. */
int ckpt_store_create(const struct ckpt_memory *memory, struct ckpt_store **ret_store, struct ckpt_err *err);
void ckpt_store_free(struct ckpt_store *store); /* NULL is allowed */

/*
 * Adds a parameter of zeros. Its number (ret_number NULL: not asked for) counts from 0. rank 0: one element;
 * an extent of 0: none. Errors: INVAL (the name is not UTF-8, is taken, or is "__metadata__"), LIMIT (rank
 * over 1024, 2^62 bytes), those of the memory.
 */
int ckpt_store_add(struct ckpt_store *store, const char *name, const uint64_t *shape, size_t rank,
    uint64_t *ret_number, struct ckpt_err *err);

struct ckpt_parameter {
    const char *name;
    const uint64_t *shape; /* rank extents */
    size_t rank;
    uint64_t elements;
    float *values; /* in host memory, until the next ckpt_store_load; NULL: not in host memory, or empty */
    const void *block; /* what the memory's alloc gave, as long; NULL: empty */
};

uint64_t ckpt_store_count(const struct ckpt_store *store);
/* ret_number NULL: only whether it is there. Error: NOENT. */
int ckpt_store_find(
    const struct ckpt_store *store, const char *name, uint64_t *ret_number, struct ckpt_err *err);
int ckpt_store_parameter(const struct ckpt_store *store, uint64_t number,
    struct ckpt_parameter *ret_parameter, struct ckpt_err *err);

/* Copies count values, from value number `first` on, out of a parameter or into it. Errors: NOENT (no such
 * parameter), INVAL (a value past its end), those of the memory. */
int ckpt_store_get(struct ckpt_store *store, uint64_t number, uint64_t first, float *values, uint64_t count,
    struct ckpt_err *err);
int ckpt_store_put(struct ckpt_store *store, uint64_t number, uint64_t first, const float *values,
    uint64_t count, struct ckpt_err *err);

/* A pair of a safetensors file's metadata: UTF-8, which may hold NULs; one more NUL follows each. */
struct ckpt_pair {
    const char *key;
    size_t key_len;
    const char *value;
    size_t value_len;
};

/*
 * Writes all parameters as F32 with their shapes, and the metadata, to a safetensors file. Errors: those of
 * writers, INVAL (metadata that is not UTF-8 or has a key twice), LIMIT (a header of over 100,000,000 bytes),
 * those of the memory.
 */
int ckpt_store_save(struct ckpt_store *store, const char *path, const struct ckpt_pair *metadata,
    size_t metadata_count, const struct ckpt_write_options *options, struct ckpt_err *err);

/*
 * Loads from anything that ckpt_open opens, verified: each parameter gets the values of the tensor of its
 * name; tensors without a parameter are skipped, parameters without a tensor keep their values. All or
 * nothing: on any failure every parameter is as it was. For that the new values are read into fresh blocks
 * first, so while it runs there is room for them twice; then they take the old ones' place.
 * The file's metadata is handed back as *ret_count pairs in one piece of memory, freed with free(); values
 * that are not strings (an index has them) as JSON text. ret_metadata and ret_count may both be NULL.
 * Errors: MISMATCH (a tensor of the same name with another shape, or not stored as plain F32: says both),
 * those of ckpt_open and of reading, those of the memory.
 */
int ckpt_store_load(struct ckpt_store *store, const char *path, const struct ckpt_write_options *options,
    struct ckpt_pair **ret_metadata, size_t *ret_count, struct ckpt_err *err);

/* ---- parameters on a device -------------------------------------------------------------------------- */

/*
 * A device's memory for stores. It is held by a process of its own (ckptfs-gpu), the only one that talks to
 * the CUDA driver; who computes with the parameters opens their places, in this process or in another.
 * Errors, of a store in it too: GPU, with os_errno ENODEV (no driver, no such device, no helper), ENOMEM (the
 * device is full; nothing has changed), ETIMEDOUT (the helper hung and was killed), EIO (it ended, or the
 * device failed). When the helper is gone the parameters are lost, and every further call fails with EIO.
 * Threads: one at a time per memory, whatever stores are in it.
 */

/* Starts the helper. Of the options device, share, helper and the deadlines count; NULL: all defaults. */
int ckpt_gpu_memory(
    const struct ckpt_gpu_options *options, struct ckpt_memory **ret_memory, struct ckpt_err *err);
/* After the stores in it. Ends the helper. NULL is allowed. */
void ckpt_gpu_memory_free(struct ckpt_memory *memory);

struct ckpt_gpu_place {
    unsigned device;        /* the number that the helper sees it under */
    unsigned char uuid[16]; /* of the device */
    enum ckpt_gpu_share share;
    unsigned char ipc_handle[64]; /* IPC: for cuIpcOpenMemHandle */
    int fd; /* FD: for cuMemImportFromShareableHandle; the memory's own, as long as the block; else -1 */
    uint64_t allocation; /* bytes of the allocation: what an importer of the descriptor maps */
    uint64_t offset;     /* of the block in it */
    uint64_t bytes;      /* of the block */
};

/* Where a parameter's block is, until the next ckpt_store_load: who opened its handle closes it before that.
 * Errors: INVAL (another memory, no block), GPU. */
int ckpt_gpu_place(const struct ckpt_memory *memory, const void *block, struct ckpt_gpu_place *ret_place,
    struct ckpt_err *err);

/* ---- envelopes ------------------------------------------------------------------------------------- */

/* How a payload is sealed: by a contract, or by identities and a chunk size of the caller's. */
struct ckpt_seal {
    const char *contract;    /* path of a contract (JSON), or NULL: */
    const char *identity[4]; /* schema, learner, data, seed (one with a NUL in it needs a contract) */
    uint64_t chunk_bytes;    /* at least 1; with a contract this and the identities are not looked at */
    uint64_t updates, invocations;
};

/*
 * Puts what `payload` (an open file, also a pipe) holds from its position to its end into an envelope at
 * `to`. One pass, on all cores; memory is 2 MiB a core and 32 bytes a chunk. The payload of a contract has
 * its payload_bytes; a regular file is judged before anything is written, a pipe at its end. A pipe without a
 * contract whose payload makes more than 121 chunks is moved behind its header at the end: at once where
 * the file system inserts pages (ext4, XFS), else by copying it within the file. Where the payload's
 * position is afterwards is not defined.
 * Errors besides those of all writers: MISMATCH (not the contract's length), INVAL (no chunks, a missing
 * identity, a malformed contract), LIMIT (more than 33 million chunks), CHANGED (a regular file was written
 * to meanwhile).
 */
int ckpt_seal(int payload, const struct ckpt_seal *how, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err);

/* What an envelope must be; NULL: anything that is consistent. */
struct ckpt_pins {
    const char *contract; /* path of a contract (JSON) */
    const char *manifest; /* "sha256:HEX" */
};

/* Writes the payload of the envelope `from` to `to`, every chunk verified; what is in it is not looked at.
 * pins may be NULL. Errors besides those of all writers: MISMATCH with the verdict that ckpt_verify gives,
 * FORMAT (no envelope), CHANGED. */
int ckpt_unseal(const char *from, const struct ckpt_pins *pins, const char *to,
    const struct ckpt_write_options *options, struct ckpt_err *err);

/* ---- extracting ------------------------------------------------------------------------------------- */

struct ckpt_extract_options {
    /*
     * The part of the tree; glob_count 0: all of it. A glob that is a path means that path, any other is a
     * pattern of fnmatch(3) for whole paths, in which '*' matches slashes too. A directory stands for all
     * below it.
     */
    const char *const *globs;
    size_t glob_count;
    /* Leave out the files that cannot be read (CORRUPT, MISMATCH, IO) and tell left_out (or NULL) of each.
     * false: the first of them fails the whole. */
    bool keep_going;
    void (*left_out)(void *arg, const char *path, const struct ckpt_err *err);
    void *arg;
};

/*
 * Writes the tree into the directory `dir`, which must be new or empty, as plain files: with the bytes and
 * sizes that a mount shows and the times of the source. Dynamic files come last and are as they are then.
 * Everything is written into a temporary directory beside it and renamed to `dir` when it is on the disk. how
 * NULL: everything. *ret_left_out (NULL allowed): files that were left out. Errors besides those of writers:
 * those of ckpt_file_read; INVAL when a glob matches nothing.
 */
int ckpt_extract(struct ckpt *ckpt, const char *dir, const struct ckpt_extract_options *how,
    const struct ckpt_write_options *options, uint64_t *ret_left_out, struct ckpt_err *err);

/* ---- comparing -------------------------------------------------------------------------------------- */

enum ckpt_difference_kind {
    CKPT_REMOVED, /* only the first checkpoint has it */
    CKPT_ADDED,   /* only the second one */
    CKPT_CHANGED,
};

/* One side of a difference; zeroed where there is nothing. */
struct ckpt_difference_side {
    const char *dtype;     /* tensors: "F32", what Q4 and Q8 mean included; NULL for anything else */
    const char *encoding;  /* "dense", "q4", "q8" */
    const uint64_t *shape; /* rank extents */
    uint32_t rank;
    uint64_t bytes;   /* stored */
    const char *json; /* members of documents: the value's text, json_len bytes; "NaN (7fc00000)" where two
                         NaNs differ in their bits alone, which documents do not show */
    size_t json_len;
};

/*
 * A tensor, a member of a document (config.json, progress.json, metadata.json, optimizer/optimizer.json), or
 * a file of bytes (raw/arch_config.bin, envelope/payload.bin). Values are those that .npy files show. Of one
 * stored type elements differ when their bits do: a NaN differs from a NaN with other bits, and -0 from 0 by
 * 0. Of two types they differ when their values do, and a NaN when it is another one as a double.
 */
struct ckpt_difference {
    enum ckpt_difference_kind kind;
    const char *place; /* "tensors", "state", "optimizer", or the path of the document or file */
    const char *name;  /* name_len bytes (NULs may be among them) and a NUL; "" for a whole file */
    size_t name_len;
    struct ckpt_difference_side a, b;
    bool reshaped, retyped; /* of tensors that both have: other extents; another dtype or encoding */
    bool compared;          /* they have as many elements, of types that .npy holds: */
    uint64_t elements;
    uint64_t differing;       /* 0: equal values in another shape or type, or stored in another way */
    uint64_t nans;            /* of these, pairs with a NaN in them, which count for neither of the next */
    double max_abs, mean_abs; /* largest and mean absolute difference of all elements; complex: the modulus */
    bool exact;               /* both are integers, and max_integer is max_abs exactly */
    uint64_t max_integer;
};

/*
 * Tells of every difference, in the order of the first checkpoint, with what only the second one has after
 * each group of tensors. *difference lives during the call. Nothing is told before everything has been read
 * and verified. *ret_count (NULL allowed): how many were told, or would be (tell NULL). The two may have
 * different formats; an envelope's own header is not compared. Errors: CORRUPT and MISMATCH (damage),
 * CHANGED, IO, INTR, NOMEM.
 */
int ckpt_diff(struct ckpt *a, struct ckpt *b,
    void (*tell)(void *arg, const struct ckpt_difference *difference), void *arg,
    const struct ckpt_write_options *options, uint64_t *ret_count, struct ckpt_err *err);

#define CKPT_VERSION_STRING_MAX 32
const char *ckpt_version(void);

#ifdef __cplusplus
}
#endif

#endif
