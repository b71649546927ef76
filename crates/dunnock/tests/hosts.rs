//! Access to named hosts instead of the whole network: what is asked, what is reached, and what
//! the next call asks for.

use crate::cases::egress::Server;
use crate::cases::world::World;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use serde_json::json;

/// Fetches the URLs that it is given, and those in a file.
const GET: &str = "import sys, urllib.request, urllib.error
urls = sys.argv[1:] + open('more.txt').read().split()
for url in urls:
    try:
        print(urllib.request.urlopen(url, timeout=10).read().decode().strip())
    except urllib.error.URLError as error:
        sys.exit('%s: could not connect: %s' % (url, error))
";

/// A model that makes this call as often as the session goes on, and ends.
async fn model(command: &str, times: usize) -> ScriptedServer {
    let args = json!({ "command": command, "network": true }).to_string();
    let call = || Say::calls(&[("shell", &args)]).into();
    let calls = std::iter::repeat_with(call).take(times);
    ScriptedServer::start(calls.chain([Say::text("done").into()]).collect()).await
}

/// The result of the last call that the model was told of.
fn last_result(model: &ScriptedServer) -> String {
    let requests = model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().cloned().unwrap();
    let result = messages.iter().rev().find(|message| message["role"] == "tool");
    result.and_then(|m| m["content"].as_str()).unwrap_or_default().to_owned()
}

/// The person allows a host, hosts that were refused, the whole network, and a host for always.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_allows_hosts_one_by_one() {
    let world = World::new("hosts");
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    world.put("get.py", GET);
    world.put("more.txt", "http://second.test/\n");
    let model = model(&format!("python3 get.py http://{host}/"), 4).await;
    world.serve(&model);

    let ran = world.ran(&["run", "go"]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("Let this command reach these hosts?"), "{}", ran.err);
    let grants = format!("grants: connections to {host} (not public)\n");
    assert!(
        ran.err.contains(&grants) && ran.err.contains("or: full network access"),
        "{}",
        ran.err
    );
    let id = world.home.newest().await;

    // The host that its text does not show is refused, and the next call asks for it, too.
    let ran = world.ran(&["approve", &id, "--go"]).await;
    assert_eq!((ran.code, server.requests()), (3, 1), "{}", ran.err);
    let result = last_result(&model);
    assert!(result.contains("reached\n") && result.contains("second.test:80 is not allowed"));
    assert!(result.contains("call again with \"network\": true"), "{result}");
    assert!(ran.err.contains("why: the last run tried to reach second.test, which"), "{}", ran.err);
    assert!(ran.err.contains(&format!("connections to second.test, {host} (not public)\n")));
    let second = ran.err.split("? q2").nth(1).unwrap();
    assert!(!second.contains("always: "), "a program chose a host: {second}");

    // The whole network instead, once. What works needs no more than its text says.
    world.put("more.txt", "");
    let ran = world.ran(&["approve", &id, "--network", "--go"]).await;
    assert_eq!((ran.code, server.requests()), (3, 1), "{}", ran.err);
    let third = ran.err.split("? q3").nth(1).unwrap();
    assert!(third.contains(&grants) && !third.contains("second.test"), "{third}");

    // Always: the last call is not asked about.
    let ran = world.ran(&["approve", &id, "--always", "--go"]).await;
    assert_eq!((ran.code, server.requests()), (0, 2), "{}", ran.err);
    let rules = world.ran(&["rules"]).await.out;
    assert!(
        rules.contains(&format!("commands in the sandbox and pages that need only {host}")),
        "{rules}"
    );

    // Another host is asked about as before.
    let third = Server::start();
    let other = self::model(&format!("python3 get.py http://127.0.0.1:{}/", third.port), 1).await;
    world.serve(&other);
    let ran = world.ran(&["run", "go"]).await;
    assert_eq!((ran.code, third.requests()), (3, 0), "{}", ran.err);
}

/// Hosts of the settings are open to every command, and the model knows them.
#[tokio::test(flavor = "multi_thread")]
async fn configured_hosts_need_no_approval() {
    let world = World::new("open");
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    world.put("get.py", GET);
    world.put("more.txt", "");
    let command = format!("python3 get.py http://{host}/");
    for network in [false, true] {
        let args = json!({ "command": command, "network": network }).to_string();
        let came = world.model(&[("shell".into(), args)], &["--host", &host]).await;
        assert_eq!((came.code, server.requests()), (0, 1), "{} {}", came.told, came.err);
        assert!(came.sent.contains(&format!("these hosts: {host}")), "the prompt names it");
    }
    // A project cannot open them, and what is no host is an error.
    world.put(".dunnock/config.toml", &format!("hosts = [\"{host}\"]\n"));
    let args = json!({ "command": command }).to_string();
    let came = world.model(&[("shell".into(), args.clone())], &[]).await;
    assert_eq!(server.requests(), 0, "{}", came.told);
    for wrong in ["127.0.0.1", "http://example.com/", "*.com", "a b"] {
        let ran = world.ran(&["run", "--host", wrong, "go"]).await;
        assert!(ran.code == 2 && ran.err.contains("hosts:"), "{wrong}: {}", ran.err);
    }
    // A program that does not use the proxy reaches nothing, and the model learns why.
    let line = format!("echo x > /dev/tcp/127.0.0.1/{}", server.port);
    let args = json!({ "command": ["bash", "-c", line] }).to_string();
    let came = world.model(&[("shell".into(), args)], &["--host", &host]).await;
    assert_eq!(server.requests(), 0);
    assert!(came.told.contains("the command did not use the proxy"), "{}", came.told);
}
