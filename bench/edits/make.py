#!/usr/bin/env python3
"""Makes the edit bench: files as they are, edits as a model would send them, and the bytes that must come out.

What must come out is made by cutting the file at places that are known, never by looking for text: this program knows nothing of how
the agent finds a place. Run it again to get the very same files.

    python3 bench/edits/make.py          writes files/ and edits.jsonl
    python3 bench/edits/make.py --check  fails if they are not what it would write
"""

import json
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).parent
SOURCES = sorted((HERE / "sources").iterdir())
SMART = {"'": ("\u2018", "\u2019"), '"': ("\u201c", "\u201d")}
FILES = {}
EDITS = []


class Source:
    """A file: its lines as a model sees them, and how they are written."""

    def __init__(self, path, style="plain"):
        self.name, self.style = path.name, style
        text = path.read_text(encoding="utf-8")
        if style == "long":
            text = text.rstrip("\n") + "\n" + long_line(path.name) + "\n"
        if style == "blanks":
            # An editor left blanks at the end of every third line.
            text = "\n".join(l + "   " if n % 3 == 1 else l for n, l in enumerate(text.split("\n")))
        if style == "latin1":
            text = text.replace("\n", " \u00a7 gr\u00fc\u00dfe\n", 1) if "gr\u00fc" not in text else text
        self.lines = text.rstrip("\n").split("\n")
        self.end = "\r\n" if style in ("crlf", "bomcrlf") else "\n"
        self.final = style != "open"
        self.encoding = {"latin1": "latin-1", "utf16": "utf-16-le", "utf16be": "utf-16-be"}.get(style, "utf-8")
        mark = {"bom": b"\xef\xbb\xbf", "bomcrlf": b"\xef\xbb\xbf", "utf16": b"\xff\xfe", "utf16be": b"\xfe\xff"}
        self.mark = mark.get(style, b"")
        self.file = f"{style}/{path.name}"
        FILES[self.file] = self.bytes(self.lines)

    def bytes(self, lines):
        text = self.end.join(lines) + (self.end if self.final else "")
        return self.mark + text.encode(self.encoding)

    def offset(self, line):
        """Where a line begins, in bytes."""
        before = "".join(l + self.end for l in self.lines[:line])
        return len(self.mark) + len(before.encode(self.encoding))


def long_line(name):
    return "# " + " ".join(f"{name}:{n}" for n in range(700))


def change(rng, lines):
    """Other lines in the place of some: one is changed, one comes, or one goes. Which old line each new one is, or None."""
    kind = rng.choice(["change", "change", "come", "go"]) if len(lines) > 2 else "change"
    at = rng.randrange(len(lines))
    # Only a line with something in it is worth changing.
    candidates = [n for n, l in enumerate(lines) if re.search(r"[A-Za-z]{3,}", l)]
    if not candidates:
        return None
    at = rng.choice(candidates)
    if kind == "go":
        return [(l, n) for n, l in enumerate(lines) if n != at]
    word = max(re.findall(r"[A-Za-z_]{3,}", lines[at]), key=len)
    other = lines[at].replace(word, word + "_next", 1)
    if kind == "come":
        out = [(l, n) for n, l in enumerate(lines)]
        return out[: at + 1] + [(other, None)] + out[at + 1 :]
    return [(other, None) if n == at else (l, n) for n, l in enumerate(lines)]


def regions(rng, source, count, least=2, most=6, wanted=lambda lines: True):
    """Places that are there once, none like another."""
    text = "\n".join(source.lines)
    found, tries = [], 0
    while len(found) < count and tries < 4000:
        tries += 1
        size = rng.randint(least, most)
        start = rng.randrange(0, len(source.lines) - size)
        lines = source.lines[start : start + size]
        if not lines[0].strip() or not lines[-1].strip() or (start, size) in found:
            continue
        block = "\n".join(lines)
        if text.count(block) != 1 or not wanted(lines):
            continue
        stripped = [l.strip() for l in source.lines]
        want = [l.strip() for l in lines]
        if sum(stripped[i : i + size] == want for i in range(len(stripped) - size + 1)) != 1:
            continue
        found.append((start, size))
    return found


