#!/usr/bin/env python3
"""Make the small seeds of fuzz_npy, fuzz_npz, fuzz_weights_h5 and fuzz_idx. Run in this folder;
needs numpy and h5py."""
import gzip
import io
import os
import struct

import h5py
import numpy as np


def put(target, name, data):
    os.makedirs(f"corpus/{target}", exist_ok=True)
    with open(f"corpus/{target}/{name}", "wb") as f:
        f.write(data)


def saved(save, *args, **kwargs):
    b = io.BytesIO()
    save(b, *args, **kwargs)
    return b.getvalue()


for code in ["f4", "f8", "u1", "i4", "i8", "b1", "i1", "i2", "u2"]:
    put("npy", code, saved(np.save, np.arange(6).astype(code).reshape(2, 3)))
put("npy", "fortran", saved(np.save, np.asfortranarray(np.arange(6, dtype="i2").reshape(2, 3))))
put("npy", "bytes", saved(np.save, np.array([[b"cat", b""], [b"dog.", b"x"]])))
put("npy", "texts", saved(np.save, np.array(["cat", "", "h\u00e4\u20ac\U0001f600"])))
put("npy", "scalar", saved(np.save, np.float32(2)))
put("npy", "version3", saved(lambda b: np.lib.format.write_array(b, np.ones(2), version=(3, 0))))

put("npz", "stored", saved(np.savez, x=np.ones((2, 2), "f4"), y=np.zeros(2, "i2")))
put("npz", "deflated", saved(np.savez_compressed, x=np.zeros(4000, "u1")))

put("npz", "texts", saved(np.savez_compressed, y=np.array(["cat", "dog"])))

for code in [8, 9, 11, 12, 13, 14]:
    size = {8: 1, 9: 1, 11: 2, 12: 4, 13: 4, 14: 8}[code]
    plain = struct.pack(">BBBBII", 0, 0, code, 2, 2, 3) + bytes(range(6 * size))
    put("idx", f"type{code}", plain)
put("idx", "gzip", gzip.compress(plain, mtime=0))


def weights(b, layers):
    with h5py.File(b, "w") as f:
        for name, arrays in layers:
            g = f.create_group(name)
            g.attrs["name"] = "n"
            for i, a in enumerate(arrays):
                g[str(i)] = a


put("weights_h5", "scalar", saved(weights, [("vars", [np.int64(3)])]))
put("weights_h5", "dense", saved(weights, [("layers/dense/vars", [np.ones((2, 3), "f4"), np.ones(3, "f8")])]))
put("weights_h5", "many", saved(weights, [("vars", [np.uint8(i) for i in range(12)] + [np.zeros((0, 2), "f4")])]))
