import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { capture } from './command.ts'

/** Builds, packs, and lets two judges look at the very archive that would be published. */
async function judge(folder: string): Promise<string | undefined> {
  const built = await capture('node', ['tools/build.ts'])
  if (!built.ok) return built.output
  const packed = await capture('npm', ['pack', '--silent', '--pack-destination', folder])
  const archive = readdirSync(folder)[0]
  if (!packed.ok || archive === undefined) return packed.output
  const verdicts = await Promise.all([
    capture('publint', ['run', join(folder, archive), '--strict']),
    capture('attw', [join(folder, archive), '--profile', 'esm-only', '--no-emoji']),
  ])
  return verdicts.find(({ ok }) => !ok)?.output
}

const folder = mkdtempSync(join(tmpdir(), 'onceonly-package-'))
try {
  const complaint = await judge(folder)
  if (complaint !== undefined) {
    console.error(complaint)
    process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
