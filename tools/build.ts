import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { buildPages } from '../console/build.ts'
import { bundlePackage } from './build/bundle.ts'
import { pruneDeclarations } from './build/declarations.ts'
import { foreground, root } from './command.ts'

/** Builds what is published, into the folder that is given or into `dist`. */
const folder = resolve(root, process.argv[2] ?? 'dist')

// A file that was renamed or removed must not live on in what is published.
rmSync(folder, { recursive: true, force: true })
process.exitCode = await foreground('tsc', ['-p', 'tsconfig.build.json', '--outDir', folder])
if (process.exitCode === 0) {
  pruneDeclarations(folder)
  await bundlePackage(folder)
  // The console travels with the package, where `onceonly/pages` looks for it; the other pages are those of our own server.
  await buildPages()
  const pages = join(folder, 'admin', 'pages', 'built')
  for (const file of filesOf(join(root, 'console', 'dist'), 'console.html')) {
    const path = join(pages, `${file}.br`)
    mkdirSync(dirname(path), { recursive: true })
    // A tenth smaller than what the archive would make of it, which compresses such a file no further.
    writeFileSync(path, brotliCompressSync(readFileSync(join(root, 'console', 'dist', file))))
  }
}

/** A page, and whatever it names of the assets, directly or not. */
function filesOf(built: string, page: string): ReadonlySet<string> {
  const assets = readdirSync(join(built, 'assets'))
  const files = new Set([page])
  // A set also visits what is added meanwhile.
  for (const file of files) {
    const text = readFileSync(join(built, file), 'utf8')
    for (const asset of assets) if (text.includes(asset)) files.add(`assets/${asset}`)
  }
  return files
}
