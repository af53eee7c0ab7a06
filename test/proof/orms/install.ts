import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { installOwnPackages } from '../../support/own-packages.ts'

export const app = join(import.meta.dirname, 'app')
const modules = join(app, 'node_modules')
const LONGEST_MS = 60_000

/** The ORMs, by a lock file of their own. Answers why they could not be installed, or false. */
export async function installOrms(): Promise<string | false> {
  const missing = await installOwnPackages(app)
  if (missing !== false) return missing
  if (!existsSync(join(modules, '.prisma', 'client', 'index.js'))) generatePrismaClient('schema.prisma')
  if (!existsSync(join(app, 'prisma-guide', 'generated'))) generatePrismaClient('prisma-guide/prisma/schema.prisma')
  if (!existsSync(join(modules, '.prisma', 'on-sqlite', 'index.js'))) generatePrismaClient('sqlite.prisma')
  return missing
}

/** Needs no engine: queries are compiled in the process. The schema engine, which would be downloaded, is never started. */
function generatePrismaClient(schema: string): void {
  const cli = join(modules, 'prisma', 'build', 'index.js')
  execFileSync(process.execPath, [cli, 'generate', '--schema', join(app, schema)], {
    cwd: app,
    timeout: LONGEST_MS,
    stdio: 'pipe',
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  })
}
