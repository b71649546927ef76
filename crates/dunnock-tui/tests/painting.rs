//! What the terminal shows, told by a terminal: bytes of the painter through an emulator.

use dunnock_tui::{Line, ScreenPainter, Theme, Tone, View};

fn lines(texts: &[String]) -> Vec<Line> {
    texts.iter().map(|text| Line::of(text, Tone::Text)).collect()
}

/// A generator of numbers, the same in every run.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, most: u64) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % most).unwrap()
    }
}

#[test]
fn scrollback_and_live_area_are_what_was_drawn_whatever_came_before() {
    let (columns, rows) = (30u16, 12u16);
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let mut terminal = vt100::Parser::new(rows, columns, 10_000);
        let mut painter = ScreenPainter::default();
        let mut all: Vec<String> = Vec::new();
        for step in 0..60 {
            let done: Vec<String> = (0..dice.roll(4))
                .map(|n| format!("done {step}.{n} {}.", "x".repeat(dice.roll(15))))
                .collect();
            let live: Vec<String> = (0..1 + dice.roll(9))
                .map(|n| format!("live {n} {}.", "y".repeat(dice.roll(20))))
                .collect();
            let (row, column) = (dice.roll(live.len() as u64), dice.roll(20));
            let view = View { lines: lines(&live), cursor: Some((row, column)) };
            let bytes = painter.paint(&lines(&done), &view, usize::from(columns), Theme::Dark);
            assert!(
                !bytes.contains("\x1b[2J") && !bytes.contains("\x1b[H"),
                "nothing is cleared whole"
            );
            terminal.process(bytes.as_bytes());
            all.extend(done);
            let screen: Vec<String> =
                terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
            let text = screen.join("\n");
            let live_at = live.join("\n");
            assert!(
                text.contains(&live_at),
                "seed {seed}, step {step}: the live area is not whole\n{text}\n-- \
                 wanted\n{live_at}"
            );
            let tail: Vec<&String> = all.iter().rev().take(2).rev().collect();
            let before = tail.iter().map(|l| l.as_str()).collect::<Vec<_>>().join("\n");
            assert!(
                all.len() < 2 || live.len() > 9 || text.contains(&before),
                "seed {seed}, step {step}: lines that were done are gone\n{text}\n-- \
                 wanted\n{before}"
            );
            // What stands below the live area is nothing, and the cursor is where it was put.
            let first = screen.windows(live.len()).rposition(|rows| rows == live).unwrap();
            assert!(
                screen.iter().skip(first + live.len()).all(String::is_empty),
                "seed {seed}, step {step}\n{text}"
            );
            // The terminal's own is where the next picture begins.
            let at = terminal.screen().cursor_position();
            assert_eq!(
                (usize::from(at.0), usize::from(at.1)),
                (first, 0),
                "seed {seed}, step {step}"
            );
            let cell = terminal
                .screen()
                .cell(u16::try_from(first + row).unwrap(), u16::try_from(column).unwrap())
                .unwrap();
            assert!(cell.inverse(), "seed {seed}, step {step}: the cursor is not seen");
        }
    }
}

#[test]
fn a_picture_that_did_not_change_costs_nothing() {
    let mut painter = ScreenPainter::default();
    let view = View { lines: lines(&["one".into(), "two".into()]), cursor: Some((1, 2)) };
    assert!(!painter.paint(&[], &view, 40, Theme::Dark).is_empty());
    assert_eq!(painter.paint(&[], &view, 40, Theme::Dark), "");
}

#[test]
fn only_the_row_that_changed_is_written() {
    let mut painter = ScreenPainter::default();
    let rows: Vec<String> = (0..8).map(|n| format!("row {n}")).collect();
    painter.paint(&[], &View { lines: lines(&rows), cursor: None }, 40, Theme::Dark);
    let mut next = rows.clone();
    next[3] = "changed".into();
    let bytes = painter.paint(&[], &View { lines: lines(&next), cursor: None }, 40, Theme::Dark);
    assert!(
        bytes.contains("changed") && !bytes.contains("row 2") && !bytes.contains("row 4"),
        "{bytes:?}"
    );
}
