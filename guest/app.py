"""The driver inside the sandbox: compiles an eval function, runs it on traces, and returns the results.

Everything here runs in WebAssembly without any capability, which is what protects the host. This file provides the
documented Python environment and classifies the outcomes.
"""

import builtins
import gc
import io
import json
import linecache
import marshal
import re
import struct
import sys
import time
import traceback
import types
import typing

import componentize_py_types  # noqa: F401 - imported lazily by the bindings, when no file can be read any more
import wit_world

# Modules that every function may import.
COMMON_MODULES = frozenset(("__future__", "json", "karat_text", "re", "typing"))
# Python itself imports `_pylong` for integers with many digits, and the import seems to come from the function.
INTERNAL_MODULES = frozenset(("_pylong",))
# Modules that C code of optional modules imports in the same way.
INTERNAL_MODULES_BY_IMPORT = {"datetime": ("_strptime", "time")}
REMOVED_BUILTINS = (
    "__import__", "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "help", "input", "license",
    "open", "quit",
)

FILE_NAME = "<eval>"
MODULE_NAME = "eval_module"
MAX_OUTPUT = 64 * 1024
MAX_REASON = 64 * 1024
MAX_ERROR = 8 * 1024
MAX_SUMMARY = 1024
MAX_FRAMES = 40
MAX_LINE = 200
MAX_RELATED = 32

PASSED, FAILED, EXCEPTION, MEMORY, RETURN, SYNTAX, READY = b"P", b"F", b"E", b"M", b"R", b"S", b"Y"
# For functions with flexible returns. The text of the first two starts with the score and a line break.
PASSED_WITH_SCORE, FAILED_WITH_SCORE, NOT_APPLICABLE, FLEXIBLE_RETURN = b"p", b"f", b"N", b"r"

import_module = builtins.__import__


def import_common(name, globals=None, locals=None, fromlist=(), level=0):
    """The `__import__` of functions without options."""
    if level == 0 and (name.partition(".")[0] in COMMON_MODULES or name in INTERNAL_MODULES):
        return import_module(name, globals, locals, fromlist, level)
    raise ImportError(f"import of '{name}' is not allowed (allowed: json, re, typing)")


BUILTINS = {name: value for name, value in vars(builtins).items() if name not in REMOVED_BUILTINS}
BUILTINS["__import__"] = import_common


class Output(io.TextIOBase):
    """Captures output up to a limit."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.parts = []
        self.remaining = MAX_OUTPUT
        self.is_truncated = False

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.remaining > 0:
            # Ignore the methods of subclasses.
            self.parts.append(str.__str__(text[: self.remaining]) if type(text) is str else str.__getitem__(text, slice(self.remaining)))
        self.remaining -= len(text)
        if self.remaining < 0:
            self.is_truncated = True
        return len(text)

    def take(self):
        """Returns the captured output and clears it."""
        if not self.parts:
            return b""
        text = to_bytes("".join(self.parts), MAX_OUTPUT)
        if self.is_truncated:
            text += b"\n[cut after 64 KB]\n"
        self.reset()
        return text


def to_bytes(text, limit):
    """Encodes a string as UTF-8, replacing lone surrogates."""
    return text[:limit].encode("utf-8", "replace")[:limit]


STDOUT = Output()
STDERR = Output()

pack = struct.Struct("<III").pack
compiled_source = None
function_name = None
options = None
# The eval function, if the source ran before the first trace.
loaded_function = None


def frame(kind, text):
    """Returns a frame: its kind, three lengths, the text, stdout and stderr."""
    out, err = STDOUT.take(), STDERR.take()
    return b"".join((kind, pack(len(text), len(out), len(err)), text, out, err))


def has_many_related(error):
    """Whether an exception has too many causes and group members to format."""
    pending, seen = [error], set()
    while pending and len(seen) <= MAX_RELATED:
        related = pending.pop()
        if related is None or id(related) in seen:
            continue
        seen.add(id(related))
        pending += (related.__cause__, related.__context__)
        if isinstance(related, BaseExceptionGroup):
            pending += related.exceptions[:MAX_RELATED]
    return len(seen) > MAX_RELATED


def format_error(error):
    """Formats an exception without the frames of this file."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename != FILE_NAME:
        tb = tb.tb_next
    # Show only the last frames of a recursion.
    end, depth = tb, 0
    while end is not None:
        end, depth = end.tb_next, depth + 1
    for _ in range(depth - MAX_FRAMES):
        tb = tb.tb_next
    text = str(error)
    if len(text) > MAX_ERROR or has_many_related(error):
        # Formatting would copy a long message several times, which may not fit into memory, and would summarise every
        # related exception.
        lines = traceback.format_tb(tb)
        summary = f"{type(error).__name__}: {text[:MAX_SUMMARY]} [cut]"
        return "".join((summary, "\nTraceback (most recent call last):\n", *lines, summary))
    lines = traceback.format_exception(type(error), error, tb, limit=-MAX_FRAMES)
    summary = "".join(traceback.format_exception_only(error)).strip()
    text = "".join(lines)
    if isinstance(error, SyntaxError):
        # A source line may be one very long number.
        text = "".join(line if len(line) <= MAX_LINE else line[:MAX_LINE] + " [cut]\n" for line in text.splitlines(True))
        summary = f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    # Put the summary first, so that it shows in lists.
    return f"{summary}\n{text[-MAX_ERROR:]}"