def hunk_lines(source, start, size, new, say):
    """The lines of a patch: marks with texts as the model would write them. Kept lines around it are from the file."""
    before = list(range(max(0, start - 3), start))
    after = list(range(start + size, min(len(source.lines), start + size + 3)))
    out = [(" ", say(source.lines[n])) for n in before]
    kept = [n for _, n in new if n is not None]
    pending = [text for text in new]
    old = 0
    for text, of in pending:
        if of is None:
            continue_old = next((k for k in kept if k >= old), size)
            while old < continue_old:
                out.append(("-", say(source.lines[start + old])))
                old += 1
            out.append(("+", say(text)))
        else:
            while old < of:
                out.append(("-", say(source.lines[start + old])))
                old += 1
            out.append((" ", say(source.lines[start + of])))
            old = of + 1
    while old < size:
        out.append(("-", say(source.lines[start + old])))
        old += 1
    out += [(" ", say(source.lines[n])) for n in after]
    # Lines that go stand before those that come.
    return out, (before[0] if before else start)


def edit(kind, source, start, size, new, say=lambda line: line, expect="applied", rung="exact", **more):
    """One edit in every form. `say` is what becomes of a line on its way through the model."""
    old_said = [say(l) for l in source.lines[start : start + size]]
    new_said = [say(l) for l, _ in new]
    lines, first = hunk_lines(source, start, size, new, say)
    olds = sum(mark != "+" for mark, _ in lines)
    news = sum(mark != "-" for mark, _ in lines)
    body = "\n".join(mark + text for mark, text in lines)
    name = source.name
    ends = "\n" if new else ""
    formats = {
        "replace": {"old": "\n".join(old_said) + ends, "new": "".join(l + "\n" for l in new_said)},
        "patch": f"*** Begin Patch\n*** Update File: {name}\n@@\n{body}\n*** End Patch\n",
        "diff": f"--- a/{name}\n+++ b/{name}\n@@ -{first + 1},{olds} +{first + 1},{news} @@\n{body}\n",
    }
    # The last line of a file without a line feed says so in a diff.
    last_old = start + size == len(source.lines)
    if not source.final and first + olds == len(source.lines):
        formats["diff"] = open_ended(formats["diff"])
    if last_old and not source.final:
        formats["replace"] = {"old": "\n".join(old_said), "new": "\n".join(new_said)}
    if more.pop("whole", False):
        all_lines = source.lines[:start] + [l for l, _ in new] + source.lines[start + size :]
        formats["whole"] = "\n".join(all_lines) + ("\n" if source.final else "")
    begin, end = source.offset(start), source.offset(start + size)
    put = "".join(l + source.end for l, _ in new)
    total = len(FILES[source.file])
    if last_old and not source.final:
        end, put = total, source.end.join(l for l, _ in new)
    record = {
        "id": f"E{len(EDITS) + 1:03}",
        "class": kind,
        "file": source.file,
        "expect": expect,
        "rung": rung,
        "at": begin,
        "cut": end - begin,
        "put": put,
        "encoding": source.encoding,
        **more,
        "formats": formats,
    }
    EDITS.append(record)
    return record


def open_ended(diff):
    """A diff whose last old and last new line have no line feed."""
    lines = diff.rstrip("\n").split("\n")
    out, marked = [], set()
    for line in reversed(lines):
        mark = line[:1]
        note = False
        if mark == " " and not marked:
            note, marked = True, {"-", "+"}
        elif mark in "-+" and mark and mark not in marked and not line.startswith(("---", "+++")):
            note = True
            marked.add(mark)
        if note:
            out.append("\\ No newline at end of file")
        out.append(line)
        if line.startswith("@@"):
            marked = {"-", "+", " "}
    return "\n".join(reversed(out)) + "\n"


def smart(line):
    """What an editor for prose makes of quotes."""
    out, opens = "", {"'": True, '"': True}
    for c in line:
        if c in SMART:
            out += SMART[c][0 if opens[c] else 1]
            opens[c] = not opens[c]
        else:
            out += c
    return out


