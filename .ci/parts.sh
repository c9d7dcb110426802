# What `.ci/run` and `.ci/all` share: stages, MySQL, and other versions of Node.

stages=()
failed=0
# The names of the stages to run; empty: all.
chosen=()

# Runs one stage, and says how long it took. With a folder in `logs`, its output is kept there, the next stages run all the same,
# and a stage that has passed is not run again.
stage() {
  local name=$1 began=$SECONDS result=passed
  local log=${logs:-}/${1//[ ,]/-}
  shift
  is_chosen "$name" || return 0
  if [ -n "${logs:-}" ] && [ -f "$log.passed" ]; then
    stages+=("$(cat "$log.passed"), in an earlier run")
    return 0
  fi
  printf '\n=== %s\n' "$name"
  if [ -n "${logs:-}" ]; then
    "$@" > "$log.log" 2>&1 || result=FAILED
  else
    "$@" || result=FAILED
  fi
  stages+=("$(printf '%-22s %-6s %5d s' "$name" "$result" $((SECONDS - began)))")
  printf '=== %s\n' "${stages[-1]}"
  if [ "$result" = passed ]; then
    [ -z "${logs:-}" ] || printf '%s' "${stages[-1]}" > "$log.passed"
    return
  fi
  failed=1
  if [ -z "${logs:-}" ]; then
    exit 1
  fi
}

is_chosen() {
  local one
  [ "${#chosen[@]}" -gt 0 ] || return 0
  for one in "${chosen[@]}"; do
    if [ "$one" = "$1" ]; then
      return 0
    fi
  done
  return 1
}

skipped() {
  printf '\n!!! NOT RUN: %s\n' "$1"
  stages+=("NOT RUN: $1")
}

summary() {
  printf '\n=== %d s\n' "$SECONDS"
  printf '  %s\n' "${stages[@]}"
}

tests() {
  node --import tsx test/run.ts "$@"
}

built_tests() {
  make build && MARINA_TEST_BUILD=dist tests "$@"
}

on_mysql() {
  MARINA_TEST_SERVER=mysql "$@"
}

has_mysql() {
  node --import tsx test/support/find-mysql.ts
}

# The npm package of that name holds the program.
node_bin() {
  echo "$PWD/.local/node-$1/node_modules/node/bin"
}

install_node() {
  npm install --prefix ".local/node-$1" --no-audit --no-fund --loglevel=error "node@$1" && "$(node_bin "$1")/node" --version
}

on_node() {
  local version=$1
  shift
  PATH="$(node_bin "$version"):$PATH" "$@"
}

# These send every statement that there is, and are about tables, transactions, locks, migrations, money and what is stored.
mysql_core=(gateway docs/{compose,rights}.integration.test.ts simulator/orders.integration.test.ts)

# In these the database is stopped, slow or cut off, or holds a lock, two versions of the gateway share it, and gateways are
# killed between commits.
mysql_faults=(gateway/store/database-{server,link,commits,locks}.fault.test.ts gateway/store/frozen-transaction.fault.test.ts
  gateway/app/upgrade.fault.test.ts gateway/trading/submission/moments.fault.test.ts gateway/store/retention-crashes.fault.test.ts)

# Node's own part: sockets, HTTP, TLS, processes and their limits, and packages with compiled parts.
node_core=(gateway/edge/{protocols,bodies,paths}.e2e.test.ts gateway/edge/tls.integration.test.ts
  gateway/app/links-{broker,nats,database,otlp}.integration.test.ts gateway/edge/slow-clients.integration.test.ts
  gateway/edge/grpc/many-clients.integration.test.ts decoder/walls.integration.test.ts
  gateway/trading/applications/{images,documents}.integration.test.ts gateway/operators/telemetry/operations.integration.test.ts
  gateway/app/failed-start.integration.test.ts gateway/edge/auth/client-addresses.integration.test.ts
  gateway/delivery/webhooks/attempt/dialling.integration.test.ts gateway/delivery/events/watch-events.integration.test.ts
  gateway/trading/orders/orders.integration.test.ts tools/build.integration.test.ts)
