"""Directories as Keras reads them: image_, audio_ and text_dataset_from_directory on small files.

Writes directories.json: the bytes of the files (base64), pixels for every interpolation and way to
treat the aspect ratio, the order and labels of files, samples, texts, and what Keras refuses. Of
pixels it keeps a few numbers of the result (the sum, the sum weighted by position, and elements far
apart), enough to tell any other decoder or resize from this one.
"""
import base64
import io
import json
import os
import struct
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
import keras
import numpy as np
import tensorflow as tf
from PIL import Image

y, x = np.mgrid[0:37, 0:53]
rng = np.random.RandomState(1)
image = np.stack(
    [128 + 90 * np.sin(x / 5 + y / 9), 128 + 80 * np.cos(y / 4), (x * 4 + y * 2) % 256], -1
)
image = np.clip(image + rng.randint(-20, 20, image.shape), 0, 255).astype(np.uint8)
alpha = np.concatenate([image, 255 - image[:, :, :1]], -1)


def pil(pixels, **more):
    out = io.BytesIO()
    picture = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    picture.save(out, **more)
    return out.getvalue()


def gif(canvas, frames):
    """A GIF of four colours. Each frame: left, top, width, height, pixels, transparent, interlaced."""
    out = bytearray(b"GIF89a" + struct.pack("<HHBBB", *canvas, 0x81, 0, 0))
    out += bytes([0, 0, 0, 250, 10, 20, 30, 240, 40, 50, 60, 230])
    for left, top, w, h, pixels, transparent, interlaced in frames:
        if transparent is not None:
            out += bytes([0x21, 0xF9, 4, 1, 0, 0, transparent, 0])
        out += b"\x2c" + struct.pack("<HHHHB", left, top, w, h, 0x40 * interlaced) + b"\x02"
        bits = []
        for k, code in enumerate(pixels):
            for c in [4, code] if k % 2 == 0 else [code]:  # cleared before the codes get longer
                bits += [c >> i & 1 for i in range(3)]
        bits += [1, 0, 1]
        bits += [0] * (-len(bits) % 8)
        data = bytes(sum(bits[8 * i + j] << j for j in range(8)) for i in range(len(bits) // 8))
        for i in range(0, len(data), 255):
            out += bytes([len(data[i : i + 255])]) + data[i : i + 255]
        out += b"\0"
    return bytes(out + b"\x3b")


six = [1, 2, 3, 1, 2, 3]
colours = Image.fromarray(image).quantize(40)
files = {
    "photo.png": pil(image, format="PNG"),
    "alpha.png": pil(alpha, format="PNG"),
    "gray.png": pil(image[:, :, 0], format="PNG"),
    "gray_alpha.png": pil(alpha[:20, :20, 2:], format="PNG"),
    "clear.png": pil(Image.fromarray(image[:20, :20]).quantize(9), format="PNG", transparency=3),
    "clear_gray.png": pil(image[:20, :20, 0], format="PNG", transparency=int(image[3, 4, 0])),
    "deep.png": tf.io.encode_png((alpha.astype(np.int64) * 257 - 5 * (alpha > 10)).astype(np.uint16)[:20, :20]).numpy(),
    "deep_gray.png": tf.io.encode_png((image.astype(np.int64) * 257 - 5 * (image > 10)).astype(np.uint16)[:20, :20, :1]).numpy(),
    "photo.jpg": pil(image, format="JPEG", quality=90),
    "tall.png": pil(np.concatenate([image, image[::-1]])[:61, :9], format="PNG"),
    "bits24.bmp": pil(image, format="BMP"),
    "bits32.bmp": pil(alpha, format="BMP"),
    "bits8.bmp": pil(image[:, :, 0], format="BMP"),
    "down.bmp": None,
    "palette.gif": pil(colours, format="GIF"),
    "animated.gif": gif((6, 5), [(0, 0, 3, 2, six, None, 0), (0, 0, 3, 2, six[::-1], None, 0)]),
    "part.gif": gif((9, 9), [(1, 1, 3, 2, six, None, 0), (0, 0, 5, 4, [1] * 20, None, 0)]),
    "transparent.gif": gif((3, 2), [(0, 0, 3, 2, six, 2, 0)]),
    "outside.gif": gif((3, 2), [(2, 1, 3, 2, six, None, 0)]),
    "interlaced.gif": gif((2, 9), [(0, 0, 2, 9, six * 3, None, 1)]),
    "cut_later.gif": gif((6, 5), [(0, 0, 3, 2, six, None, 0), (0, 0, 6, 5, [1] * 30, None, 0)])[:-9],
    "lossy.webp": pil(image, format="WEBP", quality=80),
    "lossless.webp": pil(image, format="WEBP", lossless=True),
    "alpha.webp": pil(alpha, format="WEBP", lossless=True),
}
down = bytearray(files["bits24.bmp"])  # rows from the top: a negative height
down[22:26] = struct.pack("<i", -37)
files["down.bmp"] = bytes(down)


def put(root, name, data):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def images(root, **more):
    return keras.utils.image_dataset_from_directory(
        root, labels=None, shuffle=False, batch_size=1, verbose=False, **more
    )


def pixels(name, channels, size, method, aspect):
    with tempfile.TemporaryDirectory() as root:
        ending = name.replace(".webp", ".png")  # Keras lists no .webp; TensorFlow goes by the bytes
        put(root, ending, files[name])
        mode = {1: "grayscale", 3: "rgb", 4: "rgba"}[channels]
        more = {aspect + "_to_aspect_ratio": True} if aspect else {}
        try:
            data = images(root, image_size=size, color_mode=mode, interpolation=method, **more)
            return np.asarray(next(iter(data)))[0]
        except Exception:
            return None


METHODS = ["bilinear", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "nearest"]
plan = []
for name in files:
    for channels in (3, 4, 1):
        size = Image.open(io.BytesIO(files[name])).size[::-1]
        plan.append((name, channels, size, "nearest", ""))
plan = [p if p[0] != "part.gif" else (p[0], p[1], (4, 5), *p[3:]) for p in plan]
plan = [p if p[0] != "outside.gif" else (p[0], p[1], (2, 3), *p[3:]) for p in plan]
for method in METHODS:
    for aspect in ("", "crop", "pad"):
        for size in ((20, 20), (64, 48), (9, 70), (37, 53)):
            plan.append(("photo.png", 3, size, method, aspect))
        plan.append(("tall.png", 3, (24, 31), method, aspect))
        plan.append(("gray.png", 1, (30, 17), method, aspect))
        plan.append(("alpha.png", 4, (30, 17), method, aspect))
cases = []
for name, channels, size, method, aspect in plan:
    out = pixels(name, channels, size, method, aspect)
    case = {"file": name, "channels": channels, "height": size[0], "width": size[1]}
    case.update(interpolation=METHODS.index(method), aspect=aspect, refused=out is None)
    if out is not None:
        assert out.shape == (*size, channels), (name, out.shape)
        flat = out.astype(np.float64).ravel()
        step = 397 if flat.size > 400 else 1
        case.update(
            sum=round(float(flat.sum()), 3),
            weighted=round(float((flat * (np.arange(flat.size) % 97)).sum()), 2),
            step=step,
            some=[round(float(v), 4) for v in flat[::step]],
        )
    cases.append(case)

# ---- the order and labels of files ---------------------------------------------------------------

tree = [
    "set/b/1.png", "set/b/0.jpeg", "set/a/10.jpg", "set/a/2.JPG", "set/a/z/1.png", "set/a b/x.bmp",
    "set/a/.hidden.png", "set/c/deep/er/5.gif", "set/c/4.Png", "set/top.png", "set/a/notes.md",
    "set/.hid/x.png", "set/Z/1.PNG", "set/\u00e9/1.png", "set/a-/1.png", "outside/e2.png",
    "outside/in/e1.png",
]  # fmt: skip
links = [["set/b/more", "../../outside"], ["set/link", "../outside"]]
tiny = pil(image[:1, :1], format="PNG")
listings = []
with tempfile.TemporaryDirectory() as root:
    for path in tree:
        put(root, path, tiny)
    for at, to in links:
        os.symlink(to, os.path.join(root, at))
    top = os.path.join(root, "set")
    for args in (
        {},
        {"label_mode": "categorical", "class_names": ["c", "a"]},
        {"label_mode": "binary", "class_names": ["b", "a b"]},
        {"label_mode": None},
        {"follow_links": True},
        {"label_mode": None, "follow_links": True},
        {"labels": [2, 0, 1] * 4 + [0, 1]},
        {"labels": [0, 1] * 7, "label_mode": "binary"},
        {"labels": [1, 0, 2, 2] * 3 + [1, 0], "label_mode": "categorical"},
        {"labels": [1, 0, 2, 2]},
        {"labels": [0] * 14, "class_names": ["a"]},
        {"label_mode": None, "labels": None, "class_names": ["a"]},
        {"class_names": ["a", "nothing"]},
        {"label_mode": "binary"},
        {"labels": [0, 1, 2] * 4 + [0, 1], "label_mode": "binary"},
    ):
        listing = {"args": args, "refused": False}
        try:
            data = keras.utils.image_dataset_from_directory(
                top, shuffle=False, batch_size=None, image_size=(1, 1), verbose=False, **args
            )
            listing["files"] = [os.path.relpath(p, top) for p in data.file_paths]
            listing["class_names"] = data.class_names
            rows = list(data)
            if args.get("label_mode", "int") is not None:
                listing["labels"] = [np.asarray(r[1]).tolist() for r in rows]
        except ValueError as e:
            listing.update(refused=True, says=str(e))
        listings.append(listing)
    counts = []
    for split in (0.1, 0.25, 0.3, 0.5):
        row = [split]
        for subset in ("training", "validation"):
            data = keras.utils.image_dataset_from_directory(
                top, image_size=(1, 1), batch_size=None, verbose=False, seed=3,
                validation_split=split, subset=subset,
            )  # fmt: skip
            row.append(len(data.file_paths))
        counts.append(row)

# ---- sound ---------------------------------------------------------------------------------------


def wav(samples, rate=8000, head=b""):
    data = np.asarray(samples, "<i2")
    channels = data.shape[1]
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * 2 * channels, 2 * channels, 16)
    body = b"WAVE" + head + b"fmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", data.nbytes) + data.tobytes()
    return b"RIFF" + struct.pack("<I", len(body)) + body


