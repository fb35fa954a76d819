#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages named on the command line that are missing (used by demo.sh and check.sh).
set -eu
missing=
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || { echo "please install what these Debian packages hold:$missing" >&2; exit 2; }
run=
[ "$(id -u)" -eq 0 ] || run=sudo
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$run apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$run apt-get install -y -qq --no-install-recommends $missing >/dev/null
