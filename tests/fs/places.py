# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of each path of a mount stand in the file, and what they were parsed from."""
import struct

import expected_tree


class Places:
    """path -> ranges (offset, bytes) of its content; path -> ranges that its name, size and place come from."""

    def __init__(self, data):
        self.content, self.parsed, self.units, self.sections = {}, {}, [], []
        self.data = data
        base = 0
        if data[:8] == b"ALPHACKP":
            base = self._envelope()
        inner = data[base:]
        if inner[:4] == b"OAM\0":
            self._oam(inner, base)
        elif expected_tree.looks_like_safetensors(inner):
            self._safetensors(inner, base)
        if not self.units:
            self.units = self.sections

    def _put(self, path, content, parsed):
        self.content[path] = [place for place in content if place[1]]
        self.parsed[path] = parsed

    def _envelope(self):
        header, total, chunk = struct.unpack_from("<3Q", self.data, 16)
        for index, at in enumerate(range(0, total, chunk or 1)):
            place = (header + at, min(chunk, total - at))
            self.units.append(("chunk %d" % index, *place))
            self._put("envelope/chunks/%08d.bin" % index, [place], [])
        self._put("envelope/payload.bin", [(header, total)], [])
        for name in ("header.bin", "envelope.json", "SHA256SUMS"):
            self._put("envelope/" + name, [], [])
        return header

    def _tensors(self, group, rows, base, parsed):
        """Two views of each tensor, and the export of them all."""
        for row in rows:
            place = [(base + row["offset"], row["bytes"])]
            for view in ("npy", "raw"):
                if row[view]:
                    self._put(row[view], place, parsed)
        self._put("export/%s.safetensors" % group, [(base + row["offset"], row["bytes"]) for row in rows], parsed)

    def _oam(self, inner, base):
        _, index, facts, _ = expected_tree.oam_tree(inner)
        head = [(base, 64 + 64 * len(facts["sections"]))]
        self.sections = [("%s section" % row["kind"], base + row["offset"], row["size"]) for row in facts["sections"]]
        at = {row["kind"]: (base + row["offset"], row["size"]) for row in facts["sections"]}
        for kind, place in at.items():
            self._put("sections/%s.bin" % kind, [place], head)
        self._put("config.json", [at["config"]], head)
        self._put("raw/arch_config.bin", [(at["config"][0] + 108, at["config"][1] - 108)], head + [at["config"]])
        self._put("progress.json", [at["progress"]], head)
        tables = []
        for folder, kind, export in (("tensors", "weights", "model"), ("state", "state", "state")):
            if kind in at:
                rows = list(index[folder].values())
                tables.append((at[kind][0], 8 + 216 * len(rows)))
                self._tensors(export, rows, base, head + tables[-1:])
        if "optimizer" in at:
            offset, size = at["optimizer"]
            count = struct.unpack_from("<Q", self.data, offset + 44)[0]
            names = ["first_moment", "second_moment"][:1 if self.data[offset:offset + 5] == b"Muon\0" else 2]
            facts = head + [(offset, 68)]
            self._put("optimizer/optimizer.json", [(offset, 68)], head)
            rows = [{"offset": offset - base + 68 + 4 * count * i, "bytes": 4 * count, "npy": "optimizer/%s.npy" % name,
                     "raw": "raw/optimizer/%s.bin" % name} for i, name in enumerate(names)]
            self._tensors("optimizer", rows, base, facts)
        self._put("tensors.json", [], head + tables)
        self._put("checkpoint.json", [], head + tables)

    def _safetensors(self, inner, base):
        _, index, _, _ = expected_tree.safetensors_tree(inner)
        head = [(base, 8 + struct.unpack_from("<Q", inner, 0)[0])]
        self._tensors("model", list(index["tensors"].values()), base, head)
        for name in ("metadata.json", "tensors.json", "checkpoint.json"):
            self._put(name, [], head)


def touch(places, offset, size):
    """Whether one of the places shares a byte with [offset, offset + size)."""
    return any(at < offset + size and offset < at + length for at, length in places)
