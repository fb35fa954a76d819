#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds in build/ (autotools' own files, which git ignores, come beside it), mounts a
# sample checkpoint in a temporary directory and shows it.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
# shellcheck disable=SC2046 # lists of words
./contrib/deps.sh $(sed -n 's/^build //p; s/^demo //p' contrib/packages)
./contrib/build.sh build
PATH=$top/build:$PATH

work=$(mktemp -d)
finish() {
    cd /
    ckptfs -u "$work/mnt" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
cp tests/golden/oam/valid/transformer_adamw.oam "$work/model.oam"
mkdir "$work/mnt"
cd "$work"

show() {
    printf '\n$ %s\n' "$1"
    sh -c "$1"
}
if [ ! -e /dev/fuse ]; then
    echo "There is no /dev/fuse here, so nothing can be mounted; ckpt shows the same tree without it."
    show 'ckpt info model.oam'
    show 'ckpt ls -l model.oam'
    exit 0
fi
show 'ckptfs model.oam mnt'
show 'ls mnt'
show 'jq -c "{architecture, d_model, n_layers}" mnt/config.json'
show 'jq -c "{step, metric_name, best_metric}" mnt/progress.json'
show 'ls -l mnt/tensors | head -n 5'
show 'head -c 128 mnt/tensors/layers.0.wq.npy | tr -d "\0" | tail -c 118'
show 'sha256sum mnt/raw/tensors/layers.0.wq.bin'
show 'jq -c "{mode, strength, units, verified, corrupt}" mnt/verify.json'

printf '\n# Plain files of it, one of them edited, and a checkpoint again.\n'
show 'ckpt extract model.oam dir && sed -i "s/\"step\":.*/\"step\": 1001,/" dir/progress.json'
show 'ckpt pack dir edited.oam && ckpt diff model.oam edited.oam || true'
show 'ckpt quantize q4 model.oam small.oam && wc -c model.oam small.oam'

printf '\n# One bit of the optimizer flips: its files fail, everything else stays exact.\n'
cp model.oam damaged.oam
offset=$(ckpt info --json model.oam | jq '.sections[] | select(.kind == "optimizer") | .offset + 100')
byte=$(od -An -tu1 -j"$offset" -N1 model.oam)
printf '%b' "\\0$(printf %o $((byte ^ 1)))" | dd of=damaged.oam bs=1 seek="$offset" conv=notrunc status=none
show 'ckptfs -u mnt && ckptfs damaged.oam mnt'
show 'cat mnt/optimizer/first_moment.npy >/dev/null || true'
show 'sha256sum mnt/raw/tensors/layers.0.wq.bin'
show 'jq -c ".faults[]" mnt/verify.json'
show 'ckpt verify -q damaged.oam || echo "exit status $?"'
