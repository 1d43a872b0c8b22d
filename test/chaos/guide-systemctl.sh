#!/bin/bash
# Stands in for systemctl where no systemd runs: just what the guide asks of it, by what the unit says.
verb=$1
shift
[ "${1:-}" = --now ] && shift
unit=${1:-}
file=/etc/systemd/system/guildhall.service
value() { sed -n "s/^$1=//p" "$file" | tail -1; }
start() {
  set -a
  . "$(value EnvironmentFile)"
  set +a
  user=$(value User)
  cd "$(getent passwd "$user" | cut -d: -f6)" || exit 1
  # NoNewPrivileges and CapabilityBoundingSet of the unit; ${HOST} and ${PORT} are replaced here, as systemd replaces them.
  (eval "exec setsid setpriv --reuid $user --regid $user --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all $(value ExecStart)" \
    </dev/null >>/var/log/guildhall.log 2>&1) &
  echo $! >/run/guildhall.pid
}
stop() {
  pid=$(cat /run/guildhall.pid)
  kill -TERM "$pid" 2>/dev/null || return 0
  for _ in $(seq $(($(value TimeoutStopSec) * 10))); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  echo "guildhall did not stop within TimeoutStopSec" >&2
  kill -KILL "$pid"
  exit 1
}
case "$verb $unit" in
  "daemon-reload ") ;;
  "enable guildhall" | "start guildhall") start ;;
  "stop guildhall") stop ;;
  "restart postgresql") pg_ctlcluster "$(ls /etc/postgresql)" main restart ;;
  "reload haproxy")
    haproxy -f /etc/haproxy/haproxy.cfg -db </dev/null >>/var/log/haproxy.log 2>&1 &
    echo $! >/run/haproxy.pid
    ;;
  *)
    echo "systemctl $verb $unit: the guide asks for something that is not stood in for" >&2
    exit 2
    ;;
esac
