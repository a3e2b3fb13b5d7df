"""Images as Keras reads them: decode_image and image.resize of TensorFlow on small files.

Writes images.json: for each file its bytes (base64), and for each way of reading it a few numbers
of the result (the sum, the sum weighted by position, and elements far apart), enough to tell any
other decoder or resize from this one.
"""
import base64
import io
import json
import os

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np
import tensorflow as tf
from PIL import Image

y, x = np.mgrid[0:37, 0:53]
rng = np.random.RandomState(1)
image = np.stack(
    [128 + 90 * np.sin(x / 5 + y / 9), 128 + 80 * np.cos(y / 4), (x * 4 + y * 2) % 256], -1
)
image = np.clip(image + rng.randint(-20, 20, image.shape), 0, 255).astype(np.uint8)
deep = (image.astype(np.int64) * 257 - 5 * (image > 10)).astype(np.uint16)


def pil(picture, **more):
    out = io.BytesIO()
    picture.save(out, **more)
    return out.getvalue()


# Inks: as Adobe's programs store them, with and without their marker, and with luma and chroma.
inks = pil(Image.merge("CMYK", [Image.fromarray(image[:, :, k % 3] // (1 + k // 3)) for k in range(4)]), format="JPEG")
marker = inks.index(b"\xff\xee")
assert inks[marker + 2 : marker + 9] == b"\0\x0eAdobe"

files = {
    "photo.jpg": tf.io.encode_jpeg(image, quality=90).numpy(),
    "full_chroma.jpg": tf.io.encode_jpeg(image, quality=95, chroma_downsampling=False).numpy(),
    "progressive.jpg": tf.io.encode_jpeg(image, quality=70, progressive=True).numpy(),
    "cmyk.jpg": inks,
    "no_marker.jpg": inks[:marker] + inks[marker + 16 :],
    "ycck.jpg": inks[: marker + 15] + b"\2" + inks[marker + 16 :],
    "gray.jpg": tf.io.encode_jpeg(image[:, :, :1], quality=80).numpy(),
    "rgb.png": tf.io.encode_png(image[:20, :20]).numpy(),
    "gray.png": tf.io.encode_png(image[:20, :20, :1]).numpy(),
    "rgba.png": tf.io.encode_png(np.concatenate([image, image[:, :, :1]], -1)[:20, :20]).numpy(),
    "deep.png": tf.io.encode_png(deep[:20, :20]).numpy(),
    "palette.png": pil(Image.fromarray(image).quantize(40), format="PNG"),
    "bits.png": pil(Image.fromarray(image[:, :, 0] > 128), format="PNG"),
}
inked = [files[name] for name in ("cmyk.jpg", "no_marker.jpg", "ycck.jpg")]
cases = []
for name, data in files.items():
    for channels in (3,) if data in inked else (3, 1):  # TensorFlow makes no gray of inks
        decoded = tf.io.decode_image(data, channels=channels, expand_animations=False)
        for height, width, method in (
            (37, 53, "bilinear"),
            (20, 20, "bilinear"),
            (64, 48, "bilinear"),
            (9, 70, "bilinear"),
            (41, 17, "nearest"),
        ):
            out = tf.image.resize(decoded, (height, width), method=method).numpy()
            flat = out.astype(np.float64).ravel()
            cases.append(
                {
                    "file": name,
                    "channels": channels,
                    "height": height,
                    "width": width,
                    "interpolation": method,
                    "sum": float(flat.sum()),
                    "weighted": float((flat * (np.arange(flat.size) % 97)).sum()),
                    "some": [round(float(v), 5) for v in flat[::397]],
                }
            )
text = json.dumps(
    {"files": {k: base64.b64encode(v).decode() for k, v in files.items()}, "cases": cases},
    separators=(",", ":"),
)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "images.json"), "w") as f:
    f.write(text.replace('{"file"', '\n{"file"') + "\n")
