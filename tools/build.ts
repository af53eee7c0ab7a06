import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { foreground, root } from './command.ts'

// A file that was renamed or removed must not live on in what is published.
rmSync(join(root, 'dist'), { recursive: true, force: true })
process.exitCode = await foreground('tsc', ['-p', 'tsconfig.build.json'])
