#!/usr/bin/env python3
"""Make the small seeds of fuzz_csv, fuzz_jsonl, fuzz_text_file, fuzz_number, fuzz_toml, fuzz_image
and its formats, fuzz_wav, fuzz_labels, fuzz_h5_data, fuzz_layout, fuzz_exec, fuzz_file_list, fuzz_choices
and fuzz_control_group. Run in this folder; needs Pillow and h5py."""
import gzip
import io
import os
import struct

from PIL import Image


def put(target, name, data):
    os.makedirs(f"corpus/{target}", exist_ok=True)
    with open(f"corpus/{target}/{name}", "wb") as f:
        f.write(data)


put("csv", "numbers", b"a,y\n1,2\n-3.5e2,4\n")
put("csv", "names", b'a,"y"\r\n1,dog\r\n2,"c ""a"" t"\r\n\r\n')
put("toml", "pipeline", b"source = 'a.npz' # c\n[[stage]]\nname = 'take'\ncount = 1_0\n")
put("toml", "values", b'a.b = [1, 0x2, { c = -1.5e3, d = true }]\n[t."x y"]\nz = "\\u00e9"\n')
put("csv", "missing", b"a,b,y\n1,NA,true\n,2.5,false\n20000001,3,TRUE\n")
put("csv", "tabs", b"0\ty\tb\n2024-01-31\t-1.#IND\t1e39\n")
put("jsonl", "numbers", b'{"x": [[1, 2.5], [null, true]], "y": "a"}\n{"y": "b", "x": [[1, 2], [3, 4]]}\n')
put("jsonl", "keys", b'{"a": {"b": 1, "c": "t"}, "d": "w"}\r\n\n{"d": 3, "a": {"c": "u", "b": 20000001}}')
put("jsonl", "broken", b'{"x": 1}\n[{"x": NaN}')
put("text_file", "plain", b"\xef\xbb\xbfa\r\n\nb\nlast")
put("text_file", "packed", gzip.compress(b"a\nb\n", mtime=0) + gzip.compress(b"c", mtime=0))
put("text_file", "many", gzip.compress(b"ab\n" * 30000, mtime=0))
for i, number in enumerate((b"0.1", b"-12345678901234567890e-12", b"9007199254740993", b"1e23")):
    put("number", f"number{i}", number)
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
put("image", "restarts.jpg", saved(picture("RGB"), format="JPEG", restart_marker_blocks=1, optimize=True, subsampling=0))
put("image", "cmyk.jpg", saved(picture("CMYK"), format="JPEG"))
for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"):
    if mode == "I;16":
        image = picture("L").convert("I").convert("I;16")
    else:
        image = picture(mode)
    put("image", "png_" + mode.replace(";", ""), saved(image, format="PNG"))

for target, name, mode, more in (
    ("bmp", "bits24", "RGB", {"format": "BMP"}),
    ("bmp", "bits32", "RGBA", {"format": "BMP"}),
    ("bmp", "bits8", "L", {"format": "BMP"}),
    ("gif", "plain", "P", {"format": "GIF"}),
    ("gif", "frames", "P", {"format": "GIF", "save_all": True, "append_images": [picture("L")]}),
    ("webp", "lossy", "RGB", {"format": "WEBP"}),
    ("webp", "lossless", "RGB", {"format": "WEBP", "lossless": True}),
    ("webp", "alpha", "RGBA", {"format": "WEBP"}),
):
    data = saved(picture(mode), **more)
    put(target, name, data)
    put("image", f"{target}_{name}", data)


def wav(code, bits, samples, head=b""):
    step = bits // 8
    form = struct.pack("<HHIIHH", code, 1, 8000, 8000 * step, step, bits)
    body = b"WAVE" + head + b"fmt " + struct.pack("<I", 16) + form
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


put("wav", "bits16", wav(1, 16, b"\0\0\1\0\xff\x7f"))
put("wav", "bits24", wav(1, 24, b"\0\0\1\0\xff\x7f"))
put("wav", "floats", wav(3, 32, struct.pack("<ff", 0.5, -1)))
put("wav", "list", wav(1, 8, b"\0\x80\xff", b"LIST" + struct.pack("<I", 3) + b"abc\0"))
put("labels", "numbers", b"0 1,2\n3\t40\r\n")

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


def npy(descr, shape, data, order="False"):
    head = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data


x, y = npy("<f4", "(2, 3)", bytes(24)), npy("<i8", "(2,)", bytes(16))
put("exec", "batches", x + y + npy("<f4", "(1, 3)", bytes(12)) + npy("<i8", "(1,)", bytes(8)))
put("exec", "turned", npy("<f2", "(2, 3)", bytes(12), "True") + npy("|b1", "(2,)", b"\0\1"))
put("exec", "differs", x + y + npy("<f4", "(2, 4)", bytes(32)) + y)
put("exec", "cut", (x + y)[:-3])
put("file_list", "range", b"shard-{000..010}.tar")
put("file_list", "words", b"{train,extra}-*.{tar,tgz}")
put("file_list", "nested", b"{a,{b}}{{0..9}..1}[x-z]?.tar.gz")
put("choices", "inputs", b'left=a,b\nright="c, ""d""",e\nplain\n"q"=x')
put("choices", "weights", b"sex=w\nage=v,u\na=")
put("choices", "features", b"image=uint8(28,28,1)\ntokens=(None)\nname=string\nx=float64")
second = b"0::/b/c\n\x0030 25 0:26 /b /sys rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
first = b"9:cpu:/x\n4:cpuacct,memory:/a\n0::/\n\x0030 25 0:26 / /sys rw - cgroup cgroup rw,memory\n"
put("control_group", "version_2", second + b"\x001000\n\x00300\n\0anon 200\nactive_file 40\ninactive_file 60\n")
put("control_group", "version_1", first + b"\x00max\n\0\0\x009223372036854771712\n")
put("control_group", "limited", first + b"\0\0\0total_active_file 7\n\0004096\n")
