//! What the program says of itself: help, settings, completions, manual, tools. Committed, and
//! fresh.

use crate::Home;
use dunnock_testkit::fixture;

#[test]
fn help_pages_are_committed() {
    let mut text = String::new();
    for (name, page) in dunnock::help_pages() {
        text.push_str(&format!("$ {name} --help\n{}\n\n", page.trim_end()));
    }
    fixture::check("docs/reference/help.txt", &text);
}

#[test]
fn a_person_who_reads_only_help_finds_the_way() {
    let pages = dunnock::help_pages();
    let page = |name: &str| {
        pages.iter().find(|(n, _)| n == name).unwrap_or_else(|| unreachable!("{name}")).1.clone()
    };
    let top = page("dunnock");
    for (wish, words) in [
        ("resume", "dunnock resume"),
        ("approve", "dunnock approve ID --go"),
        ("see what was done", "dunnock sessions show ID"),
        ("continue with more", "dunnock resume ID --prompt"),
        ("answer", "dunnock answer ID"),
        ("list", "dunnock sessions list"),
    ] {
        assert!(top.contains(words), "{wish}: {words} is not on the first page");
    }
    assert!(
        page("dunnock run").contains("3 waiting for you")
            && page("dunnock resume").contains("Exit codes")
    );
    for (name, page) in &pages {
        for word in ["invocation", "instantiate", "payload", "daemon", "TODO"] {
            assert!(!page.contains(word), "{name}: {word} is not a plain word");
        }
        assert!(
            page.lines().all(|l| l.chars().count() <= 170),
            "{name} has a line that is too long"
        );
    }
    assert!(pages.len() >= 20, "{}", pages.len());
}

#[test]
fn the_page_of_settings_is_fresh() {
    fixture::check("docs/reference/settings.md", &dunnock::settings_page());
}

#[test]
fn the_page_of_keys_is_fresh() {
    fixture::check("docs/reference/keys.md", &dunnock_tui::page());
}

#[test]
fn the_page_of_tools_is_fresh() {
    fixture::check("docs/reference/tools.md", &dunnock_tools::page());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_shown_with_their_origins() {
    let home = Home::empty();
    home.configure(
        "model = \"local/m\"\nmax_steps = 50\n\n[providers.local]\nbase_url = \"http://127.0.0.1:9000/v1\"\n",
    );
    home.put(
        ".dunnock/config.toml",
        "approve = \"ask\"\nmax_steps = 7\nverify = [\"make evil\"]\n",
    );
    let mut command = home.command(&["config", "--data-dir", "data"]);
    command
        .env("DUNNOCK_SHELL", "bash")
        .env("DUNNOCK_PROVIDERS__LOCAL__API_KEY_ENV", "SCRIPT_KEY")
        .env("OPENAI_API_KEY", crate::KEY);
    let shown = crate::ran(command).await;
    assert_eq!(shown.code, 0, "{}", shown.err);
    let json = home.run(&["config", "--json"]).await;
    assert!(
        json.out
            .lines()
            .all(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["origin"].is_string())
    );
    fixture::check("fixtures/cli/config.txt", &home.plain(&format!("{}{}", shown.out, shown.err)));
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_manual_are_printed() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = home.run(&["completions", shell]).await;
        assert!(ran.code == 0 && ran.out.contains("approve"), "{shell}");
    }
    let ran = home.run(&["man"]).await;
    assert!(ran.out.contains(".TH dunnock 1") && ran.out.contains("approve"), "{}", ran.out);
    let dir = home.dir.path().join("man");
    assert_eq!(home.run(&["man", "--dir", dir.to_str().unwrap()]).await.code, 0);
    assert!(std::fs::read_dir(dir).unwrap().count() >= 20);
}

/// Holds A2: doctor names what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_to_do() {
    let server = dunnock_testkit::server::ScriptedServer::start(vec![]).await;
    let home = Home::with(&server);
    let ran = home.run(&["doctor"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("script/scripted is available") && ran.out.contains("sandbox    level A"),
        "{}",
        ran.out
    );
    let list = home.run(&["models", "list"]).await;
    assert!(list.code == 0 && list.out.contains("* script/scripted"), "{}{}", list.out, list.err);
    home.configure(
        "model = \"script/x\"\n[providers.script]\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    let ran = home.run(&["doctor"]).await;
    assert!(ran.code == 1 && ran.out.contains("BAD   model"), "{}", ran.out);
    let ran = home.run(&["doctor", "--json"]).await;
    assert!(ran.out.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()));
}
