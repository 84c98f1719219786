"""Reads the binary format of WebAssembly components: extracts the initial memory, and finds state outside the memory.

karat maps the initial memory instead of copying it for each instance, and restores it after each trace. So all state that
a trace changes must be in the memory.
"""

import struct

PAGE = 65536

IMPORTS, MEMORIES, EXPORTS, CODE, DATA = 2, 5, 7, 10, 11
CORE_MODULE = 1
FUNCTION, TABLE, _MEMORY, GLOBAL = range(4)

# Number of LEB128 operands of each opcode.
OPERANDS = {op: 1 for op in (0x02, 0x03, 0x04, 0x0C, 0x0D, 0x10, 0x12, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2)}
OPERANDS |= {op: 2 for op in (0x11, 0x13, *range(0x28, 0x3F))}
OPERANDS |= {op: 0 for op in (0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B, 0xD1, *range(0x45, 0xC5))}
BULK_OPERANDS = {op: 0 for op in range(8)} | {8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}

GLOBAL_SET, TABLE_SET, BULK = 0x24, 0x26, 0xFC
BULK_NAMES = {8: "memory.init", 9: "data.drop", 12: "table.init", 13: "elem.drop", 14: "table.copy", 15: "table.grow", 17: "table.fill"}


def read_leb128(data, at):
    """Returns the unsigned LEB128 integer at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def skip_leb128(data, at, count=1):
    """Returns the position after a number of LEB128 integers."""
    for _ in range(count):
        while data[at] >= 128:
            at += 1
        at += 1
    return at


def encode_leb128(value):
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_name(data, at):
    length, at = read_leb128(data, at)
    return data[at : at + length].decode(), at + length


def sections(data, start=0, end=None):
    """Returns the id, start, start of the content and end of each section of a module or component."""
    at, end = start + 8, len(data) if end is None else end
    while at < end:
        length, content = read_leb128(data, at + 1)
        yield data[at], at, content, content + length
        at = content + length


def extract_memory(component):
    """Returns the component without its data segments, and the initial memory that they describe."""
    parts, images = [component[:8]], []
    for kind, start, content, end in sections(component):
        inner = list(sections(component, content, end)) if kind == CORE_MODULE else []
        data = [section for section in inner if section[0] == DATA]
        if not data:
            parts.append(component[start:end])
            continue
        images.append(initial_memory(component, inner))
        remaining = [component[content : content + 8], *(component[at:stop] for kind, at, _, stop in inner if kind != DATA)]
        module = b"".join(remaining)
        parts += [bytes([CORE_MODULE]), encode_leb128(len(module)), module]
    if len(images) != 1:
        raise SystemExit(f"expected one module with data, found {len(images)}")
    return b"".join(parts), images[0]


def initial_memory(component, module):
    """Returns the memory that the data segments of a module describe."""
    by_kind = {kind: content for kind, _, content, _ in module}
    count, at = read_leb128(component, by_kind[MEMORIES])
    pages, _ = read_leb128(component, skip_leb128(component, at))
    if count != 1:
        raise SystemExit(f"expected one memory, found {count}")
    image = bytearray(pages * PAGE)
    count, at = read_leb128(component, by_kind[DATA])
    for _ in range(count):
        if component[at : at + 2] != b"\x00\x41":
            raise SystemExit("expected data segments at constant addresses")
        address, at = read_leb128(component, at + 2)
        if component[at] != 0x0B:
            raise SystemExit("expected data segments at constant addresses")
        length, at = read_leb128(component, at + 1)
        image[address : address + length] = component[at : at + length]
        at += length
    return bytes(image)


class Module:
    """The imports, exports and globals of a core module."""

    def __init__(self, data, start, end):
        self.data = data
        self.imported_functions, self.globals, self.exports = 0, [], set()
        self.code = None
        for kind, _, content, _ in sections(data, start, end):
            if kind == IMPORTS:
                self.read_imports(content)
            elif kind == EXPORTS:
                self.read_exports(content)
            elif kind == CODE:
                self.code = content

    def read_imports(self, at):
        count, at = read_leb128(self.data, at)
        for _ in range(count):
            _, at = read_name(self.data, at)
            name, at = read_name(self.data, at)
            kind, at = self.data[at], at + 1
            if kind == FUNCTION:
                self.imported_functions += 1
                at = skip_leb128(self.data, at)
            elif kind == GLOBAL:
                self.globals.append(name)
                at += 2
            else:
                at += kind == TABLE
                flags, at = self.data[at], at + 1
                at = skip_leb128(self.data, at, 2 if flags & 1 else 1)

    def read_exports(self, at):
        count, at = read_leb128(self.data, at)
        for _ in range(count):
            name, at = read_name(self.data, at)
            self.exports.add(name)
            at = skip_leb128(self.data, at + 1)

    def instructions(self):
        """Returns the function, opcode and first operand of each instruction that changes a global or a table."""
        if self.code is None:
            return
        data = self.data
        count, at = read_leb128(data, self.code)
        for function in range(self.imported_functions, self.imported_functions + count):
            length, at = read_leb128(data, at)
            end = at + length
            groups, at = read_leb128(data, at)
            for _ in range(groups):
                at = skip_leb128(data, at) + 1
            while at < end:
                op = data[at]
                at += 1
                if op in (GLOBAL_SET, TABLE_SET):
                    yield function, op, read_leb128(data, at)[0]
                if op in OPERANDS:
                    at = skip_leb128(data, at, OPERANDS[op])
                elif op == 0x0E:  # br_table
                    labels, at = read_leb128(data, at)
                    at = skip_leb128(data, at, labels + 1)
                elif op == 0x1C:  # select with types
                    types, at = read_leb128(data, at)
                    at += types
                elif op in (0x43, 0x44):  # constants
                    at += 4 if op == 0x43 else 8
                elif op == BULK:
                    bulk, at = read_leb128(data, at)
                    if bulk in BULK_NAMES:
                        yield function, BULK, bulk
                    at = skip_leb128(data, at, BULK_OPERANDS[bulk])
                else:
                    raise SystemExit(f"unknown instruction {op:#x} in function {function}")
            if at != end:
                raise SystemExit(f"cannot decode function {function}")


def state_outside_memory(component):
    """Returns descriptions of instructions that change state which restoring the memory does not undo.

    These are harmless: the stack pointer, which every function resets before it returns; a module without exports, whose
    code runs only when an instance starts, if at all; and the adapter of componentize-py, which is only called to report
    a crash, after which the instance is not used again.
    """
    problems = []
    modules = [(content, end) for kind, _, content, end in sections(component) if kind == CORE_MODULE]
    for number, (start, end) in enumerate(modules):
        module = Module(component, start, end)
        if not module.exports or "reset_adapter_state" in module.exports:
            continue
        for function, op, operand in module.instructions():
            if op == GLOBAL_SET:
                name = module.globals[operand] if operand < len(module.globals) else f"global {operand}"
                if name != "__stack_pointer":
                    problems.append(f"module {number}, function {function} sets {name}")
            else:
                instruction = "table.set" if op == TABLE_SET else BULK_NAMES[operand]
                problems.append(f"module {number}, function {function} has {instruction}")
    return problems


# The end of a guest file, after machine code and initial memory: magic bytes and the lengths of both.
TRAILER = struct.Struct("<8sQQ")
MAGIC = b"KARATIMG"


def append_image(code, image):
    """Returns the content of a guest file. The memory starts at a multiple of the largest page size in use."""
    return b"".join((code, bytes(-len(code) % PAGE), image, TRAILER.pack(MAGIC, len(code), len(image))))
