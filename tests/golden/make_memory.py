"""An HDF5 file whose chunks are much larger than their bytes in the file, by h5py.

python tests/golden/make_memory.py
"""
import os

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, WIDTH = 48, 4096

i = np.arange(ROWS)[:, None]
x = ((i * 7 + np.arange(WIDTH) % 31) / 8).astype("float32")
with h5py.File(os.path.join(HERE, "memory_chunks.h5"), "w") as f:
    f.create_dataset("x", data=x, chunks=(12, WIDTH), compression="gzip", shuffle=True)
    f.create_dataset("y", data=(np.arange(ROWS) % 2).astype("float32"))
