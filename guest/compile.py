"""Compiles the guest, a WebAssembly component, to machine code with the settings in `settings.txt`.

    python compile.py guest.wasm guest.cwasm TARGET

TARGET is a Rust target triple; the code runs on every processor of that target.
"""

import ctypes
import pathlib
import sys

import wasmtime
from wasmtime import _bindings as c_api
from wasmtime.component import Component

source, output, target = sys.argv[1:]

config = wasmtime.Config()
handle = config.ptr()
for line in pathlib.Path(__file__).with_name("settings.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        name, value = line.removeprefix("compile-only ").split()
        getattr(c_api, f"wasmtime_config_{name}_set")(handle, value == "true" if value in ("true", "false") else int(value))

error = c_api.wasmtime_config_target_set(handle, ctypes.create_string_buffer(target.encode()))
if error:
    raise wasmtime.WasmtimeError._from_ptr(error)

component = Component(wasmtime.Engine(config), pathlib.Path(source).read_bytes())
pathlib.Path(output).write_bytes(component.serialize())
