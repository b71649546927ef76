//! What the highlighter knows about each language: comments, quotes, keywords.

/// A language.
pub(crate) struct Language {
    /// Names after a code fence, and file extensions.
    pub(crate) names: &'static [&'static str],
    /// Start of a comment that runs to the end of the line.
    pub(crate) line: &'static [&'static str],
    /// Start and end of a multi-line comment.
    pub(crate) block: Option<(&'static str, &'static str)>,
    /// Characters that quote a string.
    pub(crate) quotes: &'static str,
    /// Delimiters of a multi-line string.
    pub(crate) long: &'static [&'static str],
    /// Keywords, separated by spaces.
    pub(crate) words: &'static str,
}

const C_LIKE: Language = Language {
    names: &[
        "c", "h", "cpp", "cc", "hpp", "c++", "java", "kotlin", "kt", "swift", "cs", "csharp",
        "scala", "php", "dart",
    ],
    line: &["//", "#"],
    block: Some(("/*", "*/")),
    quotes: "\"'",
    long: &["\"\"\""],
    words: "abstract auto bool boolean break byte case catch char class const constexpr continue \
            default delete do double else enum explicit extends extern final finally float for \
            friend fun func goto guard if implements import in inline instanceof int interface \
            internal is let long namespace native new null nullptr object open operator override \
            package private protected public record return sealed short signed sizeof static \
            string struct super switch template this throw throws trait true false try typedef \
            typename union unsigned using val var virtual void volatile when where while yield",
};

/// Every language.
pub(crate) const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: "\"",
        long: &[],
        words: "as async await break const continue crate dyn else enum extern false fn for if \
                impl in let loop match mod move mut pub ref return self Self static struct super \
                trait true type unsafe use where while",
    },
    Language {
        names: &["python", "py", "python3", "pyi"],
        line: &["#"],
        block: None,
        quotes: "\"'",
        long: &["\"\"\"", "'''"],
        words: "and as assert async await break case class continue def del elif else except \
                False finally for from global if import in is lambda match None nonlocal not or \
                pass raise return self True try while with yield",
    },
    Language {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "typescript", "ts", "tsx"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: "\"'",
        long: &["`"],
        words: "abstract any as async await boolean break case catch class const continue \
                debugger declare default delete do else enum export extends false finally for \
                from function get if implements import in instanceof interface is keyof let \
                namespace never new null number of private protected public readonly return \
                satisfies set static string super switch this throw true try type typeof \
                undefined unknown var void while with yield",
    },
    Language {
        names: &["go", "golang"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: "\"'",
        long: &["`"],
        words: "break case chan const continue default defer else fallthrough false for func go \
                goto if import interface map nil package range return select struct switch true \
                type var",
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "console", "fish"],
        line: &["#"],
        block: None,
        quotes: "\"'",
        long: &[],
        words: "break case continue do done elif else esac exit export fi for function if in \
                local read return set shift source then trap unset until while",
    },
    Language {
        names: &["toml", "ini", "conf", "cfg", "properties"],
        line: &["#", ";"],
        block: None,
        quotes: "\"'",
        long: &["\"\"\"", "'''"],
        words: "true false",
    },
    Language {
        names: &[
            "yaml",
            "yml",
            "dockerfile",
            "make",
            "makefile",
            "cmake",
            "ruby",
            "rb",
            "perl",
            "r",
            "elixir",
            "nix",
        ],
        line: &["#"],
        block: None,
        quotes: "\"'",
        long: &[],
        words: "true false null yes no def end do if else elsif unless while until class module \
                return require begin rescue ensure then case when FROM RUN COPY CMD WORKDIR ENV \
                ENTRYPOINT EXPOSE ARG ifeq endif include",
    },
    Language {
        names: &["json", "jsonc", "json5"],
        line: &["//"],
        block: None,
        quotes: "\"",
        long: &[],
        words: "true false null",
    },
    Language {
        names: &["sql", "sqlite", "postgres"],
        line: &["--"],
        block: Some(("/*", "*/")),
        quotes: "'\"",
        long: &[],
        words: "select from where insert into values update set delete create table index view \
                drop alter add primary key foreign references join left right inner outer on \
                group by order having limit as and or not null is in like between distinct union \
                all case when then else end begin commit rollback SELECT FROM WHERE INSERT INTO \
                VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER ADD PRIMARY KEY \
                FOREIGN REFERENCES JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT AS \
                AND OR NOT NULL IS IN LIKE BETWEEN DISTINCT UNION ALL CASE WHEN THEN ELSE END \
                BEGIN COMMIT ROLLBACK",
    },
    Language {
        names: &["html", "xml", "svg", "vue"],
        line: &[],
        block: Some(("<!--", "-->")),
        quotes: "\"'",
        long: &[],
        words: "",
    },
    Language {
        names: &["css", "scss", "less"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: "\"'",
        long: &[],
        words: "",
    },
    Language {
        names: &["lua", "haskell", "hs", "ada"],
        line: &["--"],
        block: None,
        quotes: "\"",
        long: &[],
        words: "and break do else elseif end false for function if in local module nil not or \
                repeat return then true until while where let case of data type class instance \
                import",
    },
    C_LIKE,
];