def format_error_safely(error):
    """Formats an exception, even if its own methods raise."""
    try:
        return format_error(error)
    except BaseException as second:
        # Read the name with the descriptor of `type`, which a metaclass cannot override.
        name_of = type.__dict__["__name__"].__get__
        return f"{name_of(type(error))} (and formatting it raised {name_of(type(second))})"


def short_repr(value):
    """Returns the start of a value's repr, if it can be computed."""
    try:
        return repr(value)[:200]
    except BaseException:
        return "a value whose repr() failed"


class Options:
    """The optional features that a function uses."""

    def __init__(self, values):
        imports = values.get("imports", ())
        self.modules = INTERNAL_MODULES.union(imports, *(INTERNAL_MODULES_BY_IMPORT.get(name, ()) for name in imports))
        # The lowest score that passes; None if the function returns (bool, str).
        self.threshold = values.get("threshold")
        self.takes_context = values.get("takesContext", False)
        # Compiled helper modules by name.
        self.helpers = {name: compile_source(f"{name}.py", source) for name, source in values.get("helpers", {}).items()}

    def allows(self, name, fromlist):
        """Whether a module may be imported. `from urllib import parse` imports `urllib.parse`."""
        if name.partition(".")[0] in COMMON_MODULES:
            return True
        parts = name.split(".")
        if any(".".join(parts[:end]) in self.modules for end in range(1, len(parts) + 1)):
            return True
        return bool(fromlist) and all(f"{name}.{member}" in self.modules for member in fromlist)


class Loader:
    """Imports modules for one execution of a function, which executes its helpers again."""

    def __init__(self, options):
        self.options = options
        self.loaded = {}
        self.builtins = BUILTINS.copy()
        self.builtins["__import__"] = self.load

    def load(self, name, globals=None, locals=None, fromlist=(), level=0):
        if level <= 1 and name in self.options.helpers:
            if name not in self.loaded:
                module = self.loaded[name] = self.create_module(name)
                exec(self.options.helpers[name], vars(module))
            return self.loaded[name]
        if level == 0 and self.options.allows(name, fromlist):
            return import_module(name, globals, locals, fromlist, level)
        raise ImportError(f"import of '{name}' is not allowed")

    def create_module(self, name):
        """Creates an empty module. It is registered because data classes look up their module in `sys.modules`."""
        module = sys.modules[name] = types.ModuleType(name)
        vars(module)["__builtins__"] = self.builtins
        return module


class Context:
    """The second argument of a function: data that is not part of the trace."""

    __slots__ = ("case", "params", "reference")

    def __init__(self, case=None, reference=None, params=None):
        self.case, self.reference, self.params = case, reference, {} if params is None else params

    def __repr__(self):
        return f"Context(case={self.case!r}, reference={self.reference!r}, params={self.params!r})"


def compile_source(file, source):
    code = compile(source, file, "exec", dont_inherit=True)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return code


def is_number(value):
    """Whether a value is a finite number."""
    return (type(value) is int and abs(value) < 10**300) or (type(value) is float and value - value == 0)


