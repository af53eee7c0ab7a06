import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { STOP_BOUND_MS, STOP_GRACE_MS } from './limits.ts'

/**
 * A shell stands between us and the server, and holds the reading end of a pipe whose writing end only we hold. When
 * the pipe closes, the shell ends the server and removes its folder. `stop()` closes the pipe, and so does the kernel
 * when we die, by whatever signal: the way out after a crash is the one that every ordinary stop has tested.
 *
 * The server leads a process group of its own, so that its helpers (initdb and its children, epmd) can be found, and so
 * that a Ctrl-C in the terminal does not reach it before its clients are done.
 */
const SUPERVISE = `
folder=$1 signal=$2 grace_ticks=$3 script=$4
exec 3<&0 </dev/null
cd "$folder" || exit 1
rm -f ended
setsid sh -c "$script" >>"$folder/log" 2>&1 3<&- &
server=$!
cd /

# The mark prevents a signal to a foreign process with the same number after the whole group had ended. Zombies do not
# count: a container may have no process that reaps orphans.
alive() {
  [ ! -e "$folder/ended" ] && kill -s 0 -- "-$server" 2>/dev/null || return 1
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    set -- \${line##*) }
    [ "$3" = "$server" ] && [ "$1" != Z ] && return 0
  done
  return 1
}

{
  # The group exists a moment after the fork; a parent that dies within it must not leave the server behind.
  tick=0
  until alive || [ -e "$folder/ended" ] || [ "$tick" -ge 100 ]; do sleep 0.01; tick=$((tick + 1)); done

  order=''
  read -r order <&3

  # Only the server is signalled, repeatedly: while initdb runs in its place the signal is ignored, and that is right,
  # because initdb's children would leave their shared memory behind. A server that was stopped by SIGSTOP is woken. Helpers
  # that are left when the server has gone are signalled in its place.
  tick=0
  while alive && [ "$tick" -lt "$grace_ticks" ]; do
    kill -s "$signal" "$server" 2>/dev/null || kill -s "$signal" -- "-$server" 2>/dev/null
    kill -s CONT -- "-$server" 2>/dev/null
    sleep 0.05
    tick=$((tick + 1))
  done
  alive && kill -s KILL -- "-$server" 2>/dev/null

  # The killed need a moment to go, and what they left outside of the group may still be writing while we remove.
  tick=0
  while alive && [ "$tick" -lt 100 ]; do sleep 0.01; tick=$((tick + 1)); done
  # A halted server keeps its folder until another supervisor takes it over or this one is stopped.
  if [ "$order" = halt ]; then
    trap '' PIPE
    echo halted >&4
    read -r order <&3
    [ "$order" = release ] && exit 0
  fi
  tick=0
  until rm -rf "$folder" 2>/dev/null || [ "$tick" -ge 50 ]; do sleep 0.1; tick=$((tick + 1)); done
} 4>&1 >/dev/null &
cleaner=$!
exec 3<&-

echo "pid $server"
wait "$server"
status=$?
alive || true >"$folder/ended"
echo "ended $status"
wait "$cleaner"
`
const GRACE_TICK_MS = 50

export type StopSignal = 'INT' | 'QUIT' | 'TERM'

export interface Supervised {
  /** The server's process, and its process group. */
  readonly pid: number
  /** The exit status once the server has ended by itself, or has been stopped. */
  readonly endedWith: () => number | undefined
  /** Ends the server and removes the folder; throws when that takes longer than its bound. */
  readonly stop: () => Promise<void>
  /** Ends the server, and its helpers, but leaves the folder where it is. */
  readonly halt: () => Promise<void>
  /** After `halt`: forgets the folder, which from now on is the caller's. */
  readonly release: () => Promise<void>
}

/** Runs a shell script, which ends in `exec server`, in `folder` and as the owner of `folder`. */
export async function supervise(options: {
  readonly script: string
  readonly folder: string
  readonly owner: { readonly uid: number; readonly gid: number } | undefined
  readonly stopSignal: StopSignal
  readonly graceMs?: number
}): Promise<Supervised> {
  const { script, folder, owner, stopSignal, graceMs = STOP_GRACE_MS } = options
  const shell = spawn(
    '/bin/sh',
    ['-c', SUPERVISE, 'onceonly-server', folder, stopSignal, String(Math.ceil(graceMs / GRACE_TICK_MS)), script],
    {
      cwd: '/',
      // Only this much environment: PGDATA, PGPORT and their like must not reach a private server.
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: folder, TMPDIR: folder, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
      ...owner,
    },
  )
  let status: number | undefined
  const pid = Promise.withResolvers<number>()
  const halted = Promise.withResolvers<void>()
  createInterface({ input: shell.stdout }).on('line', (line) => {
    const [word, value] = line.split(' ')
    if (word === 'pid') pid.resolve(Number(value))
    if (word === 'ended') status = Number(value)
    if (word === 'halted') halted.resolve()
  })
  shell.once('error', pid.reject)
  shell.once('exit', (code) => pid.reject(new Error(`The supervisor of ${folder} ended with ${code}.`)))
  // A pipe that breaks because the shell is gone has nothing left to report.
  shell.stdin.on('error', () => {})

  const started = await pid.promise
  // A caller who forgets to stop may end all the same: the closing pipe does the rest.
  shell.unref()
  for (const pipe of [shell.stdin, shell.stdout]) if (pipe instanceof Socket) pipe.unref()
  return {
    pid: started,
    endedWith: () => status ?? shell.exitCode ?? undefined,
    stop: () => end(shell, folder),
    async halt() {
      shell.stdin.write('halt\n')
      shell.ref()
      await within(halted.promise, folder)
      shell.unref()
    },
    release: () => end(shell, folder, 'release\n'),
  }
}

type Shell = ChildProcessByStdio<Writable, Readable, null>

async function end(shell: Shell, folder: string, order = ''): Promise<void> {
  shell.stdin.end(order)
  if (shell.exitCode !== null || shell.signalCode !== null) return
  shell.ref()
  await within(once(shell, 'exit'), folder)
}

async function within(ended: Promise<unknown>, folder: string): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`The server in ${folder} did not end within ${STOP_BOUND_MS} ms.`)),
    STOP_BOUND_MS,
  )
  try {
    await Promise.race([ended, late])
  } finally {
    clearTimeout(timer)
  }
}
