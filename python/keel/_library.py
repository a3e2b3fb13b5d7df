"""libkeel through ctypes: where it is found, its structs and functions, and its errors.

tests/test_python.sh compares every struct here with the headers, by size and offsets.
"""

import ctypes
import operator
import os
import sys
import warnings
from ctypes import (
    POINTER,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)

RANK_MAX, LOGS_MAX, SHARDS = 6, 400, 16  # KEEL_RANK_MAX and so on
FLOAT32, FLOAT64, UINT8, INT32, INT64, BOOL, STRING = range(7)  # keel_dtype
INPUT, TARGET, WEIGHT = range(3)  # keel_data_role
FLOAT32_WAYS = ("exact", "fma", "fast")  # keel_float32
ENDS = ("keep", "drop", "carry", "wrap", "error")  # keel_end_of_data

END, OK, ENOMEM, EARG, ESHAPE, EUNSUP, EIO = 1, 0, -1, -2, -3, -4, -5
ECALLBACK = -10

# ---- errors -----------------------------------------------------------------------------------


class Error(Exception):
    """A call of libkeel failed. `status` is the name of its keel_status, "KEEL_EDATA"."""

    status = "KEEL_?"


class ArgumentError(Error, ValueError):
    """An argument is wrong, or shapes do not fit."""


class Unsupported(Error, NotImplementedError):
    """The model or an option needs something that Keel does not have; the text names it."""


class OutOfMemory(Error, MemoryError):
    """Memory could not be had; nothing has changed."""


class FileError(Error, OSError):
    """A file could not be read or written."""


KINDS = {
    ENOMEM: OutOfMemory,
    EARG: ArgumentError,
    ESHAPE: ArgumentError,
    EUNSUP: Unsupported,
    EIO: FileError,
}


def failure(status):
    """The exception for a status below 0, with the text of the thread's last error."""
    error = KINDS.get(status, Error)(lib.keel_error().decode(errors="replace"))
    error.status = lib.keel_status_name(status).decode()
    return error


def check(status):
    if status < 0:
        raise failure(status)
    return status


quiet = False  # another process says it


def tell(line):
    """One line for the user, at the place in the caller's program."""
    if quiet:
        return
    frame, level = sys._getframe(1), 2
    while frame and frame.f_globals.get("__package__") == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(f"keel: {line}", stacklevel=level)


def place(what, value, among):
    """The number of a text in an enum of the library."""
    if value not in among:
        raise ArgumentError(f"{what} is {value!r}; it is one of {', '.join(map(repr, among))}")
    return among.index(value)


def whole(name, value, least):
    """A whole number, also NumPy's, that fits into 63 bits."""
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not least <= operator.index(value) < 2**63
    ):
        raise ArgumentError(f"{name} is {value!r}; it is a whole number, {least} or more")
    return operator.index(value)


# ---- structs ----------------------------------------------------------------------------------


