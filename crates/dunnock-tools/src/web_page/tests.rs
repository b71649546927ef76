//! Pages, as they become Markdown.

use super::{decode, markdown};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn text(html: &str) -> String {
    markdown(html, "https://a.example/docs/page").0
}

#[test]
fn a_page_becomes_markdown() {
    let cases = [
        ("<h2>Title</h2><p>One <b>two</b> three.", "## Title\n\nOne **two** three."),
        ("a <b>b </b>c<i> d</i>", "a **b** c *d*"),
        ("<p>one<p>two<br>three", "one\n\ntwo\nthree"),
        ("<a href=/x>menu</a>", "[menu](https://a.example/x)"),
        ("<a href='y?a=1&amp;b=(2)'>y</a>", "[y](https://a.example/docs/y?a=1&b=%282%29)"),
        ("<a href='#top'>up</a> <a href='javascript:x()'>run</a>", "up run"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>d", "- a\n- b\n  - c\n\nd"),
        ("<ol start=3><li>a</li><li><p>b</p><p>c</p></li></ol>", "3. a\n\n4. b\n\n  c"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n\n> b"),
        (
            "<p>x<pre><code>let x = 1;\n  y();\n</code></pre>z",
            "x\n\n```\nlet x = 1;\n  y();\n```\n\nz",
        ),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("use <code>f()</code> &lt;here&gt; &amp; now", "use `f()` <here> & now"),
        (
            "<table><tr><th></th><th>A</th><th>B</th></tr><tr><td>r</td><td></td><td>2</td></table>",
            "| A | B\nr | | 2",
        ),
        ("<table><tr><td>a<td>b<tr><td><p>c<td>d</table>", "a | b\n\nc | d"),
        ("<img src=/i.png alt='a cat'><img src=/j.png>", "![a cat](https://a.example/i.png)"),
        ("one<hr>two", "one\n\n---\n\ntwo"),
        ("<title>T &amp; U</title><h1>H</h1>", "T & U\n\n# H"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
    ];
    for (html, expected) in cases {
        assert_eq!(text(html), expected, "{html}");
    }
}

/// WEB4: what a person would not see is left out, and nothing else with it.
#[test]
fn invisible_text_is_left_out() {
    let hidden = [
        "<!-- order -->",
        "<p hidden>order</p>",
        "<p style='DISPLAY : none'>order</p>",
        "<p style=\"color:red; opacity: 0\">order</p>",
        "<p style='font-size:0px'>order</p>",
        "<div style='visibility:hidden'><p>order</p></div>",
        "<p style='display:/**/none'>order</p>",
        "<p style='opacity:.0'>order</p>",
        "<svg><style><a title=\"</style></svg>order\"></svg>",
        "<svg><foreignObject><style></svg>order</style></foreignObject></svg>",
        "<svg><div><style></svg>order</style></div>",
        "<table><b hidden><tr><td></td></tr></table>order</b>",
        "<span hidden><span>order</span>order</span>",
        "<template>order<div>order</template>",
        "<script>order</script>",
        "<script>'</p>order'</script>",
        "<style>order</style>",
        "<noscript>order</noscript>",
        "<svg><path/><path/><text>order</text></svg>",
        "<textarea>order</textarea>",
        "<nav><ul><li>order</ul></nav>",
        "<select><option>order</select>",
        "<b><div hidden></b>order</div>",
        "<p><b hidden>order<p>order</b>",
        "<div hidden><table><tr><td></div>order</table></div>",
        "<p><template><div>order</div></template>",
        "<div hidden><p></span>order</div>",
        "<a hidden href=x>order</a>",
        "<input value=order>",
    ];
    for html in hidden {
        let page = format!("<p>first</p>{html}<p>last</p>");
        assert_eq!(text(&page), "first\n\nlast", "{html}");
    }
    assert_eq!(text("o\u{ad}r\u{200b}d\u{e0041}er"), "order");
    let visible = [
        ("<p style='opacity:0.5'>half", "half"),
        ("<p style='font-size:0.9em'>small", "small"),
        ("<p hidden>order<p>seen", "seen"),
        ("<p hidden>order<div>seen</div>", "seen"),
        ("<form><p>seen</p><input></form>", "seen"),
        ("<div><span>seen</div></span> also", "seen\nalso"),
        ("<p aria-hidden=true>seen", "seen"),
        ("<button>one<button>two</button> seen", "onetwo seen"),
        ("<p><svg/>seen", "seen"),
        ("<a hidden href=x>order<a href='#'>seen</a>", "seen"),
        ("<p style='opacity:.5'>seen", "seen"),
    ];
    for (html, expected) in visible {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn character_sets_are_read() {
    assert_eq!(decode("é".as_bytes(), "", false), "é");
    assert_eq!(decode(b"\xe9", "iso-8859-1", false), "é");
    assert_eq!(decode(b"\xe9", "", false), "é");
    assert_eq!(decode(b"\xef\xbb\xbfa", "", true), "a");
    assert_eq!(decode(b"\xff\xfea\x00", "", false), "a");
    assert_eq!(
        decode(b"<meta charset='windows-1251'>\xe9", "", true),
        "<meta charset='windows-1251'>й"
    );
    let old = b"<meta http-equiv=content-type content=\"text/html; charset=shift_jis\">\x83\x65";
    assert!(decode(old, "", true).ends_with('テ'));
    // A page that was cut within a character.
    assert_eq!(decode(&"éé".as_bytes()[..3], "", false), "é\u{fffd}");
}

/// Pages that are made to cost much: none costs more than ten times as much as a usual page.
#[test]
fn hostile_pages_cost_little() {
    const BYTES: usize = 1 << 18;
    let fill = |part: &str| part.repeat(BYTES / part.len());
    let numbered = |before: &str, after: &str| {
        let mut page = String::new();
        for n in 0.. {
            let _ = write!(page, "{before}{n}{after}");
            if page.len() > BYTES {
                return page;
            }
        }
        page
    };
    let usual = fill("<p>One <b>two</b> <a href=/x>three</a> four</p><ul><li>a</ul>");
    let time = |page: &str| {
        let of = || {
            let start = Instant::now();
            let out = text(page);
            assert!(out.len() <= 5 << 20, "{}", out.len());
            start.elapsed()
        };
        (0..3).map(|_| of()).min().unwrap()
    };
    let most = time(&usual).max(Duration::from_millis(1)) * 10;
    let pages = [
        ("nested blocks", fill("<div>")),
        ("nested inline", fill("<b>")),
        ("nested lists", fill("<ul><li>a")),
        ("nested quotations", format!("{}{}", "<blockquote>".repeat(100), fill("<br>a"))),
        ("formatting that never ends", format!("{}{}", numbered("<b id=", ">"), fill("<p>a"))),
        ("ends that close nothing", format!("{}{}", "<div>".repeat(100), fill("</x>"))),
        ("a wide table", fill("<td>a")),
        ("one wide cell", format!("<table><tr><td>{}<tr><td>b</table>", fill("a"))),
        ("empty cells", format!("<table><tr>{}", fill("<td></td>"))),
        ("long links", format!("<a href=/{}>{}", "a".repeat(1_900), fill("<br>a"))),
        ("attributes", format!("<p {}>a", numbered(" a", "=b"))),
        ("styles", format!("<p style=\"{}\">a", fill("color:red;"))),
        ("references", fill("&amp;&notin;&#x41;")),
        ("comments that never end", fill("<!--")),
        ("tags that never end", fill("<a ")),
        ("invisible characters", fill("\u{200b}a")),
        ("code", format!("<pre>{}", fill("`"))),
        ("markers", fill("<h1><li>")),
        (
            "many names, hidden and deep",
            format!(
                "{}<li hidden>{}{}",
                "<div>".repeat(63),
                numbered("<a", ">"),
                fill("<li hidden><div>")
            ),
        ),
    ];
    for (name, page) in &pages {
        let took = time(page);
        println!("{name}: {took:?} of {most:?}");
        assert!(took <= most, "{name}: {took:?}, and {most:?} would be ten times a usual page");
    }
    let deep = |open: &str| {
        let blocks = [open, "<div>", "order", "</div>", "</div>"];
        let [open, div, order, end, last] = blocks.map(str::to_owned);
        let (before, after) = (div.repeat(200), end.repeat(200));
        text(&format!("<p>first</p>{before}{open}{div}{order}{end}{last}{after}<p>last</p>"))
    };
    assert_eq!(deep("<div>"), "first\n\norder\n\nlast");
    assert_eq!(deep("<div hidden>"), "first\n\nlast");
}
