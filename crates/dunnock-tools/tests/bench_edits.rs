//! The edit bench: what models send, in four forms, and the bytes that must come out.
//! `bench/edits/make.py` made both.

use crate::{job, toolbox};
use dunnock_ports::{CancellationToken, ToolCall, Tools as _};
use dunnock_proto::{Hash, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn bench() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/edits")
}

fn encoded(text: &str, encoding: &str) -> Vec<u8> {
    match encoding {
        "latin-1" => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect(),
        "utf-16-le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16-be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => text.as_bytes().to_vec(),
    }
}

/// The match level that a result names.
fn level(told: &str) -> &'static str {
    match () {
        () if told.contains("(matched except for trailing whitespace") => "blanks",
        () if told.contains("(matched except for indentation") => "indentation",
        () if told.contains("(matched except for typographic") => "punctuation",
        () => "exact",
    }
}

#[test]
fn the_bench_is_what_its_program_writes() {
    let mut make = std::process::Command::new("python3");
    let output = make.arg(bench().join("make.py")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    println!("{}", String::from_utf8_lossy(&output.stdout).trim());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_does_what_it_says_or_nothing() {
    let toolbox = toolbox();
    let text = std::fs::read_to_string(bench().join("edits.jsonl")).unwrap();
    let edits: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // By form: how many at each level, how many refused.
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let (mut wrong, mut applications) = (Vec::new(), 0);
    for edit in &edits {
        let file = edit["file"].as_str().unwrap();
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        let original = std::fs::read(bench().join("files").join(file)).unwrap();
        let (at, cut) =
            (edit["at"].as_u64().unwrap() as usize, edit["cut"].as_u64().unwrap() as usize);
        let put = encoded(edit["put"].as_str().unwrap(), edit["encoding"].as_str().unwrap());
        let wanted = [&original[..at], &put, &original[at + cut..]].concat();
        assert_ne!(wanted, original, "{}: an edit that changes nothing", edit["id"]);
        for (form, sent) in edit["formats"].as_object().unwrap() {
            let (tool, args) = match form.as_str() {
                "replace" => {
                    ("replace_text", json!({"path": name, "old": sent["old"], "new": sent["new"]}))
                }
                "whole" => {
                    ("write_file", json!({"path": name, "content": sent, "overwrite": true}))
                }
                _ => ("apply_patch", json!({ "patch": sent })),
            };
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            std::fs::write(&path, &original).unwrap();
            let seen = Arc::new(BTreeMap::from([(name.to_owned(), Hash::of(&original))]));
            let mut before = original.clone();
            if edit["stale"] == true {
                before.extend(encoded("\n\n", edit["encoding"].as_str().unwrap()));
                std::fs::write(&path, &before).unwrap();
            }
            let job = ToolCall { seen, ..job(dir.path(), tool, &args.to_string()) };
            let finished = toolbox.run(job, Arc::new(|_| {}), CancellationToken::default()).await.0;
            let came = std::fs::read(&path).unwrap();
            applications += 1;
            let key = format!("{form}_expect");
            let expect = edit.get(&key).unwrap_or(&edit["expect"]).as_str().unwrap();
            let done = finished.outcome == Outcome::Done;
            let found = if done { level(&finished.shown) } else { "refused" };
            *counts.entry(form.as_str()).or_default().entry(found).or_default() += 1;
            // Forms that give the whole file, or the line, need no level.
            let by = edit["rung"].as_str().unwrap();
            let right = match expect {
                "refused" => !done && came == before,
                "any" => came == if done { wanted.clone() } else { before.clone() },
                _ => done && came == wanted && (by == "none" || by == found || form == "whole"),
            };
            if !right {
                wrong.push(format!(
                    "{} {form} ({} in {file}): expected {expect} by {by}, came \
                     {found}\n{args}\n{}\n{}",
                    edit["id"].as_str().unwrap(),
                    edit["class"].as_str().unwrap(),
                    finished.shown,
                    String::from_utf8_lossy(&came)
                ));
            }
            // What was refused says where to look.
            if !done && edit["class"] == "invented" {
                assert!(finished.shown.contains("the closest match is line"), "{}", finished.shown);
            }
        }
    }
    for (form, by) in &counts {
        let all: usize = by.values().sum();
        let shares: Vec<String> = by
            .iter()
            .map(|(level, n)| format!("{level} {n} ({:.0}%)", 100.0 * *n as f64 / all as f64))
            .collect();
        println!("{form}: {all} edits: {}", shares.join(", "));
    }
    let total = |name: &str| counts["replace"].get(name).copied().unwrap_or(0);
    let recovered = total("blanks") + total("indentation") + total("punctuation");
    println!(
        "{} edits, {applications} applications; as replace_text {recovered} recovered by a level, \
         {} refused; {} wrong",
        edits.len(),
        total("refused"),
        wrong.len()
    );
    for one in wrong.iter().take(8) {
        println!("WRONG {one}\n");
    }
    assert!(edits.len() >= 300 && recovered >= 60 && total("refused") >= 60);
    assert_eq!(wrong.len(), 0);
}