def struct(name, *fields):
    """A ctypes.Structure with the name that it has in C."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


Shape = struct("keel_shape", ("rank", c_int), ("dim", c_int64 * RANK_MAX))
Tensor = struct("keel_tensor", ("dtype", c_int), ("shape", Shape), ("data", c_void_p))
String = struct("keel_string", ("data", c_char_p), ("n_bytes", c_int64))
Logs = struct(
    "keel_logs",
    ("count", c_int),
    ("name", c_char_p * LOGS_MAX),
    ("value", c_double * LOGS_MAX),
)


def dict_of(logs):
    return {logs.name[i].decode(): logs.value[i] for i in range(logs.count)}


DataField = struct(
    "keel_data_field",
    ("path", c_char_p),
    ("dtype", c_int),
    ("shape", Shape),
    ("role", c_int),
    ("target", c_char_p),
)
ArrayField = struct(
    "keel_array_field",
    ("path", c_char_p),
    ("role", c_int),
    ("target", c_char_p),
    ("array", Tensor),
    ("row_splits", Tensor),
)
Moment = struct(
    "keel_moment",
    ("model", c_void_p),
    ("fits", c_bool),
    ("training", c_bool),
    ("epoch", c_int64),
    ("epochs", c_int64),
    ("initial_epoch", c_int64),
    ("step", c_int64),
    ("steps", c_int64),
    ("rows", c_int64),
    ("all_rows", c_int64),
    ("seconds", c_double),
    ("waited", c_double),
    ("logs", POINTER(Logs)),
    ("outputs", POINTER(Tensor)),
    ("output_count", c_int),
    ("watch", c_void_p),
    ("wait_share", c_double),
    ("late", c_char_p),
    ("targets", POINTER(Tensor)),
    ("weights", POINTER(Tensor)),
    ("masks", POINTER(Tensor)),
)
On = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Moment))
HOOKS = tuple(
    f"on_{what}"
    for what in (
        "train_begin train_end epoch_begin epoch_end train_batch_begin train_batch_end"
        " test_begin test_end test_batch_begin test_batch_end"
        " predict_begin predict_end predict_batch_begin predict_batch_end"
    ).split()
)
Callback = struct(
    "keel_callback",
    ("size", c_size_t),
    ("name", c_char_p),
    ("context", c_void_p),
    *((hook, On) for hook in HOOKS),
    ("save_state", c_void_p),
    ("load_state", c_void_p),
    ("state_tensor", c_void_p),
    ("sees_rows", c_bool),
)
Rate = ctypes.CFUNCTYPE(c_double, c_void_p, c_int64)
Line = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
FitOptions = struct(
    "keel_fit_options",
    ("size", c_size_t),
    ("batch_size", c_int64),
    ("epochs", c_int64),
    ("initial_epoch", c_int64),
    ("no_shuffle", c_bool),
    ("seed", c_uint64),
    ("end", c_int),
    ("steps_per_epoch", c_int64),
    ("validation", c_void_p),
    ("validation_batch_size", c_int64),
    ("validation_steps", c_int64),
    ("validation_freq", c_int64),
    ("validation_warns", c_bool),
    ("class_weight", POINTER(c_double)),
    ("class_weight_count", c_int64),
    ("threads", c_int),
    ("callbacks", POINTER(c_void_p)),
    ("profile", c_bool),
    ("trace", c_char_p),
    ("reference_kernels", c_bool),
    ("without_kernels", c_char_p),
    ("float32", c_int),
    ("unfused", c_bool),
    ("bucket", POINTER(c_int64)),
    ("bucket_count", c_int64),
    ("programs", c_int64),
    ("counts", c_void_p),
    ("reset_states", c_bool),
    ("checkpoint", c_void_p),
    ("watch", c_void_p),
    ("input_memory", c_int64),
    ("explain_input", Line),
    ("explain_context", c_void_p),
    ("input_report", c_char_p),
    ("explain_devices", Line),
    ("explain_devices_context", c_void_p),
    ("no_graphs", c_bool),
)
History = struct(
    "keel_history",
    ("epochs", c_int64),
    ("initial_epoch", c_int64),
    ("count", c_int),
    ("name", c_char_p * LOGS_MAX),
    ("value", POINTER(c_double)),
    ("stopped", c_bool),
    ("complete", c_bool),
    ("note", c_char_p),
    ("profile", c_void_p),
    ("steps", c_int64),
    ("rows", c_int64),
    ("full_rows", c_int64),
    ("last_rows", c_int64),
    *(
        (f"{what}_seconds" if what else "seconds", c_double)
        for what in ("", "compile", "step", "wait", "validation", "first_step")
    ),
    ("memory_planned", c_int64),
    ("memory_used", c_int64),
    ("input", c_void_p),
    ("device_memory", c_int64),
)
BATCHES = (  # how a generator and a sequence begin
    ("size", c_size_t),
    ("context", c_void_p),
    ("x_shape", Shape),
    ("y_shape", Shape),
    ("x_dtype", c_int),
    ("y_dtype", c_int),
    ("has_y", c_bool),
    ("has_weight", c_bool),
    ("max_rows", c_int64),
    ("rows", c_int64),
)
Next = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), c_int64, POINTER(c_int64))
Reset = ctypes.CFUNCTYPE(c_int, c_void_p)
Generator = struct(
    "keel_generator",
    *BATCHES,
    ("endless", c_bool),
    ("name", c_char_p),
    ("next", c_void_p),
    ("reset", Reset),
    ("release", c_void_p),
    ("n_field", c_int),
    ("field", POINTER(DataField)),
    ("next_fields", Next),
    ("next_row", c_void_p),
)
Length = ctypes.CFUNCTYPE(c_int64, c_void_p)
Get = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64, POINTER(c_void_p), c_int64, POINTER(c_int64))
Sequence = struct(
    "keel_sequence",
    *BATCHES,
    ("name", c_char_p),
    ("length", Length),
    ("get", c_void_p),
    ("on_epoch_end", Reset),
    ("release", c_void_p),
    ("n_field", c_int),
    ("field", POINTER(DataField)),
    ("get_fields", Get),
    ("get_shaped", c_void_p),
    ("workers", c_int),
)
DatasetOptions = struct(
    "keel_dataset_options",
    ("size", c_size_t),
    ("height", c_int64),
    ("width", c_int64),
    ("color_mode", c_int),
    ("label_mode", c_int),
    ("interpolation", c_int),
    ("label", c_char_p),
    ("validation_split", c_double),
    ("subset", c_int),
    ("seed", c_uint64),
    ("inputs", POINTER(c_char_p)),
    ("targets", POINTER(c_char_p)),
    ("n_input", c_int),
    ("n_target", c_int),
    ("no_header", c_bool),
    ("separator", c_char),
    ("class_names", POINTER(c_char_p)),
    ("class_name_count", c_int64),
    ("class_count", c_int64),
    ("target_modes", c_void_p),
    ("target_class_counts", c_void_p),
    ("n_numbered", c_int),
    ("labels", POINTER(c_int32)),
    ("label_count", c_int64),
    ("labels_path", c_char_p),
    ("folders", POINTER(c_char_p)),
    ("folder_count", c_int64),
    ("follow_links", c_bool),
    ("crop_to_aspect_ratio", c_bool),
    ("pad_to_aspect_ratio", c_bool),
    ("audio_length", c_int64),
    ("sampling_rate", c_int64),
    ("max_length", c_int64),
    ("features", POINTER(c_char_p)),
    ("n_feature", c_int),
    ("missing", c_int),
    ("missing_value", c_double),
    ("vocabularies", c_void_p),
    ("n_vocabulary", c_int),
    ("note", Line),
    ("note_context", c_void_p),
    ("unchecked", c_bool),
    ("image_dct_scaling", c_bool),
    ("skip_list", c_char_p),
    ("watch", c_void_p),
    ("sample_weight", c_char_p),
    ("sample_weights", POINTER(c_char_p)),
    ("n_sample_weight", c_int),
)
LISTS_OF_TEXTS = {  # and where their length is
    "inputs": "n_input",
    "targets": "n_target",
    "class_names": "class_name_count",
    "folders": "folder_count",
    "features": "n_feature",
}
DeviceInfo = struct(
    "keel_device_info",
    ("name", c_char * 64),
    ("description", c_char * 160),
    ("memory", c_int64),
)
ARG_IS_JSON, DIM_OPEN = 5, -1  # keel_arg_kind, keel_shape
INFERENCE, TRAINING, TRAINING_AGAIN = range(3)  # keel_calling
FACT_ROWS = 0  # keel_fact
Arg = struct(
    "keel_arg",
    ("key", c_char_p),
    ("kind", c_int),
    ("number", c_int64),
    ("real", c_double),
    ("text", c_char_p),
    ("ints", c_int64 * 8),
)
Named = struct("keel_named", ("name", c_char_p), ("args", POINTER(Arg)), ("output", c_int))
Term = struct("keel_term", ("scalar", c_int), ("factor", c_double))
Watched = struct("keel_watched", ("model", c_void_p), ("weight", c_char_p))
Apply = struct("keel_apply", ("optimizer", Named), ("when", c_void_p), ("context", c_void_p))
Step = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
WholeLoss = struct(
    "keel_whole_loss",
    ("name", POINTER(c_char_p)),
    ("value", POINTER(c_int)),
    ("n", c_int),
    ("step", Step),
    ("context", c_void_p),
)
FunctionOptions = struct(
    "keel_function_options",
    ("size", c_size_t),
    ("name", c_char_p),
    ("step", Step),
    ("context", c_void_p),
    ("dtype", c_int),
    ("input", POINTER(DataField)),
    ("n_input", c_int),
    ("seed", c_uint64),
    ("programs", c_int),
)
Launch = struct(
    "keel_launch",
    ("name", c_char_p),
    ("mpi", c_char_p),
    ("rank", c_int),
    ("size", c_int),
    ("local", c_int),
    ("slurm", c_bool),
)
ProcessGroup = struct(
    "keel_process_group",
    ("size", c_size_t),
    ("rank", c_int),
    ("count", c_int),
    ("timeout", c_double),
    ("context", c_void_p),
    ("host", c_void_p),
    ("start", c_void_p),
    ("test", c_void_p),
    ("awaited", c_void_p),
    ("close", ctypes.CFUNCTYPE(None, c_void_p, c_bool)),
    ("number", c_void_p),
    ("stop", c_void_p),
)
STRUCTS = (
    Shape, Tensor, String, Logs, DataField, ArrayField, Moment, Callback, FitOptions, History,
    Generator, Sequence, DatasetOptions, DeviceInfo, Arg, Named, Term, Watched, Apply, WholeLoss,
    FunctionOptions, Launch, ProcessGroup,
)  # fmt: skip

# ---- functions --------------------------------------------------------------------------------

OUT = POINTER(c_void_p)
FUNCTIONS = {  # name: (result, arguments); a result of None is nothing
    "error": (c_char_p,),
    "error_set": (c_int, c_int, c_char_p),
    "status_name": (c_char_p, c_int),
    "devices": (c_int, POINTER(DeviceInfo), c_int, POINTER(c_int)),
    "tensor_free": (None, POINTER(Tensor)),
    "model_load": (c_int, OUT, c_char_p),
    "model_load_without_state": (c_int, OUT, c_char_p),
    "model_destroy": (None, c_void_p),
    "model_set_rate": (c_int, c_void_p, Rate, c_void_p),
    "model_save": (c_int, c_void_p, c_char_p),
    "model_save_weights": (c_int, c_void_p, c_char_p),
    "model_load_weights": (c_int, c_void_p, c_char_p),
    "model_get_weight": (c_int, c_void_p, c_char_p, POINTER(Tensor)),
    "model_set_weight": (c_int, c_void_p, c_char_p, POINTER(Tensor)),
    "model_name": (c_char_p, c_void_p),
    "model_summary": (c_int, c_void_p, POINTER(c_void_p)),
    "model_summary_free": (None, c_void_p),
    "model_input_count": (c_int, c_void_p),
    "model_output_count": (c_int, c_void_p),
    "model_input_name": (c_char_p, c_void_p, c_int),
    "model_output_name": (c_char_p, c_void_p, c_int),
    "model_refused": (c_char_p, c_void_p),
    "model_metrics_left_out": (c_char_p, c_void_p),
    "model_weight_count": (c_int, c_void_p),
    "model_weight_name": (c_char_p, c_void_p, c_int),
    "model_exclude_from_weight_decay": (c_int, c_void_p, POINTER(c_char_p), c_int),
    "model_learning_rate": (c_int, c_void_p, POINTER(c_double)),
    "model_set_learning_rate": (c_int, c_void_p, c_double),
    "dataset_from_fields": (c_int, OUT, POINTER(ArrayField), c_int),
    "dataset_from_generator": (c_int, OUT, POINTER(Generator)),
    "dataset_from_sequence": (c_int, OUT, POINTER(Sequence)),
    **{
        f"dataset_from_{kind}_directory": (c_int, OUT, c_char_p, POINTER(DatasetOptions))
        for kind in ("image", "audio", "text")
    },
    "dataset_open": (c_int, OUT, c_char_p, POINTER(DatasetOptions)),
    "dataset_rows": (c_int64, c_void_p),
    "dataset_field_count": (c_int, c_void_p),
    "dataset_field": (c_int, c_void_p, c_int, POINTER(DataField)),
    "dataset_class_count": (c_int64, c_void_p),
    "dataset_class_name": (c_char_p, c_void_p, c_int64),
    "dataset_split": (c_int, c_void_p, c_double, c_uint64, OUT, OUT),
    "dataset_destroy": (None, c_void_p),
    "strategy_create": (c_int, OUT, c_char_p),
    "strategy_create_group": (c_int, OUT, c_char_p, POINTER(ProcessGroup)),
    "strategy_destroy": (None, c_void_p),
    "strategy_leave": (c_int, c_void_p, c_int),
    "strategy_reproducible": (c_int, c_void_p, c_int),
    "strategy_recompute": (None, c_void_p, c_bool),
    "strategy_micro_batch": (c_int, c_void_p, c_int64),
    "instructions": (c_char_p,),
    "instructions_common": (c_int, POINTER(ProcessGroup)),
    "launch_find": (Launch,),
    "launch_refuses_tensorflow": (c_bool, c_char_p, c_size_t, c_char_p),
    "launched_open": (c_int, OUT, POINTER(Launch), c_double),
    "launched_count": (c_int, c_void_p),
    "launched_rank": (c_int, c_void_p),
    "launched_host": (c_char_p, c_void_p, c_int),
    "launched_agree": (c_int, c_void_p, c_int),
    "launched_gather": (c_int, c_void_p, c_char_p, c_void_p, c_size_t),
    "launched_broadcast": (c_int, c_void_p, c_void_p, c_size_t),
    "launched_group": (c_int, c_void_p, POINTER(ProcessGroup)),
    "launched_close": (None, c_void_p, c_bool),
    "callback_parse": (c_int, OUT, c_char_p),
    "callback_destroy": (None, c_void_p),
    "logs_set": (c_int, POINTER(Logs), c_char_p, c_double),
    "fit": (c_int, c_void_p, c_void_p, c_void_p, POINTER(FitOptions), POINTER(History)),
    "history_free": (None, POINTER(History)),
    "evaluate": (c_int, c_void_p, c_void_p, c_void_p, POINTER(FitOptions), POINTER(Logs)),
    "function_create": (c_int, OUT, POINTER(FunctionOptions)),
    "function_destroy": (None, c_void_p),
    "function_scalar": (c_int, c_void_p, c_char_p, POINTER(c_double)),
    "function_set_learning_rate": (c_int, c_void_p, c_int, c_double),
    "function_iterations": (c_int64, c_void_p, c_int),
    "function_set_iterations": (c_int, c_void_p, c_int, c_int64),
    "function_state_count": (c_int64, c_void_p, c_int),
    "function_state": (c_int, c_void_p, c_int, c_int64, POINTER(Tensor)),
    "function_set_state": (c_int, c_void_p, c_int, c_int64, POINTER(Tensor)),
    "gather": (c_int, c_void_p, c_char_p, POINTER(Tensor)),
    "strategy_prepare": (c_int, c_void_p, c_void_p, POINTER(Tensor), c_int),
    "strategy_run": (c_int, c_void_p, c_void_p, POINTER(Tensor), c_int),
    "trace_fact": (c_int, c_void_p, c_int, POINTER(c_int)),
    "trace_input": (c_int, c_void_p, c_char_p, POINTER(c_int)),
    "trace_outputs": (
        c_int,
        c_void_p,
        c_void_p,
        c_int,
        POINTER(c_int),
        c_int,
        POINTER(c_bool),
        POINTER(c_int),
    ),
    "trace_call": (
        c_int,
        c_void_p,
        c_char_p,
        POINTER(Arg),
        POINTER(Arg),
        POINTER(c_int),
        c_int,
        POINTER(c_int),
    ),
    "trace_gradient_of": (c_int, c_void_p, c_int, c_int, POINTER(c_int)),
    "trace_mean": (c_int, c_void_p, c_int, c_int, POINTER(c_int)),
    "trace_gradients": (c_int, c_void_p, POINTER(Term), c_int, POINTER(Watched), c_int, POINTER(c_int)),
    "trace_whole_loss": (c_int, c_void_p, POINTER(WholeLoss), POINTER(c_int)),
    "trace_input_shape": (c_int, c_void_p, c_char_p, POINTER(Shape)),
    "trace_apply": (c_int, c_void_p, c_int, POINTER(Apply)),
    "trace_return": (c_int, c_void_p, c_char_p, c_int),
    "trace_return_scalar": (c_int, c_void_p, c_char_p, c_int),
    "predict_outputs": (c_int, c_void_p, c_void_p, c_void_p, POINTER(FitOptions), POINTER(Tensor)),
}


def _places():
    """Where the library may be: where KEEL_LIBRARY says; else as installed with this package, as built
    in its clone, or known to the system."""
    if "KEEL_LIBRARY" in os.environ:
        return [os.environ["KEEL_LIBRARY"]]
    here = os.path.dirname(os.path.abspath(__file__))
    near = [os.path.join(here, folder, "libkeel.so.0") for folder in ("../../..", "../../build")]
    return [os.path.normpath(place) for place in near if os.path.exists(place)] + ["libkeel.so.0"]


def _load():
    tried = []
    for place in _places():
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            tried.append(str(error))
    raise ImportError(
        f"keel: libkeel cannot be loaded ({'; '.join(tried)}). Build it with 'make', install it with"
        " 'make install', or name the file in KEEL_LIBRARY"
    )


lib = _load()
for _name, (_result, *_arguments) in FUNCTIONS.items():
    _function = getattr(lib, "keel_" + _name)
    _function.restype, _function.argtypes = _result, _arguments
