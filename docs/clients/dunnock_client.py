#!/usr/bin/env python3
"""Gives Dunnock a task over HTTP, shows what happens, and answers yes to what it asks. Standard library only.

    dunnock serve &
    DUNNOCK_URL=http://127.0.0.1:5000 DUNNOCK_TOKEN_FILE=$XDG_RUNTIME_DIR/dunnock/serve-5000.token python3 dunnock_client.py "fix the test"

The answer goes to standard output, what happens meanwhile to standard error.
"""
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("DUNNOCK_URL", "http://127.0.0.1:5000")
TOKEN = open(os.environ["DUNNOCK_TOKEN_FILE"]).read()


def call(method, path, body=None):
    """One request. A conflict (409) is an answer, too: it brings the fresh state."""
    request = urllib.request.Request(URL + path, method=method)
    request.add_header("authorization", "Bearer " + TOKEN)
    if body is not None:
        request.add_header("content-type", "application/json")
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def command(session, what):
    """A command with an id of its own: sent again after a failure, it is still carried out once."""
    request = {"id": uuid.uuid4().hex, "command": what}
    while True:
        try:
            return call("POST", f"/api/sessions/{session}/commands", request)
        except OSError:
            time.sleep(0.5)


def main(task):
    status, made = call("POST", "/api/sessions", {"workspace": os.getcwd(), "prompt": task})
    if status != 201:
        sys.exit(made["error"])
    session, seen, answer = made["id"], 0, ""
    print(f"session {session}", file=sys.stderr)
    while True:
        # Waits up to 20 seconds for something new.
        _, view = call("GET", f"/api/sessions/{session}?from={seen}&wait=20")
        for event in view["events"]:
            seen, kind, body = event["seq"], event["kind"], event["body"]
            if kind == "answered":
                for part in body["parts"]:
                    answer = part["text"]["text"] if "text" in part else answer
                    if "call" in part:
                        print(f"  {part['call']['tool']} {part['call']['args']}", file=sys.stderr)
        for question in view["questions"]:
            call_ = question.get("call") or {}
            lines = [question["heading"], question.get("text"), call_.get("tool"), call_.get("arguments")]
            lines += question["reasons"] + [f"grants {access}" for access in question["access"]]
            print("\n  ".join(line for line in lines if line), file=sys.stderr)
            # Here a person would be asked. The hash says what was shown to them.
            reply = {"question": question["id"], "hash": question["hash"], "answer": "yes"}
            command(session, {"reply": reply})
        if view["state"] not in ("working", "waiting") and not view["more"] and seen == view["seq"]:
            print(view["state"], file=sys.stderr)
            print(answer)
            return 0 if view["state"] == "done" else 1


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
