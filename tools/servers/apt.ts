import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INSTALL_BOUND_MS, LOG_TAIL_LINES } from './limits.ts'
import type { Log, Recipe } from './server.ts'

/**
 * Runs apt-get with some files held in place for as long as it runs. The shell removes them, not this process, because an
 * installation continues to its end when this process is killed: half an installation would be worse than a whole one.
 *
 * Arguments: the bound in seconds, then path and text of every file, then `--` and apt-get's arguments.
 */
const APT = `
set -eu
bound_s=$1; shift

# One at a time, so that no process removes the files that another still needs. A folder that is always there serves as
# the lock and leaves nothing behind.
exec 9</var/lib/dpkg
flock -w "$bound_s" 9

held='' made=''
release() {
  for file in $held; do rm -f "$file"; done
  for folder in $made; do rmdir "$folder" 2>/dev/null || :; done
}
trap release EXIT
trap 'exit 1' HUP INT TERM
while [ "$1" != -- ]; do
  # What the machine's owner put there stays as it is.
  if [ ! -e "$1" ]; then
    folder=$(dirname "$1")
    while [ ! -d "$folder" ]; do made="$made $folder"; folder=$(dirname "$folder"); done
    mkdir -p "$(dirname "$1")"
    held="$held $1"
    printf '%s' "$2" >"$1"
    chmod 755 "$1"
  fi
  shift 2
done
shift

timeout "$bound_s" apt-get -q -y -o DPkg::Lock::Timeout="$bound_s" -o Acquire::Retries=2 "$@"
`

/** Debian asks this program before it starts a service; 101 means that it may not. */
const POLICY = { '/usr/sbin/policy-rc.d': '#!/bin/sh\nexit 101\n' }

/** The part of a recipe that an installation needs. */
type Installed = Pick<Recipe, 'packages' | 'filesWhileInstalling'>

export function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get')
}

/** Installs what these recipes need, in one go, and leaves no service running and no database created. */
export async function install(recipes: readonly Installed[], log: Log): Promise<void> {
  const packages = recipes.flatMap((recipe) => recipe.packages)
  const files = Object.assign({}, POLICY, ...recipes.map((recipe) => recipe.filesWhileInstalling ?? {}))
  await runApt('updating the lists of packages', ['update'], {}, log)
  await runApt(`installing ${packages.join(', ')}`, ['install', '--no-install-recommends', ...packages], files, log)
}

async function runApt(what: string, args: string[], files: Record<string, string>, log: Log): Promise<void> {
  const startedAtMs = performance.now()
  log(`apt-get: ${what} …`)
  const output = openNamelessFile()
  try {
    const boundS = String(INSTALL_BOUND_MS / 1_000)
    const shell = spawn(
      '/bin/sh',
      ['-c', APT, 'onceonly-apt', boundS, ...Object.entries(files).flat(), '--', ...args],
      {
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
        // Not a pipe: apt-get must outlive us, and a pipe that breaks would end it in the middle.
        stdio: ['ignore', output, output],
        detached: true,
      },
    )
    const [status] = await once(shell, 'exit')
    if (status !== 0) {
      const tail = readFileSync(`/proc/self/fd/${output}`, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES)
      throw new Error(`apt-get ${args.join(' ')} ended with ${status}:\n${tail.join('\n')}`)
    }
  } finally {
    closeSync(output)
  }
  log(`apt-get: ${what} … done in ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`)
}

/** A file without a name disappears with its last user, however that one ends. */
function openNamelessFile(): number {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-apt-'))
  try {
    return openSync(join(folder, 'log'), 'a+')
  } finally {
    rmSync(folder, { recursive: true })
  }
}
