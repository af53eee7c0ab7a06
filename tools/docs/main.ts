import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { DeclarationReflection } from 'typedoc'
import { Application, ReflectionKind } from 'typedoc'
import { entryFiles } from '../api/entries.ts'
import { root } from '../command.ts'
import { errorsPage, limitsPage } from './reference.ts'

/** Builds the documentation site into `dist/site`: the pages of `docs/`, and the reference made of the sources. */
const out = join(root, 'dist', 'site')
const generated = join(root, 'dist', 'reference')

rmSync(out, { recursive: true, force: true })
mkdirSync(generated, { recursive: true })
writeFileSync(join(generated, 'errors.md'), errorsPage())
writeFileSync(join(generated, 'limits.md'), limitsPage())

const names = new Map([...entryFiles()].map(([name, file]) => [file, name]))
const app = await Application.bootstrap({
  name: 'Onceonly',
  // Without it TypeDoc empties the folder it writes to by default, and that is where our pages are.
  out,
  readme: 'README.md',
  entryPoints: [...names.keys()],
  tsconfig: 'tsconfig.build.json',
  projectDocuments: [
    'docs/start.md',
    'docs/{concepts,guides,operating}/*.md',
    'docs/reference/*.md',
    'dist/reference/*.md',
    'docs/performance.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
  ],
  highlightLanguages: ['ts', 'js', 'sh', 'json', 'yaml', 'sql', 'mermaid', 'http'],
  sort: ['source-order'],
  groupOrder: ['Start', 'Concepts', 'Guides', 'Operating', 'Reference', 'Project', 'Modules'],
  navigation: { includeGroups: true, excludeReferences: true },
  hideGenerator: true,
  excludeExternals: true,
  excludePrivate: true,
  // Where a line stands is found in the package itself; the site names no host.
  disableSources: true,
  // The entries list what users hold; a word that only appears inside of a type needs no page of its own.
  validation: { notExported: false, invalidLink: true, invalidPath: true, notDocumented: false },
})
const project = await app.convert()
if (project === undefined) throw new Error('The sources cannot be read.')
for (const each of project.getReflectionsByKind(ReflectionKind.Module) as DeclarationReflection[]) {
  const file = each.sources?.[0]?.fullFileName ?? project.getSymbolIdFromReflection(each)?.fileName ?? ''
  each.name = names.get(relative(root, file)) ?? each.name
}
app.validate(project)
await app.generateOutputs(project)
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exitCode = 1
else console.log(`The site is in ${relative(root, out)}: open ${relative(root, out)}/index.html.`)
