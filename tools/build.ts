import { cpSync, rmSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
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
  const isPublished = (path: string) => !/^(?:(?:chat|home)[.-]|stamp\.json$)/.test(basename(path))
  cpSync(join(root, 'console', 'dist'), pages, { recursive: true, filter: isPublished })
}
