#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the build embeds, where there is a CUDA Toolkit: all kernels in PTX that old drivers read, with the arithmetic
# that src/gpu/convert.h promises, and both images inside the program.
srcdir=${srcdir:-.}
builddir=${builddir:-.}
ptx=$builddir/src/gpu/kernels.ptx fatbin=$builddir/src/gpu/kernels.fatbin program=$builddir/ckptfs-gpu
[ -f "$ptx" ] || { echo "built without the CUDA Toolkit: skipped" && exit 77; }
faults=0
fault() {
    echo "fault: $*" && faults=$((faults + 1))
}
names=$(sed -n 's/^ *ROW([A-Z0-9_]*, \(ckpt_[a-z0-9_]*\)).*/\1/p' "$srcdir/src/gpu/convert.h")
count=0
for name in $names; do
    count=$((count + 1))
    grep -q "^.visible .entry $name(" "$ptx" || fault "no kernel $name in the PTX"
    grep -aq "$name" "$fatbin" || fault "no kernel $name in the fat binary"
done
[ "$count" -eq 10 ] || fault "$count kernels"
grep -q '^\.version 6\.3$' "$ptx" || fault "the PTX is of another version"
grep -q '^\.target sm_75$' "$ptx" || fault "the PTX is for another device"
# A product is rounded once, and subnormals are kept.
grep -q 'mul\.rn\.f32' "$ptx" || fault "no product that is rounded to nearest"
! grep -nE 'fma|mad\.rn|\.ftz|\.approx|\.full' "$ptx" || fault "arithmetic that rounds otherwise"
python3 -B - "$program" "$ptx" "$fatbin" <<'END' || faults=$((faults + 1))
import sys
program, *images = (open(path, "rb").read() for path in sys.argv[1:])
sys.exit(sum(program.count(image) != 1 for image in images))
END
echo "$faults faults"
[ "$faults" -eq 0 ]
