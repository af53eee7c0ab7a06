import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './command.ts'

/** Of the heading of a version that has no date yet. */
const OPEN = /\(not released yet\)$/

/** The section of one version in a changelog, without its heading. */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const names = sections.map((section) => section.split(/\s/, 1)[0])
  const section = sections[names.indexOf(version)]
  if (section === undefined)
    throw new Error(`CHANGELOG.md has no section for ${version}, only for ${names.join(', ') || 'no version'}: add one`)
  const [heading = '', ...lines] = section.split('\n')
  if (OPEN.test(heading)) throw new Error(`CHANGELOG.md says "${heading}": write the day of the release there first`)
  const notes = lines.join('\n').trim()
  if (notes === '') throw new Error(`The section for ${version} in CHANGELOG.md is empty: say what changed`)
  return notes
}

/** `node tools/release-notes.ts v1.2.3` prints what the changelog says of a version; it must be that of the package. */
if (import.meta.main) {
  try {
    console.log(notesOf(process.argv[2]))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}

function notesOf(tag: string | undefined): string {
  const [, version] = /^v?(\d+\.\d+\.\d+\S*)$/.exec(tag ?? '') ?? []
  if (version === undefined)
    throw new Error(`Usage: node tools/release-notes.ts VERSION, for example v1.2.3, not ${tag}`)
  const { version: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string }
  if (version !== own) throw new Error(`package.json has version ${own}, not ${version}: tag the commit that has it`)
  return releaseNotes(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version)
}
