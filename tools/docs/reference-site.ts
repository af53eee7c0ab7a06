import { relative } from 'node:path'
import type { DeclarationReflection } from 'typedoc'
import { Application, ReflectionKind } from 'typedoc'
import { entryFiles } from '../api/entries.ts'
import { root } from '../command.ts'

/** Every entry of the package with its names, options and examples, made of the sources by TypeDoc. */
export async function buildReference(out: string): Promise<void> {
  const names = new Map([...entryFiles()].map(([name, file]) => [file, name]))
  const app = await Application.bootstrap({
    name: 'Onceonly API',
    out,
    readme: 'none',
    entryPoints: [...names.keys()],
    tsconfig: 'tsconfig.build.json',
    navigationLinks: { Documentation: '../index.html' },
    highlightLanguages: ['ts', 'js', 'sh', 'json', 'yaml', 'sql', 'http'],
    sort: ['source-order'],
    sortEntryPoints: false,
    navigation: { excludeReferences: true, includeFolders: false },
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
  if (app.logger.hasErrors() || app.logger.hasWarnings()) throw new Error('TypeDoc has complaints, see above.')
}