def plain(line):
    """What a model makes of typographic characters."""
    for chars, to in (("\u2018\u2019", "'"), ("\u201c\u201d", '"'), ("\u2013\u2014", "-"), ("\u2026", "...")):
        for c in chars:
            line = line.replace(c, to)
    return line


def indent(line):
    return len(line) - len(line.lstrip())


def main():
    rng = random.Random(20)
    code = [p for p in SOURCES if p.suffix != ".md"]
    made = lambda s, start, size: change(rng, s.lines[start : start + size])

    def some(kind, styles, count, wanted=lambda lines: True, paths=code, least=2, most=6, **how):
        for path in paths:
            for style in styles:
                source = Source(path, style)
                for start, size in regions(rng, source, count, least, most, wanted):
                    new = made(source, start, size)
                    if new:
                        yield source, start, size, new

    # As they should be, in every way a file can be written.
    for source, start, size, new in some("exact", ["plain"], 7):
        edit("exact", source, start, size, new, whole=True)
    for style, count in (("crlf", 4), ("bom", 2), ("bomcrlf", 2), ("open", 3), ("latin1", 2), ("utf16", 2), ("utf16be", 1), ("long", 2)):
        for source, start, size, new in some(style, [style], count):
            edit(style, source, start, size, new, whole=True)
    # The end of a file that has no line feed there.
    for path in code:
        source = Source(path, "open")
        size = next(n for n in range(2, 9) if "\n".join(source.lines).count("\n".join(source.lines[-n:])) == 1)
        start = len(source.lines) - size
        new = [(source.lines[start + n], n) for n in range(size)] + [("# the end", None)]
        edit("open", source, start, size, new, whole=True)

    # Blanks at line ends: the file has some that the model did not copy, or the other way round.
    for source, start, size, new in some("blanks", ["blanks"], 4, lambda lines: any(l != l.rstrip() for l in lines)):
        new = [(l.rstrip() if n is None else l, n) for l, n in new]
        edit("blanks", source, start, size, new, say=str.rstrip, rung="blanks")
    for source, start, size, new in some("blanks", ["plain"], 3):
        new = [(l, n) for l, n in new]
        record = edit("blanks", source, start, size, new, say=lambda l: l + "  " if l.strip() else l, rung="blanks")
        # What the model adds, it adds with its blanks.
        record["put"] = "".join((l + "  " if n is None and l.strip() else l) + source.end for l, n in new)

    # Indentation: left out, too much, tabs for spaces and spaces for tabs.
    deep = lambda lines: min(indent(l) for l in lines if l.strip()) > 0
    for source, start, size, new in some("indentation", ["plain"], 4, deep):
        low = max(0, start - 3)
        around = source.lines[low : start + size + 3]
        # Only where the lines around are as deep: a patch shows those too.
        depth = min(indent(l) for l in around if l.strip())
        if depth == 0:
            continue
        edit("dedented", source, start, size, new, say=lambda l, d=depth: l[d:] if l.strip() else l, rung="indentation")
    for source, start, size, new in some("indentation", ["plain"], 3, deep):
        more = "\t" if source.name.endswith((".go", ".c")) else "    "
        edit("indented", source, start, size, new, say=lambda l, m=more: m + l if l.strip() else l, rung="indentation")
    tabs = [p for p in code if p.suffix in (".go", ".c")]
    spaces = [p for p in code if p.suffix in (".rs", ".py", ".java", ".php")]
    to_spaces = lambda l: "    " * indent(l) + l.lstrip("\t")
    to_tabs = lambda l: "\t" * (indent(l) // 4) + l.lstrip(" ") if indent(l) % 4 == 0 else l
    for source, start, size, new in some("tabs", ["plain"], 8, deep, tabs, 3):
        edit("spaces for tabs", source, start, size, new, say=to_spaces, rung="indentation")
    for source, start, size, new in some("tabs", ["plain"], 4, deep, spaces, 3):
        edit("tabs for spaces", source, start, size, new, say=to_tabs, rung="indentation")

    # Typographic characters that the model made, or that it did not copy.
    quoted = lambda lines: any(c in l for l in lines for c in "'\"")
    for source, start, size, new in some("punctuation", ["plain"], 5, quoted):
        edit("smart quotes", source, start, size, new, say=smart, rung="punctuation")
    prose = [p for p in SOURCES if p.suffix == ".md"]
    typographic = lambda lines: any(plain(l) != l for l in lines)
    for source, start, size, new in some("punctuation", ["plain", "crlf"], 8, typographic, prose, 1, 3):
        # What is new is written as the model writes it; what it left alone stays, also within a line.
        record = edit("plain quotes", source, start, size, new, say=plain, rung="punctuation")
        if len(new) > size:
            record["put"] = "".join((plain(l) if n is None else l) + source.end for l, n in new)

    # Refused: not there, and never was.
    for source, start, size, new in some("invented", ["plain", "crlf"], 3):
        target = rng.choice([n for n in range(size) if re.search(r"[a-z]{4,}", source.lines[start + n])] or [0])
        at = source.lines[start + target]
        word = max(re.findall(r"[A-Za-z_]{3,}", at) or ["x"], key=len)
        wrong = at.replace(word, word[:-1] + ("z" if word[-1] != "z" else "y"), 1)
        say = lambda l, a=at, w=wrong: w if l == a else l
        edit("invented", source, start, size, new, say=say, expect="refused", rung="none")
    # Refused: there more than once. A diff that names the line is another matter.
    for path in code:
        source = Source(path)
        lines = [n for n, l in enumerate(source.lines) if l.strip() and source.lines.count(l) > 1]
        for start in rng.sample(lines, min(4, len(lines))):
            line = source.lines[start]
            new = [(line + " ", None)] if not re.search(r"[a-z]{3,}", line) else [(line.replace(re.findall(r"[a-z]{3,}", line)[0], "other", 1), None)]
            record = edit("duplicate", source, start, 1, new, expect="refused", rung="none")
            new_line = new[0][0]
            name = source.name
            record["formats"]["replace"] = {"old": line, "new": new_line}
            record["formats"]["patch"] = f"*** Begin Patch\n*** Update File: {name}\n@@\n-{line}\n+{new_line}\n*** End Patch\n"
            record["formats"]["diff"] = f"--- a/{name}\n+++ b/{name}\n@@ -{start + 1} +{start + 1} @@\n-{line}\n+{new_line}\n"
            record["diff_expect"] = "applied"
    # Refused: somebody changed the file since it was read, somewhere else.
    for source, start, size, new in some("stale", ["plain", "crlf"], 2):
        edit("stale", source, start, size, new, expect="refused", rung="none", stale=True, whole=True)
    # Refused: every line without its indentation, and the file has several.
    ragged = lambda lines: len({indent(l) for l in lines if l.strip()}) > 1
    for source, start, size, new in some("flat", ["plain"], 3, ragged, code, 3):
        if all(n is not None for _, n in new):
            # A line that goes needs no indentation: that one can be done.
            edit("flat", source, start, size, new, say=str.lstrip, expect="any", rung="indentation")
            continue
        edit("flat", source, start, size, new, say=str.lstrip, expect="refused", rung="none")

    # Nothing that is not bytes of the file: texts in JSON are the model's.
    out = {"edits.jsonl": "".join(json.dumps(e, ensure_ascii=True) + "\n" for e in EDITS).encode()}
    out.update({f"files/{name}": data for name, data in FILES.items()})
    check = "--check" in sys.argv
    for name, data in out.items():
        path = HERE / name
        if check:
            if not path.exists() or path.read_bytes() != data:
                sys.exit(f"{path} is not what this program writes")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    kinds = {}
    for e in EDITS:
        kinds[e["class"]] = kinds.get(e["class"], 0) + 1
    print(len(EDITS), "edits:", ", ".join(f"{k} {n}" for k, n in kinds.items()))


main()
