#!/usr/bin/env bash
# Gives Dunnock a task over HTTP with curl and jq, and answers yes to what it asks. The answer goes to standard output.
#   dunnock serve &
#   DUNNOCK_URL=http://127.0.0.1:5000 DUNNOCK_TOKEN_FILE=$XDG_RUNTIME_DIR/dunnock/serve-5000.token ./session.sh "fix the test"
set -euo pipefail
url=${DUNNOCK_URL:-http://127.0.0.1:5000}
# The token goes by a file, so that it shows in no list of processes.
call() { curl -sS --max-time 90 -H @<(printf 'authorization: Bearer %s' "$(cat "$DUNNOCK_TOKEN_FILE")") -H 'content-type: application/json' "$@"; }

session=$(jq -n --arg folder "$PWD" --arg task "$1" '{workspace: $folder, prompt: $task}' | call -d @- "$url/api/sessions" | jq -er .id)
echo "session $session" >&2
seen=0
while true; do
    view=$(call "$url/api/sessions/$session?from=$seen&wait=20")
    seen=$(jq "[$seen, .events[].seq] | max" <<<"$view")
    # Here a person would be asked; the hash says what was shown to them.
    jq -c '.questions[]' <<<"$view" | while read -r question; do
        jq -r '.heading, .text // empty, (.call // {} | .tool // empty, .arguments // empty), .reasons[], .access[]' <<<"$question" >&2
        jq -c --arg id "$RANDOM$RANDOM" '{id: $id, command: {reply: {question: .id, hash: .hash, answer: "yes"}}}' <<<"$question" |
            call -d @- "$url/api/sessions/$session/commands" >/dev/null
    done
    said=$(jq -r '[.events[] | select(.kind == "answered") | .body.parts[] | .text.text // empty] | last // empty' <<<"$view")
    answer=${said:-${answer:-}}
    state=$(jq -r 'if .more then "working" else .state end' <<<"$view")
    case $state in working | waiting) continue ;; esac
    break
done
echo "$state" >&2
echo "$answer"
[ "$state" = done ]
