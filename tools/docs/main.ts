import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../command.ts'
import { deadLinks } from './links.ts'
import { buildPages } from './pages.ts'
import { buildReference } from './reference-site.ts'
import { serve } from './serve.ts'
import { sidebarOf } from './sidebar.ts'
import { stage } from './stage.ts'

/** Builds the documentation site into `dist/site`: the pages by VitePress, and below `api/` the reference by TypeDoc. */
const { values } = parseArgs({ options: { serve: { type: 'boolean', default: false } } })
const folder = join(root, 'dist')
const site = join(folder, 'site')

mkdirSync(folder, { recursive: true })
rmSync(site, { recursive: true, force: true })
const pages = stage(join(folder, 'pages'))
writeFileSync(join(folder, 'sidebar.json'), JSON.stringify(sidebarOf(pages)))
await buildPages(folder)
await buildReference(join(site, 'api'))
const dead = deadLinks(site, pages)
if (dead.length > 0) throw new Error(`Links that lead nowhere:\n${dead.join('\n')}`)

console.log(
  `The site is in ${relative(root, site)}: ${pages.length} pages, and the reference in ${relative(root, site)}/api.`,
)
if (values.serve) console.log(`Read it at ${(await serve(site)).url}; Ctrl-C ends it.`)
else console.log('npm run docs -- --serve builds it and shows it.')
