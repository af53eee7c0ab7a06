import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { foreground, root } from './command.ts'

// A program is a file directly in the room; what programs share stands in a folder below and is not listed.
const [room = '', name, ...args] = process.argv.slice(2)
const names = globSync('*.ts', { cwd: join(root, room), exclude: ['*.test.ts'] })
  .map((file) => basename(file, '.ts'))
  .sort()
const all = room === 'bench' && name === undefined

if (!all && (name === undefined || !names.includes(name))) {
  console.log(
    `npm run ${room} -- NAME, where NAME is one of:${names.map((known) => `\n  ${known}`).join('') || ' (none yet)'}`,
  )
  process.exitCode = name === undefined ? 0 : 1
} else {
  for (const program of all ? names : [name]) {
    process.exitCode = await foreground('node', ['--conditions=onceonly-source', join(room, `${program}.ts`), ...args])
    if (process.exitCode !== 0) break
  }
}