wavs = {
    "a/1.wav": wav([[0], [1], [-1], [32767], [-32768], [12345]]),
    "a/2.WAV": wav([[i * 1000 - 9000] for i in range(19)]),
    "b/0.wav": wav([[7], [-7]], head=b"JUNK" + struct.pack("<I", 4) + b"abcd"),
}
sounds = []
with tempfile.TemporaryDirectory() as root:
    for path, data in wavs.items():
        put(root, path, data)
    for length in (None, 4, 25):
        data = keras.utils.audio_dataset_from_directory(
            root, shuffle=False, batch_size=3, output_sequence_length=length, verbose=False
        )
        rows, labels = next(iter(data))
        sounds.append({
            "length": length or 0,
            "shape": list(rows.shape),
            "x": np.asarray(rows).astype(np.float64).ravel().tolist(),
            "y": np.asarray(labels).tolist(),
        })  # fmt: skip

# ---- texts ---------------------------------------------------------------------------------------

texts = {"neg/1.txt": "bad \u00e9 film\n", "neg/10.txt": "", "pos/2.TXT": "good\0 one", "pos/1.txt": "a"}
read = []
with tempfile.TemporaryDirectory() as root:
    for path, text in texts.items():
        put(root, path, text.encode())
    for most in (None, 5):
        data = keras.utils.text_dataset_from_directory(
            root, shuffle=False, batch_size=4, max_length=most, verbose=False
        )
        rows, labels = next(iter(data))
        read.append({
            "max_length": most or 0,
            "x": [base64.b64encode(r).decode() for r in rows.numpy()],
            "y": np.asarray(labels).tolist(),
        })  # fmt: skip

b64 = lambda d: {k: base64.b64encode(v).decode() for k, v in d.items()}
out = {
    "files": b64(files),
    "cases": cases,
    "tree": tree,
    "links": links,
    "tiny": base64.b64encode(tiny).decode(),
    "listings": listings,
    "splits": counts,
    "wavs": b64(wavs),
    "sounds": sounds,
    "texts": b64({k: v.encode() for k, v in texts.items()}),
    "read": read,
}
text = json.dumps(out, separators=(",", ":"))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "directories.json"), "w") as f:
    f.write(text.replace('{"file"', '\n{"file"').replace('{"args"', '\n{"args"') + "\n")
