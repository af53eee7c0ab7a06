import { capture, seconds } from './command.ts'
import type { Tier } from './tests/discover.ts'

interface Check {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

/** They begin in this order: first the cheap and the easily mended, then the slow, and what is quick fills the gaps. */
const checks: Readonly<Record<Tier, readonly Check[]>> = {
  fast: [
    { name: 'format', command: 'biome', args: ['check', '.'] },
    // One pass of the native compiler lints and checks types, of the pages too; `tsc` alone takes three times as long.
    { name: 'types', command: 'oxlint', args: ['--type-aware', '--type-check', '--deny-warnings'] },
    { name: 'doors', command: 'node', args: ['tools/doors/main.ts'] },
    { name: 'knip', command: 'knip', args: ['--no-progress', '--no-config-hints'] },
    { name: 'words', command: 'node', args: ['tools/words.ts'] },
    { name: 'copies', command: 'node', args: ['tools/copies.ts'] },
  ],
  proof: [
    { name: 'package', command: 'node', args: ['tools/package.ts'] },
    { name: 'api', command: 'node', args: ['tools/api/main.ts', '--check'] },
    { name: 'tsc', command: 'tsc', args: [] },
    { name: 'pages', command: 'tsc', args: ['-p', 'console'] },
  ],
}

/** The slow ones keep one core busy each, so that two of them take the time of one. */
const lanes = 2

/** One line per check; the first that fails prints all it has to say and ends the others. */
export async function runChecks(tier: Tier, interrupted?: AbortSignal): Promise<boolean> {
  const failed = new AbortController()
  const signal = AbortSignal.any(interrupted === undefined ? [failed.signal] : [failed.signal, interrupted])
  const waiting = checks[tier].values()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const check of waiting) {
        if (signal.aborted || !(await runCheck(check, signal))) return failed.abort()
      }
    }),
  )
  return !failed.signal.aborted
}

async function runCheck({ name, command, args }: Check, signal: AbortSignal): Promise<boolean> {
  const startedMs = performance.now()
  const { ok, output } = await capture(command, args, signal)
  // One that was ended because another one failed has nothing to say.
  if (signal.aborted) return false
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name.padEnd(8)} ${seconds(startedMs)}`)
  if (!ok) console.log(output)
  return ok
}

if (import.meta.main && !((await runChecks('fast')) && (await runChecks('proof')))) process.exitCode = 1
