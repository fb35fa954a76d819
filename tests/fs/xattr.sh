#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# -o xattr shows what is known of a tensor as extended attributes; without it there are none.
# shellcheck source=tests/fs/lib.sh
. "${srcdir:-.}/tests/fs/lib.sh"
command -v getfattr >/dev/null || { echo 'no getfattr' && exit 77; }
st=$golden/safetensors/valid/simple.safetensors
sealed=$golden/envelope/accepted/holds_safetensors.ckpt
get() {
    getfattr --absolute-names --only-values -n "user.ckptfs.$1" "$2"
}

ok "$ckptfs" "$st" "$mnt"
is 'no attributes' "$(getfattr --absolute-names -d "$mnt/tensors/w.0.npy")" ''
no 1 'not supported' getfattr -n user.ckptfs.name "$mnt/tensors/w.0.npy"
ok umount "$mnt"

ok "$ckptfs" "$st" "$mnt" -o xattr
for file in "$mnt/tensors/w.0.npy" "$mnt/raw/tensors/w.0.bin"; do
    is name "$(get name "$file")" w.0
    is dtype "$(get dtype "$file")" F32
    is shape "$(get shape "$file" | tr -d ' ')" '[2,3]'
    is encoding "$(get encoding "$file")" dense
    is verified "$(get verified "$file")" none
    is 'the list' "$(getfattr --absolute-names -m - "$file" | grep -c '^user\.ckptfs\.')" 5
    no 1 'No such attribute' getfattr -n user.ckptfs.colour "$file"
    no 1 'No such attribute' getfattr -n user.other "$file"
    no 1 'Read-only file system' setfattr -n user.ckptfs.name -v x "$file"
done
is 'a directory' "$(getfattr --absolute-names -m - -d "$mnt/tensors")" ''
is 'another file' "$(getfattr --absolute-names -m - -d "$mnt/tensors.json")" ''
ok umount "$mnt"

# The state of verification, before and after reading, and of a damaged file.
ok "$ckptfs" "$sealed" "$mnt" -o xattr
file=$(find "$mnt/tensors" -type f -size +0 | sort | head -n 1)
is 'before reading' "$(get verified "$file")" no
ok cat "$file"
is 'after reading' "$(get verified "$file")" yes
ok umount "$mnt"
ok "$ckptfs" "$sealed" "$mnt" -o xattr,verify=off
is 'verify=off' "$(get verified "$file")" none
ok umount "$mnt"
cp "$sealed" "$tmp/damaged"
size=$(stat -c %s "$tmp/damaged")
printf '\377' | dd of="$tmp/damaged" bs=1 seek=$((size - 1)) conv=notrunc status=none
cmp -s "$tmp/damaged" "$sealed" && printf '\376' | dd of="$tmp/damaged" bs=1 seek=$((size - 1)) conv=notrunc status=none
ok "$ckptfs" "$tmp/damaged" "$mnt" -o xattr
find "$mnt" -type f -exec cat {} + >/dev/null 2>&1
find "$mnt/tensors" -type f -exec getfattr --absolute-names --only-values -n user.ckptfs.verified {} \; >"$tmp/states"
grep -q corrupt "$tmp/states" || fault "no tensor is corrupt: $(cat "$tmp/states")"
ok umount "$mnt"
finish
