#!/usr/bin/env bash
# What a user does, shown: `up` in the background, a GitHub delivery, what became of it.
# On a terminal it goes on until Ctrl-C, so that the Web UI can be looked at; elsewhere it ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export HARN_ORCHESTRATOR_MANIFEST=harn.toml
export HARN_ORCHESTRATOR_STATE_DIR=${HARN_ORCHESTRATOR_STATE_DIR:-.harn/demo}
# Each run is a delivery of its own: the same one again would be a duplicate.
delivery="demo-$(date +%s)-$$"
patience=120

run() {
  printf '\n$ harn-temporal %s\n' "$*"
  harn-temporal "$@"
}

# Try a command again until it succeeds, as long as `up` lives.
wait_for() {
  local end=$((SECONDS + patience))
  until "$@"; do
    kill -0 "$up" 2>/dev/null || { echo 'demo: `harn-temporal up` ended early' >&2; exit 1; }
    ((SECONDS < end)) || { echo "demo: $1 took more than $patience s" >&2; exit 1; }
    sleep 0.2
  done
}

worker_is_ready() {
  harn-temporal doctor --json 2>/dev/null | grep -q 'pumps the inbox'
}

both_dispatches_ended() {
  local outcomes
  outcomes=$(harn-temporal log read trigger.outbox --event "$event" --json 2>/dev/null \
    | grep -c 'harn_temporal.outcome') || true
  ((outcomes == 2))
}

# Ctrl-C reaches `up` as well, and a second signal would cut its drain short.
interrupted=
stop() {
  local code=$?
  [[ $interrupted ]] || kill -TERM "$up" 2>/dev/null || true
  wait "$up" || code=$?
  exit "$code"
}
trap stop EXIT
trap 'interrupted=1; exit 0' INT
trap 'exit 143' TERM

echo '$ harn-temporal up'
harn-temporal up &
up=$!
wait_for worker_is_ready

run ingest --provider github --kind issues.opened --payload issues.opened.json \
  --header x-github-event=issues --header "x-github-delivery=$delivery"
event=$(harn-temporal log read trigger.inbox.envelopes --last 1 --json \
  | grep -o 'trigger_evt_[0-9a-f-]*' | head -n 1)
wait_for both_dispatches_ended

printf '\nWhat the handlers returned:\n'
run log read trigger.outbox --event "$event" --kind dispatch_succeeded
printf '\nThe attempts: one of new-issue, two of notify-channel that failed, and its third.\n'
run log read trigger.attempts --event "$event" --kind attempt_recorded
run trigger ls
run doctor

if [[ -t 1 ]]; then
  printf '\nThe last line has the address of the Web UI. Ctrl-C stops the demo.\n'
  wait "$up"
fi
