"""Native tool calls from a model that was never taught any: shim.py PORT UPSTREAM SHOTS.json, on loopback.

A Chat Completions request with tools becomes one that is held to a schema: {"tool": NAME, "arguments": {...}} with the required
arguments of one of the tools, or {"tool": "final", "text": ...}. What the model writes is streamed on as deltas of a tool call
while it comes. Its own system text replaces the agent's, which is far too long for a model of this size. After a result only
"final" is left: it would not stop by itself. Everything else is passed on as it is."""

import json
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, UPSTREAM = int(sys.argv[1]), sys.argv[2]
SHOTS = json.load(open(sys.argv[3]))
STRING = {"type": "string", "minLength": 1, "maxLength": 60}
FINAL = {"type": "object", "properties": {"tool": {"const": "final"}, "text": {**STRING, "maxLength": 200}},
         "required": ["tool", "text"], "additionalProperties": False}


def variant(tool):
    """What a call of one tool must look like: required arguments only, texts that end."""
    schema = tool.get("parameters") or {}
    needed = schema.get("required") or []
    choices = {key: known["enum"] for key, known in (schema.get("properties") or {}).items() if "enum" in known}
    properties = {key: {"enum": choices[key]} if key in choices else STRING for key in needed}
    arguments = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    return {"type": "object", "properties": {"tool": {"const": tool["name"]}, "arguments": arguments},
            "required": ["tool", "arguments"], "additionalProperties": False}


def call(name, arguments):
    return json.dumps({"tool": name, "arguments": arguments})


def shots_for(offered):
    """The examples with the tools that are offered; Claude's have other names."""
    editor = "str_replace_based_edit_tool"
    for shot in SHOTS:
        tool, arguments = shot["tool"], shot.get("arguments")
        if tool == "shell" and "bash" in offered:
            shot = {**shot, "tool": "bash"}
        elif tool == "view_file" and editor in offered:
            shot = {**shot, "tool": editor, "arguments": {"command": "view", **arguments}}
        if shot["tool"] in offered or tool == "final":
            yield shot


def rewritten(body):
    shots = list(shots_for({t["function"]["name"] for t in body["tools"]}))
    known = {shot["tool"] for shot in shots}
    tools = [t["function"] for t in body["tools"] if t["function"]["name"] in known]
    told = ", ".join(f"{t['name']}({', '.join((t.get('parameters') or {}).get('required') or [])})" for t in tools)
    messages = [{"role": "system", "content": f"You are an agent. Answer with one tool call as JSON. Tools: {told}, final(text)."}]
    # Examples like the task come last: what a model of this size saw last it does again.
    task = [m for m in body["messages"] if m["role"] == "user"][-1:]
    words = set(str(task[0].get("content")).split()[:3]) if task else set()
    for shot in sorted(shots, key=lambda shot: len(words & set(shot["user"].split()[:3]))):
        messages.append({"role": "user", "content": shot["user"]})
        if shot["tool"] == "final":
            messages.append({"role": "assistant", "content": json.dumps({"tool": "final", "text": shot["text"]})})
        else:
            messages.append({"role": "assistant", "content": call(shot["tool"], shot["arguments"])})
    done = False
    for message in body["messages"]:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(piece.get("text", "") for piece in content)
        if message["role"] == "user":
            messages.append({"role": "user", "content": content})
            done = False
        elif message["role"] == "tool":
            messages.append({"role": "user", "content": "Result:\n" + content[:800]})
            done = True
        elif message["role"] == "assistant":
            calls = message.get("tool_calls")
            text = json.dumps({"tool": "final", "text": content})
            if calls:
                function = calls[0]["function"]
                text = call(function["name"], json.loads(function["arguments"]))
            messages.append({"role": "assistant", "content": text})
    forms = [FINAL] if done else [variant(tool) for tool in tools] + [FINAL]
    schema = {"type": "json_schema", "json_schema": {"name": "call", "schema": {"anyOf": forms}}}
    return {"model": body["model"], "messages": messages, "response_format": schema, "temperature": 0, "max_tokens": 150,
            "stream": True, "stream_options": {"include_usage": True}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.forward(None)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw)
        if self.path.endswith("/chat/completions") and body.get("tools"):
            self.call(body)
        else:
            self.forward(raw)

    def open(self, raw):
        request = urllib.request.Request(UPSTREAM + self.path, raw, {"content-type": "application/json"})
        return urllib.request.urlopen(request, timeout=300)

    def head(self, status, kind):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def forward(self, raw):
        try:
            answer = self.open(raw)
            status = answer.status
        except urllib.error.HTTPError as error:
            answer, status = error, error.code
        self.head(status, answer.headers.get("content-type", "application/json"))
        while chunk := answer.read1(65536):
            self.wfile.write(chunk)
            self.wfile.flush()

    def emit(self, delta, finish=None, **more):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        event = {"id": "shim", "object": "chat.completion.chunk", "choices": choices, **more}
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def call(self, body):
        upstream = self.open(json.dumps(rewritten(body)).encode())
        self.head(200, "text/event-stream")
        text, usage, sent, name = "", None, 0, None
        for line in upstream:
            line = line.decode().strip()
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            event = json.loads(line[6:])
            usage = event.get("usage") or usage
            text += "".join((c["delta"].get("content") or "") for c in event["choices"])
            mark = '"arguments":'
            if name is None and mark in text.replace(" ", "") and '"tool"' in text:
                name = text.split('"tool"', 1)[1].split('"', 2)[1]
                sent = text.index("arguments") + len("arguments") + 1
                sent = text.index(":", sent - 1) + 1
                first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
                self.emit({"tool_calls": [first]})
            # The last brace closes the call itself; it is not an argument's.
            ready = text.rstrip()[:-1] if text.rstrip().endswith("}}") else text
            if name is not None and len(ready) > sent and not text.rstrip().endswith("}"):
                self.emit({"tool_calls": [{"index": 0, "function": {"arguments": text[sent:]}}]})
                sent = len(text)
        if name is None:
            try:
                said = json.loads(text)["text"]
            except (ValueError, KeyError):
                said = text
            for at in range(0, len(said), 10):
                self.emit({"content": said[at:at + 10]})
            self.emit({}, "stop")
        else:
            rest = text.rstrip()[:-1][sent:]
            self.emit({"tool_calls": [{"index": 0, "function": {"arguments": rest}}]})
            self.emit({}, "tool_calls")
        self.emit(None, usage=usage)
        self.wfile.write(b"data: [DONE]\n\n")


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
