//! Ten small tasks, each with a solution in at least three files and a check that the model does not
//! write.

pub struct Task {
    pub name: &'static str,
    pub prompt: &'static str,
    /// What is there at the start.
    pub files: &'static [(&'static str, &'static str)],
    /// The solution, file by file.
    pub solution: &'static [(&'static str, &'static str)],
    /// Exits with 0 in a folder with the whole solution only.
    pub check: &'static str,
}

pub const TASKS: [Task; 10] = [
    Task {
        name: "fix an off-by-one error",
        prompt: "total(3) must be 6. Fix it, add a test in test_total.py and a line in CHANGES.",
        files: &[("total.py", "def total(n):\n    return sum(range(n))\n"), ("CHANGES", "")],
        solution: &[
            ("total.py", "def total(n):\n    return sum(range(n + 1))\n"),
            (
                "test_total.py",
                "from total import total\n\n\ndef test_total():\n    assert total(3) == 6\n",
            ),
            ("CHANGES", "- total() includes n\n"),
        ],
        check: "python3 -m pytest -q -p no:cacheprovider && grep -q total CHANGES",
    },
    Task {
        name: "rename a function",
        prompt: "Rename area to surface in shapes.py, main.py and README.",
        files: &[
            ("shapes.py", "def area(a, b):\n    return a * b\n"),
            ("main.py", "from shapes import area\n\nprint(area(2, 3))\n"),
            ("README", "area(a, b): the area\n"),
        ],
        solution: &[
            ("shapes.py", "def surface(a, b):\n    return a * b\n"),
            ("main.py", "from shapes import surface\n\nprint(surface(2, 3))\n"),
            ("README", "surface(a, b): the surface\n"),
        ],
        check: "test \"$(python3 main.py)\" = 6 && ! grep -rq area --include='*.py' --include=README .",
    },
    Task {
        name: "count words",
        prompt: "Write count.sh, which prints the number of words of the file it is given, text.txt \
                 with the words one two three, and answer.txt with what count.sh prints for it.",
        files: &[],
        solution: &[
            ("count.sh", "wc -w <\"$1\" | tr -d ' '\n"),
            ("text.txt", "one two three\n"),
            ("answer.txt", "3\n"),
        ],
        check: "test \"$(sh count.sh text.txt)\" = 3 && test \"$(cat answer.txt)\" = 3",
    },
    Task {
        name: "CSV to JSON",
        prompt: "convert.py reads people.csv and prints it as a JSON list. Write it, keep its output \
                 in people.json, and describe it in README.",
        files: &[("people.csv", "name,age\nAda,36\nAlan,41\n")],
        solution: &[
            (
                "convert.py",
                "import csv\nimport json\n\nwith open('people.csv') as rows:\n    print(json.dumps(list(csv.DictReader(rows))))\n",
            ),
            (
                "people.json",
                "[{\"name\": \"Ada\", \"age\": \"36\"}, {\"name\": \"Alan\", \"age\": \"41\"}]\n",
            ),
            ("README", "python3 convert.py > people.json\n"),
        ],
        check: "python3 convert.py | cmp - people.json && grep -q convert README",
    },
    Task {
        name: "a database",
        prompt: "schema.sql makes a table items(name, price), data.sql adds a pen for 2 and a book \
                 for 10, and query.sql selects the sum of the prices.",
        files: &[],
        solution: &[
            ("schema.sql", "CREATE TABLE items(name TEXT, price INTEGER);\n"),
            ("data.sql", "INSERT INTO items VALUES('pen', 2), ('book', 10);\n"),
            ("query.sql", "SELECT sum(price) FROM items;\n"),
        ],
        check: "test \"$(cat schema.sql data.sql query.sql | sqlite3 :memory:)\" = 12",
    },
    Task {
        name: "a Makefile",
        prompt: "make must build hello from hello.c with greet.c, and ./hello must print hello.",
        files: &[("hello.c", "void greet(void);\nint main(void) { return 0; }\n")],
        solution: &[
            ("hello.c", "void greet(void);\nint main(void) { greet(); return 0; }\n"),
            ("greet.c", "#include <stdio.h>\nvoid greet(void) { puts(\"hello\"); }\n"),
            ("Makefile", "hello: hello.c greet.c\n\tcc -o hello hello.c greet.c\n"),
        ],
        check: "make -s && test \"$(./hello)\" = hello",
    },
    Task {
        name: "merge settings",
        prompt: "merge.py prints the settings of base.json with those of mine.json over them. Write \
                 both files so that the port becomes 8080 and the host stays localhost.",
        files: &[],
        solution: &[
            ("base.json", "{\"host\": \"localhost\", \"port\": 80}\n"),
            ("mine.json", "{\"port\": 8080}\n"),
            (
                "merge.py",
                "import json\n\nbase, mine = (json.load(open(name)) for name in ('base.json', 'mine.json'))\nprint(json.dumps({**base, **mine}))\n",
            ),
        ],
        check: "python3 merge.py | python3 -c \"import json, sys; d = json.load(sys.stdin); sys.exit(d != {'host': 'localhost', 'port': 8080})\"",
    },
    Task {
        name: "a page",
        prompt: "index.html links to about.html and style.css; about.html links back.",
        files: &[],
        solution: &[
            ("style.css", "body { color: #222; }\n"),
            ("about.html", "<a href=\"index.html\">back</a>\n"),
            (
                "index.html",
                "<link rel=\"stylesheet\" href=\"style.css\"><a href=\"about.html\">about</a>\n",
            ),
        ],
        check: "test -f style.css && grep -q index.html about.html && grep -q about.html index.html && grep -q style.css index.html",
    },
    Task {
        name: "an option",
        prompt: "greet.py gets an option --loud that prints in capitals. Test it in test_greet.sh and \
                 document it in USAGE.",
        files: &[("greet.py", "print('hello')\n")],
        solution: &[
            (
                "greet.py",
                "import sys\n\ntext = 'hello'\nprint(text.upper() if '--loud' in sys.argv else text)\n",
            ),
            ("test_greet.sh", "test \"$(python3 greet.py --loud)\" = HELLO\n"),
            ("USAGE", "greet.py [--loud]\n"),
        ],
        check: "sh test_greet.sh && test \"$(python3 greet.py)\" = hello && grep -q loud USAGE",
    },
    Task {
        name: "a log",
        prompt: "In app.log, count the lines with ERROR. Write the number to errors.txt, the last such \
                 line to last.txt, and the command that counts them to count.sh.",
        files: &[("app.log", "INFO a\nERROR b\nINFO c\nERROR d\n")],
        solution: &[
            ("errors.txt", "2\n"),
            ("last.txt", "ERROR d\n"),
            ("count.sh", "grep -c ERROR app.log\n"),
        ],
        check: "test \"$(sh count.sh)\" = 2 && test \"$(cat errors.txt)\" = 2 && test \"$(cat last.txt)\" = 'ERROR d'",
    },
];
