"""Write tests/golden/data_*.h5: files that h5py writes, small, with values that say their place.

x[i, j, ...] is its index in row-major order plus an offset per array; y[i] is i % 3.
Run: python make_data_files.py (h5py, numpy)."""
import os

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def ramp(shape, dtype, scale=1):
    return (np.arange(np.prod(shape)).reshape(shape) % 1000 * scale).astype(dtype)


with h5py.File(os.path.join(HERE, "data_kinds.h5"), "w") as f:
    rows = 37
    y = np.arange(rows) % 3
    f["x"] = ramp((rows, 4), "f4", 0.5)
    f["y"] = y.astype("i8")
    f["sample_weight"] = np.linspace(0.5, 1, rows).astype("f4")
    f["train/images"] = (ramp((rows, 5, 6, 3), "i8") % 251).astype("u1")
    f["train/labels"] = y.astype("u1")
    for code in ["f2", "f8", "i1", "i2", "u2", "i4", "u4", ">f4", ">i2", ">i8"]:
        f["types/" + code.replace(">", "big_")] = (ramp((rows, 3), "i8") % 100).astype(code)
    f["types/bool"] = (ramp((rows, 3), "i8") % 2).astype("?")
    g = f.create_group("chunks")
    g.create_dataset("plain", data=ramp((rows, 5, 6), "i4"), chunks=(4, 2, 4))
    g.create_dataset("gzip", data=ramp((rows, 5, 6), "i4"), chunks=(4, 2, 4), compression="gzip")
    g.create_dataset("all", data=ramp((rows, 5, 6), "i4"), chunks=(8, 5, 6), compression="gzip",
                     shuffle=True, fletcher32=True)
    g.create_dataset("sum", data=ramp((rows, 7), "u1"), chunks=(3, 3), fletcher32=True)
    g.create_dataset("rank1", data=ramp((rows,), "f4"), chunks=(10,), compression="gzip",
                     shuffle=True)
    g.create_dataset("grows", data=ramp((rows, 2), "f4"), maxshape=(None, 2), chunks=(16, 2))
    b = f.create_group("bad")
    b["text"] = np.array(["a", "b"], dtype=h5py.string_dtype())
    b["whole"] = ramp((rows,), "u8")
    b["scalar"] = 1.5
    b["short"] = ramp((rows - 1, 2), "f4")
    b["empty"] = np.zeros((0, 2), "f4")
    b.create_dataset("lzf", data=ramp((rows, 2), "f4"), compression="lzf")
    b.create_dataset("holes", shape=(rows, 2), dtype="f4", chunks=(5, 2))
    b["pair"] = np.zeros(rows, dtype=[("a", "f4"), ("b", "i4")])
    f["soft"] = h5py.SoftLink("/x")
    f["links/chain"] = h5py.SoftLink("/soft")
    f["links/beside"] = h5py.SoftLink("chain")
    f["links/deep"] = h5py.SoftLink("/chunks/gzip")
    f["links/nowhere"] = h5py.SoftLink("/nothing")
    f["links/circle"] = h5py.SoftLink("/links/circle")
    f["links/group"] = h5py.SoftLink("/chunks")
    f["x"].attrs["units"] = "m"

with h5py.File(os.path.join(HERE, "data_newer.h5"), "w", libver="latest") as f:
    f["x"] = ramp((4, 2), "f4")

with h5py.File(os.path.join(HERE, "data_costly.h5"), "w") as f:
    # a chunk of 64 MiB from 65 KB, and one that is larger than may be
    f.create_dataset("x", data=np.zeros((16, 1 << 20), "f4"), chunks=(16, 1 << 20),
                     compression="gzip", compression_opts=9)
    f.create_dataset("large", shape=(17, 1 << 20), dtype="f4", chunks=(17, 1 << 20),
                     compression="gzip")
with h5py.File(os.path.join(HERE, "data_loop.h5"), "w") as f:
    f["x"] = ramp((4, 2), "f4")
    for i in range(8):
        f["loop%d" % i] = f["/"]
