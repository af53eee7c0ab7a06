import { chmodSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isFresh, writeStamp } from './stamp.ts'

/** Where `onceonly/pages` finds the pages inside of the repository. */
const folder = join(import.meta.dirname, 'dist')

/**
 * Builds the pages, unless what is there was made of the same files. Several processes may do this at once: each builds
 * beside and puts its work in place whole.
 *
 * @returns whether something had to be built
 */
export async function buildPages(): Promise<boolean> {
  if (isFresh(folder)) return false
  // Loaded only here, because most starts have nothing to build.
  const { build } = await import('vite')
  // Vite declares the whole process a production, and the caller may start servers in it.
  const { NODE_ENV: environment } = process.env
  const made = mkdtempSync(`${folder}-`)
  const old = `${made}-old`
  try {
    const modules = new Set<string>()
    await build({
      configFile: join(import.meta.dirname, 'vite.config.ts'),
      build: { outDir: made },
      plugins: [{ name: 'stamp', moduleParsed: ({ id }) => void modules.add(id) }],
    })
    chmodSync(made, 0o755)
    writeStamp(made, modules)
    rename(folder, old)
    rename(made, folder)
  } finally {
    if (environment === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = environment
    for (const leftover of [made, old]) rmSync(leftover, { recursive: true, force: true })
  }
  return true
}

/** Another process may have built the same files: its result is kept. */
function rename(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'ENOENT' && code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  }
}

if (import.meta.main) {
  const beganMs = performance.now()
  try {
    if (await buildPages()) {
      console.log(`Built the console and the chat page in ${((performance.now() - beganMs) / 1000).toFixed(1)} s`)
    }
  } catch (error) {
    // An installation without development dependencies runs the systems all the same.
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
    console.error('The console and the chat page are not built, because their tools are not installed')
  }
}
