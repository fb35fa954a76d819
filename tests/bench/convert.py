# SPDX-License-Identifier: Apache-2.0
"""ckpt convert against cp and a flush, since what convert wrote is on the disk."""
import os
import subprocess
import time

from figures import Rounds, show
from mounts import warm


def timed(source, made, command):
    """Wall-clock seconds of the command and of a flush, which has nothing left to do after convert."""
    warm(source)
    start = time.perf_counter()
    subprocess.run([*command, source, made], check=True)
    with open(made, "rb") as file:
        os.fsync(file)
    seconds = time.perf_counter() - start
    os.unlink(made)
    return seconds


def run_convert(bench):
    convert = [bench.program("ckpt"), "convert"]
    rounds = Rounds(
        forth=lambda: timed(bench.oam, bench.path("made.safetensors"), convert),
        cp=lambda: timed(bench.oam, bench.path("made"), ["cp"]),
        back=lambda: timed(bench.safetensors, bench.path("made.oam"), convert))
    show("convert.ratio_cp", rounds.speed("forth", "cp"), "ratio")
    show("convert_back.ratio_cp", rounds.speed("back", "cp"), "ratio")
