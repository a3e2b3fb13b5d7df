"""python_alone.py INCLUDE FOLDER KEEL: the package keel without Keras, on FOLDER/m.keras; by test_python.sh."""

import subprocess
import sys

import numpy as np

import keel
from keel import _library, _sources

include, folder, command = sys.argv[1:]
rng = np.random.default_rng(1)
x, y = rng.normal(size=(37, 6)).astype("float32"), rng.integers(0, 3, 37)
PLAIN = {"batch_size": 8, "epochs": 3, "seed": 5, "verbose": 0}


def structs_are_those_of_the_headers():
    program = "#include <keel/keel.h>\n#include <stdio.h>\nint main(void) {\n"
    expected = []
    for s in _library.STRUCTS:
        program += f'printf("{s.__name__} %zu\\n", sizeof({s.__name__}));\n'
        expected.append(f"{s.__name__} {_library.ctypes.sizeof(s)}")
        for name, _ in s._fields_:
            at, member = getattr(s, name), f"(({s.__name__} *)0)->{name}"
            program += f'printf("{s.__name__}.{name} %zu %zu\\n", offsetof({s.__name__}, {name}), sizeof({member}));\n'
            expected.append(f"{s.__name__}.{name} {at.offset} {at.size}")
    with open(f"{folder}/structs.c", "w") as f:
        f.write(program + "}\n")
    subprocess.run(
        ["cc", "-std=c11", f"-I{include}", f"{folder}/structs.c", "-o", f"{folder}/structs"], check=True
    )
    got = subprocess.run([f"{folder}/structs"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:-1]
    different = [f"{a} here, {b} in C" for a, b in zip(expected, got) if a != b]
    assert len(got) == len(expected) and not different, different


def numbers_are_those_of_the_headers():
    lines = ["#include <keel/keel.h>"]
    for name, value in [
        *(
            (n, getattr(_library, n))
            for n in "RANK_MAX LOGS_MAX SHARDS FLOAT32 FLOAT64 UINT8 INT32 INT64 BOOL STRING".split()
        ),
        *((n, getattr(_library, n)) for n in "END OK ENOMEM EARG ESHAPE EUNSUP EIO ECALLBACK".split()),
        *((f"ROLE_{n}", getattr(_library, n)) for n in ("INPUT", "TARGET", "WEIGHT")),
        *((f"FLOAT32_{n.upper()}", i) for i, n in enumerate(_library.FLOAT32_WAYS)),
        *((f"COLOR_{n.upper()}", i) for i, n in enumerate(_sources.COLORS)),
        *((f"LABEL_{str(n).upper()}", i) for i, n in enumerate(_sources.LABELS)),
        *((n.upper(), i) for i, n in enumerate(_sources.INTERPOLATIONS)),
        *((f"SUBSET_{(n or 'all').upper()}", i) for i, n in enumerate(_sources.SUBSETS)),
        *((f"MISSING_{'REFUSE' if n == 'error' else n.upper()}", i) for i, n in enumerate(_sources.MISSING)),
        *(({"error": "REFUSE"}.get(n, n.upper()), i) for i, n in enumerate(_library.ENDS)),
    ]:
        lines.append(f'_Static_assert(KEEL_{name} == {value}, "{name}");')
    with open(f"{folder}/numbers.c", "w") as f:
        f.write("\n".join(lines) + "\n")
    subprocess.run(["cc", "-std=c11", "-fsyntax-only", f"-I{include}", f"{folder}/numbers.c"], check=True)


def trained(*data, **options):
    m = keel.Model(f"{folder}/m.keras")
    history = m.fit(*data, **{**PLAIN, **options})
    return m, history


def bits_are_those_of_the_command():
    np.savez(f"{folder}/d.npz", x=x, y=y)
    run = [
        command,
        "fit",
        f"{folder}/m.keras",
        "--data",
        f"{folder}/d.npz",
        "--batch-size",
        "8",
        "--epochs",
        "3",
    ]
    subprocess.run([*run, "--seed", "5", "-o", f"{folder}/c.keras"], check=True, capture_output=True)
    mine, history = trained(x, y)
    theirs = keel.Model(f"{folder}/c.keras")
    assert np.array_equal(mine.predict(x, verbose=0), theirs.predict(x, verbose=0))
    assert mine.evaluate(x, y, verbose=0) == theirs.evaluate(x, y, verbose=0)
    data = keel.open(f"{folder}/d.npz", batch_size=8)
    assert data.rows == 37
    opened = trained(data, batch_size=None)[0]
    assert np.array_equal(opened.predict(data, verbose=0), theirs.predict(x, verbose=0))
    assert history.epoch == [0, 1, 2] and history.report["steps"] == 15
    assert history.history["loss"][2] < history.history["loss"][0]


def rows_may_come_in_any_form():
    class Batches:
        ended = 0

        def __len__(self):
            return 5

        def __getitem__(self, i):
            return x[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8]

        def on_epoch_end(self):
            self.ended += 1

    class Again:
        def __iter__(self):
            return (Batches()[i] for i in range(5))

    def forever():
        while True:
            yield from Again()

    expected = trained(x, y, shuffle=False)[0].predict(x, verbose=0)
    sequence = Batches()
    for data, options in [
        ((x[::-1][::-1], y.astype("int16")), {}),
        (([x], [y]), {}),
        ((np.asfortranarray(x.astype("float64")), y.astype(">i8")), {}),
        ((sequence,), {"batch_size": None}),
        ((Again(),), {"batch_size": None}),
        ((forever(),), {"batch_size": None, "steps_per_epoch": 5}),
    ]:
        got = trained(*data, shuffle=False, **options)[0].predict(x, verbose=0)
        assert np.array_equal(got, expected), data
    assert sequence.ended == 3
    assert np.array_equal(trained(x, y, shuffle=False)[0].predict(Again(), verbose=0), expected)


def callbacks_see_and_stop():
    class Sees:
        def __init__(self):
            self.seen = []

        def set_model(self, model):
            self.model = model

        def on_epoch_end(self, epoch, logs):
            self.seen.append((epoch, sorted(logs), round(self.model.learning_rate, 6)))
            self.model.learning_rate = 0.5
            self.model.stop_training = epoch == 1
            logs["mine"] = 2.0

    sees = Sees()
    _, history = trained(x, y, epochs=9, callbacks=["ReduceLROnPlateau(monitor='loss', patience=5)", sees])
    names = ["accuracy", "learning_rate", "loss"]
    assert [s[:2] for s in sees.seen] == [(0, names), (1, names)] and sees.seen[1][2] == 0.5, sees.seen
    assert history.history["mine"] == [2.0, 2.0] and history.stopped


def fails(kind, part, function):
    try:
        function()
    except kind as error:
        assert part in str(error), f"'{part}' is not in: {error}"
        return error
    raise AssertionError(f"no {kind.__name__} with '{part}'")


def failures_are_exceptions():
    class Raises:
        def on_train_batch_end(self, batch, logs):
            if batch == 3:
                raise KeyError("mine")

    fails(KeyError, "mine", lambda: trained(x, y, callbacks=[Raises()]))
    fails(ValueError, "float64", lambda: trained(iter([(x, y), (x, y + 0.5)]), epochs=1, batch_size=None))
    fails(ValueError, "shape", lambda: trained(iter([(x, y), (x[:, :5], y)]), epochs=1, batch_size=None))
    fails(keel.ArgumentError, "37", lambda: trained(x, y[1:]))
    assert fails(keel.Error, "3", lambda: trained(x, y + 1)).status == "KEEL_EDATA"
    for name, value in [
        ("epochs", 0),
        ("batch_size", 0),
        ("batch_size", 1.5),
        ("end", "x"),
        ("float32", "x"),
    ]:
        fails(keel.ArgumentError, name, lambda: trained(x, y, **{name: value}))
    for weights in ({-1: 1.0}, {"a": 1.0}, {1 << 40: 1.0}):
        fails(keel.ArgumentError, "class_weight", lambda: trained(x, y, class_weight=weights))
    fails(keel.ArgumentError, "no callback", lambda: trained(x, y, callbacks=[3]))
    fails(keel.Unsupported, "object", lambda: trained(np.array([[None] * 6] * 37), y))
    fails(keel.Unsupported, "list", lambda: trained(x, y, validation_freq=[1, 2]))
    fails(keel.ArgumentError, "None", lambda: trained(None))
    fails(keel.ArgumentError, "y and sample_weight", lambda: trained(iter([(x, y)]), y))
    fails(keel.FileError, "nowhere", lambda: keel.Model("/nowhere.keras"))
    fails(TypeError, "str", lambda: keel.fit("m.keras", x, y))


for test in [f for f in dict(globals()).values() if callable(f) and f.__module__ == "__main__"]:
    if test not in (trained, fails):
        test()
        print(f"ok {test.__name__}")
