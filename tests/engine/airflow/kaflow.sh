#!/bin/sh
# Says and does what the environment says, in place of `kaflow`.
echo "$*" >>"$LOG"
echo "preparing $1" >&2
[ -z "$ERROR" ] || echo "$ERROR" >&2
[ -z "$OUTPUT" ] || echo "$OUTPUT"
if [ -n "$WAIT" ]; then
    sleep 60 &
    sleeper=$!
    trap 'kill $sleeper; echo "its batch is finished" >&2; exit 0' TERM
    [ "$WAIT" = timeout ] || kill -TERM "$PPID"
    wait $sleeper
fi
exit "$CODE"
