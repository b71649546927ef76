//! Cases about the page in the browser: each is a test of its own in `web/e2e/cases.test.ts`, and
//! says there what happened.

use super::{judge, of};

/// Holds T9: what the model claims of a call grants nothing and is not in the dialog (G232).
#[test]
fn the_page() {
    let text = crate::web::tests("browser", "e2e/cases.test.ts", 13);
    let said = |id: &str| text.lines().find_map(|line| line.strip_prefix(id)?.strip_prefix(' '));
    let results = of("cases::web::the_page").into_iter().map(|case| {
        let how =
            said(&case.id).map(str::to_owned).ok_or_else(|| format!("{} said nothing", case.id));
        (case.id, how)
    });
    judge("cases::web::the_page", results.collect());
}
