"""Writes a module of many texts, each in other words, and prints what they are to Python."""

import inspect
import json
import random
import textwrap

random.seed(7)  # the same texts each time, so that a failure comes back

PIECES = [
    "a", "'", '"', "\\n", "\n", "\\\\", "\\t", "\t", "é", "\\u00e9", "\\x41", "\\101", "\\0", "\\N{BULLET}", "\\q",
    "\\\n", "{{", "}}", " ", "    ", "\u2028", "\x1f", "\\U0001F600", "😀", "%s", "\\'", '\\"', "\x0c", "#", "$",
]
SHAPES = [
    "{}", "{}", "({})", "{}.strip()", "textwrap.dedent({})", "inspect.cleandoc({})", "{} + {}", "{}.rstrip()",
    "f'<{{{}}}>'", "''.join([{}, 'x'])",
]


def literal():
    while True:
        prefix = random.choice(["", "", "", "r", "u", "f", "rf", "R"])
        quote = random.choice(["'", '"', "'''", '"""'])
        text = prefix + quote + "".join(random.choice(PIECES) for _ in range(random.randint(0, 8))) + quote
        try:
            eval(text)
        except (SyntaxError, NameError):
            continue
        return text


lines, expected = ["import inspect, textwrap"], {}
while len(expected) < 600:
    text = "(" + " ".join(literal() for _ in range(random.choice([1, 1, 2, 3]))) + ")"
    shape = random.choice(SHAPES)
    text = shape.format(*[text] * shape.count("{}")) if "{{" not in shape else shape.format("(" + repr(eval(text)) + ")")
    try:
        value = eval(text)
    except (SyntaxError, NameError):
        continue
    name = f"t{len(expected)}"
    expected[name] = value
    lines.append(f"TOOL_{name} = {{'name': '{name}', 'description': {text}, 'input_schema': {{}}}}")
with open("m.py", "w", encoding="utf-8", newline="") as module:
    module.write("\n".join(lines) + "\n")
print(json.dumps(expected))
