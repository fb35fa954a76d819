#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages are well-formed and name every option and command; the completion offers them.
set -u
srcdir=${srcdir:-.} builddir=${builddir:-.}
[ -x "$builddir/ckpt" ] || { echo "there is no $builddir/ckpt" && exit 1; }
faults=0
fault() {
    faults=$((faults + 1))
    echo "FAULT: $*"
}
if command -v mandoc >/dev/null; then
    for page in "$srcdir"/man/*.[1-8]; do
        # whether other pages are installed is nothing about this one
        lint=$(mandoc -T lint -W style "$page" 2>/dev/null | grep -v 'referenced manual not found')
        [ -z "$lint" ] || fault "$lint"
    done
fi
# named PROGRAM PAGE HELP: every option of the help text is in the page and in the completion
named() {
    words=$(printf '%s\n' "$3" | grep -oE '(^|[ ,])--?[a-z][a-z_-]*' | tr -d ' ,' | sort -u)
    for word in $words; do
        name=${word#-}
        grep -qE -e "Fl .*$name( |\$)" "$srcdir/man/$2" || fault "$2 does not name $word"
        grep -qE -e "[' ]${word}[' ]" "$srcdir/contrib/completion/$1" || fault "completion of $1 does not offer $word"
    done
    echo "$1: $(echo "$words" | wc -l) options"
    [ "$(echo "$words" | wc -l)" -ge 4 ] || fault "no options found in the help of $1"
}
commands=$("$builddir/ckpt" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
help=$(for command in $commands; do "$builddir/ckpt" help "$command"; done)
named ckpt ckpt.1 "$help"
for command in $commands; do
    grep -q "^\.It Cm $command " "$srcdir/man/ckpt.1" || fault "ckpt.1 does not describe $command"
    grep -q "[' ]${command}[' ]" "$srcdir/contrib/completion/ckpt" || fault "completion of ckpt does not offer $command"
done
if help=$("$builddir/ckptfs" --help); then
    named ckptfs ckptfs.1 "$(printf '%s\n' "$help" | sed '/^[A-Z].* -o.*:$/,$d')"
    for word in $(printf '%s\n' "$help" | sed '1,/^[A-Z].* -o.*:$/d' | sed -n 's/^  \([a-z_]*\)=\{0,1\}.*/\1/p'); do
        grep -qE "Cm .*$word( |,|\$)|, $word" "$srcdir/man/ckptfs.1" || fault "ckptfs.1 does not name -o $word"
        grep -q "[' ]$word" "$srcdir/contrib/completion/ckptfs" || fault "completion of ckptfs does not offer -o $word"
    done
fi
if command -v bash >/dev/null; then
    offered=$(PATH=$(cd "$builddir" && pwd):$PATH bash -c '
        . "$1/contrib/completion/ckpt"
        compopt() { :; }
        COMP_WORDS=(ckpt cat "$1/tests/golden/oam/valid/transformer_adamw.oam" tensors/tok) COMP_CWORD=3
        _ckpt
        printf "%s " "${COMPREPLY[@]}"' bash "$srcdir")
    [ "$offered" = 'tensors/tok.weight.npy ' ] || fault "completion of a path offers '$offered'"
    # offers COMMAND ANSWER WORD...: what is offered for the last of the words, as bash splits them at '=' and ':';
    # the options of compopt come before it
    offers() {
        command=$1 answer=$2
        shift 2
        offered=$(bash -c '
            . "$1"
            compopt() { printf "%s " "$@"; }
            shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            "_$1"
            printf "%s|" "${COMPREPLY[@]}"' bash "$srcdir/contrib/completion/$command" "$command" "$@")
        [ "$offered" = "$answer" ] || fault "completion of '$command $*' offers '$offered', not '$answer'"
    }
    offers ckptfs '-o nospace verify=lazy|verify=full|verify=background|verify=off|' -o verify
    offers ckptfs '-o nospace lazy|full|background|off|' -o verify =
    offers ckptfs '-o nospace full|' -o verify = f
    offers ckptfs '-o nospace lazy,xattr|' -o verify = lazy,xat
    offers ckptfs '-o nospace stored|f32|f16|bf16|' -o gpu,gpu_dtype =
    offers ckptfs '-o nospace ipc|fd|' -o gpu_share =
    offers ckptfs '-o nospace ipc,redact|' -o gpu,gpu_dtype = f32,gpu_share = ipc,red
    offers ckptfs '-o nospace sha256:|' -o manifest = sha
    offers ckptfs '-o nospace 00,xattr|' -o manifest = sha256 : 00,xat
    offers ckptfs "-o nospace $srcdir/man/ckptfs.5|" -o xattr,contract = "$srcdir/man/ckptfs.5"
    offers ckptfs '-o nospace verify=lazy,xattr|' -o verify=lazy,xat # where COMP_WORDBREAKS has no '='
    offers ckptfs "-o filenames $srcdir/man/ckptfs.5|" -o contract = a "$srcdir/man/ckptfs.5"
    offers ckpt '-o nospace sha256:|' verify --manifest ''
    offers ckpt '-o nospace sha256:|' verify --manifest =
    offers ckpt '-o nospace sha256:|' verify --manifest = sh
    offers ckpt "-o filenames $srcdir/man/ckpt.1|" seal --contract = "$srcdir/man/ckpt."
fi
echo "$faults faults"
[ "$faults" -eq 0 ]
