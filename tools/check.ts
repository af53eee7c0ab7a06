import { capture, seconds } from './command.ts'

/** In the order of what a person wants to hear first: the cheap and the easily mended before the slow. */
const checks: readonly { name: string; command: string; args: readonly string[] }[] = [
  { name: 'format', command: 'biome', args: ['check', '.'] },
  { name: 'lint', command: 'oxlint', args: ['--type-aware', '--deny-warnings'] },
  { name: 'types', command: 'tsc', args: [] },
  { name: 'pages', command: 'tsc', args: ['-p', 'console'] },
  { name: 'doors', command: 'node', args: ['tools/doors/main.ts'] },
  { name: 'words', command: 'node', args: ['tools/words.ts'] },
  { name: 'knip', command: 'knip', args: ['--no-progress', '--no-config-hints'] },
  { name: 'package', command: 'node', args: ['tools/package.ts'] },
]

/** One line per check; the first that fails prints all it has to say and ends the row. */
export async function runChecks(interrupted?: AbortSignal): Promise<boolean> {
  for (const { name, command, args } of checks) {
    const startedMs = performance.now()
    const { ok, output } = await capture(command, args, interrupted)
    console.log(`${ok ? 'ok    ' : 'FAILED'} ${name.padEnd(8)} ${seconds(startedMs)}`)
    if (!ok) {
      console.log(output)
      return false
    }
  }
  return true
}

if (import.meta.main && !(await runChecks())) process.exitCode = 1
