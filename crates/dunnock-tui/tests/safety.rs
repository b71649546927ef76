//! What a hostile text can do to the terminal: nothing.

use crate::tape::{Tape, call, id, say};
use dunnock_proto::*;
use dunnock_tui::Theme;
use serde_json::json;

const HOSTILE: &[&str] = &[
    "\u{1b}[2K\u{1b}[1A",
    "\u{1b}]52;c;aGFja2Vk\u{7}",
    "\u{1b}]8;;http://evil\u{1b}\\click",
    "\u{1b}]0;title\u{7}\u{1b}P$q\"p\u{1b}\\\u{1b}[6n\u{1b}[c",
    "\u{202e}gnp.exe",
    "r\u{200b}m",
    "curl evil\rls    ",
    "\u{9b}31m\u{90}q\u{9c}",
    "\u{7}\u{8}\u{b}\u{c}\u{e}\u{f}\u{7f}",
];

/// Only sequences of ours: colours, and links to where a click may go.
fn clean(bytes: &str) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n') {
        let Some(after) = rest[at..].strip_prefix('\u{1b}') else { return false };
        let ours = match after.chars().next() {
            Some('[') => after[1..]
                .find('m')
                .filter(|end| after[1..=*end].chars().all(|c| c.is_ascii_digit() || c == ';'))
                .map(|end| end + 2),
            Some(']') => after
                .strip_prefix("]8;;")
                .and_then(|link| link.find("\u{1b}\\").map(|end| (link, end)))
                .and_then(|(link, end)| {
                    let place = &link[..end];
                    (place.is_empty() || place.starts_with("http")).then_some(end + 6)
                }),
            _ => None,
        };
        let Some(skip) = ours else { return false };
        rest = &after[skip..];
    }
    !bytes.contains('\u{202e}') && !bytes.contains('\u{200b}')
}

fn everywhere(text: &str, theme: Theme) -> String {
    let mut t = Tape::new(80, 40);
    t.state.theme = theme;
    t.begun(crate::tape::config());
    t.fact(Prompted { text: text.into(), images: Vec::new() });
    t.step(1).thought(1, text).text(1, 0, text);
    let parts = vec![
        say(text),
        call("shell", json!({ "command": text })),
        call("shell", json!({ "command": text })),
        call(text, json!({ "path": text })),
        call("replace_text", json!({"path": text, "old": text, "new": text})),
    ];
    t.answered(1, parts).started(id(1, 0));
    t.delta(Delta::Output { call: id(1, 0), offset: 0, stream: "out".into(), text: text.into() });
    t.fact(Planned { steps: vec![PlanStep { text: text.into(), state: text.into() }] });
    let mut out = t.painted();
    for n in 0..4u16 {
        t.fact(Finished {
            exit: Some(1),
            ..Finished::plain(
                id(1, n),
                if n % 2 == 0 { Outcome::Failed } else { Outcome::Done },
                text,
            )
        });
    }
    // A call that waits, with everything that is said of it.
    t.answered(2, vec![call("shell", json!({ "command": text }))]);
    let approval = Approval {
        call: id(2, 0),
        request: RequestKind::Tool { name: text.into() },
        reasons: vec![
            Reason::UsesNetwork { program: text.into() },
            Reason::EditsProtected { file: text.into() },
            Reason::MayBeDenied { rule: text.into() },
        ],
        rule: Some(Rule { tool: text.into(), words: vec![text.into()], access: Access::NOTHING }),
        ..crate::tape::approval(RequestKind::Command, Reason::ModeAsk)
    };
    t.question(QuestionKind::Approval(Box::new(approval)));
    out.push_str(&t.wait(400).painted());
    for key in ['e', 'x', 'a'] {
        out.push_str(&t.key(crossterm::event::KeyCode::Char(key)).painted());
    }
    t.key(crossterm::event::KeyCode::Esc);
    let choices = vec![text.to_owned(), text.to_owned()];
    t.question(QuestionKind::Person { call: id(1, 9), text: text.into(), choices });
    t.question(QuestionKind::Limit { steps: 20 });
    t.told(dunnock_tui::HostEvent::Text(vec![text.into()]))
        .told(dunnock_tui::HostEvent::Diff(text.into()))
        .told(dunnock_tui::HostEvent::Wrong(text.into()));
    t.told(dunnock_tui::HostEvent::Models(vec![text.into()]));
    out.push_str(&t.painted());
    let row = dunnock_tui::SessionRow {
        id: SessionId::from_random([1; 16]),
        title: text.into(),
        workspace: text.into(),
        status: text.into(),
        age: text.into(),
        excerpt: text.into(),
    };
    t.key(crossterm::event::KeyCode::Esc)
        .told(dunnock_tui::HostEvent::Sessions(String::new(), vec![row]));
    out.push_str(&t.painted());
    t.key(crossterm::event::KeyCode::Esc);
    let branch = Some(text.to_owned());
    t.told(dunnock_tui::HostEvent::Welcome(dunnock_tui::Welcome {
        branch,
        folder: text.into(),
        ..crate::tape::welcome()
    }));
    t.fact(Ended {
        reason: EndReason::Failed { error: text.into() },
        proof: Proof::None,
        hold: false,
    });
    out.push_str(&t.painted());
    out.replace('␛', "\u{1b}")
}

#[test]
fn no_sequence_of_a_models_or_a_programs_reaches_the_terminal() {
    for theme in [Theme::Dark, Theme::Mono] {
        for text in HOSTILE {
            assert!(clean(&everywhere(text, theme)), "{text:?}");
        }
    }
    assert!(clean(&everywhere("plain", Theme::Light)));
    assert!(
        !clean("\u{1b}[2J") && !clean("\r") && !clean("\u{1b}]52;c;x\u{7}"),
        "this test can fail"
    );
}

#[test]
fn any_bytes_at_all_are_drawn_without_harm() {
    let mut seed = 1u64;
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..60 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = u32::try_from(seed >> 40).unwrap_or(0);
            let c = match n % 5 {
                0 => char::from_u32(n / 5 % 0x20),
                1 => ['[', ']', '\u{1b}', ';', '`', '|', '*', '#', '\n', '\u{9b}']
                    .get((n / 5 % 10) as usize)
                    .copied(),
                2 => char::from_u32(n / 5 % 0x3000),
                _ => char::from_u32(0x20 + n / 5 % 0x5f),
            };
            text.extend(c);
        }
        assert!(clean(&everywhere(&text, Theme::Dark)), "{text:?}");
    }
}
