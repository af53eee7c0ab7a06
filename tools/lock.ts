import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './command.ts'

/**
 * Tools ship one optional package per platform, and `npm ci` requires that the lock file lists them all. A registry that
 * mirrors only some platforms makes `npm install` leave the others out, so this lists them, with the platform from their
 * names. They are never fetched on another platform, and where they are fetched npm works as without a lock.
 */
interface Entry {
  version?: string
  dev?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Readonly<Record<string, string>>
}

/** Of the repository, or of the folder that is named: some parts have a lock file of their own. */
const file = join(root, process.argv[2] ?? '', 'package-lock.json')
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> }
const known = new Set(Object.keys(lock.packages))

for (const [parent, { dev, optionalDependencies = {} }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (known.has(`node_modules/${name}`) || known.has(`${parent}/node_modules/${name}`)) continue
    lock.packages[`node_modules/${name}`] = { version, ...entryOf(name, dev === true) }
  }
}

// In npm's own order, so that its next change makes a small difference.
const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => a.localeCompare(b, 'en'))
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`)

/** Members in npm's own order, for the same reason. */
function entryOf(name: string, dev: boolean): Entry {
  // The build for every platform that has no other: it names a kind of processor and no system.
  if (name.endsWith('-wasm32-wasi')) return { cpu: ['wasm32'], ...(dev && { dev }), optional: true }
  const [, os, cpu, abi = ''] =
    /(android|darwin|freebsd|linux|openbsd|openharmony|win32)-([a-z0-9]+)(?:-([a-z]+))?$/.exec(name) ?? []
  if (os === undefined || cpu === undefined) throw new Error(`${name} does not name its platform`)
  const libc = abi.startsWith('musl') ? ['musl'] : ['glibc']
  return { cpu: [cpu], ...(dev && { dev }), ...(os === 'linux' && { libc }), optional: true, os: [os] }
}
