//! How servers start: not before they are needed, beside each other, and what is said of those that fail.

use super::{ServerWorld, find, nth, use_tool};
use serde_json::json;

/// MCP1: without a server, a request is what it was; ten servers with 250 tools add at most 600 tokens.
#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_does_not_grow_with_tools() {
    let servers = ServerWorld::new("prompt");
    let without = servers.run("", &[], &[]).await;
    assert!(
        !without.sent.contains("tool_use") && !without.sent.contains("MCP"),
        "{}",
        without.sent
    );
    let tools: Vec<String> = (0..25).map(|n| format!("tool_number_{n}")).collect();
    let tables: String = (0..10)
        .map(|n| servers.table(&format!("server-{n}"), &json!({"tools": tools}), ""))
        .collect();
    let calls = [find("number"), find("")];
    let with = servers.run(&tables, &calls, &[]).await;
    let first = |sent: &str| sent.lines().next().unwrap_or_default().len();
    let more = first(&with.sent) - first(&without.sent);
    println!(
        "figure: ten servers with 250 tools add {more} bytes to a request, {} tokens",
        more / 4
    );
    assert!(more / 4 <= 600, "{more} bytes");
    // What was found changes no prompt: each request begins with the one before.
    let requests: Vec<&str> = with.sent.lines().collect();
    let system = |request: &str| {
        let request: serde_json::Value = serde_json::from_str(request).unwrap();
        (request["messages"][0].clone(), request["tools"].clone())
    };
    assert_eq!(system(requests[0]), system(requests.last().unwrap()));
    assert!(nth(&with, 0).contains("server-0/tool_number_0"), "{}", nth(&with, 0));
    assert!(nth(&with, 0).len() <= 6_500 && nth(&with, 1).len() <= 6_500);
    assert!(nth(&with, 1).contains("server-9 (25 tools)"), "{}", nth(&with, 1));
}

