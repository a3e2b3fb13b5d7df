#!/usr/bin/env python3
"""Make the small seeds of fuzz_csv, fuzz_image, fuzz_h5_data and fuzz_layout. Run in this folder; needs
Pillow and h5py."""
import io
import os

from PIL import Image


def put(target, name, data):
    os.makedirs(f"corpus/{target}", exist_ok=True)
    with open(f"corpus/{target}/{name}", "wb") as f:
        f.write(data)


put("csv", "numbers", b"a,y\n1,2\n-3.5e2,4\n")
put("csv", "names", b'a,"y"\r\n1,dog\r\n2,"c ""a"" t"\r\n\r\n')
put("csv", "broken", b'\xef\xbb\xbfy\n"1\n",2\n,')


def picture(mode):
    image = Image.new("RGB", (11, 9))
    image.putdata([(x * 20, y * 25, x * y) for y in range(9) for x in range(11)])
    return image.convert(mode)


def saved(image, **more):
    b = io.BytesIO()
    image.save(b, **more)
    return b.getvalue()


put("image", "color.jpg", saved(picture("RGB"), format="JPEG"))
put("image", "progressive.jpg", saved(picture("RGB"), format="JPEG", progressive=True))
put("image", "gray.jpg", saved(picture("L"), format="JPEG"))
put("image", "cmyk.jpg", saved(picture("CMYK"), format="JPEG"))
for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"):
    if mode == "I;16":
        image = picture("L").convert("I").convert("I;16")
    else:
        image = picture(mode)
    put("image", "png_" + mode.replace(";", ""), saved(image, format="PNG"))


def hdf5(name, **more):
    import h5py
    import numpy as np

    with h5py.File("seed.h5", "w") as f:
        f.create_dataset("a/x", data=np.arange(24, dtype="i2").reshape(6, 4), **more)
        f["y"] = np.arange(6) % 2 == 0
    with open("seed.h5", "rb") as f:
        put("h5_data", name, f.read())
    os.remove("seed.h5")


hdf5("contiguous")
hdf5("chunks", chunks=(4, 3))
hdf5("gzip", chunks=(4, 4), compression="gzip", shuffle=True, fletcher32=True)

put("layout", "records", b"(header=8,y=uint8,_=uint8(2),x=>uint16(3,4,5):chw)")
put("layout", "drawn", b"(x=normal(3),y=int(7,2),sample_weight=float32,rows=9,seed=4)")
