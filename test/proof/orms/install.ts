import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../../tools/command.ts'
import { installLocked } from '../../../tools/locked.ts'

export const app = join(import.meta.dirname, 'app')
const modules = join(app, 'node_modules')
const LONGEST_MS = 60_000

/** The ORMs, by a lock file of their own. Answers why they could not be installed, or false. */
export async function installOrms(): Promise<string | false> {
  const failure = await installLocked(app)
  if (failure === null) {
    // The package under its own name, from the sources.
    rmSync(join(modules, 'onceonly'), { force: true })
    symlinkSync(root, join(modules, 'onceonly'))
    if (!existsSync(join(modules, '.prisma', 'client', 'index.js'))) generatePrismaClient()
    return false
  }
  if (process.env['CI'] === 'true') throw new Error(`The ORMs could not be installed:\n${failure}`)
  return 'SKIPPED: the ORMs could not be installed'
}

/** Needs no engine: queries are compiled in the process. The schema engine, which would be downloaded, is never started. */
function generatePrismaClient(): void {
  const cli = join(modules, 'prisma', 'build', 'index.js')
  execFileSync(process.execPath, [cli, 'generate', '--schema', join(app, 'schema.prisma')], {
    cwd: app,
    timeout: LONGEST_MS,
    stdio: 'pipe',
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  })
}