/// MCP2: nothing starts before it is needed; servers that hang, exit or start slowly delay no other one,
/// and each failure is said once, with what the server wrote.
#[tokio::test(flavor = "multi_thread")]
async fn bad_servers_delay_no_good_one() {
    let servers = ServerWorld::new("bad");
    let log = "log";
    let mut tables = String::new();
    for n in 0..3 {
        let hangs = json!({"start": "hang", "log": log});
        tables += &servers.table(&format!("hangs-{n}"), &hangs, "write = true\nstart_timeout = 8");
        let exits = json!({"start": "exit", "log": log});
        tables += &servers.table(&format!("exits-{n}"), &exits, "write = true");
    }
    for n in 0..2 {
        let slow = json!({"slow": 7, "tools": ["late"], "log": log});
        tables += &servers.table(&format!("slow-{n}"), &slow, "write = true");
        let good = json!({"tools": ["early"], "log": log});
        tables += &servers.table(&format!("good-{n}"), &good, "write = true");
    }
    // Without a use, none is started.
    let came = servers.run(&tables, &[], &[]).await;
    assert_eq!((came.code, servers.log().len()), (0, 0), "{:?}", servers.log());

    let wait = || ("shell".to_owned(), json!({"command": "sleep 6"}).to_string());
    let calls = [
        find("early"),
        wait(),
        use_tool("good-0/early", "x"),
        find("late"),
        wait(),
        find("early"),
        use_tool("slow-1/late", "y"),
    ];
    let came = servers.run(&tables, &calls, &["--approve", "all"]).await;
    assert_eq!(came.code, 0, "{}", came.err);
    assert!(nth(&came, 0).contains("/early"), "{}", nth(&came, 0));
    assert!(nth(&came, 2).starts_with("early: x"), "{}", nth(&came, 2));
    let last = nth(&came, 5);
    for part in
        ["good-0/early", "good-1/early", "hangs-0 cannot be used: it did not answer within 8 s"]
    {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(nth(&came, 6).starts_with("late: y"), "usable later: {}", nth(&came, 6));
    // What a server wrote is said once.
    let all: String = (0..calls.len()).map(|n| nth(&came, n)).collect();
    assert_eq!(all.matches("the database is away").count(), 3, "{all}");
    assert!(all.contains("exits-2 cannot be used: it ended before it answered (exit 3)"), "{all}");
    assert_eq!(servers.processes(), Vec::<u32>::new());
    // What was found is known in the next session before anything starts.
    servers.forget();
    let came = servers.run(&tables, &[use_tool("good-1/early", "y")], &["--approve", "all"]).await;
    assert_eq!(nth(&came, 0), "early: y");
    assert_eq!(servers.count("started"), 1, "{:?}", servers.log());
}

/// MCP5, MCP19: both eras, over pipes: what a server of one era does not know, and one that is silent; the
/// workspace is the only root, and sampling is refused.
#[tokio::test(flavor = "multi_thread")]
async fn both_eras_are_spoken() {
    for (name, options, must, must_not) in [
        ("legacy", json!({"roots": true}), "request initialize", "nothing"),
        ("modern", json!({"era": "modern"}), "request server/discover", "request initialize"),
        ("silent", json!({"silent": true}), "request initialize", "nothing"),
        // It answers after the 2 s that a silent server gets, and refuses to be initialised.
        ("late", json!({"era": "modern", "slow": 3}), "request server/discover", "nothing"),
    ] {
        let servers = ServerWorld::new(name);
        let mut options = options;
        options["log"] = "log".into();
        options["page"] = 2.into();
        options["tools"] = json!(["a", "b", "c", "d", "fail", "refuse", "structured", "resource"]);
        let table = servers.table("x", &options, "write = true");
        let calls = [
            find("structured"),
            use_tool("x/a", "1"),
            use_tool("x/fail", "2"),
            use_tool("x/refuse", "3"),
            use_tool("x/structured", ""),
            use_tool("x/resource", ""),
            use_tool("x/none", ""),
        ];
        let came = servers.run(&table, &calls, &["--approve", "all"]).await;
        assert_eq!(came.code, 0, "{name}: {}", came.err);
        assert!(nth(&came, 0).contains("x/structured"), "{name}: {}", nth(&came, 0));
        assert_eq!(nth(&came, 1), "a: 1", "{name}");
        assert!(nth(&came, 2).contains("it failed: 2"), "{name}: {}", nth(&came, 2));
        assert!(nth(&came, 3).contains("refused by the server"), "{name}: {}", nth(&came, 3));
        assert!(nth(&came, 4).contains("{\"answer\":42}"), "{name}: {}", nth(&came, 4));
        let resource = nth(&came, 5);
        for part in ["inside", "test://b, not shown", "[link c: test://c]", "audio, not shown"] {
            assert!(resource.contains(part), "{name}: {resource}");
        }
        assert!(nth(&came, 6).contains("tool_find"), "{name}: {}", nth(&came, 6));
        let log = servers.log();
        assert!(log.iter().any(|line| line == must), "{name}: {log:?}");
        let last = log.iter().rposition(|line| line == "started").unwrap();
        assert!(!log[last..].iter().any(|line| line == must_not), "{name}: {log:?}");
        // Four pages, in the catalogue of the last start.
        assert!(log.iter().filter(|line| *line == "request tools/list").count() >= 4, "{log:?}");
        if name == "legacy" {
            let project = servers.world.home.project().canonicalize().unwrap();
            let roots = format!("file://{}/", project.display());
            assert!(
                log.iter().any(|line| line.starts_with("answer") && line.contains(&roots)),
                "{log:?}"
            );
            assert!(log.iter().any(|line| line.contains("-32601")), "sampling is refused: {log:?}");
        }
    }
}

/// MCP6: tools that come later can be used, and one note says so; the prompt stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_change_are_noticed() {
    for era in ["legacy", "modern"] {
        let servers = ServerWorld::new(&format!("change-{era}"));
        let state = servers.state(&json!({"tools": ["one", "two"]}));
        let options = json!({"era": era, "state": state, "announce": true, "log": "log"});
        let table = servers.table("x", &options, "write = true");
        let wait = json!({"command": "while [ ! -e changed ]; do sleep 0.05; done"});
        let calls = [
            find("one"),
            ("shell".to_owned(), wait.to_string()),
            find("three"),
            use_tool("x/three", "t"),
            use_tool("x/two", "t"),
        ];
        let model = servers.model(&table, &calls).await;
        let mut child = servers.start();
        super::until("it was listed", || {
            servers.count("request tools/list") > 0 && model.requests().len() > 1
        });
        for n in 0..50 {
            let tools = json!({"tools": ["one", "three", format!("four_{n}")]});
            servers.state(&tools);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        super::until("the last change was announced", || servers.count("announced four_49") > 0);
        // The program reads it at once.
        std::thread::sleep(std::time::Duration::from_millis(500));
        servers.world.put("changed", "");
        tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        let told = super::told(&model);
        assert_eq!(told.len(), 5, "{told:?}");
        let notes: Vec<&String> = told.iter().filter(|text| text.contains("changed;")).collect();
        assert_eq!(notes.len(), 1, "{era}: {told:?}");
        assert!(notes[0].contains("added: four_49, three; removed: two"), "{era}: {}", notes[0]);
        assert!(notes[0].len() < 3_000 && told[2].contains("x/three"), "{told:?}");
        assert_eq!(told[3], "three: t", "{era}");
        assert!(told[4].contains("find tools with tool_find first"), "{era}: {}", told[4]);
    }
}