def flexible_verdict(value, threshold):
    """Returns the frame's kind and text for a value in one of the flexible forms."""
    reason, score, passed = "", None, value
    if type(value) is tuple and len(value) == 2 and type(value[1]) is str:
        passed, reason = value
    elif isinstance(value, dict):
        get = lambda key: dict.get(value, key)  # noqa: E731
        passed = get("passed") if get("pass") is None else get("pass")
        score, reason, own_threshold = get("score"), get("reason"), get("threshold")
        reason = "" if reason is None else reason
        threshold = threshold if own_threshold is None else own_threshold
        has_verdict = any(dict.__contains__(value, key) for key in ("pass", "passed", "score"))
        is_contradiction = get("pass") is not None and get("passed") is not None and get("pass") is not get("passed")
        is_valid = has_verdict and not is_contradiction and type(reason) is str and is_number(threshold)
        if not is_valid or not (passed is None or type(passed) is bool):
            return FLEXIBLE_RETURN, short_repr(value)
        if passed is None:
            passed, score = score, None
    if passed is None:
        return NOT_APPLICABLE, reason
    if type(passed) is not bool:
        if not is_number(passed):
            return FLEXIBLE_RETURN, short_repr(value)
        score, passed = passed, passed >= threshold
    if score is None:
        return PASSED if passed else FAILED, reason
    if type(score) is bool:
        score = int(score)
    if not is_number(score):
        return FLEXIBLE_RETURN, short_repr(value)
    return PASSED_WITH_SCORE if passed else FAILED_WITH_SCORE, f"{float(score)!r}\n{reason}"


def run_source():
    """Runs the compiled source in a new namespace and returns its eval function."""
    if options is None:
        namespace = {"__builtins__": BUILTINS.copy(), "__name__": MODULE_NAME}
    else:
        namespace = vars(Loader(options).create_module(MODULE_NAME))
    exec(compiled_source, namespace)
    return namespace[function_name]


def arguments(decoded):
    """Returns the arguments of the eval function for a trace, or for a tuple of a trace and a context."""
    trace, context = decoded if type(decoded) is tuple else (decoded, {})
    return (trace, Context(**context)) if options is not None and options.takes_context else (trace,)


class WitWorld(wit_world.WitWorld):
    def prepare(self, source: str, name: str, options_json: str) -> bytes:
        global compiled_source, function_name, options, loaded_function
        compiled_source = options = loaded_function = None
        try:
            compiled_source = compile_source(FILE_NAME, source)
            if options_json:
                options = Options(json.loads(options_json))
        except MemoryError:
            return frame(MEMORY, b"")
        except BaseException as error:
            compiled_source = None
            return frame(SYNTAX, to_bytes(format_error_safely(error), MAX_ERROR))
        function_name = name
        return frame(READY, b"")

    def reserve(self, size: int) -> None:
        try:
            # marshal allocates the declared size before it detects that the data is missing. So the memory is not
            # written, and the allocator keeps it.
            marshal.loads(b"s" + struct.pack("<I", size))
        except EOFError:
            pass

    def load(self) -> bytes:
        global loaded_function
        try:
            loaded_function = run_source()
        except BaseException:
            # The source will run for each trace instead and raise again.
            return frame(EXCEPTION, b"")
        # The output of the source is not returned here but with each trace.
        return READY + pack(0, 0, 0)

    def judge(self, trace: bytes) -> bytes:
        try:
            function = run_source() if loaded_function is None else loaded_function
            verdict = function(*arguments(marshal.loads(trace)))
            if options is not None and options.threshold is not None:
                kind, text = flexible_verdict(verdict, options.threshold)
                return frame(kind, to_bytes(text, MAX_REASON))
            if type(verdict) is tuple and len(verdict) == 2:
                passed, reason = verdict
                if type(reason) is str:
                    if passed is True:
                        return frame(PASSED, to_bytes(reason, MAX_REASON))
                    if passed is False:
                        return frame(FAILED, to_bytes(reason, MAX_REASON))
            return frame(RETURN, to_bytes(short_repr(verdict), 1000))
        except MemoryError:
            # A separate clause, since an exception can override what isinstance() returns.
            return frame(MEMORY, b"")
        except BaseException as error:
            return frame(EXCEPTION, to_bytes(format_error_safely(error), 2 * MAX_ERROR))


