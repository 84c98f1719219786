"""Compiles the guest, a WebAssembly component, to machine code with the settings in `settings.txt`.

    python compile.py guest.wasm guest.cwasm TARGET

TARGET is a Rust target triple; the code runs on every processor of that target. The file also contains the
guest's initial memory: see `component.py`.
"""

import ctypes
import pathlib
import sys

import wasmtime
from wasmtime import _bindings as c_api
from wasmtime.component import Component

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import component as binary  # noqa: E402

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

guest = pathlib.Path(source).read_bytes()
problems = binary.state_outside_memory(guest)
if problems:
    raise SystemExit(f"the guest changes state outside its memory: {'; '.join(problems[:5])}")
code, image = binary.extract_memory(guest)
compiled = bytes(Component(wasmtime.Engine(config), code).serialize())
pathlib.Path(output).write_bytes(binary.append_image(compiled, image))
