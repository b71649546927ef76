//! Good files, with edits that break them and edits that look as if they did.

/// A good file with edits of it: the text that is replaced, and what comes instead.
pub struct Case {
    pub name: &'static str,
    pub text: &'static str,
    pub broken: &'static [(&'static str, &'static str)],
    pub good: &'static [(&'static str, &'static str)],
}

pub const CASES: &[Case] = &[
    Case {
        name: "orders.py",
        text: r#"import re
from dataclasses import dataclass, field


@dataclass
class Order:
    number: int
    lines: list[str] = field(default_factory=list)

    def total(self, prices: dict[str, int]) -> int:
        """Adds up the lines; unknown ones (those that are "free") cost nothing."""
        return sum(prices.get(line, 0) for line in self.lines)

    async def send(self, *, twice: bool = False) -> str | None:
        if twice and self.number:
            return f"{self.number:>5} {'again' if twice else ''}"
        elif not self.lines:
            return None
        try:
            match self.lines:
                case [one]:
                    name = one
                case [first, *rest] if rest:
                    name = first
                case _:
                    name = ""
        except (ValueError, TypeError) as error:
            raise RuntimeError("no") from error
        else:
            pattern = re.compile(r"^\d{3}[\[\]()]+$")
        while (n := len(name)) > 3:
            name = name[: n - 1]
        return {"name": name, "ok": bool(pattern)}["name"]


NAMES = {
    "a": 1,
    "b": [x * 2 for x in range(10) if x % 2],
}
HELP = """
usage: orders [OPTIONS
"""
short = lambda value: value + 1
with open("a") as one, open("b") as two:
    print(one.read(), two.read(), sep="")
"#,
        broken: &[
            ("class Order:", "class Order"),
            (
                "def total(self, prices: dict[str, int]) -> int:",
                "def total(self, prices: dict[str, int]) -> int",
            ),
            ("def total(self", "def total(self,, x"),
            ("return sum(", "return sum(("),
            ("for line in self.lines)", "for line in self.lines"),
            ("prices.get(line, 0)", "prices.get(line, 0"),
            ("if twice and self.number:", "if twice and self.number"),
            ("if twice and self.number:", "if twice and:"),
            ("elif not self.lines:", "elif:"),
            ("elif not self.lines:", "else if not self.lines:"),
            ("        try:\n", ""),
            ("except (ValueError, TypeError) as error:", "except (ValueError, TypeError as error:"),
            ("raise RuntimeError(\"no\") from error", "raise RuntimeError(\"no) from error"),
            ("r\"^\\d{3}[\\[\\]()]+$\"", "r\"^\\d{3}[\\[\\]()]+$"),
            ("while (n := len(name)) > 3:", "while (n := len(name) > 3:"),
            ("name = name[: n - 1]", "name = name[: n - 1"),
            (
                "\"b\": [x * 2 for x in range(10) if x % 2],\n}",
                "\"b\": [x * 2 for x in range(10) if x % 2],\n",
            ),
            ("\"b\": [x * 2", "\"b\": [x * * 2"),
            ("usage: orders [OPTIONS\n\"\"\"", "usage: orders [OPTIONS\n"),
            ("lambda value: value + 1", "lambda value value + 1"),
            ("with open(\"a\") as one,", "with open(\"a\") as one,,"),
            ("import re\n", "import re from\n"),
            ("from dataclasses import dataclass, field", "from dataclasses import"),
            ("    number: int\n", "<<<<<<< ours\n    number: int\n=======\n>>>>>>> theirs\n"),
            ("        return sum(", "      return sum("),
            ("@dataclass\n", "@\n"),
            ("async def send", "async def"),
            ("case [one]:", "case [one:"),
            ("NAMES = {", "NAMES = = {"),
            ("print(one.read()", "print(one.read())"),
            ("    \"a\": 1,", "    \"a\": ,"),
            ("short = lambda", "short = def"),
            ("else:\n            pattern", "else\n            pattern"),
            ("import re\n", "```python\nimport re\n"),
        ],
        good: &[
            ("    number: int\n", "    number: int  # (not closed\n"),
            ("cost nothing.\"\"\"", "cost 'nothing'. It isn't closed: ( [ {\"\"\""),
            ("f\"{self.number:>5} ", "f\"{self.number!r:>5} {{ "),
            ("case _:", "case {\"a\": int(), **rest}:"),
            ("short = lambda value: value + 1", "short = lambda *a, **k: (yield)"),
            ("import re\n", "import re; import os\n"),
            ("HELP = \"\"\"", "HELP = r'(' u'[' \"\"\""),
            ("short = lambda value: value + 1", "def short[T](value: T, /) -> T: ...\n"),
            ("NAMES = {", "type Pair = tuple[int, int]\nNAMES = {"),
            ("print(one.read(), two.read(), sep=\"\")", "print(*[one.read()], **{\"sep\": \"\"})"),
            ("return None\n", "return None; pass\n"),
            (
                "short = lambda value: value + 1",
                "short = 1 if 2 else (3,)\nprint(0x_ff, 1_000.0e-3j, ...)",
            ),
            ("    \"a\": 1,", "    \"a\": 1, **{},"),
        ],
    },
    Case {
        name: "queue.go",
        text: r#"package queue

import (
	"errors"
	"fmt"
)

// Queue is first in, first out.
type Queue[T any] struct {
	items []T
	limit int `json:"limit"`
}

var ErrFull = errors.New("full (")

func New[T any](limit int) *Queue[T] {
	return &Queue[T]{limit: limit}
}

func (q *Queue[T]) Push(item T) error {
	if len(q.items) >= q.limit {
		return fmt.Errorf("push %v: %w", item, ErrFull)
	} else if q.limit == 0 {
		panic(`no limit {`)
	}
	q.items = append(q.items, item)
	return nil
}

func (q *Queue[T]) Each(f func(int, T) bool) {
	for n, item := range q.items {
		if !f(n, item) {
			break
		}
	}
	switch n := len(q.items); {
	case n > 10:
		fmt.Println("many", '}')
	default:
		go func() { fmt.Println("few") }()
	}
	select {}
}
"#,
        broken: &[
            ("package queue\n", "package\n"),
            ("import (\n", "import \n"),
            ("\"fmt\"\n)", "\"fmt\"\n"),
            ("type Queue[T any] struct {", "type Queue[T any] struct"),
            ("type Queue[T any] struct {", "type Queue[T any struct {"),
            ("var ErrFull = errors.New(", "var ErrFull = = errors.New("),
            ("errors.New(\"full (\")", "errors.New(\"full (\""),
            ("func New[T any](limit int)", "func New[T any](limit int"),
            ("return &Queue[T]{limit: limit}", "return &Queue[T]{limit: limit"),
            ("if len(q.items) >= q.limit {", "if len(q.items) >= q.limit"),
            ("if len(q.items) >= q.limit {", "if len(q.items) >= {"),
            ("} else if q.limit == 0 {", "else if q.limit == 0 {"),
            ("} else if q.limit == 0 {", "} else q.limit == 0 {"),
            ("panic(`no limit {`)", "panic(`no limit {)"),
            ("append(q.items, item)", "append(q.items, item"),
            ("for n, item := range q.items {", "for n, item := range q.items"),
            ("for n, item := range q.items {", "for n item := range q.items {"),
            ("if !f(n, item) {", "if (!f(n, item) {"),
            ("switch n := len(q.items); {", "switch n := len(q.items); {{"),
            ("case n > 10:", "case n > 10"),
            ("default:", "default"),
            ("'}')", "'})"),
            ("go func() { fmt.Println(\"few\") }()", "go func() { fmt.Println(\"few\") ()"),
            ("select {}\n}", "select {}\n"),
            ("func (q *Queue[T]) Push(item T) error {", "func (q *Queue[T] Push(item T) error {"),
            ("func (q *Queue[T]) Push(item T) error {", "fn (q *Queue[T]) Push(item T) error {"),
            ("\treturn nil\n}", "\treturn nil\n}}"),
            ("// Queue is", "Queue is"),
            ("items []T", "items [T"),
            ("package queue\n", "<<<<<<< ours\npackage queue\n"),
        ],
        good: &[
            ("// Queue is", "/* Queue ( { is */ // Queue is"),
            ("'}')", "'\\'', '\\u00e9')"),
            ("panic(`no limit {`)", "panic(`no\nlimit \" {`)"),
            ("select {}\n", "for range 3 {\n\t}\n"),
            ("items []T", "items []map[string]chan<- func(T) (int, error)"),
            ("var ErrFull", "type Number interface {\n\t~int | ~float64\n}\n\nvar ErrFull"),
            ("return nil\n", "defer func() { _ = recover() }()\n\treturn nil\n"),
            ("var ErrFull", "const (\n\tA = iota\n\tB\n)\n\nvar ErrFull"),
        ],
    },
    Case {
        name: "router.mjs",
        text: r#"import { readFile } from 'node:fs/promises';

const routes = new Map([['/', home], ['/about', about]]);
const id = /^\/users\/(\d+)[/)]?$/u;

export class Router {
  #count = 0;
  static of(...all) {
    return Object.assign(new Router(), { all });
  }
  get count() {
    return this.#count ?? 0;
  }
  async handle(request, { log = console.log, ...rest } = {}) {
    this.#count += 1;
    if (id.test(request.url)) {
      return `user ${request.url.match(id)?.[1] ?? 'none'} of ${rest.size}`;
    } else if (!routes.has(request.url)) {
      throw new Error("no route (");
    }
    for (const [path, page] of routes) {
      if (path === request.url) return page(request);
    }
    try {
      log(await readFile('a'));
    } catch {
      log('missing {');
    } finally {
      log(`done`);
    }
    switch (rest.kind) {
      case 'a':
        break;
      default:
        do { rest.n--; } while (rest.n > 0);
    }
  }
}

function home() { return { a: 1, 'b': [1, 2, 3], ['c' + 1]: () => {} }; }
const about = async (request) => ({ ...home(), url: request.url });
export default Router;
"#,
        broken: &[
            ("import { readFile } from", "import { readFile from"),
            (
                "import { readFile } from 'node:fs/promises';",
                "import { readFile } from node:fs/promises;",
            ),
            (
                "new Map([['/', home], ['/about', about]]);",
                "new Map([['/', home], ['/about', about]);",
            ),
            ("const id = /^", "const id = = /^"),
            ("export class Router {", "export class Router"),
            ("export class Router {", "export clas Router {"),
            ("#count = 0;", "#count = ;"),
            ("static of(...all) {", "static of(...all {"),
            ("new Router(), { all });", "new Router(), { all );"),
            ("get count() {", "get count( {"),
            ("return this.#count ?? 0;", "return this.#count ?? ;"),
            ("async handle(request,", "async handle(request,,"),
            ("{ log = console.log, ...rest } = {}) {", "{ log = console.log, ...rest = {}) {"),
            ("if (id.test(request.url)) {", "if (id.test(request.url) {"),
            ("if (id.test(request.url)) {", "if id.test(request.url) {"),
            ("of ${rest.size}`;", "of ${rest.size;"),
            ("} else if (!routes", "} else if !routes"),
            ("throw new Error(\"no route (\");", "throw new Error(\"no route ();"),
            ("for (const [path, page] of routes) {", "for (const [path, page of routes) {"),
            ("for (const [path, page] of routes) {", "for const [path, page] of routes {"),
            ("    try {\n", "    {\n"),
            ("log('missing {');", "log('missing {);"),
            ("switch (rest.kind) {", "switch (rest.kind)"),
            ("case 'a':", "case 'a'"),
            ("while (rest.n > 0);", "while (rest.n > );"),
            ("'b': [1, 2, 3],", "'b': [1, 2, 3,"),
            ("['c' + 1]: () => {} }; }", "['c' + 1]: () => {} };"),
            ("({ ...home(), url: request.url });", "({ ...home(), url: request.url );"),
            ("async (request) => (", "async (request) = > ("),
            ("export default Router;", "export default;"),
            ("const routes", "const const routes"),
            ("import { readFile }", "```js\nimport { readFile }"),
            ("export default Router;", ">>>>>>> theirs\nexport default Router;"),
        ],
        good: &[
            ("export default Router;", "// it's ( { [ `\nexport default Router;"),
            ("const id = /^\\/users", "const id = /[/\"'`]^\\/users"),
            ("log(`done`);", "log(`a ${`b ${1 + 1}`} { \\` `);"),
            ("this.#count += 1;", "this.#count ||= 1 ** 2"),
            ("export default Router;", "export default Router"),
            (
                "function home()",
                "function* walk() { yield* [1n, .5, 0b1, 1_000]; }\nfunction home()",
            ),
            ("export default Router;", "const half = 4 / 2 / 1;\nexport default Router;"),
            (
                "export default Router;",
                "label: for (;;) { continue label; }\nexport default Router;",
            ),
            ("#count = 0;", "#count = 0;\n  static { this.made = new.target; }"),
            ("export default Router;", "if (routes) ; else ;\nexport default Router;"),
            ("const routes", "const { a: { b = 1 } = {}, ...c } = {};\nconst routes"),
        ],
    },
    Case {
        name: "view.jsx",
        text: "export const View = ({ name, all }) => (\n  <ul className=\"list\">\n    {all.map((one) => (\n      <li key={one.id} {...one.props}>\n        {name} &amp; <b>{one.text}</b>\n      </li>\n    ))}\n    <input disabled value={`a ${name}`} />\n  </ul>\n);\n",
        broken: &[
            ("</ul>\n", "\n"),
            ("key={one.id}", "key={one.id"),
            ("<b>{one.text}</b>", "<b>{one.text}<b>"),
            ("value={`a ${name}`} />", "value={`a ${name}`} >"),
            ("    ))}\n", "    )}\n"),
            ("className=\"list\">", "className=\"list>"),
            ("{name} &amp;", "{name &amp;"),
        ],
        good: &[
            ("{name} &amp;", "don't worry: {/* a comment ( */}"),
            ("</ul>\n", "<></></ul>\n"),
            ("<b>{one.text}</b>", "<a.b c:d=\"e\">{...[one]}</a.b>"),
        ],
    },
    Case {
        name: "package.json",
        text: "{\n  \"name\": \"desk\",\n  \"private\": true,\n  \"size\": -1.5e3,\n  \"files\": [\"a\", \"b\"],\n  \"scripts\": { \"test\": \"node --test \\\"a b\\\"\" },\n  \"none\": null\n}\n",
        broken: &[
            ("\"name\": \"desk\",", "\"name\": \"desk\""),
            ("\"name\": \"desk\",", "\"name\" \"desk\","),
            ("\"name\": \"desk\",", "name: \"desk\","),
            ("\"name\": \"desk\",", "'name': 'desk',"),
            ("\"none\": null\n}", "\"none\": null\n"),
            ("\"none\": null\n", "\"none\": null,\n"),
            ("\"private\": true", "\"private\": True"),
            ("-1.5e3", "-1.5e"),
            ("-1.5e3", "01"),
            ("[\"a\", \"b\"]", "[\"a\", \"b\"}"),
            ("[\"a\", \"b\"]", "[\"a\" \"b\"]"),
            ("[\"a\", \"b\"]", "[\"a\", \"b\",]"),
            ("\\\"a b\\\"", "\"a b\""),
            ("{\n  \"name\"", "// desk\n{\n  \"name\""),
            ("null", "undefined"),
            ("\"size\"", "\"si\nze\""),
            ("\"none\": null\n}", "\"none\": null\n}}"),
            ("\"private\"", "...\n  \"private\""),
        ],
        good: &[
            ("\"name\": \"desk\",", "\"name\": \"d\\u00e9sk \\\\ / // {\","),
            ("[\"a\", \"b\"]", "[[], {}, [[]]]"),
            ("null", "0.0"),
            ("\"none\": null", "\"none\": null, \"none\": 1"),
        ],
    },
    Case {
        name: "Cargo.toml",
        text: "[package]\nname = \"desk\"\nversion = \"0.1.0\"\nkeywords = [\n  \"a\",\n  \"b\",\n]\n\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nregex.version = \"1\"\n\n[[bin]]\nname = 'desk'\npath = \"src/main.rs\" # ( not closed\n\n[profile.dev.package.\"*\"]\nopt-level = 1\n",
        broken: &[
            ("[package]\n", "[package\n"),
            ("name = \"desk\"", "name = \"desk"),
            ("name = \"desk\"", "name = desk"),
            ("name = \"desk\"", "name: \"desk\""),
            ("name = \"desk\"", "name =\n"),
            ("name = \"desk\"", "name \"desk\""),
            ("name = \"desk\"", "name = \"desk\" version"),
            ("  \"b\",\n]", "  \"b\",\n"),
            ("  \"a\",\n", "  \"a\"\n"),
            ("features = [\"derive\"] }", "features = [\"derive\" }"),
            ("features = [\"derive\"] }", "features = [\"derive\"]"),
            ("[[bin]]", "[[bin]"),
            ("name = 'desk'", "name = 'desk"),
            ("opt-level = 1", "opt-level = 1\nopt-level = 2"),
            ("opt-level = 1", "opt level = 1"),
            ("[dependencies]", "[package]"),
            ("opt-level = 1", "opt-level = 01"),
            ("[profile.dev.package.\"*\"]", "[profile.dev.package.*]"),
            ("[dependencies]", "<<<<<<< ours\n[dependencies]"),
        ],
        good: &[
            ("name = \"desk\"", "name = \"\"\"desk (\n\"\"\""),
            ("opt-level = 1", "opt-level = 1_0\nwhen = 2026-11-18T10:00:00Z\nnone = nan"),
            ("regex.version = \"1\"", "regex.version = \"1\" # }\n\"quoted key\" = 0x1F"),
            ("[[bin]]", "[[bin]]\nname = \"other\"\n\n[[bin]]"),
        ],
    },
];