def add_text_module():
    """Adds `karat_text`, whose functions run on the host."""

    def similarity(method, first, second):
        if not isinstance(first, str) or not isinstance(second, str):
            raise TypeError(f"{method}() compares two strings")
        try:
            return wit_world.similarity(method, to_text(first), to_text(second))
        except componentize_py_types.Err as error:
            raise ValueError(error.value) from None

    def to_text(text):
        return str.encode(text, "utf-8", "replace").decode("utf-8")

    def levenshtein(first, second):
        """Returns 1 - edit distance / length of the longer text."""
        return similarity("levenshtein", first, second)

    def rouge1(first, second):
        """Returns the F-measure over common words."""
        return similarity("rouge1", first, second)

    def rougeL(first, second):  # noqa: N802
        """Returns the F-measure over the longest common subsequence of words."""
        return similarity("rougeL", first, second)

    module = sys.modules["karat_text"] = types.ModuleType("karat_text", "Lexical similarity of texts, from 0 to 1.")
    for function in (levenshtein, rouge1, rougeL):
        function.__module__, function.__qualname__ = "karat_text", function.__name__
        setattr(module, function.__name__, function)


def remove_clock_from_logging():
    """Makes `logging` work without a clock and without processes."""
    import logging

    no_time = time.struct_time((1970, 1, 1, 0, 0, 0, 3, 1, 0))
    logging.time = types.SimpleNamespace(
        time=lambda: 0.0, time_ns=lambda: 0, localtime=lambda _=None: no_time, gmtime=lambda _=None: no_time, strftime=time.strftime
    )
    logging.Formatter.converter = staticmethod(logging.time.localtime)
    logging._startTime = 0
    logging.logThreads = logging.logMultiprocessing = logging.logProcesses = logging.logAsyncioTasks = False


def disable_file_imports():
    """Imports all modules that Python may need later, then disables imports from files."""
    import annotationlib, ast, collections.abc, contextlib, copyreg, datetime, decimal, enum, functools  # noqa: E401, F401
    import _pylong, keyword, math, random, string, stringprep, textwrap, tokenize, unicodedata, warnings  # noqa: E401, F401
    import importlib.machinery

    # Modules that a project may allow.
    import __future__, _strptime, abc, copy, dataclasses, difflib, fractions, hashlib, itertools, logging  # noqa: E401, F401
    import operator, statistics, urllib.parse, xml.etree.ElementTree  # noqa: E401, F401

    for codec in (
        "ascii", "latin_1", "iso8859_1", "iso8859_15", "cp1252", "cp437", "utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be",
        "utf_32", "utf_32_le", "utf_32_be", "utf_7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "charmap",
        "hex_codec", "base64_codec", "rot_13",
    ):
        import_module("encodings." + codec)
        try:
            "".encode(codec)
        except LookupError:
            pass
    linecache.checkcache = lambda filename=None: None
    linecache.updatecache = lambda filename, module_globals=None, **rest: []
    linecache.lazycache = lambda filename, module_globals: False
    sys.path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter]
    # Python warns only at the first use of a pattern, so warnings would depend on earlier traces.
    warnings.simplefilter("ignore")
    sys.stdout, sys.stderr = STDOUT, STDERR


WARM_UP = (
    """
import json, re
from typing import Any, List, Literal, NamedTuple, Optional, Protocol, TypedDict
class Point(NamedTuple):
    x: int
def eval_warm_up(trace: dict) -> tuple[bool, str]:
    print('x')
    re.search(r"i don't know", "abc", re.IGNORECASE)
    json.dumps(trace, indent=2)
    json.loads('{"a":[1,2.5,null]}')
    return True, f"{trace!r:>10}"
""",
    "def eval_warm_up(trace):\n    return 1/0",
    "def eval_warm_up(trace:\n    return 1/0",
    "import os\ndef eval_warm_up(trace): pass",
    "def eval_warm_up(trace): raise SystemExit(3)",
    "def eval_warm_up(trace):\n    undefined_name",
    "def eval_warm_up(trace): return trace.gett('x')",
    "x = = 1",
)


def warm_up():
    """Runs common code once, so that lazily created objects are part of the memory image."""
    world = WitWorld()
    trace = marshal.dumps({"trace_id": "x", "steps": []})
    for source in WARM_UP:
        if world.prepare(source, "eval_warm_up", "")[:1] == READY:
            world.load()
            world.judge(trace)


add_text_module()
disable_file_imports()
remove_clock_from_logging()
warm_up()
compiled_source = function_name = options = loaded_function = None
re.purge()
linecache.clearcache()
sys.modules["random"].seed(0)
gc.collect()
gc.freeze()
