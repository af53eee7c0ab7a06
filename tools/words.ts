import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { capture, root } from './command.ts'

// Written in two parts so that this file does not break its own rule.
const banned = new RegExp(['exactly', 'once'].join('[\\s_-]*'), 'i')

const { ok, output } = await capture('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'])
if (!ok) throw new Error(output)
const files = output.split('\0').filter((path) => path !== '' && path !== 'package-lock.json')
for (const path of files) {
  const hit = banned.exec(read(path))
  if (hit === null) continue
  console.error(`${path}: "${hit[0]}" is a promise nobody can keep; say "effectively once"`)
  process.exitCode = 1
}

function read(path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    // Listed by git but deleted in the working tree: nothing to read.
    return ''
  }
}
