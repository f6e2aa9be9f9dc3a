"""Counts where tests match on prose, for the ratchet of tools/tidy.

A sentence is a text with at least three consecutive words, separated by spaces. A word before a
colon is the name of a field, so `sh: x, rate: 1/x` is not a sentence. Neither are the commands in
a hint (`glia job resume x`) and the lines of the simulator's trace.

A test matches on a sentence if the text

- in Python is compared (==, !=, in, not in), or searched for with re, find(), index(), count(),
  startswith() or endswith();
- in C is an argument of assert_...(), str...(), mem...() or of a helper that checks a message, or
  is in a table of expected values (a member or a variable named `says`, `expected`, ...).

The goldens (*.golden, test/flows/) are not counted: their purpose is to compare prose.
"""

import ast
import re

WORDS = re.compile(r"(?<![\w`$/.-])[A-Za-z][a-z']*[,;]? [a-z']+[,;]? [a-z']+(?![\w/])")
SEARCHES = {"search", "match", "fullmatch", "findall", "startswith", "endswith", "find", "index",
            "count"}
CHECKS = re.compile(r"assert_\w+|str\w+|mem\w+|EQ|\w*(says?|said|refuse[sd]?|wrong|bad|why|broken|"
                    r"explain|fails?|error|expect|tells?|told|shows?|is_note|waits)\w*")
REPORTS = re.compile(r"fail_msg|golden_say|gl_why|print\w*|s?n?printf|fprintf|\w*_fmt|skip\w*|"
                     r"describe\w*")
TABLES = re.compile(r"\b(says?|said|expected|wanted|why|words|sentences?|reason|text|rows?)\b")


NO_PROSE = re.compile(r"glia( [a-z]+)+|(^|\\n) ?(\d+|t=\d+) (n\d|sim )[^\\]*")


def is_sentence(text):
    return WORDS.search(NO_PROSE.sub("|", text)) is not None


# ---- Python ----


def texts_of(node):
    """The texts in an operand: literals, formatted ones, and those in tuples, lists and tables."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, str):
            yield node.lineno, value
    elif isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(v.value if isinstance(v, ast.Constant) else "x"
                                   for v in node.values)
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for element in node.elts:
            yield from texts_of(element)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from texts_of(value)
    elif isinstance(node, ast.BinOp):
        yield from texts_of(node.left)
        yield from texts_of(node.right)


def operands(node):
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        return (node.args if name in SEARCHES else []) + \
            [k.value for k in node.keywords if k.arg == "match"]
    return []


def in_python(text):
    for node in ast.walk(ast.parse(text)):
        for operand in operands(node):
            for line, found in texts_of(operand):
                if is_sentence(found):
                    yield line, found


# ---- C ----

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|(?P<text>"(?:\\.|[^"\\\n])*")|\'(?:\\.|[^\'\\\n])*\''
                   r'|(?P<word>\w+)|(?P<sign>[(){};])|\s+|.', re.S)


def in_c(text):
    """Adjacent literals are one. They are an argument of the name before the innermost open
    parenthesis; outside of any, they are part of the table whose head is above."""
    calls, head, word, parts, begun = [], "", "", [], 0

    def ended():
        joined = "".join(parts)
        parts.clear()
        if not is_sentence(joined):
            return False
        names = [name for name in calls if name]
        if names:
            return not REPORTS.fullmatch(names[-1]) and any(CHECKS.fullmatch(n) for n in names)
        return bool(TABLES.search(head))

    for token in TOKEN.finditer(text):
        if token.group("text"):
            begun = begun if parts else text.count("\n", 0, token.start()) + 1
            parts.append(token.group("text")[1:-1])
            continue
        if token.group().isspace() or token.group().startswith(("/*", "//")):
            continue
        said = "".join(parts)
        if parts and ended():
            yield begun, said
        if token.group("word"):
            word = token.group("word")
            head += " " + word
            continue
        sign = token.group("sign")
        if sign == "(":
            calls.append(word)
        elif sign == ")" and calls:
            calls.pop()
        elif sign == "}" and text[token.start() - 1] == "\n":
            head = ""  # the end of a function, or of a table outside of one
        word = ""


def in_file(path, text):
    """(line, sentence) of every match in a test."""
    if not path.startswith("test/"):
        return []
    if path.endswith(".py"):
        return list(in_python(text))
    return list(in_c(text)) if path.endswith(".c") else []
