#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong use, exit codes, and what is said about files that are no checkpoints and outputs that refuse.
set -u
srcdir=${srcdir:-.} ckpt=$(cd "${builddir:-.}" && pwd)/ckpt
[ -x "$ckpt" ] || { echo "there is no $ckpt" && exit 1; }
golden=$(cd "$srcdir/tests/golden" && pwd) contrib=$(cd "$srcdir/contrib" && pwd)
model=$golden/oam/valid/transformer_adamw.oam
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0 faults=0

fault() {
    faults=$((faults + 1))
    echo "FAULT: $*"
    sed 's/^/    stdout: /' out | head -n 3
    sed 's/^/    stderr: /' err | head -n 3
}
# want CODE ARGUMENT...: runs ckpt; its outputs are in out and err.
want() {
    wanted=$1
    shift
    checks=$((checks + 1)) what="ckpt $*"
    "$ckpt" "$@" >out 2>err </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || fault "$what: exit $code, want $wanted"
}
# says FILE PATTERN: an extended regular expression for a line of out or err.
says() {
    checks=$((checks + 1))
    grep -Eq -e "$2" "$1" || fault "$what: $1 does not say '$2'"
}
# only TEXT: stdout is this line alone
only() {
    checks=$((checks + 1))
    [ "$(cat out)" = "$1" ] || fault "$what: stdout is not '$1'"
}
is_json() {
    checks=$((checks + 1))
    python3 -m json.tool out >/dev/null || fault "$what: stdout is not JSON"
}
silent() {
    checks=$((checks + 1))
    [ ! -s "$1" ] || fault "$what: $1 is not empty"
}

# ---- wrong use
want 1 && says err '^usage: ckpt COMMAND' && silent out
want 1 frobnicate x && says err "^ckpt: unknown command 'frobnicate'"
want 1 --frobnicate && says err "^ckpt: unknown option '--frobnicate'"
want 1 help frobnicate && says err "frobnicate"
for command in info ls cat verify; do
    path=
    [ "$command" != cat ] || path=config.json
    want 1 "$command" && says err "^ckpt: $command: an operand is missing" && says err "^usage: ckpt $command "
    want 1 "$command" --frobnicate "$model" && says err "unknown option '--frobnicate'" && silent out
    want 1 "$command" "$model" -Z && says err "unknown option '-Z'"
    want 1 "$command" a b c && says err "too many operands: '[bc]'"
    want 0 help "$command" && says out "^usage: ckpt $command " && silent err
    want 0 "$command" --help && says out "^usage: ckpt $command "
    want 0 "$command" a b c -h && says out "^usage: ckpt $command " && silent err
    want 2 "$command" -- --no-such-file ${path:-} && says err '^ckpt: --no-such-file: '
done
want 1 extract && says err '^ckpt: extract: an operand is missing' && says err '^usage: ckpt extract '
want 1 extract "$model" && says err 'an operand is missing'
want 1 extract "$model" out.d -Z && says err "unknown option '-Z'"
want 2 extract nothing.oam out.d && says err '^ckpt: .*nothing\.oam: No such file'
want 2 extract . out.d && says err '^ckpt: \.: is a directory'
want 3 extract /etc/passwd out.d && silent out
checks=$((checks + 1))
[ ! -e out.d ] || fault "a refused extract left something"
want 1 diff "$model" && says err '^ckpt: diff: an operand is missing' && says err '^usage: ckpt diff '
want 1 diff "$model" "$model" -Z && says err "unknown option '-Z'" && silent out
want 1 diff a b c && says err "too many operands: 'c'"
want 2 diff "$model" . && says err '^ckpt: \.: is a directory'
want 0 diff --json "$model" "$model" && is_json && says out '"equal": true'
want 1 diff --json "$model" "$golden/oam/valid/minimal_named.oam" && is_json && says out '"equal": false' && silent err
want 0 help diff && says out "^usage: ckpt diff "
want 0 help extract && says out "^usage: ckpt extract "
want 1 verify "$model" --contract && says err "'--contract' needs an argument"
want 1 info --json=yes "$model" && says err "'--json' takes no argument"
want 1 verify --manifest sha256:12 "$model" && says err 'sha256' && silent out
want 1 verify --manifest "md5:$(printf %064d 0)" "$model" && says err 'md5'
want 0 --help && says out '^  verify '
want 0 help && says out '^  verify '
want 0 --version && says out '^ckpt [0-9]+\.[0-9]+'
want 0 -V && says out '^ckpt [0-9]+\.[0-9]+'
want 2 info -- -h && says err '^ckpt: -h: No such file'
want 1 seal && says err '^usage: ckpt seal --contract' && says err '^ +ckpt seal --schema .* --chunk SIZE$'
checks=$((checks + 1)) what=mount.ckptfs
sh "$contrib/mount.ckptfs" model.oam >out 2>err
[ $? -eq 1 ] || fault "mount.ckptfs with one operand does not exit with 1"
says err '^usage: mount\.ckptfs SOURCE MOUNTPOINT '

