import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../command.ts'
import { readSurface } from './entries.ts'
import { missingHover } from './hover.ts'
import { doubleMeanings } from './names.ts'
import { reportOf } from './report.ts'

/**
 * `npm run api` writes what every entry of the package exports into `api/`, so that a change of the surface shows in
 * review. With `--check` it writes nothing and fails where the files are not current.
 */
const folder = join(root, 'api')
const surface = readSurface()
const reports = new Map(
  surface.entries.map((entry) => [`${entry.name.replaceAll('/', '-')}.txt`, reportOf(entry, surface)]),
)
const problems = [...doubleMeanings(surface), ...missingHover(surface)]

if (process.argv.includes('--check')) problems.push(...outdated())
else {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const [file, text] of reports) writeFileSync(join(folder, file), text)
}
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exitCode = 1

function outdated(): readonly string[] {
  const files = new Set([...readdirSync(folder), ...reports.keys()])
  const different = [...files].filter((file) => reports.get(file) !== textOf(file))
  return different.map((file) => `api/${file} is not current: run \`npm run api\` and commit what it writes.`)
}

function textOf(file: string): string | null {
  try {
    return readFileSync(join(folder, file), 'utf8')
  } catch {
    return null
  }
}
