import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildPages } from '../console/build.ts'
import { foreground, root } from './command.ts'

// A file that was renamed or removed must not live on in what is published.
rmSync(join(root, 'dist'), { recursive: true, force: true })
process.exitCode = await foreground('tsc', ['-p', 'tsconfig.build.json'])

// The pages travel with the package, where `onceonly/pages` looks for them.
await buildPages()
cpSync(join(root, 'console', 'dist'), join(root, 'dist', 'admin', 'pages', 'built'), { recursive: true })
rmSync(join(root, 'dist', 'admin', 'pages', 'built', 'stamp.json'))