# ---- options anywhere
want 0 verify -q "$model" && only ok
want 0 verify "$model" --quiet && only ok
want 0 verify --json "$model" && is_json
want 0 info "$model" --json && is_json
cp "$model" ./-q
want 0 verify -- -q && says out '^format'

# ---- what the system refuses
want 2 info nothing.oam && says err '^ckpt: .*nothing\.oam: No such file' && silent out
want 2 verify nothing.oam && says err 'No such file' && silent out
want 2 verify --json nothing.oam && says out '"verdict": null'
want 1 verify --contract /dev/zero "$golden/envelope/accepted/one_byte.ckpt" && says err 'contract /dev/zero: .*not a regular file'
want 2 verify --contract nothing.json "$golden/envelope/accepted/one_byte.ckpt" && says err 'nothing.json.*No such file'
want 2 info . && says err '^ckpt: \.: is a directory'
want 2 verify . && silent out
want 2 cat "$model" tensors && says err 'tensors: is a directory' && silent out
want 2 cat "$model" tensors/none.npy && says err 'tensors/none\.npy: no such path' && silent out
want 2 cat "$model" config.json/x && silent out
want 1 ls "$model" 'none*' && says err "no path matches 'none\*'" && silent out
if [ "$(id -u)" -ne 0 ]; then
    cp "$model" secret.oam && chmod 0 secret.oam
    want 2 verify secret.oam && says err 'Permission denied'
fi

# ---- what is no checkpoint
not_one() {
    for command in info ls verify; do
        want 3 "$command" "$1" && says err "^ckpt: $1: .*$2"
    done
    says out '^corrupt: .'
    checks=$((checks + 1))
    [ "$(wc -l <out)" -eq 1 ] || fault "$what: more than a verdict about a file that is no checkpoint"
}
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 123456\n' >pointer.safetensors
not_one pointer.safetensors 'Git LFS pointer'
printf '<!DOCTYPE html>\n<html><body>404</body></html>\n' >page.safetensors
not_one page.safetensors 'HTML'
printf '\200\002}q\001.' >model.bin
not_one model.bin 'pickle'
head -c 1000 /dev/zero >zeros.oam
not_one zeros.oam '.'
head -c 200 "$golden/safetensors/valid/simple.safetensors" >cut_header.safetensors
want 3 verify cut_header.safetensors && says out '^corrupt: .' && says err '[0-9]+ (bytes )?.*missing'
size=$(wc -c <"$golden/safetensors/valid/simple.safetensors")
head -c $((size - 10)) "$golden/safetensors/valid/simple.safetensors" >cut.safetensors
want 3 verify cut.safetensors && says out '^corrupt: .' && says err '10 (bytes )?.*missing'
want 3 cat cut.safetensors metadata.json && silent out

# ---- the manifest
envelope=$golden/envelope/accepted/one_byte.ckpt
digest=$(head -c 4096 "$envelope" | sha256sum | cut -d ' ' -f 1)
want 0 verify --manifest "sha256:$digest" "$envelope" && says out "^manifest  sha256:$digest" && says out '^accepted$'
want 3 verify --manifest "sha256:$(printf %064d 0)" "$envelope" && says out '^manifest-mismatch' && says err "$digest"
want 3 verify --manifest "sha256:$digest" "$model" && says err 'envelope'

# ---- outputs that refuse
# refuses NAME: what ran was `code`, with its stderr in err
refused() {
    checks=$((checks + 1))
    [ "$code" -eq 2 ] || fault "$1: exit $code, want 2"
    what=$1
    says err '^ckpt: standard output: .'
}
: >out
for command in "info $model" "ls $model" "ls --json $model" "verify $model" "cat $model config.json" help \
    "diff $model $golden/oam/valid/minimal_named.oam" "diff --json $model $model"; do
    # shellcheck disable=SC2086 # words
    "$ckpt" $command >&- 2>err
    code=$?
    refused "ckpt $command, closed stdout"
    if [ -e /dev/full ]; then
        # shellcheck disable=SC2086
        "$ckpt" $command >/dev/full 2>err
        code=$?
        refused "ckpt $command, full disk"
        says err 'No space left on device'
        checks=$((checks + 1))
        [ "$(wc -l <err)" -eq 1 ] || fault "$what: more than one message"
    fi
done
# a reader that goes away ends it, quickly and quietly
"$ckpt" cat "$model" sections/weights.bin 2>err | head -c 1 >/dev/null
what='ckpt cat into head' && silent err

echo "$checks checks, $faults faults"
[ "$faults" -eq 0 ] && [ "$checks" -gt 100 ]
