# SPDX-License-Identifier: Apache-2.0
# The fuzz targets and the folders of inputs that each starts from; for replay.sh and fuzz.sh.
targets="json safetensors index contract oam envelope tree fnv1a gpu_proto"

# corpora TARGET: golden files, and what was kept of earlier findings.
corpora() {
    golden=$srcdir/tests/golden
    case $1 in
    json) echo "$golden/safetensors/sharded $golden/envelope/contracts $golden/oam/write" ;;
    safetensors) echo "$golden/safetensors" ;;
    index) echo "$golden/safetensors/sharded" ;;
    contract) echo "$golden/envelope/contracts" ;;
    gpu_proto) ;; # only what is kept below
    fnv1a) echo "$golden/oam/quantized" ;;
    oam) echo "$golden/oam/valid $golden/oam/broken $golden/oam/mutated $golden/oam/quantized" ;;
    envelope) echo "$golden/envelope/accepted $golden/envelope/refused" ;;
    tree) echo "$(corpora oam) $(corpora envelope) $(corpora safetensors) $(corpora index)" ;;
    esac
    [ ! -d "$srcdir/tests/fuzz/corpus/$1" ] || echo "$srcdir/tests/fuzz/corpus/$1"
}
